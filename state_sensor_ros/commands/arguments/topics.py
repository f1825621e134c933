# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The arguments of `state_sensor topics`."""

from __future__ import annotations

import argparse

from state_sensor_ros.commands.arguments.shared import above_zero

_MEASURE_S = 2.0
_EPILOG = """The rate counts the messages received within --seconds; meanwhile the command
subscribes to every topic. This command needs rclpy: source ROS 2, or run `. scripts/env.sh`.

examples:
  state_sensor topics
  state_sensor topics --all
  state_sensor topics --node /front/state_sensor --seconds 5"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('--node', default='', metavar='NAME',
                        help='name of the node, with its namespace (default: all nodes)')
    parser.add_argument('--all', action='store_true',
                        help='list the topics of every actor one by one')
    parser.add_argument('--seconds', type=above_zero, default=_MEASURE_S, metavar='S',
                        help=f'measure the rates for S seconds (default: {_MEASURE_S:g})')
