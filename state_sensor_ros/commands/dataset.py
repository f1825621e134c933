# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A bag of CARLA's topics to a dataset's folder, as a part of `convert`.

May know: progress. Must not know: messages, files of a dataset.
"""

from __future__ import annotations

from tqdm import tqdm

from state_sensor_ros.carla.messages import frames_of_messages, TOPICS
from state_sensor_ros.carla.writer import DatasetWriter
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.errors import DecodeError, TrajectoryFormatError
from state_sensor_ros.recordings.opening import BagRecording


def write_dataset(recording: BagRecording, path: str, interruption: Interruption, *,
                  force: bool) -> None:
    """
    Write what is in a bag as a dataset.

    :param path: of the folder.
    :param force: whether a dataset of that name may be replaced.
    :raises TrajectoryFormatError: where the bag has not got what a dataset needs.
    :raises SinkError: where the folder cannot be written.
    """
    with interruption.writing(lambda: DatasetWriter(path, overwrite=force)) as writer:
        try:
            with tqdm(total=recording.total, unit=recording.unit, disable=None, desc='convert',
                      leave=False) as bar:
                for frame in frames_of_messages(recording.messages_of_node(TOPICS)):
                    writer.write(frame)
                    bar.update()
        except DecodeError as error:
            raise TrajectoryFormatError(f'{recording.name}: {error.where}', error.found,
                                        error.expected) from error
        if not writer.n_frames:
            raise TrajectoryFormatError(recording.name, 'no frame that has a ~/player/status',
                                        'at least one')
