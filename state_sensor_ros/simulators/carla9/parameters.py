# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The parameters that only CARLA 0.9 has."""

from __future__ import annotations

from dataclasses import dataclass
import re

from state_sensor_ros.simulators import LIVE, parameter


@dataclass(frozen=True, slots=True)
class Carla9Parameters:
    """Parameters with the prefix ``carla9.``."""

    host: str = parameter('127.0.0.1', 'Host of the server.', pattern=re.compile(r'\S+'),
                          used_by=LIVE)
    port: int = parameter(2000, 'RPC port of the server; it streams on the next one.',
                          low=1, high=65533, used_by=LIVE)
    timeout: float = parameter(5.0, 'Longest wait for a reply of the server, s.',
                               low=0.1, high=600.0, used_by=LIVE)
    ego: str = parameter('', 'Role, id or name of the ego; empty: `hero`, else `ego_vehicle`.')
    tick: bool = parameter(False, 'Set synchronous mode and tick at `rate`; otherwise follow '
                           'the server or another client.', used_by=LIVE)
    step: float = parameter(0.05, 'Simulated time of a step with `carla9.tick`, s.',
                            low=0.001, high=0.1, used_by=LIVE)
    ackermann: bool = parameter(False, "Let the server's controller follow commanded speeds; "
                                'needs CARLA 0.9.14 or later.', used_by=LIVE)
    python: str = parameter('', "Python with CARLA's client library, a path or name; empty: the "
                            'current one, else the first on the path that has it.', used_by=LIVE)
    static: bool = parameter(False, 'Add parked vehicles and other objects of the level.')


def has_ackermann(release: str) -> bool:
    """Return whether a version of CARLA follows speeds."""
    # release: such as ``0.9.16``, or with more after it; another one counts as newer.
    numbers = re.match(r'(\d+)\.(\d+)\.(\d+)', release)
    return numbers is None or tuple(map(int, numbers.groups())) >= (0, 9, 14)
