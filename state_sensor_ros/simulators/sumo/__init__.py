# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Eclipse SUMO: started in a process of its own, or joined; its FCD output and its maps.

``steps`` makes a frame of a step: position, velocity, yaw rate, lane. ``commands`` drives the ego.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
import re
from types import MappingProxyType

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.parameters import parameter
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import Simulator
from state_sensor_ros.small_files import share_file
from state_sensor_ros.source import Report, Source

_SHIPPED = 'resource', 'sumo', 'grid.sumocfg'


@dataclass(frozen=True, slots=True)
class SumoParameters:
    """Parameters with the prefix ``sumo.``."""

    config: str = parameter('', 'Scenario (.sumocfg) to start; empty: the included one.')
    host: str = parameter('127.0.0.1', 'Host of a running SUMO.', pattern=re.compile(r'\S+'))
    port: int = parameter(
        0, 'TraCI port of a running SUMO to join; 0 starts one.', low=0, high=65535,
        libraries={'0': ('libsumo', 'sumolib'), '': ('traci', 'sumolib')})
    order: int = parameter(1, 'Order of this client among all clients of a running SUMO.', low=0,
                           high=1000000)
    step_it: bool = parameter(
        False, 'Pace a running SUMO by `rate`; otherwise follow its other clients.')
    release: str = parameter(
        'restore', 'When a running SUMO regains a driven ego: at once, or after braking to a '
        'stop; modes and route are restored.', choices=('restore', 'stop'))
    ego: str = parameter('', 'Id of the ego; `first`: the first vehicle, and the next one after '
                         'it has left.')
    # A longer step is a mistake of unit: milliseconds for seconds.
    step: float = parameter(0.05, 'Step of a newly started SUMO, simulated s; it replaces '
                            'that of the scenario.', low=0.001, high=60.0)
    seed: int = parameter(0, 'Random seed of a newly started SUMO.', low=0, high=2147483647)
    args: tuple[str, ...] = parameter(
        (), 'Additional command-line arguments of a newly started SUMO.')
    net: str = parameter('', 'Network file; empty: that of the scenario or beside the recording.')


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
