# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Writer of the folder of a dataset, which gets its name only when it is complete.

Images are not written: beyond 512 m the 24-bit depth cannot be recovered from metres in float32.
"""

from __future__ import annotations

from pathlib import Path
import re

from state_sensor_ros.carla.measurement_formatting import format_measurement_file
from state_sensor_ros.frame import Frame
from state_sensor_ros.recordings.files.whole_folder import Own, WholeFolder
from state_sensor_ros.simulators.simulator import FrameWriter

# Files written here. A folder with any other file, such as an image, is not replaced.
_OWN = re.compile(r'episode_\d{5,}/|(episode_\d{5,}/)?measurements_\d{5,}\.json')


class DatasetWriter(FrameWriter):
    """
    Write frames; :meth:`commit`, :meth:`abort` or the end of a ``with`` block finishes.

    A frame with an earlier game time begins an episode. The files of a single episode are in the
    folder itself, those of several in one sub-folder each.

    :param path: of the folder.
    :param overwrite: whether a dataset of that name may be replaced.
    :raises SinkError: when ``path`` exists and may not be replaced, or cannot be written.
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
        """Return a description of the remains of a replaced dataset, ``''`` for none."""
        return self._folder.remains

    def write(self, frame: Frame) -> None:
        """
        Add a frame.

        :param frame: with boxes and a CarlaData, in SI units and REP-103 axes.
        :raises SinkError: when the file cannot be written.
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
        """
        Wait until the files have reached the disk.

        :raises SinkError: when that fails.
        """
        self._folder.complete()

    def commit(self) -> None:
        """
        Complete the dataset and rename its folder to ``path``.

        :raises SinkError: when that fails; the folder is kept beside ``path``.
        """
        self.complete()
        self._folder.commit(self._episodes[0] if len(self._episodes) == 1 else self._dataset)

    def discard(self) -> str:
        """Remove the written files; return a description of files that are left."""
        return self._folder.discard()

    def abort(self) -> None:
        """Remove the written files."""
        self._folder.abort()


def _own_files(folder: Path) -> Own:
    """Return whether an entry of ``folder`` is a file of a dataset written here."""
    return lambda entry: _OWN.fullmatch(entry) is not None
