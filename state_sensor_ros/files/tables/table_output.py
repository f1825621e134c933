# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A table that is being written from frames, in constant memory: Parquet or CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from state_sensor_ros.bodies import Bools
from state_sensor_ros.classes import CLASSES
from state_sensor_ros.files.formats import PARQUET, WriteOptions
from state_sensor_ros.files.recording import FrameWriter
from state_sensor_ros.files.tables.table_columns import (
    CHANGES,
    DERIVED,
    FLOAT_NAMES,
    LANE_IDS,
    new_schema,
    SAFETY_NAMES,
    selected,
    TAG_SEPARATOR,
)
from state_sensor_ros.files.tables.table_rows import ActorColumns, FrameRows, RowMaker
from state_sensor_ros.files.whole.whole_file import WholeFile
from state_sensor_ros.frame import Frame, Needs
from state_sensor_ros.objects.criticality import Criticality
from state_sensor_ros.settings import DEFAULTS, Settings

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 100_000
# The parts of a frame that have columns.
NEEDS = Needs(wheels=False, inputs=False, appearance=False)
_KINDS = ('object', 'vehicle')


class TableBuilder:
    """Collect rows, and return them as Arrow batches."""

    def __init__(self, columns: Iterable[str] | None, *, source: str, format_name: str,
                 settings: Settings = DEFAULTS) -> None:
        import pyarrow
        self._arrow = pyarrow
        self._columns = selected(columns)
        self._source, self._format_name = source, format_name
        self._default_sizes = settings.default_sizes
        self.schema = self._schema('')
        self.n_frames = 0
        self.has_safety = any(column.name in SAFETY_NAMES for column in self._columns)
        self._maker = RowMaker(settings, has_safety=self.has_safety)
        self._frames: list[FrameRows] = []
        self._n_collected = 0
        # Numbers of names, in the order of their first rows.
        self._names: dict[str, int] = {}

    def _schema(self, generation: str) -> pa.Schema:
        return new_schema(self._columns, source=self._source, format_name=self._format_name,
                          generation=generation, default_sizes=self._default_sizes)

    def add(self, frame: Frame) -> list[pa.RecordBatch]:
        """Add a frame; ``frame``: next frame in time; SI, REP-103 axes."""
        if not self.n_frames:
            self.schema = self._schema(frame.generation)
        self.n_frames += 1
        return self._collect(self._maker.add(frame))

    def collected(self) -> list[pa.RecordBatch]:
        """Return batches of the rows so far, if there are any."""
        batches = self._collect(self._maker.flush())
        return [*batches, self._batch()] if self._n_collected else batches

    def finish(self) -> list[pa.RecordBatch]:
        """Return the last batches, of which the last one may be empty."""
        return [*self._collect(self._maker.finish()), self._batch()]

    def _collect(self, frames: list[FrameRows]) -> list[pa.RecordBatch]:
        batches = []
        for rows in frames:
            self._frames.append(rows)
            self._n_collected += len(rows.floats)
            if self._n_collected >= GROUP_ROWS:
                batches.append(self._batch())
        return batches

    def _batch(self) -> pa.RecordBatch:
        frames, self._frames = self._frames, []
        n_rows, self._n_collected = self._n_collected, 0
        if not n_rows:
            return self._arrow.RecordBatch.from_pylist([], schema=self.schema)
        arrays = _Arrays(self._arrow, frames, self._names)
        return self._arrow.RecordBatch.from_arrays(
            [arrays.of(column.name) for column in self._columns], schema=self.schema)


