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
from state_sensor_ros.files.formats import PARQUET
from state_sensor_ros.simulators.opening import folder_format, format_of_name, formats

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
        recordings = _search(text, without)
        for recording in recordings:
            key = (recording.place if has_results else '', os.path.realpath(recording.path))
            other = found.setdefault(key, recording)
            if os.path.islink(other.path) and not os.path.islink(recording.path):
                found[key] = recording
        if not recordings:
            tables = '' if is_glob(text) or not any(Path(text).glob(f'*{_TABLE}')) else (
                f", or tables by name, such as '{os.path.join(text, '*' + _TABLE)}'")
            raise ConfigError('IN', f'no recording that matches {text}' if is_glob(text)
                              else f'no recording in {text}', f'at least one recording{tables}')
    return _apart([*found.values()]) if has_results else [*found.values()]


def _apart(found: list[FoundRecording]) -> list[FoundRecording]:
    """Return recordings, those of the same place with their formats in it: ``drive_json``."""
    counts = Counter(recording.place for recording in found)
    apart = [replace(recording, place=f'{recording.place}_{_ending(recording.path)}')
             if counts[recording.place] > 1 else recording for recording in found]
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
    if os.path.isdir(path):
        kind = folder_format(Path(path))
        return 'folder' if kind is None else kind.name
    return path.removeprefix(_stem(path)).removeprefix('.').replace('.', '_') or 'file'


def _search(text: str, without: str) -> list[FoundRecording]:
    """Return the recordings of an input; raise ConfigError if there is no such file."""
    # without: folder that is not searched, ``''`` for none.
    path = Path(text)
    # Folders that were searched: links may lead to one again.
    entered = {os.path.realpath(without)} if without else set()
    if is_glob(text):
        found = [*_in_glob(path, entered)]
    elif os.path.isdir(path) and not _is_recording(path):
        # The output may be the folder of the input.
        entered.discard(os.path.realpath(path))
        found = [*_in_folder(path, path, entered)]
    elif os.path.lexists(path):
        found = [FoundRecording(text, _place(path, path.parent))]
    else:
        raise ConfigError('IN', f'no such file or directory: {text}',
                          "a recording, a folder of recordings or a pattern such as '*.mcap'")
    return sorted(found, key=lambda recording: Path(recording.path).parts)


def _in_glob(pattern: Path, entered: set[str]) -> Iterator[FoundRecording]:
    """Yield what a glob matches; places begin behind the folders without wildcards."""
    parts = pattern.parts
    n_plain = next(i for i, part in enumerate(parts) if _MAGIC.search(part))
    if '..' in parts[n_plain:]:
        raise ConfigError('IN', f'{pattern}, with .. after a wildcard',
                          'wildcards only after the last ..')
    base = Path(*parts[:n_plain])
    matches: dict[tuple[str, str], Path] = {}
    for path in sorted(map(Path, glob.glob(str(pattern), recursive=True)),
                       key=lambda path: (len(path.parts), path)):
        matches.setdefault((os.path.realpath(path.parent), path.name), path)
    for path in matches.values():
        if os.path.isdir(path) and not _is_recording(path):
            yield from _in_folder(path, base, entered)
        elif os.path.isdir(path) or _is_readable(path):
            yield FoundRecording(str(path), _place(path, base))


def _in_folder(top: Path, base: Path, entered: set[str]) -> Iterator[FoundRecording]:
    # Opening a folder that cannot be read gives the reason.
    unreadable: list[str] = []
    for folder, folders, files in os.walk(
            top, followlinks=True, onerror=lambda error: unreadable.append(error.filename)):
        if (real := os.path.realpath(folder)) in entered:
            folders.clear()
            continue
        entered.add(real)
        inside = [Path(folder, name) for name in folders if not name.startswith('.')]
        recordings = [path for path in inside if _is_recording(path)]
        # Links come last: a recording has the place that it has without them.
        folders[:] = [path.name for path in sorted(
            inside, key=lambda path: (path.is_symlink(), path)) if path not in recordings]
        recordings += [path for path in (Path(folder, name) for name in files)
                       if not path.name.startswith('.') and not path.name.endswith(_TABLE)
                       and _is_readable(path)]
        yield from (FoundRecording(str(path), _place(path, base)) for path in recordings)
    yield from (FoundRecording(name, _place(Path(name), base)) for name in unreadable)


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
    # One that is compressed in a way that cannot be read: opening it says so.
    found = format_of_name(file.name) or format_of_name(
        file.stem if file.suffix in _COMPRESSED else '')
    if found is None or not found.reader:
        return False
    if not found.recognized_by:
        return True
    try:
        # A simulator that crashed leaves an empty file; programs leave empty logs, too.
        if not found.any_name and file.is_file() and not file.stat().st_size:
            return True
        # Opening a pipe would wait for its writer.
        return file.is_file() and found.is_of(file)
    except OSError:
        # Opening it gives the reason.
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
