# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A topic of the simulator toy: a sphere for each actor, whose color shows its speed.

A value that changes in each frame is a slot of a table; the table has the dtype of its fields.
"""

import numpy as np

from state_sensor_ros.cdr.templates import Given, MessageInstance, Slot, Table
from state_sensor_ros.topics.tables import header, xyz
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.topic_encoder import TopicEncoder

# Rows are actors. The fields of std_msgs/ColorRGBA are float32, those of a position float64.
PLACES = Table('toy places', np.float64, 3)
COLORS = Table('toy colors', np.float32, 4)
FASTEST_M_S = 2.0
SPHERE = 2


class SpeedEncoder(TopicEncoder):
    """~/toy_speeds: one MarkerArray for each frame, from green to red."""

    topics = (Topic('~/toy_speeds', 'visualization_msgs/msg/MarkerArray'),)

    def set_up(self, settings):
        """Make the templates; called once."""
        self.sphere = self.element('visualization_msgs/msg/Marker', {
            'header': header(settings.global_frame), 'ns': 'speeds', 'id': Given('id'),
            'type': SPHERE, 'pose': {'position': xyz(PLACES, 0), 'orientation': {'w': 1.0}},
            'scale': dict.fromkeys('xyz', 0.5),
            'color': {name: Slot(COLORS, i) for i, name in enumerate('rgba')},
            # A display removes the marker of an actor that is gone.
            'lifetime': {'sec': 1}})
        self.markers = self.array({})

    def blocks(self, now):
        """Lay out a marker for each actor that has a pose; called when the actors change."""
        rows = np.flatnonzero(now.usable)
        spheres = [MessageInstance(self.sphere, {'id': now.actor_list.actors[row].id})
                   for row in rows.tolist()]
        return self.markers.blocks(spheres, {PLACES: rows, COLORS: rows}, self.topics)

    def numbers(self, now, numbers):
        """Compute the tables of all actors at once; called in each frame."""
        speeds = np.linalg.norm(now.frame.velocity_xyz, axis=1)
        red = np.clip(np.nan_to_num(speeds) / FASTEST_M_S, 0.0, 1.0)
        numbers[PLACES] = now.frame.position_xyz
        numbers[COLORS] = np.stack((red, 1.0 - red, 0.0 * red, 0.0 * red + 1.0), axis=1).astype(
            np.float32)
