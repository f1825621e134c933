# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Frames on lines of their own are the frames that counting brackets finds."""

import io
import random

import pytest

from state_sensor_ros.monodrive import trajectory
from state_sensor_ros.monodrive.own_lines import end_of_line, INCOMPLETE, NOT_ALONE
from state_sensor_ros.monodrive.trajectory import read_payloads

FRAMES = [b'{"a": "}\\n{"}', b'{}', b'{"b": [[], {"c": "],"}]}', b'{"d":\n {"e": 1}\n}',
          b'{"f": "\xc3\xa4"}', b'{"g": 1} ', b'{"h": NaN}', b'{"i": 2}\t']


@pytest.mark.parametrize(('text', 'is_first', 'expected'), [
    (b'\n{"a": 1}\n', True, 9), (b'\n {"a": 1} , \n', True, 10), (b',\n{"a": 1}\n', False, 10),
    (b' ,\n {}\r\n', False, 6), (b'{}\n', True, NOT_ALONE), (b'\n{}]\n', True, NOT_ALONE),
    (b'\n{}, {}\n', True, NOT_ALONE), (b'\n{\n', True, NOT_ALONE),
    (b'\n{"a": "\n"}\n', True, NOT_ALONE), (b'\n{"a": NaN}\n', True, NOT_ALONE),
    (b',\n{}\n', True, NOT_ALONE), (b'\n{}\n', False, NOT_ALONE), (b']\n', False, NOT_ALONE),
    (b'\n[]\n', True, NOT_ALONE), (b'\n{"a": ' + b'[' * 5000 + b'\n', True, NOT_ALONE),
    (b'{"a": 1', True, NOT_ALONE), (b'', True, INCOMPLETE), (b' \n', False, INCOMPLETE),
    (b',', False, INCOMPLETE), (b'\n{"a": 1}', True, INCOMPLETE),
    (b'\n{}, {', True, INCOMPLETE)])
def test_end_of_line(text, is_first, expected):
    assert end_of_line(bytearray(text), is_first=is_first) == expected


class Pieces(io.RawIOBase):
    """A file that is read in pieces of a few bytes, whatever is asked for."""

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
    monkeypatch.setattr(trajectory, 'end_of_line', lambda text, is_first: NOT_ALONE)
    by_brackets = list(read_payloads(Pieces(text, rng), 'x'))
    assert by_lines == by_brackets
    assert [payload.data for payload in by_lines] == [frame.strip() for frame in frames]
