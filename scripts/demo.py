#!/usr/bin/env python3
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The demonstration: simulator, driver and recorder on this machine, then a table and pictures."""

from __future__ import annotations

import argparse
from contextlib import ExitStack, suppress
import os
from pathlib import Path
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from types import FrameType

from demo_recorder import record, Row
from demo_report import show, show_deviation, show_round_trip
from domains import claim, is_empty, MAX_DOMAIN
import rclpy
from rclpy.signals import SignalHandlerOptions

from state_sensor_ros.connections.connection import free_port
from state_sensor_ros.errors import StateSensorError

ROOT = Path(__file__).resolve().parents[1]
NODE = '/state_sensor'
SCOUT_S = 1.0
# Topics that must have messages; those of all actors are counted together, under *.
EXPECTED = ('/tf', '/diagnostics', f'{NODE}/frame', f'{NODE}/actors', f'{NODE}/map',
            f'{NODE}/markers', f'{NODE}/control_states', f'{NODE}/ego/odometry',
            f'{NODE}/ego/control_state', f'{NODE}/actors/*/odometry',
            f'{NODE}/actors/*/control_state')
# What SUMO has besides, and the parameters of the driver for it.
EXPECTED_OF_SUMO = tuple(f'{NODE}/{name}' for name in ('roads', 'traffic_lights'))
EXPECTED_OF_CARLA = EXPECTED_OF_SUMO[1:]
# What there is besides if the ego is driven, and what drives it along which line.
EXPECTED_IF_DRIVEN = (f'{NODE}/command_status',)
# All tags of the mock server: with a control port the driver requests them.
TAGS = '[vehicle, cone, traffic_sign]'
MOCK = ROOT / 'test' / 'mocks' / 'run.py'
EXAMPLE, LINES = ROOT / 'examples' / 'follow_line.py', ROOT / 'resource' / 'lines'
# Neither says where the rear axle is: base_link is the ego's origin.
ORIGIN = ('-p', 'base_link_xyz:=[0.0, 0.0, 0.0]')
CARLA = ('-p', 'source:=carla9', *ORIGIN)
SUMO = ('-p', 'source:=sumo', '-p', 'sumo.ego:=ego', *ORIGIN)
# The maps of the pictures; the mock server of CARLA 0.9 has its own.
NETWORK, ROAD = ROOT / 'resource' / 'sumo' / 'grid.net.xml.gz', LINES / 'monodrive.xodr'
TITLES = {'monodrive': 'Mock simulator of monoDrive', 'carla': 'Mock server of CARLA 0.9',
          'sumo': 'SUMO'}
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 5.0
MAX_ROUND_TRIP_M = 1e-3


class DemoError(Exception):
    """A program did not start, or a topic had no messages."""


class Interruption:
    """SIGINT or SIGTERM, recorded by the handler and raised at safe points by :meth:`follow`."""

    def __init__(self) -> None:
        self._is_signaled = False
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, self._note)

    def follow(self) -> None:
        """Raise KeyboardInterrupt after a signal."""
        if self._is_signaled:
            raise KeyboardInterrupt

    def _note(self, signum: int, frame: FrameType | None) -> None:
        self._is_signaled = True


def main() -> int:
    """Run it; return 0 if all topics had messages or it was interrupted, 1 otherwise."""
    parser = argparse.ArgumentParser(description='Simulator, driver, bag and pictures.')
    parser.add_argument('--duration', type=seconds, default=10.0, metavar='S',
                        help='how long to record, s (default: 10)')
    parser.add_argument('--output', type=Path, default=ROOT / 'demo', metavar='FOLDER',
                        help='output folder; replaces earlier output (default: demo)')
    parser.add_argument('--sumo', action='store_true',
                        help='with SUMO in place of the mock simulator')
    parser.add_argument('--carla', action='store_true',
                        help='with the mock server of CARLA 0.9 in place of that of monoDrive')
    parser.add_argument('--drive', action='store_true',
                        help='drive the ego along a recorded line')
    args = parser.parse_args()
    # Keeps the demonstration apart from other ROS nodes on the network.
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    try:
        run(args.output, args.duration, Interruption(), with_sumo=args.sumo,
            with_carla=args.carla, is_driven=args.drive)
    except KeyboardInterrupt:
        print('interrupted')
    except (DemoError, StateSensorError, OSError) as error:
        sys.stderr.write(f'error: demo: {error}\n')
        return 1
    return 0


def seconds(text: str) -> float:
    """Read a time of a second to a day."""
    value = float(text)
    if not 1.0 <= value <= 86400.0:
        raise argparse.ArgumentTypeError(f'{text} is not 1 to 86400 s')
    return value


def run(folder: Path, duration_s: float, interruption: Interruption, *,
        with_sumo: bool, with_carla: bool, is_driven: bool) -> None:
    """Make the demonstration and print the paths of its files."""
    prepare(folder)
    simulator = 'sumo' if with_sumo else 'carla' if with_carla else 'monodrive'
    with ExitStack() as stack:
        where, programs = start_programs(stack, interruption, folder, with_sumo=with_sumo,
                                         with_carla=with_carla, is_driven=is_driven)
        print(f'{where}, driver {NODE}, recording for {duration_s:g} s …', flush=True)
        recording = record(folder / 'bag', NODE, duration_s, lambda: check_all(*programs))
    show(recording)
    if (worst_m := show_round_trip(folder / 'bag')) > MAX_ROUND_TRIP_M:
        raise DemoError(f'found positions that differ by {worst_m:g} m after a round trip')
    if is_driven:
        show_deviation(folder / 'bag', line_of(with_sumo=with_sumo))
    drawn_map = NETWORK if with_sumo else None if with_carla else ROAD
    pictures = [folder / 'picture.png', folder / 'animation.html']
    with ExitStack() as stack:
        renderers = [Program(stack, interruption, picture.with_suffix('.log'), 'state_sensor',
                             'render', str(folder / 'bag'), str(picture), '--title',
                             f'{TITLES[simulator]}, {duration_s:g} s',
                             *(['--map', str(drawn_map)] if drawn_map else []))
                     for picture in pictures]
        for renderer in renderers:
            renderer.wait()
    bag, picture, animation, *logs = (shlex.quote(str(path)) for path in (
        folder / 'bag', *pictures, *(program.log for program in programs)))
    print(f'\nbag        {bag}\npicture    {picture}\nanimation  {animation}  (open it in a '
          f'browser)\nin 3D      state_sensor view {bag}  (extra `view`: doc/guide/viewer.md)\n'
          f'logs       {", ".join(logs)}')
    expected = EXPECTED + EXPECTED_OF_SUMO * with_sumo + (
        EXPECTED_OF_CARLA * with_carla) + EXPECTED_IF_DRIVEN * is_driven
    silent = [name for name in expected if not recording.rows.get(name, Row()).n_messages]
    if silent:
        raise DemoError(f'found no message on {", ".join(silent)}; see {folder / "driver.log"}')


def start_programs(stack: ExitStack, interruption: Interruption, folder: Path, *,
                   with_sumo: bool, with_carla: bool,
                   is_driven: bool) -> tuple[str, list[Program]]:
    """Start them in a domain of their own; return the place of the simulator, and them."""
    programs: list[Program] = []

    def start(log: str, *command: str) -> Program:
        programs.append(Program(stack, interruption, folder / log, *command))
        return programs[-1]

    control_port = str(free_port('127.0.0.1'))
    if not with_sumo:
        # It has no part in ROS: it starts while the domain is searched.
        simulator = start('simulator.log', *(
            (sys.executable, str(MOCK), 'carla9') if with_carla else ('state_sensor', 'simulate')),
            '--port', '0', *(('--control-port', control_port)
                             if is_driven and not with_carla else ()))
    os.environ['ROS_DOMAIN_ID'] = str(empty_domain(stack, interruption))
    where, source = 'SUMO', SUMO
    if not with_sumo:
        port = simulator.wait_for(r'listening on 127\.0\.0\.1:(\d+)')
        where, source = f'simulator on 127.0.0.1:{port}', ('-p', f'port:={port}')
        if with_carla:
            source += CARLA
        else:
            source += ('-p', f'map_file:={ROAD}')
        if is_driven and not with_carla:
            source += ('-p', f'control_port:={control_port}', '-p', f'desired_tags:={TAGS}')
    if is_driven:
        source += ('-p', 'control_input:=twist')
    start('driver.log', 'state_sensor_node', '--ros-args', *source, '-p', 'debug_drawing:=true',
          # The frame that the configurations of viewers follow.
          '-p', 'ego_frame:=base_link')
    if is_driven:
        start('line_follower.log', sys.executable, str(EXAMPLE),
              str(line_of(with_sumo=with_sumo)))
    return where, programs


def line_of(*, with_sumo: bool) -> Path:
    """Return the line to follow; the mock server of CARLA 0.9 has the road of monoDrive's."""
    return LINES / ('sumo.json.gz' if with_sumo else 'monodrive.json.gz')


