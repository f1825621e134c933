# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""What sub-commands print on standard error: lines, long waits, progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
import os
import sys
import threading
import time
from typing import Any, NoReturn, TextIO, TYPE_CHECKING

from tqdm import tqdm

from state_sensor_ros.files.whole.output import standard_output
from state_sensor_ros.texts import one_line

if TYPE_CHECKING:
    from state_sensor_ros.files.recording import RecordingReader
    from state_sensor_ros.library.frame_recording import Recording

_SILENCE_S = 1.0
_REFRESH_S = 0.2


def print_line(text: str) -> None:
    """
    Print ``text`` as one line on standard error; unprintable characters are escaped.

    On a terminal ``error:`` is red and ``warning:`` yellow, unless NO_COLOR is set.
    """
    line = one_line(text)
    if not os.environ.get('NO_COLOR') and sys.stderr.isatty():
        for word, color in (('error:', 31), ('warning:', 33)):
            if line.startswith(word):
                line = f'\x1b[{color}m{word}\x1b[0m{line.removeprefix(word)}'
    print_error(f'{line}\n')


def print_error(text: str) -> None:
    """Print ``text`` on standard error; if that fails, it is lost: the exit code says enough."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)


def discard_output() -> None:
    """Discard the buffer of standard output."""
    _discard(standard_output())


def _discard(stream: TextIO) -> None:
    """Discard the buffer of a stream: Python would report a failed write again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def waiting_named(where: str, has_begun: Callable[[], bool], reason: Callable[[], str], *,
                  is_quiet: bool, what: str = 'frame') -> Iterator[None]:
    """
    Print one line if the first frame has not arrived after a second, unless on a terminal.

    :param where: ``host:port`` of the stream.
    :param has_begun: whether a frame has arrived.
    :param reason: text of the last error of the stream, ``''`` for none.
    :param is_quiet: whether to print nothing.
    :param what: what is waited for, such as ``frame``.
    """
    since = time.strftime('%H:%M:%S')

    def name() -> None:
        if not has_begun():
            why = reason().removeprefix('cannot connect to ').removeprefix(f'{where}: ')
            why = why.removeprefix(f'{where} ')
            print_line(f'waiting for a {what} from {where} since {since}'
                       f'{f": {why}" if why else ""}')

    timer = threading.Timer(_SILENCE_S, name)
    timer.daemon = True
    if not is_quiet and not sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


@cache
def bar_type() -> type[tqdm[Any]]:
    """Return the type of progress bars, for commands that show one."""
    # By default, tqdm locks between processes. From Python 3.14 on, it starts a process for the
    # lock, which prints a warning when a signal ends the command.
    tqdm.set_lock(threading.RLock())
    return tqdm


def progress_bar(recording: RecordingReader | Recording, what: str, *,
                 is_quiet: bool) -> AbstractContextManager[tqdm[NoReturn] | None]:
    """
    Return a progress bar on a terminal; elsewhere None.

    :param recording: recording with a total and a unit.
    :param what: name of the work, one word.
    :param is_quiet: whether to show no progress.
    """
    if is_quiet or not sys.stderr.isatty():
        return nullcontext()
    # A live stream may fall silent after any frame.
    return bar_type()(total=recording.total, unit=recording.unit,
                      unit_scale=recording.unit == 'B', desc=what, leave=False,
                      mininterval=0.0 if recording.format_name == 'stream' else 0.1)


@contextmanager
def clock_shown(what: str, *, is_quiet: bool) -> Iterator[None]:
    """
    Show on a terminal how long the block has been running, if its progress is not known.

    :param what: name of the work, one word.
    :param is_quiet: whether to show nothing.
    """
    if is_quiet or not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    with bar_type()(desc=what, bar_format='{desc}: {elapsed}', leave=False) as bar:
        def refresh() -> None:
            while not over.wait(_REFRESH_S):
                bar.refresh()

        thread = threading.Thread(target=refresh, name='progress', daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
