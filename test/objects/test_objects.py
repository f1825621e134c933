# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Objects of frames: reference points, axes, sizes, classes, filters, accelerations."""

import itertools
import math

from encode_world import box_at, boxes_of, make_frame
import numpy as np
import pytest
from raw_actors import cross, into, product, turned

from state_sensor_ros.classes import CLASSES
from state_sensor_ros.naming import Registry
from state_sensor_ros.objects.box_bounds import box_of
from state_sensor_ros.objects.object_maker import ObjectMaker
from state_sensor_ros.rotations import quaternion_from_rpy
from state_sensor_ros.settings import Settings

# Axes of a box x, y, z that are the actor's y, z, x: width, height, length.
PERMUTED = (0.5, 0.5, 0.5, 0.5)
LEVEL = (0.0, 0.0, 0.0, 1.0)
# On a slope, on a bank, on both while turned, backward.
ATTITUDES = ((0.0, 0.0, 0.0), (0.0, -0.2, 0.0), (0.15, 0.0, 0.0), (0.1, 0.25, 2.5),
             (0.0, 0.0, math.pi))


def quaternion(*roll_pitch_yaw):
    return tuple(quaternion_from_rpy(np.array(roll_pitch_yaw)).tolist())


def row(position=(0.0, 0.0, 0.0), orientation=LEVEL, velocity=(0.0, 0.0, 0.0),
        rate=(0.0, 0.0, 0.0)):
    return (*position, *orientation, *velocity, *rate)


class World:
    """A registry and a maker of objects over several frames."""

    def __init__(self, **settings):
        self.registry, self.maker = Registry(), ObjectMaker(Settings(**settings))

    def objects(self, rows, names=('car',), game_time=1.0, **parts):
        frame = make_frame(names, rows, **parts)
        object.__setattr__(frame, 'game_time', game_time)
        return self.maker.of(frame, self.registry.update(frame))


def objects_of(rows, names=('car',), **parts):
    return World().objects(rows, names, **parts)


@pytest.mark.parametrize('attitude', ATTITUDES)
def test_size_is_along_the_axes_of_the_actor(attitude):
    own = quaternion(*attitude)
    offset = turned(own, (0.5, 0.1, 0.75))
    box = box_at(0, np.add((10.0, 20.0, 3.0), offset), product(own, PERMUTED), (1.8, 1.5, 4.5))
    found = objects_of([row((10.0, 20.0, 3.0), own)], boxes=boxes_of(box))
    assert found.sizes[0] == pytest.approx((4.5, 1.8, 1.5))
    assert found.poses[0] == pytest.approx((*np.add((10.0, 20.0, 3.0), offset), *own))


def test_turned_box_gives_the_box_around_it():
    angle = math.radians(30.0)
    found = objects_of([row()], boxes=boxes_of(
        box_at(0, (0.0, 0.0, 1.0), quaternion(0.0, 0.0, angle), (4.0, 2.0, 1.0))))
    assert found.sizes[0] == pytest.approx((
        4.0 * math.cos(angle) + 2.0 * math.sin(angle),
        4.0 * math.sin(angle) + 2.0 * math.cos(angle), 1.0))
    assert found.poses[0, 3:] == pytest.approx(LEVEL)


def test_largest_of_several_boxes_counts():
    boxes = boxes_of(box_at(0, (1.0, 0.0, 0.0), LEVEL, (1.0, 1.0, 1.0)),
                     box_at(0, (2.0, 0.0, 0.0), LEVEL, (3.0, 2.0, 1.0)),
                     box_at(0, (3.0, 0.0, 0.0), LEVEL, (np.nan, 9.0, 9.0)),
                     box_at(1, (4.0, 0.0, 0.0), LEVEL, (0.5, 0.5, 0.5)))
    found = objects_of([row(), row()], ('truck', 'cone'), boxes=boxes, kinds=(1, 0),
                       tags=(('truck',), ()))
    assert found.sizes.tolist() == [[3.0, 2.0, 1.0], [0.5, 0.5, 0.5]]
    assert found.poses[:, 0].tolist() == [2.0, 4.0]


@pytest.mark.parametrize('attitude', ATTITUDES)
@pytest.mark.parametrize(('tags', 'size'), [
    (('vehicle',), (4.6, 1.85, 1.5)), (('Pedestrian',), (0.6, 0.6, 1.75)),
    (('bus', 'vehicle'), (12.0, 2.55, 3.2))])
def test_object_without_a_box_stands_on_its_origin(attitude, tags, size):
    own = quaternion(*attitude)
    found = objects_of([row((1.0, 2.0, 3.0), own)], tags=(tags,))
    assert found.sizes[0] == pytest.approx(size)
    assert found.poses[0, :3] == pytest.approx(
        np.add((1.0, 2.0, 3.0), turned(own, (0.0, 0.0, size[2] / 2.0))))


@pytest.mark.parametrize('attitude', ATTITUDES)
@pytest.mark.parametrize('speed', [12.0, 0.0, -3.0])
def test_velocity_is_that_of_the_center_in_the_axes_of_the_object(attitude, speed):
    own, rate = quaternion(*attitude), (0.1, -0.2, 0.5)
    arm, velocity = turned(own, (1.0, 0.0, 0.7)), turned(own, (speed, 0.0, 0.0))
    found = objects_of([row((0.0, 0.0, 0.0), own, velocity, rate)],
                       boxes=boxes_of(box_at(0, arm, own, (4.0, 2.0, 1.5))))
    expected = np.add(velocity, cross(rate, arm))
    assert found.twists[0] == pytest.approx((*expected, *rate))
    in_own = found.own_motion[0][0]
    assert in_own[:3] == pytest.approx(into(own, expected))
    # A reversing car moves against its own x axis; it is not turned.
    assert in_own[0] == pytest.approx(
        speed + cross(into(own, rate), (1.0, 0.0, 0.7))[0])
    assert found.poses[0, 3:] == pytest.approx(own)


