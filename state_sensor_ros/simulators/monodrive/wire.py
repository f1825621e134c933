# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""
The usual JSON of the generations v0, v1, v1t and v2 as msgspec types: keys and types.

Described in doc/protocol/frames.md. A member that is not declared is skipped, so that fewer needs
decode faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from types import GenericAlias
from typing import Annotated, cast, TypeAlias, Union

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.json import Decoder as JsonDecoder

from state_sensor_ros.simulators import Needs
from state_sensor_ros.simulators.json_values import (
    NAN,
    NO_QUADRUPLE,
    NO_TRIPLE,
    Number,
    Quadruple,
    Tags,
    Triple,
)

GENERATIONS = ('v2', 'v1', 'v1t', 'v0')
V2, V1, V1T, V0 = GENERATIONS

INT32_MIN, INT32_MAX = -2 ** 31, 2 ** 31 - 1
UINT32_MAX = 2 ** 32 - 1
INT64_MIN, INT64_MAX = -2 ** 63, 2 ** 63 - 1
WHEEL_MAX = 255

Int32 = Annotated[int, Meta(ge=INT32_MIN, le=INT32_MAX)]
Int64 = Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)]
Uint32 = Annotated[int, Meta(ge=0, le=UINT32_MAX)]
WheelId = Annotated[int, Meta(ge=0, le=WHEEL_MAX)]

# ``game_time`` s, ``time`` s since 1970 and ``sample_count`` of a packet or frame.
Head: TypeAlias = tuple[float, int, int]
# The same as members of a payload, None for those missing.
PayloadHead: TypeAlias = tuple[Number, int | None, int | None]


class Vector(Struct, gc=False, frozen=True):
    """A vector of v2."""

    x: Number
    y: Number
    z: Number


class Quaternion(Struct, gc=False, frozen=True):
    """A quaternion of v2."""

    w: Number
    x: Number
    y: Number
    z: Number


NO_VECTOR = Vector(NAN, NAN, NAN)
NO_QUATERNION = Quaternion(NAN, NAN, NAN, NAN)
ONES = Vector(1.0, 1.0, 1.0)


class Pose(Struct, gc=False, frozen=True):
    """Pose of an actor of v2, cm, world."""

    orientation: Quaternion
    position: Vector


class WheelPose(Struct, gc=False, frozen=True):
    """Pose of a wheel of v2, cm, in the frame of its vehicle."""

    orientation: Quaternion = NO_QUATERNION
    position: Vector = NO_VECTOR


class Odometry(Struct, gc=False, frozen=True):
    """Motion of an actor of v2, world, cm/s and rad/s."""

    pose: Pose
    linear_velocity: Vector = NO_VECTOR
    angular_velocity: Vector = NO_VECTOR


class Box(Struct, gc=False, frozen=True):
    """An oriented bounding box of v2, cm, world."""

    center: Vector
    # Raw when a whole payload is decoded, as are tags: see actor_table.py.
    extents: Vector | Raw
    orientation: Quaternion
    name: str = ''
    scale: Vector | Raw = ONES


class State(Struct, gc=False, frozen=True):
    """An object of v2 or the ``state`` of a vehicle."""

    name: str
    odometry: Odometry
    tags: Tags | Raw = ()
    oriented_bounding_box: tuple[Box, ...] = ()
    color: str = ''
    replay_class: str = ''


class Wheel(Struct, gc=False, frozen=True):
    """A wheel of v2, rad/s."""

    id: WheelId
    pose: WheelPose = WheelPose()
    speed: Number = None


class ControlState(Struct, gc=False, frozen=True):
    """Lane state of a vehicle of v2."""

    lane_change_left: bool
    lane_change_right: bool
    lane_id: Int32
    road_id: Int32
    section_id: Int32
    s: Number = None


class UnreadControlState(Struct, gc=False, frozen=True):
    """A lane state whose members are not needed."""


class Vehicle(Struct, gc=False, frozen=True):
    """A vehicle of v2."""

    state: State
    wheels: tuple[Wheel, ...] = ()
    control_state: ControlState | UnreadControlState | None = None


class Actors(Struct, gc=False, frozen=True):
    """The ``frame`` of v2."""

    objects: tuple[State, ...] = ()
    vehicles: tuple[Vehicle, ...] = ()


class FrameV2(Struct, gc=False, frozen=True):
    """A payload of v2."""

    frame: Actors
    game_time: Number = None
    time: Int64 | None = None
    sample_count: Uint32 | None = None


class FlatBox(Struct, gc=False, frozen=True):
    """An oriented bounding box of v1."""

    center: Triple
    extents: Triple
    orientation: Quadruple
    name: str = ''
    scale: Triple = (1.0, 1.0, 1.0)


class FlatWheel(Struct, gc=False, frozen=True):
    """A wheel entry of v1."""

    id: WheelId
    orientation: Quadruple = NO_QUADRUPLE


