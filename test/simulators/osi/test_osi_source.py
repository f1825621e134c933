# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Ground truth over UDP as esmini sends it: parts, lost ones, and the commands that receive it."""

from itertools import pairwise
import struct

from hypothesis import given
from hypothesis import strategies as st
import osi_traces
from ports import free_udp_port
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.simulators.osi.source import MessageParts

LIMIT = 100_000


@given(st.lists(st.sampled_from(range(8)), unique=True), st.randoms(use_true_random=False))
def test_osi_lost_and_reordered_parts_are_counted(lost, random):
    """Only whole messages come out, whatever is lost or out of order."""
    parts = MessageParts(LIMIT)
    messages = [bytes([i]) * 1900 for i in range(4)]
    stream = [part for message in messages for part in osi_traces.datagrams(message, 1000)]
    kept = [part for i, part in enumerate(stream) if i not in lost]
    if kept and random.random() < 0.5:
        i, j = random.randrange(len(kept)), random.randrange(len(kept))
        kept[i], kept[j] = kept[j], kept[i]
    found = [message for part in kept if (message := parts.add(part, 0, 0.0)) is not None]
    for message in found:
        assert len(message) == 1900
    if kept == stream:
        assert found == messages
        assert not parts.n_lost
    assert len(found) + parts.n_lost <= 2 * len(messages)


@pytest.mark.parametrize(('order', 'n_lost', 'n_whole'), [
    ([0, 1, 2, 3, 4, 5], 0, 2), ([0, 2, 3, 4, 5], 1, 1), ([1, 2, 3, 4, 5], 1, 1),
    ([0, 1, 3, 4, 5], 1, 1), ([0, 2, 1, 3, 4, 5], 2, 1), ([0, 0, 1, 2, 3, 4, 5], 1, 2),
    ([0, 1, 2, 3], 0, 1)])
def test_osi_each_loss_is_counted(order, n_lost, n_whole):
    parts = MessageParts(LIMIT)
    stream = [part for byte in b'ab' for part in osi_traces.datagrams(bytes([byte]) * 2500, 1000)]
    found = [parts.add(stream[i], 0, 0.0) for i in order]
    assert sum(message is not None for message in found) == n_whole
    assert parts.n_lost == n_lost


@pytest.mark.parametrize(('n_dropped', 'sizes', 'late_s'), [
    (1, (1000, 1000, 500), 0.0), (0, (1000, 1000, 1001), 0.0), (0, (1000, 999, 500), 0.0),
    (0, (1000, 1000, 500), 5.0)])
def test_osi_parts_of_two_messages_are_not_joined(n_dropped, sizes, late_s):
    """Between the second and the third part, the rest of one message and the next one are lost."""
    parts = MessageParts(LIMIT)
    stream = [struct.pack('<iI', number, size) + bytes(size)
              for number, size in zip((1, 2, -3), sizes, strict=True)]
    found = [parts.add(stream[0], 0, 0.0), parts.add(stream[1], 0, 0.0),
             parts.add(stream[2], n_dropped, late_s)]
    assert found == [None] * 3
    assert parts.n_lost >= 1
    assert parts.add(osi_traces.datagrams(b'y')[0], n_dropped, late_s) == b'y'


def test_osi_parts_are_bounded_in_memory():
    parts = MessageParts(LIMIT)
    datagram = osi_traces.datagrams(b'x' * (LIMIT + 5000), 1000)
    assert all(parts.add(part, 0, 0.0) is None for part in datagram)
    assert parts.n_lost == 1
    assert parts.add(osi_traces.datagrams(b'y')[0]) == b'y'
    # Parts without content take memory, too.
    assert not any(map(parts.add, [struct.pack('<iI', i, 0) for i in range(1, 3 * LIMIT // 64)]))
    assert parts.n_lost == 2


@pytest.mark.parametrize('data', [b'', b'abc', b'\0' * 8, b'\1\0\0\0\5\0\0\0abc',
                                  b'\1\0\0\0\xff\xff\xff\xff'])
def test_osi_datagrams_that_are_no_parts_are_counted(data):
    parts = MessageParts(LIMIT)
    assert parts.add(data) is None
    assert parts.n_invalid == 1


def test_osi_stream_of_the_library():
    port = free_udp_port()
    # Each tenth message loses its second part.
    with osi_traces.esmini(port, osi_traces.large_drive(),
                           loses=lambda i, part: i % 10 == 9 and part == 1), \
            sensor.open_stream(source='osi', port=port) as stream:
        frames = [frame for frame, _ in zip(stream, range(60), strict=False)]
        assert [len(frame) for frame in frames] == [100] * 60
        times = [frame.game_time for frame in frames]
        # The drive may begin again once.
        assert sum(b <= a for a, b in pairwise(times)) <= 1
        lost = [fault for fault in stream.faults if fault.kind == 'connection']
    assert 'lost, of which a part was missing or out of order' in lost[0].text
    assert {round(time_s * 20) % 10 for time_s in times} == set(range(9))
