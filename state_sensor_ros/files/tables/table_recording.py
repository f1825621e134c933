# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A table in a Parquet file as a recording: its rows back to frames, in constant memory.

The payload of a frame is its rows as an Arrow message. An actor gets a box along its own axes if
its center and size differ from those that an actor of its class has without a box.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
import json
import math
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, TYPE_CHECKING

import numpy as np

from state_sensor_ros.classes import class_of
from state_sensor_ros.errors import (
    DecodeError,
    reason_of,
    TrajectoryFormatError,
    TruncatedError,
)
from state_sensor_ros.files.formats import ReadOptions
from state_sensor_ros.files.recording import PERIOD_S, RecordedFrame
from state_sensor_ros.files.storage.input_file import open_positioned
from state_sensor_ros.files.storage.storage_file import (
    BagLimits,
    DEFAULT_LIMITS,
    too_large,
)
from state_sensor_ros.files.tables.page_sizes import check_pages
from state_sensor_ros.files.tables.table_columns import (
    CHANGES,
    DEFAULT_SIZES,
    GENERATION,
    LANE_IDS,
)
from state_sensor_ros.frame import (
    Appearance,
    Boxes,
    Floats,
    Frame,
    KIND_OBJECT,
    KIND_VEHICLE,
    Lanes,
    NO_BOXES,
    NO_ROADS,
    NO_WHEELS,
)
from state_sensor_ros.objects.object_maker import centres_of, default_sizes
from state_sensor_ros.payloads import Decoded, Packet, PayloadDecoder, SingleFrameDecoder
from state_sensor_ros.settings import DEFAULTS, parse_settings, Settings
from state_sensor_ros.topics.base_link import is_measured
from state_sensor_ros.topics.markers import MARKERS_TOPIC
from state_sensor_ros.topics.stacks.autoware_ego import AutowareEgoEncoder, STEERING_TOPIC
from state_sensor_ros.topics.state_frame import FRAME_TOPIC

if TYPE_CHECKING:
    import pyarrow as pa

_KINEMATICS = (
    'x', 'y', 'z', 'qx', 'qy', 'qz', 'qw', 'vx', 'vy', 'vz', 'wx', 'wy', 'wz')
# Columns that an actor of a frame needs.
NEEDED = ('frame', 'game_time', 'name', 'kind', 'tags', *_KINEMATICS, *CHANGES, *LANE_IDS, 's')
# The only velocity from sources that measure no other; the column may be missing.
_SPEED = 'speed'
# Names of the roads, and ids of the actors; the columns may be missing.
_ROAD, _ID = 'road', 'actor_id'
# Columns of the boxes, which are used together or not at all.
BOXES = ('center_x', 'center_y', 'center_z', 'length', 'width', 'height')
_BATCH_ROWS = 50_000
_WITHOUT_NULL = ('frame', 'name', 'kind')
_MAX_SHOWN = 200
# The types to which columns are converted; the others are float64.
_TYPES = {'frame': 'int64', _ID: 'int64', 'name': 'string', 'kind': 'string',
          'tags': 'list<string>', _ROAD: 'string', **dict.fromkeys(CHANGES, 'bool'),
          **dict.fromkeys(LANE_IDS, 'int32')}
_OBJECTS = 'objects of --outputs'


