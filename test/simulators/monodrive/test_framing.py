# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Bytes to packets, divided at any place; the streams here are packed with struct."""

import struct

from hypothesis import example, given
from hypothesis import strategies as st
import pytest

from state_sensor_ros.errors import FramingError, TransportError
from state_sensor_ros.simulators.monodrive.wire import PacketFramer

LIMIT = 1 << 16
# Bytes of a packet of ten thousand actors.
PAYLOADS = [b'{}', b'', b'{"a":1}', b'[' + b' ' * 3000 + b']', b'']


def fed(framer, data, cut=lambda n_bytes: n_bytes):
    """Return the packets of data in pieces of ``cut(room in the buffer)`` bytes, at least one."""
    packets = []
    while data:
        room = framer.buffer()
        assert len(room)
        n_bytes = min(max(cut(len(room)), 1), len(room), len(data))
        room[:n_bytes] = data[:n_bytes]
        data = data[n_bytes:]
        packet = framer.advance(n_bytes)
        if packet is not None:
            packets.append(packet)
    return packets


def packed(payload, header_bytes, *, time=7, game_time=1.5, sample_count=9):
    head = struct.pack('>IIf', len(payload) + header_bytes, time, game_time)
    return head + (struct.pack('>I', sample_count) if header_bytes == 16 else b'') + payload


def packets_of(stream, cuts=()):
    """Return the packets of a stream in pieces of the given sizes, the rest in one."""
    framer, sizes = PacketFramer(LIMIT), iter(cuts)
    packets = fed(framer, stream, lambda n_bytes: next(sizes, n_bytes))
    framer.end()
    return packets


@pytest.mark.parametrize('header_bytes', [12, 16])
@given(cuts=st.lists(st.integers(1, 40), max_size=200))
@example(cuts=[1] * 3000)
def test_framing_gives_the_same_packets_at_any_cut(header_bytes, cuts):
    stream = b''.join(packed(payload, header_bytes) for payload in PAYLOADS)
    packets = packets_of(stream, cuts)
    assert [bytes(packet.payload) for packet in packets] == PAYLOADS
    assert {(packet.time, packet.game_time) for packet in packets} == {(7, 1.5)}
    assert {packet.sample_count for packet in packets} == {9 if header_bytes == 16 else 0}


@pytest.mark.parametrize('header_bytes', [12, 16])
def test_framing_end_of_stream_at_every_offset(header_bytes):
    stream = packed(b'{"a":1}', header_bytes) * 2
    for end in range(len(stream) + 1):
        if end % (len(stream) // 2) == 0:
            assert len(packets_of(stream[:end])) == end // (len(stream) // 2)
        else:
            with pytest.raises(TransportError, match='end of the stream'):
                packets_of(stream[:end])


def test_framing_packet_without_payload_does_not_decide_the_header():
    # A first packet without payload may have either header.
    packets = packets_of(packed(b'', 12) + packed(b'{}', 16))
    assert [bytes(packet.payload) for packet in packets] == [b'', b'{}']
    packets = packets_of(packed(b'', 16) + packed(b'{"b":2}', 12))
    assert [bytes(packet.payload) for packet in packets] == [b'', b'{"b":2}']


@pytest.mark.parametrize('length', [0, 3, 11, LIMIT + 1, 0xFFFFFFFF])
def test_framing_refuses_impossible_lengths(length):
    stream = struct.pack('>IIfI', length, 0, 0.0, 0)
    with pytest.raises(FramingError, match=f'packet length {length} at byte 0'):
        packets_of(stream)


def test_framing_refuses_less_than_the_detected_header():
    stream = packed(b'{"a":1}', 16) + struct.pack('>IIfI', 13, 0, 0.0, 0)
    with pytest.raises(FramingError, match='packet length 13 at byte 23; expected at least 16'):
        packets_of(stream)


def test_framing_accepts_a_packet_of_exactly_the_limit():
    assert len(packets_of(packed(b'{' + b' ' * (LIMIT - 17), 16))[0].payload) == LIMIT - 16
