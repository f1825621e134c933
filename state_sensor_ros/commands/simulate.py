# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor simulate`: the mock server of a simulator as a program."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Sequence
from typing import NoReturn

from state_sensor_ros.commands.format_options import read_options_of
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.live import add_source_argument
from state_sensor_ros.commands.options import add_quiet, count
from state_sensor_ros.commands.parameter_options import add_any_parameter
from state_sensor_ros.commands.synth import add_traffic_arguments, frame_rate
from state_sensor_ros.emulator.threaded_server import Rate
from state_sensor_ros.files.whole.output import print_output
from state_sensor_ros.simulators.mock_server_options import (
    MockServerOptions,
    Objection,
    whole_number,
    without_file,
)
from state_sensor_ros.simulators.simulator_list import find_simulator, simulators

_EPILOG = """examples:
  state_sensor simulate
  state_sensor simulate drive.json --loop --control-port 8999
  state_sensor simulate --vehicles 100 --rate max"""


def _rate(text: str) -> Rate:
    if text == 'real' or text == 'max':
        return 'real' if text == 'real' else 'max'
    return frame_rate(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Declare the options.

    :param parser: parser of this sub-command.
    """
    parser.epilog = _EPILOG
    parser.add_argument('file', metavar='FILE', nargs='?',
                        help='recording to serve, but not a table; - is a trajectory on standard '
                        'input (default: synthetic traffic)')
    mock_servers = {name: simulator for name, simulator in simulators().items()
                    if simulator.has_mock_server}
    add_source_argument(parser, mock_servers)
    parser.add_argument('--port', type=lambda text: whole_number(text, 0, 65535),
                        help='port to serve the frames on; 0 picks a free one (default: that of '
                        'the simulator)')
    parser.add_argument('--bind', default='127.0.0.1', metavar='ADDRESS',
                        help='address to listen on (default: 127.0.0.1)')
    parser.add_argument('--rate', type=_rate, default='real', metavar='real|max|HZ',
                        help='real time (default), as fast as possible, or HZ frames per second')
    parser.add_argument('--frames', type=count, metavar='N', help='end after N frames')
    add_quiet(parser, 'do not print the addresses')
    add_any_parameter(parser)
    traffic = MockServerOptions(parser, 'synthetic traffic', without_file)
    add_traffic_arguments(traffic.add)
    groups = [traffic]
    for name, simulator in mock_servers.items():
        groups.append(MockServerOptions(parser, f'--source {name}', _of_simulator(name)))
        simulator.add_mock_server_options(groups[-1])
    parser.set_defaults(complete=lambda args: _complete(args, mock_servers, groups, parser.error))


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Serve until everything is sent; a server of samples on request, until a signal.

    :param args: the parsed options.
    :param interruption: signal handling of the program.
    :raises StateSensorError: if the file or a port is not usable.
    """
    args.complete(args)
    args.read_options = read_options_of(args, args.file)
    interruption.unblock_errors()
    interruption.is_endless = True
    with find_simulator(args.source).mock_server(args) as server:
        for name, port in server.addresses():
            if not args.quiet:
                print_output(f'{name} on {args.bind}:{port}')
        server.wait()


def _of_simulator(name: str) -> Objection:
    """Return the objection to options of the simulator ``name`` when another one is selected."""
    return lambda args: '' if find_simulator(args.source).name == name else \
        f'only for --source {name}, not for {args.source}'


def _complete(args: argparse.Namespace, mock_servers: Collection[str],
              groups: Sequence[MockServerOptions], refuse: Callable[[str], NoReturn]) -> None:
    """Set the options that are not given; refuse those without effect."""
    if find_simulator(args.source).name not in mock_servers:
        refuse(f'--source {args.source} has no mock simulator; expected one of '
               f'{", ".join(mock_servers)}')
    for group in groups:
        for objection, names in group.complete(args).items():
            refuse(f'{", ".join(names)}: {objection}')
