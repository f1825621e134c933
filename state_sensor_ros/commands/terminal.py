# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What commands print: results on standard output; errors, warnings and progress beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cache
import io
import math
import os
from pathlib import Path
import sys
import threading
from typing import Any, NoReturn, TextIO, TYPE_CHECKING

from state_sensor_ros.texts import counted, one_line, seconds, size

if TYPE_CHECKING:
    from tqdm import tqdm

    from state_sensor_ros.files.recording import RecordingReader  # noqa: I100
    from state_sensor_ros.frame import Frame

# Path of an output that is standard output.
STANDARD_OUTPUT = '-'
# Standard output and standard error of one job of a batch; a worker may run several at a time.
_captured: ContextVar[tuple[TextIO, TextIO] | None] = ContextVar('captured', default=None)


@contextmanager
def captured() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Capture what is printed in the block: standard output, and standard error."""
    texts = io.StringIO(), io.StringIO()
    token = _captured.set(texts)
    try:
        yield texts
    finally:
        _captured.reset(token)


def print_output(text: str, *, end: str = '\n') -> None:
    """Write ``text`` and ``end`` to standard output, at once."""
    print(text, end=end, file=(_captured.get() or (sys.stdout,))[0], flush=True)


def print_line(text: str) -> None:
    """
    Print ``text`` as one line on standard error; unprintable characters are escaped.

    On a terminal ``error:`` is red and ``warning:`` yellow, unless NO_COLOR is set.
    """
    line, texts = one_line(text), _captured.get()
    if texts is None and not os.environ.get('NO_COLOR') and sys.stderr.isatty():
        for word, color in (('error:', 31), ('warning:', 33)):
            if line.startswith(word):
                line = f'\x1b[{color}m{word}\x1b[0m{line.removeprefix(word)}'
    with suppress(OSError):
        print(line, file=sys.stderr if texts is None else texts[1], flush=True)


def print_warnings(name: str, lines: Iterable[str]) -> None:
    """Print warnings about a recording or an output."""
    for line in lines:
        print_line(f'warning: {name}: {line}')


def discard_output() -> None:
    """Discard the buffer of standard output: Python would report a failed write again at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@cache
def bar_type() -> type[tqdm[Any]]:
    """Return the type of progress bars, for commands that show one."""
    # By default, tqdm locks between processes. From Python 3.14 on, it starts a process for the
    # lock, which prints a warning when a signal ends the command.
    from tqdm import tqdm
    tqdm.set_lock(threading.RLock())
    return tqdm


def progress_bar(recording: RecordingReader, what: str, *,
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


class Summary:
    """Frames, duration and actors of an output."""

    # duration_s: sum of the advances of ``game_time``, s; game_time: that of the last frame, NaN
    # without one.

    def __init__(self) -> None:
        self.n_frames = 0
        self.duration_s = 0.0
        self.names: set[str] = set()
        self.game_time = math.nan
        self._last_names: tuple[str, ...] = ()

    def add(self, frame: Frame) -> None:
        """Count a frame; ``frame``: frame with ``game_time`` in s, NaN for none."""
        self.n_frames += 1
        # NaN compares false with everything.
        if frame.game_time > self.game_time:
            self.duration_s += frame.game_time - self.game_time
        if not math.isnan(frame.game_time):
            self.game_time = frame.game_time
        if frame.names != self._last_names:
            self._last_names = frame.names
            self.names.update(frame.names)

    @property
    def facts(self) -> list[str]:
        """Return the numbers as text, without a duration of 0 s."""
        return facts_of(self.n_frames, self.duration_s, len(self.names))


def facts_of(n_frames: int, duration_s: float, n_actors: int) -> list[str]:
    """Return numbers as text, without a duration of 0 s."""
    duration = [seconds(duration_s)] if duration_s else []
    return [counted(n_frames, 'frame'), *duration, counted(n_actors, 'actor')]


def show_result(output: str, facts: Iterable[str], *, is_quiet: bool) -> None:
    """
    Print the line about a complete output, on standard error if the output is standard output.

    :param output: path of a file or folder, ``-``, or another name of the result.
    :param facts: texts about the output, such as ``3 frames``.
    :param is_quiet: whether to print nothing.
    """
    if is_quiet:
        return
    if output in (STANDARD_OUTPUT, '/dev/stdout'):
        print_line(f'standard output: {", ".join(facts)}')
        return
    try:
        print_output(one_line(f'{output}: {", ".join(facts)}'))
    except OSError:
        # The work is done: a closed pipe or a full disk is not a failure.
        discard_output()


def n_bytes_of(path: Path) -> int:
    """Return the size of a file, or of all in a folder, bytes; 0 if it is unknown."""
    with suppress(OSError):
        files = path.rglob('*') if path.is_dir() else [path]
        return sum(file.stat().st_size for file in files if file.is_file())
    return 0


def size_of(output: str) -> list[str]:
    """Return the size of a file, or of all files in a folder, as text; ``[]`` if unknown."""
    n_bytes = 0 if output == STANDARD_OUTPUT else n_bytes_of(Path(output))
    return [size(n_bytes)] if n_bytes else []
