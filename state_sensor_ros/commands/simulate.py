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

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.options import add_quiet, count, index
from state_sensor_ros.commands.synth import add_traffic_arguments, frame_rate
from state_sensor_ros.emulator.threaded_server import Rate
from state_sensor_ros.simulators.opening import by_protocol

# Options of synthetic traffic, and those of CARLA, with their values where none is given.
_OF_TRAFFIC = {'vehicles': 12, 'objects': 9, 'seed': 1, 'cycle': 0}
_OF_CARLA = ('synchronous', 'episode')


def _port(text: str) -> int:
    """Read a port; 0 has a meaning of its own."""
    value = index(text)
    if value > 65535:
        raise argparse.ArgumentTypeError(f'{text} is not 0 to 65535')
    return value


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
    parser.add_argument('--port', type=_port,
                        help='sensor port, 0 picks a free one (default: 8700; carla: its '
                        'measurements port, 2001, with its world port before it and its control '
                        'port behind it)')
    parser.add_argument('--control-port', type=_port, default=0,
                        help='control port, 8999 on the real one; 0 = none (default: 0)')
    parser.add_argument('--bind', default='127.0.0.1',
                        help='address to listen on (default: 127.0.0.1)')
    parser.add_argument('--rate', type=_rate, default='real', metavar='real|max|HZ',
                        help='pace: by game_time, as fast as read, or frames per second')
    parser.add_argument('--loop', action='store_true', help='begin FILE again at its end')
    parser.add_argument('--frames', type=count, metavar='N', help='end after N frames')
    add_quiet(parser, 'do not print the addresses')
    parser.add_argument('--header', type=int, choices=(16, 12), default=16,
                        help='bytes of the packet header (default: 16)')
    parser.add_argument('--on-sample', action='store_true',
                        help='send a frame per sample or step command, not by itself')
    parser.add_argument('--reply-magic', choices=('new', 'old'), default='new',
                        help='magic of control replies (default: new)')
    parser.add_argument('--no-success', action='store_true',
                        help='leave the member success out of control replies')
    carla = parser.add_argument_group('carla')
    carla.add_argument('--synchronous', action='store_true',
                       help='wait for a command of the client after each frame')
    carla.add_argument('--episode', type=count, metavar='N', help='a new episode every N frames')
    parser.add_argument('--cycle', type=index, metavar='K',
                        help='write K synthetic frames once and repeat them (cheap at any size)')
    add_traffic_arguments(parser)
    # None where it is not given.
    parser.set_defaults(**dict.fromkeys(_OF_TRAFFIC), refuse=parser.error)


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Serve until everything is sent; a server of samples on request, until a signal.

    :param args: the parsed options.
    :param interruption: of the program.
    :raises StateSensorError: when the file or a port is not usable.
    """
    _check_together(args)
    interruption.is_endless = True
    simulator = by_protocol()[args.protocol]
    with simulator.stand_in(args) as server:
        for name, port in server.addresses():
            if not args.quiet:
                print(f'{name} on {args.bind}:{port}', flush=True)
        server.wait()


def _check_together(args: argparse.Namespace) -> None:
    """Refuse options that have no effect beside others; set those that are not given."""
    given = [f'--{name}' for name in _OF_TRAFFIC if getattr(args, name) is not None]
    if given and args.file is not None:
        args.refuse(f'{", ".join(given)}: found FILE {args.file}; expected none: these are '
                    'options of synthetic traffic')
    of_carla = [f'--{name}' for name in _OF_CARLA if getattr(args, name)]
    if of_carla and args.protocol == 'monodrive':
        args.refuse(f'{", ".join(of_carla)}: found --protocol monodrive; expected carla')
    for name, value in _OF_TRAFFIC.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
