# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What commands print about a result: a line of facts."""

from __future__ import annotations

from contextlib import suppress
import math
import os
from pathlib import Path
import shlex
import shutil
import stat
import sys

from state_sensor_ros.commands.printing import discard_output, print_line
from state_sensor_ros.files.whole.output import print_output, standard_output
from state_sensor_ros.files.whole.whole_file import STANDARD_OUTPUT
from state_sensor_ros.frame import Frame
from state_sensor_ros.texts import counted, one_line, seconds, size


def n_bytes_of(path: Path) -> int:
    """Return the size of a file, or of all in a folder, bytes; 0 if it is unknown."""
    with suppress(OSError):
        if not path.is_dir():
            return path.stat().st_size
        return sum(file.stat().st_size for file in path.rglob('*') if file.is_file())
    return 0


def opening(path: str) -> str:
    """Return how to open a file; nothing where no program is known that does."""
    if sys.platform == 'win32':
        return f'open it: start "" "{path}"'
    # With CI, the viewer sends no usage reports.
    command = 'CI=1 rerun' if path.endswith('.rrd') else \
        'open' if sys.platform == 'darwin' else 'xdg-open'
    if command == 'xdg-open' and not shutil.which(command):
        return ''
    return f'open it: {command} {shlex.quote(path)}'


class Summary:
    """Frames, duration and actors of an output."""

    # duration_s: sum of the advances of ``game_time``, s; game_time: that of the last frame, NaN
    # without one.

    def __init__(self) -> None:
        self.n_frames = 0
        self.duration_s = 0.0
        self._names: set[str] = set()
        self._last_names: tuple[str, ...] = ()
        self.game_time = math.nan

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
            self._names.update(frame.names)

    @property
    def n_actors(self) -> int:
        return len(self._names)

    @property
    def facts(self) -> list[str]:
        """Return the numbers as text, without a duration of 0 s."""
        return facts_of(self.n_frames, self.duration_s, self.n_actors)


def facts_of(n_frames: int, duration_s: float, n_actors: int) -> list[str]:
    """Return numbers as text, without a duration of 0 s."""
    duration = [seconds(duration_s)] if duration_s else []
    return [counted(n_frames, 'frame'), *duration, counted(n_actors, 'actor')]


def show_result(output: str, facts: list[str], *, is_quiet: bool) -> None:
    """
    Print the line about a complete output, on standard error if the output is standard output.

    :param output: path of a file or folder, ``-``, or another name of the result.
    :param facts: texts about the output, such as ``3 frames``.
    """
    if is_quiet:
        return
    name = 'standard output' if output == STANDARD_OUTPUT else output
    line = f'{name}: {", ".join(facts)}'
    if is_standard_output(output):
        print_line(line)
        return
    try:
        print_output(one_line(line))
    except OSError:
        # The work is done: a closed pipe or a full disk is not a failure.
        discard_output()


def is_standard_output(output: str) -> bool:
    """Return whether the output has just been written to standard output, also by its path."""
    if output == STANDARD_OUTPUT:
        return True
    with suppress(OSError, ValueError):
        mine = os.fstat(standard_output().fileno())
        return not stat.S_ISCHR(mine.st_mode) and os.path.samestat(mine, os.stat(output))
    return False


def size_of(output: str) -> list[str]:
    """Return the size of a file, or of all files in a folder, as text; ``[]`` if unknown."""
    path = Path(output)
    is_there = output != STANDARD_OUTPUT and (path.is_dir() or path.is_file())
    return [size(n_bytes_of(path))] if is_there else []
