# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Programs that output ASAM OSI, as a simulator."""

from __future__ import annotations

from types import MappingProxyType

from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import Simulator
from state_sensor_ros.simulators.osi import OsiParameters
from state_sensor_ros.simulators.osi.source import OsiSource
from state_sensor_ros.source import Report, Source


class OsiSimulator(Simulator):
    """esmini and other programs that output ground truth of ASAM OSI."""

    name = 'osi'
    parameters = OsiParameters
    map_files = MappingProxyType({
        '.osm': 'state_sensor_ros.topics.lanelet2:read_lanelets',
        '.xodr': 'state_sensor_ros.simulators.open_drive:read_lanes'})

    def address(self, settings: Settings) -> str:
        """Return the port at which messages are received."""
        own = settings.of(OsiParameters)
        return f'UDP {own.bind}:{own.port}'

    def open_source(self, settings: Settings, report: Report, *,
                    reconnect: bool = True) -> Source:
        """Make the source; the port is opened when its frames are iterated over."""
        return OsiSource(settings, self.address(settings), report, reconnect=reconnect)
