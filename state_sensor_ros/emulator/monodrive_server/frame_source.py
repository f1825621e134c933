# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The sources of frames (a trajectory, endless traffic, a cycle), and the frames they send."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
import time

import msgspec

from state_sensor_ros.emulator.bicycle import Pedals
from state_sensor_ros.emulator.traffic.frame_generator import generate, TrafficFrames, WARM_UP_S

LARGEST_FLOAT32 = 3.4028234e38
# Period of frames whose clocks do not define one: trajectories run at 20 Hz.
DEFAULT_PERIOD_S = 0.05
# A longer time between two frames is a step of the clock and is not waited for.
MAX_GAP_S = 10.0
# Most frames of one step: traffic is simulated frame by frame, even if a step skips frames.
MAX_SKIPPED = 1000
BOXES = 'oriented_bounding_box'
CLOCK_KEYS = ('game_time', 'sample_count', 'time')
# Texts kept per frame, one for each filter; all are dropped when there are more.
MAX_KEPT_TEXTS = 4


@dataclass(frozen=True, slots=True)
class TimedFrame:
    """A frame and the clock that its packet reports."""

    frame: EmulatedFrame
    clock: FrameClock
    # Whether the text is sent unchanged, with its own sample count; otherwise the sensor writes
    # the clock and its own sample count.
    is_verbatim: bool


class FrameSource(ABC):
    """A sequence of frames with a current position."""

    @abstractmethod
    def advance(self) -> TimedFrame | None:
        """Return the next frame, or None at the end."""

    @abstractmethod
    def step(self, amount: int) -> TimedFrame | None:
        """Move by a number of frames, as far as possible, and return the frame there."""
        # amount: frames, negative ones backward; the first step of 1 returns the first one.

    def rewind(self) -> None:  # noqa: B027
        """Return to the position before the first frame, if the source can go back."""

    def drive(self, pedals: Pedals) -> None:  # noqa: B027
        """Drive the ego from now on, if it can be driven."""


class TrajectorySource(FrameSource):
    """A list of frames, sent verbatim."""

    # loop: whether the first frame follows the last one; game_time decreases there.

    def __init__(self, frames: Sequence[EmulatedFrame], loop: bool = False) -> None:
        self._frames = frames
        self._loop = loop
        self._index = -1

    def _current(self) -> TimedFrame | None:
        if not self._frames:
            return None
        frame = self._frames[self._index]
        return TimedFrame(frame, frame.clock, is_verbatim=True)

    def advance(self) -> TimedFrame | None:
        """Return the next frame, or None after the last one."""
        if self._index + 1 >= len(self._frames):
            if not self._loop:
                return None
            self._index = -1
        self._index += 1
        return self._current()

    def step(self, amount: int) -> TimedFrame | None:
        """Move within the trajectory, or round it if it loops, and return the frame there."""
        # amount: number of frames, negative backward.
        target = self._index + amount
        if self._loop and self._frames:
            self._index = target % len(self._frames)
        else:
            self._index = max(0, min(target, len(self._frames) - 1))
        return self._current()

    def rewind(self) -> None:
        """Return to the position before the first frame."""
        self._index = -1


class IteratorSource(FrameSource):
    """Frames of an iterator, which cannot go back."""

    def __init__(self, frames: Iterator[dict[str, object]]) -> None:
        self._frames = frames
        self._current: TimedFrame | None = None

    def advance(self) -> TimedFrame | None:
        """Return the next frame, or None at the end of the iterator."""
        members = next(self._frames, None)
        if members is None:
            return None
        frame = EmulatedFrame(members)
        self._current = TimedFrame(frame, frame.clock, is_verbatim=False)
        return self._current

    def step(self, amount: int) -> TimedFrame | None:
        """Take up to 1000 frames and return the last; 0 and less return the current one."""
        current = self._current
        for _ in range(min(max(amount, 0 if current else 1), MAX_SKIPPED)):
            current = self.advance() or current
        return current

    def drive(self, pedals: Pedals) -> None:
        """Drive the ego of generated traffic; other frames do not change."""
        if isinstance(self._frames, TrafficFrames):
            self._frames.drive(pedals)


def synthetic_source(n_vehicles: int, n_objects: int, rate_hz: float, seed: int,
                     generation: str) -> FrameSource:
    """Return endless traffic, as of :func:`generate`, that began a while ago."""
    return IteratorSource(generate(n_vehicles, n_objects, rate_hz, seed, generation,
                                   epoch_s=int(time.time() - WARM_UP_S)))


