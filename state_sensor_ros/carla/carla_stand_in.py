# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The stand-in for a CARLA server; its traffic is synthetic."""

from __future__ import annotations

import argparse

from state_sensor_ros.emulator.carla_server.episode_settings import EpisodeSettings
from state_sensor_ros.emulator.carla_server.town_server import CarlaOptions, CarlaServer
from state_sensor_ros.errors import ConfigError

# Port of the measurements unless one is given.
CARLA_PORT = 2001
# The imitation-learning dataset was collected at this rate.
CARLA_RATE_HZ = 10.0


def open_stand_in(options: argparse.Namespace) -> CarlaServer:
    """
    Start a stand-in server.

    :param options: of the command `simulate`.
    :returns: the running server, which a ``with`` block ends.
    :raises StateSensorError: where an option or a port is not usable.
    """
    if options.file is not None:
        raise ConfigError('FILE', options.file, 'none with --protocol carla: its traffic is '
                          'synthetic')
    if options.port in (1, 65535):
        raise ConfigError('--port', str(options.port), '0, or 2 to 65534: the world port is '
                          'the one before, the control port the one after')
    rate_hz = CARLA_RATE_HZ if isinstance(options.rate, str) else options.rate
    return CarlaServer(CarlaOptions(
        port=CARLA_PORT if options.port is None else options.port, bind=options.bind,
        rate=options.rate, period_s=1.0 / rate_hz, n_frames=options.frames,
        episode_frames=options.episode, episode=EpisodeSettings(
            is_synchronous=options.synchronous, n_vehicles=options.vehicles - 1,
            n_pedestrians=options.objects, seed=options.seed)))
