# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Rows in anonymous temporary files, so that memory does not grow with the length of a bag."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import gettempdir, TemporaryFile
from typing import Any, IO

import numpy as np
import numpy.typing as npt

from state_sensor_ros.errors import reason_of, SinkError
from state_sensor_ros.files.storage.input_file import pread

# So many bytes of rows are in memory until they are written.
_KEPT_BYTES = 1 << 16


class SpooledRows:
    """
    Rows that are added at the end and read anywhere; all but the last ones are in a file.

    The file has no name: the system removes it with the process, however that ends.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self._last = bytearray()
        self._file: IO[bytes] | None = None
        self._n_written = 0

    def __len__(self) -> int:
        return (self._n_written + len(self._last)) // self.dtype.itemsize

    def __reduce__(self) -> tuple[Callable[..., SpooledRows], tuple[npt.NDArray[Any]]]:
        return _spooled, (self.read_all(),)

    def add(self, rows: npt.ArrayLike) -> None:
        """Add rows; ``rows``: (K,) array."""
        self._last += np.ascontiguousarray(rows, self.dtype).tobytes()
        if len(self._last) >= _KEPT_BYTES:
            with _temporary_errors():
                self._write()

    def _write(self) -> None:
        if self._file is None:
            # Without a buffer: one would be written again when the file is closed after an error.
            self._file = TemporaryFile(buffering=0)  # noqa: SIM115
        data = memoryview(self._last)
        while data:
            n_written = self._file.write(data)
            self._n_written += n_written
            data = data[n_written:]
        self._last = bytearray()

    def read(self, first: int, end: int) -> npt.NDArray[Any]:
        """Return rows, (K,); ``end``: index after the last row."""
        begin, stop = (row * self.dtype.itemsize for row in (first, end))
        data = bytearray()
        with _temporary_errors():
            while begin + len(data) < min(stop, self._n_written):
                assert self._file is not None
                at = begin + len(data)
                part = pread(self._file.fileno(), min(stop, self._n_written) - at, at)
                if not part:
                    raise OSError('a temporary file has been cut')
                data += part
        if stop > self._n_written:
            data += self._last[max(begin - self._n_written, 0):stop - self._n_written]
        return np.frombuffer(data, self.dtype)

    def read_all(self) -> npt.NDArray[Any]:
        """Return all rows, (N,)."""
        return self.read(0, len(self))


def _spooled(rows: npt.NDArray[Any]) -> SpooledRows:
    spooled = SpooledRows(rows.dtype)
    spooled.add(rows)
    return spooled


@contextmanager
def _temporary_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        try:
            folder = gettempdir()
        except OSError:
            folder = 'temporary folder'
        raise SinkError(f'temporary file in {folder}', f'{reason_of(error)}; the environment '
                        'variable TMPDIR names another folder') from error
