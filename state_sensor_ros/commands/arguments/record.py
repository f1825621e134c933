# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The arguments of `state_sensor record`."""

from __future__ import annotations

import argparse

from state_sensor_ros.commands.arguments.live import add_live_arguments
from state_sensor_ros.commands.arguments.shared import (
    add_quiet,
    add_selection,
    add_to,
    add_writing_options,
)

_EPILOG = """OUT is created at the end; until then, and after a crash, .OUT.part has the frames.

examples:
  state_sensor record drive_bag --desired-tags vehicle ego
  state_sensor record town.mcap --frames 500 -p ego_frame:=base_link"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('out', metavar='OUT', help='file or folder; the suffix sets its '
                        'format. Without one it is the folder of a bag; - is standard output')
    add_live_arguments(parser)
    parser.add_argument('--once', action='store_true',
                        help='end when the simulator closes the connection')
    parser.add_argument('--force', action='store_true', help='overwrite OUT')
    add_to(parser, 'format of OUT if it has no suffix')
    add_quiet(parser)
    add_selection(parser, has_times=False)
    add_writing_options(parser)
