# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""
Tables of frames, Parquet or CSV: their columns, and one that is being written in constant memory.

A column of actors in ``frame.py`` that names columns of tables has them without a line here. A
frame without actors is a row in which only its time and number are known; CSV leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
import json
from typing import Any, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from state_sensor_ros import __version__, classes, errors, fields, parameters
from state_sensor_ros.files import output, PARQUET, recording, table_rows, WriteOptions
from state_sensor_ros.frame import Bools, Frame, KIND_VEHICLE, Lanes
from state_sensor_ros.objects.criticality import Criticality, Situation
from state_sensor_ros.settings import DEFAULTS, Settings
from state_sensor_ros.texts import counted

if TYPE_CHECKING:
    import pyarrow as pa

TEXT, LIST, NAME, FLOAT64 = 'string', 'list<string>', 'dictionary<string>', 'float64'
# Separates the tags of an actor in CSV.
TAG_SEPARATOR = ';'
# Keys of the schema's metadata.
GENERATION, DEFAULT_SIZES = 'generation', 'default_sizes'
# Rows of a group, and those as which each frame counts at least: with few actors, its other parts
# take most of the memory.
GROUP_ROWS, _ROWS_OF_A_FRAME = 100_000, 20
_KINDS = ('object', 'vehicle')


@dataclass(frozen=True, slots=True)
class TableColumn:
    """
    A column: its name, its type, the unit of its values (``''`` for none), and what they are.

    Unknown values are NaN in columns of floating-point numbers and null in others.
    """

    name: str
    type: str
    unit: str
    meaning: str


def _floats(names: str, unit: str, meaning: str) -> tuple[TableColumn, ...]:
    return tuple(TableColumn(name, FLOAT64, unit, meaning) for name in names.split())


def _columns_of(field: fields.Field) -> list[TableColumn]:
    type_name = np.dtype(field.dtype).name if field.is_array else TEXT
    return [TableColumn(name, type_name, field.unit, field.text) for name in field.columns]


# Rows of the table of frames by the columns that each has.
_FIELDS = {field.columns: field for field in fields.public_rows_of(Frame) if field.columns}
_LANES = {field.columns[0]: field for field in fields.public_rows_of(Lanes) if field.columns}


def _of(names: str) -> list[TableColumn]:
    return _columns_of(_FIELDS[tuple(names.split())])


# Texts of the column `derived`, by Frame.derived.
DERIVED = ('', 'velocity', 'size', f'velocity{TAG_SEPARATOR}size')
_FIXED = (
    TableColumn('stamp_ns', 'int64', 'ns', 'stamp of the frame, as in a bag'),
    TableColumn('frame', 'int64', '', 'number of the frame, from 0'),
    TableColumn('game_time', FLOAT64, 's', 'simulated time since the start of the simulation'),
    TableColumn('actor_id', 'uint32', '', 'number of the actor, as in ~/frame'),
    TableColumn('name', NAME, '', 'raw name of the actor'),
    TableColumn('kind', TEXT, '', 'vehicle or object'),
    TableColumn('class', TEXT, '', 'class of the object'),
    TableColumn('tags', LIST, '', 'tags of the actor, as sent'),
    TableColumn('is_ego', 'bool', '', 'whether the actor is the ego'),
    *_of('x y z'), *_of('qx qy qz qw'),
    *_floats('roll pitch yaw', 'rad', 'orientation about the fixed axes x, y, z, global frame'),
    *_of('vx vy vz'), *_of('wx wy wz'), *_of('ax ay az'),
    *_floats('speed', 'm/s', 'velocity along the x axis of the actor, negative for backwards'),
    *_floats('center_x center_y center_z', 'm', 'center of the box, global frame'),
    *_floats('length width height', 'm', 'edges of the box along the axes of the actor'),
    *chain.from_iterable(_columns_of(_LANES[name]) for name in (
        'road_id', 'section_id', 'lane_id', 's', 'lane_change_left', 'lane_change_right')),
    TableColumn('road', TEXT, '', 'name of the road, of a simulator whose roads have names'),
    TableColumn('derived', TEXT, '', _FIELDS[('derived',)].text))
