# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Names of the files of a bag, and recognition of a bag by them; this imports no library."""

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
