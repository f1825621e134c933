# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A mock server of CARLA as a program: `python3 test/mocks/run.py carla9 --port 2000`."""

import argparse
from contextlib import suppress
from importlib import import_module
from pathlib import Path
import sys

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent), str(_HERE.parents[1])]

from state_sensor_ros.ends import raising_at_signals  # noqa: E402
from state_sensor_ros.errors import StateSensorError  # noqa: E402

# Module of each mock server: add_options(parser) declares its options, open_server(options) makes
# it.
MOCKS = {'carla': 'carla_server.program', 'carla9': 'carla9_server.program'}


def rate(text):
    return text if text in ('real', 'max') else float(text)


def parsed(words):
    """Return the parsed options, and the module of the mock server."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest='simulator', required=True)
    modules = {}
    for name, module in MOCKS.items():
        modules[name] = import_module(module)
        command = commands.add_parser(name)
        command.add_argument('--port', type=int, help="0: a free one (default: the simulator's)")
        command.add_argument('--bind', default='127.0.0.1')
        command.add_argument('--rate', type=rate, default='real', metavar='real|max|HZ')
        command.add_argument('--frames', type=int, help='end after so many')
        command.add_argument('--vehicles', type=int, default=12, help='with the ego')
        command.add_argument('--objects', type=int, default=9, help='and pedestrians')
        command.add_argument('--seed', type=int, default=1)
        modules[name].add_options(command)
    options = parser.parse_args(words)
    return options, modules[options.simulator]


def main(words=None):
    """Serve until everything is sent, or until a signal."""
    options, module = parsed(words)
    try:
        with suppress(KeyboardInterrupt), raising_at_signals(), \
                module.open_server(options) as server:
            for name, port in server.addresses():
                sys.stdout.write(f'{name} on {options.bind}:{port}\n')
            sys.stdout.flush()
            server.wait()
    except StateSensorError as error:
        return f'error: {error}'
    return 0


if __name__ == '__main__':
    sys.exit(main())
