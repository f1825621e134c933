# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Buffers that were spliced many times equal the messages written by hand."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

from state_sensor_ros.cdr.definitions import Definitions, Field, SEQUENCE
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import Each, Given, MessageInstance, Slot, Table, Template
from state_sensor_ros.errors import EncodeError

DEFINITIONS = Definitions({
    'x/msg/Item': (Field('name', 'string'), Field('x', 'float64'), Field('id', 'int32'),
                   Field('flag', 'bool')),
    'x/msg/Bag': (Field('name', 'string'), Field('xs', 'float64', SEQUENCE),
                  Field('flag', 'bool')),
    'x/msg/Items': (Field('stamp', 'uint32'), Field('items', 'x/msg/Item', SEQUENCE)),
}.get)

STAMP, X = Table('stamp', np.int32, 1), Table('x', np.float64, 1)
ID, FLAG = Table('id', np.int32, 1), Table('f', np.bool_, 1)
ITEM = {'name': Given('name'), 'x': Slot(X, 0), 'id': Slot(ID, 0), 'flag': Slot(FLAG, 0)}
HEAD = Template(DEFINITIONS, 'x/msg/Items', {'stamp': Slot(STAMP, 0)}, is_message=True)
ELEMENT = Template(DEFINITIONS, 'x/msg/Item', ITEM)
MESSAGE = Template(DEFINITIONS, 'x/msg/Item', ITEM, is_message=True)
BAG = Template(DEFINITIONS, 'x/msg/Bag', {
    'name': Given('name'), 'xs': Each('xs', Slot(X, 0)), 'flag': Slot(FLAG, 0)}, is_message=True)


def item(name, template=ELEMENT):
    return MessageInstance(template, {'name': name})


def patched(buffer, n_items):
    """Patch the numbers 0, 1, 2… and return what each message is."""
    if STAMP in buffer.tables:
        buffer.patch(STAMP, np.array([[7]]))
    for table in buffer.tables:
        if table is not STAMP:
            buffer.patch(table, np.arange(n_items)[:, None] % (2 if table is FLAG else 1000))
    begins, ends = buffer.message_bounds()
    return [buffer.tobytes(begin, end) for begin, end in zip(begins, ends, strict=True)]


def expected_array(names):
    """Serialize by hand."""
    data = bytearray(struct.pack('<II', 7, len(names)))
    for i, name in enumerate(names):
        raw = name.encode() + b'\0'
        data += bytes(-len(data) % 4) + struct.pack('<I', len(raw)) + raw
        data += bytes(-len(data) % 8) + struct.pack('<di?', i, i, i % 2)
    return b'\0\1\0\0' + data


@pytest.mark.parametrize('seed', range(4))
def test_a_spliced_buffer_equals_the_message_written_by_hand(seed):
    rng = random.Random(seed)
    head, names, items = MessageInstance(HEAD, {}), [], []
    buffer = PatchBuffer(is_array=True)
    for _ in range(300):
        for _ in range(rng.choice((0, 1, 1, 1, 2, 5))):
            at = rng.randrange(len(names) + 1)
            if rng.random() < 0.55:
                names.insert(at, 'n' * rng.randrange(10))
                items.insert(at, item(names[at]))
            elif at < len(names):
                del names[at], items[at]
        if rng.random() < 0.1:
            order = rng.sample(range(len(names)), len(names))
            names, items = [names[i] for i in order], [items[i] for i in order]
        if rng.random() < 0.02:
            names, items = [], []
        buffer.update([head, *items])
        assert patched(buffer, len(names)) == [expected_array(names)]


def test_bounds_of_messages_of_any_length():
    rng, buffer, bags = random.Random(1), PatchBuffer(), []
    for _ in range(200):
        at = rng.randrange(len(bags) + 1)
        if rng.random() < 0.6:
            bags.insert(at, ('b' * rng.randrange(9), rng.randrange(4)))
        elif at < len(bags):
            del bags[at]
        if not bags:
            continue
        buffer.update([MessageInstance(BAG, {'name': name, 'xs': [{}] * n}) for name, n in bags])
        n_xs = sum(n for _, n in bags)
        if X in buffer.tables:
            buffer.patch(X, np.arange(n_xs)[:, None])
        buffer.patch(FLAG, np.ones((len(bags), 1)))
        begins, ends = buffer.message_bounds()
        first = 0
        for (name, n), begin, end in zip(bags, begins, ends, strict=True):
            data = buffer.tobytes(begin, end)[4:]
            i = 4 + len(name) + 1
            i += -i % 4
            assert struct.unpack_from('<I', data, i) == (n,)
            if n:
                assert struct.unpack_from(f'<{n}d', data, i + 4 + -(i + 4) % 8) == tuple(
                    range(first, first + n))
            assert data[-1] == 1
            first += n


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
    buffer = PatchBuffer()
    buffer.update([MessageInstance(template, {'name': name, 'points': [{}] * n})
                   for n in lengths])
    numbers = np.arange(sum(lengths) * 3.0).reshape(-1, 3)
    for rows in numbers, np.array([1.0, 2.0, 3.0]):
        buffer.patch(xyz, rows)
        expected = np.broadcast_to(rows, numbers.shape)
        first = 0
        for n, begin, end in zip(lengths, *buffer.message_bounds(), strict=True):
            data = buffer.tobytes(begin, end)
            assert data[-8:] == struct.pack('<d', 9.0)
            found = np.frombuffer(data[-8 - 24 * n:-8], np.float64).reshape(-1, 3)
            assert found.tolist() == expected[first:first + n].tolist()
            first += n


@pytest.mark.parametrize('is_array', [False, True])
def test_an_element_in_place_of_a_message_is_an_error(is_array):
    with pytest.raises(EncodeError, match=r'x/msg/Item: found an element .*; expected a whole'):
        PatchBuffer(is_array=is_array).update([item('a')])


def test_an_empty_buffer_has_no_tables():
    buffer = PatchBuffer()
    buffer.update([item('a', MESSAGE)])
    assert set(buffer.tables) == {X, ID, FLAG}
    buffer.update([])
    assert buffer.tables == []
