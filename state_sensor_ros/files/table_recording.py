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

An actor gets a box along its own axes if its center and size differ from those that an actor of
its class has without a box. A row without a name is a frame without actors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import pairwise
import json
from pathlib import Path
from types import MappingProxyType
from typing import Any, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from state_sensor_ros import classes, errors, fields
from state_sensor_ros import frame as frames
from state_sensor_ros.files import ReadOptions, recording, table
from state_sensor_ros.files.input import closed_on_failure, decoding, open_input
from state_sensor_ros.objects.object_maker import centers_of, default_sizes
from state_sensor_ros.settings import DEFAULTS, parse_settings

if TYPE_CHECKING:
    import pyarrow as pa

_KINEMATICS = ('x', 'y', 'z', 'qx', 'qy', 'qz', 'qw', 'vx', 'vy', 'vz', 'wx', 'wy', 'wz')
_CHANGES, _LANE_IDS = ('lane_change_left', 'lane_change_right'), (
    'road_id', 'section_id', 'lane_id')
_BOXES = ('center_x', 'center_y', 'center_z', 'length', 'width', 'height')
# Columns that an actor of a frame needs.
NEEDED = ('frame', 'game_time', 'name', 'kind', 'tags', *_KINEMATICS, *_CHANGES, *_LANE_IDS, 's',
          *_BOXES)
# The only velocity from sources that measure no other; names of the roads; ids of the actors; what
# is derived; columns that are used as they are.
_OPTIONAL = ('speed', 'road', 'actor_id', 'derived', *table.OTHERS)
_BATCH_ROWS = 10_000
_DERIVED_OF = {text: number for number, text in enumerate(table.DERIVED)}


def reading_parquet(name: str) -> AbstractContextManager[None]:
    """Turn what pyarrow raises at damaged files into TrajectoryFormatError."""
    return decoding(name, '{}', 'a Parquet file')


