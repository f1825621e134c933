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

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
import os
from pathlib import Path
import re
from shlex import quote
from typing import cast, TYPE_CHECKING

from state_sensor_ros.errors import ConfigError, importing, reading, TrajectoryFormatError
from state_sensor_ros.files.bag import is_compressed_storage
from state_sensor_ros.files.formats import Format, FORMATS, imported, ReadOptions, RENDER, texts_of
from state_sensor_ros.files.input import check_regular, decompressed
from state_sensor_ros.files.look_ahead import is_needed, LookAhead
from state_sensor_ros.files.player import FileSource
from state_sensor_ros.files.recording import RecordingReader, STANDARD_INPUT
from state_sensor_ros.frame import MapLine
from state_sensor_ros.settings import FILE, Settings, SIMULATORS
from state_sensor_ros.simulators.simulator import SimulatorTopics
from state_sensor_ros.simulators.simulator_list import (
    default_simulator,
    find_simulator,
    simulators,
)
from state_sensor_ros.source import Report
from state_sensor_ros.texts import counted
from state_sensor_ros.topics.map_topics import topics_of_map

if TYPE_CHECKING:
    from state_sensor_ros.control.ego_commands import EgoCommands
    from state_sensor_ros.source import Source

# Name of the format that every file may have.
TRAJECTORY = 'json'
READ_DEFAULTS = ReadOptions()
_TABLE_SUFFIXES = '.csv', '.csv.gz', '.parquet'
_FCD_COLUMNS = re.compile(rb'timestep_time|vehicle_x|^time;id;')
_HEAD_BYTES = 65536


def formats() -> tuple[Format, ...]:
    """Return the formats of recordings: those of this package, then those of all simulators."""
    own = [each for simulator in simulators().values() for each in simulator.formats]
    return (*FORMATS, *sorted(own, key=lambda each: each.name != TRAJECTORY))


def _own_formats() -> tuple[Format, ...]:
    return (*FORMATS, *(each for name in SIMULATORS for each in find_simulator(name).formats))


def trajectory_format() -> Format:
    """Return the format that every file may have, and standard input and output have."""
    return next(each for each in default_simulator().formats if each.name == TRAJECTORY)


def format_of_name(path: str) -> Format | None:
    """
    Return the format that the suffix of a name stands for, None for none.

    :param path: of a file or folder, which need not exist.
    """
    # A suffix of this package saves the search for other simulators.
    for known in (_own_formats, formats):
        found = [(len(suffix), each) for each in known() for suffix in each.suffixes
                 if (path.lower() if each.command == RENDER else path).endswith(suffix)]
        if found:
            return max(found, key=lambda each: each[0])[1]
    return None


def format_of(path: str) -> Format:
    """Return the format of a recording."""
    # path: of a file or a folder, or ``-`` for a trajectory on standard input.
    where = Path(path)
    if path == STANDARD_INPUT:
        return trajectory_format()
    if where.is_dir():
        if (found := folder_format(where)) is not None:
            return found
        named = {name: format_of_name(name) for name in os.listdir(where)}
        suffixes = Counter(Path(name).suffix for name, each in named.items()
                           if each and each.reader and not each.storage)
        if suffixes:
            [(suffix, n_files)] = suffixes.most_common(1)
            raise TrajectoryFormatError(
                path, f'a folder with {counted(n_files, f"{suffix} file")}',
                'one recording; `inspect` and `convert --to FORMAT` take many, such as '
                f"'{where / ('*' + suffix)}'")
        stored = [name for name, each in named.items()
                  if (each and each.storage) or is_compressed_storage(where / name)]
        if stored:
            raise TrajectoryFormatError(
                path, f'{counted(len(stored), "file")} of a bag without metadata.yaml',
                'a bag; `state_sensor repair` makes one of the files, or `ros2 bag reindex` '
                'writes metadata.yaml')
        raise TrajectoryFormatError(path, 'a folder without a recording', ' or '.join(_folders()))
    if is_compressed_storage(where) and (found := format_of_name(where.stem)):
        return found
    if is_ros_1(where):
        raise TrajectoryFormatError(path, 'a bag of ROS 1', 'a bag of ROS 2; '
                                    f'{rosbags_convert(path, str(where.with_suffix("")))} makes '
                                    'one')
    found = format_of_name(path) or trajectory_format()
    return _by_content(where, found) if where.is_file() else found


def is_ros_1(path: Path) -> bool:
    """Return whether a file is a bag of ROS 1; raise OSError if it cannot be read."""
    return path.suffix == '.bag' and path.is_file() and _begins_with(path, b'#ROSBAG')


def rosbags_convert(source: str, out: str) -> str:
    """Return the command, which comes with rosbags, that converts from or to a bag of ROS 1."""
    return f'`rosbags-convert --src {quote(source)} --dst {quote(out)}`'


