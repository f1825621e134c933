# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Records of MCAP, as far as a reader of messages needs them.

May know: the layout of MCAP, version 0. Must not know: files, compression, what is in a message.
Source of truth: https://mcap.dev/spec.
"""

from __future__ import annotations

from dataclasses import dataclass
import struct

MAGIC = b'\x89MCAP0\r\n'
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06
MESSAGE_INDEX, STATISTICS, DATA_END = 0x07, 0x0B, 0x0F
# Of each record: opcode, and the length of what follows.
HEAD = struct.Struct('<BQ')
# Of a message with its head: channel, sequence, log time and publish time, ns.
MESSAGE_HEAD = struct.Struct('<BQHIQQ')
LEAST_MESSAGE_BYTES = MESSAGE_HEAD.size - HEAD.size
# Of an index of messages, each a time and an offset; less stands before the first of them.
INDEX_ENTRY_BYTES = 16

_U16, _U32, _U64 = struct.Struct('<H'), struct.Struct('<I'), struct.Struct('<Q')
_CHUNK_HEAD = struct.Struct('<QQQI')
_COUNTS = struct.Struct('<QHIIIIQQ')
_COUNT = struct.Struct('<HQ')
_FOOTER = struct.Struct('<QQI')
# A name of a compression is short; what stands before the data of a chunk is no longer than this.
CHUNK_HEAD_BYTES = 64
# Of a footer with its head: how long it is, and how much of that its CRC covers.
FOOTER_BYTES, FOOTER_CRC_AT = HEAD.size + 20, HEAD.size + 16


@dataclass(frozen=True, slots=True)
class Head:
    """Where a record begins, what it is, how many bytes its content has."""

    opcode: int
    offset: int
    length: int

    @property
    def end(self) -> int:
        """Offset behind it."""
        return self.offset + HEAD.size + self.length


@dataclass(frozen=True, slots=True)
class Schema:
    """Definition of a type."""

    id: int
    name: str
    encoding: str
    definition: str


@dataclass(frozen=True, slots=True)
class Channel:
    """A topic; ``metadata`` has what rosbag2 knows besides: QoS and the hash of the type."""

    id: int
    schema: int
    topic: str
    encoding: str
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True)
class ChunkHead:
    """
    What stands before the records of a chunk.

    ``first_ns`` and ``last_ns`` log times in it; ``size`` and ``crc`` of its records when
    decompressed, 0 for no CRC; ``begin`` and ``length`` of its data, counted in its content.
    """

    first_ns: int
    last_ns: int
    size: int
    crc: int
    compression: str
    begin: int
    length: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """How many messages, schemas and channels there are, and messages by channel."""

    n_messages: int
    n_schemas: int
    n_channels: int
    counts: dict[int, int]


class _Fields:
    """Take the fields of a record one after the other; ValueError where one is not there."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = data
        self.at = 0

    def take(self, form: struct.Struct) -> tuple[int, ...]:
        """Return numbers."""
        if self.at + form.size > len(self._data):
            raise ValueError('a field is cut')
        numbers = form.unpack_from(self._data, self.at)
        self.at += form.size
        return numbers

    def block(self) -> bytes:
        """Return bytes that stand behind their number."""
        [length] = self.take(_U32)
        if self.at + length > len(self._data):
            raise ValueError('a field is cut')
        self.at += length
        return bytes(self._data[self.at - length:self.at])

    def text(self) -> str:
        """Return text that stands behind the number of its bytes."""
        return self.block().decode()

    def texts(self) -> dict[str, str]:
        """Return pairs of texts."""
        [length] = self.take(_U32)
        end, found = self.at + length, {}
        while self.at < end:
            key = self.text()
            found[key] = self.text()
        return found


def profile_of(content: bytes) -> str:
    """Return the profile that a header names."""
    return _Fields(content).text()


def parse_schema(content: bytes | memoryview) -> Schema:
    """
    Parse a schema.

    :raises ValueError: where it is none, as all functions here do.
    """
    fields = _Fields(content)
    [number] = fields.take(_U16)
    return Schema(number, fields.text(), fields.text(), fields.text())


def parse_channel(content: bytes | memoryview) -> Channel:
    """Parse a channel."""
    fields = _Fields(content)
    [number], [schema] = fields.take(_U16), fields.take(_U16)
    return Channel(number, schema, fields.text(), fields.text(), fields.texts())


def parse_chunk_head(content: bytes | memoryview) -> ChunkHead:
    """
    Parse what stands before the records of a chunk.

    :param content: its first CHUNK_HEAD_BYTES, or less where it is shorter.
    """
    fields = _Fields(content)
    first_ns, last_ns, size, crc = fields.take(_CHUNK_HEAD)
    compression = fields.text()
    [length] = fields.take(_U64)
    return ChunkHead(first_ns, last_ns, size, crc, compression, fields.at, length)


def parse_statistics(content: bytes | memoryview) -> Statistics:
    """Parse statistics."""
    fields = _Fields(content)
    n_messages, n_schemas, n_channels, *_ = fields.take(_COUNTS)
    counts = fields.block()
    if len(counts) % _COUNT.size:
        raise ValueError('counts are cut')
    return Statistics(n_messages, n_schemas, n_channels, dict(_COUNT.iter_unpack(counts)))


def parse_footer(content: bytes | memoryview) -> tuple[int, int]:
    """Return where the summary begins, 0 for nowhere, and the CRC of summary and footer."""
    summary, _, crc = _Fields(content).take(_FOOTER)
    return summary, crc


def parse_crc(content: bytes | memoryview) -> int:
    """Return the CRC that a record begins with."""
    [crc] = _Fields(content).take(_U32)
    return crc
