# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""usage: follow_line.py drive.json: drives the ego along its track in a recording."""
import signal
import sys
import threading

from geometry_msgs.msg import TwistStamped
from nav_msgs.msg import Odometry
import numpy as np
import rclpy
from rclpy.signals import SignalHandlerOptions

import state_sensor_ros as sensor

SPEED, LATERAL, BRAKING, REAR = 15.0, 1.5, 1.5, 1.0  # m/s, m/s2; m back to the point on the line


class Line:
    def __init__(self, path):
        track = sensor.open_recording(path).ego_track()
        points = track.position_xyz @ (1, 1j, 0) - REAR * np.exp(1j * track.yaw)  # x + yj
        along = np.append(0.0, np.cumsum(np.abs(np.diff(points))))
        # A point each meter; the curvature is that of five meters.
        self.points = np.interp(np.arange(0.0, along[-1]), along, points)
        smooth = np.convolve(np.pad(self.points, 2, 'edge'), [0.2] * 5, 'valid')
        curvature = np.gradient(np.unwrap(np.angle(np.gradient(smooth))))
        self.speed = np.minimum(SPEED, np.sqrt(LATERAL / np.maximum(np.abs(curvature), 1e-3)))
        self.speed[-1] = self.at = 0
        for i in range(len(self.speed) - 2, -1, -1):
            self.speed[i] = min(self.speed[i], np.sqrt(self.speed[i + 1] ** 2 + 2 * BRAKING))

    def twist(self, odometry):
        position, q = odometry.pose.pose.position, odometry.pose.pose.orientation
        forward = complex(1 - 2 * (q.y * q.y + q.z * q.z), 2 * (q.w * q.z + q.x * q.y))
        speed = max(odometry.twist.twist.linear.x, 0.0)
        ways = (self.points - complex(position.x, position.y)) * abs(forward) / forward + REAR
        self.at += int(np.argmin(np.abs(ways[self.at:self.at + 30 if self.at else None])))
        way = ways[min(self.at + round(2.5 + 0.4 * speed), len(ways) - 1)]
        twist = TwistStamped(header=odometry.header)
        twist.twist.linear.x = self.speed[min(self.at + round(0.7 * speed), len(ways) - 1)]
        twist.twist.angular.z = twist.twist.linear.x * 2 * way.imag / max(abs(way) ** 2, 1.0)
        return twist


if len(sys.argv) != 2:
    sys.exit(print(__doc__, file=sys.stderr) or 2)
# A KeyboardInterrupt could break into the C++ code of rclpy, which ends with a RuntimeError.
ended = threading.Event()
signal.signal(signal.SIGINT, lambda *_: ended.set())
rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
node, line = rclpy.create_node('line_follower'), Line(sys.argv[1])
publisher = node.create_publisher(TwistStamped, '/state_sensor/command_velocity', 1)
node.create_subscription(Odometry, '/state_sensor/ego/odometry',
                         lambda odometry: publisher.publish(line.twist(odometry)), 1)
while not ended.is_set():
    rclpy.spin_once(node, timeout_sec=0.1)
