# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Recordings by files, folders and globs, each with its place in the layout of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
import glob
import os
from pathlib import Path
import re

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.files import folder_format, format_of_name, formats, PARQUET

_MAGIC = re.compile(r'[*?\[]')
# Searched for by name only: a folder of outputs may be that of the inputs.
[_TABLE] = PARQUET.suffixes
_COMPRESSED = '.gz', '.zst', '.xz', '.bz2', '.lz4'


@dataclass(frozen=True, slots=True)
class FoundRecording:
    """A recording, and its place below what was searched, without the suffix of its format."""

    path: str  # of the file or folder
    place: str  # relative, such as ``day1/drive``


def find_recordings(inputs: Iterable[str], without: str = '', *,
                    has_results: bool = True) -> list[FoundRecording]:
    """
    Search for recordings.

    A folder is searched once, however many links lead to it. What a search finds under the name of
    a recording is returned, also if it cannot be opened, such as a link to a missing file.

    :param inputs: files, which are taken as they are; folders, of which every trajectory, bag and
        dataset is taken, but no hidden file; and globs, in which ``**`` is any number of folders.
    :param has_results: whether each needs a place of its own.
    """
    found: dict[tuple[str, str], FoundRecording] = {}
    for text in inputs:
        recordings = [*_in_input(text, without)]
        for recording in recordings:
            key = (recording.place if has_results else '', os.path.realpath(recording.path))
            found.setdefault(key, recording)
        if not recordings:
            raise ConfigError(text, 'no recording',
                              f'at least one recording; tables by name: *{_TABLE}')
    if not has_results:
        return [*found.values()]
    # Those of the same place have their formats in it: ``drive_json``.
    counts = Counter(recording.place for recording in found.values())
    apart = [replace(recording, place=f'{recording.place}_{_ending(recording.path)}')
             if counts[recording.place] > 1 else recording for recording in found.values()]
    first: dict[str, str] = {}
    for recording in apart:
        other = first.setdefault(recording.place, recording.path)
        if other != recording.path:
            raise ConfigError('IN', f'two recordings for the same output {recording.place}: '
                              f'{other} and {recording.path}',
                              'different names, or a command for each')
    return apart


def _ending(path: str) -> str:
    """Return the suffix of a recording as part of a name, of a folder that of its format."""
    if os.path.isdir(path) and (kind := folder_format(Path(path))):
        return kind.name
    return path.removeprefix(_stem(path)).removeprefix('.').replace('.', '_') or 'file'


def _in_input(text: str, without: str) -> Iterator[FoundRecording]:
    """Yield the recordings of an input; raise ConfigError if there is no such file."""
    path, entered = Path(text), {os.path.realpath(without)} if without else set()
    tops, base = [path], path
    if is_glob(text):
        n_plain = next(i for i, part in enumerate(path.parts) if _MAGIC.search(part))
        if '..' in path.parts[n_plain:]:
            raise ConfigError(text, '.. after a wildcard', 'wildcards only after the last ..')
        # Places are relative to the folders before a wildcard.
        base, tops = Path(*path.parts[:n_plain]), sorted({
            Path(found) for found in glob.glob(text, recursive=True)
            if path.name != '**' or os.path.isdir(found)})
    elif not os.path.lexists(path):
        raise ConfigError(text, 'no such file or directory')
    elif not os.path.isdir(path) or _is_recording(path):
        yield FoundRecording(text, _place(path, path.parent))
        return
    else:
        # The output may be the folder of the input.
        entered.discard(os.path.realpath(path))
    found = [top for top in tops if not os.path.isdir(top) and _is_readable(top)]
    for top in filter(os.path.isdir, tops):
        found += _in_folder(top, entered)
    for path in sorted(found, key=lambda path: path.parts):
        yield FoundRecording(str(path), _place(path, base))


def _in_folder(top: Path, entered: set[str]) -> Iterator[Path]:
    """Yield the recordings below a folder; each folder is entered once, at last by a link."""
    unreadable: list[Path] = []
    for where, folders, names in os.walk(
            top, onerror=lambda error: unreadable.append(Path(error.filename)), followlinks=True):
        folder, identity = Path(where), os.path.realpath(where)
        if identity not in entered and not _is_recording(folder):
            folders[:] = sorted((name for name in folders if not name.startswith('.')),
                                key=lambda name: ((folder / name).is_symlink(), name))
            yield from (folder / name for name in names if not name.startswith('.')
                        and not name.endswith(_TABLE) and _is_readable(folder / name))
        else:
            folders.clear()
            if identity not in entered:
                yield folder
        entered.add(identity)
    # Opening one says why it cannot be read.
    yield from unreadable


def is_glob(text: str) -> bool:
    """Return whether an input is a glob: it has wildcards, and no file has this name."""
    return bool(_MAGIC.search(text)) and not os.path.exists(text)


def _is_recording(folder: Path) -> bool:
    """Return whether a folder is a bag or a dataset; one that cannot be read is none."""
    try:
        return folder_format(folder) is not None
    except OSError:
        return False


def _is_readable(file: Path) -> bool:
    """Return whether a file is a recording, or opening it says why it cannot be read."""
    found = format_of_name(file.name) or format_of_name(
        file.stem if file.suffix in _COMPRESSED else '')
    try:
        if found is None or not found.reader:
            return False
        # A simulator that crashed leaves an empty file; programs leave empty logs, too. Opening
        # a pipe would wait for its writer.
        return not found.recognized_by or (file.is_file() and (
            found.is_of(file) or not (found.any_name or file.stat().st_size)))
    except OSError:
        return True


def _place(path: Path, base: Path) -> str:
    # `.` and `..` are no names.
    place = path.relative_to(base).as_posix() if path.name not in ('', '..') \
        else os.path.basename(os.path.realpath(path)) or 'recording'
    return place if path.is_dir() else _stem(place)


def _stem(name: str) -> str:
    # Longest first: NAME.json.gz has the name NAME.
    suffixes = sorted((suffix for each in formats() if each.reader for suffix in each.suffixes),
                      key=len, reverse=True)
    return next((name.removesuffix(suffix) for suffix in suffixes if name.endswith(suffix)), name)
