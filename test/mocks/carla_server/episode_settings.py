# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The settings of an episode, read from the CarlaSettings.ini that a client sends."""

import configparser
from dataclasses import dataclass

from state_sensor_ros.errors import FramingError

# CARLA's own scripts open the image of the map by its name, and fail without one.
MAP_NAME = 'Town01'


@dataclass(frozen=True)
class EpisodeSettings:
    is_synchronous: bool = False
    sends_agents: bool = True
    n_vehicles: int = 12
    n_pedestrians: int = 6
    seed: int = 1


def parse_settings(text, defaults):
    """Parse a settings file; unknown keys are ignored, ``defaults`` has the missing ones."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
        for name in ('CARLA/Server', 'CARLA/LevelSettings'):
            if not parser.has_section(name):
                parser.add_section(name)
        server, level = parser['CARLA/Server'], parser['CARLA/LevelSettings']
        return EpisodeSettings(
            server.getboolean('SynchronousMode', defaults.is_synchronous),
            server.getboolean('SendNonPlayerAgentsInfo', False),
            level.getint('NumberOfVehicles', defaults.n_vehicles),
            level.getint('NumberOfPedestrians', defaults.n_pedestrians),
            level.getint('SeedVehicles', defaults.seed))
    except (configparser.Error, ValueError) as error:
        raise FramingError('RequestNewEpisode', str(error), 'a CarlaSettings.ini') from error
