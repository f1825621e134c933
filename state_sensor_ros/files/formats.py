# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""The table of formats: a row for each format of a recording, by the name of its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, BinaryIO, cast, TYPE_CHECKING

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.fields import rows_of
from state_sensor_ros.frame import Frame
from state_sensor_ros.rep103 import Units
from state_sensor_ros.settings import DEFAULTS, Settings

if TYPE_CHECKING:
    from pathlib import Path

    from state_sensor_ros.files.recording import FrameWriter, RecordingReader

CONVERT, RENDER, VIEW = 'convert', 'render', 'view'


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of a reader."""

    # Of the node or the command: units, and the parameters of simulators.
    settings: Settings = DEFAULTS
    topic: str = ''  # topic to read from a bag with several of the type StateFrame

    @property
    def units(self) -> Units:
        """Return the units of box extents and of ``s``."""
        return units_of(self.settings)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a writer."""

    force: bool = False  # whether an output of that name may be replaced
    settings: Settings = DEFAULTS  # of the conversion or the stream
    # Values by name of the options in :attr:`Format.writes` that are not parameters.
    values: Mapping[str, Any] = field(default_factory=dict)
    source: str = ''  # name of the recording or stream
    format_name: str = ''  # its format
    recording: RecordingReader | None = None

    @property
    def units(self) -> Units:
        """Return the units of box extents and of ``s``."""
        return units_of(self.settings)


