# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The storage files of a bag that was not completed, wherever its recorder left them.

May know: folders, what files begin with. Must not know: what is in a storage file. A file is known
by its content: a recorder that was killed leaves names that end otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
import os
from pathlib import Path
import re

from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.recordings.bags.bag_metadata import BagMetadata, METADATA, read_metadata
from state_sensor_ros.recordings.storage.bag_limits import BagError, BagLimits

# What files begin with.
_FORMS = {b'\x89MCAP0\r\n': 'mcap', b'SQLite format 3\0': 'sqlite3', b'\x28\xb5\x2f\xfd': 'zstd'}
_COMPRESSED = '.zstd'
# Folders in folders: that of a bag which is written lies in one of another name.
_MAX_DEPTH = 3


@dataclass(slots=True)
class BagPart:
    """
    What there is of a bag.

    ``files`` in the order of time; ``metadata`` None where there is none that can be read;
    ``defects`` and ``losses`` what is wrong with the folder, in words.
    """

    files: list[Path]
    metadata: BagMetadata | None = None
    defects: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)


def form_of(path: Path) -> str:
    """
    Tell what a file is by its first bytes.

    :returns: ``mcap``, ``sqlite3``, ``zstd`` or ``''``.
    :raises OSError: where it cannot be read.
    """
    with path.open('rb') as file:
        begin = file.read(max(map(len, _FORMS)))
    return next((form for magic, form in _FORMS.items() if begin.startswith(magic)), '')


def find_bag(path: Path, limits: BagLimits) -> BagPart | None:
    """
    Look for the files of a bag.

    :param path: a storage file, or a folder with some in it or in one of its folders.
    :returns: None for a file that is none.
    :raises TrajectoryFormatError: where a folder has none, or those of several bags.
    :raises OSError: where something cannot be read.
    """
    if path.is_dir():
        return _in_folder(path, limits)
    return BagPart([path]) if form_of(path) else None


def _in_folder(path: Path, limits: BagLimits) -> BagPart:
    folders = {}
    for where, names, files in os.walk(path):
        here = Path(where)
        if len(here.relative_to(path).parts) >= _MAX_DEPTH:
            names.clear()
        found = [here / name for name in files if _is_storage(here / name)]
        if found:
            folders[here] = found
    if len(folders) != 1:
        raise TrajectoryFormatError(
            str(path), f'{len(folders)} folders with storage files of bags', 'one such folder')
    [(folder, found)] = folders.items()
    try:
        metadata = read_metadata(folder, limits)
    except (BagError, OSError) as error:
        fault = error.fault if isinstance(error, BagError) else 'not there'
        return BagPart(_in_order(found), defects=[f'{METADATA} was {fault}'])
    named = [folder / name for name in metadata.files]
    return BagPart([file for file in named if file in found], metadata, losses=[
        f'all of {file.name}, which is not there' for file in named if file not in found])


def _is_storage(path: Path) -> bool:
    """Tell whether a file in a folder is a storage file of a bag."""
    form = form_of(path) if path.is_file() else ''
    return bool(form) and (form != 'zstd' or path.name.endswith(_COMPRESSED))


def _in_order(files: list[Path]) -> list[Path]:
    """Sort files by the numbers in their names; leave out what is there uncompressed, too."""
    names = {file.name for file in files}
    return sorted((file for file in files if file.name.removesuffix(_COMPRESSED) == file.name
                   or file.name.removesuffix(_COMPRESSED) not in names),
                  key=lambda file: [int(part) if part.isdecimal() else part for part in
                                    re.split(r'(\d+)', file.name)])