def test_unknown_velocity_is_unknown_along_the_axes_that_it_reaches():
    found = objects_of([row(velocity=(1.0, np.nan, 2.0), rate=(np.nan, 0.0, 0.5),
                            orientation=quaternion(0.0, 0.02, math.radians(90.0)))])
    assert np.isnan(found.twists[0]).tolist() == [False, True, False, True, False, False]
    assert np.isnan(found.own_motion[0][0]).tolist() == [True, False, False, False, True, False]


def test_ego_is_no_object_and_bad_poses_are_dropped():
    rows = [row(), row(), row((np.nan, 0.0, 0.0)), row(orientation=(0.0, 0.0, 0.0, 0.0))]
    found = objects_of(rows, ('a', 'me', 'b', 'c'), tags=(
        ('vehicle',), ('vehicle', 'ego'), ('vehicle',), ('vehicle',)))
    assert found.rows.tolist() == [0]


@pytest.mark.parametrize(('kind', 'tags', 'name'), [
    (0, ('walker',), 'person'), (0, ('PERSON', 'vehicle'), 'person'), (1, ('cyclist',), 'cyclist'),
    (1, ('bicycle', 'car'), 'cyclist'), (1, ('motorcycle',), 'motorcycle'), (1, ('bus',), 'bus'),
    (1, ('truck', 'trailer'), 'truck'), (0, ('trailer',), 'trailer'), (0, ('car',), 'car'),
    (1, (), 'car'), (1, ('cars', 'pedestrians'), 'car')])
def test_first_class_with_a_tag_counts(kind, tags, name):
    found = objects_of([row()], kinds=(kind,), tags=(tags,))
    assert [CLASSES[class_].name for class_ in found.classes] == [name]


def test_range_is_from_the_origin_of_the_ego_to_the_center():
    rows = [row((100.0, 0.0, 0.0)), row((110.0, 0.0, 0.0)), row((111.0, 0.0, 0.0))]
    boxes = boxes_of(box_at(1, (109.0, 0.0, 0.0)), box_at(2, (111.5, 0.0, 0.0)))
    parts = {'tags': (('ego',), ('vehicle',), ('vehicle',)), 'boxes': boxes}
    assert World(object_range=10.0).objects(rows, ('me', 'a', 'b'), **parts).rows.tolist() == [1]
    parts['tags'] = (('vehicle',),) * 3
    assert len(World(object_range=10.0).objects(rows, ('me', 'a', 'b'), **parts).rows) == 3


def test_acceleration_is_the_difference_of_two_frames():
    world = World()
    first = world.objects([row(velocity=(1.0, 0.0, 0.0))], game_time=2.0)
    assert np.isnan(first.accelerations).all()
    second = world.objects([row(velocity=(2.0, 3.0, 0.0))], game_time=2.5)
    assert second.accelerations[0] == pytest.approx((2.0, 6.0, 0.0, 0.0, 0.0, 0.0))
    # A new actor has none, the others keep theirs in whatever order they are.
    third = world.objects([row(), row(velocity=(4.0, 3.0, 0.0))], ('new', 'car'), game_time=3.0)
    assert np.isnan(third.accelerations[0]).all()
    assert third.accelerations[1].tolist() == [4.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    after_a_gap = world.objects([row(), row()], ('new', 'car'), game_time=4.25)
    assert np.isnan(after_a_gap.accelerations).all()
    world.objects([row()], game_time=4.5)
    world.maker.restart()
    restarted = world.objects([row(velocity=(9.0, 0.0, 0.0))], game_time=4.6)
    assert np.isnan(restarted.accelerations).all()


def test_forward_speed_alone_is_along_the_axis_of_the_actor():
    own = quaternion(0.0, -0.1, 1.0)
    found = objects_of([row(orientation=own, velocity=(np.nan,) * 3, rate=(np.nan,) * 3)],
                       forward_speed=np.array([5.0]))
    assert found.own_motion[0][0] == pytest.approx((5.0, 0.0, 0.0, *(np.nan,) * 3), nan_ok=True)


def test_corners_of_boxes_are_in_the_frame_of_the_actor():
    own = quaternion(0.1, 0.2, 3.0)
    center = np.add((5.0, 6.0, 7.0), turned(own, (1.0, 0.0, 0.5)))
    frame = make_frame(kinematics=[row((5.0, 6.0, 7.0), own)], boxes=boxes_of(
        box_at(0, center, product(own, PERMUTED), (2.0, 1.0, 4.0))))
    box = box_of(frame, 0)
    assert box.corners().max(axis=0) == pytest.approx((3.0, 1.0, 1.0))
    assert box.corners().min(axis=0) == pytest.approx((-1.0, -1.0, 0.0))
    frame = make_frame(kinematics=[row()], boxes=boxes_of(
        box_at(0, (0.0, 0.0, 0.0), quaternion(0.0, 0.0, 0.5), (4.0, 2.0, 1.0))))
    box = box_of(frame, 0)
    assert {tuple(np.round(corner, 9)) for corner in box.corners()} == {
        tuple(np.round(turned(quaternion(0.0, 0.0, 0.5), (x, y, z)), 9))
        for x, y, z in itertools.product((-2.0, 2.0), (-1.0, 1.0), (-0.5, 0.5))}
    assert box_of(make_frame(), 0) is None
