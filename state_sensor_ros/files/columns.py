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
The columns of tables: what they are, how frames become them, and how they become frames.

A column of actors in ``frame.py`` that names columns of tables has them without a line here. A
frame without actors is a row in which only its time and number are known. On the way back an actor
gets a box along its own axes if its center and size differ from those that an actor of its class
has without a box.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, groupby, pairwise
import json
from types import MappingProxyType
from typing import Any, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from state_sensor_ros import __version__, classes, errors, fields, parameters
from state_sensor_ros import frame as frames
from state_sensor_ros.files import actor_rows
from state_sensor_ros.files.input import decoding
from state_sensor_ros.frame import Bools, Floats, Frame, KIND_VEHICLE, Lanes
from state_sensor_ros.objects.criticality import Criticality, Situation
from state_sensor_ros.objects.object_maker import centers_of, default_sizes
from state_sensor_ros.settings import DEFAULTS, parse_settings, Settings

if TYPE_CHECKING:
    import pyarrow as pa

TEXT, LIST, NAME, FLOAT64 = 'string', 'list<string>', 'dictionary<string>', 'float64'
# Separates the tags of an actor in CSV.
TAG_SEPARATOR = ';'
# Keys of the schema's metadata.
_GENERATION, _DEFAULT_SIZES = 'generation', 'default_sizes'
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
_SAFETY_NAMES = {column.name for column in SAFETY}
BY_NAME = {column.name: column for column in (*COLUMNS, *SAFETY)}
NAMES = tuple(column.name for column in COLUMNS)


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


class BatchMaker:
    """Makes Arrow batches of frames."""

    # has_empty: whether a frame without actors is a row.

    def __init__(self, columns: Sequence[TableColumn], *, source: str, format_name: str,
                 settings: Settings = DEFAULTS, has_empty: bool = True) -> None:
        self._has_empty, self.n_empty, self.n_frames = has_empty, 0, 0
        self._columns = columns
        self._metadata = {
            'source': source.encode(errors='backslashreplace').decode(), 'form': format_name,
            'version': f'state_sensor_ros {__version__}',
            _DEFAULT_SIZES: json.dumps([*settings.default_sizes]),
            'units': json.dumps({column.name: column.unit for column in self._columns
                                 if column.unit})}
        self.schema = self._schema('')
        self.rows = actor_rows.RowMaker(settings)

    def _schema(self, generation: str) -> pa.Schema:
        """Return the schema of a table, with units and the source in its metadata."""
        import pyarrow as pa
        types = {LIST: pa.list_(pa.string()), NAME: pa.dictionary(pa.int32(), pa.string()),
                 FLOAT64: pa.float64()}
        return pa.schema(
            [pa.field(column.name, types.get(column.type) or pa.type_for_alias(column.type),
                      metadata={'unit': column.unit, 'meaning': column.meaning})
             for column in self._columns], {**self._metadata, _GENERATION: generation})

    def add(self, frame: Frame) -> list[pa.RecordBatch]:
        """Add a frame; ``frame``: next frame in time; SI, REP-103 axes."""
        if not self.n_frames:
            self.schema = self._schema(frame.generation)
        self.n_frames += 1
        return self._batches(self.rows.add(frame))

    def rest(self, *, is_end: bool = True) -> list[pa.RecordBatch]:
        """Return batches of the rows that are known so far, at least one, which may be empty."""
        import pyarrow as pa
        return self._batches(self.rows.flush(is_end=is_end)) or [
            pa.RecordBatch.from_pylist([], schema=self.schema)]

    def _batches(self, complete: list[actor_rows.FrameRows]) -> list[pa.RecordBatch]:
        import pyarrow as pa
        batches = []
        for _, alike in groupby(complete, lambda rows: actor_rows.parts_of(rows.frame)):
            columns = _Columns([*alike], has_empty=self._has_empty)
            self.n_empty += columns.n_empty
            batches.append(pa.RecordBatch.from_arrays(
                [columns.of(column.name) for column in self._columns], schema=self.schema))
        return batches


