# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA 0.9 and later as a simulator: its parameters and recorder logs."""

from __future__ import annotations

from state_sensor_ros.control.ego_commands import EgoCommands
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import Simulator
from state_sensor_ros.simulators.carla9 import (
    Carla9Parameters,
    client_command,
    client_release,
    has_ackermann,
)
from state_sensor_ros.source import Report, Source


class Carla9Simulator(Simulator):
    """CARLA 0.9, through its client library, and its recorder logs."""

    name = 'carla9'
    parameters = Carla9Parameters
    is_paced = True
    takes_commands = True

    def address(self, settings: Settings) -> str:
        """Return host and port of the server."""
        own = settings.of(Carla9Parameters)
        return f'{own.host}:{own.port}'

    def check(self, settings: Settings) -> None:
        """Check that there is a client library, and what it can do."""
        own = settings.of(Carla9Parameters)
        client_command(own.python, '')
        if own.ackermann:
            if not has_ackermann(release := client_release(own.python)):
                raise ConfigError('carla9.ackermann', f"CARLA's client library {release}",
                                  'version 0.9.14 or later')
            if settings.control_input == 'vehicle_control':
                raise ConfigError('carla9.ackermann', 'true', 'a control_input with a speed: '
                                  'ackermann, autoware or twist')

    def follows_speed(self, settings: Settings) -> bool:
        """Return whether the controller of the server is used."""
        return settings.of(Carla9Parameters).ackermann

    def open_source(self, settings: Settings, report: Report, *,
                    reconnect: bool = True) -> Source:
        """Make the source; it connects when its frames are iterated over."""
        from state_sensor_ros.simulators.carla9.source import Carla9Source, TickingSource
        kind = TickingSource if settings.of(Carla9Parameters).tick else Carla9Source
        return kind(settings, report, reconnect=reconnect)

    def open_commands(self, settings: Settings, source: Source, report: Report) -> EgoCommands:
        """Make what sends commands to the process with the client library."""
        from state_sensor_ros.simulators.carla9.source import Carla9Commands, Carla9Source
        assert isinstance(source, Carla9Source)
        return Carla9Commands(source)
