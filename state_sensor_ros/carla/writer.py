# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A new dataset's folder, whole under its name or not at all.

May know: names of files and folders, what is overwritten and what is not. Must not know: what is
in a file. Images are not written: beyond 512 m a depth in metres, float32, cannot be turned back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import os
from pathlib import Path
import shutil
import tempfile

from state_sensor_ros.carla.dataset import find_episodes
from state_sensor_ros.carla.format import format_measurement_file
from state_sensor_ros.errors import SinkError, told, TrajectoryFormatError
from state_sensor_ros.frame import Frame


class DatasetWriter:
    """
    Write frames one after the other; :meth:`finish` or :meth:`abort` ends it.

    A frame whose clock went back begins an episode. A single episode lies in the folder itself,
    several each in one of their own.

    :param path: of the folder.
    :param overwrite: whether a dataset of that name may be replaced.
    :raises SinkError: when there is something of that name, or no place to write to.
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False) -> None:
        self.path = Path(os.path.abspath(path))
        self.n_frames = 0
        self._where = str(path)
        self._check_free(overwrite)
        with self._failing():
            # Beside the dataset, so that renaming does not copy.
            self._folder = Path(tempfile.mkdtemp(prefix=f'.{self.path.name}.',
                                                 dir=self.path.parent))
            self._folder.chmod(0o755)
        self._episodes: list[Path] = []
        self._n_in_episode = 0
        self._game_time = 0.0

    def write(self, frame: Frame) -> None:
        """
        Add a frame.

        :raises SinkError: when that fails.
        :raises StateError: where the frame is not one of CARLA.
        """
        text = format_measurement_file(frame)
        with self._failing():
            if not self._episodes or frame.game_time < self._game_time:
                self._episodes.append(self._folder / f'episode_{len(self._episodes):05d}')
                self._episodes[-1].mkdir()
                self._n_in_episode = 0
            name = f'measurements_{self._n_in_episode:05d}.json'
            (self._episodes[-1] / name).write_bytes(text)
        self._game_time = frame.game_time
        self._n_in_episode += 1
        self.n_frames += 1

    def finish(self) -> None:
        """
        Give the dataset its name.

        :raises SinkError: when that fails; nothing is left then.
        """
        try:
            with self._failing():
                if self.path.exists():
                    shutil.rmtree(self.path)
                whole = self._episodes[0] if len(self._episodes) == 1 else self._folder
                whole.rename(self.path)
        finally:
            self.abort()

    def abort(self) -> None:
        """Leave nothing; doing so twice, or after :meth:`finish`, is harmless."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _check_free(self, overwrite: bool) -> None:
        if not self.path.exists():
            return
        if not overwrite:
            raise SinkError(self._where, 'something that exists', 'another name, or --force')
        try:
            find_episodes(self.path)
        except TrajectoryFormatError as error:
            raise SinkError(self._where, 'something that is no dataset',
                            'a dataset to overwrite') from error

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Turn what goes wrong into one line."""
        try:
            yield
        except OSError as error:
            raise SinkError(self._where, told(error), 'room to write a dataset') from error
