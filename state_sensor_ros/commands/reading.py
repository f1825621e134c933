# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Recordings read from beginning to end, with progress and one warning for each kind of fault."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
import gc
import math

from state_sensor_ros.commands.terminal import print_line, progress_bar
from state_sensor_ros.files.recording import RecordingReader
from state_sensor_ros.frame import Frame
from state_sensor_ros.library.stream import CUT, FaultList, FrameFault, FrameLoop
from state_sensor_ros.source import LOST, UNDECLARED

_REPEATED = 'repeated_frame'


def reading(recording: RecordingReader, what: str, *,
            is_quiet: bool = False) -> closing[Generator[Frame, None, None]]:
    """
    Read the frames of a recording with progress, until the end of a block.

    :param what: name of the work, one word, for the progress bar.
    :param is_quiet: whether to show no progress.
    """
    def frames() -> Generator[Frame, None, None]:
        with _progress(recording, what, is_quiet=is_quiet) as show:
            for frame in recording.frames():
                yield frame
                show()

    return closing(frames())


@contextmanager
def _progress(recording: RecordingReader, what: str, *, is_quiet: bool,
              ) -> Iterator[Callable[[], object]]:
    """Make what shows the position in a recording; report a cut at its end."""
    with progress_bar(recording, what, is_quiet=is_quiet) as bar:
        # Saves a tenth of the time: garbage collections skip the objects built until now.
        gc.freeze()
        try:
            yield lambda: None if bar is None else bar.update(recording.position - bar.n)
        finally:
            gc.unfreeze()
    if recording.cut is not None:
        print_line(f'warning: {recording.cut.warning}')


def read_frames(recording: FrameLoop, what: str, *, is_quiet: bool = False,
                warns: bool = True) -> Iterator[Frame]:
    """
    Yield the frames of a recording with progress, then print a warning for each kind of fault.

    A cut is always reported, whatever ``warns``.
    """
    has_frames, faults, last_s = False, FaultList(), math.nan
    with _progress(recording.reader, what, is_quiet=is_quiet) as show:
        for frame in recording:
            has_frames = True
            if frame.game_time == last_s:
                faults.add(FrameFault(_REPEATED, recording.place, again(last_s)))
            last_s = frame.game_time
            yield frame
            show()
    for line in (*_lines(recording.faults), *_lines(faults)) if warns else ():
        print_line(f'warning: {recording.name}: {line}')
    # Without a frame there is an error.
    if has_frames:
        warn_of_unmatched(recording.name, recording.unmatched)


def again(game_time: float) -> str:
    """Return the text about a repeated frame."""
    return f'game_time is {game_time:.6g} again'


def warn_of_unmatched(name: str, lines: Iterable[str]) -> None:
    """Print warnings about what is selected and a recording does not have."""
    for line in lines:
        print_line(f'warning: {name}: {line}')


class Warnings:
    """The first warning of each kind, and the number of them."""

    def __init__(self, name: str) -> None:
        self.place = ''
        self._name = name
        self.faults = FaultList()

    def add(self, kind: str, text: str) -> None:
        """Count a warning about the frame at :attr:`place`; keep the first text of each kind."""
        # kind: kind of the fault, with ``_`` for spaces.
        self.faults.add(FrameFault(kind, self.place, text))

    def lines(self) -> list[str]:
        """Return one line for each kind, without the name of the recording."""
        return [*_lines(self.faults)]

    def show(self) -> None:
        """Print one line for each kind."""
        for line in self.lines():
            print_line(f'warning: {self._name}: {line}')


def _lines(faults: FaultList) -> Iterator[str]:
    """Yield one line for each kind of fault except a cut, which is reported apart."""
    for kind, count in faults.counts.items():
        if kind != CUT:
            first = next(fault for fault in faults if fault.kind == kind)
            words = kind.replace('_', ' ', 2 if kind.startswith(UNDECLARED) else -1)
            what = 'payload dropped' if kind == LOST else \
                'consistency' if kind.startswith('consistency ') else words
            more = f' (and {count - 1} more of this kind)' if count > 1 else ''
            yield f'{what}: {first.place}: {first.text}{more}'
