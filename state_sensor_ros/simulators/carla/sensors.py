# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The cameras and lidars on the player, and those that a CarlaSettings.ini describes.

The name of a sensor, such as ``CentralRGB``, is that of a camera and a kind:
doc/protocol/carla.md#sensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import configparser
from dataclasses import dataclass, replace
import math
import re
from typing import Final, TypeAlias

from state_sensor_ros.simulators import ConfigError, reason_of, Settings
from state_sensor_ros.simulators.carla.carla_data import PLAYER_NAME, PLAYER_TAGS
from state_sensor_ros.simulators.carla.parameters import CarlaParameters
from state_sensor_ros.simulators.own_topics import registry_of, StaticTransform

RGB, DEPTH, SEGMENTATION, POINTS = 'rgb', 'depth', 'segmentation', 'points'
# The cameras of ``camera_poses``.
CAMERAS: Final = ('central', 'left', 'right')

# Position, m, and roll pitch yaw, rad, in the axes of the player (REP-103).
Pose: TypeAlias = tuple[float, float, float, float, float, float]

_Triple: TypeAlias = tuple[float, float, float]
_NOWHERE: Final[Pose] = (0.0,) * 6
_KIND_AT_END: Final = re.compile(
    r'(?P<camera>.+?)_?(?:(?P<rgb>rgb)|(?P<depth>depth)|(?:semantic_?|sem_?)?seg(?:mentation)?)',
    re.IGNORECASE)
_KIND_NAMES: Final = {RGB: 'RGB', DEPTH: 'Depth', SEGMENTATION: 'SemanticSeg', POINTS: ''}
_ANGLE_DIGITS: Final = 9
_ILLEGAL: Final = re.compile(r'[^a-z0-9]+')


@dataclass(frozen=True, slots=True)
class Sensor:
    """A camera or a lidar on the player."""

    name: str  # of the camera or lidar in topics and frames
    kind: str  # RGB, DEPTH, SEGMENTATION or POINTS
    fov_deg: float = math.nan  # horizontal field of view, degrees, NaN if it is unknown
    pose: Pose | None = None  # on the player, None if it is unknown
    parent: str = ''  # frame of a recorded pose, empty for the origin of the player


def camera_and_kind(name: str) -> tuple[str, str] | None:
    """
    Split the name of a sensor at its kind.

    >>> camera_and_kind('LeftSemanticSeg')
    ('left', 'segmentation')

    :returns: the name of the camera in topics, and RGB, DEPTH or SEGMENTATION; None for a name
        that ends with no kind.
    """
    match = _KIND_AT_END.fullmatch(name)
    if match is None:
        return None
    kind = RGB if match['rgb'] else DEPTH if match['depth'] else SEGMENTATION
    return topic_token(match['camera']), kind


def camera_name(name: str, kind: str) -> str:
    """
    Return the name of a camera in topics.

    >>> camera_name('CameraDepth', 'depth'), camera_name('MyCamera', 'rgb')
    ('camera', 'mycamera')
    """
    split = camera_and_kind(name)
    return split[0] if split is not None and split[1] == kind else topic_token(name)


def file_name_of(name: str, kind: str) -> str:
    """
    Return the name of a sensor that the data collector uses.

    >>> file_name_of('central', 'segmentation'), file_name_of('lidar32', 'points')
    ('CentralSemanticSeg', 'Lidar32')
    """
    return f'{name.capitalize()}{_KIND_NAMES[kind]}'


def topic_token(name: str) -> str:
    """
    Make the name of a sensor legal as a token of a topic.

    >>> topic_token('Lidar32'), topic_token('Roof/Front'), topic_token('3rd')
    ('lidar32', 'roof_front', 'sensor_3rd')

    :returns: lower-case letters, digits and ``_``, not beginning with a digit.
    """
    token = _ILLEGAL.sub('_', name.lower()).strip('_')
    return token if token and not token[0].isdigit() else f'sensor_{token}'.rstrip('_')


def pose_of_carla(position: Iterable[float], pitch: float, yaw: float, roll: float) -> Pose:
    """Convert the pose of a sensor to the axes of REP-103 (doc/protocol/carla.md#rotators)."""
    # position: x, y, z in CARLA's axes of the player, m.
    # pitch: degrees of the engine's rotator, as ``yaw`` and ``roll``.
    x, y, z = position
    # Adding 0.0 turns -0.0 into 0.0.
    return (x, 0.0 - y, z, math.radians(roll), 0.0 - math.radians(pitch),
            0.0 - math.radians(yaw))


