# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""The columns of tables: names, types, units."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
import json
from typing import TYPE_CHECKING

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.parameters import nearest
from state_sensor_ros.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

TEXT, LIST, NAME, BOOL = 'string', 'list<string>', 'dictionary<string>', 'bool'
INT64, UINT32, INT32, FLOAT64 = 'int64', 'uint32', 'int32', 'float64'
# Separates the tags of an actor in CSV.
TAG_SEPARATOR = ';'
# Keys of the schema's metadata.
SOURCE, FORMAT, GENERATION, VERSION, UNITS = 'source', 'form', 'generation', 'version', 'units'
DEFAULT_SIZES = 'default_sizes'


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


COLUMNS = (
    TableColumn('stamp_ns', INT64, 'ns', 'stamp of the frame, as in a bag'),
    TableColumn('frame', INT64, '', 'number of the frame, from 0'),
    TableColumn('game_time', FLOAT64, 's', 'simulated time since the start of the simulation'),
    TableColumn('actor_id', UINT32, '', 'number of the actor, as in ~/frame'),
    TableColumn('name', NAME, '', 'raw name of the actor'),
    TableColumn('kind', TEXT, '', 'vehicle or object'),
    TableColumn('class', TEXT, '', 'class of the object'),
    TableColumn('tags', LIST, '', 'tags of the actor, as sent'),
    TableColumn('is_ego', BOOL, '', 'whether the actor is the ego'),
    *_floats('x y z', 'm', 'position of the origin, global frame'),
    *_floats('qx qy qz qw', '', 'orientation, global frame, not normalized'),
    *_floats('roll pitch yaw', 'rad', 'orientation about the fixed axes x, y, z, global frame'),
    *_floats('vx vy vz', 'm/s', 'velocity of the origin, axes of the global frame'),
    *_floats('wx wy wz', 'rad/s', 'angular velocity, axes of the global frame'),
    *_floats('ax ay az', 'm/s2',
             "the source's, else central difference of the velocity, global axes"),
    *_floats('speed', 'm/s', 'velocity along the x axis of the actor, negative for backwards'),
    *_floats('center_x center_y center_z', 'm', 'center of the box, global frame'),
    *_floats('length width height', 'm', 'edges of the box along the axes of the actor'),
    TableColumn('road_id', INT32, '', 'OpenDRIVE road'),
    TableColumn('section_id', INT32, '', 'section of the road'),
    TableColumn('lane_id', INT32, '', 'lane of the section'),
    TableColumn('s', FLOAT64, 'm', 'distance along the road'),
    TableColumn('lane_change_left', BOOL, '', 'whether a lane change to the left is under way'),
    TableColumn('lane_change_right', BOOL, '', 'whether a lane change to the right is under way'),
    TableColumn('road', TEXT, '', 'name of the road, of a simulator whose roads have names'),
    TableColumn('derived', TEXT, '', "what is not the source's: velocity (from positions), size "
                '(of the class)'))
# Columns that are computed only if they are named.
SAFETY = (
    *_floats('gap', 'm', 'from the front of a vehicle to the rear of its lead vehicle'),
    *_floats('time_headway', 's', 'gap by the speed of the vehicle'),
    *_floats('time_to_collision', 's', 'of boxes that keep their velocities'),
    *_floats('required_deceleration', 'm/s2', 'to the speed of the lead vehicle within the gap'),
    *_floats('closest_distance', 'm', 'from the box of a vehicle to the nearest box'),
    TableColumn('lead', TEXT, '', 'raw name of the lead vehicle'))
# Texts of the column `derived`, by Frame.derived.
DERIVED = ('', 'velocity', 'size', f'velocity{TAG_SEPARATOR}size')
BY_NAME = {column.name: column for column in (*COLUMNS, *SAFETY)}
NAMES = tuple(column.name for column in COLUMNS)
SAFETY_NAMES = tuple(column.name for column in SAFETY)
LANE_IDS = ('road_id', 'section_id', 'lane_id')
CHANGES = ('lane_change_left', 'lane_change_right')
FLOAT_NAMES = tuple(column.name for column in COLUMNS
                    if column.type == FLOAT64 and column.name != 'game_time')


def selected(names: Iterable[str] | None, where: str = 'columns') -> tuple[TableColumn, ...]:
    """Return columns by name."""
    # names: names of columns in any order, None for all but :data:`SAFETY`.
    if names is None:
        return COLUMNS
    # A text is an iterable, too: of its characters.
    chosen = {names} if isinstance(names, str) else set(names)
    unknown = sorted(chosen - set(BY_NAME))
    if unknown or not chosen:
        near = list(filter(None, (nearest(str(name), BY_NAME) for name in unknown)))
        raise ConfigError(where, ', '.join(map(repr, unknown)) or 'none',
                          f'columns; did you mean {" or ".join(near)}?' if near
                          else f'some of {", ".join(BY_NAME)}')
    return tuple(column for column in BY_NAME.values() if column.name in chosen)


def new_schema(columns: Iterable[TableColumn], *, source: str, format_name: str, generation: str,
               default_sizes: Iterable[float]) -> pa.Schema:
    """Return the schema of a table, with units and the source in its metadata."""
    # default_sizes: length, width and height of each class without a box, m.
    import pyarrow as pa
    types = {TEXT: pa.string(), LIST: pa.list_(pa.string()), BOOL: pa.bool_(),
             NAME: pa.dictionary(pa.int32(), pa.string()), INT64: pa.int64(),
             UINT32: pa.uint32(), INT32: pa.int32(), FLOAT64: pa.float64()}
    columns = tuple(columns)
    fields = [pa.field(column.name, types[column.type], metadata={
        'unit': column.unit, 'meaning': column.meaning}) for column in columns]
    return pa.schema(fields, metadata={
        SOURCE: source.encode(errors='backslashreplace').decode(), FORMAT: format_name,
        GENERATION: generation,
        VERSION: f'state_sensor_ros {__version__}',
        DEFAULT_SIZES: json.dumps([*default_sizes]),
        UNITS: json.dumps({column.name: column.unit for column in columns if column.unit})})
