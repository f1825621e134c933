# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A recording or a stream as a table in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
import math
import os
from typing import TYPE_CHECKING

from state_sensor_ros.errors import ConfigError, importing, MissingFileError, reason_of
from state_sensor_ros.files import PARQUET
from state_sensor_ros.files.tables.table import selected, TableBuilder
from state_sensor_ros.files.tables.table_recording import parquet_error
from state_sensor_ros.frame import Frame
from state_sensor_ros.library.frame_recording import open_recording
from state_sensor_ros.library.frame_stream import Stream
from state_sensor_ros.settings import DEFAULTS, NO_PARAMETERS

if TYPE_CHECKING:
    import pyarrow as pa


def read_table(source: str | os.PathLike[str] | Stream | Frame, *,
               columns: Iterable[str] | None = None,
               n_frames: int | None = None, seconds: float | None = None, topic: str = '',
               obb_extents: str = DEFAULTS.obb_extents,
               road_s_unit: str = DEFAULTS.road_s_unit,
               parameters: Mapping[str, object] = NO_PARAMETERS) -> pa.Table:
    """
    Read a recording, a live stream or a frame as a table: a row for each actor of each frame.

    The columns are those of `state_sensor convert IN OUT.parquet`; their units are in the metadata
    of the schema. Needs pyarrow: ``pip install 'state_sensor_ros[tables]'``.

    >>> import state_sensor_ros as sensor
    >>> table = sensor.read_table('drive.json', columns=['game_time', 'name', 'speed'])
    >>> table.column_names
    ['game_time', 'name', 'speed']
    >>> table.schema.field('speed').metadata[b'unit']
    b'm/s'
    >>> with sensor.open_stream('127.0.0.1', port) as stream:
    ...     len(sensor.read_table(stream, n_frames=2).to_pylist())
    42

    :param source: path of a recording of any format, or of a table in a Parquet file; or a stream;
        or a frame, whose accelerations are NaN unless the source has them.
    :param columns: names, in any order, or a single one; None for all.
    :param n_frames: number of frames after which it ends; None for all. Of a stream, this or
        ``seconds`` is needed, unless its connection ends.
    :param seconds: game time after the first frame at which to end, s; None for all.
    :param topic: see :func:`open_recording`, also for the others.
    :returns: a table in memory, in the order of the frames: ``.to_pandas()``,
        ``polars.from_arrow(table)``.
    :raises MissingFileError: if there is no such recording.
    :raises TrajectoryFormatError: if the recording cannot be read.
    :raises TransportError: if no connection can be made.
    :raises ConfigError: if there is no such column, or a limit is out of its range.
    :raises MissingLibraryError: if pyarrow is not installed.
    """
    with importing('read_table'):
        import pyarrow as pa
        from pyarrow import parquet
    if n_frames is not None and n_frames < 1:
        raise ConfigError('n_frames', str(n_frames), 'at least 1')
    if seconds is not None and not seconds >= 0.0:
        raise ConfigError('seconds', str(seconds), 'a time of 0 or more')
    if isinstance(source, Frame):
        return table_of([source], columns)
    if isinstance(source, Stream):
        return table_of(_first(source, n_frames, seconds), columns, source=source.name,
                        format_name='stream')
    names = None if columns is None else [column.name for column in selected(columns)]
    if os.fspath(source).endswith(PARQUET.suffixes) and n_frames is None and seconds is None:
        try:
            # pyarrow refuses a name that is not UTF-8.
            with open(source, 'rb') as file:
                return parquet.read_table(file, columns=names, page_checksum_verification=True)
        except FileNotFoundError as error:
            raise MissingFileError(os.fspath(source), reason_of(error)) from error
        except (pa.ArrowException, OSError) as error:
            raise parquet_error(os.fspath(source), error) from error
    with open_recording(source, topic=topic, obb_extents=obb_extents,
                        road_s_unit=road_s_unit, parameters=parameters) as recording:
        return table_of(_first(recording, n_frames, seconds), names, source=recording.name,
                        format_name=recording.format_name)


def table_of(frames: Iterable[Frame], columns: Iterable[str] | None = None, *, source: str = '',
             format_name: str = 'frames') -> pa.Table:
    with importing('read_table'):
        import pyarrow as pa
    builder = TableBuilder(columns, source=source, format_name=format_name)
    batches = [batch for frame in frames for batch in builder.add(frame)]
    batches += builder.finish()
    return pa.Table.from_batches(batches, schema=builder.schema).unify_dictionaries()


def _first(frames: Iterable[Frame], n_frames: int | None, seconds: float | None,
           ) -> Iterator[Frame]:
    """Yield frames up to one of the limits, each of which is None for no limit."""
    begin_s = math.nan
    for k, frame in enumerate(frames):
        if math.isnan(begin_s):
            begin_s = frame.game_time
        if seconds is not None and frame.game_time > begin_s + seconds:
            return
        yield frame
        if n_frames is not None and k + 1 >= n_frames:
            return
