# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The sensors that a CarlaSettings.ini describes.

Keys and defaults: doc/protocol/carla.md#sensors.
"""

from __future__ import annotations

from collections.abc import Mapping
import configparser
import math
from pathlib import Path
from typing import Final

from state_sensor_ros.simulators import ConfigError, reason_of
from state_sensor_ros.simulators.carla.sensors import (
    camera_name,
    DEPTH,
    POINTS,
    pose_of_carla,
    RGB,
    SEGMENTATION,
    Sensor,
    topic_token,
)

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
    """
    Return the sensors of a CarlaSettings.ini.

    :param path: path of the file.
    :raises ConfigError: if it cannot be read; see also :func:`sensors_of_ini`.
    """
    return sensors_of_ini(read_ini(path), path)


def read_ini(path: str) -> str:
    """
    Return the text of a CarlaSettings.ini.

    :param path: path of the file.
    :raises ConfigError: if it cannot be read.
    """
    try:
        # Editors of Windows write a BOM, which the server does not read.
        return Path(path).read_text('utf-8-sig')
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise ConfigError('config_file', f'{path} ({reason})', 'a readable CarlaSettings.ini'
                          ) from error


def sensors_of_ini(text: str, where: str) -> tuple[Sensor, ...]:
    """
    Return the sensors of an episode.

    :param text: content of a CarlaSettings.ini.
    :param where: name of the file, for errors.
    :raises ConfigError: if the text has another form, a sensor is not described, or two
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
        # The server sets the effect anew for each section.
        values.pop('postprocessing', None)
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
