# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Recordings: the table of their formats, and what opens and begins one.

A format is a row of :data:`FORMATS` and a module. Another package adds rows by the attribute
``formats`` of its plug-in, see :mod:`state_sensor_ros.plug_ins`.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
import os
from pathlib import Path
import re
from typing import Any, BinaryIO, cast, TYPE_CHECKING

from state_sensor_ros import fields, parameters
from state_sensor_ros.errors import importing, reading, TrajectoryFormatError, UsageError
from state_sensor_ros.files.input import decompressed
from state_sensor_ros.frame import EVERY_PART, Frame
from state_sensor_ros.plug_ins import imported, plug_ins
from state_sensor_ros.settings import DEFAULTS, Settings

if TYPE_CHECKING:
    from state_sensor_ros.files.recording import FrameWriter, RecordingReader

CONVERT, RENDER, VIEW = 'convert', 'render', 'view'
# Path of a trajectory on standard input.
STANDARD_INPUT = '-'
_COMPRESSED_BAGS = '.mcap.zstd', '.db3.zstd'
_HEAD_BYTES = 65536
_COMPRESSED = '.gz', '.zst'
_SUFFIX = re.compile(r'\.[^.0-9][^.]*$')
# By the beginning of a file of any name: what it is, and what is expected.
_STRANGERS = {
    b'version https://git-lfs': ('a pointer of Git LFS', 'the file that `git lfs pull` fetches'),
    b'#ROSBAG V': ('a bag of ROS 1', 'a bag of ROS 2')}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of a reader."""

    # Of the node or the command: units, and the parameters of simulators.
    settings: Settings = DEFAULTS
    topic: str = ''  # topic to read from a bag with several of the type StateFrame


READ_DEFAULTS = ReadOptions()


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a writer."""

    force: bool = False  # whether an output of that name may be replaced
    settings: Settings = DEFAULTS  # of the conversion or the stream
    # Values of the options of the command by name.
    values: Mapping[str, Any] = field(default_factory=dict)
    source: str = ''  # name of the recording or stream
    format_name: str = ''  # its format
    recording: RecordingReader | None = None  # None for a stream
    storage: str = ''  # of a bag


