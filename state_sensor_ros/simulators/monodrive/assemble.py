# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Typed actors of one payload to a Frame; of names, tags, boxes and lanes only what changed.

Factors and signs are in rep103.py; here each member is put into its column.

All but lanes are compared as JSON text with those of the previous frame. Between a common prefix
and a common suffix lie the actors that changed; with ``b`` removed and ``d`` added::

    old texts   a  b  c        head 1, tail 1
    new texts   a  d  c
    decoded     A  D  C        A and C are the objects of the previous frame
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
import struct
from typing import Any, TypeVar

from msgspec import Raw
from msgspec.json import Decoder as JsonDecoder
import numpy as np

from state_sensor_ros.payloads import Needs
from state_sensor_ros.simulators import Boxes, DecodeError, Frame, has_ego_tag, Lanes, Units
from state_sensor_ros.simulators.frame_arrays import (
    are_lengths,
    Bools,
    common_ends,
    Floats,
    Ints,
    KIND_OBJECT,
    KIND_VEHICLE,
    Kinds,
    NO_LANES,
    Rows,
    spliced,
    to_rep103_bodies,
    to_rep103_boxes,
    to_rep103_inputs,
    to_rep103_kinematics,
    to_rep103_road_s,
)
from state_sensor_ros.simulators.json_values import as_rows, Number, packed_with_nulls, Tags
from state_sensor_ros.simulators.monodrive.wheels import read_flat_wheels, read_wheels
from state_sensor_ros.simulators.monodrive.wire import (
    Box,
    ControlState,
    FlatActor,
    FlatBox,
    Head,
    PayloadHead,
    State,
    UnreadControlState,
    Vector,
    Vehicle,
)

_TAGS = JsonDecoder(Tags)
_VECTOR = JsonDecoder(Vector)
_LANE, _LANE_ROW = struct.Struct('=2?3i'), np.dtype([('is_changing', '?', 2), ('ids', '=i4', 3)])


class ActorTable:
    """
    The actors of the last frame of a stream: names, tags, sizes of boxes, and lanes.

    An unchanged result is the same object as before, so that later comparisons take no time. One
    new actor among a thousand costs the decoding of one. Methods accept texts or decoded values.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._tag_texts: list[Raw | Tags] = []
        self._tags: tuple[Tags, ...] = ()
        self._extents: list[Raw | Vector] = []
        self._scales: list[Raw | Vector] = []
        self._sizes: Floats = np.zeros((0, 6))
        self.has_lengths = True
        self._packed_lanes = b''
        self._lane_columns: tuple[Bools, Ints] = NO_LANES.is_changing, NO_LANES.ids

    def names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return ``names`` as the objects of the previous frame if they are equal."""
        old = self._names
        if names != old:
            head, tail = common_ends(old, names)
            # Old strings carry their hash already, which the set below uses.
            names = spliced(old, head, names[head:len(names) - tail], tail)
            if len(set(names)) < len(names):
                raise DecodeError('names', 'one twice', 'each once in a frame')
            self._names = names
        return self._names

    def tags(self, texts: list[Raw | Tags]) -> tuple[Tags, ...]:
        old = self._tag_texts
        if texts != old:
            head, tail = common_ends(old, texts)
            new, end = texts[head:len(texts) - tail], len(old) - tail
            self._tags = spliced(self._tags, head, tuple(_decoded(new, _TAGS)), tail)
            old[head:end] = _kept(new)
        return self._tags

    def sizes(self, extents: list[Raw | Vector], scales: list[Raw | Vector]) -> Floats:
        """Return the extents and scales of all boxes."""
        # Returns (M, 6) float64, extents and scale xyz as sent; must not be written to.
        if extents != self._extents or scales != self._scales:
            head, tail = map(min, zip(common_ends(self._extents, extents),
                                      common_ends(self._scales, scales), strict=True))
            end, new_end = len(self._extents) - tail, len(extents) - tail
            extents, scales = extents[head:new_end], scales[head:new_end]
            both = zip(_decoded(extents, _VECTOR), _decoded(scales, _VECTOR), strict=True)
            rows = as_rows([number for e, k in both
                            for number in (e.x, e.y, e.z, k.x, k.y, k.z)], 6)
            self._sizes = np.concatenate((self._sizes[:head], rows, self._sizes[end:]))
            self._extents[head:end], self._scales[head:end] = _kept(extents), _kept(scales)
            self.has_lengths = are_lengths(self._sizes)
        return self._sizes

    def lane_columns(self, lanes: Sequence[ControlState]) -> tuple[Bools, Ints]:
        """Return the columns of L lane states that seldom change."""
        # Returns (L, 2) bool, whether changes to the left and right are under way; (L, 3) int32,
        # road, section and lane.
        # Bytes, as objects of one frame that stay in memory would keep that around them.
        packed = b''.join([_LANE.pack(
            lane.lane_change_left, lane.lane_change_right, lane.road_id, lane.section_id,
            lane.lane_id) for lane in lanes])
        if packed != self._packed_lanes:
            rows = np.frombuffer(packed, _LANE_ROW)
            self._packed_lanes = packed
            self._lane_columns = rows['is_changing'].copy(), rows['ids'].copy()
        return self._lane_columns