_FIXED_NAMES = {column.name for column in _FIXED}
# The columns of actors that tables hold as they are, by name, and their place in the field.
OTHERS = {name: (field, i if field.width else None) for names, field in _FIELDS.items()
          for i, name in enumerate(names) if name not in _FIXED_NAMES}
COLUMNS = (*_FIXED, *(column for field in dict.fromkeys(field for field, _ in OTHERS.values())
                      for column in _columns_of(field)))
# Columns that are computed only if they are named.
SAFETY = (
    *_floats('gap', 'm', 'from the front of a vehicle to the rear of its lead vehicle'),
    *_floats('time_headway', 's', 'gap by the speed of the vehicle'),
    *_floats('time_to_collision', 's', 'of boxes that keep their velocities'),
    *_floats('required_deceleration', 'm/s2', 'to the speed of the lead vehicle within the gap'),
    *_floats('closest_distance', 'm', 'from the box of a vehicle to the nearest box'),
    TableColumn('lead', TEXT, '', 'raw name of the lead vehicle'))
BY_NAME = {column.name: column for column in (*COLUMNS, *SAFETY)}
NAMES = tuple(column.name for column in COLUMNS)
LANE_NAMES = tuple(_LANES)


def selected(names: Iterable[str] | None, where: str = 'columns') -> tuple[TableColumn, ...]:
    """Return columns by name."""
    # names: names of columns in any order, None for all but :data:`SAFETY`.
    if names is None:
        return COLUMNS
    # A text is an iterable, too: of its characters.
    chosen = {names} if isinstance(names, str) else set(names)
    unknown = sorted(chosen - BY_NAME.keys())
    if unknown or not chosen:
        near = parameters.did_you_mean(unknown, BY_NAME)
        raise errors.ConfigError(
            where, f'unknown column {", ".join(map(repr, unknown))}{near}' if unknown else
            'no column', '' if near else f'some of {", ".join(BY_NAME)}')
    return tuple(column for column in BY_NAME.values() if column.name in chosen)


class TableBuilder:
    """Collect rows, and return them as Arrow batches."""

    # has_empty: whether a frame without actors is a row.

    def __init__(self, columns: Iterable[str] | None, *, source: str, format_name: str,
                 settings: Settings = DEFAULTS, has_empty: bool = True) -> None:
        self._has_empty, self.n_empty = has_empty, 0
        self._columns = selected(columns)
        self._metadata = {
            'source': source.encode(errors='backslashreplace').decode(), 'form': format_name,
            'version': f'state_sensor_ros {__version__}',
            DEFAULT_SIZES: json.dumps([*settings.default_sizes]),
            'units': json.dumps({column.name: column.unit for column in self._columns
                                 if column.unit})}
        self.schema = self._schema('')
        self.n_frames = 0
        self.maker = table_rows.RowMaker(settings)
        self._frames: list[table_rows.FrameRows] = []
        self._n_collected = 0
        # Numbers of names, in the order of their first rows.
        self._names: dict[str, int] = {}

    def _schema(self, generation: str) -> pa.Schema:
        """Return the schema of a table, with units and the source in its metadata."""
        import pyarrow as pa
        types = {LIST: pa.list_(pa.string()), NAME: pa.dictionary(pa.int32(), pa.string()),
                 FLOAT64: pa.float64()}
        return pa.schema(
            [pa.field(column.name, types.get(column.type) or pa.type_for_alias(column.type),
                      metadata={'unit': column.unit, 'meaning': column.meaning})
             for column in self._columns], {**self._metadata, GENERATION: generation})

    def add(self, frame: Frame) -> list[pa.RecordBatch]:
        """Add a frame; ``frame``: next frame in time; SI, REP-103 axes."""
        if not self.n_frames:
            self.schema = self._schema(frame.generation)
        self.n_frames += 1
        return self._collect(self.maker.add(frame))

    def rest(self, *, is_end: bool = True) -> list[pa.RecordBatch]:
        """Return batches of the rows that are known so far, of which the last may be empty."""
        return [*self._collect(self.maker.flush(is_end=is_end)), self._batch()]

    def _collect(self, frames: list[table_rows.FrameRows]) -> list[pa.RecordBatch]:
        batches = []
        for rows in frames:
            self._frames.append(rows)
            self.n_empty += not rows.frame.n_actors
            self._n_collected += max(rows.frame.n_actors, _ROWS_OF_A_FRAME)
            if self._n_collected >= GROUP_ROWS:
                batches.append(self._batch())
        return batches

    def _batch(self) -> pa.RecordBatch:
        import pyarrow as pa
        frames, self._frames, self._n_collected = self._frames, [], 0
        if not frames:
            return pa.RecordBatch.from_pylist([], schema=self.schema)
        arrays = _Arrays(frames, self._names, has_empty=self._has_empty)
        return pa.RecordBatch.from_arrays(
            [arrays.of(column.name) for column in self._columns], schema=self.schema)


