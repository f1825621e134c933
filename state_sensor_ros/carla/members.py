# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A measurement file of the dataset: JSON text to typed members.

May know: member names in both spellings, proto3's JSON rules. Must not know: units, axes, frames.
Source: PROTOCOL 7.4. Members that equal their default are not there, and unknown ones may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
import json
import math
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import msgspec

from state_sensor_ros.carla.schema import members_of
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.json_values import parse_payload, to_list, to_object

# What the standard conversion writes for floats that JSON has no numbers for; null: not known.
Number: TypeAlias = float | Literal['NaN', 'Infinity', '-Infinity'] | None
# 64-bit integers are strings of digits in this conversion, smaller ones are numbers.
Count: TypeAlias = (Annotated[int, msgspec.Meta(ge=0)]
                    | Annotated[str, msgspec.Meta(pattern='^[0-9]{1,20}$')])
_UINT32_MAX: Final = 2 ** 32 - 1
_UINT64_MAX: Final = 2 ** 64 - 1


class _Part(msgspec.Struct, rename='camel', forbid_unknown_fields=True, gc=False, frozen=True):
    """A message inside the measurement; anything unknown in it sends the file the slow way."""


class Vector3D(_Part, frozen=True):
    """Metres, or m/s2 for an acceleration, in CARLA's axes."""

    x: Number = 0.0
    y: Number = 0.0
    z: Number = 0.0


class Rotation3D(_Part, frozen=True):
    """Degrees, as the engine's rotator means them."""

    pitch: Number = 0.0
    yaw: Number = 0.0
    roll: Number = 0.0


_NOWHERE: Final = Vector3D()
_UPRIGHT: Final = Rotation3D()


class Transform(_Part, frozen=True):
    """Where something is; ``orientation`` is a deprecated direction that nobody reads."""

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


class TrafficLight(_Part, frozen=True):
    """A traffic light; one without a state is GREEN, which is the enumeration's zero."""

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
    """What is measured of the player only."""

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


# What the collector of the dataset adds to the measurement, without the planner's arrays.
COMMAND_MEMBERS: Final = (
    'steer', 'throttle', 'brake', 'hand_brake', 'reverse', 'steer_noise', 'throttle_noise',
    'brake_noise', 'directions', 'stop_pedestrian', 'stop_vehicle', 'stop_traffic_lights')
_NOTHING: Final = msgspec.Raw()


class MeasurementFile(_Part, frozen=True, rename={
        'frame_number': 'frameNumber', 'game_timestamp': 'gameTimestamp',
        'platform_timestamp': 'platformTimestamp', 'player_measurements': 'playerMeasurements',
        'non_player_agents': 'nonPlayerAgents'}):
    """
    A whole file: the measurement and what the collector adds to it.

    Of the latter ``None`` and an empty ``Raw`` say that the member is not in this file.
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
    """Return a number of either form as a float, NaN for ``null``."""
    return math.nan if number is None else float(number)


@dataclass(frozen=True, slots=True)
class Parsed:
    """
    A file with what is to be said about it.

    ``file`` the members that have a type; ``extras`` name and JSON text of the other ones of the
    top level; ``bad_actors`` why some were left out; ``unknown`` members inside the measurement
    that no table of the protocol has.
    """

    file: MeasurementFile
    extras: tuple[tuple[str, str], ...]
    bad_actors: tuple[DecodeError, ...] = ()
    unknown: frozenset[str] = frozenset()


def parse_measurement_file(payload: bytes | bytearray | memoryview) -> Parsed:
    """
    Read one file of the dataset.

    :param payload: JSON text in UTF-8.
    :raises DecodeError: with the key path, when the text as a whole cannot be used; agents that
        cannot are left out.
    """
    try:
        file = _DECODER.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # Snake case, unknown members and faults of single agents are rare enough for a way that
        # takes five times as long.
        return _parse_tolerantly(payload)
    extras = ((name, bytes(getattr(file, name))) for name in _ARRAY_MEMBERS)
    return Parsed(file, tuple((name, _compact(text)) for name, text in extras if text))


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
    file = msgspec.structs.replace(
        _converted({**measurement, **commands}, MeasurementFile, '$'),
        player_measurements=next(_good_ones([('$.playerMeasurements', player)], PlayerMeasurements,
                                            bad_actors), None) if player is not None else None,
        non_player_agents=tuple(_good_ones(agents, Agent, bad_actors)))
    return Parsed(file, _extras(tree, members), tuple(bad_actors), frozenset(unknown))


def _extras(tree: Mapping[str, object],
            members: Mapping[str, tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    try:
        return tuple((name, json.dumps(value)) for name, value in tree.items()
                     if name not in members and name not in COMMAND_MEMBERS)
    except RecursionError:
        raise DecodeError('payload', 'brackets nested too deep', 'JSON of a measurement') from None


def _good_ones(entries: Iterable[tuple[str, object]], type_: type[_Type],
               bad_ones: list[DecodeError]) -> Iterator[_Type]:
    """Convert entries, each with its key path; add what is wrong to ``bad_ones``."""
    for path, entry in entries:
        try:
            yield _converted(entry, type_, path)
        except DecodeError as error:
            bad_ones.append(error)


def _canonical(value: object, message: str, unknown: set[str]) -> object:
    """Rename members to the usual spelling, and leave out what no type declares."""
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


# How msgspec begins what it says of a string that is neither a number nor the name of a state.
_NOT_LITERAL: Final = 'Invalid enum value '
_LIGHT_LITERALS: Final = 'GREEN, YELLOW or RED'
# What was found is told in this many characters, whatever its size.
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
