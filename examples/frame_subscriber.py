# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""A node that prints the distance of the ego to its nearest actor, from the driver's ~/frame."""
import math

import rclpy
from rclpy.node import Node

from state_sensor_ros.msg import StateFrame


class Distances(Node):

    def __init__(self):
        super().__init__('distances')
        self.create_subscription(StateFrame, '/state_sensor/frame', self.on_frame, 10)

    def on_frame(self, frame):
        ego = next((actor for actor in frame.actors if 'ego' in actor.tags), None)
        others = [actor for actor in frame.actors if actor is not ego]
        if ego is None or not others:
            return
        at = ego.pose.position
        metres, name = min((math.dist((at.x, at.y, at.z), (p.x, p.y, p.z)), actor.name)
                           for actor in others for p in [actor.pose.position])
        print(f'{frame.game_time:.2f} s: {name} at {metres:.1f} m', flush=True)


rclpy.init()
rclpy.spin(Distances())
