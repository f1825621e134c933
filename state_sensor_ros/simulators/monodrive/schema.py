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
The JSON of the generations v0, v1, v1t and v2 as msgspec types: keys, types and defaults.

Described in doc/protocol/frames.md. There are two schemas: one of all members, and one without
boxes, wheels, inputs and looks, which msgspec then skips. An absent number is NaN.
"""

from __future__ import annotations

from functools import lru_cache
import math
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

from msgspec import Meta, Raw, Struct
from msgspec.json import Decoder as JsonDecoder
import numpy as np

from state_sensor_ros.frame import KIND_OBJECT, KIND_VEHICLE, Kinds

GENERATIONS = ('v2', 'v1', 'v1t', 'v0')
V2, V1, V1T, V0 = GENERATIONS
# Those that are written.
WRITTEN = (V2, V1)
_VEHICLE_TAG = 'vehicle'

# ``null`` is how the simulator writes NaN and infinity.
Number: TypeAlias = float | None
Triple: TypeAlias = tuple[Number, Number, Number]
Quadruple: TypeAlias = tuple[Number, Number, Number, Number]
Int32 = Annotated[int, Meta(ge=-2 ** 31, le=2 ** 31 - 1)]
Int64 = Annotated[int, Meta(ge=-2 ** 63, le=2 ** 63 - 1)]
Uint32 = Annotated[int, Meta(ge=0, le=2 ** 32 - 1)]
WheelId = Annotated[int, Meta(ge=0, le=255)]
NAN = math.nan
_Content = TypeVar('_Content')


class Vector(Struct, gc=False, frozen=True):
    x: Number
    y: Number
    z: Number


class Quaternion(Struct, gc=False, frozen=True):
    w: Number
    x: Number
    y: Number
    z: Number


NO_VECTOR, ONES = Vector(NAN, NAN, NAN), Vector(1.0, 1.0, 1.0)
NO_QUATERNION = Quaternion(NAN, NAN, NAN, NAN)


class Pose(Struct, gc=False, frozen=True):
    """Of an actor, cm, world."""

    orientation: Quaternion
    position: Vector


class WheelPose(Struct, gc=False, frozen=True):
    """Of a wheel, cm, in the frame of its vehicle."""

    orientation: Quaternion = NO_QUATERNION
    position: Vector = NO_VECTOR


class Odometry(Struct, gc=False, frozen=True):
    """World, cm/s and rad/s."""

    pose: Pose
    linear_velocity: Vector = NO_VECTOR
    angular_velocity: Vector = NO_VECTOR


class Box(Struct, gc=False, frozen=True):
    """World, cm."""

    center: Vector
    extents: Vector
    orientation: Quaternion
    name: str = ''
    scale: Vector = ONES


class LeanState(Struct, gc=False, frozen=True):
    """An object of v2, or the state of a vehicle."""

    name: str
    odometry: Odometry
    tags: tuple[str, ...] = ()


class State(LeanState, gc=False, frozen=True):
    oriented_bounding_box: tuple[Box, ...] = ()
    color: str = ''
    replay_class: str = ''


class Wheel(Struct, gc=False, frozen=True):
    """Of v2; rad/s."""

    id: WheelId
    pose: WheelPose = WheelPose()
    speed: Number = None


class ControlState(Struct, gc=False, frozen=True):
    lane_change_left: bool
    lane_change_right: bool
    lane_id: Int32
    road_id: Int32
    section_id: Int32
    s: Number = None


class LeanVehicle(Struct, gc=False, frozen=True):
    state: LeanState
    control_state: ControlState | None = None


class Vehicle(LeanVehicle, gc=False, frozen=True):
    state: State
    wheels: Raw = Raw(b'[]')  # of Wheel: they are decoded when they are asked for


class LeanActors(Struct, gc=False, frozen=True):
    """The member ``frame`` of v2; one with neither is no v2 frame."""

    objects: tuple[LeanState, ...] | None = None
    vehicles: tuple[LeanVehicle, ...] | None = None


class Actors(LeanActors, gc=False, frozen=True):
    objects: tuple[State, ...] | None = None
    vehicles: tuple[Vehicle, ...] | None = None


class FlatBox(Struct, gc=False, frozen=True):
    center: Triple
    extents: Triple
    orientation: Quadruple
    name: str = ''
    scale: Triple = (1.0, 1.0, 1.0)


class FlatWheel(Struct, gc=False, frozen=True):
    id: WheelId
    orientation: Quadruple = (NAN,) * 4


class LeanFlat(Struct, gc=False, frozen=True):
    """An actor of v0, whose name is its key there, v1 or v1t, which has the times."""

    name: str
    position: Triple
    orientation: Quadruple
    velocity: Triple = (NAN,) * 3
    angular_velocity: Triple = (NAN,) * 3
    tags: tuple[str, ...] = ()
    game_time: Number = None
    time: Int64 | None = None


class Flat(LeanFlat, gc=False, frozen=True):
    throttle_input: Number = None
    brake_input: Number = None
    wheel_input: Number = None
    steering_direction: Number = None
    wheel_speed: tuple[Number, ...] = ()
    wheels: tuple[FlatWheel, ...] = ()
    oriented_bounding_box: tuple[FlatBox, ...] = ()


class Payload(Struct, Generic[_Content], gc=False, frozen=True):
    frame: _Content
    game_time: Number = None
    time: Int64 | None = None
    sample_count: Uint32 | None = None


@lru_cache(maxsize=4096)
def kind_of(tags: tuple[str, ...]) -> int:
    """Return the kind of an actor of v0 or v1, which do not separate objects and vehicles."""
    return KIND_VEHICLE if _VEHICLE_TAG in map(str.lower, tags) else KIND_OBJECT


# Most frames of a stream have the same actors: the array is shared, and therefore read-only.
@lru_cache(maxsize=16)
def kinds_of(n_objects: int, n_vehicles: int) -> Kinds:
    """Return the kinds of the actors of v2."""
    return np.repeat(np.array((KIND_OBJECT, KIND_VEHICLE), np.uint8), (n_objects, n_vehicles))


WHEELS = JsonDecoder(tuple[tuple[Wheel, ...], ...])  # of all vehicles


# Decoders of payloads, v0 apart, and types of actors.
FULL: dict[str, Any] = {
    V2: JsonDecoder(Payload[Actors]), V1: JsonDecoder(Payload[tuple[Flat, ...]]),
    'state': State, 'vehicle': Vehicle, 'flat': Flat}
LEAN: dict[str, Any] = {
    V2: JsonDecoder(Payload[LeanActors]), V1: JsonDecoder(Payload[tuple[LeanFlat, ...]]),
    'state': LeanState, 'vehicle': LeanVehicle, 'flat': LeanFlat}
