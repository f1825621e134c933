# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA 0.8: its parameters, measurements of a server, and datasets: doc/protocol/carla.md."""

from __future__ import annotations

from dataclasses import dataclass
import re

from state_sensor_ros.parameters import parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class CarlaParameters:
    """Parameters with the prefix ``carla.``."""

    relay_port: int = parameter(
        0, 'First of three ports that relay your own CARLA client to the server, unchanged; '
        '0 opens none.', low=0, high=65533)
    relay_bind: str = parameter('127.0.0.1', 'Address that the relay listens on.',
                                pattern=re.compile(r'\S+'))
    start_spot: int = parameter(
        0, 'Index of the start spot in an episode that the node requests.',
        low=0, high=4294967295)
    camera_tf: bool = parameter(False, 'Publish the frames of the cameras on /tf_static.')
    camera_poses: tuple[float, ...] = parameter(
        (0.0,) * 18, 'Poses of the central, left and right cameras on the player, each x y z (m) '
        'roll pitch yaw (rad); six zeros: as in metadata.json.', length=18)