Item = TypeVar('Item')


def _decoded(texts: list[Raw | Item], decoder: JsonDecoder[Item]) -> list[Item]:
    return [decoder.decode(text) if isinstance(text, Raw) else text for text in texts]


def _kept(texts: list[Raw | Item]) -> list[Raw | Item]:
    # Copies: a Raw of the decoder keeps the whole payload in memory.
    return [text.copy() if isinstance(text, Raw) else text for text in texts]


VEHICLE_TAG = 'vehicle'
# A row: position xyz, orientation xyzw, velocity xyz, angular velocity xyz; and its first 7.
_BODY, _POSE = struct.Struct('13d'), struct.Struct('7d')


def frame_of_v2(objects: Sequence[State], vehicles: Sequence[Vehicle], head: Head, needs: Needs,
                units: Units, table: ActorTable) -> Frame:
    """Assemble a v2 frame: objects, then vehicles."""
    # needs: parts of the frame to fill; the others are None or NaN.
    states = [*objects, *[vehicle.state for vehicle in vehicles]]
    n_objects, n_actors = len(objects), len(objects) + len(vehicles)
    owned = [state.oriented_bounding_box for state in states] if needs.boxes else []
    boxes = list(chain.from_iterable(owned))
    try:
        rows = _rows_of(states, boxes, _BODY.pack_into, _POSE.pack_into)
    except struct.error:
        # There is a null.
        rows = _rows_of(states, boxes, packed_with_nulls(_BODY), packed_with_nulls(_POSE))
    if boxes:
        rows[n_actors:, 7:] = table.sizes([box.extents for box in boxes],
                                          [box.scale for box in boxes])
    bodies = to_rep103_bodies(rows, n_actors, units)
    frame = Frame(
        'v2', *head,
        table.names(tuple([state.name for state in states])),
        _kinds_of_v2(n_objects, len(vehicles)),
        table.tags([state.tags for state in states]),
        bodies[:n_actors],
        _lanes([vehicle.control_state for vehicle in vehicles], n_objects, needs, units, table),
        Boxes(_owners(tuple(map(len, owned))), _box_names(boxes, needs),
              bodies[n_actors:]) if needs.boxes else None,
        read_wheels(vehicles, n_objects) if needs.wheels else None,
        np.full((n_actors, 4), np.nan) if needs.inputs else None,
        colors=tuple([state.color for state in states]) if needs.appearance else None,
        replay_classes=tuple([state.replay_class for state in states])
        if needs.appearance else None)
    frame.set_rows(bodies, has_lengths=table.has_lengths)
    return frame


def _rows_of(states: list[State], boxes: list[Box], pack_body: Callable[..., None],
             pack_pose: Callable[..., None]) -> Floats:
    """Return (N + M, 13) float64, source units: N actors, then M boxes without their sizes."""
    buffer, offset = bytearray((len(states) + len(boxes)) * _BODY.size), 0
    for state in states:
        odometry = state.odometry
        pose, v, w = odometry.pose, odometry.linear_velocity, odometry.angular_velocity
        p, q = pose.position, pose.orientation
        pack_body(buffer, offset,
                  p.x, p.y, p.z, q.x, q.y, q.z, q.w, v.x, v.y, v.z, w.x, w.y, w.z)
        offset += _BODY.size
    for box in boxes:
        c, q = box.center, box.orientation
        pack_pose(buffer, offset, c.x, c.y, c.z, q.x, q.y, q.z, q.w)
        offset += _BODY.size
    return np.ndarray((len(states) + len(boxes), 13), np.float64, buffer)


def frame_of_flat(generation: str, names: tuple[str, ...], actors: Sequence[FlatActor],
                  head: Head, needs: Needs, units: Units, table: ActorTable) -> Frame:
    """Assemble a frame of v0, v1 or v1t; actors with the tag ``vehicle`` are vehicles."""
    # names: names of ``actors``; those of v0 have no member for it.
    # needs: parts of the frame to fill; the others are None or NaN.
    numbers: list[Number] = []
    for actor in actors:
        numbers += actor.position
        numbers += actor.orientation
        numbers += actor.velocity
        numbers += actor.angular_velocity
    tags = tuple([actor.tags for actor in actors])
    return Frame(
        generation, *head, table.names(names),
        np.array([kind_of(actor_tags) for actor_tags in tags], np.uint8), tags,
        to_rep103_kinematics(as_rows(numbers, 13)), NO_LANES,
        _flat_boxes(actors, needs, units) if needs.boxes else None,
        read_flat_wheels(actors) if needs.wheels else None,
        _inputs(actors) if needs.inputs else None)


