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
import os
from tempfile import gettempdir, TemporaryFile
from typing import Any, IO

import numpy as np
import numpy.typing as npt

from state_sensor_ros.errors import reason_of, SinkError

# So many bytes of rows are in memory until they are written.
_KEPT_BYTES = 1 << 16


class SpooledRows:
    """
    Rows that are added at the end and read anywhere; all but the last ones are in a file.

    The file has no name: the system removes it with the process, however that ends.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self._file: IO[bytes] | None = None
        self._n_rows = 0

    def __len__(self) -> int:
        return self._n_rows

    def __reduce__(self) -> tuple[Callable[..., SpooledRows], tuple[npt.NDArray[Any]]]:
        return _spooled, (self.read_all(),)

    def add(self, rows: npt.ArrayLike) -> None:
        """Add rows; ``rows``: (K,) array."""
        data = np.ascontiguousarray(rows, self.dtype).tobytes()
        with _temporary_errors():
            if self._file is None:
                self._file = TemporaryFile(buffering=_KEPT_BYTES)  # noqa: SIM115
            self._file.write(data)
        self._n_rows += len(data) // self.dtype.itemsize

    def read(self, first: int, end: int) -> npt.NDArray[Any]:
        """Return rows, (K,), which cannot be written; ``end``: index after the last row."""
        if self._file is None:
            return np.zeros(0, self.dtype)
        with _temporary_errors():
            self._file.seek(first * self.dtype.itemsize)
            data = self._file.read((end - first) * self.dtype.itemsize)
            # The next rows are added at the end.
            self._file.seek(0, os.SEEK_END)
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
