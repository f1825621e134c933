# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A node that prints the distance of the ego to its nearest actor, from the driver's ~/frame."""
import math

import rclpy

from state_sensor_ros.msg import StateFrame


def print_nearest(frame):
    ego = next((actor for actor in frame.actors if 'ego' in actor.tags), None)
    others = [actor for actor in frame.actors if actor is not ego]
    if ego and others:
        at = ego.pose.position
        metres, name = min((math.dist((at.x, at.y, at.z), (p.x, p.y, p.z)), actor.name)
                           for actor in others for p in [actor.pose.position])
        print(f'{frame.game_time:.2f} s: {name} at {metres:.1f} m', flush=True)


rclpy.init()
node = rclpy.create_node('distances')
node.create_subscription(StateFrame, '/state_sensor/frame', print_nearest, 10)
rclpy.spin(node)
