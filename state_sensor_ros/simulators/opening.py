# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The opening of recordings and streams that come from any simulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from state_sensor_ros.errors import importing, TrajectoryFormatError
from state_sensor_ros.files.bags.bag_form import is_bag, is_compressed_storage
from state_sensor_ros.files.recording import (
    Recording,
    STANDARD_INPUT,
    TABLE_SUFFIX,
    TRAJECTORY_SUFFIXES,
)
from state_sensor_ros.files.whole.regular_files import check_regular
from state_sensor_ros.payloads import PayloadDecoder, Report
from state_sensor_ros.rep103 import DEFAULT_UNITS, Units
from state_sensor_ros.settings import FILE, Settings
from state_sensor_ros.simulators.simulator import SimulatorTopics
from state_sensor_ros.simulators.simulator_list import (
    default_simulator,
    find_simulator,
    simulators,
)

if TYPE_CHECKING:
    from state_sensor_ros.files.player import Follower
    from state_sensor_ros.files.storage.bag_limits import BagLimits
    from state_sensor_ros.pipeline.source import Source

def open_any(path: str, units: Units = DEFAULT_UNITS, topic: str = '', *,
             max_bag_bytes: int | None = None) -> Recording:
    """
    Open a recording of any form: a bag, or the own form of a simulator.

    :param path: a file, a folder, or ``-`` for a trajectory on standard input.
    :param units: of box extents and of ``s``.
    :param topic: of a bag with several topics of the type StateFrame.
    :param max_bag_bytes: size above which a message or a chunk of a bag is refused; None for the
        default.
    :raises TrajectoryFormatError: where it has no known form, or cannot be read.
    """
    where = Path(path)
    if path != STANDARD_INPUT and is_bag(where):
        return _open_bag(where, topic, max_bag_bytes)
    if is_compressed_storage(where):
        raise TrajectoryFormatError(path, 'a compressed file of a bag', "the bag's folder")
    if where.suffix == TABLE_SUFFIX and where.is_file():
        # Loaded for tables only.
        from state_sensor_ros.files.tables.table_recording import TableRecording
        with importing(path):
            return TableRecording(where, _limits(max_bag_bytes))
    if topic:
        raise TrajectoryFormatError(path, 'no bag', f'one with the topic {topic}')
    # The usual form is the last to be tried: it takes every file. A name of its own saves the
    # search for other simulators.
    is_trajectory = path == STANDARD_INPUT or (
        path.endswith(TRAJECTORY_SUFFIXES) and not where.is_dir())
    for simulator in [default_simulator()] if is_trajectory else sorted(
            simulators().values(), key=lambda each: each is default_simulator()):
        recording = simulator.open_recording(where, units)
        if recording is not None:
            return recording
    raise TrajectoryFormatError(path, 'an unknown form', 'a trajectory or a bag')


def _limits(max_bag_bytes: int | None) -> BagLimits:
    from state_sensor_ros.files.storage.bag_limits import BagLimits, DEFAULT_LIMITS
    return DEFAULT_LIMITS if max_bag_bytes is None else BagLimits(max_bag_bytes)


def _open_bag(path: Path, topic: str, max_bag_bytes: int | None) -> Recording:
    # rosbags and its types are loaded for bags only.
    from state_sensor_ros.files.bags.bag_reader import Bag
    known = simulators().values()
    bag = Bag(path, topic, _limits(max_bag_bytes))
    for simulator in known:
        if simulator.bag_topic is not None and bag.has(*simulator.bag_topic):
            return simulator.open_bag(bag)
    return default_simulator().open_bag(bag)


class Input:
    """
    What a node receives: the source, the decoder of its payloads, and the topics only it has.

    A recording is opened once and belongs to the first source; :meth:`open_source` opens it again
    for a later one.

    :param report: called with a kind and a line about what was found beside the frames.
    :raises StateSensorError: where a recording cannot be opened.
    """

    def __init__(self, settings: Settings, report: Report) -> None:
        self._settings, self._report = settings, report
        self._simulator = find_simulator(settings.source)
        self._recording = self._opened() if settings.source == FILE else None
        self._new_decoder = None if self._recording is None else self._recording.new_decoder
        if self._recording is not None:
            self._simulator = find_simulator(self._recording.simulator)
        self.topics: SimulatorTopics = self._simulator.topics(
            settings, recording=self._recording)

    def _opened(self) -> Recording:
        settings = self._settings
        # Opening a pipe would block the thread that answers the life cycle.
        check_regular(settings.trajectory_file)
        return open_any(
            settings.trajectory_file, Units(settings.obb_extents, settings.road_s_unit),
            max_bag_bytes=settings.max_bag_bytes)

    def new_decoder(self) -> PayloadDecoder:
        """Make a decoder of the payloads."""
        if self._new_decoder is not None:
            return self._new_decoder()
        return self._simulator.new_decoder(self._settings)

    def open_source(self) -> Source:
        """
        Make the source.

        :raises StateSensorError: where it cannot be opened.
        """
        settings = self._settings
        if settings.source != FILE:
            return self._simulator.open_source(settings, self._report)
        from state_sensor_ros.files.player import FileSource
        recording, self._recording = self._recording or self._opened(), None
        return FileSource(recording, rate=settings.rate, loop=settings.loop,
                          follower=self._follower(recording) if settings.outputs else None)

    def _follower(self, recording: Recording) -> Follower | None:
        """Return what reads a recording ahead, where an output has predicted paths."""
        from state_sensor_ros.files.look_ahead import is_needed, LookAhead
        if not is_needed(self._settings):
            return None
        return LookAhead(self._opened(), recording.new_decoder(), self._settings)

    def close(self) -> None:
        """Close a recording that no source has taken; doing so twice is harmless."""
        if self._recording is not None:
            self._recording.close()
            self._recording = None
