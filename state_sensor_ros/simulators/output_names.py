# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The format of an output by its name: doc/interface.md#names-of-recordings."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
import re
import stat

from state_sensor_ros.errors import UsageError
from state_sensor_ros.files.formats import BAG, CONVERT, Format
from state_sensor_ros.files.recording import STANDARD_INPUT
from state_sensor_ros.simulators.opening import (
    format_of_name,
    formats,
    rosbags_convert,
    trajectory_format,
)

_COMPRESSED = ('.gz', '.zst')
_SUFFIX = re.compile(r'\.[^.0-9][^.]*$')


def output_format(path: str, *, command: str = CONVERT, to: str = '', storage: str = '') -> Format:
    """Return the format of a new output."""
    # path: of the output, ``-`` for a trajectory on standard output.
    # to: name of the format where the name of the output does not decide, ``''`` for none.
    named = _by_name(path, command, is_bag=bool(storage))
    if to:
        wanted = next(each for each in formats() if each.name == to)
        if storage and wanted.storage and wanted.storage != storage:
            raise UsageError(f'--storage {storage}: --to {to} writes a bag of {wanted.storage}')
        if wanted.storage and named is None and path != STANDARD_INPUT:
            wanted = replace(BAG, storage=wanted.storage)
        if named is not None and named is not wanted:
            raise UsageError(f'--to {to}: {path} is the name of {named.noun}')
        named = wanted
    if named is None:
        named = BAG
    elif storage and named.suffixes and named.storage and named.storage != storage:
        raise UsageError(f'--storage {storage}: {path} is the name of a file of {named.storage}')
    return named


def _by_name(path: str, command: str, *, is_bag: bool = False) -> Format | None:
    """Return the format that a name decides, None for a folder."""
    if command == CONVERT and (path == STANDARD_INPUT or _is_special(path)):
        return trajectory_format()
    if path.endswith('/'):
        return None
    found = format_of_name(path)
    if found is not None:
        if not _is_made(found):
            raise UsageError(f'OUT {path}: {found.noun} can be read, but not written')
        if found.command != command:
            raise UsageError(f'OUT {path}: `state_sensor {found.command}` makes {found.noun}')
        return found
    suffix = suffix_of(path)
    # The folder of a bag may be called run.7.fcd.
    if (is_bag or not suffix) and command == CONVERT:
        return None
    if suffix == '.bag' and command == CONVERT:
        mcap = str(Path(path).with_suffix('.mcap'))
        raise UsageError(f'OUT {path}: a bag of ROS 1 is not written; '
                         f'{rosbags_convert(mcap, path)} makes one of {mcap}')
    known = [suffix for each in formats() if each.command == command and _is_made(each)
             for suffix in each.suffixes]
    if not suffix:
        raise UsageError(f'OUT {path}: no suffix; expected one of {", ".join(known)}')
    near = get_close_matches(suffix.lower(), known, 1, 0.5)
    raise UsageError(f'OUT {path}: {suffix} is not the suffix of a format; ' + (
        f'the nearest is {near[0]}' if near else f'expected one of {", ".join(known)}'))


def _is_made(format_: Format) -> bool:
    return format_.is_written or format_.command != CONVERT


def suffix_of(path: str) -> str:
    """
    Return the suffix of a name, with that of its compression, ``''`` for none.

    >>> suffix_of('run.7'), suffix_of('drive.jsn.gz'), suffix_of('.hidden')
    ('', '.jsn.gz', '')
    """
    name = Path(path).name.lstrip('.')
    end = next((each for each in _COMPRESSED if name.endswith(each)), '')
    found = _SUFFIX.search(name.removesuffix(end))
    return f'{found[0]}{end}' if found else end


def _is_special(path: str) -> bool:
    """Return whether a path is that of a pipe or a device, which takes a trajectory."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
