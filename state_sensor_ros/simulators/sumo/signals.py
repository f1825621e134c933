# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""States of SUMO's traffic lights, at the stop lines of the controlled lanes."""

from __future__ import annotations

from collections.abc import Mapping
import math

import numpy as np

from state_sensor_ros.simulators import LIGHT_GREEN, LIGHT_RED, LIGHT_YELLOW, TrafficLights
from state_sensor_ros.simulators.sumo.road_network import RoadNetwork

# Letters of SUMO's states; the others (off, blinking) have no color.
_COLORS = {'g': LIGHT_GREEN, 'G': LIGHT_GREEN, 'y': LIGHT_YELLOW, 'Y': LIGHT_YELLOW,
           'r': LIGHT_RED, 'R': LIGHT_RED, 'u': LIGHT_RED}
_NO_COLOR = -1


class Signals:
    """
    The lights of a network: one for each controlled lane, one a link if its links differ.

    :param network: roads with their stop lines.
    :ivar n_left_out: lights of the last frame that show no color.
    """

    def __init__(self, network: RoadNetwork) -> None:
        self.n_left_out = 0
        lines = network.stop_lines
        self._links = [(line.light, link) for line in lines for link in line.links]
        n_links = [len(line.links) for line in lines]
        self._line_of_link = np.repeat(np.arange(len(lines)), n_links)
        self._first_links = np.cumsum([0, *n_links])[:-1]
        self._is_split = np.array([line.is_split for line in lines], bool)
        self._ids = np.array([line.lane for line in lines], np.int64)
        self._poses = np.array(
            [(*line.position_xyz, 0, 0, math.sin(line.yaw / 2), math.cos(line.yaw / 2))
             for line in lines], float).reshape(-1, 7)
        self._last: TrafficLights | None = None

    def lights(self, states: Mapping[str, str] | None) -> TrafficLights | None:
        """
        Return the lights of a frame.

        :param states: letters of each traffic light by its id, None if they have not changed.
        """
        if states is None:
            return self._last
        colors = np.array([_COLORS.get(states.get(light, '')[link:link + 1], _NO_COLOR)
                           for light, link in self._links], np.int64)
        line_of_link, first_links = self._line_of_link, self._first_links
        # A lane that was split once stays so: a light does not come and go with the others.
        self._is_split[line_of_link[colors != colors[first_links][line_of_link]]] = True
        is_shown = self._is_split[line_of_link]
        is_shown[first_links] = True
        self.n_left_out = int((is_shown & (colors == _NO_COLOR)).sum())
        shown = np.flatnonzero(is_shown & (colors != _NO_COLOR))
        self._last = TrafficLights(
            self._ids[line_of_link[shown]],
            tuple(f'{light}/{link}' for light, link in (self._links[i] for i in shown)),
            colors[shown].astype(np.uint8), self._poses[line_of_link[shown]])
        return self._last
