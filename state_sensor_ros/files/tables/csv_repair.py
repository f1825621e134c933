# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The whole frames of a table in CSV whose end is missing."""

from __future__ import annotations

from collections.abc import Iterator
import csv
from typing import BinaryIO

from state_sensor_ros.errors import TrajectoryFormatError

_FRAME = 'frame'


def copy_whole(cut: BinaryIO, target: BinaryIO, name: str) -> tuple[int, str]:
    """Copy the rows of the whole frames: of all but the last, whose rows may not all be there."""
    # Returns number of the frames, of the rows for a table without their column; description of
    # the loss, empty for none.
    rows = _rows(cut)
    head = next(rows, b'')
    names = _fields(head)
    place = names.index(_FRAME) if _FRAME in names else None
    target.write(head)
    n_frames, waiting, last = 0, bytearray(), ''
    is_cut = False
    for row in rows:
        is_cut = not row.endswith(b'\n')
        fields = [] if is_cut else _fields(row)
        if len(fields) != len(names):
            break
        frame = str(n_frames) if place is None else fields[place]
        if waiting and frame != last:
            target.write(waiting)
            waiting.clear()
            n_frames += 1
        last = frame
        waiting += row
    if place is None and waiting:
        target.write(waiting)
        n_frames += 1
    if not n_frames:
        raise TrajectoryFormatError(name, 'no whole frame', 'at least one')
    if place is None:
        return n_frames, 'a row that is not complete' if is_cut else ''
    return n_frames, f'frame {last}, which may lack rows'


def _rows(file: BinaryIO) -> Iterator[bytes]:
    """Yield rows; a text in quotation marks may contain line breaks."""
    row = b''
    for line in file:
        row += line
        if row.count(b'"') % 2 == 0:
            yield row
            row = b''
    if row:
        yield row.rstrip(b'\n')


def _fields(row: bytes) -> list[str]:
    return next(csv.reader([row.decode(errors='replace')]), [])