class _Columns:
    """The columns of consecutive frames with the same parts as Arrow arrays."""

    def __init__(self, rows: Sequence[actor_rows.FrameRows], *, has_empty: bool) -> None:
        self._rows, self._counts = rows, np.array([each.frame.n_actors for each in rows], np.int64)
        self._n_rows = np.maximum(self._counts, int(has_empty))
        self.n_empty = int((self._counts == 0).sum())
        self._whole = fields.joined([each.frame for each in rows],
                                    (np.cumsum(self._counts) - self._counts).tolist())
        self._floats = np.concatenate([each.floats for each in rows])

    def of(self, name: str) -> Any:  # noqa: ANN401
        """Return a column."""
        if name in ('frame', 'game_time', 'stamp_ns'):
            # Those of a frame without actors, too.
            values = [each.index if name == 'frame' else each.stamp_ns if name == 'stamp_ns'
                      else each.frame.game_time for each in self._rows]
            return _array(np.repeat(np.array([value or 0 for value in values],
                                             BY_NAME[name].type), self._n_rows),
                          np.repeat([value is not None for value in values], self._n_rows))
        column = self._of_actors(name)
        if not self.n_empty or not self._n_rows.all():
            return column
        has_actor = np.repeat(self._counts > 0, self._n_rows)
        return column.take(_array(np.cumsum(has_actor) - 1, has_actor))

    def _of_actors(self, name: str) -> Any:  # noqa: ANN401
        import pyarrow as pa
        whole = self._whole
        if name in actor_rows.FLOAT_NAMES:
            return _array(self._floats[:, actor_rows.FLOAT_NAMES.index(name)])
        if name in _LANES:
            return self._of_lanes(_LANES[name], name)
        if name in OTHERS:
            field, i = OTHERS[name]
            values = getattr(whole, field.name)
            values = field.unknowns(whole.n_actors) if values is None else values
            return strings(values) if not field.is_array else _array(
                values if i is None else values[:, i])
        if name == 'name':
            numbers = {text: i for i, text in enumerate(dict.fromkeys(whole.names))}
            return pa.DictionaryArray.from_arrays(_array(np.array(
                [numbers[text] for text in whole.names], np.int32)), strings(numbers))
        if name == 'road':
            # The names of all roads so far.
            known = self._rows[-1].frame.lanes.road_names
            roads: list[str | None] = [None] * whole.n_actors
            for row, road in zip(whole.lanes.actor.tolist(), whole.lanes.road_id.tolist(),
                                 strict=True):
                roads[row] = known.get(road)
            return strings(roads)
        if name == 'derived':
            return strings([DERIVED[code] or None for each in self._rows for code in each.derived])
        if name == 'lead':
            return strings([lead or None for _, lead in self._safety])
        if name in _SAFETY_NAMES:
            return _array(np.array([getattr(found, name) for found, _ in self._safety]))
        return pa.concat_arrays([_unchanging(each.actors)[name] for each in self._rows])

    def _of_lanes(self, field: fields.Field, name: str) -> Any:  # noqa: ANN401
        lanes, values = self._whole.lanes, field.unknowns(self._whole.n_actors)
        values[lanes.actor] = getattr(lanes, name)
        known = np.zeros(len(values), np.bool_)
        known[lanes.actor] = True
        return _array(values, None if field.dtype == 'f8' else known)

    @cached_property
    def _safety(self) -> list[tuple[Criticality, str]]:
        """Return the measures of each actor, undefined ones of objects, and names of leads."""
        measures = []
        for frame in (each.frame for each in self._rows):
            situation = Situation(frame)
            for row, kind in enumerate(frame.kinds.tolist()):
                found = situation.criticality(row) if kind == KIND_VEHICLE else Criticality()
                measures.append((found, frame.names[found.lead] if found.lead >= 0 else ''))
        return measures


