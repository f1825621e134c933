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

from collections.abc import Mapping
from dataclasses import dataclass
import re
from types import MappingProxyType
from typing import ClassVar

from state_sensor_ros.simulators import Format, LIVE, parameter, Simulator

_LOG = 'state_sensor_ros.simulators.carla9.recording'


@dataclass(frozen=True, slots=True)
class Carla9Parameters:
    """What only CARLA 0.9 needs."""

    host: str = parameter('127.0.0.1', 'Host of the server.', pattern=re.compile(r'\S+'),
                          used_by=LIVE)
    port: int = parameter(2000, 'RPC port of the server; it streams on the next one.',
                          low=1, high=65533, used_by=LIVE)
    timeout: float = parameter(5.0, 'Longest time of a reply of the server, s.',
                               low=0.1, high=600.0, used_by=LIVE)
    ego: str = parameter('', 'Role name or id of the ego; empty: `hero`, else `ego_vehicle`.')
    tick: bool = parameter(False, 'Set synchronous mode and tick at `rate`; otherwise follow the '
                           'server or the client that ticks.', used_by=LIVE)
    step: float = parameter(0.05, 'Simulated time of a step if `carla9.tick` is set, s.',
                            low=0.001, high=0.1, used_by=LIVE)
    static: bool = parameter(False, 'Add parked vehicles and other objects of the level.')


class Carla9Simulator(Simulator):
    """CARLA 0.9, through its client library, and its recorder logs."""

    name: ClassVar[str] = 'carla9'
    parameters: ClassVar[type] = Carla9Parameters
    uses: ClassVar[frozenset[str]] = frozenset({'rate'})
    aliases: ClassVar[Mapping[str, str]] = MappingProxyType({'host': 'host', 'port': 'port'})
    formats: ClassVar[tuple[Format, ...]] = (Format(
        name='carla-log', noun='a recorder log of CARLA', suffixes=('.log',), any_name=True,
        recognised_by=f'{_LOG}:is_log', reader=f'{_LOG}:open_log', repair=f'{_LOG}:copy_whole',
        reads=frozenset(('max_bag_bytes', 'carla9.ego', 'carla9.static'))),)
