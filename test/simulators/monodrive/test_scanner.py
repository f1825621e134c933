# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames are found in JSON by lines and by brackets, in pieces of any size."""

import io
import random

import pytest

from state_sensor_ros.simulators.monodrive import trajectory
from state_sensor_ros.simulators.monodrive.scanner import (
    frame_end_on_line,
    INCOMPLETE,
    NO_LINE,
)
from state_sensor_ros.simulators.monodrive.trajectory import read_payloads

FRAMES = [b'{"a": "}\\n{"}', b'{}', b'{"b": [[], {"c": "],"}]}', b'{"d":\n {"e": 1}\n}',
          b'{"f": "\xc3\xa4"}', b'{"g": 1} ', b'{"h": NaN}', b'{"i": 2}\t']


@pytest.mark.parametrize(('text', 'is_first', 'expected'), [
    (b'\n{"a": 1}\n', True, 9), (b'\n {"a": 1} , \n', True, 10), (b',\n{"a": 1}\n', False, 10),
    (b' ,\n {}\r\n', False, 6), (b'{}\n', True, NO_LINE), (b'\n{}]\n', True, NO_LINE),
    (b'\n{}, {}\n', True, NO_LINE), (b'\n{\n', True, NO_LINE),
    (b'\n{"a": "\n"}\n', True, NO_LINE), (b'\n{"a": NaN}\n', True, NO_LINE),
    (b',\n{}\n', True, NO_LINE), (b'\n{}\n', False, NO_LINE), (b']\n', False, NO_LINE),
    (b'\n[]\n', True, NO_LINE), (b'\n{"a": ' + b'[' * 5000 + b'\n', True, NO_LINE),
    (b'{"a": 1', True, NO_LINE), (b'', True, INCOMPLETE), (b' \n', False, INCOMPLETE),
    (b',', False, INCOMPLETE), (b'\n{"a": 1}', True, INCOMPLETE),
    (b'\n{}, {', True, INCOMPLETE)])
def test_frame_end_on_line(text, is_first, expected):
    assert frame_end_on_line(bytearray(text), is_first=is_first) == expected


class Pieces(io.RawIOBase):
    """A file that is read in pieces of a few bytes, of any requested size."""

    def __init__(self, text, rng):
        self._text, self._rng = io.BytesIO(text), rng

    def read(self, _=-1):
        return self._text.read(self._rng.choice((1, 2, 7, 50)))


@pytest.mark.parametrize('seed', range(40))
def test_lines_and_brackets_find_the_same(seed, monkeypatch):
    rng = random.Random(seed)
    frames = [rng.choice(FRAMES) for _ in range(rng.randrange(1, 12))]
    text = b'[' + rng.choice((b'', b'\n', b' \n')) + frames[0] + b''.join(
        rng.choice((b',', b'\n,\n', b',\n', b', \n\n')) + frame for frame in frames[1:]) \
        + rng.choice((b'', b'\n')) + b']' + rng.choice((b'', b'\n'))
    by_lines = list(read_payloads(Pieces(text, rng), 'x'))
    monkeypatch.setattr(trajectory, 'frame_end_on_line', lambda text, **_: NO_LINE)
    by_brackets = list(read_payloads(Pieces(text, rng), 'x'))
    assert by_lines == by_brackets
    assert [payload.data for payload in by_lines] == [frame.strip() for frame in frames]