@dataclass(frozen=True, slots=True)
class Format:
    """
    One format of recordings.

    ``name`` value of the option --to; ``noun`` with its article; ``suffixes`` of its files, the
    first one for new files, none for a folder; ``reader`` and ``writer`` as ``module:name``, empty
    if it cannot be read or is not written frame by frame (pictures); ``storage`` of a bag;
    ``command`` that writes it; ``generations`` schemas of its frames, the newest first.
    ``carries`` names of the fields of frames that it holds (``fields.py``), EVERY_PART if the
    writer itself names what it drops, none if it names its losses; commands warn of all others.

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
    reader: str = ''
    writer: str = ''
    repair: str = ''
    recognized_by: str = ''
    any_name: bool = False
    storage: str = ''
    generations: tuple[str, ...] = ()
    command: str = CONVERT
    carries: frozenset[str] = frozenset()

    def is_of(self, path: Path) -> bool:
        """
        Return whether a folder, or a file with a suffix of this format, has this format.

        :raises OSError: if it cannot be read.
        """
        return bool(imported(self.recognized_by)(path) if self.recognized_by else self.suffixes)

    def create(self, path: str, options: WriteOptions) -> FrameWriter:
        """
        Begin a recording; the format must have a writer.

        :raises StateSensorError: if it cannot be written, or an option is out of its range.
        """
        writer = cast('FrameWriter', imported(self.writer)(path, replace(
            options, storage=options.values.get('storage') or self.storage)))
        if self.carries:
            writer.losses = imported('.files.recording:Losses')(self.noun, self.carries)
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


_BAG = '.files.bag_frames:open_bag'
_BAG_OUT = '.commands.bag_output:BagOutput'
_JSON = '.simulators.monodrive.trajectory'
_OSI, _LOG = '.simulators.osi.recording', '.simulators.carla9.log'
_TABLE = '.files.table'
_IN_TABLES = frozenset(('boxes', 'ids', 'lanes', 'road_names')) | {
    each.name for each in fields.rows_of(Frame) if each.columns}

FORMATS: dict[str, Format] = {row.name: row for row in (
    Format('json', 'a trajectory', ('.json', '.json.gz', '.json.zst'),
           f'{_JSON}:TrajectoryRecording', f'{_JSON}:TrajectoryOutput',
           f'{_JSON}:copy_whole_frames', carries=EVERY_PART,
           generations=('v2', 'v1t', 'v1', 'v0')),
    Format('bag', 'a bag', (), _BAG, _BAG_OUT, storage='mcap',
           recognized_by='.files.bag:is_bag'),
    Format('mcap', 'a bag in one file', ('.mcap',), _BAG, _BAG_OUT, storage='mcap'),
    Format('sqlite3', 'a bag in one file', ('.db3',), _BAG, _BAG_OUT, storage='sqlite3'),
    Format('parquet', 'a table', ('.parquet',), f'{_TABLE}:TableRecording',
           f'{_TABLE}:TableOutput', carries=_IN_TABLES),
    Format('csv', 'a table', ('.csv', '.csv.gz', '.csv.zst'), '', f'{_TABLE}:TableOutput',
           carries=_IN_TABLES),
    Format('osi', 'a trace of ASAM OSI', ('.osi.mcap', '.osi', '.osi.gz', '.osi.zst'),
           f'{_OSI}:open_trace', '.files.osi_writer:OsiWriter', f'{_OSI}:copy_whole',
           carries=frozenset(('accelerations', 'boxes', 'ids'))),
    # Bags have the suffix, too: the content distinguishes them.
    Format('osi-mcap', 'a trace of ASAM OSI', ('.mcap',), f'{_OSI}:open_trace',
           recognized_by=f'{_OSI}:is_mcap_trace'),
    Format('fcd', "SUMO's FCD output", ('.xml', '.xml.gz'), '.simulators.sumo.fcd:FcdRecording',
           recognized_by='.simulators.sumo.fcd:is_fcd'),
    Format('carla-log', 'a recorder log of CARLA', ('.log',), f'{_LOG}:LogRecording',
           repair=f'{_LOG}:copy_whole', recognized_by=f'{_LOG}:is_log', any_name=True),
    Format('dataset', 'a dataset of CARLA', (), '.simulators.carla.dataset:DatasetRecording',
           recognized_by='.simulators.carla.dataset:is_dataset'),
    Format('picture', 'a picture', ('.png',), command=RENDER),
    Format('vectors', 'a vector picture', ('.svg', '.pdf'), command=RENDER),
    Format('animation', 'an animation', ('.html',), command=RENDER),
    Format('film', 'a video', ('.gif', '.mp4'), command=RENDER),
    Format('scene', 'a scene of Rerun', ('.rrd',), command=VIEW))}
TRAJECTORY, BAG, PARQUET = FORMATS['json'], FORMATS['bag'], FORMATS['parquet']


@cache
def formats() -> tuple[Format, ...]:
    """Return the formats of this package, then those of plug-ins."""
    return (*FORMATS.values(), *(
        row for plug_in in plug_ins().values() for row in getattr(plug_in, 'formats', ())))


def format_of_name(path: str) -> Format | None:
    """
    Return the format that the suffix of a name stands for, None for none.

    :param path: of a file or folder, which need not exist.
    """
    # A suffix of this package saves the search for plug-ins.
    for known in (FORMATS.values, formats):
        found = [(suffix, each) for each in known() for suffix in each.suffixes
                 if (path.lower() if each.command == RENDER else path).endswith(suffix)]
        if found:
            # Of equal ones the first.
            return max(found, key=lambda each: len(each[0]))[1]
    return None


def format_of(path: str) -> Format:
    """Return the format of a recording: a file, a folder, or ``-`` for standard input."""
    where = Path(path)
    if path == STANDARD_INPUT:
        return TRAJECTORY
    if where.is_dir():
        if found := folder_format(where):
            return found
        raise TrajectoryFormatError(path, 'a folder without metadata.yaml', 'a recording: '
                                    "`inspect` and `convert --to FORMAT` take 'FOLDER/*.json'; "
                                    '`state_sensor repair` makes a bag of its files')
    if path.endswith(_COMPRESSED_BAGS) and (found := format_of_name(where.stem)):
        return found
    found = format_of_name(path) or TRAJECTORY
    return _by_content(where, found) if where.is_file() else found


def _by_content(path: Path, found: Format) -> Format:
    """Return the format that recognizes a file: one that shares its suffix, or has any name."""
    suffix = max((each for each in found.suffixes if path.name.endswith(each)), key=len,
                 default='')
    # Formats of this package save the search for plug-ins.
    known = tuple(FORMATS.values()) if found in FORMATS.values() else formats()
    try:
        with path.open('rb') as file:
            head = decompressed(file)[0].read(_HEAD_BYTES).removeprefix(BOM_UTF8).lstrip()
        for begin, texts in _STRANGERS.items():
            if head.startswith(begin):
                raise TrajectoryFormatError(str(path), *texts)
        is_xml = found is TRAJECTORY and head.startswith(b'<')
        for each in known:
            if each.recognized_by and (suffix in each.suffixes or each.any_name or (
                    is_xml and '.xml' in each.suffixes)) and each.is_of(path):
                return each
        # The reader of XML determines what the file is.
        return FORMATS['fcd'] if is_xml else \
            TRAJECTORY if found.any_name and head.startswith((b'[', b'{')) else found
    except OSError:
        # The reader gives the reason.
        return found


def folder_format(folder: Path) -> Format | None:
    """Return the format of a folder that is a recording, None for another one."""
    # A format of this package saves the search for plug-ins.
    return next((each for known in (FORMATS.values, formats) for each in known()
                 if not each.suffixes and each.is_of(folder)), None)


def open_any(path: str, options: ReadOptions = READ_DEFAULTS) -> RecordingReader:
    """
    Open a recording of any format.

    :param path: a file, a folder, or ``-`` for a trajectory on standard input.
    :param options: of its reader.
    :raises TrajectoryFormatError: if it has no known format, or cannot be read.
    """
    found = format_of(path)
    if not found.reader:
        raise TrajectoryFormatError(
            path, f'{found.noun}, which cannot be read', 'a folder or one of ' + ', '.join(
                suffix for each in formats() if each.reader for suffix in each.suffixes))
    if options.topic and not (found.storage or found.name.startswith('osi')):
        raise TrajectoryFormatError(path, 'no bag', f'one with the topic {options.topic}')
    with importing(path), reading(path):
        return cast('RecordingReader', imported(found.reader)(path, options))


def output_format(path: str, *, command: str = CONVERT, to: str = '', storage: str = '') -> Format:
    """Return the format of a new output."""
    # path: of the output, ``-`` for a trajectory on standard output.
    # to: name of the format where the name of the output does not decide, ``''`` for none.
    named = _by_name(path, command, is_bag=bool(storage))
    wanted = next(each for each in formats() if each.name == to) if to else named or BAG
    if storage and wanted.suffixes and wanted.storage not in ('', storage):
        name = f'--to {to}' if to else path
        raise UsageError(f'--storage {storage}: {name} is {wanted.noun} of {wanted.storage}')
    if named not in (None, wanted):
        raise UsageError(f'--to {to}: {path} is the name of {named.noun}')
    return replace(BAG, storage=wanted.storage) if wanted.storage and named is None else wanted


def _by_name(path: str, command: str, *, is_bag: bool = False) -> Format | None:
    """Return the format that a name decides, None for a folder."""
    # A pipe or a device takes a trajectory.
    if command == CONVERT and (path == STANDARD_INPUT or (
            os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))):
        return TRAJECTORY
    if path.endswith('/'):
        return None
    found = format_of_name(path)
    if found is not None:
        if not _is_made(found):
            raise UsageError(f'OUT {path}: {found.noun} can be read, but not written')
        if found.command != command:
            raise UsageError(f'OUT {path}: `state_sensor {found.command}` makes {found.noun}')
        return found
    suffix = suffix_of(path)
    # The folder of a bag may be called run.7.fcd.
    if (is_bag or not suffix) and command == CONVERT:
        return None
    known = [suffix for each in formats() if each.command == command and _is_made(each)
             for suffix in each.suffixes]
    if not suffix:
        raise UsageError(f'OUT {path}: no suffix; expected one of {", ".join(known)}')
    raise UsageError(f'OUT {path}: {suffix} is not the suffix of a format' + (
        parameters.did_you_mean([suffix], known, 0.5) or f'; expected one of {", ".join(known)}'))


def _is_made(format_: Format) -> bool:
    return bool(format_.writer) or format_.command != CONVERT


def suffix_of(path: str) -> str:
    """
    Return the suffix of a name, with that of its compression, ``''`` for none.

    >>> suffix_of('run.7'), suffix_of('drive.jsn.gz'), suffix_of('.hidden')
    ('', '.jsn.gz', '')
    """
    name = Path(path).name.lstrip('.')
    end = next((each for each in _COMPRESSED if name.endswith(each)), '')
    found = _SUFFIX.search(name.removesuffix(end))
    return f'{found[0]}{end}' if found else end
