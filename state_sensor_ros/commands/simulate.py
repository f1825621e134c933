# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor simulate`: the stand-in of a simulator as a program."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import NoReturn

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.options import add_quiet, count
from state_sensor_ros.commands.synth import add_traffic_arguments, frame_rate
from state_sensor_ros.emulator.threaded_server import Rate
from state_sensor_ros.simulators.opening import by_protocol
from state_sensor_ros.simulators.stand_in_options import (
    Objection,
    StandInOptions,
    whole_number,
    without_file,
)


def _rate(text: str) -> Rate:
    if text == 'real' or text == 'max':
        return 'real' if text == 'real' else 'max'
    return frame_rate(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Declare the options.

    :param parser: of this sub-command.
    """
    parser.add_argument('file', metavar='FILE', nargs='?',
                        help='trajectory (- for standard input), bag or dataset of CARLA '
                        '(default: synthetic traffic)')
    parser.add_argument('--protocol', choices=by_protocol(), default='monodrive',
                        help='whose simulator to stand in for (default: monodrive)')
    parser.add_argument('--port', type=lambda text: whole_number(text, 0, 65535),
                        help='sensor port, 0 picks a free one (default: 8700; carla: its '
                        'measurements port, 2001, with its world port before it and its control '
                        'port behind it)')
    parser.add_argument('--bind', default='127.0.0.1',
                        help='address to listen on (default: 127.0.0.1)')
    parser.add_argument('--rate', type=_rate, default='real', metavar='real|max|HZ',
                        help='pace: by game_time, as fast as read, or frames per second')
    parser.add_argument('--frames', type=count, metavar='N', help='end after N frames')
    add_quiet(parser, 'do not print the addresses')
    traffic = StandInOptions(parser, 'synthetic traffic', without_file)
    add_traffic_arguments(traffic.add)
    groups = [traffic]
    for protocol, simulator in by_protocol().items():
        groups.append(StandInOptions(parser, f'--protocol {protocol}', _of_protocol(protocol)))
        simulator.add_stand_in_options(groups[-1])
    parser.set_defaults(complete=lambda args: _complete(args, groups, parser.error))


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Serve until everything is sent; a server of samples on request, until a signal.

    :param args: the parsed options.
    :param interruption: of the program.
    :raises StateSensorError: when the file or a port is not usable.
    """
    args.complete(args)
    interruption.is_endless = True
    simulator = by_protocol()[args.protocol]
    with simulator.stand_in(args) as server:
        for name, port in server.addresses():
            if not args.quiet:
                print(f'{name} on {args.bind}:{port}', flush=True)
        server.wait()


def _of_protocol(protocol: str) -> Objection:
    """Return the objection to the options of ``protocol`` beside another one."""
    return lambda args: '' if args.protocol == protocol else \
        f'found --protocol {args.protocol}; expected {protocol}'


def _complete(args: argparse.Namespace, groups: Sequence[StandInOptions],
              refuse: Callable[[str], NoReturn]) -> None:
    """Set the options that are not given; refuse those that have no effect beside others."""
    for group in groups:
        for objection, names in group.complete(args).items():
            refuse(f'{", ".join(names)}: {objection}')