class TableRecording:
    """
    The rows of a Parquet file as frames.

    :param path: path of the file.
    :param limits: limits on the sizes of a page and of the rows of a frame.
    :ivar missing: columns of boxes that the table lacks.
    :raises TrajectoryFormatError: if it is not such a table, or lacks columns of a frame.
    """

    unit = 'frame'
    format_name = 'table'
    simulator = ''
    total: int | None = None

    def __init__(self, path: Path, limits: BagLimits = DEFAULT_LIMITS) -> None:
        import pyarrow as pa
        self.name = str(path)
        self.cut: TruncatedError | None = None
        self._limits = limits
        # Damaged files make pyarrow raise many types of errors.
        self._failures = (pa.ArrowException, OSError, ValueError, TypeError, KeyError,
                          IndexError, OverflowError)
        # pyarrow refuses a name that is not UTF-8.
        self._handle = _opened(path)
        try:
            self._open(path)
        except TrajectoryFormatError:
            self.close()
            raise
        except self._failures as error:
            self.close()
            raise self._error(error) from error
        self.decoder = self.new_decoder()

    def _open(self, path: Path) -> None:
        """Read the metadata, and check columns, types and sizes."""
        from pyarrow import parquet
        file = parquet.ParquetFile(self._handle)
        schema, metadata = file.schema_arrow, file.schema_arrow.metadata or {}
        self.generation = metadata.get(GENERATION.encode(), b'').decode('utf-8', 'replace')
        self._default_sizes = self._sizes_in(metadata.get(DEFAULT_SIZES.encode()))
        self.missing = [name for name in BOXES if name not in schema.names]
        self._columns = [*NEEDED] if self.missing else [*NEEDED, *BOXES]
        self._columns += [name for name in (_SPEED, _ROAD, _ID) if name in schema.names]
        missing = [name for name in self._columns if name not in schema.names]
        if missing:
            raise TrajectoryFormatError(self.name, f'a table without {", ".join(missing)}',
                                        'all columns of a frame')
        for name in self._columns:
            self._check_type(name, [schema.field(i).type for i in schema.get_all_field_indices(
                name)])
        check_pages(path, set(self._columns), self._limits)
        # Repeated texts are decoded once, not once for each row.
        texts = [file.schema.column(i).path for i in range(len(file.schema))
                 if file.schema.column(i).physical_type == 'BYTE_ARRAY']
        self._handle.seek(0)
        self._file = parquet.ParquetFile(
            self._handle, read_dictionary=texts, page_checksum_verification=True)

    def _check_type(self, name: str, types: list[pa.DataType]) -> None:
        """Check that there is one column of a name, and that its type can hold the values."""
        import pyarrow.types as kinds
        kind = types[0]
        expected = _TYPES.get(name, 'float64')
        if expected == 'list<string>':
            is_fit = (kinds.is_list(kind) or kinds.is_large_list(kind)) \
                and _is_text(kind.value_type)
        else:
            is_fit = {'string': _is_text, 'bool': kinds.is_boolean, 'int64': kinds.is_integer,
                      'int32': kinds.is_integer, 'float64': lambda kind: kinds.is_integer(kind)
                      or kinds.is_floating(kind)}[expected](kind)
        if len(types) > 1 or not is_fit:
            found = f'{len(types)} columns' if len(types) > 1 else str(kind)[:_MAX_SHOWN]
            raise TrajectoryFormatError(f'{self.name}: column {name}', found, expected)

    def _sizes_in(self, text: bytes | None) -> Floats:
        """Return the sizes of actors without a box, from the metadata of the schema."""
        if text is None:
            return default_sizes(DEFAULTS)
        try:
            return default_sizes(parse_settings({'default_sizes': json.loads(text)}))
        except (ValueError, TypeError, RecursionError) as error:
            raise TrajectoryFormatError(f'{self.name}: {DEFAULT_SIZES}', repr(text)[1:_MAX_SHOWN],
                                        'three lengths for each class') from error

    def _error(self, error: Exception) -> TrajectoryFormatError:
        if isinstance(error, OSError) and error.strerror:
            return TrajectoryFormatError(self.name, reason_of(error))
        found = ' '.join(str(error).split())[:_MAX_SHOWN] or type(error).__name__
        return TrajectoryFormatError(self.name, found, 'a Parquet file')

    def new_decoder(self) -> PayloadDecoder:
        """Make a decoder of rows."""
        return TableDecoder(self.generation, self._default_sizes)

    def frames(self) -> Iterator[RecordedFrame]:
        """
        Yield the rows of each frame; a frame without actors has none.

        :raises TrajectoryFormatError: if the file is damaged.
        """
        game_time = -PERIOD_S
        for index, rows in enumerate(self._rows_of_frames()):
            time_s = rows.column('game_time')[0].as_py()
            clock_s = math.nan if time_s is None else float(time_s)
            game_time = game_time + PERIOD_S if math.isnan(clock_s) else clock_s
            yield RecordedFrame(
                Packet(_message(rows), game_time, 0, 0), clock_s, index,
                f'frame {rows.column("frame")[0].as_py()}', index + 1)

    def _rows_of_frames(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of each frame."""
        import pyarrow as pa
        rest: pa.RecordBatch | None = None
        try:
            for batch in self._batches():
                if rest is not None:
                    batch = pa.concat_batches([rest, batch])
                numbers = batch.column('frame').to_numpy(zero_copy_only=False)
                bounds = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()]
                for begin, end in pairwise(bounds):
                    yield batch.slice(begin, end - begin)
                rest = batch.slice(bounds[-1]) if batch.num_rows else None
                if rest is not None and rest.nbytes > self._limits.n_bytes:
                    raise too_large(self.name, 'a frame', self._limits.n_bytes)
        except TrajectoryFormatError:
            raise
        except self._failures as error:
            raise self._error(error) from error
        if rest is not None:
            yield rest

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yield rows in the types of a frame, of one row group at a time."""
        for i_group in range(self._file.num_row_groups):
            for batch in self._file.iter_batches(
                    _BATCH_ROWS, row_groups=[i_group], columns=self._columns):
                yield self._plain(batch)

    def _plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch in the types of a frame."""
        import pyarrow as pa
        types = {'list<string>': pa.list_(pa.string()), 'bool': pa.bool_()}
        arrays = []
        for name in self._columns:
            column = batch.column(name)
            expected = _TYPES.get(name, 'float64')
            if expected in ('string', 'list<string>') \
                    and _n_text_bytes(column) > self._limits.n_bytes:
                raise too_large(f'{self.name}: column {name}', f'{batch.num_rows} rows',
                                self._limits.n_bytes)
            column = column.cast(types.get(expected) or pa.type_for_alias(expected))
            if (name in _WITHOUT_NULL and column.null_count) or (
                    name == 'tags' and column.flatten().null_count):
                raise ValueError(f'column {name}: null')
            arrays.append(column)
        return pa.RecordBatch.from_arrays(arrays, names=self._columns)

    def close(self) -> None:
        """Close the file; a second call has no effect."""
        self._handle.close()


def _opened(path: Path) -> BinaryIO:
    try:
        return open_positioned(path)
    except OSError as error:
        raise TrajectoryFormatError(str(path), reason_of(error)) from error


def _is_text(kind: pa.DataType) -> bool:
    """Return whether values are text, directly or in a dictionary."""
    import pyarrow.types as kinds
    if kinds.is_dictionary(kind):
        kind = kind.value_type
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind)
                or kinds.is_string_view(kind))


def _n_text_bytes(column: pa.Array) -> int:
    """Return the size of the texts of a column, with repetitions, bytes."""
    import pyarrow.compute as pc
    import pyarrow.types as kinds
    if kinds.is_list(column.type) or kinds.is_large_list(column.type):
        column = column.flatten()
    if kinds.is_dictionary(column.type):
        lengths = pc.binary_length(column.dictionary).cast('int64')
        return pc.sum(lengths.take(column.indices)).as_py() or 0
    return pc.sum(pc.binary_length(column).cast('int64')).as_py() or 0


class TableDecoder(SingleFrameDecoder):
    """
    A PayloadDecoder of the rows of a frame.

    :param generation: generation of the frames.
    :param default_sizes: (len(CLASSES), 3) float64, m, sizes of actors without a box.
    """

    def __init__(self, generation: str, default_sizes: Floats) -> None:
        self._generation = generation
        self._default_sizes = default_sizes
        self._classes: dict[tuple[int, tuple[str, ...]], int] = {}
        self._road_names = NO_ROADS

    def decode(self, payload: bytes | bytearray | memoryview, *, game_time: float = math.nan,
               time: int = 0, sample_count: int = 0) -> list[Decoded]:
        """
        Decode the rows of one frame.

        :param payload: Arrow stream with one batch.
        :param game_time: time for rows without one, s.
        :param time: unused, like ``sample_count``.
        :raises DecodeError: if the rows are not a frame.
        """
        import pyarrow as pa
        try:
            [rows] = pa.ipc.open_stream(payload)
            columns = {name: rows.column(i) for i, name in enumerate(rows.schema.names)}
            frame = self._frame(columns, rows.num_rows, game_time)
            if BOXES[0] in columns:
                frame = self._with_boxes(
                    frame, np.column_stack([_floats(columns[name]) for name in BOXES]))
            return [Decoded(frame, ())]
        except (pa.ArrowException, TypeError, ValueError, KeyError) as error:
            raise DecodeError('rows', ' '.join(str(error).split()),
                              'the columns of a table') from error

    def _with_boxes(self, frame: Frame, shapes: Floats) -> Frame:
        """
        Add boxes to actors whose center and size are not those without a box.

        :param shapes: (N, 6) float64, center and length, width, height, m, NaN where unknown.
        """
        classes = np.array([self._class_of(kind, tags) for kind, tags in zip(
            frame.kinds.tolist(), frame.tags, strict=True)], np.uint8)
        usual = centres_of(frame, self._default_sizes, classes)
        is_usual = (shapes == np.column_stack((usual.poses[:, :3], usual.sizes))).all(axis=1)
        actor = np.flatnonzero(frame.has_pose() & np.isfinite(shapes).all(axis=1) & ~is_usual)
        rows = np.column_stack((shapes[actor, :3], frame.orientation_xyzw[actor],
                                shapes[actor, 3:], np.ones((len(actor), 3))))
        return replace(frame, boxes=Boxes(actor, ('',) * len(actor), rows))

    def _class_of(self, kind: int, tags: tuple[str, ...]) -> int:
        index = self._classes.get((kind, tags))
        if index is None:
            index = self._classes[kind, tags] = class_of(kind, tags)
        return index

    def _frame(self, columns: dict[str, Any], n_actors: int, game_time: float) -> Frame:
        time_s = columns['game_time'][0].as_py()
        kinematics = np.column_stack([_floats(columns[name]) for name in _KINEMATICS])
        names = tuple(columns['name'].to_pylist())
        blank = ('',) * n_actors
        return Frame(
            generation=self._generation, time=0, sample_count=0, names=names,
            game_time=game_time if time_s is None or math.isnan(time_s) else time_s,
            kinds=np.where([kind == 'vehicle' for kind in columns['kind'].to_pylist()],
                           KIND_VEHICLE, KIND_OBJECT).astype(np.uint8),
            tags=tuple(tuple(tags or ()) for tags in columns['tags'].to_pylist()),
            kinematics=kinematics, lanes=self._named(_lanes(columns), columns), boxes=NO_BOXES,
            wheels=NO_WHEELS,
            inputs=np.full((n_actors, 4), np.nan), appearance=Appearance(blank, blank),
            forward_speed=_forward_speed(columns, kinematics),
            ids=columns[_ID].fill_null(-1).to_numpy(zero_copy_only=False)
            if _ID in columns else None)

    def _named(self, lanes: Lanes, columns: dict[str, Any]) -> Lanes:
        """Return lanes with the names of the roads so far."""
        if _ROAD in columns:
            names = columns[_ROAD].take(lanes.actor).to_pylist()
            new = {road: name for road, name in zip(lanes.road_id.tolist(), names, strict=True)
                   if name is not None and road not in self._road_names}
            if new:
                self._road_names = MappingProxyType({**self._road_names, **new})
        return replace(lanes, road_names=self._road_names)


def _forward_speed(columns: dict[str, Any], kinematics: Floats) -> Floats | None:
    """Return the speeds if they are the only velocities."""
    if _SPEED not in columns or not np.isnan(kinematics[:, 7:]).all():
        return None
    speeds = _floats(columns[_SPEED])
    return speeds if np.isfinite(speeds).any() else None


def _message(rows: pa.RecordBatch) -> bytes:
    """Return rows as an Arrow stream with one batch."""
    import pyarrow as pa
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    message: bytes = sink.getvalue().to_pybytes()
    return message


def _floats(column: Any) -> Floats:  # noqa: ANN401
    """Return a column as numbers, NaN for null."""
    import pyarrow as pa
    numbers: Floats = column.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers


def _lanes(columns: dict[str, Any]) -> Lanes:
    actor = np.flatnonzero(columns['road_id'].is_valid().to_numpy(zero_copy_only=False))

    def taken(name: str, kind: type[np.generic]) -> Any:  # noqa: ANN401
        return columns[name].take(actor).to_numpy(zero_copy_only=False).astype(kind)

    return Lanes(
        actor.astype(np.int64),
        np.column_stack([taken(name, np.bool_) for name in CHANGES]),
        np.column_stack([taken(name, np.int32) for name in LANE_IDS]), taken('s', np.float64))


def open_table(path: str, options: ReadOptions) -> TableRecording:
    """
    Open a table in a Parquet file.

    :raises TrajectoryFormatError: if it is not such a table, or lacks columns of a frame.
    """
    return TableRecording(Path(path), options.limits)


@dataclass(frozen=True, slots=True)
class TableGap:
    """Description of parts of a frame without a column, and the topics of a bag with them."""

    parts: str
    topics: tuple[str, ...]

    def __str__(self) -> str:
        return f'{self.parts} ({", ".join(self.topics)})' if self.topics else self.parts


def gaps_of(table: TableRecording, settings: Settings, *, has_own: bool) -> list[TableGap]:
    """
    Return the parts of frames that a table lacks.

    :param table: table, possibly with some of the columns only.
    :param settings: settings of the bag to write; topics that they switch off are not named.
    :param has_own: whether the table's simulator has its own topics.
    """
    frame = (FRAME_TOPIC.name,) if settings.frame else ()
    has_stack = 'autoware' in settings.outputs
    markers: tuple[str, ...] = (MARKERS_TOPIC.name,) \
        if settings.debug_drawing and settings.include_obb else ()
    gaps = [TableGap('time, sample_count, colors and replay classes', frame),
            TableGap('inputs', (*frame, *((STEERING_TOPIC.name,) if has_stack else ()))),
            TableGap('wheels', (*frame, *_wheel_topics(settings)))]
    boxes = 'names and axes of boxes, and all but the largest of an actor'
    if table.missing:
        boxes = f'boxes: {", ".join(table.missing)}'
        if settings.outputs:
            markers += (_OBJECTS,)
    gaps.append(TableGap(boxes, (*frame, *markers)))
    if has_own:
        gaps.append(TableGap(f'what only {table.generation} has', ('all its other topics',)))
    return gaps


def _wheel_topics(settings: Settings) -> list[str]:
    topics = ['/tf'] if settings.wheel_tf else []
    if settings.joint_states:
        topics.append('~/actors/*/joint_states')
    if is_measured(settings):
        if settings.ego_frame:
            topics += ['/tf', '~/ego/odometry']
        if 'autoware' in settings.outputs:
            topics += [topic.name for topic in AutowareEgoEncoder.topics]
    return list(dict.fromkeys(topics))
