# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
One measurement, protobuf or a file of a dataset: its numbers and typed members.

The numbers keep CARLA's units and axes (doc/protocol/carla.md#measurements). Both formats of a
measurement have the same attribute names, so one extraction serves both.

In a file, members equal to their default are absent, and unknown members may be present;
spellings and the rules of the conversion: doc/protocol/carla.md#dataset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
import math
from types import GenericAlias
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from google.protobuf.message import Message
import msgspec

from state_sensor_ros.simulators import DecodeError, DROPPED, DUPLICATE, Fault
from state_sensor_ros.simulators.carla.carla_data import (
    AGENT_CLASSES,
    CLASS_PEDESTRIAN,
    CLASS_PLAYER,
    CLASS_TRAFFIC_LIGHT,
    CLASS_VEHICLE,
    LIGHT_STATES,
)
from state_sensor_ros.simulators.carla.carla_schema import fields_of, members_of
from state_sensor_ros.simulators.json_values import parse_payload, text_of, to_list, to_object

# Floats that are not JSON numbers are written as strings by the conversion; null: unknown.
Number: TypeAlias = float | Literal['NaN', 'Infinity', '-Infinity'] | None
# 64-bit integers are strings of digits in this conversion, smaller ones are numbers.
Count: TypeAlias = (Annotated[int, msgspec.Meta(ge=0)]
                    | Annotated[str, msgspec.Meta(pattern='^[0-9]{1,20}$')])
# A protobuf message or a struct of a file; their attributes have the same names.
Tree: TypeAlias = Any
# Type of a value in a file, and the value of an absent member, by type of the schema.
_VALUES: Final[dict[str, tuple[Any, object]]] = {
    'float': (Number, 0.0), 'bool': (bool, False),
    'fixed32': (Annotated[int, msgspec.Meta(ge=0, lt=2 ** 32)], 0),
    'uint32': (Count, 0), 'uint64': (Count, 0),
    'TrafficLightState': (Literal['GREEN', 'YELLOW', 'RED', 0, 1, 2], 'GREEN')}
# An absent member of these names is None; another message is one of zeros.
_OPTIONAL: Final = frozenset((
    'transform', 'bounding_box', 'box_extent', 'player_measurements', *AGENT_CLASSES[1:]))
# An unknown member causes the tolerant parse.
_OPTIONS: Final[dict[str, Any]] = {'forbid_unknown_fields': True, 'gc': False, 'frozen': True}


@cache
def _part(message: str) -> type[msgspec.Struct]:
    return msgspec.defstruct(message, _members(message), rename='camel', **_OPTIONS)


def _members(message: str) -> list[tuple[str, Any, Any]]:
    members: list[tuple[str, Any, Any]] = []
    for name, type_name, is_repeated in fields_of(message):
        if type_name in _VALUES:
            members.append((name, *_VALUES[type_name]))
        elif is_repeated:
            members.append((name, GenericAlias(tuple, (_part(type_name), ...)), ()))
        elif name in _OPTIONAL and message != 'BoundingBox':
            members.append((name, _part(type_name) | None, None))
        else:
            members.append((name, _part(type_name), _part(type_name)()))
    return members


# Members that the collector of the dataset adds to the measurement, without the arrays.
COMMAND_MEMBERS: Final = (
    'steer', 'throttle', 'brake', 'hand_brake', 'reverse', 'steer_noise', 'throttle_noise',
    'brake_noise', 'directions', 'stop_pedestrian', 'stop_vehicle', 'stop_traffic_lights')
_SWITCHES: Final = ('hand_brake', 'reverse')
_ARRAY_MEMBERS: Final = ('waypoints', 'waypoints_world', 'route', 'fov_list')
# A whole file: the measurement and the members of the collector. Of the latter, None or an empty
# Raw is a member that is not in the file.
_MeasurementFile: Final = msgspec.defstruct(
    'MeasurementFile', [
        *_members('Measurements'),
        *((name, bool | None if name in _SWITCHES else Number, None) for name in COMMAND_MEMBERS),
        *((name, msgspec.Raw, msgspec.Raw()) for name in _ARRAY_MEMBERS)],
    rename={name: usual for name, (usual, _) in members_of('Measurements').items()}, **_OPTIONS)
