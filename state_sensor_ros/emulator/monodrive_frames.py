# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The frames of the mock server: of a trajectory or of endless traffic, filtered and timed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
import time
from typing import Annotated, Any, TypeAlias

import msgspec

from state_sensor_ros.emulator.bicycle import Pedals
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames, WARM_UP_S

# Period of frames whose clocks do not define one: trajectories run at 20 Hz.
DEFAULT_PERIOD_S = 0.05
# A longer time between two frames is a step of the clock and is not waited for.
MAX_GAP_S = 10.0
# Most frames of one step: traffic is simulated frame by frame, even if a step skips frames.
MAX_SKIPPED = 1000
BOXES = 'oriented_bounding_box'
# Numbers that the float32 of a header can represent.
_Number = Annotated[float, msgspec.Meta(ge=-3.4028234e38, le=3.4028234e38)]


class FrameClock(msgspec.Struct, frozen=True):
    """The clock members of a frame, None for a missing one."""

    game_time: _Number | None = None  # simulated time, s
    time: _Number | None = None  # Unix time, s
    sample_count: _Number | None = None

    def period_s(self, after: FrameClock) -> float:
        """Return the simulated time to another frame, 0.05 s where that is unknown."""
        if self.game_time is None or after.game_time is None:
            return DEFAULT_PERIOD_S
        period_s = after.game_time - self.game_time
        return period_s if 0.0 < period_s <= MAX_GAP_S else DEFAULT_PERIOD_S


def lower_tags(tags: object) -> frozenset[str]:
    """Return tags in lower case: engine names compare without case, and `""` is not a tag."""
    return frozenset(tag.lower() for tag in tags if isinstance(tag, str) and tag) \
        if isinstance(tags, list | tuple) else frozenset()


def _state(vehicle: dict[str, object]) -> dict[str, object]:
    state = vehicle.get('state')
    return state if isinstance(state, dict) else vehicle


def _is_actor(value: object) -> bool:
    """Return whether a top-level member of a frame is an actor of generation v0."""
    return isinstance(value, dict) and 'position' in value


def actors(members: dict[str, object]) -> Iterator[dict[str, object]]:
    """Iterate over the actors of a frame of any generation."""
    frame = members.get('frame', list(filter(_is_actor, members.values())))
    for group in (frame.get('objects'), frame.get('vehicles')) if isinstance(frame, dict) \
            else (frame,):
        if isinstance(group, list):
            yield from (_state(actor) for actor in group if isinstance(actor, dict))


def has_ego(members: dict[str, object]) -> bool:
    return any('ego' in lower_tags(actor.get('tags')) for actor in actors(members))


@dataclass(frozen=True, slots=True)
class SensorFilter:
    """What one sensor sends of a frame."""

    # Lower-case tags; an actor needs one of them, so an empty set selects none.
    desired: frozenset[str]
    undesired: frozenset[str]  # lower-case tags that exclude an actor
    include_obb: bool  # whether boxes are sent

    def of(self, members: dict[str, object]) -> dict[str, object]:
        """Return the members of a frame with the selected actors only."""
        frame = members.get('frame')
        if isinstance(frame, dict):
            # An actor of v2 without boxes has an empty list.
            return {**members, 'frame': {
                key: self._kept(group, {BOXES: []}) if isinstance(group, list) else group
                for key, group in frame.items()}}
        if isinstance(frame, list):
            return {**members, 'frame': self._kept(frame, {})}
        return {key: value for key, value in members.items()
                if not _is_actor(value) or self._passes(value)}

    def _passes(self, actor: object) -> bool:
        if not isinstance(actor, dict):
            return False
        tags = lower_tags(_state(actor).get('tags'))
        return not tags.isdisjoint(self.desired) and tags.isdisjoint(self.undesired)

    def _kept(self, group: list[dict[str, object]],
              no_boxes: dict[str, object]) -> list[dict[str, object]]:
        return [actor if self.include_obb else _without_boxes(actor, no_boxes)
                for actor in group if self._passes(actor)]


