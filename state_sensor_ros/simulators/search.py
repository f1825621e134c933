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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
import glob
import os
from pathlib import Path
import re

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.files.bags.bag_form import is_bag, STORAGE_SUFFIXES
from state_sensor_ros.files.recording import TABLE_SUFFIX, TRAJECTORY_SUFFIXES
from state_sensor_ros.simulators.opening import simulators

# Longest first: NAME.json.gz has the name NAME.
_SUFFIXES = sorted((*TRAJECTORY_SUFFIXES, *STORAGE_SUFFIXES, TABLE_SUFFIX), key=len, reverse=True)
_MAGIC = re.compile(r'[*?\[]')


@dataclass(frozen=True, slots=True)
class FoundRecording:
    """
    A recording, and its place below what was searched, without the suffix of its form.

    ``path`` of the file or folder; ``place`` relative, such as ``day1/drive``.
    """

    path: str
    place: str


def find_recordings(inputs: Iterable[str]) -> list[FoundRecording]:
    """
    Search for recordings.

    :param inputs: files, which are taken as they are; folders, of which every trajectory, bag and
        dataset is taken, but no hidden file; and globs, in which ``**`` is any number of folders.
    :returns: in the order of the inputs, then of the names.
    :raises ConfigError: where an input is not there, has no recording, or two have one place.
    """
    found: dict[str, FoundRecording] = {}
    for text in inputs:
        before = len(found)
        for recording in _found(text):
            other = found.setdefault(recording.place, recording)
            if os.path.realpath(other.path) != os.path.realpath(recording.path):
                raise ConfigError('IN', f'{other.path} and {recording.path}',
                                  f'one recording with the place {recording.place}')
        if len(found) == before and not any(True for _ in _found(text)):
            raise ConfigError('IN', f'no recording in {text}', 'at least one')
    return list(found.values())


def _found(text: str) -> Iterator[FoundRecording]:
    path = Path(text)
    if _MAGIC.search(text) and not path.exists():
        yield from _in_glob(text)
    elif path.is_dir() and not _is_recording(path):
        yield from _in_folder(path, path)
    elif path.exists():
        yield FoundRecording(text, _place(path, path.parent))
    else:
        raise ConfigError('IN', f'no file {text}', 'a recording, a folder or a glob')


def _in_glob(text: str) -> Iterator[FoundRecording]:
    """Yield what a glob matches; places begin behind the folders without wildcards."""
    parts = Path(text).parts
    n_plain = next(i for i, part in enumerate(parts) if _MAGIC.search(part))
    base = Path(*parts[:n_plain]) if n_plain else Path()
    for match in sorted(glob.glob(text, recursive=True)):
        path = Path(match)
        if path.is_dir() and not _is_recording(path):
            yield from _in_folder(path, base)
        elif path.is_dir() or path.name.endswith(tuple(_SUFFIXES)):
            yield FoundRecording(match, _place(path, base))


def _in_folder(folder: Path, base: Path) -> Iterator[FoundRecording]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith('.'):
            continue
        if path.is_dir():
            if _is_recording(path):
                yield FoundRecording(str(path), _place(path, base))
            else:
                yield from _in_folder(path, base)
        elif path.name.endswith((*TRAJECTORY_SUFFIXES, *STORAGE_SUFFIXES)):
            yield FoundRecording(str(path), _place(path, base))


def _is_recording(folder: Path) -> bool:
    return is_bag(folder) or any(each.holds(folder) for each in simulators().values())


def _place(path: Path, base: Path) -> str:
    place = path.relative_to(base).as_posix()
    return next((place.removesuffix(suffix) for suffix in _SUFFIXES if place.endswith(suffix)
                 and not path.is_dir()), place)
