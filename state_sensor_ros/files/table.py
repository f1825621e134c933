# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Tables in files: Parquet and CSV written frame by frame, Parquet read, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, TYPE_CHECKING

import numpy as np

from state_sensor_ros import errors
from state_sensor_ros.files import columns, output, PARQUET, ReadOptions, recording, WriteOptions
from state_sensor_ros.files.input import closed_on_failure, decoding, open_input
from state_sensor_ros.frame import Frame, NO_ROADS
from state_sensor_ros.texts import counted

if TYPE_CHECKING:
    import pyarrow as pa

# Rows of a group of Parquet, and of a batch that is read.
GROUP_ROWS, _BATCH_ROWS = 100_000, 10_000


class TableOutput(output.WholeFile, recording.FrameWriter):
    """A table in a file; CSV leaves frames without actors out."""

    # options: options of the recording; ``columns`` names.

    def __init__(self, path: str, options: WriteOptions) -> None:
        chosen = columns.selected(options.values.get('columns'), '--columns')
        self._is_parquet = path.endswith(PARQUET.suffixes)
        # The rows of CSV can be read; a Parquet file cannot without its end.
        self.survives_cut = not self._is_parquet
        # A reader of CSV expects numbers in each row; Parquet has null.
        self._maker = columns.BatchMaker(chosen, source=options.source, settings=options.settings,
                                         format_name=options.format_name,
                                         has_empty=self._is_parquet)
        self._writer: Any = None
        # The batches of a group of Parquet.
        self._group: list[pa.RecordBatch] = []
        self.n_frames = 0
        super().__init__(path, force=options.force)

    @property
    def notes(self) -> list[str]:
        n_empty = 0 if self._is_parquet else self._maker.n_empty
        return self._maker.rows.notes + [
            f'CSV does not carry {counted(n_empty, "frame")} without actors'] * (n_empty > 0)

    def write(self, frame: Frame) -> None:
        """Append the rows of a frame; ``frame``: frame; SI, REP-103 axes."""
        self.n_frames += 1
        self._write(self._maker.add(frame))

    def flush(self) -> None:
        """Write the rows that are known; those of Parquet cannot be read without its end."""
        if not self._is_parquet:
            self._write(self._maker.rest(is_end=False))
            super().flush()

    def complete(self) -> None:
        """Write the last rows and the end, and sync the file."""
        if self.is_open:
            self._write(self._maker.rest(), is_end=True)
            self._writer.close()
        super().complete()

    def abort(self) -> None:
        """Close the file and remove the written data."""
        if self._writer is not None:
            with suppress(OSError, ValueError):
                self._writer.close()
        super().abort()

    def _write(self, batches: list[pa.RecordBatch], *, is_end: bool = False) -> None:
        self._group += batches
        n_rows = sum(batch.num_rows for batch in self._group)
        if not self._is_parquet:
            for batch in map(_plain, self._group):
                if self._writer is None:
                    from pyarrow.csv import CSVWriter
                    self._writer = CSVWriter(self.handle, batch.schema)
                self._writer.write(batch)
        elif is_end or n_rows >= GROUP_ROWS:
            import pyarrow as pa
            if self._writer is None:
                from pyarrow.parquet import ParquetWriter
                # Snappy, as in pandas: half of the uncompressed size, a third of the time of zstd.
                self._writer = ParquetWriter(self.handle, self._maker.schema,
                                             compression='snappy', write_page_checksum=True)
            self._writer.write_table(pa.Table.from_batches(self._group).unify_dictionaries(),
                                     row_group_size=max(n_rows, 1))
        else:
            return
        self._group = []


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch for CSV: names and tags as text, empty values for NaN."""
    # Scalars are elements of arrays: pyarrow imports pandas to convert a value of Python.
    import pyarrow as pa
    import pyarrow.compute as pc
    arrays = []
    for array in batch.columns:
        if pa.types.is_dictionary(array.type):
            array = array.cast(pa.string())
        elif pa.types.is_list(array.type):
            array = pc.binary_join(array, columns.strings([columns.TAG_SEPARATOR])[0])
        elif pa.types.is_floating(array.type):
            array = pc.if_else(pc.is_nan(array), pa.nulls(1, array.type)[0], array)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def reading_parquet(name: str) -> AbstractContextManager[None]:
    """Turn what pyarrow raises at damaged files into TrajectoryFormatError."""
    return decoding(name, '{}', 'a Parquet file')


class TableRecording(recording.FrameFile):
    """The rows of a Parquet file as frames."""

    def __init__(self, path: str, options: ReadOptions) -> None:
        from pyarrow import parquet
        super().__init__(path, 'table', '')
        self._n_rows = 0
        # pyarrow refuses a name that is not UTF-8.
        self._handle = open_input(Path(path))
        with closed_on_failure(self), reading_parquet(path):
            self._file = parquet.ParquetFile(self._handle, page_checksum_verification=True)
            self._maker = columns.FrameMaker(self._file.schema_arrow, path)

    def mark(self) -> int:
        """Return the number of rows of the frames so far."""
        return self._n_rows

    def read(self, mark: int | None) -> Iterator[Frame]:
        """Yield the frames."""
        import pyarrow as pa
        if mark is None:
            self._maker.road_names = NO_ROADS
        self._n_rows, rest = mark or 0, None
        with reading_parquet(self.name):
            for batch in self._batches(self._n_rows):
                batch = batch if rest is None else pa.concat_batches([rest, batch])
                numbers = batch.column('frame').to_numpy(zero_copy_only=False)
                back = np.flatnonzero(numbers[1:] < numbers[:-1])
                if len(back):
                    raise errors.TrajectoryFormatError(
                        f'{self.name}: column frame',
                        f'{numbers[back[0] + 1]} after {numbers[back[0]]}',
                        'rows in the order of the frames')
                bounds = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()]
                yield from self._frames(batch, bounds)
                rest = batch.slice(bounds[-1])
            if rest is not None:
                yield from self._frames(rest, [0, rest.num_rows])

    def _frames(self, batch: pa.RecordBatch, bounds: list[int]) -> Iterator[Frame]:
        """Yield the frames between rows."""
        begin = self._n_rows
        for frame, (first, end) in zip(self._maker.frames(batch, bounds), pairwise(bounds),
                                       strict=True):
            self._n_rows = begin + end
            self.faults.place = f'frame {batch.column("frame")[first]}'
            yield frame

    def _batches(self, begin: int) -> Iterator[pa.RecordBatch]:
        """Yield rows in the types of a frame, from one on."""
        for i in range(self._file.num_row_groups):
            n_rows, n_stated = 0, self._file.metadata.row_group(i).num_rows
            if begin < n_stated:
                for batch in self._file.iter_batches(
                        _BATCH_ROWS, row_groups=[i], columns=self._maker.columns):
                    first = max(begin - n_rows, 0)
                    n_rows += batch.num_rows
                    if first < batch.num_rows:
                        yield self._maker.plain(batch.slice(first))
                # pyarrow ends a group early, without an error, if a page is damaged in some ways.
                if n_rows != n_stated:
                    raise ValueError(f'{n_rows} of the {n_stated} rows of row group {i}')
            begin = max(begin - n_stated, 0)

    def close(self) -> None:
        """Close the file; a second call has no effect."""
        self._handle.close()
