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
from pathlib import Path
import signal
import sys

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parents[1])]

from carla9_server.scenes import TrafficScene  # noqa: E402, I100
from carla9_server.server import WorldOptions, WorldServer  # noqa: E402
from carla_server.town_server import CarlaOptions, CarlaServer, EpisodeSettings  # noqa: E402

from state_sensor_ros.errors import StateSensorError  # noqa: E402


def open_carla(options, fixed_hz):
    # The imitation-learning dataset was collected at 10 Hz.
    return CarlaServer(CarlaOptions(
        port=2001 if options.port is None else options.port, bind=options.bind,
        rate=options.rate, period_s=1.0 / (fixed_hz or 10.0), n_frames=options.frames,
        episode_frames=options.episode, episode=EpisodeSettings(
            is_synchronous=options.synchronous, n_vehicles=options.vehicles - 1,
            n_pedestrians=options.objects, seed=options.seed)))


def open_carla9(options, fixed_hz):
    period_s = 1.0 / (fixed_hz or 20.0)
    scene = TrafficScene(options.vehicles, options.objects, options.seed, period_s)
    return WorldServer(scene, WorldOptions(
        port=2000 if options.port is None else options.port, bind=options.bind,
        rate=options.rate, period_s=period_s, n_frames=options.frames))


def rate(text):
    return text if text in ('real', 'max') else float(text)


def parsed(words):
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest='simulator', required=True)
    for name, function in (('carla', open_carla), ('carla9', open_carla9)):
        command = commands.add_parser(name)
        command.set_defaults(open_server=function)
        command.add_argument('--port', type=int, help="0: a free one (default: the simulator's)")
        command.add_argument('--bind', default='127.0.0.1')
        command.add_argument('--rate', type=rate, default='real', metavar='real|max|HZ')
        command.add_argument('--frames', type=int, help='end after so many')
        command.add_argument('--vehicles', type=int, default=12, help='with the ego')
        command.add_argument('--objects', type=int, default=9, help='and pedestrians')
        command.add_argument('--seed', type=int, default=1)
    carla = commands.choices['carla']
    carla.add_argument('--synchronous', action='store_true',
                       help='wait for a command from the client after each frame')
    carla.add_argument('--episode', type=int, metavar='N', help='begin a new one every N frames')
    return parser.parse_args(words)


def main(words=None):
    """Serve until everything is sent, or until a signal."""
    options = parsed(words)
    fixed_hz = None if isinstance(options.rate, str) else options.rate
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt), options.open_server(options, fixed_hz) as server:
            for name, port in server.addresses():
                sys.stdout.write(f'{name} on {options.bind}:{port}\n')
            sys.stdout.flush()
            server.wait()
    except StateSensorError as error:
        return f'error: {error}'
    return 0


if __name__ == '__main__':
    sys.exit(main())
