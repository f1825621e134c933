# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The arguments of `state_sensor view`."""

from __future__ import annotations

import argparse
import os

from state_sensor_ros.commands.arguments.live import add_live_arguments
from state_sensor_ros.commands.arguments.shared import (
    add_bag_options,
    add_ego_tag,
    add_input,
    add_quiet,
    add_selection,
    port,
)

_EPILOG = """Without IN, the viewer shows a live stream until --frames, --seconds or Ctrl-C.

examples:
  state_sensor view drive.json
  state_sensor view --web
  state_sensor view drive_bag --save drive.rrd --start 10 --end 20"""
_DEFAULT_PORT = 9876


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    add_input(parser, 'input', metavar='IN', nargs='?')
    target = parser.add_mutually_exclusive_group()
    target.add_argument('--web', action='store_true',
                        help='serve the viewer to a browser on this machine')
    target.add_argument('--save', metavar='OUT',
                        help='write NAME.rrd, which `rerun NAME.rrd` opens')
    target.add_argument('--no-spawn', action='store_true',
                        help='use a viewer that is already open')
    parser.add_argument('--viewer-port', type=port, metavar='N', help='port of the viewer '
                        f'(default: {_DEFAULT_PORT}; --web: a free one)')
    parser.add_argument('--force', action='store_true', help='overwrite OUT')
    add_quiet(parser)
    parser.add_argument('--names', action=argparse.BooleanOptionalAction, default=False,
                        help='show all names (default: only under the pointer)')
    parser.add_argument('--map', default='', metavar='FILE',
                        help='map to draw, .xodr or .net.xml (default: that of IN)')
    add_bag_options(parser)
    add_ego_tag(parser)
    add_live_arguments(parser)
    add_selection(parser)
    parser.set_defaults(check=_check)


def _check(args: argparse.Namespace) -> str:
    """Object to a recording among the values of an option."""
    taken = (*args.desired_tags, *args.undesired_tags, *args.actors)
    return 'the following arguments are required: IN' if args.input is None and any(
        map(os.path.exists, taken)) else ''
