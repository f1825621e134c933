# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The settings of an episode, read from the CarlaSettings.ini that a client sends."""

from __future__ import annotations

import configparser
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from state_sensor_ros.errors import FramingError

# CARLA's own scripts open the image of the map by its name, and fail without one.
MAP_NAME = 'Town01'
# Number of each kind of image on the wire.
IMAGE_TYPES = {'None': 0, 'SceneFinal': 1, 'Depth': 2, 'SemanticSegmentation': 3}
# Keys of the real server that have no effect here, with the value that applies.
_WITHOUT_EFFECT = {'PlayerVehicle': '', 'DisableTwoWheeledVehicles': 'false'}


@dataclass(frozen=True, slots=True)
class CameraSettings:
    """A camera: size in pixels, horizontal field of view in degrees, and kind of its images."""

    name: str
    width: int = 720
    height: int = 512
    fov_deg: float = 90.0
    image_type: int = 1
    height_m: float = 1.3


@dataclass(frozen=True, slots=True)
class LidarSettings:
    """A lidar: lasers between two angles in degrees, range in m, points and turns per second."""

    name: str
    channels: int = 32
    range_m: float = 50.0
    points_per_second: int = 56000
    turns_per_second: float = 10.0
    upper_deg: float = 10.0
    lower_deg: float = -30.0
    height_m: float = 1.3


SensorSettings: TypeAlias = CameraSettings | LidarSettings


@dataclass(frozen=True, slots=True)
class EpisodeSettings:
    is_synchronous: bool = False
    sends_agents: bool = True
    n_vehicles: int = 12
    n_pedestrians: int = 6
    seed: int = 1
    sensors: tuple[SensorSettings, ...] = ()
    # A line for each setting that this server cannot serve.
    refused: tuple[str, ...] = field(default=(), compare=False)


def parse_settings(text: str, defaults: EpisodeSettings) -> EpisodeSettings:
    """
    Parse the settings file that a client sends with the request of an episode.

    :param text: text in the format of CarlaSettings.ini; unknown keys are ignored.
    :param defaults: values of missing keys.
    :returns: the settings, without the sensors that are refused.
    :raises FramingError: if the text does not have that format.
    """
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
        server, level = _section(parser, 'CARLA/Server'), _section(parser, 'CARLA/LevelSettings')
        names = _section(parser, 'CARLA/Sensor').get('Sensors', '').split(',')
        sensors = [_sensor(parser, name.strip()) for name in names if name.strip()]
        settings = EpisodeSettings(
            server.getboolean('SynchronousMode', defaults.is_synchronous),
            server.getboolean('SendNonPlayerAgentsInfo', False),
            level.getint('NumberOfVehicles', defaults.n_vehicles),
            level.getint('NumberOfPedestrians', defaults.n_pedestrians),
            level.getint('SeedVehicles', defaults.seed),
            tuple(sensor for sensor in sensors if not isinstance(sensor, str)))
    except (configparser.Error, ValueError) as error:
        raise FramingError('RequestNewEpisode', str(error).replace('\n', ' '),
                           'a CarlaSettings.ini') from error
    unserved = [f'{key}: found {level[key]}; expected {usual or "none"}: it has no effect here'
                for key, usual in _WITHOUT_EFFECT.items()
                if level.get(key, usual).lower() not in (usual, 'none')]
    refused = [sensor for sensor in sensors if isinstance(sensor, str)]
    return replace(settings, refused=(*refused, *unserved))


def _section(parser: configparser.ConfigParser, name: str) -> configparser.SectionProxy:
    if not parser.has_section(name):
        parser.add_section(name)
    return parser[name]


def sensor_keys(parser: configparser.ConfigParser, name: str) -> dict[str, str]:
    section, values = 'CARLA/Sensor', dict[str, str]()
    for token in ('', *name.split('/')):
        section += f'/{token}' if token else ''
        # The server sets the effect anew for each section.
        values.pop('postprocessing', None)
        if parser.has_section(section):
            values.update(parser.items(section))
    return values


def _sensor(parser: configparser.ConfigParser, name: str) -> SensorSettings | str:
    """Return a sensor, or why it is refused; a sub-section inherits from those above it."""
    values = sensor_keys(parser, name)

    def number(key: str, usual: float) -> float:
        return float(values.get(key.lower(), usual))

    kind = values.get('sensortype', 'CAMERA')
    if kind == 'LIDAR_RAY_CAST':
        return LidarSettings(
            name, int(values.get('channels', 0)) or 32, number('Range', 50.0),
            int(values.get('pointspersecond', 0)) or 56000, number('RotationFrequency', 10.0),
            number('UpperFOVLimit', 10.0), number('LowerFOVLimit', -30.0),
            number('PositionZ', 1.3))
    if kind != 'CAMERA':
        return f'sensor {name}: found SensorType={kind}; expected CAMERA or LIDAR_RAY_CAST'
    effect = values.get('postprocessing', 'SceneFinal')
    if effect not in IMAGE_TYPES:
        return (f'sensor {name}: found PostProcessing={effect}; expected one of '
                f'{", ".join(IMAGE_TYPES)}')
    return CameraSettings(
        name, int(values.get('imagesizex', 0)) or 720, int(values.get('imagesizey', 0)) or 512,
        number('FOV', 90.0), IMAGE_TYPES[effect], number('PositionZ', 1.3))
