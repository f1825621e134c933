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
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager
import os
import select
import sys
import termios
import threading
import tty
from typing import Any

from state_sensor_ros.commands.format_options import read_options_of
from state_sensor_ros.commands.interruption import call_in_daemon, Interruption
from state_sensor_ros.commands.printing import bar_type
from state_sensor_ros.commands.reading import reading
from state_sensor_ros.commands.summary import show_result
from state_sensor_ros.files.recording import RecordingReader
from state_sensor_ros.simulators.simulator import Replay
from state_sensor_ros.simulators.simulator_list import default_simulator
from state_sensor_ros.source import ignore
from state_sensor_ros.texts import one_line

_REFRESH_S = 0.1
# Wait for the answer to the current step; then the connection is closed without it.
_LAST_ANSWER_S = 1.0
_BAR = '{desc}: {bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]'


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """Replay to the end, or until a signal."""
    interruption.unblock_errors()
    interruption.is_endless = args.loop
    args.read_options = read_options_of(args)
    args.is_backwards, args.step = args.backwards or args.step < 0, abs(args.step)

    def read(recording: RecordingReader) -> AbstractContextManager[Iterator[Any]]:
        return reading(recording, 'read', is_quiet=args.quiet)

    replay = default_simulator().open_replay(args, read, _warn)
    has_ended = threading.Event()

    def play() -> None:
        try:
            replay.run()
        finally:
            has_ended.set()

    def stop() -> None:
        """End the replay after the answer to the current step, or after a second without it."""
        replay.stop()
        has_ended.wait(_LAST_ANSWER_S)
        replay.abort()

    def remains() -> str:
        return f'at frame {replay.index + 1} of {replay.n_frames}'

    try:
        # Before the first step: a signal after it waits for its answer.
        interruption.describe(remains, stop)
        replaying = call_in_daemon(play, 'replay')
        _watch(replaying, replay, is_quiet=args.quiet)
    finally:
        replay.abort()
    replaying.result()
    if interruption.number and not replay.is_at_end and not args.loop:
        raise KeyboardInterrupt
    if not interruption.number:
        show_result(f'{args.host}:{args.control_port}', [f'replayed, {remains()}'],
                    is_quiet=args.quiet)


def _warn(text: str) -> None:
    """Write a line above the progress bar."""
    bar_type().write(f'warning: {one_line(text)}', file=sys.stderr)


def _watch(replaying: Future[None], replay: Replay, *, is_quiet: bool) -> None:
    """Show the progress and handle keys until the replay has ended."""
    actions = {' ': replay.pause_or_resume, 'b': replay.turn_round}
    with keyboard() as keys, bar_type()(total=replay.n_frames, disable=is_quiet or None,
                                        leave=False, bar_format=_BAR) as bar:
        while not replaying.done():
            if keys.descriptor is not None:
                actions.get(keys.wait(_REFRESH_S), ignore)()
            else:
                wait([replaying], None if bar.disable else _REFRESH_S)
            bar.n = replay.index + 1
            bar.set_description_str(str(replay.state))


class Keyboard:
    """The keys of a terminal."""

    # descriptor: descriptor of the terminal in single-key mode; None without a terminal.

    def __init__(self, descriptor: int | None) -> None:
        self.descriptor = descriptor

    def wait(self, timeout_s: float) -> str:
        """Wait for a key and return it; ``''`` if none was pressed within ``timeout_s``."""
        if self.descriptor is None or not select.select([self.descriptor], [], [], timeout_s)[0]:
            return ''
        data = os.read(self.descriptor, 1)
        if not data:
            # The terminal was closed.
            self.descriptor = None
        return data.decode('ascii', 'replace')


@contextmanager
def keyboard() -> Iterator[Keyboard]:
    """Read keys from standard input while the block runs; restore the terminal's mode then."""
    descriptor = _terminal()
    if descriptor is None:
        yield Keyboard(None)
        return
    before = termios.tcgetattr(descriptor)
    try:
        # Ctrl-C still interrupts in this mode.
        tty.setcbreak(descriptor)
        yield Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _terminal() -> int | None:
    """Return standard input if it is a terminal and this process is in its foreground."""
    if not sys.stdin.isatty():
        return None
    descriptor = sys.stdin.fileno()
    try:
        # In the background, a change of the terminal would stop the program.
        is_in_foreground = os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        # It is not the controlling terminal of this process.
        is_in_foreground = True
    return descriptor if is_in_foreground else None