_Type = TypeVar('_Type')
_DECODER: Final = msgspec.json.Decoder(_MeasurementFile)
_members_of = cache(members_of)


def to_float(number: Number) -> float:
    """Return a JSON number or its string as a float, NaN for ``None``."""
    # number: number of a parsed file; strings are NaN, Infinity and -Infinity.
    return math.nan if number is None else float(number)


@dataclass(frozen=True, slots=True)
class Parsed:
    file: Tree  # the members with a type, its attributes are those of a protobuf message
    other_members: tuple[tuple[str, str], ...]  # name and JSON text of the others at the top level
    bad_actors: tuple[DecodeError, ...] = ()  # errors of the actors that were dropped
    # Members inside the measurement that the protocol does not have.
    unknown: frozenset[str] = frozenset()


def parse_measurement_file(payload: bytes | bytearray | memoryview) -> Parsed:
    """Parse one file of the dataset. Agents that are not valid are dropped."""
    # payload: JSON text in UTF-8.
    try:
        file = _DECODER.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # Snake case, unknown members and invalid agents: rare, and this takes five times as long.
        return _parse_tolerantly(payload)
    arrays = ((name, bytes(getattr(file, name))) for name in _ARRAY_MEMBERS)
    return Parsed(file, tuple((name, _compact(text)) for name, text in arrays if text))


def _compact(text: bytes) -> str:
    return msgspec.json.format(text, indent=-1).decode('utf-8', 'replace')


def _parse_tolerantly(payload: bytes | bytearray | memoryview) -> Parsed:
    tree = to_object(parse_payload(payload), 'payload')
    unknown: set[str] = set()
    members = _members_of('Measurements')
    measurement = {members[name][0]: value for name, value in tree.items() if name in members}
    bad_actors: list[DecodeError] = []
    player = _canonical(measurement.pop('playerMeasurements', None), 'PlayerMeasurements', unknown)
    agents = [(f'$.nonPlayerAgents[{i}]', _canonical(entry, 'Agent', unknown)) for i, entry
              in enumerate(to_list(measurement.pop('nonPlayerAgents', None), '$.nonPlayerAgents'))]
    commands = {name: tree[name] for name in COMMAND_MEMBERS if name in tree}
    players = [] if player is None else [('$.playerMeasurements', player)]
    file = msgspec.structs.replace(
        _converted({**measurement, **commands}, _MeasurementFile, '$'),
        player_measurements=next(
            _valid_entries(players, _part('PlayerMeasurements'), bad_actors), None),
        non_player_agents=tuple(_valid_entries(agents, _part('Agent'), bad_actors)))
    return Parsed(file, _other_members(tree, members), tuple(bad_actors), frozenset(unknown))


def _other_members(tree: Mapping[str, object],
                   members: Mapping[str, tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, text_of(value)) for name, value in tree.items()
                 if name not in members and name not in COMMAND_MEMBERS)


def _valid_entries(entries: Iterable[tuple[str, object]], type_: type[_Type],
                   errors: list[DecodeError]) -> Iterator[_Type]:
    """Yield the converted entries, given with key paths; add errors to ``errors``."""
    for path, entry in entries:
        try:
            yield _converted(entry, type_, path)
        except DecodeError as error:
            errors.append(error)


def _canonical(value: object, message: str, unknown: set[str]) -> object:
    """Rename members to lowerCamelCase, and leave out those that no type declares."""
    if not isinstance(value, dict):
        return value
    members = _members_of(message)
    canonical = {}
    for name, item in value.items():
        if name not in members:
            unknown.add(f'{message}.{name}')
            continue
        usual, inner = members[name]
        canonical[usual] = _canonical(item, inner, unknown) if inner else item
    return canonical


# Prefix of msgspec's message for a string that is neither a number nor the name of a state.
_NOT_LITERAL: Final = 'Invalid enum value '
_LIGHT_LITERALS: Final = 'GREEN, YELLOW or RED'
# An error shows at most this many characters of a value.
_MAX_SHOWN: Final = 60


