# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Bytes of CARLA's measurements port: whole, in pieces, cut off, impossible."""

import math
import random
import struct

from carla_wire import join_messages
from framers import fed
from hypothesis import given
from hypothesis import strategies as st
import pytest

from state_sensor_ros.errors import DecodeError, FramingError, TransportError
from state_sensor_ros.simulators.carla.frame_payload import MeasurementFramer, split_frame


def stream(*frames):
    """Return frames of messages as sent by the server, without code of the package."""
    data = b''
    for messages in frames:
        for message in (*messages, b''):
            data += struct.pack('<I', len(message)) + message
    return data


FRAMES = [[b'one measurement'], [b'm', b'image 1', b'image 22'], [b'x' * 300], [b'\0' * 4, b'\0']]


def messages_of(packets):
    return [[bytes(message) for message in split_frame(packet.payload)[0]] for packet in packets]


@pytest.mark.parametrize('cut', [lambda n: n, lambda n: 1, random.Random(7).randrange],
                         ids=['whole', 'bytewise', 'random'])
def test_carla_framing_gives_the_same_frames_in_any_pieces(cut):
    framer = MeasurementFramer(10_000)
    packets = fed(framer, stream(*FRAMES), lambda n: cut(n + 1))
    assert messages_of(packets) == FRAMES
    framer.end()
    assert math.isnan(packets[0].game_time)
    assert (packets[0].time, packets[0].sample_count) == (0, 0)


def test_carla_framing_empty_frame_is_an_empty_payload():
    packets = fed(MeasurementFramer(100), stream([], FRAMES[0]))
    assert [packet.payload for packet in packets] == [b'', stream(FRAMES[0])]


def test_carla_framing_end_inside_a_frame_differs_from_the_end_behind_one():
    data = stream(FRAMES[0], FRAMES[1])
    boundaries = {0, len(stream(FRAMES[0])), len(data)}
    for length in range(len(data) + 1):
        framer = MeasurementFramer(10_000, '127.0.0.1:2001')
        fed(framer, data[:length])
        if length in boundaries:
            framer.end()
        else:
            with pytest.raises(TransportError, match=r'^127\.0\.0\.1:2001: found the end of the '):
                framer.end()


@pytest.mark.parametrize('length', [93, 2 ** 31, 2 ** 32 - 1])
def test_carla_framing_refuses_lengths_above_the_limit(length):
    framer = MeasurementFramer(100, 'here')
    fed(framer, stream(FRAMES[0]))
    with pytest.raises(FramingError, match=rf'message length {length} at byte 27; .*100'):
        fed(framer, struct.pack('<I', length))


def test_carla_framing_limit_counts_the_whole_frame():
    whole = [b'a' * 40, b'b' * 40]
    assert messages_of(fed(MeasurementFramer(92), stream(whole))) == [whole]
    with pytest.raises(FramingError):
        fed(MeasurementFramer(91), stream(whole))


@given(st.binary(max_size=60))
def test_carla_framing_splits_or_refuses(data):
    try:
        messages, scene = split_frame(data)
    except DecodeError:
        return
    assert join_messages(messages) + scene == data