@lru_cache(maxsize=4096)
def kind_of(tags: Tags) -> int:
    """Return the kind of an actor of v0 or v1, which do not separate objects and vehicles."""
    return KIND_VEHICLE if VEHICLE_TAG in map(str.lower, tags) else KIND_OBJECT


# Most frames of a stream have the same actors: the arrays are shared, and therefore read-only.
@lru_cache(maxsize=16)
def _kinds_of_v2(n_objects: int, n_vehicles: int) -> Kinds:
    kinds = np.repeat(np.array((KIND_OBJECT, KIND_VEHICLE), np.uint8), (n_objects, n_vehicles))
    kinds.setflags(write=False)
    return kinds


@lru_cache(maxsize=16)
def _rows_from(start: int, stop: int) -> Rows:
    rows = np.arange(start, stop)
    rows.setflags(write=False)
    return rows


@lru_cache(maxsize=16)
def _owners(counts: tuple[int, ...]) -> Rows:
    """Return the owner's row of each part, for owners with ``counts`` parts each."""
    rows = np.repeat(np.arange(len(counts)), counts)
    rows.setflags(write=False)
    return rows


def _lanes(control_states: list[ControlState | UnreadControlState | None], i_first: int,
           needs: Needs, units: Units, table: ActorTable) -> Lanes:
    """Collect lane states; without ``needs.lanes`` only the rows of the actors that have one."""
    n_lanes = len(control_states) - control_states.count(None)
    if not n_lanes:
        return NO_LANES
    is_complete = n_lanes == len(control_states)
    if is_complete and not needs.lanes:
        return _blank_lanes(i_first, n_lanes)
    actor = _rows_from(i_first, i_first + n_lanes) if is_complete else np.array(
        [i_actor for i_actor, lane in enumerate(control_states, i_first) if lane is not None])
    if not needs.lanes:
        return replace(_blank_lanes(0, n_lanes), actor=actor)
    lanes: Sequence[Any] = control_states if is_complete else [
        lane for lane in control_states if lane is not None]
    return Lanes(actor, *table.lane_columns(lanes),
                 to_rep103_road_s(np.array([lane.s for lane in lanes], np.float64), units))


@lru_cache(maxsize=16)
def _blank_lanes(i_first: int, n_lanes: int) -> Lanes:
    """Return undecoded lane states of ``n_lanes`` consecutive actors."""
    return Lanes(_rows_from(i_first, i_first + n_lanes), np.zeros((n_lanes, 2), np.bool_),
                 np.zeros((n_lanes, 3), np.int32), np.full(n_lanes, np.nan))


def _box_names(boxes: Sequence[Box | FlatBox], needs: Needs) -> tuple[str, ...]:
    return tuple([box.name for box in boxes]) if needs.appearance else ('',) * len(boxes)


def _flat_boxes(actors: Sequence[FlatActor], needs: Needs, units: Units) -> Boxes:
    boxes: list[FlatBox] = [box for actor in actors for box in actor.oriented_bounding_box]
    owners = _owners(tuple([len(actor.oriented_bounding_box) for actor in actors]))
    numbers: list[Number] = []
    for box in boxes:
        numbers += box.center
        numbers += box.orientation
        numbers += box.extents
        numbers += box.scale
    return Boxes(owners, _box_names(boxes, needs),
                 to_rep103_boxes(as_rows(numbers, 13), units))


def _inputs(actors: Sequence[FlatActor]) -> Floats:
    numbers: list[Number] = []
    for actor in actors:
        numbers += (actor.throttle_input, actor.brake_input, actor.wheel_input,
                    actor.steering_direction)
    return to_rep103_inputs(as_rows(numbers, 4))


def head_of(payload_head: PayloadHead, packet: Head) -> Head:
    """Fill missing head members of a payload from its packet header."""
    # payload_head: ``game_time``, ``time``, ``sample_count``; ``None`` or NaN when missing.
    game_time, time, sample_count = payload_head
    return (packet[0] if game_time is None or game_time != game_time else game_time,
            packet[1] if time is None else time,
            packet[2] if sample_count is None else sample_count)


def head_of_v1t(actors: Sequence[FlatActor]) -> tuple[str, Number, int | None]:
    """
    Return the time of a frame whose actors have it: that of the ego, else of the first of them.

    :returns: the generation, ``v1`` when no actor has a time either; ``game_time``; ``time``.
    """
    timed = [actor for actor in actors if actor.game_time is not None]
    if not timed:
        return 'v1', None, None
    egos = [actor for actor in timed if has_ego_tag(actor.tags)]
    source = (egos or timed)[0]
    return 'v1t', source.game_time, source.time
