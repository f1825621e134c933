# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Items kept for each actor: made once, made again for another appearance."""

from __future__ import annotations

import random

import numpy as np
import pytest

from state_sensor_ros.naming import Actor, ActorList
from state_sensor_ros.topics.per_actor import Column, PerActor

ACTORS = {name: Actor(name, name, name, i, True) for i, name in enumerate('abcdefghijkl')}


def table_of(names):
    return ActorList(tuple(ACTORS[name] for name in names), tuple(names), b'', (), -1, 0)


class Made:
    """Items that record how they were made."""

    def __init__(self):
        self.made = []
        self.items = PerActor(self._make)

    def of(self, names, *columns):
        self.made.clear()
        return [item[:2] for item in self.items.of(table_of(names), *columns)]

    def _make(self, actor, appearance, before):
        item = actor.name, appearance, None if before is None else before[:2]
        self.made.append(item)
        return item


def test_only_a_new_actor_is_made():
    made = Made()
    assert made.of('abc') == [('a', ()), ('b', ()), ('c', ())]
    assert made.of('adc') == [('a', ()), ('d', ()), ('c', ())]
    assert made.made == [('d', (), None)]
    assert made.of('cda') == [('c', ()), ('d', ()), ('a', ())]
    assert made.made == []


def test_worked_example():
    made = Made()
    made.of('abcd', Column((('car',), ('car',), (), ('car',))))
    made.of('acd', Column((('car',), (), ('car', 'ego'))))
    assert made.made == [('d', (('car', 'ego'),), ('d', (('car',),)))]


@pytest.mark.parametrize('seed', range(6))
def test_items_are_those_made_anew(seed):
    rng, made = random.Random(seed), Made()
    names, appearances, n_wheels = [], {}, {}
    for _ in range(200):
        if rng.random() < 0.5:
            names = rng.sample('abcdefghijkl', rng.randrange(12))
        for name in ACTORS:
            if name not in appearances or rng.random() < 0.1:
                appearances[name], n_wheels[name] = rng.choice('xyz'), rng.randrange(4)
        expected = [(name, (appearances[name], bytes(n_wheels[name]))) for name in names]
        assert made.of(names, *columns_of(expected)) == expected
        assert made.of(names, *columns_of(expected)) == expected
        assert made.made == []


def columns_of(items):
    first = np.cumsum([0, *(len(wheels) for _, (_, wheels) in items)])
    return (Column(tuple(appearance for _, (appearance, _) in items)),
            Column(b''.join(wheels for _, (_, wheels) in items), first))
