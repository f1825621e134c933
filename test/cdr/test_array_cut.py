# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Arrays out of which elements are cut: byte by byte those of the elements that are kept."""

from itertools import product

import numpy as np
import pytest

from state_sensor_ros.cdr.definitions import Definitions, Field, SEQUENCE
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import (
    Each,
    Given,
    MessageInstance,
    Slot,
    SlotText,
    Table,
    Template,
)

STAMP, X = Table('stamp', np.int32, 1), Table('x', np.float64, 2)
XS, BYTE = Table('xs', np.float64, 1), Table('b', np.uint8, 1)
TEXT = Table('text', np.uint8, 5)
HEADER = {'x/msg/Stamp': (Field('sec', 'uint32'),)}
STAMPED = {'sec': Slot(STAMP, 0)}
# By name: fields of an element, its prototype.
ELEMENTS = {
    # Numbers of 8 bytes after a text; the end depends on another text.
    'texts': ((Field('stamp', 'x/msg/Stamp'), Field('class', 'string'), Field('x', 'float64'),
               Field('y', 'float64'), Field('name', 'string')),
              {'stamp': STAMPED, 'class': Given('name'), 'x': Slot(X, 0), 'y': Slot(X, 1),
               'name': Given('name')}),
    # Nothing of 8 bytes: the phase at the end depends on that at the beginning.
    'words': ((Field('b', 'uint8'), Field('stamp', 'x/msg/Stamp'), Field('name', 'string')),
              {'b': Slot(BYTE, 0), 'stamp': STAMPED, 'name': Given('name')}),
    'bytes': ((Field('b', 'uint8'), Field('c', 'uint8')), {'b': Slot(BYTE, 0), 'c': 3}),
    # Elements with different numbers of rows.
    'rows': ((Field('name', 'string'), Field('xs', 'float64', SEQUENCE), Field('b', 'uint8')),
             {'name': Given('name'), 'xs': Each('xs', Slot(XS, 0)), 'b': Slot(BYTE, 0)}),
    'text': ((Field('b', 'uint8'), Field('text', 'string'), Field('x', 'float64'),
              Field('y', 'float64')),
             {'b': Slot(BYTE, 0), 'text': SlotText(TEXT), 'x': Slot(X, 0), 'y': Slot(X, 1)}),
    'constant': ((Field('name', 'string'), Field('d', 'float64')),
                 {'name': Given('name'), 'd': 7.0}),
}


def numbers_of(kept):
    """Return numbers by table of the kept ones of 6 elements, each with its own."""
    rows = np.flatnonzero(kept)
    return {STAMP: np.array([77], np.int32), X: np.array([(i + 0.5, -i) for i in rows]).reshape(
        -1, 2), BYTE: (rows[:, None] + 1).astype(np.uint8),
        XS: np.array([i + j / 8.0 for i in rows for j in range(i % 3)]).reshape(-1, 1),
        TEXT: np.array([list(b'abcd%d' % i) for i in rows], np.uint8).reshape(-1, 5)}


@pytest.mark.parametrize('kind', ELEMENTS)
@pytest.mark.parametrize('frame_id', ['', 'map', 'world'])
def test_all_choices_of_elements(kind, frame_id):
    fields, prototype = ELEMENTS[kind]
    definitions = Definitions({**HEADER, 'x/msg/Item': fields, 'x/msg/Items': (
        Field('frame_id', 'string'), Field('items', 'x/msg/Item', SEQUENCE))}.get)
    head = MessageInstance(Template(definitions, 'x/msg/Items', {'frame_id': frame_id},
                                    is_message=True), {})
    element = Template(definitions, 'x/msg/Item', prototype)
    instances = [MessageInstance(element, {'name': 'n' * (i * i % 7), 'xs': [{}] * (i % 3)})
                 for i in range(6)]
    buffer = PatchBuffer(is_array=True)
    buffer.update([head, *instances])
    cut = buffer.array_cut()
    for choice in product((False, True), repeat=6):
        kept = np.array(choice)
        anew = PatchBuffer(is_array=True)
        anew.update([head, *[instances[i] for i in np.flatnonzero(kept)]])
        numbers = numbers_of(kept)
        for table in anew.tables:
            anew.patch(table, numbers[table])
        [begin], [end] = anew.message_bounds()
        assert cut.message(kept, numbers) == anew.tobytes(begin, end)


def test_array_without_elements():
    definitions = Definitions({'x/msg/Items': (
        Field('stamp', 'uint32'), Field('items', 'string', SEQUENCE))}.get)
    buffer = PatchBuffer(is_array=True)
    buffer.update([MessageInstance(Template(
        definitions, 'x/msg/Items', {'stamp': Slot(STAMP, 0)}, is_message=True), {})])
    assert buffer.array_cut().message(np.zeros(0, np.bool_), numbers_of([])) \
        == bytes.fromhex('00010000 4d000000 00000000')
