# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor simulate`: the mock server of monoDrive as a program."""

from __future__ import annotations

import argparse
from contextlib import suppress

from state_sensor_ros.commands.options import add_quiet, count, port_or_0, settings_of
from state_sensor_ros.commands.synth import add_traffic_options, frame_rate
from state_sensor_ros.commands.terminal import print_output
from state_sensor_ros.emulator.threaded_server import Rate
from state_sensor_ros.emulator.traffic.frame_generator import GENERATIONS
from state_sensor_ros.errors import UsageError
from state_sensor_ros.files import ReadOptions
from state_sensor_ros.simulators.monodrive.mock_server import open_mock_server

_EPILOG = """examples:
  state_sensor simulate drive.json --loop --control-port 8999
  state_sensor simulate --vehicles 100 --rate max"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('file', metavar='FILE', nargs='?',
                        help='recording to serve, - is standard input (default: traffic)')
    parser.add_argument('--port', type=port_or_0, default=8700,
                        help='sensor port; 0: a free one (default: 8700)')
    parser.add_argument('--control-port', type=port_or_0, default=0, metavar='PORT',
                        help='control port (8999 on the real simulator); 0 = none (default: 0)')
    parser.add_argument('--bind', default='127.0.0.1', metavar='ADDRESS',
                        help='address to listen on (default: 127.0.0.1)')
    parser.add_argument('--rate', type=_rate, default='real', metavar='real|max|HZ',
                        help='real time (default), as fast as possible, or frames per second')
    parser.add_argument('--frames', type=count, metavar='N', help='end after N frames')
    parser.add_argument('--loop', action='store_true', help='repeat FILE endlessly')
    parser.add_argument('--on-sample', action='store_true',
                        help='send a frame only in reply to a sample or step command')
    parser.add_argument('--header', type=int, choices=(16, 12), default=16,
                        help='size of the packet header, bytes (default: 16)')
    add_quiet(parser, 'do not print the addresses')
    traffic = parser.add_argument_group('synthetic traffic')
    add_traffic_options(traffic.add_argument)
    traffic.add_argument('--generation', choices=GENERATIONS, default='v2',
                         help='JSON generation of synthetic frames and datasets (default: v2)')


def _rate(text: str) -> Rate:
    if text == 'real' or text == 'max':
        return 'real' if text == 'real' else 'max'
    return frame_rate(text)


def run(args: argparse.Namespace) -> None:
    """Serve until everything is sent; a server of samples on request, until a signal."""
    if args.on_sample and not args.control_port:
        raise UsageError('--on-sample: found no --control-port; expected one: it is for its '
                         'commands')
    args.read_options = ReadOptions(settings_of(args))
    with suppress(KeyboardInterrupt), open_mock_server(args) as server:
        for name, port in server.addresses():
            if not args.quiet:
                print_output(f'{name} on {args.bind}:{port}')
        server.wait()
