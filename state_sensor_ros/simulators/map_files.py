# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The lines of a map from a file, by its suffix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.files.formats import imported
from state_sensor_ros.frame import MapLine
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.simulator import SimulatorTopics
from state_sensor_ros.simulators.simulator_list import simulators


def map_suffixes() -> Mapping[str, str]:
    """Return the function that reads a map, ``module:function``, by the suffix of its file."""
    return {suffix: reader for simulator in simulators().values()
            for suffix, reader in simulator.map_files.items()}


def read_map(path: str) -> tuple[MapLine, ...]:
    """
    Read a map.

    The one way from a file to lines: a simulator adds a kind of file by a row in
    :attr:`Simulator.map_files`, and pictures, animations and ~/map show it.

    :param path: a file with one of :func:`map_suffixes`.
    :raises StateSensorError: if it has another suffix, is missing, or is not such a map.
    """
    readers = map_suffixes()
    suffix = max((each for each in readers if path.endswith(each)), key=len, default='')
    if not suffix:
        raise ConfigError(path, 'a file of another kind',
                          f'a map: {", ".join(sorted(readers))}')
    if not Path(path).is_file():
        raise ConfigError(path, 'no such file')
    reader = cast(Callable[[str], Sequence[MapLine]], imported(readers[suffix]))
    return tuple(reader(path))


def with_map(topics: SimulatorTopics, settings: Settings) -> SimulatorTopics:
    """
    Return the topics of a source, ~/map with the lines of ``map_file`` if it is set.

    :param topics: those that only the simulator has.
    :param settings: of the node, or of what writes a bag.
    :raises StateSensorError: if the map cannot be read.
    """
    if not settings.map_file:
        return topics
    from state_sensor_ros.topics.map_topics import MapEncoder
    given = partial(MapEncoder, lines=read_map(settings.map_file))
    return replace(topics, encoders=(*topics.encoders, given))
