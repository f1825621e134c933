# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""A recording read from its beginning to its end, with progress on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
import gc
import sys
from typing import NoReturn, TYPE_CHECKING

from state_sensor_ros.commands.printing import print_line
from state_sensor_ros.commands.warnings import show_faults
from state_sensor_ros.frame import Frame
from state_sensor_ros.library.frame_recording import FrameRecording
from state_sensor_ros.recordings.recording import RecordedFrame, Recording

if TYPE_CHECKING:
    from tqdm import tqdm


class Reading:
    """The result of :func:`reading`: ``frames`` to iterate over, once."""

    def __init__(self, recording: Recording, bar: tqdm[NoReturn] | None) -> None:
        self.frames = self._with_progress(recording, bar)

    def _with_progress(self, recording: Recording,
                       bar: tqdm[NoReturn] | None) -> Iterator[RecordedFrame]:
        for recorded in recording.frames():
            yield recorded
            if bar is not None:
                bar.update(recorded.position - bar.n)
        if recording.cut is not None:
            print_line(f'warning: {recording.cut.warning}')


@contextmanager
def reading(recording: Recording, what: str) -> Iterator[Reading]:
    """
    Read a recording.

    :param what: name of the work, one word, for the progress bar.
    """
    with progress_bar(recording, what) as bar:
        # Saves a tenth of the time: objects built until now are excluded from collections.
        gc.freeze()
        try:
            yield Reading(recording, bar)
        finally:
            gc.unfreeze()


def read_frames(recording: FrameRecording, what: str) -> Iterator[Frame]:
    """
    Yield the frames of a recording with progress, then print a warning for each kind of fault.

    :param what: name of the work, one word, for the progress bar.
    """
    with progress_bar(recording, what) as bar:
        # As in :func:`reading`.
        gc.freeze()
        try:
            for frame in recording:
                yield frame
                if bar is not None:
                    bar.update(recording.position - bar.n)
        finally:
            gc.unfreeze()
    if recording.cut is not None:
        print_line(f'warning: {recording.cut.warning}')
    show_faults(recording.name, recording.faults)


def progress_bar(recording: Recording | FrameRecording,
                 what: str) -> AbstractContextManager[tqdm[NoReturn] | None]:
    """
    Return a progress bar on a terminal; elsewhere None, without importing tqdm.

    :param recording: with the total and the unit.
    :param what: name of the work, one word.
    """
    if not sys.stderr.isatty():
        return nullcontext()
    from tqdm import tqdm
    return tqdm(total=recording.total, unit=recording.unit, unit_scale=recording.unit == 'B',
                desc=what, leave=False)