def known_pose(pose: Pose) -> Pose | None:
    """Return a pose whose numbers are all finite, None for another one."""
    return pose if all(map(math.isfinite, pose)) else None


def carla_of_pose(pose: Pose) -> tuple[_Triple, _Triple]:
    """Convert the pose of a sensor to CARLA's axes: the inverse of :func:`pose_of_carla`."""
    # pose: in the axes of REP-103.
    # Returns position, m, and pitch, yaw, roll, degrees.
    x, y, z, roll, pitch, yaw = pose
    # Rounded so that an ordinary angle is recovered exactly.
    angles = [round(math.degrees(angle), _ANGLE_DIGITS) + 0.0 for angle in (-pitch, -yaw, roll)]
    return (x, 0.0 - y, z), (angles[0], angles[1], angles[2])


def with_parameters(sensors: Iterable[Sensor], settings: Settings) -> tuple[Sensor, ...]:
    """Replace what parameters give: a field of view or poses that are not 0."""
    own = settings.of(CarlaParameters)
    given = {camera: pose for i, camera in enumerate(CAMERAS)
             if any(pose := _pose(own.camera_poses[6 * i:6 * i + 6]))}
    return tuple([sensor if sensor.kind == POINTS else replace(
        sensor, pose=given.get(sensor.name, sensor.pose),
        parent='' if sensor.name in given else sensor.parent,
        fov_deg=own.camera_fov or sensor.fov_deg) for sensor in sensors])


def mounts(sensors: Iterable[Sensor], settings: Settings) -> dict[str, Sensor]:
    """Return the frames of sensors on the player."""
    # sensors: sensors as their file describes them; without any, those of ``camera_poses``.
    known = tuple(sensors) or tuple([Sensor(camera, RGB) for camera in CAMERAS])
    found: dict[str, Sensor] = {}
    for sensor in with_parameters(known, settings):
        frame = mount_frame(sensor)
        if frame not in found or (sensor.pose is not None and found[frame].pose is None):
            found[frame] = sensor
    return found


def mount_frame(sensor: Sensor) -> str:
    """Return the last part of the frame of a sensor."""
    return lidar_frame(sensor.name) if sensor.kind == POINTS else f'camera_{sensor.name}'


def lidar_frame(name: str) -> str:
    """Return the last part of the frame of a lidar, given its name in topics."""
    return name if name.startswith('lidar') else f'lidar_{name}'


def _pose(numbers: tuple[float, ...]) -> Pose:
    x, y, z, roll, pitch, yaw = numbers
    return x, y, z, roll, pitch, yaw


# Characters of a CarlaSettings.ini.
_MAX_TEXT = 1_000_000
# From a body's axes to those of its images: z forward, x right, y down (REP-103).
_OPTICAL = (0.0, 0.0, 0.0, -math.pi / 2.0, 0.0, -math.pi / 2.0)
_OPTICAL_END = '_optical'


def optical_frame(player_frame: str, camera: str) -> str:
    """Return the frame of a camera's images: z forward, x right, y down (REP-103)."""
    return f'{player_frame}/camera_{camera}{_OPTICAL_END}'


def sensor_transforms(sensors: Iterable[Sensor],
                      settings: Settings) -> tuple[StaticTransform, ...]:
    """Return the frames of the sensors on the player, none unless ``camera_tf`` is true."""
    # sensors: as for :func:`mounts`; a pose that is unknown is that of the player.
    if not settings.of(CarlaParameters).camera_tf:
        return ()
    player = registry_of(settings).first_frame_id(PLAYER_NAME)
    offset: tuple[float, ...] = (0.0,) * 6
    # With another ego tag the player has a frame of its own.
    if settings.ego_frame and settings.ego_tag.lower() in PLAYER_TAGS:
        player = settings.ego_frame
        # CARLA has no wheels: base_link is at the origin unless its place is given.
        if math.isfinite(settings.base_link_xyz[0]):
            offset = (*settings.base_link_xyz, 0.0, 0.0, 0.0)
    transforms = []
    for name, sensor in mounts(sensors, settings).items():
        frame, pose = f'{player}/{name}', sensor.pose or _NOWHERE
        transforms.append(StaticTransform(player, frame, pose if sensor.parent == player else [
            number - shift for number, shift in zip(pose, offset, strict=True)]))
        if sensor.kind != POINTS:
            transforms.append(StaticTransform(frame, f'{frame}{_OPTICAL_END}', _OPTICAL))
    return tuple(transforms)