def units_of(settings: Settings) -> Units:
    """Return the units of box extents and of ``s`` in ``settings``."""
    return Units(settings.obb_extents, settings.road_s_unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """
    One format of recordings.

    ``name`` value of the option --to; ``noun`` with its article; ``suffixes`` of its files, the
    first one for new files, none for a folder; ``reader`` and ``writer`` as ``module:name``,
    empty if the format cannot be read or is not written frame by frame (pictures; bags, which
    are written by the pipeline of the node into ``storage``); ``command`` that writes it;
    ``generations`` schemas of its frames, the newest first, values of the option --generation;
    ``reads`` and ``writes`` names of the options that the reader and the writer use. ``carries``
    names of the fields of frames that it holds (``fields.py``), EVERY_PART if the writer
    itself names what it drops; commands warn of all others.

    ``recognized_by`` names, in the same way, a function that returns whether an existing Path is
    of this format: needed for a folder, and for a suffix that other formats share. With
    ``any_name`` the content alone decides: a file of any name may be of this format, and one with
    the suffix may not.

    ``reader`` is called with a path and :class:`ReadOptions`, and returns a RecordingReader;
    ``writer`` with a path and :class:`WriteOptions`, and returns a FrameWriter. ``repair`` is
    called with a truncated file, an open file to copy its whole frames to, and its name, and
    returns their number and a description of the loss.
    """

    name: str
    noun: str
    suffixes: tuple[str, ...] = ()
    recognized_by: str = ''
    any_name: bool = False
    reader: str = ''
    writer: str = ''
    repair: str = ''
    storage: str = ''
    generations: tuple[str, ...] = ()
    command: str = CONVERT
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    carries: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return texts_of((self,))[0]

    @property
    def is_written(self) -> bool:
        """Whether `convert` and `record` write it."""
        return bool(self.writer or self.storage)

    def is_of(self, path: Path) -> bool:
        """
        Return whether a folder, or a file with a suffix of this format, has this format.

        :raises OSError: if it cannot be read.
        """
        if self.recognized_by:
            return bool(imported(self.recognized_by)(path))
        return bool(self.suffixes)

    def open(self, path: str, options: ReadOptions) -> RecordingReader:
        """
        Open a recording; the format must have a reader.

        :raises TrajectoryFormatError: if it cannot be read.
        """
        return cast('RecordingReader', imported(self.reader)(path, options))

    def create(self, path: str, options: WriteOptions) -> FrameWriter:
        """
        Begin a recording; the format must have a writer.

        :raises StateSensorError: if it cannot be written, or an option is out of its range.
        """
        writer = cast('FrameWriter', imported(self.writer)(path, options))
        writer.name_losses(self.noun, self.carries)
        return writer

    def copy_whole(self, cut: BinaryIO, target: BinaryIO, name: str) -> tuple[int, str]:
        """
        Copy the whole frames of a truncated file; the format must have ``repair``.

        :param cut: truncated file, open for reading, seekable.
        :param target: file to copy to, open for writing.
        :param name: name of the file, for errors.
        :returns: their number; a description of the loss, empty for none.
        :raises TrajectoryFormatError: if there is no whole frame.
        """
        return cast('tuple[int, str]', imported(self.repair)(cut, target, name))


def texts_of(formats: Iterable[Format]) -> list[str]:
    """Return formats as texts, with the suffixes of one noun together."""
    suffixes: dict[str, dict[str, None]] = {}
    for each in formats:
        suffixes.setdefault(each.noun, {}).update(dict.fromkeys(each.suffixes))
    return [f'{noun} ({", ".join(found) or "a folder"})' for noun, found in suffixes.items()]


def imported(text: str) -> Any:  # noqa: ANN401
    """Return what a format or a simulator names as ``module:name``."""
    module, _, name = text.partition(':')
    try:
        return getattr(import_module(module), name)
    except (AttributeError, ValueError) as error:
        raise ConfigError(repr(text), str(error), 'module:name of a function') from error
    except ModuleNotFoundError as error:
        # Another module is a library that is not installed.
        if not f'{module}.'.startswith(f'{error.name}.'):
            raise
        raise ConfigError(repr(text), str(error), 'module:name of a function') from error


_FILES = 'state_sensor_ros.files'
_BAG_READER = f'{_FILES}.bag_frames:open_bag'
_BAG_READS = frozenset(('topic',))
_BAG_WRITES = frozenset(('clock', 'name', 'namespace', 'ego_tag', 'outputs'))
_MCAP_WRITES = _BAG_WRITES | {'storage', 'compression'}
_TABLE_WRITER = f'{_FILES}.tables.table:TableOutput'
_TABLE_WRITES = frozenset(('columns', 'ego_tag'))
_IN_TABLES = frozenset(('boxes', 'ids', 'lanes', 'road_names')) | {
    field.name for field in rows_of(Frame) if field.columns}
_DRAWN = frozenset(('color', 'title', 'names', 'map', 'ego_tag'))

BAG = Format(
    name='bag', noun='a bag', recognized_by=f'{_FILES}.bag:is_bag',
    reader=_BAG_READER, storage='mcap', reads=_BAG_READS, writes=_MCAP_WRITES)
MCAP = Format(
    name='mcap', noun='a bag in one file', suffixes=('.mcap',), reader=_BAG_READER,
    storage='mcap', reads=_BAG_READS, writes=_MCAP_WRITES)
SQLITE = Format(
    name='sqlite3', noun='a bag in one file', suffixes=('.db3',), reader=_BAG_READER,
    storage='sqlite3', reads=_BAG_READS, writes=_BAG_WRITES | {'storage'})
PARQUET = Format(
    name='parquet', noun='a table', suffixes=('.parquet',), writer=_TABLE_WRITER,
    reader=f'{_FILES}.tables.table_recording:open_table',
    writes=_TABLE_WRITES, carries=_IN_TABLES)
CSV = Format(
    name='csv', noun='a table', suffixes=('.csv', '.csv.gz', '.csv.zst'), writer=_TABLE_WRITER,
    repair=f'{_FILES}.tables.table:copy_whole', writes=_TABLE_WRITES,
    carries=_IN_TABLES)
PICTURE = Format(
    name='picture', noun='a picture', suffixes=('.png',), command=RENDER,
    writes=_DRAWN | {'at', 'size', 'dpi', 'style', 'legend'})
VECTORS = Format(
    name='vectors', noun='a vector picture', suffixes=('.svg', '.pdf'), command=RENDER,
    writes=_DRAWN | {'at', 'size', 'style', 'legend'})
ANIMATION = Format(
    name='animation', noun='an animation', suffixes=('.html',), command=RENDER,
    writes=_DRAWN | {'at'})
FILM = Format(
    name='film', noun='a video', suffixes=('.gif', '.mp4'), command=RENDER,
    writes=_DRAWN | {'size', 'dpi', 'legend'})
SCENE = Format(
    name='scene', noun='a scene of Rerun', suffixes=('.rrd',), command=VIEW,
    writes=frozenset(('names', 'map', 'ego_tag')))

FORMATS = (BAG, MCAP, SQLITE, PARQUET, CSV, PICTURE, VECTORS, ANIMATION, FILM, SCENE)
