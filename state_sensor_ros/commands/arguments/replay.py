# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The arguments of `state_sensor replay`."""

from __future__ import annotations

import argparse

from state_sensor_ros.commands.arguments.live import add_stream_arguments
from state_sensor_ros.commands.arguments.shared import add_quiet, count, index, number, port
from state_sensor_ros.settings import DEFAULTS

_CONTROL_PORT = 8999
_EPILOG = """On a terminal, the space bar pauses and resumes, and b reverses the direction.
Ctrl-C ends the replay after the outstanding reply and closes both connections.
The simulator then stays at the current frame, ready for another client, and keeps
the trajectory and the sensor: the protocol has no command to remove them.

examples:
  state_sensor replay drive.json --rate 2
  state_sensor replay drive_bag --host 192.168.1.20 --loop"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('file', metavar='FILE', help='recording to play, but not a table; - is a '
                        'trajectory on standard input')
    add_quiet(parser)
    add_stream_arguments(parser)
    parser.set_defaults(host=DEFAULTS.host, port=DEFAULTS.port, check=_check)
    parser.add_argument('--control-port', type=port, default=_CONTROL_PORT, metavar='PORT',
                        help=f'control port of the simulator (default: {_CONTROL_PORT})')
    parser.add_argument('--rate', type=number, default=1.0, metavar='R',
                        help='playback speed; 1 = real time, 0 = as fast as possible (default: 1)')
    parser.add_argument('--step', type=_step, default=1, metavar='N',
                        help='frames per step; a negative number plays backwards (default: 1)')
    parser.add_argument('--start', type=index, metavar='N',
                        help='first frame to play (default: the first; backwards, the last)')
    parser.add_argument('--loop', action='store_true',
                        help='repeat until Ctrl-C')
    parser.add_argument('--backwards', action='store_true', help='play backwards')
    parser.add_argument('--no-sensor', action='store_true',
                        help='only send steps; other clients read the sensor')
    parser.add_argument('--simulator', metavar='CONFIG', help='JSON file with map and '
                        'simulation_mode to send first (default: none)')


def _check(args: argparse.Namespace) -> str:
    return '--port is for a sensor; --no-sensor only steps' \
        if args.no_sensor and 'port' in args.given else ''


def _step(text: str) -> int:
    """Return the number of frames per step, negative for backwards."""
    step = count(text.removeprefix('-'))
    return -step if text.startswith('-') else step
