# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Templates against bytes written by hand: padding, phases, givens, slots, errors."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from state_sensor_ros.cdr.definitions import Definitions, Field, SEQUENCE
from state_sensor_ros.cdr.templates import (
    ALIGNMENT,
    Each,
    Given,
    MessageInstance,
    Slot,
    Table,
    Template,
)
from state_sensor_ros.errors import EncodeError

# Types of no package: templates depend on definitions only.
TYPES = {
    'x/msg/Point': (Field('x', 'float64'), Field('y', 'float64')),
    'x/msg/Mixed': (Field('flag', 'bool'), Field('small', 'uint8'), Field('word', 'int32'),
                    Field('name', 'string'), Field('wide', 'float64'), Field('half', 'uint16')),
    'x/msg/Parts': (Field('names', 'string', SEQUENCE), Field('points', 'x/msg/Point', SEQUENCE),
                    Field('fixed', 'float32', 3), Field('last', 'int8')),
    'x/msg/Bytes': (Field('a', 'byte'), Field('b', 'char'), Field('c', 'int64'),
                    Field('d', 'uint64'), Field('e', 'int16'), Field('f', 'uint32')),
}
DEFINITIONS = Definitions(TYPES.get)

POINT = Table('point', np.float64, 2)


def lay_out(type_name, prototype, values=None, phase=0):
    return Template(DEFINITIONS, type_name, prototype).lay_out(values or {}, phase)


def offsets(layout, table):
    return np.frombuffer(layout.slot_offsets[table], np.int64).tolist()


def hexed(text):
    return bytes.fromhex(text)


def test_constants_and_padding():
    layout = lay_out('x/msg/Mixed', {'flag': True, 'small': 5, 'word': -2, 'name': 'ab',
                                     'wide': 1.0, 'half': 0x1234})
    assert layout.data == hexed(
        '01 05 0000 feffffff'            # flag, small, padding to 4, word
        '03000000 616200 00'             # length with its end, a b, end, padding to 8
        '000000000000f03f 3412')
    assert layout.end_phase == len(layout.data) % ALIGNMENT


@pytest.mark.parametrize('phase', range(ALIGNMENT))
def test_alignment_counts_from_the_message_not_from_the_layout(phase):
    layout = lay_out('x/msg/Mixed', {'word': 1, 'wide': 2.0, 'name': 'abc'}, phase=phase)
    data = bytes(phase) + layout.data
    position = phase + 2
    position += -position % 4
    assert struct.unpack_from('<i', data, position) == (1,)
    assert data[position + 4:position + 12] == b'\x04\0\0\0abc\0'
    position += 12
    assert not any(data[position:position + -position % 8])
    position += -position % 8
    assert struct.unpack_from('<d', data, position) == (2.0,)
    assert len(data) == position + 10
    assert layout.end_phase == len(data) % ALIGNMENT


def test_sequences_and_arrays():
    layout = lay_out('x/msg/Parts', {
        'names': ['a', ''], 'points': [{'x': 1.0}, {'y': 2.0}], 'fixed': [0.5, 0.0, -1.0],
        'last': -1})
    assert layout.data == hexed(
        '02000000 02000000 6100 0000 01000000 00 000000'
        '02000000'
        '000000000000f03f 0000000000000000 0000000000000000 0000000000000040'
        '0000003f 00000000 000080bf ff')


def test_a_single_row_may_occur_twice_but_not_one_of_several():
    twice = [{'x': Slot(POINT, 0), 'y': Slot(POINT, 1)}] * 2
    assert offsets(lay_out('x/msg/Parts', {'points': twice}), POINT) == [8, 16, 24, 32]
    template = Template(DEFINITIONS, 'x/msg/Parts', {
        'names': Given('names'), 'points': Each('points', {'x': Slot(POINT, 0),
                                                           'y': Slot(POINT, 0)})})
    with pytest.raises(EncodeError, match='rows of all 2 columns'):
        template.lay_out({'names': [], 'points': [{}]}, 0)


@pytest.mark.parametrize(('type_name', 'prototype', 'message'), [
    ('x/msg/Point', {'z': 1.0}, 'x/msg/Point: found no field z; expected the definition'),
    ('x/msg/Mixed', {'word': Slot(POINT, 0)},
     'x/msg/Mixed word: found int32 in the definition; expected what Slot(table='),
    ('x/msg/Mixed', {'word': 'five'},
     "x/msg/Mixed word: found int32 in the definition; expected what 'five' can be"),
    ('x/msg/Parts', {'fixed': [1.0]},
     'x/msg/Parts fixed: found 3 elements in the definition; expected what [1.0] can be'),
    ('x/msg/Parts', {'points': Given('p')}, 'x/msg/Parts points: found a sequence of x/msg/Point'),
    ('x/msg/Parts', {'points': [1.0]}, 'x/msg/Parts points: found the message x/msg/Point')])
def test_a_prototype_that_does_not_fit_its_definition_is_an_error(type_name, prototype, message):
    with pytest.raises(EncodeError) as caught:
        Template(DEFINITIONS, type_name, prototype)
    assert str(caught.value).startswith(message)


def test_worked_example():
    definitions = Definitions({'demo/msg/Item': (
        Field('x', 'float64'), Field('name', 'string'), Field('y', 'float64'))}.get)
    template = Template(definitions, 'demo/msg/Item', {
        'x': Slot(POINT, 0), 'name': Given('name'), 'y': Slot(POINT, 1)})
    layout = MessageInstance(template, {'name': 'ab'}).layout_at(4)
    assert layout.data == hexed('00000000 0000000000000000 03000000 61620000 0000000000000000')
    assert (offsets(layout, POINT), layout.end_phase) == ([4, 20], 0)
