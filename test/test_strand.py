# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Strands that were changed a thousand times equal those that are made anew."""

from __future__ import annotations

import gc
import random
import struct
import weakref

import numpy as np
import pytest

from state_sensor_ros.cdr.definitions import Definitions, Field, SEQUENCE
from state_sensor_ros.cdr.patch_buffer import Strand
from state_sensor_ros.cdr.templates import Each, Given, Segment, Slot, Table, Template
from state_sensor_ros.common_ends import same_ends

DEFINITIONS = Definitions({
    'x/msg/Item': (Field('name', 'string'), Field('x', 'float64'), Field('id', 'int32'),
                   Field('flag', 'bool')),
    'x/msg/Bag': (Field('name', 'string'), Field('xs', 'float64', SEQUENCE),
                  Field('flag', 'bool')),
    'x/msg/Items': (Field('stamp', 'uint32'), Field('items', 'x/msg/Item', SEQUENCE)),
}.get)

STAMP, X, ID, FLAG = Table('stamp', 4, 1), Table('x', 8, 1), Table('id', 4, 1), Table('f', 1, 1)
ITEM = {'name': Given('name'), 'x': Slot(X, 0), 'id': Slot(ID, 0), 'flag': Slot(FLAG, 0)}
HEAD = Template(DEFINITIONS, 'x/msg/Items', {'stamp': Slot(STAMP, 0)}, is_message=True)
ELEMENT = Template(DEFINITIONS, 'x/msg/Item', ITEM)
MESSAGE = Template(DEFINITIONS, 'x/msg/Item', ITEM, is_message=True)
BAG = Template(DEFINITIONS, 'x/msg/Bag', {
    'name': Given('name'), 'xs': Each('xs', Slot(X, 0)), 'flag': Slot(FLAG, 0)}, is_message=True)


class NamedSegment(Segment):
    """A segment that can be referred to weakly."""

    __slots__ = ('__weakref__',)


def item(name, template=ELEMENT):
    return NamedSegment(template, {'name': name})


def patched(strand, n_items):
    """Patch the numbers 0, 1, 2… and return what each message is."""
    if STAMP in strand.tables:
        strand.patch(STAMP, np.array([[7]]))
    for table in strand.tables:
        if table is not STAMP:
            strand.patch(table, np.arange(n_items)[:, None] % (2 if table is FLAG else 1000))
    begins, ends = strand.messages()
    return [strand.tobytes(begin, end) for begin, end in zip(begins, ends, strict=True)]


def expected_array(names):
    """Serialise by hand."""
    data = bytearray(struct.pack('<II', 7, len(names)))
    for i, name in enumerate(names):
        raw = name.encode() + b'\0'
        data += bytes(-len(data) % 4) + struct.pack('<I', len(raw)) + raw
        data += bytes(-len(data) % 8) + struct.pack('<di?', i, i, i % 2)
    return b'\0\1\0\0' + data


@pytest.mark.parametrize('names', [[], [''], ['a', 'bcd', 'ef', '', 'ghijk']])
def test_array_is_the_message_written_by_hand(names):
    strand = Strand(is_array=True)
    strand.update([Segment(HEAD, {}), *map(item, names)])
    assert patched(strand, len(names)) == [expected_array(names)]


@pytest.mark.parametrize('seed', range(4))
def test_changed_strand_equals_a_new_one(seed):
    rng = random.Random(seed)
    head, names, items = Segment(HEAD, {}), [], []
    strand = Strand(is_array=True)
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
        strand.update([head, *items])
        assert patched(strand, len(names)) == [expected_array(names)]


def test_messages_are_told_apart_whatever_they_end_with():
    rng, strand, bags = random.Random(1), Strand(), []
    for _ in range(200):
        at = rng.randrange(len(bags) + 1)
        if rng.random() < 0.6:
            bags.insert(at, ('b' * rng.randrange(9), rng.randrange(4)))
        elif at < len(bags):
            del bags[at]
        if not bags:
            continue
        strand.update([Segment(BAG, {'name': name, 'xs': [{}] * n}) for name, n in bags])
        n_xs = sum(n for _, n in bags)
        if X in strand.tables:
            strand.patch(X, np.arange(n_xs)[:, None])
        strand.patch(FLAG, np.ones((len(bags), 1)))
        begins, ends = strand.messages()
        first = 0
        for (name, n), begin, end in zip(bags, begins, ends, strict=True):
            data = strand.tobytes(begin, end)[4:]
            i = 4 + len(name) + 1
            i += -i % 4
            assert struct.unpack_from('<I', data, i) == (n,)
            if n:
                assert struct.unpack_from(f'<{n}d', data, i + 4 + -(i + 4) % 8) == tuple(
                    range(first, first + n))
            assert data[-1] == 1
            first += n


def test_only_what_came_is_laid_out():
    strand, head = Strand(is_array=True), Segment(HEAD, {})
    items = [item(f'name {i}') for i in range(1000)]
    strand.update([head, *items])
    before = [list(segment.layouts) for segment in items]
    items.insert(500, item('new'))
    strand.update([head, *items])
    del items[500]
    laid_out = sum(old != segment.layouts for old, segment in zip(before, items, strict=True))
    # The one behind it may begin at another phase; it ends where it ended before.
    assert laid_out <= 1


def test_what_has_gone_is_not_kept():
    strand, head = Strand(is_array=True), Segment(HEAD, {})
    items = [item(f'{i}') for i in range(20)]
    gone = weakref.ref(items[7])
    strand.update([head, *items])
    del items[7]
    strand.update([head, *items])
    gc.collect()
    assert gone() is None


def test_a_strand_that_shrinks_to_nothing_has_no_tables():
    strand = Strand()
    strand.update([item('a', MESSAGE)])
    assert set(strand.tables) == {X, ID, FLAG}
    strand.update([])
    assert strand.tables == []


def test_rows_are_taken_in_the_order_of_the_segments():
    strand = Strand()
    strand.update([item('a', MESSAGE), item('bb', MESSAGE)])
    strand.patch(X, np.array([[1.5], [2.5]]))
    strand.patch(ID, np.array([[10], [20]]))
    strand.patch(FLAG, np.array([[True], [False]]))
    begins, ends = strand.messages()
    assert [struct.unpack('<di?', strand.tobytes(begin, end)[-13:])
            for begin, end in zip(begins, ends, strict=True)] == [(1.5, 10, True),
                                                                  (2.5, 20, False)]


@pytest.mark.parametrize(('old', 'new', 'ends'), [
    ('', '', (0, 0)), ('', 'a', (0, 0)), ('abc', 'abc', (3, 0)), ('abc', 'abxc', (2, 1)),
    ('abc', 'ac', (1, 1)), ('aaa', 'aa', (2, 0)), ('abc', 'xyz', (0, 0)), ('abc', 'xbc', (0, 2)),
    ('abcdef', 'abXef', (2, 2)), ('ab', 'ba', (0, 0))])
def test_same_ends(old, new, ends):
    assert same_ends(list(old), list(new)) == ends
