# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""monoDrive as one of the simulators."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import Simulator
from state_sensor_ros.simulators.monodrive.control import MonodriveCommands
from state_sensor_ros.simulators.monodrive.sensor_config import read_sensor_config
from state_sensor_ros.simulators.monodrive.source import ConfiguredSource, SensorPort
from state_sensor_ros.source import Report

if TYPE_CHECKING:
    from state_sensor_ros.control.ego_commands import EgoCommands
    from state_sensor_ros.source import Source


class MonodriveSimulator(Simulator):
    """The State sensor on a TCP port, and Replay Mode trajectories."""

    name = 'monodrive'
    default_port = 8700
    has_wall_time = takes_commands = True

    def check(self, settings: Settings) -> None:
        """Check that a configured sensor has a tag: the simulator sends nothing without."""
        if settings.control_input and not settings.control_port:
            raise ConfigError('control_port', '0', 'the port that takes commands, such as 8999, '
                              'if control_input is set')
        if settings.control_port and not any(settings.desired_tags):
            raise ConfigError('desired_tags', 'an empty list',
                              'at least one tag if control_port is set: the simulator sends '
                              'nothing for an empty list')

    def parameters_of_config(self, path: str) -> Mapping[str, object]:
        """Return what the State entry of the simulator's sensor JSON sets."""
        return read_sensor_config(Path(path))

    def open_source(self, settings: Settings, report: Report, *,
                    reconnect: bool = True) -> Source:
        """Make the source of the sensor port; with a control port, configure the sensor first."""
        kind = ConfiguredSource if settings.control_port else SensorPort
        return kind(settings, report, reconnect=reconnect)

    def open_commands(self, settings: Settings, source: Source, report: Report) -> EgoCommands:
        """Make what sends commands on the control port."""
        assert isinstance(source, ConfiguredSource)
        return MonodriveCommands(source.client)
