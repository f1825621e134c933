# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Recognition of compressed data by its first bytes; this imports no library."""

ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'
# Magic numbers of a frame without content, which may precede the others: 0x184d2a50 to 0x184d2a5f.
_SKIPPABLE_BEGIN, _SKIPPABLE_END = 0x50, b'\x2a\x4d\x18'
GZIP_MAGIC = b'\x1f\x8b'


def compression_of(begin: bytes) -> str:
    """
    Return the compression of a file.

    :param begin: its first four bytes.
    :returns: ``gzip``, ``zstd``, or ``''`` for none of them.
    """
    if begin.startswith(ZSTD_MAGIC) or (
            begin[1:4] == _SKIPPABLE_END and begin[0] & 0xf0 == _SKIPPABLE_BEGIN):
        return 'zstd'
    return 'gzip' if begin.startswith(GZIP_MAGIC) else ''
