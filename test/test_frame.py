# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The frame as struct of arrays: what cannot be built, what a selection takes along."""

from __future__ import annotations

from dataclasses import dataclass, FrozenInstanceError, replace
import math
import warnings

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from state_sensor_ros.classes import TagRule
from state_sensor_ros.errors import StateError
from state_sensor_ros.frame import (
    Boxes,
    Frame,
    Lanes,
    Wheels,
)


@dataclass(frozen=True)
class Numbered:
    """An extension that holds the numbers of its rows."""

    rows: tuple[int, ...]

    def select(self, rows):
        return Numbered(tuple(self.rows[i] for i in rows))


def part_rows(n_actors):
    """Two entries for each even actor, none for the others; each entry marked by its owner."""
    actor = np.repeat(np.arange(0, n_actors, 2), 2)
    return actor, actor[:, None] * np.ones(3), actor[:, None] * np.ones(4)


def make_frame(n_actors=5) -> Frame:
    """Make a frame in which every number of an actor is its row."""
    row = np.arange(n_actors, dtype=np.float64)
    actor, triples, quadruples = part_rows(n_actors)
    flags, ids = actor % 4 == 0, actor.astype(np.int32)
    return Frame(
        generation='v2', game_time=1.0, time=2, sample_count=3,
        names=tuple(f'car_{i}' for i in range(n_actors)),
        kinds=(np.arange(n_actors) % 2).astype(np.uint8),
        tags=tuple((f'tag_{i}',) for i in range(n_actors)),
        kinematics=row[:, None] * np.ones(13),
        lanes=Lanes(actor, np.column_stack((flags, ~flags)), np.column_stack((ids, ids, ids)),
                    actor.astype(np.float64)),
        boxes=Boxes(actor, tuple(f'box_{i}' for i in actor),
                    np.hstack((triples, quadruples, triples, triples))),
        wheels=Wheels(actor, ids.astype(np.uint8), ids, triples, quadruples, flags, ~flags,
                      actor.astype(np.float64)),
        inputs=row[:, None] * np.ones(4),
        colors=tuple(f'color_{i}' for i in range(n_actors)),
        replay_classes=tuple(f'class_{i}' for i in range(n_actors)),
        forward_speed=row, extension=Numbered(tuple(range(n_actors))))


@pytest.mark.parametrize(('changes', 'message'), [
    ({'kinematics': np.zeros((4, 13))}, r'kinematics: found shape \(4, 13\); expected \(5, 13\)'),
    ({'kinds': np.zeros(4, np.uint8)}, r'kinds: found shape \(4,\); expected \(5,\)'),
    ({'tags': ()}, 'tags: found 0 entries; expected 5'),
    ({'names': ('a',)}, r'kinds: found shape \(5,\); expected \(1,\)'),
    ({'ids': np.zeros(5)}, 'ids: found float64; expected i8'),
    ({'inputs': np.zeros((5, 3))}, r'inputs: found shape \(5, 3\); expected \(5, 4\)')])
def test_unequal_lengths_cannot_be_built(changes, message):
    with pytest.raises(StateError, match=message) as caught:
        replace(make_frame(), **changes)
    assert isinstance(caught.value, ValueError)


def test_frames_do_not_change():
    frame = make_frame()
    with pytest.raises(FrozenInstanceError):
        frame.game_time = 2.0
    with pytest.raises(ValueError, match='read-only'):
        frame.position_xyz[0, 0] = 1.0


@given(st.integers(0, 9), st.data())
def test_selection_takes_everything_of_an_actor_along(n_actors, data):
    frame = make_frame(n_actors)
    rows = sorted(data.draw(st.sets(st.integers(0, max(n_actors - 1, 0)), max_size=n_actors)))
    picked = frame.select(np.array(rows, np.int64))
    assert picked.names == tuple(f'car_{i}' for i in rows)
    assert picked.tags == tuple((f'tag_{i}',) for i in rows)
    assert picked.kinds.tolist() == [i % 2 for i in rows]
    assert picked.colors == tuple(f'color_{i}' for i in rows)
    assert picked.replay_classes == tuple(f'class_{i}' for i in rows)
    assert picked.extension == Numbered(tuple(rows))
    assert picked.forward_speed.tolist() == rows
    for array in (picked.kinematics, picked.inputs):
        assert array[:, 0].tolist() == array[:, -1].tolist() == rows
    old_owners = [i for i in rows if i % 2 == 0 for _ in range(2)]
    new_owners = [rows.index(i) for i in old_owners]
    for part in (picked.boxes, picked.wheels, picked.lanes):
        assert part.actor.tolist() == new_owners
    assert picked.boxes.names == tuple(f'box_{i}' for i in old_owners)
    assert picked.boxes.size_xyz[:, 0].tolist() == old_owners
    assert picked.wheels.source_id.tolist() == picked.lanes.s.tolist() == old_owners
    assert picked.lanes.lane_change_left.tolist() == [i % 4 == 0 for i in old_owners]
    assert (picked.game_time, picked.time, picked.sample_count) == (1.0, 2, 3)


def with_pose(position, orientation):
    kinematics = np.zeros((1, 13))
    kinematics[0, 0:3], kinematics[0, 3:7] = position, orientation
    return replace(make_frame(1), kinematics=kinematics).has_pose().tolist() == [True]


@pytest.mark.parametrize(('norm', 'is_pose'), [
    (0.9001, True), (1.0999, True), (0.8999, False), (1.1001, False), (math.nan, False),
    (1e200, False)])
def test_has_pose_requires_a_rotation(norm, is_pose):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert with_pose((0, 0, 0), (0, 0.6 * norm, 0, 0.8 * norm)) is is_pose


@pytest.mark.parametrize('value', [math.nan, math.inf, -math.inf])
def test_has_pose_requires_a_place(value):
    assert not with_pose((0.0, 0.0, value), (0, 0, 0, 1))
    assert with_pose((1e9, -1e9, 0), (0, 0, 0, 1))


@pytest.mark.parametrize(('tags', 'desired', 'undesired', 'is_wanted'), [
    (['vehicle', 'car'], {'vehicle'}, set(), True),
    (['vehicle', 'car'], {'cone', 'car'}, set(), True),
    (['vehicle'], {'cone'}, set(), False),
    ([], set(), set(), True),
    (['vehicle', 'static'], {'vehicle'}, {'static'}, False),
    (['VEHICLE', 'Ego'], {'vehicle'}, {'static'}, True),
    (['VEHICLE', 'Static'], {'vehicle'}, {'static'}, False)])
def test_tags(tags, desired, undesired, is_wanted):
    assert TagRule(desired, undesired).passes(tags) is is_wanted
