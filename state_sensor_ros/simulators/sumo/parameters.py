# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The parameters that only SUMO has."""

from __future__ import annotations

from dataclasses import dataclass
import re

from state_sensor_ros.parameters import LIVE, parameter, RECORDED

# A longer step is a mistake of unit: milliseconds for seconds.
_LONGEST_STEP_S = 60.0


@dataclass(frozen=True, slots=True)
class SumoParameters:
    """Parameters with the prefix ``sumo.``."""

    config: str = parameter('', 'Scenario (.sumocfg) to start; empty: the included one.',
                            used_by=LIVE)
    host: str = parameter('127.0.0.1', 'Host of a running SUMO.', pattern=re.compile(r'\S+'),
                          used_by=LIVE)
    port: int = parameter(0, 'TraCI port of a running SUMO to join; 0 starts one.',
                          low=0, high=65535, used_by=LIVE,
                          libraries={'0': ('libsumo', 'sumolib'), '': ('traci', 'sumolib')})
    order: int = parameter(1, 'Order of this client among all clients of a running SUMO.',
                           low=0, high=1000000, used_by=LIVE)
    step_it: bool = parameter(False, 'Pace a running SUMO by `rate`; otherwise follow its other '
                              'clients.', used_by=LIVE)
    release: str = parameter('restore', 'When a running SUMO regains a driven ego: at once, or '
                             'after braking to a stop; modes and route are restored.',
                             choices=('restore', 'stop'), used_by=LIVE)
    ego: str = parameter('', 'Id of the ego; `first`: the first vehicle, and the next one after '
                         'it has left.')
    step: float = parameter(0.05, 'Step of a newly started SUMO, simulated s; it replaces '
                            'that of the scenario.', low=0.001, high=_LONGEST_STEP_S, used_by=LIVE)
    seed: int = parameter(0, 'Random seed of a newly started SUMO.', low=0,
                          high=2147483647, used_by=LIVE)
    args: tuple[str, ...] = parameter(
        (), 'Additional command-line arguments of a newly started SUMO.', used_by=LIVE)
    types: str = parameter('', 'File with vehicle types (vType) for a recording; they take '
                           'precedence over those of its own files.', used_by=RECORDED)
    net: str = parameter('', 'Network file; empty: that of the scenario or beside the recording.')