def _converted(value: object, type_: type[_Type], path: str) -> _Type:
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        text, _, below = str(error).partition(' - at `$')
        expected, _, found = text.removeprefix('Expected ').partition(', got ')
        if text.startswith(_NOT_LITERAL):
            expected = _LIGHT_LITERALS if below.endswith('state`') else 'a number'
            found = text.removeprefix(_NOT_LITERAL)
        if len(found) > _MAX_SHOWN:
            found = found[:_MAX_SHOWN] + '…'
        raise DecodeError(path + below.rstrip('`'), found or 'another value', expected) from error
    except UnicodeEncodeError as error:
        raise DecodeError(path, ascii(error.object[error.start:error.end]),
                          'Unicode text') from error


# The source member of a box; the older one, of 0.8.0 and 0.8.1, has no transform.
BOX_NAME, OLD_BOX_NAME = 'bounding_box', 'box_extent'

# Half sizes of agents are in cm in 0.8.0, in m in 0.8.1, and no message has the version. In cm
# the height of a child is above this, in m the length of a truck below.
_GREATEST_HALF_SIZE_M: Final = 15.0
# Speed limits are in km/h in 0.8.0, which has signs of these, and in m/s later: 25.0 for 90 km/h,
# 36.1 for 130. None of these is a sign in m/s: 30 m/s are 108 km/h.
_LIMITS_KPH: Final = (30.0, 40.0, 50.0, 60.0, 90.0, 100.0, 120.0, 130.0)
_KPH_PER_MPS: Final = 3.6
_MOVERS: Final = frozenset((CLASS_VEHICLE, CLASS_PEDESTRIAN))
# Index of a state, which is a name in JSON and a number in protobuf.
_LIGHTS: Final[dict[str | int, int]] = {
    **{name: i for i, name in enumerate(LIGHT_STATES)}, **{i: i for i in range(len(LIGHT_STATES))}}

# Classes of agents by their members.
_CLASSES: Final = {name: class_ for class_, name in enumerate(AGENT_CLASSES)
                   if class_ != CLASS_PLAYER}
# Id, class, and the message of that class.
AgentBody: TypeAlias = tuple[int, int, Tree]
Agents: TypeAlias = Iterator[AgentBody | None]


def agents_of_message(agents: Iterable[Tree]) -> Agents:
    """Yield the agents of a protobuf message, ``None`` for one of an unknown class."""
    # agents: the entries of ``non_player_agents``.
    for agent in agents:
        # The most common class first: HasField takes half as long as WhichOneof.
        if agent.HasField('vehicle'):
            yield agent.id, CLASS_VEHICLE, agent.vehicle
            continue
        name = agent.WhichOneof('agent')
        yield None if name is None else (agent.id, AGENT_CLASSES.index(name), getattr(agent, name))


def agents_of_file(agents: Iterable[Tree]) -> Agents:
    """Yield the agents of a file as :func:`agents_of_message` does."""
    for agent in agents:
        for name, class_ in _CLASSES.items():
            if (body := getattr(agent, name)) is not None:
                yield agent.id, class_, body
                break
        else:
            yield None


