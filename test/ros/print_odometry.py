# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Print frames and speed of the first odometry received; run in another distribution."""

import sys

from nav_msgs.msg import Odometry
import rclpy


def main():
    """Wait for one message."""
    rclpy.init()
    node = rclpy.create_node('subscriber')
    received = []
    node.create_subscription(Odometry, '/state_sensor/ego/odometry', received.append, 10)
    while not received:
        rclpy.spin_once(node, timeout_sec=0.1)
    message = received[0]
    sys.stdout.write(f'{message.header.frame_id} {message.child_frame_id} '
                     f'{message.twist.twist.linear.x}\n')
    rclpy.shutdown()


if __name__ == '__main__':
    main()
