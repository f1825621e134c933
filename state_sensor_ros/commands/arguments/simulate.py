# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The arguments of `state_sensor simulate`; each simulator declares its own."""

from __future__ import annotations

import argparse

from state_sensor_ros.commands.arguments.live import add_source_argument
from state_sensor_ros.commands.arguments.shared import add_quiet, count
from state_sensor_ros.commands.arguments.synth import add_traffic_arguments, frame_rate
from state_sensor_ros.emulator.threaded_server import Rate
from state_sensor_ros.simulators.mock_server_options import (
    MockServerOptions,
    Objection,
    whole_number,
    without_file,
)
from state_sensor_ros.simulators.simulator_list import find_simulator, simulators

_EPILOG = """examples:
  state_sensor simulate drive.json --loop --control-port 8999
  state_sensor simulate --vehicles 100 --rate max"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('file', metavar='FILE', nargs='?',
                        help='recording to serve, - is standard input (default: traffic)')
    mock_servers = {name: simulator for name, simulator in simulators().items()
                    if simulator.has_mock_server}
    add_source_argument(parser, mock_servers)
    parser.add_argument('--port', type=lambda text: whole_number(text, 0, 65535),
                        help="port to serve on; 0: a free one (default: the simulator's)")
    parser.add_argument('--bind', default='127.0.0.1', metavar='ADDRESS',
                        help='address to listen on (default: 127.0.0.1)')
    parser.add_argument('--rate', type=_rate, default='real', metavar='real|max|HZ',
                        help='real time (default), as fast as possible, or frames per second')
    parser.add_argument('--frames', type=count, metavar='N', help='end after N frames')
    add_quiet(parser, 'do not print the addresses')
    groups = [MockServerOptions(parser, 'synthetic traffic', without_file)]
    add_traffic_arguments(groups[0].add)
    for name, simulator in mock_servers.items():
        groups.append(MockServerOptions(parser, f'--source {name}', _of_simulator(name)))
        simulator.add_mock_server_options(groups[-1])

    def check(args: argparse.Namespace) -> str:
        if find_simulator(args.source).name not in mock_servers:
            return (f'--source {args.source} has no mock simulator; expected one of '
                    f'{", ".join(mock_servers)}')
        return next((f'{", ".join(names)}: {objection}' for group in groups
                     for objection, names in group.refused(args).items()), '')

    parser.set_defaults(check=check)


def _rate(text: str) -> Rate:
    if text == 'real' or text == 'max':
        return 'real' if text == 'real' else 'max'
    return frame_rate(text)


def _of_simulator(name: str) -> Objection:
    """Return the objection to options of the simulator ``name`` when another one is selected."""
    return lambda args: '' if find_simulator(args.source).name == name else \
        f'only for --source {name}, not for {args.source}'
