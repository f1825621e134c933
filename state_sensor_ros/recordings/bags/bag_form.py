# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Names of the files of a bag, and recognition by them; this imports no library."""

from pathlib import Path

METADATA = 'metadata.yaml'
STORAGE_OF_SUFFIX = {'.mcap': 'mcap', '.db3': 'sqlite3'}
COMPRESSED_SUFFIX = '.zstd'
STORAGE_SUFFIXES = tuple(STORAGE_OF_SUFFIX)
COMPRESSED_SUFFIXES = tuple(f'{suffix}{COMPRESSED_SUFFIX}' for suffix in STORAGE_SUFFIXES)


def is_bag(path: Path) -> bool:
    """Return whether ``path`` is a bag's folder or a single storage file of one."""
    return (path / METADATA).is_file() or (path.suffix in STORAGE_OF_SUFFIX and path.is_file())


def is_compressed_storage(path: Path) -> bool:
    """Return whether ``path`` is a storage file that was compressed as a whole."""
    return path.name.endswith(COMPRESSED_SUFFIXES) and path.is_file()
