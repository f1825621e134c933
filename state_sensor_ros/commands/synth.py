# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor synth`: synthetic traffic as a trajectory file."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import msgspec

from state_sensor_ros.commands.options import add_force, add_quiet, count, index, number
from state_sensor_ros.commands.terminal import bar_type, facts_of, show_result, size_of
from state_sensor_ros.emulator.traffic.frame_generator import generate, GENERATIONS, MAX_RATE_HZ
from state_sensor_ros.errors import UsageError
from state_sensor_ros.files import output_format, TRAJECTORY
from state_sensor_ros.files.output import WholeFile

_EPILOG = """examples:
  state_sensor synth drive.json --vehicles 50 --frames 400
  state_sensor synth - --frames 5 --generation v1"""


def frame_rate(text: str) -> float:
    """Return the frame rate in ``text``, Hz; raise ArgumentTypeError if out of range."""
    value: float = number(text)
    if not 0.0 < value <= MAX_RATE_HZ:
        raise argparse.ArgumentTypeError(f'{text} Hz is not greater than 0 and at most '
                                         f'{MAX_RATE_HZ:g}')
    return value


def add_traffic_options(add: Callable[..., object]) -> None:
    """Declare the options of synthetic traffic; ``add``: ``add_argument`` of a parser."""
    add('--vehicles', type=count, default=12, metavar='N',
        help='number of vehicles, including the ego (default: 12)')
    add('--objects', type=index, default=9, metavar='N',
        help='number of cones and signs (default: 9)')
    add('--seed', type=index, default=1, metavar='N',
        help='random seed; the same seed gives the same traffic (default: 1)')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('out', metavar='OUT', help='trajectory to write, - for standard output')
    parser.add_argument('--frames', type=count, default=200, metavar='N',
                        help='number of frames to write (default: 200)')
    parser.add_argument('--rate', type=frame_rate, default=20.0, metavar='HZ',
                        help='frames per second (default: 20)')
    add_traffic_options(parser.add_argument)
    parser.add_argument('--generation', choices=GENERATIONS, default='v2',
                        help='JSON generation to write (default: v2)')
    add_force(parser)
    add_quiet(parser)


def run(args: argparse.Namespace) -> None:
    """Write the trajectory, frame by frame; OUT is created when it is complete."""
    named = output_format(args.out)
    if named != TRAJECTORY:
        raise UsageError(f'OUT {args.out} is the name of {named.noun}; expected NAME.json or -: '
                         '`state_sensor convert` makes other formats of a trajectory')
    frames = generate(args.vehicles, args.objects, args.rate, args.seed, args.generation)
    with WholeFile(args.out, force=args.force) as file:
        file.handle.write(b'[')
        for i in bar_type()(range(args.frames), unit='frame', disable=args.quiet or None):
            file.handle.write(b',\n' if i else b'\n')
            file.handle.write(msgspec.json.encode(next(frames)))
        file.handle.write(b'\n]\n')
    duration_s = (args.frames - 1) / args.rate
    facts = facts_of(args.frames, duration_s, args.vehicles + args.objects)
    show_result(args.out, [*facts, *size_of(args.out)], is_quiet=args.quiet)