def _by_content(path: Path, found: Format) -> Format:
    """Return the format that recognizes a file: one that shares its suffix, or has any name."""
    suffix = max((each for each in found.suffixes if path.name.endswith(each)), key=len,
                 default='')
    # Formats of this package save the search for other simulators.
    known = _own_formats() if found in _own_formats() else formats()
    try:
        is_xml = found.name == TRAJECTORY and _begins_with(path, b'<')
        recognized = next((each for each in known if each is not found and each.recognized_by
                           and (suffix in each.suffixes or each.any_name
                                or (is_xml and '.xml' in each.suffixes)) and each.is_of(path)),
                          None)
        if recognized is None and is_xml:
            # Its reader determines what the file is.
            return next((each for each in known if '.xml' in each.suffixes), found)
        if recognized is None and found.any_name and not found.is_of(path) and _is_json(path):
            return trajectory_format()
        return recognized or found
    except OSError:
        # The reader gives the reason.
        return found


def _is_json(path: Path) -> bool:
    with path.open('rb') as file:
        head = decompressed(file)[0].read(_HEAD_BYTES)
    return head.removeprefix(BOM_UTF8).lstrip().startswith((b'[', b'{'))


def _begins_with(path: Path, mark: bytes) -> bool:
    with path.open('rb') as file:
        return decompressed(file)[0].read(len(mark)) == mark


def folder_format(folder: Path) -> Format | None:
    """Return the format of a folder that is a recording, None for another one."""
    # A format of this package saves the search for other simulators.
    return next((each for known in (lambda: FORMATS, formats) for each in known()
                 if not each.suffixes and each.is_of(folder)), None)


def _folders() -> list[str]:
    return [each.noun for each in formats() if not each.suffixes]


def open_any(path: str, options: ReadOptions = READ_DEFAULTS) -> RecordingReader:
    """
    Open a recording of any format.

    :param path: a file, a folder, or ``-`` for a trajectory on standard input.
    :param options: of its reader.
    :raises TrajectoryFormatError: if it has no known format, or cannot be read.
    """
    found = format_of(path)
    if path.endswith(_TABLE_SUFFIXES):
        _refuse_fcd_table(Path(path))
    if not found.reader:
        readable = ', '.join(texts_of(each for each in formats() if each.reader))
        raise TrajectoryFormatError(path, f'a {Path(path).suffix} file, which cannot be read',
                                    f'one of {readable}')
    if options.topic and 'topic' not in found.reads:
        raise TrajectoryFormatError(path, 'no bag', f'one with the topic {options.topic}')
    with importing(path), reading(path):
        return found.open(path, options)


def _refuse_fcd_table(path: Path) -> None:
    """
    Refuse FCD output of SUMO in columns, which begins or (Parquet) ends with their names.

    :raises TrajectoryFormatError: if it is such a file.
    """
    with suppress(OSError), path.open('rb') as file:
        if path.suffix == '.parquet':
            file.seek(max(path.stat().st_size - _HEAD_BYTES, 0))
        if _FCD_COLUMNS.search(decompressed(file)[0].read(_HEAD_BYTES)):
            raise TrajectoryFormatError(
                str(path), f"SUMO's FCD output in columns (--fcd-output {path.name})",
                'its XML (--fcd-output FILE.xml or FILE.xml.gz)')


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
        return open_any(settings.trajectory_file, ReadOptions(
            settings))

    def open_source(self) -> Source:
        settings = self._settings
        if settings.source != FILE:
            return self._simulator.open_source(settings, self._report)
        recording, self._recording = self._recording or self._opened(), None
        return FileSource(recording, rate=settings.rate, loop=settings.loop,
                          follower=LookAhead(self._opened(), settings)
                          if settings.outputs and is_needed(settings) else None)

    def open_commands(self, source: Source) -> EgoCommands:
        return self._simulator.open_commands(self._settings, source, self._report)

    def close(self) -> None:
        """Close a recording that no source has taken; doing so twice is harmless."""
        if self._recording is not None:
            self._recording.close()
            self._recording = None


def map_suffixes() -> Mapping[str, str]:
    """Return the function that reads a map, ``module:function``, by the suffix of its file."""
    return {suffix: reader for simulator in simulators().values()
            for suffix, reader in simulator.map_files.items()}


def read_map(path: str) -> tuple[MapLine, ...]:
    """Read a map; a simulator adds a kind of file by a row in :attr:`Simulator.map_files`."""
    readers = map_suffixes()
    suffix = max((each for each in readers if path.endswith(each)), key=len, default='')
    if not suffix:
        raise ConfigError(path, 'a file that is not a map',
                          f'a map: {", ".join(sorted(readers))}')
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
    given = topics_of_map(lines, text)
    return replace(topics, encoders=(*topics.encoders, *given))
