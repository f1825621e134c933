# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Markers: what a display shows after any sequence of arrays, and that nothing grows."""

from __future__ import annotations

import itertools
import math

from budgets import tries
from encode_world import (
    ALL_ON,
    box_at,
    boxes_of,
    Chance,
    definitions,
    HALF,
    make_frame,
    STAMP_NS,
    subscriptions_of,
    two_actors,
    writable,
)
from message_store import read
import numpy as np
import pytest

from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import NOTHING

CUBE, TEXT = 1, 9
ADD, DELETE, DELETE_ALL = 0, 2, 3
ONLY_MARKERS = subscriptions_of('~/markers')
PERIOD_NS = 50_000_000
# What is shown of two actors if one of them has no box.
ONE_BOX = ['labels', 'labels', 'objects']


class Stage:
    """An encoder, and a display that does what RViz does with the arrays that it takes."""

    def __init__(self, settings=ALL_ON, **naming):
        self.registry = Registry(Settings(**naming))
        self.encoder = Encoder(settings, definitions())
        self.shown = {}
        self.array = None
        self.stamp_ns = STAMP_NS - PERIOD_NS

    def show(self, frame, subscriptions=ONLY_MARKERS):
        """Encode a frame and take its array."""
        self.stamp_ns += PERIOD_NS
        actor_list = self.registry.update(frame)
        self.array = None
        for topic, data in self.encoder.encode(frame, actor_list, self.stamp_ns, subscriptions):
            if topic.name == '~/markers':
                self._apply(read(data, topic.type_name))
        return self.array

    def delete_all(self):
        [(topic, data)] = self.encoder.closing(self.stamp_ns)
        self.encoder.restart()
        assert topic.name == '~/markers'
        self._apply(read(data, topic.type_name))
        return self.array

    def _apply(self, array):
        self.array = array.markers
        keys = [(marker.ns, marker.id) for marker in self.array if marker.action != DELETE_ALL]
        # A key twice in one array is an error to RViz.
        assert len(keys) == len(set(keys))
        for marker in self.array:
            assert marker.header.frame_id == 'map'
            stamp = marker.header.stamp
            assert stamp.sec * 10 ** 9 + stamp.nanosec == self.stamp_ns
            assert (marker.lifetime.sec, marker.lifetime.nanosec) == (0, 0)
            assert marker.frame_locked is False
            q = marker.pose.orientation
            assert math.hypot(q.x, q.y, q.z, q.w) == pytest.approx(1.0)
            assert all(map(math.isfinite, xyz(marker.pose.position)))
            if marker.action == ADD:
                lengths = np.float32(xyz(marker.scale) if marker.type == CUBE
                                     else [marker.scale.z])
                assert np.isfinite(lengths).all()
                assert (lengths > 0.0).all()
            if marker.action == DELETE_ALL:
                self.shown.clear()
            elif marker.action == DELETE:
                self.shown.pop((marker.ns, marker.id), None)
            else:
                self.shown[marker.ns, marker.id] = marker

    def namespaces(self):
        return sorted(marker.ns for marker in self.shown.values())

    def actions(self):
        return [marker.action for marker in self.array]


def xyz(vector):
    return vector.x, vector.y, vector.z


def test_a_cube_is_the_box_and_its_size_times_its_scale():
    stage = Stage()
    stage.show(two_actors())
    cubes = {ns: marker for (ns, _), marker in stage.shown.items() if marker.type == CUBE}
    assert cubes.keys() == {'ego', 'objects'}
    assert xyz(cubes['ego'].pose.position) == (1.0, 2.0, 3.75)
    assert cubes['ego'].pose.orientation.x == 0.5
    assert xyz(cubes['ego'].scale) == (1.8, 1.5, 4.5)
    assert xyz(cubes['objects'].scale) == (0.32, 0.32, 1.28)


def test_a_label_is_the_raw_name_above_the_highest_box():
    frame = make_frame(('A.b', 'bare'), boxes=boxes_of(
        box_at(0, (0.0, 0.0, 1.0), size_xyz=(1.0, 1.0, 2.0)),
        # A quarter turn about x: its y is up.
        box_at(0, (0.0, 0.0, 1.0), (HALF, 0.0, 0.0, HALF), (1.0, 6.0, 2.0)),
        box_at(0, (0.0, 0.0, 1.0), size_xyz=(9.0, 9.0, 2.0), scale_xyz=(1.0, 1.0, 1.5))))
    stage = Stage()
    stage.show(frame)
    labels = {marker.text: marker for marker in stage.shown.values() if marker.type == TEXT}
    height = labels['A.b'].scale.z
    assert labels.keys() == {'A.b', 'bare'}
    assert height > 0.0
    assert labels['A.b'].pose.position.z == pytest.approx(4.0 + height)
    assert labels['bare'].pose.position.z == pytest.approx(height)
    assert {marker.ns for marker in labels.values()} == {'labels'}


