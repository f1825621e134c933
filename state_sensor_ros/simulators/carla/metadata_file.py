# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The metadata.json of a dataset, of sensors and episodes: doc/protocol/carla.md#dataset.

That of the data collector has the yaw of each sensor, and one field of view. The member
``sensors``, which a recording of this package has beside them, describes each sensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
import json
import math
from typing import Final, Literal

import msgspec

from state_sensor_ros.simulators import DecodeError
from state_sensor_ros.simulators.carla.sensors import (
    camera_and_kind,
    carla_of_pose,
    file_name_of,
    known_pose,
    POINTS,
    Pose,
    pose_of_carla,
    Sensor,
    topic_token,
)
from state_sensor_ros.simulators.json_text import Json, parse_payload

# Where every configuration of the data collector has its cameras and its lidar: its metadata.json
# has the yaw alone.
_CAMERA_POSITION, _CAMERA_PITCH_DEG = (2.0, 0.0, 1.4), -15.0
_LIDAR_POSITION: Final = (0.0, 0.0, 2.5)
_LIDAR_MARK: Final = 'lidar'
_SENSORS: Final = 'sensors'
_CAMERA: Final = 'CAMERA'
_LIDAR: Final = 'LIDAR_RAY_CAST'


class _Position(msgspec.Struct):
    """In CARLA's axes of the player, m."""

    x: float
    y: float
    z: float


class _Rotation(msgspec.Struct):
    """Degrees of the engine's rotator."""

    pitch: float
    yaw: float
    roll: float


class _Description(msgspec.Struct, omit_defaults=True):
    """One sensor; ``width`` and ``height`` in pixels, ``fov`` in degrees."""

    type_: Literal['CAMERA', 'LIDAR_RAY_CAST'] = msgspec.field(name='type')
    width: int | None = None
    height: int | None = None
    fov: float | None = None
    position: _Position | None = None
    rotation: _Rotation | None = None


@dataclass(frozen=True, slots=True)
class Metadata:
    """
    The sensors that a metadata.json declares, and the members that describe the episode.

    ``yaw_deg`` by sensor, + = right; ``fov_deg`` of all cameras, NaN if it is absent;
    ``described`` sensors by name in topics and kind; ``members`` JSON text of the others by name,
    such as weather, seeds and numbers of agents.
    """

    yaw_deg: Mapping[str, float]
    fov_deg: float
    described: Mapping[tuple[str, str], Sensor] = field(default_factory=dict)
    members: Mapping[str, str] = field(default_factory=dict)

    def cameras(self) -> frozenset[str]:
        """Return the names in topics of the cameras that are declared."""
        return frozenset(split[0] for split in map(camera_and_kind, self.yaw_deg) if split) \
            | {name for name, kind in self.described if kind != POINTS}

    def lidars(self) -> frozenset[str]:
        """Return the names in topics of the lidars that are described."""
        return frozenset(name for name, kind in self.described if kind == POINTS)

    def joined_with(self, other: Metadata) -> Metadata:
        """
        Return the values of both files; if both have one, that of this file.

        :param other: metadata of the folder above.
        """
        return Metadata({**other.yaw_deg, **self.yaw_deg},
                        other.fov_deg if math.isnan(self.fov_deg) else self.fov_deg,
                        {**other.described, **self.described},
                        {**other.members, **self.members})

    def sensor(self, name: str, kind: str) -> Sensor:
        """
        Describe a sensor.

        :param name: name of the camera or lidar in topics.
        :param kind: kind of the sensor.
        :returns: with a pose if that sensor is described, or the yaw of that camera or lidar
            is declared.
        """
        if (name, kind) in self.described:
            return self.described[name, kind]
        if kind == POINTS:
            yaw = next((yaw for own, yaw in self.yaw_deg.items() if topic_token(own) == name),
                       None)
            return Sensor(name, kind, pose=_pose(_LIDAR_POSITION, 0.0, yaw))
        own = dict(_yaws(self.yaw_deg, name))
        yaw = own.get(kind, next(iter(own.values()), None))
        return Sensor(name, kind, self.fov_deg, _pose(_CAMERA_POSITION, _CAMERA_PITCH_DEG, yaw))


