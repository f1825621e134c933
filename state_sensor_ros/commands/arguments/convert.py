# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The arguments of `state_sensor convert`."""

from __future__ import annotations

import argparse

from state_sensor_ros.commands.arguments.shared import (
    add_bag_options,
    add_batch_options,
    add_input,
    add_quiet,
    add_selection,
    add_to,
    add_writing_options,
)

_EPILOG = """examples:
  state_sensor convert drive.json drive_bag
  state_sensor convert drive_bag ego.parquet --desired-tags ego --rate 10
  state_sensor convert 'days/**/*.json' bags --to mcap"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    add_input(parser, 'input', metavar='IN', nargs='+', more='; many with --to')
    parser.add_argument('output', metavar='OUT', help='file or folder to write; its '
                        'suffix determines the format. A name without suffix is the folder of a '
                        'bag; - is standard output')
    parser.add_argument('--force', action='store_true', help='overwrite OUT')
    add_quiet(parser)
    add_to(parser, 'many recordings: format to write; OUT is a folder')
    add_batch_options(parser)
    add_bag_options(parser)
    add_selection(parser)
    add_writing_options(parser)
