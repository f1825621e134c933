# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Files and folders that are bags, without loading what reads them."""

from pathlib import Path

_METADATA = 'metadata.yaml'
_STORAGE_SUFFIXES = ('.mcap', '.db3')
_COMPRESSED_SUFFIXES = tuple(f'{suffix}.zstd' for suffix in _STORAGE_SUFFIXES)


def is_bag(path: Path) -> bool:
    """Return whether ``path`` is a bag's folder or a single storage file of one."""
    return (path / _METADATA).is_file() or (path.suffix in _STORAGE_SUFFIXES and path.is_file())


def is_compressed_storage(path: Path) -> bool:
    """Return whether ``path`` is a storage file that was compressed as a whole."""
    return path.name.endswith(_COMPRESSED_SUFFIXES) and path.is_file()