def test_delete_all_is_first_in_the_first_array_and_alone_in_the_last():
    stage = Stage()
    for _ in range(2):
        stage.show(two_actors())
        assert stage.actions() == [DELETE_ALL, ADD, ADD, ADD, ADD]
        stage.show(two_actors())
        assert stage.actions() == [ADD] * 4
        stage.delete_all()
        assert stage.actions() == [DELETE_ALL]


def test_an_actor_that_leaves_is_deleted_once_and_others_keep_their_ids():
    frame, stage = two_actors(), Stage()
    stage.show(frame)
    before = {marker.text for marker in stage.shown.values()}, set(stage.shown)
    stage.show(frame.select(np.array([1])))
    assert stage.actions() == [ADD, ADD, DELETE, DELETE]
    assert set(stage.shown) < before[1]
    assert {marker.text for marker in stage.shown.values()} == {'', 'Cone.A'}
    stage.show(frame.select(np.array([1])))
    assert stage.actions() == [ADD, ADD]
    stage.show(frame)
    assert stage.actions() == [ADD] * 4


@pytest.mark.parametrize(('columns', 'numbers'), [
    (0, math.nan), (2, math.inf), (3, math.nan), (6, 3.0),
    # Sizes and scales whose product is no length, or is one of two negative numbers.
    *((slice(7, None), sizes) for sizes in (
        (1e200, 1.0, 1.0, 1e200, 1.0, 1.0), (1e-30, 1.0, 1.0, 1e-30, 1.0, 1.0),
        (-4.5, -1.8, -1.5, -1.0, -1.0, -1.0)))])
def test_a_box_without_a_place_direction_or_length_has_no_cube(columns, numbers):
    stage, frame = Stage(), two_actors()
    writable(frame.boxes.rows)[0, columns] = numbers
    stage.show(frame)
    assert stage.namespaces() == ONE_BOX
    # Above the box as it would be; of an odd size it is elsewhere.
    label = next(m for m in stage.shown.values() if m.text == 'demo_1')
    assert isinstance(columns, slice) or label.pose.position.z == pytest.approx(
        3.0 + label.scale.z)


def test_boxes_that_are_not_drawn_are_reported_once_in_a_run():
    reports, registry = [], Registry()
    encoder = Encoder(ALL_ON, definitions(), lambda kind, text: reports.append((kind, text)))

    stamps = itertools.count(STAMP_NS)

    def show(frame):
        encoder.encode(frame, registry.update(frame), next(stamps), ONLY_MARKERS)

    show(two_actors())
    assert reports == []
    for number in (math.nan, -1.0, 0.0):
        bad = two_actors()
        writable(bad.boxes.rows)[1, 8] = number
        show(bad)
        show(two_actors())
    ((kind, text),) = reports
    assert kind == 'boxes'
    assert text.startswith("boxes that cannot be drawn: 1, the first of 'Cone.A': found -7.5, ")
    assert '0, 0, 0, 1, 0.32, nan, 0.64, 1, 1, 2; expected x y z' in text
    encoder.restart()
    show(bad)
    assert len(reports) == 2


@pytest.mark.parametrize('seed', range(tries(1)))
def test_a_display_shows_exactly_the_actors_of_the_frame(seed):
    chance, stage = Chance(seed), Stage(ego_tag='ego')
    for i in range(70):
        chance.change_names()
        frame = chance.frame()
        if i % 17 == 5:
            stage.delete_all()
        # In some frames there is no subscriber: the next array deletes what has left meanwhile.
        if i % 7 < 2:
            stage.show(frame, NOTHING)
            continue
        stage.show(frame)
        usable = frame.has_pose()
        assert sorted(m.text for m in stage.shown.values() if m.type == TEXT) == sorted(
            name for name, ok in zip(frame.names, usable, strict=True) if ok)
        norms = np.linalg.norm(frame.boxes.orientation_xyzw, axis=1)
        sizes = frame.boxes.rows[:, 7:]
        have_sizes = ((sizes > 0.0) & (sizes < np.inf)).all(axis=1)
        places = frame.boxes.position_xyz[
            usable[frame.boxes.actor] & (norms > 0.5) & have_sizes]
        assert sorted(xyz(m.pose.position) for m in stage.shown.values() if m.type == CUBE) \
            == sorted(map(tuple, places.tolist()))
