# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Footprints of actors, by their boxes or by their classes."""

from drawn_scenes import Agent, box, frame, scene_of
import numpy as np
import pytest

# Turns from a box's own axes to those of its vehicle: none, permuted ones as simulators send
# them (x to the left, y up, z forward), half a turn.
STRAIGHT = (0.0, 0.0, 0.0, 1.0)
PERMUTED = (0.5, 0.5, 0.5, 0.5)
BACKWARD = (0.0, 0.0, 1.0, 0.0)


def footprint_of(actor, *box_):
    scene = scene_of(frame(0.0, actor, boxes=box(0, *box_) if box_ else None))
    return scene.footprint_xy[0], bool(scene.has_size[0])


@pytest.mark.parametrize(('orientation', 'size'), [
    (STRAIGHT, (4.0, 2.0, 1.5)), (BACKWARD, (4.0, 2.0, 1.5)), (PERMUTED, (2.0, 1.5, 4.0))])
def test_footprints_do_not_depend_on_the_boxes_own_axes(orientation, size):
    corners, has_size = footprint_of(Agent('car'), (1.0, 0.0, 0.7), orientation, size)
    # Front left, front right, rear right, rear left; the box is 1 m before the actor's origin.
    np.testing.assert_allclose(corners, [(3, 1), (3, -1), (-1, -1), (-1, 1)], atol=1e-12)
    assert has_size


def test_footprints_turn_with_the_actor():
    yaw = np.deg2rad(120)
    corners, _ = footprint_of(
        Agent('car', 10, 5, yaw), (10 + np.cos(yaw), 5 + np.sin(yaw), 0.7),
        (0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)), (4.0, 2.0, 1.5))
    np.testing.assert_allclose(corners, [(3, 1), (3, -1), (-1, -1), (-1, 1)], atol=1e-12)


@pytest.mark.parametrize(('kind', 'tags', 'size'), [
    (1, ('vehicle',), (4.6, 1.85)), (1, ('vehicle', 'Bus'), (12.0, 2.55)),
    (0, ('walker',), (0.6, 0.6)), (0, ('cone',), (0.5, 0.5))])
@pytest.mark.parametrize('box_', [
    (), ((np.nan, 0, 0), STRAIGHT, (4, 2, 1)), ((0, 0, 0), (0, 0, 0, 0), (4, 2, 1))])
def test_footprints_without_a_valid_box_are_those_of_the_class(kind, tags, size, box_):
    corners, has_size = footprint_of(Agent('a', kind=kind, tags=tags), *box_)
    assert np.ptp(corners, axis=0) == pytest.approx(size)
    assert not has_size