@lru_cache(maxsize=4)
def _unchanging(actors: actor_rows.ActorColumns) -> dict[str, Any]:
    """Return the columns of a frame that stay while the actors are the same."""
    import pyarrow as pa
    tags = actors.actor_list.tags
    return {
        'actor_id': _array(actors.ids), 'is_ego': _array(actors.are_egos),
        'kind': strings([_KINDS[kind] for kind in actors.actor_list.kinds]),
        'class': strings([classes.CLASSES[number].name for number in actors.classes.tolist()]),
        'tags': pa.ListArray.from_arrays(
            _array(np.cumsum([0, *map(len, tags)], dtype=np.int32)),
            strings(chain.from_iterable(tags)))}


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


def strings(texts: Iterable[str | None]) -> Any:  # noqa: ANN401
    """Return strings as an Arrow array."""
    import pyarrow as pa
    given = list(texts)
    encoded = [(text or '').encode() for text in given]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    known = _bits(np.array([text is not None for text in given])) if None in given else None
    return pa.Array.from_buffers(
        pa.string(), len(encoded), [known, pa.py_buffer(ends), pa.py_buffer(b''.join(encoded))])


_KINEMATICS = actor_rows.FLOAT_NAMES[actor_rows.KINEMATICS]
_BOXES = actor_rows.FLOAT_NAMES[actor_rows.BOX]
_CHANGES, _LANE_IDS = ('lane_change_left', 'lane_change_right'), (
    'road_id', 'section_id', 'lane_id')
# Columns that an actor of a frame needs.
_NEEDED = ('frame', 'game_time', 'name', 'kind', 'tags', *_KINEMATICS, *_CHANGES, *_LANE_IDS, 's',
           *_BOXES)
# The only velocity from sources that measure no other; names of the roads; ids of the actors; what
# is derived; columns that are used as they are.
_OPTIONAL = ('speed', 'road', 'actor_id', 'derived', *OTHERS)
# Columns that are read in another type.
_READ_AS = {'actor_id': 'int64', 'name': TEXT}
_DERIVED_OF = {text: number for number, text in enumerate(DERIVED)}


