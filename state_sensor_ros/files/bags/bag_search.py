# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The storage files of a bag that was not completed, wherever its recorder left them.

A file is recognised by its first bytes: a recorder that was killed leaves other suffixes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
import os
from pathlib import Path
import re

from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.files.bags.bag_form import COMPRESSED_SUFFIX, METADATA
from state_sensor_ros.files.bags.bag_metadata import BagMetadata, read_metadata
from state_sensor_ros.files.storage.bag_limits import BagError, BagLimits
from state_sensor_ros.files.storage.compressed_form import ZSTD_MAGIC
from state_sensor_ros.files.storage.mcap_records import MAGIC as MCAP_MAGIC

_FORMATS = {MCAP_MAGIC: 'mcap', b'SQLite format 3\0': 'sqlite3', ZSTD_MAGIC: 'zstd'}
# A bag that is being written is a folder in another one.
_MAX_DEPTH = 3


@dataclass(slots=True)
class FoundBag:
    """
    The files of a bag.

    ``files`` storage files in the order of time; ``metadata`` None if it cannot be read;
    ``defects`` and ``losses`` descriptions of faults of the folder.
    """

    files: list[Path]
    metadata: BagMetadata | None = None
    defects: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)


def format_of(path: Path) -> str:
    """
    Return the format of a file by its first bytes.

    :param path: path of a regular file.
    :returns: ``mcap``, ``sqlite3``, ``zstd``, or ``''`` for any other.
    :raises OSError: if it cannot be read.
    """
    with path.open('rb') as file:
        begin = file.read(max(map(len, _FORMATS)))
    return next((name for magic, name in _FORMATS.items() if begin.startswith(magic)), '')


def find_bag(path: Path, limits: BagLimits) -> FoundBag | None:
    """
    Search for the storage files of a bag.

    :param path: a storage file, or a folder with some in it or up to three levels below it.
    :param limits: limits on the size of metadata.yaml.
    :returns: the files; None for a file that is not a storage file.
    :raises TrajectoryFormatError: if a folder has none, or those of several bags.
    :raises OSError: if a file cannot be read.
    """
    if path.is_dir():
        return _in_folder(path, limits)
    return FoundBag([path]) if format_of(path) else None


def _in_folder(path: Path, limits: BagLimits) -> FoundBag:
    folders = {}
    for where, names, files in os.walk(path):
        here = Path(where)
        if len(here.relative_to(path).parts) >= _MAX_DEPTH:
            names.clear()
        storage_files = [here / name for name in files if _is_storage(here / name)]
        if storage_files:
            folders[here] = storage_files
    if len(folders) != 1:
        what = f'storage files of bags in {len(folders)} folders' if folders \
            else 'no storage file of a bag'
        raise TrajectoryFormatError(str(path), what, 'those of one bag')
    [(folder, storage_files)] = folders.items()
    try:
        metadata = read_metadata(folder, limits)
    except (BagError, OSError) as error:
        fault = error.fault if isinstance(error, BagError) else 'not there'
        return FoundBag(_in_order(storage_files), defects=[f'{METADATA} was {fault}'])
    named = [folder / name for name in metadata.files]
    return FoundBag([file for file in named if file in storage_files], metadata, losses=[
        f'all of {file.name}, which is not there' for file in named if file not in storage_files])


def _is_storage(path: Path) -> bool:
    """Return whether a file in a folder is a storage file of a bag."""
    name = format_of(path) if path.is_file() else ''
    return bool(name) and (name != 'zstd' or path.name.endswith(COMPRESSED_SUFFIX))


def _in_order(files: list[Path]) -> list[Path]:
    """Sort files by the numbers in their names; omit compressed copies of files in the list."""
    names = {file.name for file in files}
    return sorted((file for file in files if file.name.removesuffix(COMPRESSED_SUFFIX) == file.name
                   or file.name.removesuffix(COMPRESSED_SUFFIX) not in names),
                  key=lambda file: [int(part) if part.isdecimal() else part for part in
                                    re.split(r'(\d+)', file.name)])
