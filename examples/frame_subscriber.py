# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A node that prints the distance from the ego to the nearest actor; it reads ~/frame."""
import math
import signal
import threading

import rclpy
from rclpy.signals import SignalHandlerOptions

from state_sensor_ros.msg import StateFrame


def print_nearest(frame):
    egos = [actor.pose.position for actor in frame.actors if 'ego' in actor.tags]
    near = [(math.dist((p.x, p.y, p.z), (ego.x, ego.y, ego.z)), actor.name) for ego in egos[:1]
            for actor in frame.actors for p in [actor.pose.position] if p is not ego]
    if near:
        print(f'{frame.game_time:.2f} s: {min(near)[1]} at {min(near)[0]:.1f} m', flush=True)


# A KeyboardInterrupt could break into the C++ code of rclpy, which ends with a RuntimeError.
ended = threading.Event()
for number in signal.SIGINT, signal.SIGTERM:
    signal.signal(number, lambda *_: ended.set())
rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
node = rclpy.create_node('distances')
node.create_subscription(StateFrame, '/state_sensor/frame', print_nearest, 10)
while not ended.is_set():
    rclpy.spin_once(node, timeout_sec=0.1)
