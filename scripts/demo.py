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
from dataclasses import dataclass
from pathlib import Path
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

from demo_recorder import Recorder
from environment import going_on

from state_sensor_ros.connections.connection import free_port
from state_sensor_ros.errors import StateSensorError
from state_sensor_ros.files.output import remove_parts

ROOT = Path(__file__).resolve().parents[1]
NODE = '/state_sensor'
# Topics that must have messages; those of all actors are counted together, under *.
EXPECTED = ('/tf', '/diagnostics', *(f'{NODE}/{name}' for name in (
    'frame', 'actors', 'map', 'markers', 'control_states', 'ego/odometry', 'ego/control_state',
    'actors/*/odometry', 'actors/*/control_state')))
LINES = ROOT / 'resource' / 'lines'
# All tags of the mock server: with a control port the driver requests them.
TAGS = '[vehicle, cone, traffic_sign]'
START_TIMEOUT_S, STOP_TIMEOUT_S = 30.0, 5.0


@dataclass(frozen=True)
class Demo:
    """One simulator: what is started, and what the driver and the pictures need."""

    title: str
    command: tuple[str, ...]  # of the mock server, empty if the driver starts the simulator
    parameters: tuple[str, ...]  # of the driver, NAME:=VALUE
    map_file: Path | None  # of the pictures
    line: str  # to follow
    topics: tuple[str, ...] = ()  # expected besides


# Neither CARLA nor SUMO says where the rear axle is: base_link is the ego's origin.
ORIGIN = 'base_link_xyz:=[0.0, 0.0, 0.0]'
ROAD = LINES / 'monodrive.xodr'
DEMOS = {
    'monodrive': Demo('Mock simulator of monoDrive', ('state_sensor', 'simulate'),
                      (f'map_file:={ROAD}',), ROAD, 'monodrive.json.gz'),
    # The mock server has the road of monoDrive's.
    'carla': Demo('Mock server of CARLA 0.9',
                  (sys.executable, str(ROOT / 'test' / 'mocks' / 'run.py'), 'carla9'),
                  ('source:=carla9', ORIGIN), None, 'monodrive.json.gz',
                  (f'{NODE}/traffic_lights',)),
    'sumo': Demo('SUMO', (), ('source:=sumo', 'sumo.ego:=ego', ORIGIN),
                 ROOT / 'resource' / 'sumo' / 'grid.net.xml.gz', 'sumo.json.gz',
                 (f'{NODE}/traffic_lights', f'{NODE}/roads'))}


class DemoError(Exception):
    """A program did not start, or a topic had no messages."""


def main() -> int:
    """Run it; return 0 if all topics had messages or it was interrupted, 1 otherwise."""
    parser = argparse.ArgumentParser(description='Simulator, driver, bag and pictures.')
    parser.add_argument('--duration', type=float, default=10.0, metavar='S',
                        help='how long to record, s (default: 10)')
    parser.add_argument('--output', type=Path, default=ROOT / 'demo', metavar='FOLDER',
                        help='output folder; replaces earlier output (default: demo)')
    parser.add_argument('--simulator', choices=DEMOS, default='monodrive',
                        help='mock server or simulator (default: monodrive)')
    parser.add_argument('--drive', action='store_true', help='drive the ego along a line')
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(DEMOS[args.simulator], args.output, args.duration, is_driven=args.drive)
    except KeyboardInterrupt:
        # It may have come between the making of the bag and its recording.
        remove_parts()
        print('interrupted')
    except (DemoError, StateSensorError, OSError) as error:
        sys.stderr.write(f'error: demo: {error}\n')
        return 1
    return 0


def run(demo: Demo, folder: Path, duration_s: float, *, is_driven: bool) -> None:
    """Make the demonstration and print the paths of its files."""
    prepare(folder)
    with ExitStack() as stack:
        programs = start_programs(stack, demo, folder, is_driven=is_driven)
        print(f'{demo.title}, driver {NODE}, recording for {duration_s:g} s …', flush=True)
        recorder = Recorder(folder / 'bag', NODE)
        with going_on('demo: recording'):
            recorder.record(duration_s, lambda: [program.check() for program in programs])
    recorder.show()
    pictures = [folder / 'picture.png', folder / 'animation.html']
    print('\ndrawing a picture and an animation …', flush=True)
    with ExitStack() as stack, going_on('demo: drawing'):
        for renderer in [Program(
                stack, picture.with_suffix('.log'), 'state_sensor', 'render', str(folder / 'bag'),
                str(picture), '--title', f'{demo.title}, {duration_s:g} s',
                *(['--map', str(demo.map_file)] if demo.map_file else []))
                for picture in pictures]:
            renderer.wait()
    bag, picture, animation, *logs = (shlex.quote(str(path)) for path in (
        folder / 'bag', *pictures, *(program.log for program in programs)))
    print(f'\nbag        {bag}\npicture    {picture}\nanimation  {animation}  (open it in a '
          f'browser)\nin 3D      state_sensor view {bag}  (extra `view`: doc/guide/viewer.md)\n'
          f'logs       {", ".join(logs)}')
    rows = recorder.rows()
    silent = [name for name in (*EXPECTED, *demo.topics, *([f'{NODE}/command_status'] * is_driven))
              if name not in rows or not rows[name][2]]
    if silent:
        raise DemoError(f'found no message on {", ".join(silent)}; see {folder / "driver.log"}')


def start_programs(stack: ExitStack, demo: Demo, folder: Path, *,
                   is_driven: bool) -> list[Program]:
    """Start simulator, driver and, if the ego is driven, the program that follows a line."""
    programs: list[Program] = []
    # The frame is that which the configurations of viewers follow.
    parameters = [*demo.parameters, 'debug_drawing:=true', 'ego_frame:=base_link']
    if is_driven:
        parameters.append('control_input:=twist')
    if demo.command:
        options = ['--port', '0']
        if is_driven and demo is DEMOS['monodrive']:
            control_port = free_port('127.0.0.1')
            options += ['--control-port', str(control_port)]
            parameters += [f'control_port:={control_port}', f'desired_tags:={TAGS}']
        programs.append(Program(stack, folder / 'simulator.log', *demo.command, *options))
        port = programs[0].wait_for(r'listening on 127\.0\.0\.1:(\d+)')
        parameters.append(f'port:={port}')
    programs.append(Program(stack, folder / 'driver.log', 'state_sensor_node', '--ros-args',
                            *(word for parameter in parameters for word in ('-p', parameter))))
    if is_driven:
        programs.append(Program(stack, folder / 'line_follower.log', sys.executable,
                                str(ROOT / 'examples' / 'follow_line.py'), str(LINES / demo.line)))
    return programs


def prepare(folder: Path) -> None:
    """Remove the files of an earlier run, and no others."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / 'bag', ignore_errors=True)
    for name in ('picture.png', 'animation.html', *(f'{program}.log' for program in (
            'simulator', 'driver', 'line_follower', 'picture', 'animation'))):
        (folder / name).unlink(missing_ok=True)


class Program:
    """
    A program that runs until the stack is closed, with its output in ``log``.

    :raises DemoError: if it cannot be started.
    """

    def __init__(self, stack: ExitStack, log: Path, *command: str) -> None:
        self.log = log
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
        """
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
        """Wait until the program has ended, and check that it has not failed."""
        if self._process.wait():
            self.check()

    def _end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


if __name__ == '__main__':
    sys.exit(main())