class _Arrays:
    """The columns of some frames as Arrow arrays."""

    # frames: frames with at least one row together.

    def __init__(self, arrow: Any, frames: Sequence[FrameRows],  # noqa: ANN401
                 names: dict[str, int]) -> None:
        self._arrow, self._frames, self._names = arrow, frames, names
        self._counts = np.array([len(rows.floats) for rows in frames], np.int64)
        self._floats = np.concatenate([rows.floats for rows in frames])
        self._has_lane = np.concatenate([rows.has_lane for rows in frames])
        self._makers: dict[str, Callable[[], Any]] = {
            'stamp_ns': self._stamp_ns, 'name': self._name, 'tags': self._tag_lists,
            'road': self._road, 'derived': self._derived,
            'frame': lambda: self._repeated([rows.index for rows in frames], np.int64),
            'game_time': lambda: self._repeated([rows.game_time for rows in frames], np.float64),
            'actor_id': lambda: self._array(np.concatenate([rows.actors.ids for rows in frames])),
            'is_ego': lambda: self._array(
                np.concatenate([rows.actors.are_egos for rows in frames])),
            'kind': lambda: self._texts_of_each(lambda actors: [
                _KINDS[is_vehicle] for is_vehicle in actors.are_vehicles.tolist()]),
            'class': lambda: self._texts_of_each(lambda actors: [
                CLASSES[number].name for number in actors.classes.tolist()]),
            'lead': lambda: arrow.array([lead or None for _, lead in self._safety()],
                                        arrow.string())}

    def of(self, name: str) -> Any:  # noqa: ANN401
        if name in self._makers:
            return self._makers[name]()
        if name in FLOAT_NAMES:
            return self._array(self._floats[:, FLOAT_NAMES.index(name)])
        if name in LANE_IDS:
            return self._with_null([rows.lanes[:, LANE_IDS.index(name)] for rows in self._frames])
        if name in CHANGES:
            return self._with_null(
                [rows.is_changing[:, CHANGES.index(name)] for rows in self._frames])
        return self._array(np.array([getattr(found, name) for found, _ in self._safety()],
                                    np.float64))

    def _array(self, values: npt.NDArray[Any],
               known: Bools | None = None) -> Any:  # noqa: ANN401
        """
        Return numbers or flags as an Arrow array.

        ``pyarrow.array`` would import pandas if that is installed, which takes a fifth of the time
        of converting a minute.

        :param values: (N,) of any type of numbers, or bool.
        :param known: (N,) bool, False if the column has null; None for nowhere.
        """
        def buffer(flags: npt.NDArray[Any]) -> Any:  # noqa: ANN401
            return self._arrow.py_buffer(np.packbits(flags, bitorder='little'))

        # A column of a block of rows is not contiguous.
        data = buffer(values) if values.dtype == np.bool_ else self._arrow.py_buffer(
            np.ascontiguousarray(values))
        return self._arrow.Array.from_buffers(
            self._arrow.from_numpy_dtype(values.dtype), len(values),
            [None if known is None or known.all() else buffer(known), data])

    def _with_null(self, parts: list[Any]) -> Any:  # noqa: ANN401
        return self._array(np.concatenate(parts), self._has_lane)

    def _repeated(self, values: list[Any], dtype: npt.DTypeLike,
                  known: list[bool] | None = None) -> Any:  # noqa: ANN401
        """Return a number of each frame, or null where it is not known, for each of its rows."""
        return self._array(np.repeat(np.array(values, dtype), self._counts),
                           None if known is None else np.repeat(known, self._counts))

    def _of_each(self, made: Callable[[ActorColumns], Any]) -> list[Any]:
        """Return the result of ``made`` for the actors of each frame, once for equal actors."""
        parts, last = [], None
        part: Any = None
        for rows in self._frames:
            if rows.actors is not last:
                last = rows.actors
                part = made(last)
            parts.append(part)
        return parts

    def _texts_of_each(
            self, texts: Callable[[ActorColumns], Iterable[str]]) -> Any:  # noqa: ANN401
        # Array.take would import pyarrow.compute: a twentieth of the time of converting a minute.
        return self._arrow.concat_arrays(
            self._of_each(lambda actors: _texts(self._arrow, texts(actors))))

    def _stamp_ns(self) -> Any:  # noqa: ANN401
        stamps = [rows.stamp_ns for rows in self._frames]
        return self._repeated([stamp or 0 for stamp in stamps], np.int64,
                              [stamp is not None for stamp in stamps])

    def _name(self) -> Any:  # noqa: ANN401
        names = self._names
        numbers = self._of_each(lambda actors: np.array(
            [names.setdefault(name, len(names)) for name in actors.actor_list.names], np.int32))
        return self._arrow.DictionaryArray.from_arrays(
            self._array(np.concatenate(numbers)), _texts(self._arrow, names))

    def _road(self) -> Any:  # noqa: ANN401
        if not any(rows.road_names for rows in self._frames):
            return self._arrow.nulls(int(self._counts.sum()), self._arrow.string())
        return self._arrow.array([
            rows.road_names.get(road) if has_lane else None for rows in self._frames
            for road, has_lane in zip(rows.lanes[:, 0].tolist(), rows.has_lane.tolist(),
                                      strict=True)], self._arrow.string())

    def _derived(self) -> Any:  # noqa: ANN401
        codes = np.concatenate([rows.derived for rows in self._frames])
        if not codes.any():
            return self._arrow.nulls(len(codes), self._arrow.string())
        return self._arrow.DictionaryArray.from_arrays(
            self._array(codes.astype(np.int32), codes > 0),
            _texts(self._arrow, DERIVED)).cast(self._arrow.string())

    def _safety(self) -> list[tuple[Criticality, str]]:
        return [found for rows in self._frames for found in rows.safety or ()]

    def _tag_lists(self) -> Any:  # noqa: ANN401
        def lists(actors: ActorColumns) -> Any:  # noqa: ANN401
            tags = actors.actor_list.tags
            ends = np.cumsum([0, *map(len, tags)], dtype=np.int32)
            return self._arrow.ListArray.from_arrays(
                self._array(ends), _texts(self._arrow, chain.from_iterable(tags)))

        return self._arrow.concat_arrays(self._of_each(lists))


