# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A005
"""The arguments of `state_sensor inspect`."""

from __future__ import annotations

import argparse

from state_sensor_ros.commands.arguments.live import add_live_arguments
from state_sensor_ros.commands.arguments.shared import (
    add_bag_options,
    add_batch_options,
    add_ego_tag,
    add_input,
    add_quiet,
    add_selection,
)

_EPILOG = """examples:
  state_sensor inspect drive.json
  state_sensor inspect drive_bag --json --start 10 --actors EgoVehicle_0
  state_sensor inspect 'days/**/*.json' --parquet days.parquet"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    add_input(parser, 'file', metavar='FILE', nargs='*', more='; also folders of them or globs')
    parser.add_argument('--live', action='store_true',
                        help='read a live stream until --frames, --seconds or Ctrl-C')
    parser.add_argument('--json', action='store_true',
                        help='print JSON; `replayable` is null if there is no Replay Mode')
    parser.add_argument('--safety', action='store_true',
                        help='add safety measures and events of the ego')
    parser.add_argument('--parquet', metavar='OUT',
                        help='write a table with a row for each recording')
    parser.add_argument('--force', action='store_true', help='overwrite OUT')
    add_quiet(parser, 'print neither progress nor a line about OUT')
    add_batch_options(parser)
    add_bag_options(parser)
    add_ego_tag(parser)
    add_live_arguments(parser)
    add_selection(parser)
    parser.set_defaults(check=_check)


def _check(args: argparse.Namespace) -> str:
    if args.live and args.file:
        return f'--live reads a simulator, FILE {args.file[0]} a recording: leave one of them out'
    return '' if args.live or args.file else 'expected FILE, or --live for a running simulator'
