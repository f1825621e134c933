# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A dataset as one more form of a recording.

May know: what every recording can do. Must not know: what is in a file.
"""

from __future__ import annotations

from collections.abc import Iterator
import math
from pathlib import Path

from state_sensor_ros.carla.dataset import find_episodes, read_frames
from state_sensor_ros.carla.decode import DatasetDecoder
from state_sensor_ros.errors import TruncatedError
from state_sensor_ros.payloads import Packet, PayloadDecoder
from state_sensor_ros.recordings.recorded_frame import Entry, PERIOD_S


class DatasetRecording:
    """
    The episodes of a dataset one after the other; where one begins, time goes back to its start.

    :param path: folder of the dataset or of one episode.
    :raises TrajectoryFormatError: where it has no measurements.
    """

    unit = 'frame'

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.decoder: PayloadDecoder = DatasetDecoder()
        self.cut: TruncatedError | None = None
        self._path = path
        self._episodes = find_episodes(path)
        self.total: int | None = sum(len(episode.measurements) for episode in self._episodes)

    def entries(self) -> Iterator[Entry]:
        """Yield all frames."""
        game_time = -PERIOD_S
        for index, frame in enumerate(read_frames(self._path, self._episodes)):
            game_time = game_time + PERIOD_S if math.isnan(frame.game_time) else frame.game_time
            yield Entry(Packet(frame.payload, game_time, 0, 0), frame.game_time, index,
                        frame.name, index + 1)

    def close(self) -> None:
        """Nothing stays open."""
