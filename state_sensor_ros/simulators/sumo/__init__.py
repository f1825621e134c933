# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Eclipse SUMO: started in a process of its own, or joined; its FCD output."""

from __future__ import annotations

from dataclasses import dataclass
import re

from state_sensor_ros.parameters import parameter


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
    types: str = parameter('', 'File with vehicle types (vType) for a recording; they take '
                           'precedence over those of its own files.')
    net: str = parameter('', 'Network file; empty: that of the scenario or beside the recording.')