def _texts(arrow: Any, texts: Iterable[str]) -> Any:  # noqa: ANN401
    """Return strings as an Arrow array, without importing pandas."""
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return arrow.Array.from_buffers(
        arrow.string(), len(encoded),
        [None, arrow.py_buffer(ends), arrow.py_buffer(b''.join(encoded))])


class TableOutput(WholeFile, FrameWriter):
    """A table in a file."""

    # options: options of the recording; ``columns`` names, separated by commas.

    # This saves half of the time: the other parts have no columns.
    needs = NEEDS

    def __init__(self, path: str, options: WriteOptions) -> None:
        text = options.values.get('columns')
        columns = None if text is None else [column.name for column in selected(
            [name.strip() for name in text.split(',')], '--columns')]
        self._builder = TableBuilder(columns, source=options.source,
                                     format_name=options.format_name, settings=options.settings)
        self._is_of_some = any(map(options.values.get, ('actors', 'desired_tags',
                                                        'undesired_tags')))
        self._is_parquet = path.endswith(PARQUET.suffixes)
        self._writer: Any = None
        self.n_frames = 0
        super().__init__(path, force=options.force)

    @property
    def notes(self) -> list[str]:
        text = 'measures of safety are only among the selected actors; select rows of the table'
        return [f'{text} instead'] if self._is_of_some and self._builder.has_safety else []

    def write(self, frame: Frame) -> None:
        """Append the rows of a frame; ``frame``: frame; SI, REP-103 axes."""
        self.n_frames += 1
        for batch in self._builder.add(frame):
            self._write(batch)

    def flush(self) -> None:
        """Write the rows that are known; those of Parquet cannot be read without its end."""
        if not self._is_parquet:
            for batch in self._builder.collected():
                self._write(batch)
            super().flush()

    def complete(self) -> None:
        """Write the last rows and the end, and sync the file."""
        if self._handle is None or not self._handle.closed:
            if self._writer is None or self._builder.n_frames:
                for batch in self._builder.finish():
                    self._write(batch)
            self._writer.close()
        super().complete()

    def salvage(self) -> str:
        """Keep the rows of CSV; a Parquet file is not readable without its end."""
        return super().salvage() if self._is_parquet else self.kept()

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
    arrays, names = [], batch.schema.names
    separator = _texts(pa, [TAG_SEPARATOR])[0]
    for array in batch.columns:
        kind = array.type
        if pa.types.is_dictionary(kind):
            array = array.cast(pa.string())
        elif pa.types.is_list(kind):
            array = pc.binary_join(array, separator)
        elif pa.types.is_floating(kind):
            array = pc.if_else(pc.is_nan(array), pa.nulls(1, kind)[0], array)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=names)
