# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Recognition of compressed data by its first bytes; this imports no library."""

ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'
GZIP_MAGIC = b'\x1f\x8b'


def compression_of(begin: bytes) -> str:
    """
    Return the compression of a file.

    :param begin: its first four bytes.
    :returns: ``gzip``, ``zstd``, or ``''`` for none of them.
    """
    if begin.startswith(ZSTD_MAGIC):
        return 'zstd'
    return 'gzip' if begin.startswith(GZIP_MAGIC) else ''
