# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""SUMO as a simulator of the package: live frames, commands and maps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from state_sensor_ros.control.ego_commands import EgoCommands
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import Simulator
from state_sensor_ros.simulators.sumo import SumoParameters
from state_sensor_ros.small_files import share_file
from state_sensor_ros.source import Report, Source

_SHIPPED = 'resource', 'sumo', 'grid.sumocfg'


class SumoSimulator(Simulator):
    """Eclipse SUMO, started or joined, and its FCD output."""

    name = 'sumo'
    map_files = MappingProxyType(dict.fromkeys(
        ('.net.xml', '.net.xml.gz'), 'state_sensor_ros.simulators.sumo.map:read_lanes'))
    parameters = SumoParameters
    is_paced = True
    takes_commands = True

    def address(self, settings: Settings) -> str:
        """Return the scenario, or host and port of a running SUMO."""
        own = settings.of(SumoParameters)
        return f'{own.host}:{own.port}' if own.port else own.config or 'the shipped scenario'

    def check(self, settings: Settings) -> None:
        """Check that the files exist, and that SUMO is either started or joined."""
        own = settings.of(SumoParameters)
        if own.port and own.config:
            raise ConfigError('sumo.port', str(own.port), '0 with sumo.config, which starts SUMO')
        for name, path in (('sumo.config', own.config), ('sumo.net', own.net)):
            if path and not Path(path).is_file():
                raise ConfigError(name, f'no such file: {path}', 'an existing file')
        if settings.control_input and not own.ego:
            raise ConfigError('sumo.ego', "''", '`first` or the id of a vehicle if '
                              'control_input is set')

    def open_source(self, settings: Settings, report: Report, *,
                    reconnect: bool = True) -> Source:
        """Make the source; SUMO starts when its frames are iterated over."""
        from state_sensor_ros.simulators.sumo.sumo_process import StartedSumo, SumoSource
        own = settings.of(SumoParameters)
        if own.port:
            return SumoSource(own, settings, report, reconnect=reconnect)
        own = replace(own, config=own.config or str(share_file(*_SHIPPED)))
        return StartedSumo(own, settings, report, reconnect=reconnect)

    def open_commands(self, settings: Settings, source: Source, report: Report) -> EgoCommands:
        """Make what sends commands to the process that runs SUMO."""
        from state_sensor_ros.simulators.sumo.sumo_process import SumoCommands, SumoSource
        assert isinstance(source, SumoSource)
        return SumoCommands(source)
