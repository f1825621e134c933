# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The inputs that a million coverage-guided tries kept, as regression tests: a line each, base64.

They were found by fuzz/fuzz.py; each reaches lines or branches that no other one does.
"""

import base64
import contextlib
import io

from paths import DATA
import pytest

from state_sensor_ros.errors import StateSensorError
from state_sensor_ros.simulators.monodrive.decoder import Decoder, format_payload
from state_sensor_ros.simulators.monodrive.source import PacketFramer
from state_sensor_ros.simulators.monodrive.trajectory import read_payloads

FOLDER = DATA / 'fuzz'
LIMIT = 1 << 16


def corpus(target):
    return [base64.b64decode(line) for line in (FOLDER / f'{target}.base64').read_text().split()]


def fed(data, piece_bytes):
    framer = PacketFramer(LIMIT)
    packets = 0
    while data:
        room = framer.buffer()
        assert 0 < len(room) <= LIMIT
        n_bytes = min(len(room), len(data), piece_bytes)
        room[:n_bytes] = data[:n_bytes]
        data = data[n_bytes:]
        packets += framer.advance(n_bytes) is not None
    framer.end()
    return packets


def outcome(run):
    """Return the result, or the text of an error of ours; any other error is a finding."""
    try:
        return run()
    except StateSensorError as error:
        return str(error)


def test_fuzz_corpus_framing_ends_alike_however_it_is_cut():
    for data in corpus('framing'):
        assert outcome(lambda data=data: fed(data, 1)) == outcome(
            lambda data=data: fed(data, 1 << 20))


@pytest.mark.parametrize('fresh', [True, False], ids=['fresh decoder', 'one decoder'])
def test_fuzz_corpus_decode_raises_only_our_errors(fresh):
    decoder = Decoder()
    n_frames = 0
    for data in corpus('decode'):
        if fresh:
            decoder = Decoder()
        with contextlib.suppress(StateSensorError):
            for decoded in decoder.decode(data):
                n_frames += 1
                again = Decoder().decode(format_payload(decoded.frame))[0].frame
                assert again.names == decoded.frame.names
    assert n_frames > 50


def test_fuzz_corpus_trajectory_raises_only_our_errors():
    for data in corpus('trajectory'):
        found = outcome(lambda data=data: len(list(read_payloads(io.BytesIO(data), 'corpus'))))
        assert isinstance(found, str) or found >= 0
