# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Payloads of all generations to frames: typed as a whole (schema.py), else by actor (forms.py).

Factors and signs are in rep103.py; here each member is put into its column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import lru_cache
from itertools import chain
import math
from typing import Any, TypeAlias

import msgspec
import numpy as np

from state_sensor_ros import rep103
from state_sensor_ros.classes import has_ego_tag
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Boxes, Floats, Frame, Kinds, Lanes, NO_LANES, Rows, Wheels
from state_sensor_ros.settings import DEFAULTS, Settings
from state_sensor_ros.simulators import json_text
from state_sensor_ros.simulators.monodrive import forms, schema
from state_sensor_ros.simulators.monodrive.schema import NAN, Number
from state_sensor_ros.simulators.monodrive.wheels import flat_wheels, nested_wheels
from state_sensor_ros.source import Faults, IGNORED, LOST, MEMBER

# A payload of strict JSON: generation, and value of its types, none for ``''``.
Parsed: TypeAlias = tuple[str, Any]
_NOT_TYPED: Parsed = '', None
# ``game_time`` s, ``time`` s since 1970 and ``sample_count`` of a packet, for a payload without.
Head: TypeAlias = tuple[float, int, int]
NO_HEAD: Head = NAN, 0, 0
# Bounds the memory if a peer sends a new key in each frame.
_MAX_UNKNOWN = 64
# 1990 and 2100, s since 1970.
_EARLIEST_S, _LATEST_S = 631_152_000, 4_102_444_800


