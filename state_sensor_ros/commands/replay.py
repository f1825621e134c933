# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor replay`: a trajectory in a running simulator's Replay Mode."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
import os
import select
import sys
import termios
import tty

from state_sensor_ros import texts
from state_sensor_ros.commands import options, reading, terminal
from state_sensor_ros.files import ReadOptions
from state_sensor_ros.settings import DEFAULTS
from state_sensor_ros.simulators.monodrive.replay import ReplayClient

_REFRESH_S = 0.1
# Wait for the answer to the current step; then the connection is closed without it.
_LAST_ANSWER_S = 1.0
_BAR = '{desc}: {bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]'
_CONTROL_PORT = 8999
_EPILOG = """On a terminal, the space bar pauses and resumes.
Ctrl-C ends the replay after the outstanding reply and closes both connections.
The simulator then stays at the current frame, ready for another client, and
keeps the trajectory and the sensor: no command removes them.

examples:
  state_sensor replay drive.json --rate 2
  state_sensor replay drive_bag --host 192.168.1.20 --loop"""


def add_replay(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('file', metavar='FILE', help='recording to play, but not a table; - is a '
                        'trajectory on standard input')
    options.add_quiet(parser)
    parser.add_argument('--host', help=f'host of the simulator (default: {DEFAULTS.host})')
    parser.add_argument('--port', type=options.port,
                        help=f'port of its frames (default: {DEFAULTS.port})')
    parser.add_argument('--control-port', type=options.port, default=_CONTROL_PORT, metavar='PORT',
                        help=f'control port of the simulator (default: {_CONTROL_PORT})')
    parser.add_argument('--rate', type=options.number, default=1.0, metavar='R',
                        help='playback speed; 1 = real time, 0 = as fast as possible (default: 1)')
    parser.add_argument('--step', type=options.count, default=1, metavar='N',
                        help='frames per step (default: 1)')
    parser.add_argument('--start', type=options.index, metavar='N',
                        help='first frame to play (default: the first; backwards, the last)')
    parser.add_argument('--loop', action='store_true', help='repeat until Ctrl-C')
    parser.add_argument('--backwards', action='store_true', help='play backwards')
    parser.add_argument('--simulator', metavar='CONFIG', help='JSON file with map and '
                        'simulation_mode to send first (default: none)')


def run_replay(args: argparse.Namespace) -> None:
    """Replay to the end, or until a signal."""
    args.host, args.port = args.host or DEFAULTS.host, args.port or DEFAULTS.port
    args.read_options = ReadOptions(options.settings_of(args))
    replay = ReplayClient(args, lambda recording: closing(reading.with_progress(
        recording, 'read', is_quiet=args.quiet)), _warn)
    replaying: list[Future[None]] = []
    with ThreadPoolExecutor(1, 'replay') as thread:
        try:
            replaying.append(thread.submit(replay.run))
            _watch(replaying[0], replay, is_quiet=args.quiet)
        except KeyboardInterrupt:
            # It ends after the answer to the current step.
            replay.stop()
            wait(replaying, _LAST_ANSWER_S)
        finally:
            replay.abort()
    for ended in replaying:
        ended.result()
    terminal.show_result(f'{args.host}:{args.control_port}', [
        f'replayed, at frame {replay.index + 1} of {replay.n_frames}'], is_quiet=args.quiet)


def _warn(text: str) -> None:
    """Write a line above the progress bar."""
    terminal.bar_type().write(f'warning: {texts.one_line(text)}', file=sys.stderr)


def _watch(replaying: Future[None], replay: ReplayClient, *, is_quiet: bool) -> None:
    """Show the progress and handle keys until the replay has ended."""
    with _keyboard() as keys, terminal.bar_type()(total=replay.n_frames, disable=is_quiet or None,
                                                  leave=False, bar_format=_BAR) as bar:
        while not replaying.done():
            if keys is None:
                wait([replaying], None if bar.disable else _REFRESH_S)
            elif select.select([keys], [], [], _REFRESH_S)[0]:
                key = os.read(keys, 1)
                if key == b' ':
                    replay.pause_or_resume()
                # Without one, the terminal was closed.
                keys = keys if key else None
            bar.n = replay.index + 1
            bar.set_description_str(replay.state)


@contextmanager
def _keyboard() -> Iterator[int | None]:
    """Read single keys while the block runs; yield the descriptor of the terminal, if any."""
    is_used = sys.stdin.isatty()
    # An error of the system: it is not the controlling terminal of this process.
    with suppress(OSError):
        # In the background, a change of the terminal would stop the program.
        is_used = is_used and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    if not is_used:
        yield None
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        # Ctrl-C still interrupts in this mode.
        tty.setcbreak(descriptor)
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
