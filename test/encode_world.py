# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames to encode: one of each kind, and random ones."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.frame import (
    Boxes,
    Frame,
    Lanes,
    MapLine,
    TrafficLights,
    Wheels,
)
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import Subscriptions

# All that can be published at once.
ALL_ON = Settings(debug_drawing=True, wheel_tf=True, joint_states=True, publish_clock=True)
STAMP_NS = 1_234_000_000_567

HALF = 0.5 ** 0.5


def subscriptions_without(*names, **actors):
    """Return the subscriptions to all but these topics, with actors by kind of topic."""
    return Subscriptions(names_of_all() - {*names}, {
        kind: frozenset(names) for kind, names in actors.items()} or None)


def subscriptions_of(*names, **actors):
    """Return the subscriptions to these topics, and to those of actors by kind of topic."""
    return Subscriptions(frozenset(names), {kind: frozenset(own) for kind, own in actors.items()})


@cache
def definitions():
    return load_definitions()


@cache
def names_of_all():
    return frozenset(topic.name for topic in Encoder(ALL_ON, definitions()).topics)


def writable(array):
    """Make an array of a frame writable again, before anything is computed from it."""
    array.setflags(write=True)
    return array


def no_lanes():
    none = np.zeros(0, np.int64)
    return Lanes(none, np.zeros((0, 2), np.bool_), np.zeros((0, 3), np.int32), np.zeros(0))


def no_boxes():
    return Boxes(np.zeros(0, np.int64), (), np.zeros((0, 13)))


def no_wheels():
    none = np.zeros(0, np.int64)
    return Wheels(none, none.astype(np.uint8), none.astype(np.int32), np.zeros((0, 3)),
                  np.zeros((0, 4)), none == 1, none == 1, none.astype(float))


def make_frame(names=('car',), kinematics=None, kinds=None, tags=None, **parts):
    """Make a frame of vehicles without boxes, wheels or lanes, at rest in the origin."""
    n_actors = len(names)
    if kinematics is None:
        kinematics = np.zeros((n_actors, 13))
        kinematics[:, 6] = 1.0
    content = {
        'lanes': no_lanes(), 'boxes': no_boxes(), 'wheels': no_wheels(),
        'inputs': np.full((n_actors, 4), np.nan),
        'colors': ('',) * n_actors, 'replay_classes': ('',) * n_actors, **parts}
    return Frame(
        generation='v2', game_time=12.5, time=1_600_000_000, sample_count=40, names=tuple(names),
        kinds=np.array([1] * n_actors if kinds is None else kinds, np.uint8),
        tags=tuple(('vehicle',) for _ in names) if tags is None else tags,
        kinematics=np.asarray(kinematics, float), **content)


def box_at(row, position_xyz=(0.0, 0.0, 0.0), orientation_xyzw=(0.0, 0.0, 0.0, 1.0),
           size_xyz=(1.0, 1.0, 1.0), scale_xyz=(1.0, 1.0, 1.0), name='Body'):
    """Return what :func:`boxes_of` joins."""
    return row, name, position_xyz, orientation_xyzw, size_xyz, scale_xyz


def boxes_of(*boxes):
    row, names, *vectors = zip(*boxes, strict=True)
    return Boxes(np.array(row, np.int64), tuple(names),
                 np.hstack([np.array(vector, float) for vector in vectors]))


def two_actors():
    """Return a moving ego with all parts, and a cone with a box only."""
    kinematics = [
        (1.0, 2.0, 3.0, 0.0, 0.0, HALF, HALF, 0.0, 4.0, 0.0, 0.1, 0.2, 0.3),
        (-7.5, 0.25, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, np.nan, 0.0, 0.0)]
    wheel = np.arange(4)
    return make_frame(
        ('demo_1', 'Cone.A'), kinematics, (1, 0), (('vehicle', 'ego'), ('cone',)),
        lanes=Lanes(np.array([0]), np.array([(True, False)]),
                    np.array([(7, -1, 2)], np.int32), np.array([12.5])),
        boxes=boxes_of(
            box_at(0, (1.0, 2.0, 3.75), (0.5, 0.5, 0.5, 0.5), (1.8, 1.5, 4.5)),
            box_at(1, (-7.5, 0.25, 0.32), size_xyz=(0.32, 0.32, 0.64), scale_xyz=(1.0, 1.0, 2.0),
                   name='None')),
        wheels=Wheels(
            np.zeros(4, np.int64), wheel.astype(np.uint8), np.array([0, 1, 2, -1], np.int32),
            np.array([(1.4, 0.8, 0.3), (1.4, -0.8, 0.3), (-1.4, 0.8, 0.3), (0.0, 0.0, 0.0)]),
            np.array([(0.0, 0.6, 0.0, 0.8), (0.0, 0.6, 0.0, -0.8), (0.0, -1.0, 0.0, 0.0),
                      (0.0, 0.0, 0.0, 1.0)]),
            wheel < 3, wheel < 3, np.array([10.0, 11.0, 12.0, np.nan])),
        inputs=np.array([(0.5, 0.0, -0.125, np.nan), (np.nan,) * 4]),
        colors=('red', ''), replay_classes=('vehicle.sedan', ''))


