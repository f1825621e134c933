# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Buffers equal the messages written by hand."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from state_sensor_ros.cdr.definitions import Definitions, Field, SEQUENCE
from state_sensor_ros.cdr.templates import (
    Each,
    Given,
    MessageInstance,
    PatchBuffer,
    Slot,
    Table,
    Template,
)
from state_sensor_ros.errors import EncodeError

DEFINITIONS = Definitions({
    'x/msg/Item': (Field('name', 'string'), Field('x', 'float64'), Field('id', 'int32'),
                   Field('flag', 'bool')),
    'x/msg/Items': (Field('stamp', 'uint32'), Field('items', 'x/msg/Item', SEQUENCE)),
}.get)

STAMP, X = Table('stamp', np.int32, 1), Table('x', np.float64, 1)
ID, FLAG = Table('id', np.int32, 1), Table('f', np.bool_, 1)
ITEM = {'name': Given('name'), 'x': Slot(X, 0), 'id': Slot(ID, 0), 'flag': Slot(FLAG, 0)}
HEAD = Template(DEFINITIONS, 'x/msg/Items', {'stamp': Slot(STAMP, 0)}, is_message=True)
ELEMENT = Template(DEFINITIONS, 'x/msg/Item', ITEM)


def item(name, template=ELEMENT):
    return MessageInstance(template, {'name': name})


def patched(buffer, n_items):
    """Patch the numbers 0, 1, 2… and return what each message is."""
    for table, put, targets in buffer.patches:
        put(targets, np.array([[7]]) if table is STAMP else
            np.arange(n_items)[:, None] % (2 if table is FLAG else 1000))
    return [buffer.data[begin:end].tobytes() for begin, end in zip(*buffer.bounds, strict=True)]


def expected_array(names):
    """Serialize by hand."""
    data = bytearray(struct.pack('<II', 7, len(names)))
    for i, name in enumerate(names):
        raw = name.encode() + b'\0'
        data += bytes(-len(data) % 4) + struct.pack('<I', len(raw)) + raw
        data += bytes(-len(data) % 8) + struct.pack('<di?', i, i, i % 2)
    return b'\0\1\0\0' + data


@pytest.mark.parametrize('names', [[], [''], ['n' * (i % 10) for i in range(70)]])
def test_an_array_equals_the_message_written_by_hand(names):
    buffer = PatchBuffer([MessageInstance(HEAD, {}), *map(item, names)], is_array=True)
    assert patched(buffer, len(names)) == [expected_array(names)]


@pytest.mark.parametrize('lengths', [
    [70], [31] * 20, [31, 21] * 10, [40, 0, 40], [2, *[3] * 30], [0, 1, *[2] * 40]])
@pytest.mark.parametrize('name', ['', 'name'])
def test_sequences_of_rows_in_each_message(lengths, name):
    xyz = Table('xyz', np.float64, 3)
    definitions = Definitions({
        'x/msg/Point': tuple(Field(axis, 'float64') for axis in 'xyz'),
        'x/msg/Path': (Field('name', 'string'), Field('points', 'x/msg/Point', SEQUENCE),
                       Field('last', 'float64'))}.get)
    template = Template(definitions, 'x/msg/Path', {
        'name': Given('name'), 'last': 9.0,
        'points': Each('points', {axis: Slot(xyz, i) for i, axis in enumerate('xyz')})},
        is_message=True)
    buffer = PatchBuffer([MessageInstance(template, {'name': name, 'points': [{}] * n})
                          for n in lengths])
    [(table, put, targets)] = buffer.patches
    assert table is xyz
    numbers = np.arange(sum(lengths) * 3.0).reshape(-1, 3)
    for rows in numbers, np.array([1.0, 2.0, 3.0]):
        put(targets, rows)
        expected = np.broadcast_to(rows, numbers.shape)
        first = 0
        for n, begin, end in zip(lengths, *buffer.bounds, strict=True):
            data = buffer.data[begin:end].tobytes()
            assert data[-8:] == struct.pack('<d', 9.0)
            found = np.frombuffer(data[-8 - 24 * n:-8], np.float64).reshape(-1, 3)
            assert found.tolist() == expected[first:first + n].tolist()
            first += n


def test_an_element_in_place_of_a_message_is_an_error():
    with pytest.raises(EncodeError, match=r'x/msg/Item: found an element .*; expected a whole'):
        PatchBuffer([item('a')])
