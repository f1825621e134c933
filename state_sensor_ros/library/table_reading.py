# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A recording as a table in memory."""

from __future__ import annotations

from collections.abc import Iterable
import os
from typing import TYPE_CHECKING

from state_sensor_ros.errors import importing, reason_of, TrajectoryFormatError
from state_sensor_ros.files.formats import PARQUET
from state_sensor_ros.files.tables.table_columns import selected
from state_sensor_ros.files.tables.table_output import TableBuilder
from state_sensor_ros.library.frame_recording import open_recording
from state_sensor_ros.settings import DEFAULTS

if TYPE_CHECKING:
    import pyarrow as pa


def read_table(path: str | os.PathLike[str], *, columns: Iterable[str] | None = None,
               topic: str = '', obb_extents: str = DEFAULTS.obb_extents,
               road_s_unit: str = DEFAULTS.road_s_unit) -> pa.Table:
    """
    Read a recording as a table with one row for each actor of each frame.

    The columns are those of `state_sensor convert IN OUT.parquet`; their units are in the metadata
    of the schema. Needs pyarrow: ``pip install 'state_sensor_ros[tables]'``.

    >>> import state_sensor_ros as sensor
    >>> table = sensor.read_table('drive.json', columns=['game_time', 'name', 'speed'])
    >>> table.column_names
    ['game_time', 'name', 'speed']
    >>> table.schema.field('speed').metadata[b'unit']
    b'm/s'

    :param path: of a recording of any form, or of a table in a Parquet file.
    :param columns: names, in any order; None for all.
    :param topic: as :func:`open_recording` has it, like ``obb_extents`` and ``road_s_unit``.
    :returns: a table in memory, in the order of the frames: ``.to_pandas()``,
        ``polars.from_arrow(table)``.
    :raises TrajectoryFormatError: where the recording cannot be read.
    :raises ConfigError: where there is no such column.
    :raises MissingLibraryError: where pyarrow is not installed.
    """
    with importing('read_table'):
        import pyarrow as pa
        from pyarrow import parquet
    names = None if columns is None else [column.name for column in selected(columns)]
    if os.fspath(path).endswith(PARQUET.suffixes):
        try:
            # A name that is not UTF-8 is none for pyarrow.
            with open(path, 'rb') as file:
                return parquet.read_table(file, columns=names, page_checksum_verification=True)
        except (pa.ArrowException, OSError) as error:
            found = reason_of(error) if isinstance(error, OSError) and error.strerror \
                else ' '.join(str(error).split())
            raise TrajectoryFormatError(
                os.fspath(path), found, 'a Parquet file') from error
    with open_recording(path, topic=topic, obb_extents=obb_extents,
                        road_s_unit=road_s_unit) as recording:
        builder = TableBuilder(names, source=recording.name, form=recording.form)
        batches = [batch for frame in recording for batch in builder.add(frame)]
    batches += builder.finish()
    return pa.Table.from_batches(batches, schema=builder.schema).unify_dictionaries()
