# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The opening of recordings, streams and maps that come from any simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import cast, TYPE_CHECKING

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.files import open_any, ReadOptions
from state_sensor_ros.files.input import check_regular
from state_sensor_ros.files.player import FileSource
from state_sensor_ros.files.recording import RecordingReader
from state_sensor_ros.frame import MapLine
from state_sensor_ros.plug_ins import imported
from state_sensor_ros.settings import FILE, Settings
from state_sensor_ros.simulators import find_simulator, simulators, SimulatorTopics
from state_sensor_ros.source import Report, Source
from state_sensor_ros.topics.encoder import output_encoders, TOPICS
from state_sensor_ros.topics.map_topics import MapEncoder, OpenDriveEncoder

if TYPE_CHECKING:
    from state_sensor_ros.control.ego_commands import EgoCommands


class Input:
    """
    What a node receives: the source, and the topics only it has.

    A recording is opened once and belongs to the first source; :meth:`open_source` opens it again
    for a later one.
    """

    def __init__(self, settings: Settings, report: Report) -> None:
        self._settings, self._report = settings, report
        self._simulator = find_simulator(settings.source)
        self._recording = self._opened() if settings.source == FILE else None
        if self._recording is not None:
            self._simulator = find_simulator(self._recording.simulator)
        self.topics: SimulatorTopics = with_map(self._simulator.topics(
            settings, recording=self._recording), settings)

    def _opened(self) -> RecordingReader:
        settings = self._settings
        # Opening a pipe would block the thread that answers the life cycle.
        check_regular(settings.trajectory_file)
        return open_any(settings.trajectory_file, ReadOptions(settings))

    def open_source(self) -> Source:
        settings = self._settings
        if settings.source != FILE:
            return self._simulator.open_source(settings, self._report)
        recording, self._recording = self._recording or self._opened(), None
        return FileSource(recording, settings)

    def open_commands(self, source: Source) -> EgoCommands:
        return self._simulator.open_commands(self._settings, source, self._report)

    def close(self) -> None:
        """Close a recording that no source has taken; doing so twice is harmless."""
        if self._recording is not None:
            self._recording.close()
            self._recording = None


def read_map(path: str) -> tuple[MapLine, ...]:
    """Read a map; a simulator adds a kind of file by a row in :attr:`Simulator.map_files`."""
    readers = {suffix: reader for simulator in simulators().values()
               for suffix, reader in simulator.map_files.items()}
    suffix = max((each for each in readers if path.endswith(each)), key=len, default='')
    if not suffix:
        raise ConfigError(path, 'a file that is not a map', f'a map: {", ".join(sorted(readers))}')
    if not Path(path).is_file():
        raise ConfigError(path, 'no such file or directory')
    reader = cast(Callable[[str], Sequence[MapLine]], imported(readers[suffix]))
    return tuple(reader(path))


def with_map(topics: SimulatorTopics, settings: Settings) -> SimulatorTopics:
    """Return the topics of a source, ~/map and ~/map/opendrive with ``map_file`` if it is set."""
    if not settings.map_file:
        return topics
    lines = read_map(settings.map_file)
    # An encoding that is not UTF-8 is rare, and damages names only.
    text = Path(settings.map_file).read_text('utf-8', errors='replace') \
        if settings.map_file.endswith('.xodr') else ''
    encoders = chain(TOPICS, *map(output_encoders, settings.outputs))
    return topics._replace(encoders=(*topics.encoders, partial(MapEncoder, given=lines), *[
        partial(each, given=text) for each in encoders
        if text and issubclass(each, OpenDriveEncoder)]))
