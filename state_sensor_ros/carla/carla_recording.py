# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Recordings of CARLA: a dataset, and a bag with CARLA's topics."""

from __future__ import annotations

from collections.abc import Iterator
import math
from pathlib import Path

from state_sensor_ros.carla.bag_messages import (
    FRAME,
    MessagesDecoder,
    pack_parts,
    parts_of_frames,
    TOPICS_WITH_IMAGES,
)
from state_sensor_ros.carla.carla_decoder import DatasetDecoder
from state_sensor_ros.carla.dataset import find_episodes, read_frames
from state_sensor_ros.errors import TruncatedError
from state_sensor_ros.payloads import Packet, PayloadDecoder
from state_sensor_ros.recordings.bags.bag_recording import BagRecording
from state_sensor_ros.recordings.recording import PERIOD_S, RecordedFrame


class CarlaBagRecording(BagRecording):
    """The StateFrames of a bag, each with the messages of CARLA's topics that have its stamp."""

    simulator = 'carla'

    def new_decoder(self) -> PayloadDecoder:
        """Make a decoder of the messages of a frame."""
        return MessagesDecoder()

    def payloads(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield each serialised StateFrame, and it with the other messages of its frame."""
        return ((parts[FRAME], pack_parts(parts)) for parts in parts_of_frames(
            self.messages_of_node(TOPICS_WITH_IMAGES)))


class DatasetRecording:
    """
    The episodes of a dataset in order; at the start of each, game time restarts.

    :param path: folder of the dataset or of one episode.
    :raises TrajectoryFormatError: where it has no measurements.
    """

    unit = 'frame'
    form = 'dataset of CARLA'
    simulator = 'carla'

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.decoder = self.new_decoder()
        self.cut: TruncatedError | None = None
        self._path = path
        self._episodes = find_episodes(path)
        self.total: int | None = sum(len(episode.measurements) for episode in self._episodes)

    def new_decoder(self) -> PayloadDecoder:
        """Make a decoder of measurement files."""
        return DatasetDecoder()

    def frames(self) -> Iterator[RecordedFrame]:
        """Yield all frames."""
        game_time = -PERIOD_S
        for index, frame in enumerate(read_frames(self._path, self._episodes)):
            game_time = game_time + PERIOD_S if math.isnan(frame.game_time) else frame.game_time
            yield RecordedFrame(Packet(frame.payload, game_time, 0, 0), frame.game_time, index,
                                frame.name, index + 1)

    def close(self) -> None:
        """Do nothing: no file stays open."""
