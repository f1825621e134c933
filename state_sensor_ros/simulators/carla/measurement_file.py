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
Parse a measurement file of the dataset, JSON text, to typed members.

Members equal to their default are absent, and unknown members may be present; spellings and the
rules of the conversion: doc/protocol/carla.md#dataset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
import json
import math
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import msgspec

from state_sensor_ros.emulator.carla_server.carla_schema import members_of
from state_sensor_ros.simulators import DecodeError
from state_sensor_ros.simulators.json_text import parse_payload
from state_sensor_ros.simulators.json_values import to_list, to_object

# Floats that are not JSON numbers are written as strings by the conversion; null: unknown.
Number: TypeAlias = float | Literal['NaN', 'Infinity', '-Infinity'] | None
# 64-bit integers are strings of digits in this conversion, smaller ones are numbers.
Count: TypeAlias = (Annotated[int, msgspec.Meta(ge=0)]
                    | Annotated[str, msgspec.Meta(pattern='^[0-9]{1,20}$')])
_UINT32_MAX: Final = 2 ** 32 - 1


class _Part(msgspec.Struct, rename='camel', forbid_unknown_fields=True, gc=False, frozen=True):
    """A message in the measurement; an unknown member in it causes the tolerant parse."""


class Vector3D(_Part, frozen=True):
    """In CARLA's axes: m, or m/s2 for an acceleration."""

    x: Number = 0.0
    y: Number = 0.0
    z: Number = 0.0


class Rotation3D(_Part, frozen=True):
    """Degrees of the engine's rotator (doc/protocol/carla.md#rotators)."""

    pitch: Number = 0.0
    yaw: Number = 0.0
    roll: Number = 0.0


_NOWHERE: Final = Vector3D()
_UPRIGHT: Final = Rotation3D()


class Transform(_Part, frozen=True):
    """Position and orientation; the member ``orientation``, a deprecated direction, is unused."""

    location: Vector3D = _NOWHERE
    rotation: Rotation3D = _UPRIGHT
    orientation: Vector3D = _NOWHERE


_IDENTITY: Final = Transform()


class BoundingBox(_Part, frozen=True):
    """``extent`` half sizes, m; ``transform`` relative to the owner."""

    transform: Transform = _IDENTITY
    extent: Vector3D = _NOWHERE


class Control(_Part, frozen=True):
    """A command to a vehicle."""

    steer: Number = 0.0
    throttle: Number = 0.0
    brake: Number = 0.0
    hand_brake: bool = False
    reverse: bool = False


class Mover(_Part, frozen=True):
    """A vehicle or a pedestrian."""

    transform: Transform | None = None
    forward_speed: Number = 0.0
    bounding_box: BoundingBox | None = None
    box_extent: Vector3D | None = None


class TrafficLight(_Part, frozen=True):
    """A traffic light; without a state it is GREEN, the first value of the enumeration."""

    transform: Transform | None = None
    state: Literal['GREEN', 'YELLOW', 'RED', 0, 1, 2] = 'GREEN'


class SpeedLimitSign(_Part, frozen=True):
    """A speed limit sign, m/s."""

    transform: Transform | None = None
    speed_limit: Number = 0.0


class Agent(_Part, frozen=True):
    """One of four kinds of agents."""

    id: Annotated[int, msgspec.Meta(ge=0, le=_UINT32_MAX)] = 0
    vehicle: Mover | None = None
    pedestrian: Mover | None = None
    traffic_light: TrafficLight | None = None
    speed_limit_sign: SpeedLimitSign | None = None


class PlayerMeasurements(_Part, frozen=True):
    """Measurements that only the player has."""

    transform: Transform | None = None
    bounding_box: BoundingBox | None = None
    box_extent: Vector3D | None = None
    acceleration: Vector3D = _NOWHERE
    forward_speed: Number = 0.0
    collision_vehicles: Number = 0.0
    collision_pedestrians: Number = 0.0
    collision_other: Number = 0.0
    intersection_otherlane: Number = 0.0
    intersection_offroad: Number = 0.0
    autopilot_control: Control = Control()


# Members that the collector of the dataset adds to the measurement, without the arrays.
COMMAND_MEMBERS: Final = (
    'steer', 'throttle', 'brake', 'hand_brake', 'reverse', 'steer_noise', 'throttle_noise',
    'brake_noise', 'directions', 'stop_pedestrian', 'stop_vehicle', 'stop_traffic_lights')
_NOTHING: Final = msgspec.Raw()


class MeasurementFile(_Part, frozen=True, rename={
        'frame_number': 'frameNumber', 'game_timestamp': 'gameTimestamp',
        'platform_timestamp': 'platformTimestamp', 'player_measurements': 'playerMeasurements',
        'non_player_agents': 'nonPlayerAgents'}):
    """
    A whole file: the measurement and the members of the collector.

    Of the latter, ``None`` or an empty ``Raw`` is a member that is not in the file.
    """

    frame_number: Count = 0
    game_timestamp: Count = 0
    platform_timestamp: Count = 0
    player_measurements: PlayerMeasurements | None = None
    non_player_agents: tuple[Agent, ...] = ()
    steer: Number = None
    throttle: Number = None
    brake: Number = None
    hand_brake: bool | None = None
    reverse: bool | None = None
    steer_noise: Number = None
    throttle_noise: Number = None
    brake_noise: Number = None
    directions: Number = None
    stop_pedestrian: Number = None
    stop_vehicle: Number = None
    stop_traffic_lights: Number = None
    waypoints: msgspec.Raw = _NOTHING
    waypoints_world: msgspec.Raw = _NOTHING
    route: msgspec.Raw = _NOTHING
    fov_list: msgspec.Raw = _NOTHING


_ARRAY_MEMBERS: Final = ('waypoints', 'waypoints_world', 'route', 'fov_list')
_Type = TypeVar('_Type')
_DECODER: Final = msgspec.json.Decoder(MeasurementFile)
_members_of = cache(members_of)


def to_float(number: Number) -> float:
    """
    Return a JSON number or its string as a float, NaN for ``None``.

    :param number: number of a parsed file; strings are NaN, Infinity and -Infinity.
    """
    return math.nan if number is None else float(number)


@dataclass(frozen=True, slots=True)
class Parsed:
    """
    A parsed file.

    ``file`` the members with a type; ``other_members`` name and JSON text of the others at the
    top level; ``bad_actors`` errors of the actors that were left out; ``unknown`` members inside
    the measurement that the protocol does not have.
    """

    file: MeasurementFile
    other_members: tuple[tuple[str, str], ...]
    bad_actors: tuple[DecodeError, ...] = ()
    unknown: frozenset[str] = frozenset()


def parse_measurement_file(payload: bytes | bytearray | memoryview) -> Parsed:
    """
    Parse one file of the dataset. Agents that are not valid are left out.

    :param payload: JSON text in UTF-8.
    :raises DecodeError: with the key path, when the text is not valid JSON, or when a member
        outside the actors is not valid.
    """
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
        _converted({**measurement, **commands}, MeasurementFile, '$'),
        player_measurements=next(_valid_entries(players, PlayerMeasurements, bad_actors), None),
        non_player_agents=tuple(_valid_entries(agents, Agent, bad_actors)))
    return Parsed(file, _other_members(tree, members), tuple(bad_actors), frozenset(unknown))


def _other_members(tree: Mapping[str, object],
                   members: Mapping[str, tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    try:
        return tuple((name, json.dumps(value)) for name, value in tree.items()
                     if name not in members and name not in COMMAND_MEMBERS)
    except RecursionError:
        raise DecodeError('payload', 'brackets nested too deep', 'JSON of a measurement') from None


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