# The columns that each row of a frame has, also one without an actor.
_OF_FRAMES: dict[str, Callable[[table_rows.FrameRows], float | None]] = {
    'frame': lambda rows: rows.index, 'game_time': lambda rows: rows.frame.game_time,
    'stamp_ns': lambda rows: rows.stamp_ns}


class _Arrays:
    """The columns of some frames as Arrow arrays."""

    def __init__(self, frames: Sequence[table_rows.FrameRows], names: dict[str, int], *,
                 has_empty: bool) -> None:
        import pyarrow
        self._arrow, self._frames, self._names = pyarrow, frames, names
        self._counts = np.array([rows.frame.n_actors for rows in frames], np.int64)
        self._begins = np.cumsum(self._counts) - self._counts
        self._n_rows = np.maximum(self._counts, int(has_empty))
        self._floats = np.concatenate([rows.floats for rows in frames])
        self._made: dict[str, Callable[[], Any]] = {
            'name': self._name, 'road': self._road, 'derived': self._derived,
            'lead': lambda: _texts([lead or None for _, lead in self._safety]),
            'tags': lambda: self._of_each(self._tag_lists),
            'actor_id': lambda: _array(np.concatenate([rows.actors.ids for rows in frames])),
            'is_ego': lambda: _array(
                np.concatenate([rows.actors.are_egos for rows in frames])),
            'kind': lambda: self._of_each(lambda actors: _texts(
                [_KINDS[kind] for kind in actors.actor_list.kinds])),
            'class': lambda: self._of_each(lambda actors: _texts(
                [classes.CLASSES[number].name for number in actors.classes.tolist()]))}

    def of(self, name: str) -> Any:  # noqa: ANN401
        """Return a column."""
        n_rows, frames = self._n_rows, self._frames
        if name in _OF_FRAMES:
            values = list(map(_OF_FRAMES[name], frames))
            return _array(np.repeat(np.array([value or 0 for value in values],
                                             BY_NAME[name].type), n_rows),
                          np.repeat([value is not None for value in values], n_rows))
        column = self._column(name)
        if (n_rows == self._counts).all():
            return column
        has_actor = np.repeat(self._counts > 0, n_rows)
        return column.take(_array(np.cumsum(has_actor) - 1, has_actor))

    def _column(self, name: str) -> Any:  # noqa: ANN401
        if name in self._made:
            return self._made[name]()
        if name in table_rows.FLOAT_NAMES:
            return _array(self._floats[:, table_rows.FLOAT_NAMES.index(name)])
        if name in LANE_NAMES:
            return self._lane(name)
        if name in OTHERS:
            return self._other(*OTHERS[name])
        return _array(np.array([getattr(found, name) for found, _ in self._safety], np.float64))

    def _of_each(self, made: Callable[[table_rows.ActorColumns], Any]) -> Any:  # noqa: ANN401
        """Return the arrays that ``made`` returns for each frame, once for equal actors."""
        parts = [(actors, len(list(group))) for actors, group in groupby(
            rows.actors for rows in self._frames)]
        # Array.take would import pyarrow.compute: a twentieth of the time of converting a minute.
        return self._arrow.concat_arrays([
            part for actors, n_frames in parts for part in [made(actors)] * n_frames])

    def _name(self) -> Any:  # noqa: ANN401
        names = self._names
        numbers = self._of_each(lambda actors: _array(np.array(
            [names.setdefault(name, len(names)) for name in actors.actor_list.names], np.int32)))
        return self._arrow.DictionaryArray.from_arrays(numbers, _texts(names))

    def _tag_lists(self, actors: table_rows.ActorColumns) -> Any:  # noqa: ANN401
        tags = actors.actor_list.tags
        ends = np.cumsum([0, *map(len, tags)], dtype=np.int32)
        return self._arrow.ListArray.from_arrays(_array(ends), _texts(chain.from_iterable(tags)))

    def _lane_rows(self) -> npt.NDArray[np.int64]:
        return np.concatenate([rows.frame.lanes.actor + begin for rows, begin in zip(
            self._frames, self._begins.tolist(), strict=True)])

    def _lane(self, name: str) -> Any:  # noqa: ANN401
        field, at = _LANES[name], self._lane_rows()
        values = field.unknowns(len(self._floats))
        values[at] = np.concatenate([getattr(rows.frame.lanes, name) for rows in self._frames])
        known = np.zeros(len(values), np.bool_)
        known[at] = True
        return _array(values, None if field.dtype == 'f8' else known)

    def _road(self) -> Any:  # noqa: ANN401
        roads: list[str | None] = [None] * len(self._floats)
        for row, name in zip(self._lane_rows().tolist(), chain.from_iterable(
                map(rows.frame.lanes.road_names.get, rows.frame.lanes.road_id.tolist())
                for rows in self._frames), strict=True):
            roads[row] = name
        return _texts(roads)

    def _derived(self) -> Any:  # noqa: ANN401
        return _texts([DERIVED[code] or None for rows in self._frames for code in rows.derived])

    def _other(self, field: fields.Field, i: int | None) -> Any:  # noqa: ANN401
        columns = [getattr(rows.frame, field.name) for rows in self._frames]
        columns = [field.unknowns(rows.frame.n_actors) if column is None else column
                   for rows, column in zip(self._frames, columns, strict=True)]
        if not field.is_array:
            return _texts(chain.from_iterable(columns))
        values = np.concatenate(columns)
        return _array(values if i is None else values[:, i])

    @cached_property
    def _safety(self) -> list[tuple[Criticality, str]]:
        """Return the measures of each actor, undefined ones of objects, and names of leads."""
        measures = []
        for rows in self._frames:
            situation = Situation(rows.frame)
            for row, kind in enumerate(rows.frame.kinds.tolist()):
                found = situation.criticality(row) if kind == KIND_VEHICLE else Criticality()
                measures.append((found, rows.frame.names[found.lead] if found.lead >= 0 else ''))
        return measures


