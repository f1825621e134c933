# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Recordings of CARLA: a dataset, and a bag with CARLA's topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
import math
from pathlib import Path

from state_sensor_ros.simulators import (
    DecodeError,
    Packet,
    PayloadDecoder,
    ReadOptions,
    RecordedFrame,
    TrajectoryFormatError,
    TruncatedError,
)
from state_sensor_ros.simulators.bag_reading import Bag, BagRecording
from state_sensor_ros.simulators.carla.bag_messages import (
    FRAME,
    MessagesDecoder,
    pack_parts,
    parts_of_frames,
    sensors_of_topics,
    topics_with_sensors,
    with_recorded_poses,
)
from state_sensor_ros.simulators.carla.carla_data import PLAYER_NAME
from state_sensor_ros.simulators.carla.dataset import find_dataset, read_frames
from state_sensor_ros.simulators.carla.decoder import DatasetDecoder
from state_sensor_ros.simulators.carla.sensors import Sensor
from state_sensor_ros.simulators.carla.topic_names import sensor_of_topic
from state_sensor_ros.simulators.own_topics import STATIC_TF_TOPIC
from state_sensor_ros.simulators.recordings import PERIOD_S


class CarlaBagRecording(BagRecording):
    """
    The StateFrames of a bag, each with the messages of CARLA's topics that have its stamp.

    :param bag: closed by :meth:`close`.
    :ivar sensors: that have topics in the bag, with the poses that its /tf_static has.
    :ivar sensor_counts: messages by name and kind of a sensor.
    :ivar ignored: empty.
    :raises TrajectoryFormatError: if its /tf_static cannot be decoded.
    """

    simulator = 'carla'

    def __init__(self, bag: Bag) -> None:
        super().__init__(bag)
        counts = bag.counts_of_node()
        self._topics = topics_with_sensors(counts)
        self.sensors = sensors_of_topics(counts)
        if self.sensors:
            try:
                self.sensors = with_recorded_poses(self.sensors, bag.messages_of(
                    STATIC_TF_TOPIC.name, STATIC_TF_TOPIC.type_name))
            except DecodeError as error:
                raise TrajectoryFormatError(f'{bag.name}: {error.where}', error.found,
                                            error.expected) from error
        self.sensor_counts: Mapping[tuple[str, str], int] = {
            (sensor.name, sensor.kind): counts[key] for key in sorted(counts)
            if (sensor := sensor_of_topic(*key)) is not None}
        self.ignored: Sequence[str] = ()

    def new_decoder(self) -> PayloadDecoder:
        """Make a decoder of the messages of a frame."""
        return MessagesDecoder()

    def payloads(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield each serialised StateFrame, and it with the other messages of its frame."""
        return ((parts[FRAME], pack_parts(parts)) for parts in parts_of_frames(self.messages()))

    def messages(self) -> Iterator[tuple[str, bytes]]:
        """Yield name and serialised message of the topics that frames are made of."""
        return self.messages_of_node(self._topics)

    def placed_sensors(self) -> tuple[Sensor, ...]:
        """Return the sensors with the poses that are known in the frame of the player."""
        return tuple(replace(sensor, pose=None)
                     if sensor.parent.rpartition('/')[2] != PLAYER_NAME
                     or not any(sensor.pose or ()) else sensor for sensor in self.sensors)


class DatasetRecording:
    """
    The episodes of a dataset in order; at the start of each, game time restarts.

    :param path: folder of the dataset or of one episode.
    :ivar sensors: that have files.
    :ivar sensor_counts: files by name and kind of a sensor.
    :ivar ignored: names of the files that are not read.
    :raises TrajectoryFormatError: if it has no measurements.
    """

    unit = 'frame'
    form = 'dataset of CARLA'
    simulator = 'carla'

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.decoder = self.new_decoder()
        self.cut: TruncatedError | None = None
        self._dataset = dataset = find_dataset(path)
        self.sensors = dataset.sensors()
        self.sensor_counts: Mapping[tuple[str, str], int] = dict(sorted(dataset.counts.items()))
        self.ignored: Sequence[str] = dataset.ignored()
        self.total: int | None = sum(len(episode.measurements) for episode in dataset.episodes)

    def new_decoder(self) -> PayloadDecoder:
        """Make a decoder of measurement files."""
        return DatasetDecoder()

    def frames(self) -> Iterator[RecordedFrame]:
        """Yield all frames."""
        game_time = -PERIOD_S
        for index, frame in enumerate(read_frames(self._dataset)):
            game_time = game_time + PERIOD_S if math.isnan(frame.game_time) else frame.game_time
            yield RecordedFrame(Packet(frame.payload, game_time, 0, 0), frame.game_time, index,
                                frame.name, index + 1)

    def close(self) -> None:
        """Do nothing: no file stays open."""


def open_dataset(path: str, options: ReadOptions) -> DatasetRecording:
    """
    Open a dataset or one of its episodes.

    :raises TrajectoryFormatError: if the folder has no measurements.
    """
    return DatasetRecording(Path(path))