def empty_domain(stack: ExitStack, interruption: Interruption) -> int:
    """Return a ROS domain without nodes, the given one if possible; ``stack`` reserves it."""
    first = int(os.environ.get('ROS_DOMAIN_ID') or os.getpid() % MAX_DOMAIN + 1)
    for domain in (first, *((first + i) % MAX_DOMAIN + 1 for i in range(MAX_DOMAIN))):
        holder = claim(domain)
        if holder is None:
            continue
        stack.enter_context(holder)
        if not is_empty(domain):
            continue
        # Nodes on other machines, and of middlewares other than DDS, are found by discovery only.
        context = rclpy.Context()
        rclpy.init(context=context, domain_id=domain,
                   signal_handler_options=SignalHandlerOptions.NO)
        scout = rclpy.create_node('demo_scout', context=context)
        deadline = time.monotonic() + SCOUT_S
        while (alone := scout.get_node_names() == ['demo_scout']) and time.monotonic() < deadline:
            interruption.follow()
            time.sleep(0.05)
        scout.destroy_node()
        context.shutdown()
        if alone:
            return domain
    raise DemoError('found nodes in every ROS domain; expected an empty one')


def prepare(folder: Path) -> None:
    """Remove the files of an earlier run, and no others."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / 'bag', ignore_errors=True)
    for name in ('picture.png', 'animation.html', 'simulator.log', 'driver.log', 'picture.log',
                 'line_follower.log', 'animation.log'):
        (folder / name).unlink(missing_ok=True)


class Program:
    """
    A program that runs until the stack is closed, with its output in ``log``.

    :raises DemoError: if it cannot be started.
    """

    def __init__(self, stack: ExitStack, interruption: Interruption, log: Path,
                 *command: str) -> None:
        self.log = log
        self._interruption = interruption
        try:
            with log.open('wb') as output:
                self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        except FileNotFoundError:
            raise DemoError(f'{command[0]} not found; run `. scripts/env.sh` first') from None
        stack.callback(self._end)

    def check(self) -> None:
        """
        Check that the program is running.

        :raises DemoError: if it has ended.
        :raises KeyboardInterrupt: after a signal.
        """
        self._interruption.follow()
        if self._process.poll() is not None:
            raise DemoError(f'{self._process.args[0]} ended with {self._process.returncode}: '
                            f'{self.log.read_text().strip()[-300:]}')

    def wait_for(self, pattern: str) -> str:
        """Wait until the program prints a line with ``pattern``; return its first group."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            found = re.search(pattern, self.log.read_text())
            if found:
                return found[1]
            self.check()
            time.sleep(0.05)
        raise DemoError(f'{self._process.args[0]} was not ready within {START_TIMEOUT_S:g} s')

    def wait(self) -> None:
        """
        Wait until the program has ended.

        :raises DemoError: if it failed.
        """
        while self._process.poll() is None:
            self._interruption.follow()
            time.sleep(0.05)
        if self._process.returncode:
            self.check()

    def _end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def check_all(*programs: Program) -> None:
    """Check that all programs are running, as :meth:`Program.check`."""
    for program in programs:
        program.check()


if __name__ == '__main__':
    sys.exit(main())