NO_METADATA: Final = Metadata({}, math.nan)


def _yaws(yaw_deg: Mapping[str, float], camera: str) -> Iterator[tuple[str, float]]:
    """Yield kind and yaw of the sensors of a camera."""
    for name, yaw in yaw_deg.items():
        split = camera_and_kind(name)
        if split is not None and split[0] == camera:
            yield split[1], yaw


def _pose(position: tuple[float, float, float], pitch: float, yaw: float | None) -> Pose | None:
    return None if yaw is None else pose_of_carla(position, pitch, yaw, 0.0)


def metadata_of(text: bytes) -> Metadata:
    """
    Parse a metadata.json.

    :param text: JSON.
    :raises DecodeError: if it is not JSON.
    """
    tree = parse_payload(text)
    members = tree if isinstance(tree, dict) else {}
    numbers = {name: float(value) for name, value in members.items()
               if isinstance(value, (int, float)) and not isinstance(value, bool)
               and abs(value) < math.inf}
    yaw_deg = {name: value for name, value in numbers.items()
               if camera_and_kind(name) is not None or _LIDAR_MARK in name.lower()}
    try:
        others = {name: json.dumps(value) for name, value in members.items()
                  if name not in yaw_deg and name != _SENSORS}
    except RecursionError:
        raise DecodeError('payload', 'brackets nested too deep', 'JSON of an episode') from None
    return Metadata(yaw_deg, numbers.get('fov', math.nan), _described(members.get(_SENSORS)),
                    others)


def _described(member: Json) -> dict[tuple[str, str], Sensor]:
    """Return the sensors of the member ``sensors``; other programs may use that name as well."""
    found: dict[tuple[str, str], Sensor] = {}
    for name, value in member.items() if isinstance(member, dict) else ():
        try:
            one = msgspec.convert(value, _Description)
        except msgspec.ValidationError:
            continue
        split = (topic_token(name), POINTS) if one.type_ == _LIDAR else camera_and_kind(name)
        if split is None:
            continue
        pose = None
        if one.position is not None and one.rotation is not None:
            place, angles = one.position, one.rotation
            pose = known_pose(pose_of_carla((place.x, place.y, place.z), angles.pitch,
                                            angles.yaw, angles.roll))
        found[split] = Sensor(*split, math.nan if one.fov is None else one.fov, pose)
    return found


def is_of_recorder(text: bytes) -> bool:
    """
    Return whether a metadata.json is one of :func:`format_metadata`.

    :param text: JSON.
    :raises DecodeError: if it is not JSON.
    """
    tree = parse_payload(text)
    return isinstance(tree, dict) and (
        tree.get(_SENSORS) == {} or bool(_described(tree.get(_SENSORS))))


def format_metadata(sensors: Iterable[tuple[Sensor, tuple[int, int] | None]],
                    others: Iterable[tuple[str, str]] = ()) -> bytes:
    """
    Return a metadata.json with the members of the collector and ``sensors``.

    :param sensors: each with width and height of its images, pixels; None of a lidar. Field of
        view and size of the first camera are those that the collector has once.
    :param others: name and JSON text of further members.
    """
    described: dict[str, _Description] = {}
    members: dict[str, object] = {}
    for sensor, size in sensors:
        name = file_name_of(sensor.name, sensor.kind)
        one = described[name] = _Description(_LIDAR if size is None else _CAMERA)
        if size is not None:
            one.width, one.height = size
            one.fov = sensor.fov_deg if math.isfinite(sensor.fov_deg) else None
            for key, value in (('fov', one.fov), ('width', one.width), ('height', one.height)):
                members.setdefault(key, value)
        if sensor.pose is not None:
            position, angles = carla_of_pose(sensor.pose)
            one.position, one.rotation = _Position(*position), _Rotation(*angles)
            members[name] = one.rotation.yaw
    members = {**{name: json.loads(text) for name, text in others}, **members}
    return json.dumps({**members, _SENSORS: msgspec.to_builtins(described)}, sort_keys=True,
                      indent=4).encode()