class FlatActor(Struct, gc=False, frozen=True):
    """An actor of v1 and v1t, and of v0 under the name that is its key."""

    name: str
    position: Triple
    orientation: Quadruple
    velocity: Triple = NO_TRIPLE
    angular_velocity: Triple = NO_TRIPLE
    tags: Tags = ()
    game_time: Number = None
    time: Int64 | None = None
    throttle_input: Number = None
    brake_input: Number = None
    wheel_input: Number = None
    steering_direction: Number = None
    wheel_speed: tuple[Number, ...] = ()
    wheels: tuple[FlatWheel, ...] = ()
    oriented_bounding_box: tuple[FlatBox, ...] = ()


class FrameV1(Struct, gc=False, frozen=True):
    """A payload of v1 and v1t."""

    frame: tuple[FlatActor, ...]
    game_time: Number = None
    time: Int64 | None = None
    sample_count: Uint32 | None = None


# One level of JSON, the values as text.
MEMBERS = JsonDecoder(dict[str, Raw])
MEMBERS_OR_ITEMS = JsonDecoder(dict[str, Raw] | list[Raw])
ITEMS = JsonDecoder(list[Raw] | None)

# A payload of v0: actors by name among the numbers of the whole frame.
FrameV0: TypeAlias = dict[str, FlatActor | int | float | bool | str | None]


@dataclass(frozen=True, slots=True)
class JsonDecoders:
    """Typed JSON decoders for one set of needs: of payloads and of single actors."""

    needs: Needs
    v2: JsonDecoder[FrameV2]
    v1: JsonDecoder[FrameV1]
    v0: JsonDecoder[FrameV0]
    state: JsonDecoder[State]
    vehicle: JsonDecoder[Vehicle]
    flat: JsonDecoder[FlatActor]


_LANE = cast('type', ControlState | None)
_UNREAD_LANE = cast('type', UnreadControlState | None)


# Each of the 32 sets of needs has its own types.
@lru_cache(maxsize=32)
def json_decoders(needs: Needs) -> JsonDecoders:
    """
    Build decoders that skip the parts that are not needed.

    :param needs: the parts to decode.
    """
    no_name = set() if needs.appearance else {'name'}
    flat_boxes = {'oriented_bounding_box': _several(_subset(FlatBox, no_name))} \
        if needs.boxes else {}
    no_state = set() if needs.boxes else {'oriented_bounding_box'}
    no_state |= set() if needs.appearance else {'color', 'replay_class'}
    no_flat = set() if needs.boxes else {'oriented_bounding_box'}
    no_flat |= set() if needs.wheels else {'wheel_speed', 'wheels'}
    no_flat |= set() if needs.inputs else {'throttle_input', 'brake_input', 'wheel_input',
                                           'steering_direction'}

    def state_and_vehicle(tags: type, size: type) -> tuple[type[Struct], type[Struct]]:
        box = _subset(Box, no_name, extents=size, scale=size)
        boxes = {'oriented_bounding_box': _several(box)} if needs.boxes else {}
        state = _subset(State, no_state, tags=tags, **boxes)
        return state, _subset(Vehicle, set() if needs.wheels else {'wheels'}, state=state,
                              control_state=_LANE if needs.lanes else _UNREAD_LANE)

    state, vehicle = state_and_vehicle(Raw, Raw)
    actors = _subset(Actors, set(), objects=_several(state), vehicles=_several(vehicle))
    state, vehicle = state_and_vehicle(cast('type', Tags), Vector)
    v2 = _subset(FrameV2, set(), frame=actors)
    flat = _subset(FlatActor, no_flat, **flat_boxes)
    v1 = _subset(FrameV1, set(), frame=_several(flat))
    v0_actor = _subset(FlatActor, no_flat | {'name', 'game_time', 'time'}, **flat_boxes)
    v0 = GenericAlias(dict, (str, Union[v0_actor, int, float, bool, str, None]))  # noqa: UP007
    return JsonDecoders(needs,
                        cast('JsonDecoder[FrameV2]', JsonDecoder(v2)),
                        cast('JsonDecoder[FrameV1]', JsonDecoder(v1)),
                        cast('JsonDecoder[FrameV0]', JsonDecoder(v0)),
                        cast('JsonDecoder[State]', JsonDecoder(state)),
                        cast('JsonDecoder[Vehicle]', JsonDecoder(vehicle)),
                        cast('JsonDecoder[FlatActor]', JsonDecoder(flat)))


def _several(item: type) -> GenericAlias:
    return GenericAlias(tuple, (item, ...))


def _subset(whole: type[Struct], without: set[str],
            **retyped: type | GenericAlias) -> type[Struct]:
    """Make a type with the members of ``whole`` except ``without``, some with another type."""
    members = [(field.name, retyped.get(field.name, field.type), field.default)
               for field in msgspec.structs.fields(whole) if field.name not in without]
    return msgspec.defstruct(
        whole.__name__,
        [member[:2] if member[2] is msgspec.NODEFAULT else member for member in members],
        gc=False, frozen=True)