def frame_period_s(before: FrameClock, after: FrameClock) -> float:
    """Return the simulated time between two frames."""
    # Returns seconds; 0.05 if game_time is missing, does not increase or has a step.
    if before.game_time is None or after.game_time is None:
        return DEFAULT_PERIOD_S
    period_s = after.game_time - before.game_time
    return period_s if 0.0 < period_s <= MAX_GAP_S else DEFAULT_PERIOD_S


@dataclass(frozen=True, slots=True)
class SensorFilter:
    # Lower-case tags; an actor needs one of them, so an empty set selects none.
    desired: frozenset[str]
    undesired: frozenset[str]  # lower-case tags that exclude an actor
    include_obb: bool  # whether boxes are sent

    def passes(self, actor: object) -> bool:
        """Return whether the tags of an actor select it."""
        if not isinstance(actor, dict):
            return False
        tags = lower_tags(_state(actor).get('tags'))
        return not tags.isdisjoint(self.desired) and tags.isdisjoint(self.undesired)


def lower_tags(tags: object) -> frozenset[str]:
    """Return tags in lower case: engine names compare without case, and `""` is not a tag."""
    if not isinstance(tags, (list, tuple)):
        return frozenset()
    return frozenset(tag.lower() for tag in tags if isinstance(tag, str) and tag)


def is_actor(value: object) -> bool:
    """Return whether a top-level member of a frame is an actor of generation v0."""
    return isinstance(value, dict) and 'position' in value


def _state(vehicle: dict[str, object]) -> dict[str, object]:
    state = vehicle.get('state')
    return state if isinstance(state, dict) else vehicle


def actors(members: dict[str, object]) -> Iterator[dict[str, object]]:
    """Iterate over the actors of a frame of any generation."""
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
    return any('ego' in lower_tags(actor.get('tags')) for actor in actors(members))


def filtered(members: dict[str, object], sensor_filter: SensorFilter) -> dict[str, object]:
    """Apply a filter to a frame: the members with the selected actors only."""
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
    """The clock members of a frame, None for a missing one."""

    game_time: float | None = None  # simulated time, s
    time: int | None = None  # Unix time, s
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
    """One frame, either JSON text (of a file) or plain JSON data."""

    __slots__ = ('_bodies', '_clock', '_source')

    def __init__(self, source: bytes | dict[str, object]) -> None:
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
        """Return the frame as JSON text with its own clock."""
        if sensor_filter is not None and (members := self.members) is not None:
            return msgspec.json.encode(filtered(members, sensor_filter))
        if isinstance(self._source, dict):
            return msgspec.json.encode(self._source)
        return self._source

    def text_at(self, clock: FrameClock, sensor_filter: SensorFilter | None) -> tuple[bytes, ...]:
        """Return the frame as JSON text with another clock; the rest is encoded once and kept."""
        if (body := self._bodies.get(sensor_filter)) is None:
            members = self.members
            if members is None:
                return (self.text(sensor_filter),)
            body = self._encode_body(members, sensor_filter)
        tail = {key: value for key in CLOCK_KEYS
                if (value := getattr(clock, key)) is not None}
        comma = b',' if len(body) > 1 and tail else b''
        return body, comma + msgspec.json.encode(tail)[1:]

    def _encode_body(self, members: dict[str, object],
                     sensor_filter: SensorFilter | None) -> bytes:
        """Encode and keep everything but the clock and the last brace."""
        chosen = members if sensor_filter is None else filtered(members, sensor_filter)
        body = msgspec.json.encode({k: v for k, v in chosen.items() if k not in CLOCK_KEYS})[:-1]
        if len(self._bodies) >= MAX_KEPT_TEXTS:
            self._bodies.clear()
        self._bodies[sensor_filter] = body
        return body


def _usable(value: float | None) -> float | None:
    """Return a number that a float32 can represent, None for another one."""
    return value if value is not None and abs(value) <= LARGEST_FLOAT32 else None


def _whole(value: float | None) -> int | None:
    return None if (usable := _usable(value)) is None else int(usable)


def _clock_members(members: dict[str, object]) -> _ClockMembers:
    return msgspec.convert({key: members.get(key) for key in CLOCK_KEYS}, _ClockMembers)
