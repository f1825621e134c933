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

Described in doc/protocol/frames.md. :class:`TypedReader` decodes with the types for a set of
needs, and notes each member that no type has, which is skipped from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import lru_cache
import re
from types import GenericAlias, UnionType
from typing import Annotated, Any, get_args, get_origin, TypeAlias, Union

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.json import Decoder as JsonDecoder

from state_sensor_ros.payloads import Needs
from state_sensor_ros.simulators.json_values import (
    NAN,
    NO_QUADRUPLE,
    NO_TRIPLE,
    Number,
    Quadruple,
    shortened,
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
    # Raw when a whole payload is decoded, as are tags: see ActorTable in assemble.py.
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

    # A frame with neither of them is no v2 frame.
    objects: tuple[State, ...] | None = None
    vehicles: tuple[Vehicle, ...] | None = None


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


class NamelessActor(Struct, gc=False, frozen=True):
    """An actor of v0, whose name is its key, and what one of v1 and v1t has, too."""

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


class FlatActor(NamelessActor, gc=False, frozen=True, kw_only=True):
    """An actor of v1 and v1t."""

    name: str


class FrameV1(Struct, gc=False, frozen=True):
    """A payload of v1 and v1t."""

    frame: tuple[FlatActor, ...]
    game_time: Number = None
    time: Int64 | None = None
    sample_count: Uint32 | None = None


# One level of JSON, the values as text.
MEMBERS = JsonDecoder(dict[str, Raw])

# Members that are kept as text for the actor table, and those that only one need has.
_TABLED = frozenset(('State.tags', 'Box.extents', 'Box.scale'))
_UNNEEDED: Mapping[str, tuple[str, ...]] = {
    'appearance': ('Box.name', 'FlatBox.name', 'State.color', 'State.replay_class'),
    'boxes': ('State.oriented_bounding_box', 'FlatActor.oriented_bounding_box'),
    'wheels': ('Vehicle.wheels', 'FlatActor.wheels', 'FlatActor.wheel_speed'),
    'inputs': ('FlatActor.throttle_input', 'FlatActor.brake_input', 'FlatActor.wheel_input',
               'FlatActor.steering_direction')}
# Bounds the memory if a peer sends a new key in each frame.
MAX_UNKNOWN_MEMBERS = 64
_UNKNOWN = re.compile(r'Object contains unknown field `(.*?)`(?: - at `\$(.*)`)?', re.DOTALL)
_INDEX = re.compile(r'\[\d+\]')

# An unknown member: key path of its object, with [] for any index, and its name.
_Member: TypeAlias = tuple[str, str]


class _Types:
    """
    Types for a set of needs that have some unknown members, too.

    Members that are not needed are left out, and skipped as all that a type without them does not
    have: the others refuse unknown members.
    """

    def __init__(self, needs: Needs, members: Set[_Member], is_open: bool) -> None:
        self._skipped = {name for need, names in _UNNEEDED.items() if not getattr(needs, need)
                         for name in names}
        self._members, self._is_open, self._has_lanes = members, is_open, needs.lanes

    def of(self, kind: type[Struct], path: str, texts: Set[str] = frozenset()) -> type[Struct]:
        members: list[Any] = []
        others = [name for at, name in self._members if at == path]
        is_open = self._is_open or not all(map(_is_declarable, others))
        for field in msgspec.structs.fields(kind):
            name = f'{kind.__name__.replace("Nameless", "Flat")}.{field.name}'
            if name in self._skipped:
                is_open = True
                continue
            annotation = Raw if name in texts else self._of(
                field.type, f'{path}.{field.name}'.lstrip('.'), texts)
            members.append((field.name, annotation) if field.default is msgspec.NODEFAULT
                           else (field.name, annotation, field.default))
        renamed = {} if is_open else {f'other_{i}': name for i, name in enumerate(others)}
        return msgspec.defstruct(
            kind.__name__, [*members, *[(name, Raw, Raw(b'')) for name in renamed]],
            rename=renamed, forbid_unknown_fields=not is_open, gc=False, frozen=True,
            kw_only=True)

    def _of(self, annotation: Any, path: str, texts: Set[str]) -> Any:  # noqa: ANN401
        if annotation is not UnreadControlState and isinstance(annotation, type) \
                and issubclass(annotation, Struct):
            return self.of(annotation, path, texts)
        parts = get_args(annotation)
        if get_origin(annotation) in (Union, UnionType):
            lane = UnreadControlState if self._has_lanes else ControlState
            known = [part for part in parts if part not in (Raw, lane)]
            return Union[tuple(self._of(part, path, texts) for part in known)]  # noqa: UP007
        if parts and parts[-1] is ... and isinstance(parts[0], type):
            return GenericAlias(tuple, (self._of(parts[0], f'{path}[]', texts), ...))
        return annotation


def _is_declarable(name: str) -> bool:
    return name.isprintable() and not {'"', '\\'} & set(name)


# Type and key path of each kind; the actors of v0 have their names as keys.
_KINDS: Mapping[str, tuple[type[Struct], str]] = {
    'v2': (FrameV2, ''), 'v1': (FrameV1, ''), 'state': (State, 'frame.objects[]'),
    'vehicle': (Vehicle, 'frame.vehicles[]'), 'flat': (FlatActor, 'frame[]')}


# Types of the 32 sets of needs, and those of streams with unknown members.
@lru_cache(maxsize=64)
def _decoders(needs: Needs, members: frozenset[_Member],
              is_open: bool) -> dict[str, JsonDecoder[Any]]:
    types = _Types(needs, members, is_open)
    decoders: dict[str, JsonDecoder[Any]] = {
        kind: JsonDecoder(types.of(declared, path, _TABLED if kind == 'v2' else frozenset()))
        for kind, (declared, path) in _KINDS.items()}
    actor = types.of(NamelessActor, '<actor>')
    decoders['v0'] = JsonDecoder(GenericAlias(dict, (
        str, Union[actor, int, float, bool, str, None])))  # noqa: UP007
    return decoders


def _paths(members: Set[_Member]) -> frozenset[str]:
    return frozenset(f'{path}.{shortened(name)}'.lstrip('.') for path, name in members)


class TypedReader:
    """Decode payloads and single actors of a stream with the types for a set of needs."""

    def __init__(self, needs: Needs) -> None:
        self._members: frozenset[_Member] = frozenset()
        self.unknown_members: frozenset[str] = frozenset()
        self.needs = needs
        self.decoders = self._decoders()

    def use(self, needs: Needs) -> None:
        """Decode other parts from now on."""
        self.needs = needs
        self.decoders = self._decoders()

    def _decoders(self) -> dict[str, JsonDecoder[Any]]:
        return _decoders(self.needs, self._members, self._is_full(self._members))

    @staticmethod
    def _is_full(members: Set[_Member]) -> bool:
        return len(members) >= MAX_UNKNOWN_MEMBERS

    def read(self, kind: str, text: bytes | bytearray | memoryview | Raw) -> Any:  # noqa: ANN401
        """Decode a text, and note the unknown members in it."""
        # kind: generation of a payload, or ``state``, ``vehicle`` or ``flat`` for an actor.
        try:
            return self.decoders[kind].decode(text)
        except msgspec.ValidationError as error:
            members = {self._refused(kind, text, error)}
        while True:
            found = self._members | members
            try:
                value = _decoders(self.needs, found, self._is_full(found))[kind].decode(text)
            except msgspec.ValidationError as error:
                members.add(self._refused(kind, text, error))
                if members <= found:
                    raise
            else:
                self.note(members)
                return value

    @property
    def known(self) -> frozenset[_Member]:
        """Return the unknown members that were noted; may be set to those of before."""
        return self._members

    @known.setter
    def known(self, members: frozenset[_Member]) -> None:
        if members is not self._members:
            self._members = members
            self.unknown_members = _paths(members)
            self.decoders = self._decoders()

    def note(self, members: Set[_Member]) -> None:
        """Add unknown members, as long as there are few."""
        new = members - self._members
        if new and not self._is_full(self._members):
            self.known = self._members | new

    def _refused(self, kind: str, text: bytes | bytearray | memoryview | Raw,
                 error: msgspec.ValidationError) -> _Member:
        """Return the unknown member because of which a text was refused."""
        found = _UNKNOWN.fullmatch(str(error))
        if found is None:
            raise error
        name, path = found[1], _INDEX.sub('[]', found[2] or '').replace('[...]', '<actor>')
        if kind in ('v2', 'v1') and not path and 'frame' not in MEMBERS.decode(text):
            raise error
        outer = _KINDS[kind][1] if kind in _KINDS else ''
        return f'{outer}{path}'.lstrip('.'), name