def _without_boxes(actor: dict[str, object], no_boxes: dict[str, object]) -> dict[str, object]:
    if isinstance(state := actor.get('state'), dict):
        return {**actor, 'state': _without_boxes(state, no_boxes)}
    return {**{key: value for key, value in actor.items() if key != BOXES}, **no_boxes}


@dataclass(frozen=True)
class EmulatedFrame:
    """One frame, either JSON text (of a file) or plain JSON data."""

    source: bytes | dict[str, object]
    # Whether it is sent with its own sample count; otherwise the sensor counts its samples.
    is_verbatim: bool = True

    @cached_property
    def clock(self) -> FrameClock:
        """Return the clock of the frame; in generation v1t it is a part of an actor."""
        try:
            clock = msgspec.convert(self.source, FrameClock) if isinstance(self.source, dict) \
                else msgspec.json.decode(self.source, type=FrameClock)
            timed = [] if clock.game_time is not None else [
                actor for actor in actors(self._members()) if 'game_time' in actor]
            return msgspec.convert(timed[0], FrameClock) if timed else clock
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return FrameClock()

    def _members(self) -> dict[str, Any]:
        """Return the frame as plain data; raise an error of msgspec unless it is an object."""
        return self.source if isinstance(self.source, dict) \
            else msgspec.json.decode(self.source, type=dict[str, Any])

    def text(self, sensor_filter: SensorFilter | None, sample_count: int | None = None) -> bytes:
        """Return the frame as JSON text, with its own sample count or another one."""
        if isinstance(self.source, bytes) and sensor_filter is None and sample_count is None:
            return self.source
        try:
            members = self._members()
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            assert isinstance(self.source, bytes)
            return self.source
        if sensor_filter is not None:
            members = sensor_filter.of(members)
        if sample_count is not None:
            members = {**members, 'sample_count': sample_count}
        return msgspec.json.encode(members)


class TrajectorySource:
    """A list of frames, sent verbatim; with ``loop`` the first one follows the last one."""

    def __init__(self, frames: Sequence[EmulatedFrame], loop: bool = False) -> None:
        self._frames, self._loop = frames, loop
        self._index = -1

    def advance(self) -> EmulatedFrame | None:
        """Return the next frame, or None after the last one."""
        if self._index + 1 >= len(self._frames) and not self._loop:
            return None
        return self.step(1)

    def step(self, amount: int) -> EmulatedFrame | None:
        """Move within the trajectory, or round it if it loops, and return the frame there."""
        if not self._frames:
            return None
        n_frames, target = len(self._frames), self._index + amount
        self._index = target % n_frames if self._loop else max(0, min(target, n_frames - 1))
        return self._frames[self._index]

    def rewind(self) -> None:
        """Return to the position before the first frame."""
        self._index = -1

    def drive(self, pedals: Pedals) -> None:
        """Do nothing: the frames do not change."""


class TrafficSource:
    """Frames of generated traffic, which cannot go back."""

    def __init__(self, traffic: TrafficFrames) -> None:
        self.traffic = traffic
        self._current: EmulatedFrame | None = None

    def advance(self) -> EmulatedFrame:
        """Return the next frame."""
        self._current = EmulatedFrame(next(self.traffic), is_verbatim=False)
        return self._current

    def step(self, amount: int) -> EmulatedFrame | None:
        """Take up to 1000 frames and return the last; 0 and less return the current one."""
        for _ in range(min(max(amount, 0 if self._current else 1), MAX_SKIPPED)):
            self.advance()
        return self._current

    def rewind(self) -> None:
        """Do nothing: it cannot go back."""

    def drive(self, pedals: Pedals) -> None:
        """Drive the ego between the last frame and the next one."""
        self.traffic.drive(pedals)


# A sequence of frames with a current position: the first step of 1 returns the first one.
FrameSource: TypeAlias = TrajectorySource | TrafficSource


def synthetic_source(n_vehicles: int, n_objects: int, rate_hz: float, seed: int,
                     generation: str) -> FrameSource:
    """Return endless traffic, as of :class:`TrafficFrames`, that began a while ago."""
    return TrafficSource(TrafficFrames(n_vehicles, n_objects, rate_hz, seed, generation,
                                       epoch_s=int(time.time() - WARM_UP_S)))
