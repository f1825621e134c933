# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""States of SUMO's traffic lights, one at the stop line of each controlled lane."""

from __future__ import annotations

from collections.abc import Mapping
import math

import numpy as np

from state_sensor_ros.simulators import LIGHT_GREEN, LIGHT_RED, LIGHT_YELLOW, TrafficLights
from state_sensor_ros.simulators.sumo.road_network import RoadNetwork

# Letters of SUMO's states; the others (off, blinking) have no colour.
_STATES = {'g': LIGHT_GREEN, 'G': LIGHT_GREEN, 'y': LIGHT_YELLOW, 'Y': LIGHT_YELLOW,
           'r': LIGHT_RED, 'R': LIGHT_RED, 'u': LIGHT_RED}


class Signals:
    """
    The lights of a network.

    :param network: roads with their stop lines.
    :ivar n_left_out: lights of the last frame that show no colour.
    """

    def __init__(self, network: RoadNetwork) -> None:
        self.n_left_out = 0
        self._lines = network.stop_lines
        self._ids = np.array([line.lane for line in self._lines], np.int64)
        self._names = [f'{line.light}/{line.link}' for line in self._lines]
        self._poses = np.array(
            [(*line.position_xyz, 0, 0, math.sin(line.yaw / 2), math.cos(line.yaw / 2))
             for line in self._lines], float).reshape(-1, 7)
        self._last: TrafficLights | None = None

    def lights(self, states: Mapping[str, str] | None) -> TrafficLights | None:
        """
        Return the lights of a frame.

        :param states: letters of each traffic light by its id, None if they have not changed.
        """
        if states is None:
            return self._last
        letters = [states.get(line.light, '')[line.link:line.link + 1] for line in self._lines]
        shown = [i for i, letter in enumerate(letters) if letter in _STATES]
        self.n_left_out = len(letters) - len(shown)
        self._last = TrafficLights(
            self._ids[shown], tuple(self._names[i] for i in shown),
            np.array([_STATES[letters[i]] for i in shown], np.uint8), self._poses[shown])
        return self._last
