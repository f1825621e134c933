# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A bag of CARLA's topics to a dataset's folder, as a part of `convert`.

May know: progress, interruptions. Must not know: messages, files of a dataset.
"""

from __future__ import annotations

from tqdm import tqdm

from state_sensor_ros.carla.messages import frames_of_messages, TOPICS
from state_sensor_ros.carla.writer import DatasetWriter
from state_sensor_ros.commands.interruption import interruptible
from state_sensor_ros.errors import DecodeError, TrajectoryFormatError
from state_sensor_ros.recordings import BagRecording


def write_dataset(recording: BagRecording, path: str, *, force: bool) -> bool:
    """
    Write what is in a bag as a dataset; an interruption ends it early and leaves it whole.

    :param path: of the folder.
    :param force: whether a dataset of that name may be replaced.
    :returns: whether it was interrupted.
    :raises TrajectoryFormatError: where the bag has not got what a dataset needs.
    :raises SinkError: where the folder cannot be written.
    """
    writer = DatasetWriter(path, overwrite=force)
    try:
        with interruptible() as interruption, tqdm(
                total=recording.total, unit=recording.unit, disable=None, desc='convert',
                leave=False) as bar:
            for frame in interruption.until(frames_of_messages(
                    recording.messages_of_node(TOPICS))):
                writer.write(frame)
                bar.update()
        if not writer.n_frames:
            raise TrajectoryFormatError(recording.name, 'no frame that has a ~/player/status',
                                        'at least one')
        writer.finish()
    except DecodeError as error:
        raise TrajectoryFormatError(f'{recording.name}: {error.where}', error.found,
                                    error.expected) from error
    finally:
        writer.abort()
    return interruption.is_wanted
