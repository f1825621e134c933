# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A frame to be sent: its clock, and its JSON text for the filter of each State sensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from state_sensor_ros.emulator.monodrive_server.packet_bytes import LARGEST_FLOAT32
from state_sensor_ros.emulator.traffic.json_template import encode_json

BOXES = 'oriented_bounding_box'
CLOCK_KEYS = ('game_time', 'sample_count', 'time')
# Texts kept per frame, one for each filter; all are dropped when there are more.
MAX_KEPT_TEXTS = 4


@dataclass(frozen=True, slots=True)
class SensorFilter:
    """
    The filter of one sensor.

    :param desired: lower-case tags; an actor needs one of them, so an empty set selects none.
    :param undesired: lower-case tags that exclude an actor.
    :param include_obb: whether boxes are sent.
    """

    desired: frozenset[str]
    undesired: frozenset[str]
    include_obb: bool

    def passes(self, actor: object) -> bool:
        """
        Return whether the tags of an actor select it.

        :param actor: an element of a frame of any generation.
        :returns: False for anything but an object with suitable tags.
        """
        if not isinstance(actor, dict):
            return False
        tags = lower_tags(_state(actor).get('tags'))
        return not tags.isdisjoint(self.desired) and tags.isdisjoint(self.undesired)


def lower_tags(tags: object) -> frozenset[str]:
    """
    Return tags in lower case: engine names compare without case, and `""` is not a tag.

    :param tags: the value of a member `tags`; anything but a list has no tags.
    :returns: the strings in it, in lower case.
    """
    if not isinstance(tags, (list, tuple)):
        return frozenset()
    return frozenset(tag.lower() for tag in tags if isinstance(tag, str) and tag)


def is_actor(value: object) -> bool:
    """
    Return whether a top-level member of a frame is an actor of generation v0.

    :param value: the member.
    :returns: whether it is an object with a position.
    """
    return isinstance(value, dict) and 'position' in value


def _state(vehicle: dict[str, object]) -> dict[str, object]:
    state = vehicle.get('state')
    return state if isinstance(state, dict) else vehicle


def actors(members: dict[str, object]) -> Iterator[dict[str, object]]:
    """
    Iterate over the actors of a frame of any generation.

    :param members: the members of the frame.
    :returns: the object with name and tags of each actor.
    """
    frame = members.get('frame')
    if isinstance(frame, dict):
        groups = (frame.get('objects'), frame.get('vehicles'))
    elif 'frame' in members:
        groups = (frame, None)
    else:
        groups = ([value for value in members.values() if is_actor(value)], None)
    for group in groups:
        if isinstance(group, list):
            yield from (_state(actor) for actor in group if isinstance(actor, dict))


def has_ego(members: dict[str, object]) -> bool:
    """
    Return whether a frame has an ego.

    :param members: the members of the frame.
    :returns: whether an actor has the tag `ego`.
    """
    return any('ego' in lower_tags(actor.get('tags')) for actor in actors(members))


def filtered(members: dict[str, object], sensor_filter: SensorFilter) -> dict[str, object]:
    """
    Apply a filter to a frame.

    :param members: the members of the frame; not modified.
    :param sensor_filter: the filter.
    :returns: the members with the selected actors only.
    """
    frame = members.get('frame')
    if isinstance(frame, dict):
        kept: object = {key: _filter_list(group, sensor_filter, _without_boxes_v2)
                        if isinstance(group, list) else group for key, group in frame.items()}
        return {**members, 'frame': kept}
    if isinstance(frame, list):
        return {**members, 'frame': _filter_list(frame, sensor_filter, _without_boxes_v1)}
    return {key: value for key, value in members.items()
            if not is_actor(value) or sensor_filter.passes(value)}


def _filter_list(group: list[dict[str, object]], sensor_filter: SensorFilter,
                 without_boxes: Callable[[dict[str, object]], object]) -> list[object]:
    kept = [actor for actor in group if sensor_filter.passes(actor)]
    return list(kept) if sensor_filter.include_obb else [without_boxes(actor) for actor in kept]


def _without_boxes_v2(actor: dict[str, object]) -> dict[str, object]:
    state = actor.get('state')
    if isinstance(state, dict):
        return {**actor, 'state': {**state, BOXES: []}}
    return {**actor, BOXES: []}


def _without_boxes_v1(actor: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in actor.items() if key != BOXES}


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

        :param clock: the clock; members that are None are omitted.
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
