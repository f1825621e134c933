# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
How much memory and disk a bag may take, and decompression that stops there.

May know: zstd, lz4. Must not know: files of a bag, messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
import sys
from typing import Protocol

from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]

from state_sensor_ros.errors import TrajectoryFormatError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_REPAIRABLE = 'a whole bag; `state_sensor repair` recovers what is left of it'
# Compressed data is passed on in pieces, so that what was decoded before a fault is not lost.
_PIECE_BYTES = 64 * 1024
_FRAME_HEADER_BYTES = 18


@dataclass(frozen=True, slots=True)
class BagLimits:
    """
    Sizes above which a bag is refused, bytes.

    ``n_bytes`` of a message and of a chunk, also decompressed, and of all definitions together.
    """

    # As ``max_frame_bytes``: what no packet may exceed cannot have been recorded.
    n_bytes: int = 64 * 1024 * 1024

    @property
    def n_file_bytes(self) -> int:
        """Of a storage file that is compressed as a whole, decompressed."""
        return 16 * self.n_bytes

    @property
    def n_metadata_bytes(self) -> int:
        """Of metadata.yaml, whose values take several times as much memory."""
        return self.n_bytes // 8


DEFAULT_LIMITS = BagLimits()


class BagError(TrajectoryFormatError):
    """
    A bag is damaged or too large; ``where`` is the place in a file of it.

    ``fault`` says in a few words what is wrong there.
    """

    def __init__(self, where: str, found: str, expected: str, fault: str = '') -> None:
        super().__init__(where, found, expected)
        self.fault = fault or found


def damaged(where: str, fault: str) -> BagError:
    """Make the error for what breaks a rule of a bag's format."""
    return BagError(where, f'a damaged bag ({fault})', _REPAIRABLE, fault)


def too_large(where: str, what: str, limit: int) -> BagError:
    """Make the error for something that has more than ``limit`` bytes."""
    found = f'{what} of more than {limit} bytes'
    return BagError(where, found, 'no more than that (--max-bag-bytes; in the node '
                    'max_frame_bytes)', f'{found}, see --max-bag-bytes')


class _Decompressor(Protocol):
    """What zstd and lz4 have in common."""

    eof: bool
    needs_input: bool
    unused_data: bytes

    def decompress(self, data: memoryview, max_length: int) -> bytes:
        """Return at most ``max_length`` bytes."""


_DECOMPRESSORS: dict[str, Callable[[], _Decompressor]] = {
    'zstd': zstd.ZstdDecompressor, 'lz4': LZ4FrameDecompressor}
# RuntimeError comes from lz4.
_FAULTS = (zstd.ZstdError, RuntimeError, EOFError)


def decompress(data: bytes | memoryview, compression: str, limit: int) -> tuple[bytes, str]:
    """
    Decompress data as far as it can be decoded.

    :param compression: ``zstd`` or ``lz4``.
    :param limit: most bytes to return; one more is returned where there are more.
    :returns: the decompressed bytes; what is wrong behind them, ``''`` for nothing.
    """
    view = memoryview(data)
    pieces = (view[at:at + _PIECE_BYTES] for at in range(0, len(view), _PIECE_BYTES))
    parts = _Parts(pieces, compression, limit)
    return b''.join(parts), parts.fault


def decompress_file(source: Path, target: Path, limit: int) -> str:
    """
    Decompress a file that is compressed by zstd as a whole, as far as it can be decoded.

    :param limit: most bytes to write.
    :returns: what is wrong behind what was written, ``''`` for nothing.
    :raises BagError: where it has more bytes than ``limit``.
    :raises OSError: where a file cannot be read or written.
    """
    if _declared_size(source) > limit:
        raise too_large(str(source), 'a compressed file', limit)
    n_bytes = 0
    with source.open('rb') as compressed, target.open('wb') as file:
        parts = _Parts(iter(lambda: memoryview(compressed.read(_PIECE_BYTES)), b''), 'zstd', limit)
        for part in parts:
            n_bytes += len(part)
            if n_bytes > limit:
                raise too_large(str(source), 'a compressed file', limit)
            file.write(part)
    return parts.fault


class _Parts:
    """
    Decompressed data, part by part.

    :param pieces: of the compressed data.
    :param limit: ends behind the first part that exceeds it, by one byte.
    :ivar fault: what is wrong behind the last part.
    """

    def __init__(self, pieces: Iterator[memoryview], compression: str, limit: int) -> None:
        self.fault = ''
        self._pieces, self._compression, self._limit = pieces, compression, limit

    def __iter__(self) -> Iterator[bytes]:
        n_bytes = 0
        piece = next(self._pieces, None)
        # One frame may follow another.
        while piece and n_bytes <= self._limit:
            decompressor = _DECOMPRESSORS[self._compression]()
            while not decompressor.eof and n_bytes <= self._limit:
                try:
                    part = decompressor.decompress(piece, self._limit + 1 - n_bytes)
                except _FAULTS as error:
                    self.fault = f'no {self._compression} ({" ".join(str(error).split())})'
                    return
                yield part
                n_bytes += len(part)
                if decompressor.eof:
                    piece = memoryview(decompressor.unused_data or b'') or next(
                        self._pieces, None)
                elif decompressor.needs_input:
                    piece = next(self._pieces, None)
                    if piece is None:
                        self.fault = f'a stream of {self._compression} that is cut'
                        return
                else:
                    piece = memoryview(b'')


def _declared_size(source: Path) -> int:
    """Return the size that the first frame of zstd is said to have, 0 where that is not said."""
    with source.open('rb') as file:
        begin = file.read(_FRAME_HEADER_BYTES)
    try:
        return zstd.get_frame_info(begin).decompressed_size or 0
    except zstd.ZstdError:
        return 0