class Decoder:
    """
    Decodes the payloads of one stream.

    ``details`` whether boxes, wheels, inputs and looks are decoded; may change between payloads.

    :param units: ``obb_extents`` and ``road_s_unit`` of this simulator.
    :param faults: to which bad actors and members, and unknown ones once, are added.
    """

    def __init__(self, units: Settings = DEFAULTS, faults: Faults | None = None) -> None:
        self.details = True
        self.faults = Faults() if faults is None else faults
        self._units = units
        # The generation of the last payload is tried first.
        self._order: tuple[str, ...] = (schema.V2, schema.V1)
        # The same object as in the frame before if they are equal.
        self._names: tuple[str, ...] = ()
        self._tags: tuple[tuple[str, ...], ...] = ()
        self._unknown: set[str] = set()
        self._n_payloads = 0

    def parse(self, payload: bytes | bytearray) -> Parsed | None:
        """Return the value of a payload, None if it is not strict JSON."""
        types = schema.FULL if self.details else schema.LEAN
        for generation in self._order:
            try:
                value: Any = types[generation].decode(payload)
            except json_text.NOT_TYPED:
                continue
            if generation == schema.V2 and value.frame.objects is value.frame.vehicles is None:
                continue
            if generation != self._order[0]:
                self._order = self._order[::-1]
            try:
                # Members that the types skip are not checked.
                if not payload.isascii():
                    payload.decode()
            except UnicodeDecodeError:
                return None
            return generation, value
        return _NOT_TYPED if json_text.is_strict(bytes(payload)) else None

    def frames(self, payload: bytes | bytearray, head: Head = NO_HEAD,
               parsed: Parsed | None = None) -> Iterator[Frame]:
        """
        Decode one payload, each frame when it is asked for.

        :param payload: JSON text, UTF-8.
        :param parsed: its value by :meth:`parse`, if that was called.
        :returns: yields one frame, or several of an array of frames; SI, REP-103 axes.
        :raises DecodeError: if it is not a frame.
        """
        if not payload:
            raise DecodeError('payload', 'nothing', 'a frame')
        generation, value = parsed or self.parse(payload) or _NOT_TYPED
        if generation:
            own = value.game_time, value.time, value.sample_count
            try:
                frame = self._flat(schema.V1, value.frame, own, head) if generation == schema.V1 \
                    else self._nested(value.frame.objects or (), value.frame.vehicles or (), own,
                                      head)
            except DecodeError:
                pass  # two actors have one name, or two wheels one id
            else:
                self._n_payloads += 1
                # The search takes as long as the decoding: at powers of two.
                if not self._n_payloads & (self._n_payloads - 1) \
                        and forms.has_other_keys(payload, generation):
                    self._note_unknown(msgspec.json.decode(payload), generation)
                yield self._dated(frame)
                return
        reader = forms.FormReader(schema.FULL if self.details else schema.LEAN, self.faults)
        for value, where, is_finite in forms.frame_values(payload):
            try:
                generation, own, actors = reader.read(value, where, is_finite)
                frame = self._dated(
                    self._nested(actors['state'], actors['vehicle'], own, head)
                    if generation == schema.V2
                    else self._flat(generation, actors['flat'], own, head))
            except DecodeError as error:
                if '[' not in where:
                    raise
                # The other frames of an array are not affected.
                self.faults.add(LOST, error)
            else:
                self._note_unknown(value, generation)
                yield frame

    def _note_unknown(self, value: dict[str, Any], generation: str) -> None:
        for path in forms.unknown_members(value, generation):
            if path not in self._unknown and len(self._unknown) < _MAX_UNKNOWN:
                self._unknown.add(path)
                self.faults.add(MEMBER, DecodeError(
                    path, 'an unknown member, which is ignored', 'none'))

    def _nested(self, objects: Sequence[Any], vehicles: Sequence[Any], own: tuple[Any, ...],
                head: Head) -> Frame:
        """Return a frame of v2: objects, then vehicles."""
        states = [*objects, *[vehicle.state for vehicle in vehicles]]
        owned = [state.oriented_bounding_box for state in states] if self.details else []
        numbers: list[Number] = []
        for state in states:
            odometry = state.odometry
            pose, v, w = odometry.pose, odometry.linear_velocity, odometry.angular_velocity
            p, q = pose.position, pose.orientation
            numbers += (p.x, p.y, p.z, q.x, q.y, q.z, q.w, v.x, v.y, v.z, w.x, w.y, w.z)
        for box in chain.from_iterable(owned):
            c, q, e, k = box.center, box.orientation, box.extents, box.scale
            numbers += (c.x, c.y, c.z, q.x, q.y, q.z, q.w, e.x, e.y, e.z, k.x, k.y, k.z)
        looks = [tuple([state.color for state in states]),
                 tuple([state.replay_class for state in states])] if self.details else [None, None]
        return self._frame(
            schema.V2, own, head, tuple([state.name for state in states]),
            schema.kinds_of(len(objects), len(vehicles)), tuple([state.tags for state in states]),
            numbers, owned, self._late_lanes(vehicles, len(objects)),
            self._late_wheels(vehicles, len(objects)) if self.details else None,
            np.full((len(states), 4), NAN) if self.details else None, *looks)

    def _flat(self, generation: str, actors: Sequence[Any], own: tuple[Any, ...],
              head: Head) -> Frame:
        """Return a frame of v0, v1 or v1t; actors with the tag ``vehicle`` are vehicles."""
        if generation == schema.V1 and (own[0] is None or math.isnan(own[0])):
            timed = [actor for actor in actors if actor.game_time is not None]
            if timed:
                # The time of the ego, else of the first of them.
                generation = schema.V1T
                first = next((each for each in timed if has_ego_tag(each.tags)), timed[0])
                own = first.game_time, own[1] if first.time is None else first.time, own[2]
        owned = [actor.oriented_bounding_box for actor in actors] if self.details else []
        numbers: list[Number] = []
        for actor in actors:
            numbers += actor.position
            numbers += actor.orientation
            numbers += actor.velocity
            numbers += actor.angular_velocity
        for box in chain.from_iterable(owned):
            numbers += box.center
            numbers += box.orientation
            numbers += box.extents
            numbers += box.scale
        tags = tuple([actor.tags for actor in actors])
        return self._frame(
            generation, own, head, tuple([actor.name for actor in actors]),
            np.array(list(map(schema.kind_of, tags)), np.uint8), tags, numbers, owned, NO_LANES,
            flat_wheels(actors) if self.details else None,
            rep103.to_rep103_inputs(json_text.rows_of([number for actor in actors for number in (
                actor.throttle_input, actor.brake_input, actor.wheel_input,
                actor.steering_direction)], 4)) if self.details else None)

    def _frame(self, generation: str, own: tuple[Any, ...], head: Head, names: tuple[str, ...],
               kinds: Kinds, tags: tuple[tuple[str, ...], ...], numbers: list[Number],
               owned: Sequence[Sequence[Any]], lanes: Lanes, wheels: Wheels | None,
               inputs: Floats | None, colors: tuple[str, ...] | None = None,
               replay_classes: tuple[str, ...] | None = None) -> Frame:
        if names == self._names:
            names = self._names
        elif len(set(names)) < len(names):
            raise DecodeError('names', 'one twice', 'each once in a frame')
        self._names = names
        self._tags = tags = self._tags if tags == self._tags else tags
        rows = rep103.to_rep103_bodies(json_text.rows_of(numbers, 13), len(names), self._units)
        boxes = Boxes(_owners(tuple(map(len, owned))),
                      tuple([box.name for box in chain.from_iterable(owned)]),
                      rows[len(names):]) if self.details else None
        game_time, time, sample_count = own
        frame = Frame(
            generation, head[0] if game_time is None or math.isnan(game_time) else game_time,
            head[1] if time is None else time,
            head[2] if sample_count is None else sample_count, names, kinds, tags,
            rows[:len(names)], lanes, boxes, wheels, inputs, colors=colors,
            replay_classes=replay_classes)
        frame.set_rows(rows)
        return frame

    def _late_lanes(self, vehicles: Sequence[Any], i_first: int) -> Lanes:
        """Return the lane states, whose columns are made when they are used."""
        states = [vehicle.control_state for vehicle in vehicles]
        actor = np.arange(i_first, i_first + len(states)) if all(states) else np.array(
            [i for i, lane in enumerate(states, i_first) if lane is not None], np.int64)
        actor.setflags(write=False)

        def read() -> Lanes:
            lanes = list(filter(None, states))
            rows = np.fromiter((number for lane in lanes for number in (
                lane.lane_change_left, lane.lane_change_right, lane.road_id, lane.section_id,
                lane.lane_id)), np.int32).reshape(-1, 5)
            return Lanes(actor, rows[:, :2].astype(np.bool_), rows[:, 2:].copy(),
                         rep103.to_rep103_road_s(json_text.rows_of(
                             [lane.s for lane in lanes], 1)[:, 0], self._units))

        return Lanes.late(read, actor=actor, road_names=NO_LANES.road_names) if len(actor) \
            else NO_LANES

    def _late_wheels(self, vehicles: Sequence[Any], i_first: int) -> Wheels:
        """Return wheels whose text, nearly half of a payload, is decoded when they are used."""
        text = b'[' + b','.join([vehicle.wheels for vehicle in vehicles]) + b']'

        def read() -> Wheels:
            try:
                return nested_wheels(schema.WHEELS.decode(text), i_first)
            except (*json_text.NOT_TYPED, DecodeError):
                # Not all of them are as usual.
                reader = forms.FormReader(schema.FULL, self.faults)
                return nested_wheels(reader.all_wheels(text), i_first)

        return Wheels.late(read)

    def _dated(self, frame: Frame) -> Frame:
        """Name a time that is not one of a simulator; one that is too late is unknown."""
        time = frame.time
        if not time or _EARLIEST_S <= time <= _LATEST_S:
            return frame
        expected = 'seconds since 1970, between 1990 and 2100'
        if _EARLIEST_S <= time // 1000 <= _LATEST_S:
            date = datetime.fromtimestamp(time // 1000, timezone.utc)
            expected = f'seconds since 1970; in ms it would be {date:%F %T} UTC'
        self.faults.add(IGNORED, DecodeError('time', str(time), expected))
        return frame if 0 <= time <= _LATEST_S else replace(frame, time=0)


# Most frames of a stream have the same actors: the array is shared, and therefore read-only.
@lru_cache(maxsize=16)
def _owners(counts: tuple[int, ...]) -> Rows:
    """Return the owner's row of each part, for owners with ``counts`` parts each."""
    return np.repeat(np.arange(len(counts)), counts)
