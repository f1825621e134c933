# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The sensors that a file describes: a CarlaSettings.ini, and the metadata.json of a dataset.

Keys and defaults: doc/protocol/carla.md#sensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import configparser
from dataclasses import dataclass
import math
from pathlib import Path
from typing import Final

from state_sensor_ros.carla.sensors import (
    camera_and_kind,
    camera_name,
    DEPTH,
    POINTS,
    Pose,
    pose_of_carla,
    RGB,
    SEGMENTATION,
    Sensor,
    topic_token,
)
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.json_values import parse_payload

_SECTION: Final = 'CARLA/Sensor'
_LIDAR: Final = 'LIDAR_RAY_CAST'
_TYPES: Final = ('CAMERA', _LIDAR)
_KINDS: Final = {'None': RGB, 'SceneFinal': RGB, 'Depth': DEPTH,
                 'SemanticSegmentation': SEGMENTATION}
# What the server uses where a key is absent.
_DEFAULTS: Final = {
    'PositionX': 1.7, 'PositionY': 0.0, 'PositionZ': 1.5, 'RotationPitch': 0.0,
    'RotationYaw': 0.0, 'RotationRoll': 0.0, 'FOV': 90.0}
# Where every configuration of the data collector has its cameras and its lidar: metadata.json has
# the yaw alone.
_CAMERA_POSITION, _CAMERA_PITCH_DEG = (2.0, 0.0, 1.4), -15.0
_LIDAR_POSITION: Final = (0.0, 0.0, 2.5)
_LIDAR_MARK: Final = 'lidar'


def read_sensors(path: str) -> tuple[Sensor, ...]:
    """
    Return the sensors of a CarlaSettings.ini.

    :param path: of the file.
    :raises ConfigError: where it cannot be read; see also :func:`sensors_of_ini`.
    """
    return sensors_of_ini(read_ini(path), path)


def read_ini(path: str) -> str:
    """
    Return the text of a CarlaSettings.ini.

    :param path: of the file.
    :raises ConfigError: where it cannot be read.
    """
    try:
        return Path(path).read_text('utf-8')
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError('config_file', f'{path} ({error})', 'a readable CarlaSettings.ini'
                          ) from error


def sensors_of_ini(text: str, where: str) -> tuple[Sensor, ...]:
    """
    Return the sensors of an episode.

    :param text: of a CarlaSettings.ini.
    :param where: name of the file, for errors.
    :raises ConfigError: where the text has another form, a sensor is not described, or two
        sensors have the same topic.
    """
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
    values: dict[str, str] = {}
    section = _SECTION
    for token in ('', *name.split('/')):
        section += f'/{token}' if token else ''
        if parser.has_section(section):
            values.update(parser.items(section))
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


def _number(key: str, default: float, values: Mapping[str, str], where: str) -> float:
    try:
        number = float(values.get(key.lower(), default))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError('config_file', f'{where} with {key} {values[key.lower()]!r}', 'a number')
    return number


@dataclass(frozen=True, slots=True)
class Metadata:
    """
    The sensors that a metadata.json declares.

    ``yaw_deg`` by sensor, + = right; ``fov_deg`` of all cameras, NaN where it is absent.
    """

    yaw_deg: Mapping[str, float]
    fov_deg: float

    def cameras(self) -> frozenset[str]:
        """Return the names in topics of the cameras that are declared."""
        return frozenset(split[0] for split in map(camera_and_kind, self.yaw_deg) if split)

    def joined_with(self, other: Metadata) -> Metadata:
        """
        Return the values of both files; where both have one, that of this file.

        :param other: that of the folder above.
        """
        return Metadata({**other.yaw_deg, **self.yaw_deg},
                        other.fov_deg if math.isnan(self.fov_deg) else self.fov_deg)

    def sensor(self, name: str, kind: str) -> Sensor:
        """
        Describe a sensor.

        :param name: of the camera or lidar in topics.
        :param kind: of the sensor.
        :returns: with a pose where the yaw of that camera or lidar is declared.
        """
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

    :param text: JSON; that of an episode, which describes no sensors, gives an empty result.
    :raises DecodeError: where it is not JSON.
    """
    tree = parse_payload(text)
    numbers = {name: float(value) for name, value in (
        tree.items() if isinstance(tree, dict) else ())
        if isinstance(value, (int, float)) and not isinstance(value, bool)
        and abs(value) < math.inf}
    yaw_deg = {name: value for name, value in numbers.items()
               if camera_and_kind(name) is not None or _LIDAR_MARK in name.lower()}
    return Metadata(yaw_deg, numbers.get('fov', math.nan))