# pyarrow.array would import pandas if that is installed, which takes a fifth of the time of
# converting a minute.
def _array(values: npt.NDArray[Any], known: Bools | None = None) -> Any:  # noqa: ANN401
    """Return numbers or flags as an Arrow array."""
    # values: (N,) of any type of numbers, or bool; known: (N,) False for null, None for nowhere.
    import pyarrow as pa
    # A column of a block of rows is not contiguous.
    data = _bits(values) if values.dtype == np.bool_ else pa.py_buffer(
        np.ascontiguousarray(values))
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(values.dtype), len(values),
        [None if known is None or known.all() else _bits(known), data])


def _bits(flags: npt.NDArray[Any]) -> Any:  # noqa: ANN401
    import pyarrow as pa
    return pa.py_buffer(np.packbits(flags, bitorder='little'))


def _texts(texts: Iterable[str | None]) -> Any:  # noqa: ANN401
    """Return strings as an Arrow array."""
    import pyarrow as pa
    given = list(texts)
    encoded = [(text or '').encode() for text in given]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    known = _bits(np.array([text is not None for text in given])) if None in given else None
    return pa.Array.from_buffers(
        pa.string(), len(encoded), [known, pa.py_buffer(ends), pa.py_buffer(b''.join(encoded))])


class TableOutput(output.WholeFile, recording.FrameWriter):
    """A table in a file."""

    # options: options of the recording; ``columns`` names.

    # This saves half of the time: the other parts have no columns.

    def __init__(self, path: str, options: WriteOptions) -> None:
        names = options.values.get('columns')
        columns = None if names is None else [
            column.name for column in selected(names, '--columns')]
        self._is_parquet = path.endswith(PARQUET.suffixes)
        # The rows of CSV can be read; a Parquet file cannot without its end.
        self.survives_cut = not self._is_parquet
        # A reader of CSV expects numbers in each row; Parquet has null.
        self._builder = TableBuilder(columns, source=options.source, settings=options.settings,
                                     format_name=options.format_name, has_empty=self._is_parquet)
        self._writer: Any = None
        self.n_frames = 0
        super().__init__(path, force=options.force)

    @property
    def notes(self) -> list[str]:
        n_empty = self._builder.n_empty
        empty = [f'CSV does not carry {counted(n_empty, "frame")} without actors']
        return self._builder.maker.notes + (empty if n_empty and not self._is_parquet else [])

    def write(self, frame: Frame) -> None:
        """Append the rows of a frame; ``frame``: frame; SI, REP-103 axes."""
        self.n_frames += 1
        for batch in self._builder.add(frame):
            self._write(batch)

    def flush(self) -> None:
        """Write the rows that are known; those of Parquet cannot be read without its end."""
        if not self._is_parquet:
            for batch in self._builder.rest(is_end=False):
                self._write(batch)
            super().flush()

    def complete(self) -> None:
        """Write the last rows and the end, and sync the file."""
        if self.is_open:
            for batch in self._builder.rest():
                self._write(batch)
            self._writer.close()
        super().complete()

    def abort(self) -> None:
        """Close the file and remove the written data."""
        if self._writer is not None:
            with suppress(OSError, ValueError):
                self._writer.close()
        super().abort()

    def _write(self, batch: pa.RecordBatch) -> None:
        if self._is_parquet:
            if self._writer is None:
                from pyarrow.parquet import ParquetWriter
                # Snappy, as in pandas: half of the uncompressed size, a third of the time of zstd.
                self._writer = ParquetWriter(self.handle, self._builder.schema,
                                             compression='snappy', write_page_checksum=True)
            self._writer.write_batch(batch, row_group_size=max(batch.num_rows, 1))
            return
        batch = _plain(batch)
        if self._writer is None:
            from pyarrow.csv import CSVWriter
            self._writer = CSVWriter(self.handle, batch.schema)
        self._writer.write(batch)


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch for CSV: names and tags as text, empty values for NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc
    arrays = []
    for array in batch.columns:
        kind = array.type
        if pa.types.is_dictionary(kind):
            array = array.cast(pa.string())
        elif pa.types.is_list(kind):
            array = pc.binary_join(array, _texts([TAG_SEPARATOR])[0])
        elif pa.types.is_floating(kind):
            array = pc.if_else(pc.is_nan(array), pa.nulls(1, kind)[0], array)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