def exact_actors():
    """Return :func:`two_actors` with roads, and an ego whose rotation only swaps axes: exact."""
    frame = two_actors()
    writable(frame.kinematics)[0, 3:7] = 0.5
    writable(frame.kinematics)[0, 10:] = 0.125, 0.25, 0.5
    return replace(
        frame, lanes=replace(frame.lanes, road_names={7: 'A0A1', -2: ':B1_0'}),
        traffic_lights=TrafficLights(
            np.array((40, 4_000_000_000)), ('B1/0', 'B1/13'), np.array((0, 2), np.uint8),
            np.array([(1.0, -2.5, 0.25, 0.0, 0.0, 0.0, 1.0),
                      (8.0, 4.0, 0.5, 0.5, 0.5, 0.5, 0.5)])),
        open_drive='<OpenDRIVE/>', map_lines=(
            MapLine('driving', np.array([(0.0, 0.0, 0.0), (10.0, 0.5, 0.0), (20.0, 0.0, 1.0)])),
            MapLine('biking', np.array([(-1.0, 2.0, 3.0), (4.0, 5.0, 6.0)])),
            MapLine('driving', np.array([(7.0, 8.0, 9.0), (-7.0, -8.0, -9.0)]))))


class Chance:
    """Random frames with missing, invalid and changing parts."""

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)
        self._pool = [f'{"actor-" * (i % 4)}{"x" * i}' for i in range(14)]
        self.names = []

    def change_names(self):
        """Add, remove or reorder actors, or change nothing."""
        what = self._rng.integers(5)
        free = [name for name in self._pool if name not in self.names]
        if what <= 1 and free:
            at = self._rng.integers(len(self.names) + 1)
            self.names.insert(int(at), str(self._rng.choice(free)))
        elif what == 2 and self.names:
            self.names.pop(int(self._rng.integers(len(self.names))))
        elif what == 3 and self._flip(0.2):
            self._rng.shuffle(self.names)

    def frame(self):
        rng, n_actors = self._rng, len(self.names)
        kinematics = rng.normal(size=(n_actors, 13))
        kinematics[:, 3:7] = self._rotations(n_actors)
        kinematics[rng.random((n_actors, 13)) < 0.01] = np.nan
        tags = [('Ego', 'b') if self._flip(0.1) else ('vehicle',) if self._flip(0.7) else ()
                for _ in self.names]
        return make_frame(
            self.names, kinematics, rng.integers(0, 2, n_actors), tuple(tags),
            lanes=self._lanes(), boxes=self._boxes(), wheels=self._wheels(),
            inputs=rng.random((n_actors, 4)),
            colors=tuple(str(rng.choice(['red', ''])) for _ in self.names),
            replay_classes=('bp',) * n_actors)

    def some(self):
        """Return some of the names that are there, to subscribe to topics of their own."""
        return frozenset(name for name in self.names if self._flip(0.5))

    def _flip(self, chance):
        return bool(self._rng.random() < chance)

    def _rotations(self, n):
        rotations = self._rng.normal(size=(n, 4))
        rotations /= np.linalg.norm(rotations, axis=1)[:, None]
        rotations *= self._rng.uniform(0.95, 1.05, n)[:, None]
        rotations[self._rng.random(n) < 0.03] = 0.0
        rotations[self._rng.random(n) < 0.03] = np.nan
        return rotations

    def _owners(self, most):
        counts = self._rng.integers(0, most + 1, len(self.names))
        return np.repeat(np.arange(len(self.names)), counts)

    def _lanes(self):
        rng, owners = self._rng, np.unique(self._owners(1))
        n = len(owners)
        return Lanes(owners, rng.random((n, 2)) < 0.5,
                     rng.integers(-9, 9, (n, 3)).astype(np.int32), rng.random(n))

    def _boxes(self):
        rng, owners = self._rng, self._owners(2)
        n = len(owners)
        sizes = rng.random((n, 6))
        bad = rng.random((n, 6)) < 0.01
        sizes[bad] = rng.choice((np.nan, np.inf, -np.inf, -1.0, 0.0, -0.0), bad.sum())
        return Boxes(owners, tuple(str(rng.choice(['Body', '', 'é'])) for _ in owners),
                     np.hstack((rng.normal(size=(n, 3)), self._rotations(n), sizes)))

    def _wheels(self):
        rng, n_actors = self._rng, len(self.names)
        counts = rng.choice([0, 2, 4], n_actors) if n_actors else np.zeros(0, np.int64)
        owners = np.repeat(np.arange(n_actors), counts)
        n = len(owners)
        wheel = np.concatenate([np.arange(0), *(np.arange(count) for count in counts)])
        return Wheels(owners, wheel.astype(np.uint8), rng.integers(-1, 4, n).astype(np.int32),
                      rng.normal(size=(n, 3)), self._rotations(n), rng.random(n) < 0.8,
                      rng.random(n) < 0.8, rng.normal(size=n))
