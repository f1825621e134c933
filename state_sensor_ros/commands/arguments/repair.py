# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The arguments of `state_sensor repair`."""

from __future__ import annotations

import argparse

from state_sensor_ros.commands.arguments.shared import add_bag_limit, add_quiet

_EPILOG = """A command of this package that is killed leaves .OUT.part beside OUT: a truncated
trajectory, table in CSV or trace of OSI, or a folder with a bag. `ros2 bag record`
leaves a bag without metadata.yaml. All complete frames of a trajectory and all
readable messages of a bag are copied unchanged; one line reports what is lost.

examples:
  state_sensor repair .drive.json.part drive.json
  state_sensor repair .drive.csv.part drive.csv
  state_sensor repair cut_bag whole_bag"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('part', metavar='PART', help='damaged trajectory, recorder log, bag '
                        'folder or storage file of a bag; recognized by its content')
    parser.add_argument('output', metavar='OUT', help='NAME.json (or - for standard output) for a '
                        'trajectory, a folder for a bag, NAME.log for a recorder log')
    parser.add_argument('--force', action='store_true', help='overwrite OUT')
    add_quiet(parser)
    add_bag_limit(parser)
