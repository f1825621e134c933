# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The arguments of `state_sensor echo`."""

from __future__ import annotations

import argparse

_EPILOG = """Ctrl-C ends the command. It needs rclpy: source ROS 2, or run `. scripts/env.sh`.

examples:
  state_sensor echo ego/odometry --once
  state_sensor echo /tf
  state_sensor echo frame --csv > actors.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('topic', metavar='TOPIC', help='full name, or the name within the '
                        'node, such as frame for ~/frame')
    parser.add_argument('--once', action='store_true', help='print one message and exit')
    parser.add_argument('--csv', action='store_true', help='print CSV, a line for each message '
                        '(or for each item of its first array, such as actors)')
    parser.add_argument('--node', default='', metavar='NAME',
                        help='name of the node, with its namespace (default: the only node)')
    parser.add_argument('-q', '--quiet', action='store_true',
                        help='do not print what the command is waiting for')