class FrameMaker:
    """
    Makes frames of the batches of a table.

    ``columns`` names of those that are used; ``road_names`` those of the roads so far.

    :param name: name of the table in errors.
    :raises TrajectoryFormatError: if columns are missing or of another type.
    """

    def __init__(self, schema: pa.Schema, name: str) -> None:
        import pyarrow as pa
        self._name, self.road_names, metadata = name, frames.NO_ROADS, schema.metadata or {}
        self._generation = metadata.get(_GENERATION.encode(), b'').decode('utf-8', 'replace')
        # Sizes of actors without a box.
        sizes = metadata.get(_DEFAULT_SIZES.encode())
        self._default_sizes = default_sizes(DEFAULTS if sizes is None else parse_settings(
            {_DEFAULT_SIZES: json.loads(sizes)}))
        self.columns = [*_NEEDED, *(each for each in _OPTIONAL if each in schema.names)]
        missing = [each for each in self.columns if each not in schema.names]
        if missing:
            raise errors.TrajectoryFormatError(name, f'a table without {", ".join(missing)}',
                                               'all columns of a frame')
        # A type that cannot be converted is found before the first row is read.
        self.plain(pa.RecordBatch.from_pylist([], schema=schema))

    def plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch in the types of a frame."""
        import pyarrow as pa
        arrays = []
        for name in self.columns:
            expected = _READ_AS.get(name) or BY_NAME[name].type
            with decoding(f'{self._name}: column {name}', '{}', expected):
                column = batch.column(name)
                # pandas makes float64 of integers if one is missing.
                if 'int' in expected and pa.types.is_floating(column.type):
                    column = pa.array(column.to_numpy(zero_copy_only=False), from_pandas=True)
                arrays.append(column.cast(pa.list_(pa.string()) if expected == LIST
                                          else pa.type_for_alias(expected)))
        plain = pa.RecordBatch.from_arrays(arrays, names=self.columns)
        # A frame without actors has no name and no kind.
        names, kinds, tags = (plain.column(name) for name in ('name', 'kind', 'tags'))
        if plain.column('frame').null_count or tags.flatten().null_count \
                or not names.is_null().equals(kinds.is_null()):
            raise ValueError('null in a column frame, name, kind or tags')
        return plain

    def frames(self, batch: pa.RecordBatch, bounds: Sequence[int]) -> Iterator[Frame]:
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

    def _whole(self, batch: pa.RecordBatch) -> Frame:
        """Return a frame of the actors of all frames in a batch."""
        rows = {name: _values(batch.column(name)) for name in self.columns}
        names, kinematics = tuple(rows['name']), _stacked(rows, _KINEMATICS)
        others: dict[str, Any] = {}
        for field in dict.fromkeys(field for field, _ in OTHERS.values()):
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
        frame = Frame(
            generation=self._generation, time=0, sample_count=0, names=names, game_time=0.0,
            kinds=np.where([kind == 'vehicle' for kind in rows['kind']],
                           KIND_VEHICLE, frames.KIND_OBJECT).astype(np.uint8),
            tags=tuple([tuple(tags or ()) for tags in rows['tags']]), kinematics=kinematics,
            lanes=self._lanes(rows, batch.column('road_id').is_valid().to_numpy(
                zero_copy_only=False)), boxes=frames.NO_BOXES, wheels=frames.NO_WHEELS,
            inputs=np.full((len(names), 4), np.nan), ids=rows.get('actor_id'),
            forward_speed=speeds, derived=derived if derived.any() else None, **others)
        return self._with_boxes(frame, _stacked(rows, _BOXES))

    def _with_boxes(self, frame: Frame, shapes: Floats) -> Frame:
        """Add boxes to actors whose center and size are not those without a box."""
        # shapes: (N, 6) float64, center and length, width, height, m, NaN where unknown.
        usual = centers_of(frame, self._default_sizes,
                           classes.classes_of(frame.kinds.tolist(), frame.tags))
        is_usual = (shapes == np.column_stack((usual.poses[:, :3], usual.sizes))).all(axis=1)
        actor = np.flatnonzero(frame.has_pose() & np.isfinite(shapes).all(axis=1) & ~is_usual)
        rows = np.column_stack((shapes[actor, :3], frame.orientation_xyzw[actor],
                                shapes[actor, 3:], np.ones((len(actor), 3))))
        return replace(frame, boxes=frames.Boxes(actor, ('',) * len(actor), rows))

    def _lanes(self, rows: dict[str, Any], has_lane: Bools) -> Lanes:
        """Return lane states with the names of the roads so far."""
        actor = np.flatnonzero(has_lane)
        new = {int(road): name for road, name in zip(
            rows['road_id'][actor].tolist(), [rows['road'][row] for row in actor.tolist()],
            strict=True) if name is not None} if 'road' in rows else {}
        if not new.keys() <= self.road_names.keys():
            self.road_names = MappingProxyType({**new, **self.road_names})
        return Lanes(
            actor.astype(np.int64), _stacked(rows, _CHANGES)[actor],
            _stacked(rows, _LANE_IDS)[actor], rows['s'][actor], self.road_names)


def _values(column: pa.Array) -> Any:  # noqa: ANN401
    """Return numbers as an array, with NaN, -1 or False for null; others as a list."""
    name = str(column.type)
    if name == 'bool' or 'int' in name:
        column = column.fill_null(False if name == 'bool' else -1)
    return column.to_pylist() if 'string' in name else column.to_numpy(zero_copy_only=False)


def _stacked(rows: dict[str, Any], names: Sequence[str]) -> Any:  # noqa: ANN401
    """Return the columns of an array, in one of (N, len(names))."""
    return np.column_stack([rows[name] for name in names])