_SECTION: Final = 'CARLA/Sensor'
_LIDAR: Final = 'LIDAR_RAY_CAST'
_TYPES: Final = ('CAMERA', _LIDAR)
_KINDS: Final = {'None': RGB, 'SceneFinal': RGB, 'Depth': DEPTH,
                 'SemanticSegmentation': SEGMENTATION}
# Values of the server for absent keys.
_DEFAULTS: Final = {
    'PositionX': 1.7, 'PositionY': 0.0, 'PositionZ': 1.5, 'RotationPitch': 0.0,
    'RotationYaw': 0.0, 'RotationRoll': 0.0, 'FOV': 90.0}


def read_sensors(path: str) -> tuple[Sensor, ...]:
    """Return the sensors of a CarlaSettings.ini."""
    return sensors_of_ini(read_ini(path), path)


def read_ini(path: str) -> str:
    try:
        # Editors of Windows write a BOM, which the server does not read.
        with open(path, encoding='utf-8-sig') as file:
            text = file.read(_MAX_TEXT + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise ConfigError('config_file', f'{path} ({reason})', 'a readable CarlaSettings.ini'
                          ) from error
    if len(text) > _MAX_TEXT:
        raise ConfigError('config_file', f'{path} (more than {_MAX_TEXT} characters)',
                          'a CarlaSettings.ini')
    return text


def sensors_of_ini(text: str, where: str) -> tuple[Sensor, ...]:
    parser = configparser.ConfigParser(interpolation=None, strict=False,
                                       comment_prefixes=(';', '#'))
    try:
        parser.read_string(text)
        names = parser.get(_SECTION, 'Sensors', fallback='')
    except configparser.Error as error:
        raise ConfigError('config_file', f'{where} ({error.message})',
                          'sections and keys of a CarlaSettings.ini') from error
    found: dict[tuple[str, str], str] = {}
    sensors = []
    for name in filter(None, map(str.strip, names.split(','))):
        sensor = _sensor(name, parser, where)
        other = found.setdefault((sensor.name, sensor.kind), name)
        if other != name:
            raise ConfigError('config_file', f'{where}: sensors {other} and {name}, which have '
                              'the same topic', 'names that differ in more than letter case')
        sensors.append(sensor)
    return tuple(sensors)


def _sensor(name: str, parser: configparser.ConfigParser, where: str) -> Sensor:
    """Read the sections of a sensor: those of A/B are A and A/B, the latter wins."""
    values = sensor_keys(parser, name)
    type_ = values.get('sensortype', '')
    if type_ not in _TYPES:
        raise ConfigError('config_file', f'{where}: sensor {name} with SensorType {type_!r}',
                          f'one of {", ".join(_TYPES)}')
    numbers = {key: _number(key, default, values, f'{where}: sensor {name}')
               for key, default in _DEFAULTS.items()}
    pose = pose_of_carla([numbers[f'Position{axis}'] for axis in 'XYZ'],
                         *[numbers[f'Rotation{angle}'] for angle in ('Pitch', 'Yaw', 'Roll')])
    if type_ == _LIDAR:
        return Sensor(topic_token(name), POINTS, pose=pose)
    processing = values.get('postprocessing', 'SceneFinal')
    if processing not in _KINDS:
        raise ConfigError('config_file', f'{where}: sensor {name} with PostProcessing '
                          f'{processing!r}', f'one of {", ".join(_KINDS)}')
    kind = _KINDS[processing]
    return Sensor(camera_name(name, kind), kind, numbers['FOV'], pose)


def sensor_keys(parser: configparser.ConfigParser, name: str) -> dict[str, str]:
    section, values = _SECTION, dict[str, str]()
    for token in ('', *name.split('/')):
        section += f'/{token}' if token else ''
        # The server sets the effect anew for each section.
        values.pop('postprocessing', None)
        if parser.has_section(section):
            values.update(parser.items(section))
    return values


def _number(key: str, default: float, values: Mapping[str, str], where: str) -> float:
    try:
        number = float(values.get(key.lower(), default))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError('config_file', f'{where} with {key} {values[key.lower()]!r}', 'a number')
    return number
