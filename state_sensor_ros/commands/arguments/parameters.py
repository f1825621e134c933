# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The arguments of `state_sensor parameters`."""

from __future__ import annotations

import argparse

from state_sensor_ros.commands.arguments.shared import completed_by

_EPILOG = """Set a parameter with -p NAME:=VALUE or --params-file FILE; for the node, after
--ros-args. Those marked (D) may change while the node runs.

examples:
  state_sensor parameters
  state_sensor parameters control
  state_sensor parameters ego_tag"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    completed_by(parser.add_argument(
        'name', metavar='NAME', nargs='?', default='',
        help='parameter, or group of parameters (default: all)'), 'subjects')
