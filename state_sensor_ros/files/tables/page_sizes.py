# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The sizes that the pages of a Parquet file declare, checked before the file is decoded.

A page of a few kilobytes can declare any size and number of values. The metadata and the page
headers are those of Apache Parquet's parquet.thrift, in Thrift's compact protocol.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.files.storage.storage_file import BagLimits, too_large

Fields = dict[int, Any]

# Numbers of fields in FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_ROW_GROUPS, _CHUNKS, _METADATA = 4, 1, 3
_TYPE, _PATH, _N_CHUNK_VALUES, _DATA_OFFSET, _DICTIONARY_OFFSET = 1, 3, 5, 9, 11
_BYTE_ARRAY = 6
# The length of the metadata, and the magic at the end.
_END_BYTES = 8
# In PageHeader, DataPageHeader(V2) and DictionaryPageHeader.
_SIZE, _COMPRESSED_SIZE = 2, 3
_DATA, _DATA_V2 = 5, 8
_N_VALUES = 1
_ENCODING = {_DATA: 2, _DATA_V2: 4}
# Each text repeats the beginning of the one before it: a few bytes can expand to any size.
_DELTA_BYTE_ARRAY = 7
_MAX_HEADER_BYTES = 64 * 1024
# Of Thrift's compact protocol.
_STOP, _TRUE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 3, 7, 8, 9, 10, 12
_FLAGS, _INTEGERS = (1, 2), (4, 5, 6)
_MAX_DEPTH, _MAX_SHIFT = 16, 70
_DAMAGED = 'damaged metadata'
# Bytes that a value of a nested column takes: two levels and a number of the dictionary.
_NESTED_BYTES = 8
_PIECES = 4


def check_pages(path: Path, columns: set[str], limits: BagLimits) -> None:
    """
    Check the sizes of the columns that are read, row group by row group.

    :param path: path of the file.
    :param columns: names of the columns, without those of nested ones.
    :param limits: limits on a page; the texts and the nested values of a row group may have four
        times as many bytes.
    :raises TrajectoryFormatError: if one declares more, or has an encoding without a limit.
    :raises ValueError: if the metadata or a page header is damaged.
    :raises OSError: if the file cannot be read.
    """
    with path.open('rb') as file:
        # pyarrow aborts the process when it reads damaged metadata of a column.
        for group in _list(_footer(file), _ROW_GROUPS):
            for chunk in _list(group, _CHUNKS):
                column = chunk.get(_METADATA) if isinstance(chunk, dict) else None
                name, *nested = _list(column, _PATH)
                if isinstance(name, bytes) and name.decode(errors='replace') in columns:
                    _check_column(file, column, f'{path}: column {name.decode()}', limits,
                                  is_nested=bool(nested))


def _footer(file: BinaryIO) -> Fields:
    """Return the metadata at the end of a file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END_BYTES))
    n_bytes = int.from_bytes(file.read(_END_BYTES)[:4], 'little')
    file.seek(max(0, size - _END_BYTES - n_bytes))
    return _Struct(file.read(n_bytes)).read()[0]


def _check_column(file: BinaryIO, column: object, where: str, limits: BagLimits, *,
                  is_nested: bool) -> None:
    """Check the pages of a column of a row group that are read."""
    begin, dictionary = _number(column, _DATA_OFFSET), _number(column, _DICTIONARY_OFFSET, 0)
    if dictionary:
        begin = min(begin, dictionary)
    is_text = _number(column, _TYPE) == _BYTE_ARRAY
    n_left, n_text_bytes, n_nested = _number(column, _N_CHUNK_VALUES), 0, 0
    while n_left > 0:
        file.seek(begin)
        header, n_bytes = _Struct(file.read(_MAX_HEADER_BYTES)).read()
        size, n_stored = _number(header, _SIZE), _number(header, _COMPRESSED_SIZE)
        if size > limits.n_bytes:
            raise too_large(where, 'a page', limits.n_bytes)
        n_text_bytes += is_text * size
        for kind in (_DATA, _DATA_V2):
            if kind in header:
                n_values = _number(header[kind], _N_VALUES)
                n_left -= n_values
                n_nested += is_nested * n_values
                if is_text and _number(header[kind], _ENCODING[kind]) == _DELTA_BYTE_ARRAY:
                    raise TrajectoryFormatError(where, 'the encoding DELTA_BYTE_ARRAY',
                                                'another one, such as PLAIN')
        if max(n_text_bytes, n_nested * _NESTED_BYTES) > _PIECES * limits.n_bytes:
            raise too_large(where, 'values of a row group', _PIECES * limits.n_bytes)
        begin += n_bytes + n_stored


def _number(fields: object, number: int, default: int = -1) -> int:
    """Return an integer of a struct that has it and is not negative; raise ValueError."""
    value = fields.get(number, default) if isinstance(fields, dict) else None
    if not isinstance(value, int) or value < 0:
        raise ValueError(_DAMAGED)
    return value


def _list(fields: object, number: int) -> list[Any]:
    """Return a list of a struct that has it and is not empty; raise ValueError."""
    value = fields.get(number) if isinstance(fields, dict) else None
    if not isinstance(value, list):
        raise ValueError(_DAMAGED)
    return value


class _Struct:
    """
    A struct in Thrift's compact protocol.

    :param data: struct, and the data after it.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def read(self) -> tuple[Fields, int]:
        """Return the values by the numbers of their fields, and the size in bytes."""
        try:
            return self._fields(0), self._at
        except IndexError as error:
            raise ValueError(_DAMAGED) from error

    def _fields(self, depth: int) -> Fields:
        fields: Fields = {}
        number = 0
        while (head := self._byte()) & 15 != _STOP:
            number = number + (head >> 4) if head >> 4 else self._integer()
            # The type of a flag is its value.
            fields[number] = head & 15 == _TRUE if head & 15 in _FLAGS \
                else self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> int | bytes | list[Any] | Fields:
        if depth > _MAX_DEPTH:
            raise ValueError(_DAMAGED)
        if kind in _INTEGERS:
            return self._integer()
        if kind == _STRUCT:
            return self._fields(depth + 1)
        if kind == _BYTE or kind in _FLAGS:
            return self._byte()
        if kind in (_DOUBLE, _BINARY):
            n_bytes = 8 if kind == _DOUBLE else self._unsigned()
            self._at += n_bytes
            return self._data[self._at - n_bytes:self._at]
        if kind in (_LIST, _SET):
            head = self._byte()
            n_values = head >> 4 if head >> 4 < 15 else self._unsigned()
            # Each value has at least a byte: the end of the data limits any declared length.
            return [self._value(head & 15, depth + 1) for _ in range(n_values)]
        raise ValueError(_DAMAGED)

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while shift < _MAX_SHIFT:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if not byte & 128:
                return value
        raise ValueError(_DAMAGED)

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
