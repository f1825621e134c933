# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A new dataset's folder, whole under its name or not at all.

May know: names of files and folders. Must not know: what is in a file. Images are not written:
beyond 512 m a depth in metres, float32, cannot be turned back.
"""

from __future__ import annotations

from pathlib import Path
import re

from state_sensor_ros.carla.format import format_measurement_file
from state_sensor_ros.frame import Frame
from state_sensor_ros.recordings.files.whole_folder import Own, WholeFolder
from state_sensor_ros.simulators.simulator import FrameWriter

# What is written; an image among it was not written here, and is not replaced.
_OWN = re.compile(r'episode_\d{5,}/|(episode_\d{5,}/)?measurements_\d{5,}\.json')


class DatasetWriter(FrameWriter):
    """
    Write frames one after the other; :meth:`commit`, :meth:`abort` or a ``with`` ends it.

    A frame whose clock went back begins an episode. A single episode lies in the folder itself,
    several each in one of their own.

    :param path: of the folder.
    :param overwrite: whether a dataset of that name may be replaced.
    :raises SinkError: when there is something of that name, or no place to write to.
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False) -> None:
        self.name = str(path)
        self.n_frames = 0
        self._folder = WholeFolder(path, noun='dataset', own=_own_files, force=overwrite)
        self._dataset = self._folder.inside / 'dataset'
        self._episodes: list[Path] = []
        self._n_in_episode = 0
        self._game_time = 0.0

    @property
    def remains(self) -> str:
        """Describe what is left of a dataset that was replaced, in words, ``''`` if nothing."""
        return self._folder.remains

    def write(self, frame: Frame) -> None:
        """
        Add a frame.

        :raises SinkError: when that fails.
        :raises StateError: where the frame is not one of CARLA.
        """
        text = format_measurement_file(frame)
        try:
            if not self._episodes or frame.game_time < self._game_time:
                self._episodes.append(self._dataset / f'episode_{len(self._episodes):05d}')
                self._episodes[-1].mkdir(parents=True)
                self._n_in_episode = 0
            name = f'measurements_{self._n_in_episode:05d}.json'
            (self._episodes[-1] / name).write_bytes(text)
        except OSError as error:
            raise self._folder.error(error) from error
        self._game_time = frame.game_time
        self._n_in_episode += 1
        self.n_frames += 1

    def complete(self) -> None:
        """Wait until what was written has reached the disk."""
        self._folder.complete()

    def commit(self) -> None:
        """Give the dataset its name; it is kept beside it where that fails."""
        self.complete()
        self._folder.commit(self._episodes[0] if len(self._episodes) == 1 else self._dataset)

    def discard(self) -> str:
        """Remove what was written and return what is left, in words."""
        return self._folder.discard()

    def abort(self) -> None:
        """Leave no trace of what was written."""
        self._folder.abort()


def _own_files(folder: Path) -> Own:
    """Tell the files of a dataset as it is written here from others."""
    return lambda entry: _OWN.fullmatch(entry) is not None
