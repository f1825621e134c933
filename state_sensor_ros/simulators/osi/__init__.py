# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Programs that output ASAM OSI: traces, and ground truth over UDP (doc/guide/osi.md)."""

from __future__ import annotations

from dataclasses import dataclass
import re

from state_sensor_ros.parameters import parameter

CENTER, REAR_AXLE = 'center', 'rear_axle'
# Port of the UDP receivers of esmini.
_ESMINI_PORT = 48198


@dataclass(frozen=True, slots=True, kw_only=True)
class OsiParameters:
    """Parameters with the prefix ``osi.``."""

    bind: str = parameter('127.0.0.1', 'Address that receives ground truth over UDP.',
                          pattern=re.compile(r'\S+'))
    port: int = parameter(_ESMINI_PORT, 'UDP port that receives ground truth.', low=1, high=65535)
    ego: str = parameter('', 'Name or id of the ego; empty: the host that messages name.')
    velocity_at: str = parameter(CENTER, 'Point whose velocity messages have: the center of the '
                                 'box, as ASAM says, or the rear axle, as esmini sends.',
                                 choices=(CENTER, REAR_AXLE))
