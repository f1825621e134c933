# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What one simulator has beside what all have: topics and their encoders.

May know: which source or recording speaks which simulator's language. Must not know: messages.
What CARLA needs, protobuf and an image library, is loaded for CARLA only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.encode import Sample, Topic
from state_sensor_ros.payloads import Report
from state_sensor_ros.pipeline.pipeline import SimulatorEncoder
from state_sensor_ros.settings import Settings


@dataclass(frozen=True, slots=True)
class Extras:
    """``topics`` that always exist; ``encoders`` makes theirs; ``samples`` to verify."""

    topics: tuple[Topic, ...]
    encoders: Callable[[Settings], tuple[SimulatorEncoder, ...]]
    samples: tuple[Sample, ...]


NOTHING = Extras((), lambda settings: (), ())


def is_of_carla(path: str, max_bag_bytes: int | None = None) -> bool:
    """
    Tell whether a recording is a bag with topics of CARLA, or a dataset: any other folder.

    :param max_bag_bytes: as for :func:`recordings.open_recording`.
    :raises TrajectoryFormatError: when it is a bag that cannot be read.
    """
    from state_sensor_ros.recordings.opening import BagRecording, is_bag
    where = Path(path)
    if not is_bag(where):
        return where.is_dir()
    with closing(BagRecording(where, max_bag_bytes=max_bag_bytes)) as recording:
        return recording.is_of_carla


def extras_of(settings: Settings, definitions: Definitions, report: Report) -> Extras:
    """
    Return what the source of a node has beside the common topics.

    :param report: called with a kind and a line about what cannot be encoded.
    """
    if settings.source == 'carla':
        return carla_extras(settings, definitions, report, with_images=False)
    if settings.source == 'file':
        return extras_of_recording(settings.trajectory_file, settings, definitions, report)
    return NOTHING


def extras_of_recording(path: str, settings: Settings, definitions: Definitions,
                        report: Report) -> Extras:
    """
    Return the same of a recording.

    :raises TrajectoryFormatError: when it is a bag that cannot be read.
    """
    if is_of_carla(path, settings.max_bag_bytes):
        return carla_extras(settings, definitions, report, with_images=True)
    return NOTHING


def carla_extras(settings: Settings, definitions: Definitions, report: Report, *,
                 with_images: bool) -> Extras:
    """
    Return what CARLA has.

    :param with_images: and what only a dataset of it has.
    """
    from state_sensor_ros.carla.encode import CarlaEncoder
    from state_sensor_ros.carla.topics import DATASET_TOPICS, LIVE_TOPICS
    return Extras(DATASET_TOPICS if with_images else LIVE_TOPICS,
                  lambda settings: (CarlaEncoder(settings, definitions, report),),
                  tuple(CarlaEncoder(settings, definitions, report).samples()))