@dataclass(slots=True)
class ActorNumbers:
    """Numbers of the actors, in CARLA's units and axes, as flat lists in the order of actors."""

    ids: list[int] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    # 7 for each actor: x y z m, roll pitch yaw deg, forward speed m/s
    poses: list[Any] = field(default_factory=list)
    # 9 for each box: x y z m, roll pitch yaw deg relative to the owner, half sizes xyz m
    boxes: list[Any] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    box_names: list[str] = field(default_factory=list)
    # row of the actor, and its traffic light state or speed limit
    lights: list[tuple[int, int]] = field(default_factory=list)
    limits: list[tuple[int, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def collect(player: Tree | None, agents: Agents, *,
            with_boxes: bool) -> ActorNumbers:
    """Extract the numbers of the actors of a measurement, the player first."""
    # player: its playerMeasurements, ``None`` if it has none.
    numbers = ActorNumbers()
    if player is not None:
        _add_player(numbers, player, with_boxes)
    _add_agents(numbers, agents, with_boxes)
    # The older box of the player is that of 0.8.0 and 0.8.1.
    if player is not None and numbers.limits and _has(player, OLD_BOX_NAME):
        numbers.limits = [(row, limit / _KPH_PER_MPS if limit in _LIMITS_KPH else limit)
                          for row, limit in numbers.limits]
    return numbers


def _add_player(numbers: ActorNumbers, player: Tree, with_boxes: bool) -> None:
    if not _add(numbers, 0, CLASS_PLAYER, player, player.forward_speed):
        numbers.faults.append(_dropped('playerMeasurements.transform', 'an object'))
    elif with_boxes:
        _add_box(numbers, player, is_in_cm=False)


def _dropped(where: str, expected: str) -> Fault:
    return Fault(DROPPED, DecodeError(where, 'nothing', expected))


def _has(tree: Tree, name: str) -> bool:
    if isinstance(tree, Message):
        return bool(tree.HasField(name))
    return getattr(tree, name) is not None


def _add_agents(numbers: ActorNumbers, agents: Agents, with_boxes: bool) -> None:
    seen: set[tuple[int, int]] = set()
    for i, agent in enumerate(agents):
        if agent is None:
            numbers.faults.append(_dropped(f'nonPlayerAgents[{i}]', ', '.join(AGENT_CLASSES[1:])))
            continue
        id_, class_, body = agent
        is_mover = class_ in _MOVERS
        if (id_, class_) in seen:
            numbers.faults.append(Fault(DUPLICATE, DecodeError(
                f'nonPlayerAgents[{i}].id', f'another {AGENT_CLASSES[class_]} {id_}',
                'each id once')))
        elif class_ == CLASS_TRAFFIC_LIGHT and body.state not in _LIGHTS:
            numbers.faults.append(Fault(DROPPED, DecodeError(
                f'nonPlayerAgents[{i}].trafficLight.state', str(body.state),
                ', '.join(LIGHT_STATES))))
        elif not _add(numbers, id_, class_, body, body.forward_speed if is_mover else math.nan):
            numbers.faults.append(_dropped(
                f'nonPlayerAgents[{i}].{AGENT_CLASSES[class_]}.transform', 'an object'))
        else:
            seen.add((id_, class_))
            if is_mover:
                if with_boxes:
                    _add_box(numbers, body)
            elif class_ == CLASS_TRAFFIC_LIGHT:
                numbers.lights.append((len(numbers.ids) - 1, _LIGHTS[body.state]))
            else:
                numbers.limits.append((len(numbers.ids) - 1, to_float(body.speed_limit)))


# The two functions below and the loop above take more than half of the time of a frame
# (bench/carla_cost.py). An absent message reads as zeros: only then its presence is checked.

def _add(numbers: ActorNumbers, id_: int, class_: int, body: Tree, speed: Number) -> bool:
    transform = body.transform
    if transform is None:
        return False
    location, rotation = transform.location, transform.rotation
    x, y, z = location.x, location.y, location.z
    if not (x or y or z) and not _has(body, 'transform'):
        return False
    numbers.ids.append(id_)
    numbers.classes.append(class_)
    numbers.poses += (x, y, z, rotation.roll, rotation.pitch, rotation.yaw, speed)
    return True


def _add_box(numbers: ActorNumbers, body: Tree, *, is_in_cm: bool | None = None) -> None:
    """Add the box of the actor added last, if it has one."""
    # is_in_cm: the unit of a box of 0.8.0 and 0.8.1, None for that of its size.
    box = body.bounding_box
    if box is not None:
        at, extent = box.transform, box.extent
        x, y, z = extent.x, extent.y, extent.z
        if x or y or z or _has(body, 'bounding_box'):
            center, turned = at.location, at.rotation
            numbers.owners.append(len(numbers.ids) - 1)
            numbers.box_names.append(BOX_NAME)
            numbers.boxes += (center.x, center.y, center.z,
                              turned.roll, turned.pitch, turned.yaw, x, y, z)
            return
    if _has(body, 'box_extent'):
        half_sizes = [to_float(half_size) for half_size in (
            body.box_extent.x, body.box_extent.y, body.box_extent.z)]
        if is_in_cm is None:
            is_in_cm = any(half_size > _GREATEST_HALF_SIZE_M for half_size in half_sizes)
        if is_in_cm:
            half_sizes = [half_size / 100.0 for half_size in half_sizes]
        numbers.owners.append(len(numbers.ids) - 1)
        numbers.box_names.append(OLD_BOX_NAME)
        numbers.boxes += (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, *half_sizes)
