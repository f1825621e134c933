# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The outputs that batches have written into a folder, listed in a file of that folder.

A batch replaces only these without ``--force``, and removes only parts that its own processes
have left. Each line is JSON: a batch that begins, an output that it begins, or a complete one.
"""

from __future__ import annotations

from contextlib import suppress
import json
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

from state_sensor_ros.errors import reason_of, SinkError
from state_sensor_ros.files.whole.part import next_part

NAME = '.state_sensor_batch'
# Part of the list that is read, from its end: about 400,000 outputs.
_MAX_BYTES = 2 ** 26


def newest_ns(path: Path) -> int:
    """
    Return the time of the last change of a file, or of any in a folder, ns.

    :raises OSError: if it cannot be read.
    """
    if not path.is_dir():
        return path.stat().st_mtime_ns
    return max((file.stat().st_mtime_ns for file in path.rglob('*') if file.is_file()), default=0)


def n_bytes_of(path: Path) -> int:
    """Return the size of a file, or of all in a folder, bytes; 0 if it is unknown."""
    with suppress(OSError):
        if not path.is_dir():
            return path.stat().st_size
        return sum(file.stat().st_size for file in path.rglob('*') if file.is_file())
    return 0


def is_newer(output: str, source: str) -> bool:
    """Return whether an output is there, and newer than its source."""
    with suppress(OSError):
        return newest_ns(Path(output)) >= newest_ns(Path(source))
    return False


class BatchOutputs:
    """
    The list of the outputs in a folder.

    :param folder: folder of the outputs; created at the first line.
    :ivar path: path of the list.
    :ivar token: line of this batch in the list, without the line break.
    :raises SinkError: if the list cannot be read.
    """

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, NAME)
        self.token = json.dumps({'batch': uuid4().hex})
        self._folder = folder
        self._begun: dict[str, str] = {}
        self._complete: dict[str, list[int]] = {}
        try:
            with suppress(FileNotFoundError, NotADirectoryError), \
                    open(self.path, 'rb') as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _MAX_BYTES))
                for line in file.read(_MAX_BYTES).decode(errors='replace').splitlines():
                    self._add(line)
        except OSError as error:
            raise self._error(error) from error

    def _add(self, line: str) -> None:
        """Add a line of the list; ignore a line that is not one of a batch."""
        entry: Any = None
        with suppress(ValueError, RecursionError):
            entry = json.loads(line)
        match entry:
            case {'complete': str(output), 'bytes': int(n_bytes), 'changed_ns': int(changed_ns)}:
                self._begun.pop(output, None)
                self._complete[output] = [n_bytes, changed_ns]
            case {'begun': str(output), 'part': str(part)}:
                self._begun[output] = part

    def is_ours(self, output: str) -> bool:
        """Return whether a batch has written an output, and nothing else has changed it."""
        return self._complete.get(self._name(output)) == _state_of(output)

    def begin(self, outputs: list[str]) -> dict[str, str]:
        """
        Note the outputs that are begun.

        :param outputs: their paths.
        :returns: for each output, the path of the part that a killed process of a batch has left
            or would leave.
        :raises SinkError: if the list cannot be written.
        """
        lines, parts = [self.token], {}
        for output in outputs:
            name = self._name(output)
            part = self._begun.get(name)
            if part is None or os.sep in part:
                part = next_part(Path(output)).name
            lines.append(json.dumps({'begun': name, 'part': part}))
            parts[output] = os.path.join(os.path.dirname(output), part)
        self._write(lines)
        return parts

    def complete(self, output: str) -> None:
        """
        Note that an output is complete.

        :raises SinkError: if the list cannot be written.
        """
        n_bytes, changed_ns = _state_of(output) or (0, 0)
        self._write([json.dumps({'complete': self._name(output), 'bytes': n_bytes,
                                 'changed_ns': changed_ns})])

    def _name(self, output: str) -> str:
        return os.path.relpath(output, self._folder)

    def _write(self, lines: list[str]) -> None:
        """Append lines in one step: several batches may write into the folder."""
        try:
            os.makedirs(self._folder, exist_ok=True)
            # A line break ends a line that a crash has cut.
            with open(self.path, 'ab', buffering=0) as file:
                data = b'\n' * bool(file.tell()) + ''.join(f'{line}\n' for line in lines).encode()
                # When the disk becomes full, less is written, and the next call fails.
                while data:
                    data = data[file.write(data) or 0:]
        except OSError as error:
            raise self._error(error) from error

    def _error(self, error: OSError) -> SinkError:
        return SinkError(self.path, reason_of(error))


def _state_of(output: str) -> list[int] | None:
    """Return the size and the time of the last change of an output, None if it is not there."""
    with suppress(OSError):
        return [n_bytes_of(Path(output)), newest_ns(Path(output))]
    return None