class TableRecording(recording.FrameFile):
    """The rows of a Parquet file as frames."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), 'table', '')
        self._last = 0, -1
        self._road_names = frames.NO_ROADS
        # pyarrow refuses a name that is not UTF-8.
        self._handle = open_input(path)
        with closed_on_failure(self), reading_parquet(self.name):
            self._open()

    def _open(self) -> None:
        """Read the metadata, and check columns, types and sizes."""
        import pyarrow as pa
        from pyarrow import parquet
        self._file = parquet.ParquetFile(self._handle, page_checksum_verification=True)
        schema = self._file.schema_arrow
        metadata = schema.metadata or {}
        self.generation = metadata.get(table.GENERATION.encode(), b'').decode('utf-8', 'replace')
        # Sizes of actors without a box.
        sizes = metadata.get(table.DEFAULT_SIZES.encode())
        self._default_sizes = default_sizes(DEFAULTS if sizes is None else parse_settings(
            {table.DEFAULT_SIZES: json.loads(sizes)}))
        self._columns = [*NEEDED, *(name for name in _OPTIONAL if name in schema.names)]
        missing = [name for name in self._columns if name not in schema.names]
        if missing:
            raise errors.TrajectoryFormatError(self.name, f'a table without {", ".join(missing)}',
                                               'all columns of a frame')
        # A type that cannot be converted is found before the first row is read.
        self._plain(pa.RecordBatch.from_pylist([], schema=schema))

    def mark(self) -> tuple[int, int]:
        """Return the row group in which the last frame begins, and its number."""
        return self._last

    def read(self, mark: tuple[int, int] | None) -> Iterator[frames.Frame]:
        """Yield the frames."""
        if mark is None:
            self._road_names = frames.NO_ROADS
        for frame, place in self._placed(*mark or (0, None)):
            self._last, self.faults.place = place, f'frame {place[1]}'
            yield frame

    def _placed(self, begin: int,
                after: int | None) -> Iterator[tuple[frames.Frame, tuple[int, int]]]:
        """Yield the frames after one, from a row group on, with that of each and its number."""
        import pyarrow as pa
        rest: pa.RecordBatch | None = None
        begin_group = 0
        with reading_parquet(self.name):
            for group, batch in self._batches(begin):
                if rest is not None:
                    batch = pa.concat_batches([rest, batch])
                else:
                    begin_group = group
                numbers = batch.column('frame').to_numpy(zero_copy_only=False)
                if after is not None:
                    first = int(np.searchsorted(numbers, after, 'right'))
                    batch, numbers = batch.slice(first), numbers[first:]
                if not len(numbers):
                    continue
                back = np.flatnonzero(numbers[1:] < numbers[:-1])
                if len(back):
                    raise errors.TrajectoryFormatError(
                        f'{self.name}: column frame',
                        f'{numbers[back[0] + 1]} after {numbers[back[0]]}',
                        'rows in the order of the frames')
                bounds = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()]
                for frame, row in zip(self._frames(batch, bounds), bounds, strict=False):
                    yield frame, (begin_group, int(numbers[row]))
                    begin_group = group
                rest = batch.slice(bounds[-1])
            if rest is not None:
                [frame] = self._frames(rest, [0, rest.num_rows])
                yield frame, (begin_group, rest.column('frame')[0].as_py())

    def _batches(self, begin: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield rows in the types of a frame, and their row group, from a row group on."""
        for i_group in range(begin, self._file.num_row_groups):
            n_rows = 0
            for batch in self._file.iter_batches(
                    _BATCH_ROWS, row_groups=[i_group], columns=self._columns):
                n_rows += batch.num_rows
                yield i_group, self._plain(batch)
            # pyarrow ends a group early, without an error, if a page is damaged in some ways.
            stated = self._file.metadata.row_group(i_group).num_rows
            if n_rows != stated:
                raise ValueError(f'{n_rows} of the {stated} rows of row group {i_group}')

    def _plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa
        arrays = []
        for name in self._columns:
            expected = _type_of(name)
            with decoding(f'{self.name}: column {name}', '{}', expected):
                column = batch.column(name)
                # pandas makes float64 of integers if one is missing.
                if 'int' in expected and pa.types.is_floating(column.type):
                    column = pa.array(column.to_numpy(zero_copy_only=False), from_pandas=True)
                arrays.append(column.cast(pa.list_(pa.string()) if expected == table.LIST
                                          else pa.type_for_alias(expected)))
        plain = pa.RecordBatch.from_arrays(arrays, names=self._columns)
        # A frame without actors has no name and no kind.
        names, kinds, tags = (plain.column(name) for name in ('name', 'kind', 'tags'))
        if plain.column('frame').null_count or tags.flatten().null_count \
                or not names.is_null().equals(kinds.is_null()):
            raise ValueError('null in a column frame, name, kind or tags')
        return plain

    def _frames(self, batch: pa.RecordBatch, bounds: Sequence[int]) -> Iterator[frames.Frame]:
        """Yield the frames of the rows between bounds."""
        batch = batch.slice(0, bounds[-1])
        times = batch.column('game_time').to_numpy(zero_copy_only=False)
        has_actor = batch.column('name').is_valid()
        is_in = has_actor.to_numpy(zero_copy_only=False)
        if not is_in.all():
            alone = [begin for begin, end in pairwise(bounds) if end - begin == 1]
            if len(np.setdiff1d(np.flatnonzero(~is_in), alone)):
                raise ValueError('null in the column name of a frame with actors')
            batch = batch.filter(has_actor)
        whole, places = self._whole(batch), np.cumsum([0, *is_in.tolist()]).tolist()
        for begin, end in pairwise(bounds):
            yield fields.cut(whole, places[begin], places[end], game_time=float(times[begin]))

    def _whole(self, batch: pa.RecordBatch) -> frames.Frame:
        """Return a frame of the actors of all frames in a batch."""
        rows = {name: _values(batch.column(name)) for name in self._columns}
        names, kinematics = tuple(rows['name']), _stacked(rows, _KINEMATICS)
        others: dict[str, Any] = {}
        for field in dict.fromkeys(field for field, _ in table.OTHERS.values()):
            if rows.keys() >= set(field.columns):
                values = _stacked(rows, field.columns) if field.width else rows[field.name]
                others[field.name] = values.astype(field.dtype) if field.is_array \
                    else tuple([text or '' for text in values])
        # Speeds are velocities of their own if there are no others.
        speeds = rows.get('speed')
        if speeds is None or not np.isnan(kinematics[:, 7:]).all() \
                or not np.isfinite(speeds).any():
            speeds = None
        derived = np.array([_DERIVED_OF.get(text, 0) for text in rows.get('derived', ())],
                           np.uint8)
        frame = frames.Frame(
            generation=self.generation, time=0, sample_count=0, names=names, game_time=0.0,
            kinds=np.where([kind == 'vehicle' for kind in rows['kind']],
                           frames.KIND_VEHICLE, frames.KIND_OBJECT).astype(np.uint8),
            tags=tuple([tuple(tags or ()) for tags in rows['tags']]), kinematics=kinematics,
            lanes=self._lanes(rows, batch.column('road_id').is_valid().to_numpy(
                zero_copy_only=False)), boxes=frames.NO_BOXES, wheels=frames.NO_WHEELS,
            inputs=np.full((len(names), 4), np.nan), ids=rows.get('actor_id'),
            forward_speed=speeds, derived=derived if derived.any() else None, **others)
        return self._with_boxes(frame, _stacked(rows, _BOXES))

    def _with_boxes(self, frame: frames.Frame, shapes: frames.Floats) -> frames.Frame:
        """Add boxes to actors whose center and size are not those without a box."""
        # shapes: (N, 6) float64, center and length, width, height, m, NaN where unknown.
        usual = centers_of(frame, self._default_sizes,
                           classes.classes_of(frame.kinds.tolist(), frame.tags))
        is_usual = (shapes == np.column_stack((usual.poses[:, :3], usual.sizes))).all(axis=1)
        actor = np.flatnonzero(frame.has_pose() & np.isfinite(shapes).all(axis=1) & ~is_usual)
        rows = np.column_stack((shapes[actor, :3], frame.orientation_xyzw[actor],
                                shapes[actor, 3:], np.ones((len(actor), 3))))
        return replace(frame, boxes=frames.Boxes(actor, ('',) * len(actor), rows))

    def _lanes(self, rows: dict[str, Any], has_lane: npt.NDArray[np.bool_]) -> frames.Lanes:
        """Return lane states with the names of the roads so far."""
        actor = np.flatnonzero(has_lane)
        new = {int(road): name for road, name in zip(
            rows['road_id'][actor].tolist(), [rows['road'][row] for row in actor.tolist()],
            strict=True) if name is not None} if 'road' in rows else {}
        if not new.keys() <= self._road_names.keys():
            self._road_names = MappingProxyType({**new, **self._road_names})
        return frames.Lanes(
            actor.astype(np.int64), _stacked(rows, _CHANGES)[actor],
            _stacked(rows, _LANE_IDS)[actor], rows['s'][actor], self._road_names)

    def close(self) -> None:
        """Close the file; a second call has no effect."""
        self._handle.close()


def _type_of(name: str) -> str:
    """Return the type to which a column is converted."""
    found = 'int64' if name == 'actor_id' else table.BY_NAME[name].type
    return table.TEXT if found == table.NAME else found


def _values(column: pa.Array) -> Any:  # noqa: ANN401
    """Return numbers as an array, with NaN, -1 or False for null; others as a list."""
    name = str(column.type)
    if name == 'bool' or 'int' in name:
        column = column.fill_null(False if name == 'bool' else -1)
    return column.to_pylist() if 'string' in name else column.to_numpy(zero_copy_only=False)


def _stacked(rows: dict[str, Any], names: Sequence[str]) -> Any:  # noqa: ANN401
    """Return the columns of an array, in one of (N, len(names))."""
    return np.column_stack([rows[name] for name in names])


def open_table(path: str, options: ReadOptions) -> TableRecording:
    return TableRecording(Path(path))
