# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A frame to be sent: its clock, and its JSON text for each sensor filter.

The clock members come last in the text, so that the text before them can be kept and sent again
with another clock: {"frame": ... + ,"game_time":8.05,"sample_count":2,"time":1600000008}.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from state_sensor_ros.emulator.frame_values import encode_json
from state_sensor_ros.emulator.monodrive_server.emulated_frame import (
    actors,
    filtered,
    SensorFilter,
)
from state_sensor_ros.emulator.monodrive_server.packet_bytes import LARGEST_FLOAT32

CLOCK_KEYS = ('game_time', 'sample_count', 'time')
# Texts kept per frame, one for each filter; all are dropped when there are more.
MAX_KEPT_TEXTS = 4


@dataclass(frozen=True, slots=True)
class FrameClock:
    """
    The clock members of a frame, None for a missing one.

    :param game_time: simulated time, s.
    :param time: Unix time, s.
    :param sample_count: number of the sample.
    """

    game_time: float | None = None
    time: int | None = None
    sample_count: int | None = None


class _ClockMembers(msgspec.Struct):
    """Clock members for a decoder, with which msgspec skips the rest of the text."""

    game_time: float | None = None
    time: float | None = None
    sample_count: float | None = None

    def clock(self) -> FrameClock:
        return FrameClock(_usable(self.game_time), _whole(self.time), _whole(self.sample_count))


_CLOCK_DECODER = msgspec.json.Decoder(_ClockMembers)


class EmulatedFrame:
    """
    One frame, either JSON text (of a file) or plain JSON data.

    :param source: the text, or the members of the frame, which must not change any more.
    """

    __slots__ = ('_bodies', '_clock', '_source')

    def __init__(self, source: bytes | msgspec.Raw | dict[str, object]) -> None:
        self._source = source
        self._clock: FrameClock | None = None
        self._bodies: dict[SensorFilter | None, bytes] = {}

    @property
    def members(self) -> dict[str, object] | None:
        """Return the frame as plain data, or None when the text is not an object."""
        if isinstance(self._source, dict):
            return self._source
        try:
            members = msgspec.json.decode(self._source)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return members if isinstance(members, dict) else None

    @property
    def clock(self) -> FrameClock:
        """Return the clock of the frame; in generation v1t it is a part of an actor."""
        if self._clock is None:
            try:
                self._clock = self._read_clock()
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                self._clock = FrameClock()
        return self._clock

    def _read_clock(self) -> FrameClock:
        if isinstance(self._source, dict):
            clock = _clock_members(self._source)
        else:
            clock = _CLOCK_DECODER.decode(self._source)
        if clock.game_time is None and (members := self.members) is not None:
            clock = _clock_members(
                next((actor for actor in actors(members) if 'game_time' in actor), {}))
        return clock.clock()

    def text(self, sensor_filter: SensorFilter | None) -> bytes:
        """
        Return the frame as JSON text with its own clock.

        :param sensor_filter: the filter, None for the frame as it is.
        :returns: JSON text; without a filter the text of a file is unchanged.
        """
        if sensor_filter is not None and (members := self.members) is not None:
            return encode_json(filtered(members, sensor_filter))
        if isinstance(self._source, dict):
            return encode_json(self._source)
        return bytes(self._source)

    def text_at(self, clock: FrameClock, sensor_filter: SensorFilter | None) -> tuple[bytes, ...]:
        """
        Return the frame as JSON text with another clock; the rest is encoded once and kept.

        :param clock: the clock; members that are None are left out.
        :param sensor_filter: the filter, None for the frame as it is.
        :returns: pieces of JSON text, the clock members in the last one.
        """
        if (body := self._bodies.get(sensor_filter)) is None:
            members = self.members
            if members is None:
                return (self.text(sensor_filter),)
            body = self._encode_body(members, sensor_filter)
        tail = {key: value for key in CLOCK_KEYS
                if (value := getattr(clock, key)) is not None}
        comma = b',' if len(body) > 1 and tail else b''
        return body, comma + encode_json(tail)[1:]

    def _encode_body(self, members: dict[str, object],
                     sensor_filter: SensorFilter | None) -> bytes:
        """Encode and keep everything but the clock and the last brace."""
        chosen = members if sensor_filter is None else filtered(members, sensor_filter)
        body = encode_json({k: v for k, v in chosen.items() if k not in CLOCK_KEYS})[:-1]
        if len(self._bodies) >= MAX_KEPT_TEXTS:
            self._bodies.clear()
        self._bodies[sensor_filter] = body
        return body

    def freeze(self) -> None:
        """Replace the data by its text, which needs a tenth of the memory."""
        if isinstance(self._source, dict):
            self._clock = self.clock
            self._source = self._encode_body(self._source, None) + b'}'


def _usable(value: float | None) -> float | None:
    """Return a number that a float32 can represent, None for another one."""
    return value if value is not None and abs(value) <= LARGEST_FLOAT32 else None


def _whole(value: float | None) -> int | None:
    return None if (usable := _usable(value)) is None else int(usable)


def _clock_members(members: dict[str, object]) -> _ClockMembers:
    return msgspec.convert({key: members.get(key) for key in CLOCK_KEYS}, _ClockMembers)
