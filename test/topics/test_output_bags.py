# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Every number of the outputs in a bag equals one computed from the JSON by other code."""

import bisect
import itertools
import json
import math
import re
import uuid

from budgets import one_of, tries
from message_store import read
import numpy as np
from paths import SAMPLE
import pytest
from raw_actors import center_and_size, frames_of, into, plus, turned, velocity_at
from real_recordings import FILES, path_of
from rosbags.rosbag2 import Reader

from state_sensor_ros.commands.cli import main
from state_sensor_ros.topics.objects import NAMESPACE

PERCEPTION = '/perception/object_recognition'
TRACKED = (f'{PERCEPTION}/ground_truth/objects', f'{PERCEPTION}/tracking/objects')
DETECTED, PREDICTED = f'{PERCEPTION}/detection/objects', f'{PERCEPTION}/objects'
KINEMATIC, ACCELERATION = '/localization/kinematic_state', '/localization/acceleration'
VELOCITY, STEERING = '/vehicle/status/velocity_status', '/vehicle/status/steering_status'
INITIALIZATION = '/localization/initialization_state'
CLOUD, GRID = '/perception/obstacle_segmentation/pointcloud', '/perception/occupancy_grid_map/map'
DERIVED, DETECTIONS = '/state_sensor/objects', '/state_sensor/detections'
LABELS, FRAME = '/state_sensor/label_info', '/state_sensor/frame'
NUMBERS = {'pedestrian': (7, 4, 'person'), 'car': (1, 6, 'car'), '': (0, 0, 'unknown')}
OPTIONS = ('--outputs', 'autoware,vision,derived_objects',
           '-p', 'autoware_objects:=[ground_truth, tracking, detection, predicted]')


def messages_of(bag):
    """Return type and messages of each topic, which are deserialized where they are used."""
    found = {}
    with Reader(bag) as reader:
        for connection, stamp_ns, data in reader.messages():
            _, messages = found.setdefault(connection.topic, (connection.msgtype, []))
            messages.append((stamp_ns, data))
    return found


class Converted:
    """A recording, its bag, and what the messages of each of its frames have to be."""

    def __init__(self, path, bag, *options):
        assert main(['convert', str(path), str(bag), *OPTIONS, *options]) == 0
        self.topics = messages_of(bag)
        self.frames = frames_of(json.loads(path.read_text()))

    def of(self, topic, rows=None):
        """Return number of the frame and message, of a topic with one message a frame."""
        messages = self.topics[topic][1]
        rows = list(range(len(self.frames))) if rows is None else rows
        assert len(messages) == len(rows)
        # The first frames have changes since the frame before; then one of several.
        chosen = {*range(3), *range(0, len(rows), len(rows) // tries(12) + 1)}
        return [(row, self.message(topic, i)) for i, row in enumerate(rows) if i in chosen]

    def message(self, topic, i):
        type_name, messages = self.topics[topic]
        stamp_ns, data = messages[i]
        message = read(data, type_name)
        if hasattr(message, 'header') or hasattr(message, 'stamp'):
            stamp = message.header.stamp if hasattr(message, 'header') else message.stamp
            assert stamp.sec * 10 ** 9 + stamp.nanosec == stamp_ns
        return message

    def ego(self, i):
        return next((actor for actor in self.frames[i][1].values() if 'ego' in actor.tags), None)

    def objects(self, i):
        """Return the actors of a frame that are objects, in its order."""
        return [actor for actor in self.frames[i][1].values() if 'ego' not in actor.tags
                and (actor.is_vehicle or actor.boxes or 'pedestrian' in actor.tags)]

    def change(self, i, value):
        """Return the change of a value of an actor since the frame before, by time."""
        def of(name):
            now_s, actors = self.frames[i]
            before_s, before = self.frames[i - 1] if i else (-math.inf, {})
            if name not in before or now_s - before_s > 1.0:
                return (0.0,) * 3
            return tuple((a - b) / (now_s - before_s) for a, b in zip(
                value(actors[name]), value(before[name]), strict=True))
        return of

    def acceleration(self, i):
        return self.change(i, lambda actor: velocity_at(actor, center_and_size(actor)[0]))


@pytest.fixture(scope='module', params=one_of([None, *FILES]),
                ids=lambda file: file or 'sample')
def converted(request, tmp_path_factory):
    path = SAMPLE if request.param is None else path_of(request.param)
    return Converted(path, tmp_path_factory.mktemp('bag') / 'bag')


def values(message, names='xyz'):
    return [getattr(message, name) for name in names]


def near(expected):
    # Positions of some 100 m, squares of quaternions: a few units in the last place.
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


def is_pose(pose, position, orientation):
    assert values(pose.position) == near(position)
    found = values(pose.orientation, 'xyzw')
    sign = math.copysign(1.0, sum(a * b for a, b in zip(found, orientation, strict=True)))
    assert [sign * number for number in found] == near(orientation)


def same_numbers(one, other):
    """Return whether two messages of one type have equal fields; arrays are no truth value."""
    return repr(one) == repr(other)


def class_of(actor):
    return NUMBERS['pedestrian' if 'pedestrian' in actor.tags else
                   'car' if actor.is_vehicle else '']


def test_actors_are_on_topics_of_their_own(converted):
    """The frame has velocities in global axes, with null as NaN; odometry those of the body."""
    at = {topic: {stamp_ns: i for i, (stamp_ns, _) in reversed(list(enumerate(messages)))}
          for topic, (_, messages) in converted.topics.items()}
    for i, message in converted.of('/tf'):
        header = message.transforms[0].header
        stamp_ns = header.stamp.sec * 10 ** 9 + header.stamp.nanosec
        whole = converted.message(FRAME, at[FRAME][stamp_ns])
        time_s, actors = converted.frames[i]
        assert whole.game_time == time_s
        for transform, state, actor in zip(message.transforms, whole.actors, actors.values(),
                                           strict=True):
            child = re.sub('[^A-Za-z0-9_]', '_', actor.name)
            topic = f'/state_sensor/actors/{child}/odometry'
            odometry = converted.message(topic, at[topic][stamp_ns])
            pose, twist = odometry.pose.pose, odometry.twist.twist
            assert state.name == actor.name
            assert (odometry.header.frame_id, odometry.child_frame_id) == (
                transform.header.frame_id, transform.child_frame_id) == ('map', child)
            is_pose(pose, actor.position, actor.orientation)
            assert values(twist.linear) == near(into(actor.orientation, actor.velocity))
            assert values(twist.angular) == near(into(actor.orientation, actor.rate))
            assert values(transform.transform.translation) == values(pose.position)
            assert same_numbers(transform.transform.rotation, pose.orientation)
            assert list(odometry.pose.covariance) == [
                1e-9 if k % 7 == 0 else 0.0 for k in range(36)]
            assert values(state.pose.position) == near(actor.position)
            assert np.nan_to_num(values(state.twist.linear)) == near(actor.velocity)
            assert np.nan_to_num(values(state.twist.angular)) == near(actor.rate)


@pytest.mark.parametrize('topic', TRACKED)
def test_tracked_objects(converted, topic):
    for i, message in converted.of(topic):
        assert message.header.frame_id == 'map'
        actors, acceleration = converted.objects(i), converted.acceleration(i)
        assert len(message.objects) == len(actors)
        for found, actor in zip(message.objects, actors, strict=True):
            center, size = center_and_size(actor)
            velocity, kinematics = velocity_at(actor, center), found.kinematics
            assert bytes(found.object_id.uuid) == uuid.uuid5(NAMESPACE, actor.name).bytes
            assert found.existence_probability == 1.0
            assert [(each.label, each.probability) for each in found.classification] == [
                (class_of(actor)[0], 1.0)]
            is_pose(kinematics.pose_with_covariance.pose, center, actor.orientation)
            twist = kinematics.twist_with_covariance.twist
            assert values(twist.linear) == near(into(actor.orientation, velocity))
            assert values(twist.angular) == near(into(actor.orientation, actor.rate))
            accel = kinematics.acceleration_with_covariance.accel
            assert values(accel.linear) == pytest.approx(
                into(actor.orientation, acceleration(actor.name)), rel=1e-6, abs=1e-6)
            assert kinematics.orientation_availability == 2
            assert kinematics.is_stationary is (math.hypot(*velocity) < 0.1)
            assert (found.shape.type, len(found.shape.footprint.points)) == (0, 0)
            assert values(found.shape.dimensions) == near(size)
            assert list(kinematics.pose_with_covariance.covariance[::7]) == [1e-9] * 6


def test_detected_and_predicted_objects_are_the_tracked_ones(converted):
    """As Autoware's perception_objects_converter makes one of the other, field by field."""
    for i, message in converted.of(DETECTED):
        tracked, predicted = (converted.message(topic, i) for topic in (TRACKED[0], PREDICTED))
        assert tracked.header == message.header == predicted.header
        for source, detected, found in zip(tracked.objects, message.objects, predicted.objects,
                                           strict=True):
            has, kinematics, initial = detected.kinematics, source.kinematics, found.kinematics
            assert (has.has_position_covariance, has.has_twist, has.has_twist_covariance,
                    has.orientation_availability) == (True, True, True, 2)
            assert same_numbers(found.object_id, source.object_id)
            for name in ('existence_probability', 'classification', 'shape'):
                assert same_numbers(getattr(detected, name), getattr(source, name))
                assert same_numbers(getattr(found, name), getattr(source, name))
            for name in ('pose_with_covariance', 'twist_with_covariance'):
                assert same_numbers(getattr(has, name), getattr(kinematics, name))
                assert same_numbers(getattr(initial, f'initial_{name}'), getattr(kinematics, name))


def test_derived_objects_are_in_the_axes_of_the_header(converted):
    topic = '/state_sensor/actors'
    arrays = [converted.message(topic, i) for i in range(len(converted.topics[topic][1]))]
    ids = {actor.name: actor.id for array in arrays for actor in array.actors}
    for i, message in converted.of(DERIVED):
        acceleration = converted.acceleration(i)
        for found, actor in zip(message.objects, converted.objects(i), strict=True):
            center, size = center_and_size(actor)
            assert (found.header.frame_id, found.header.stamp) == ('map', message.header.stamp)
            assert (found.id, found.detection_level, found.classification) == (
                ids[actor.name], 1, class_of(actor)[1])
            is_pose(found.pose, center, actor.orientation)
            assert values(found.twist.linear) == near(velocity_at(actor, center))
            assert np.nan_to_num(values(found.twist.angular)) == near(actor.rate)
            assert np.nan_to_num(values(found.accel.linear)) == pytest.approx(
                acceleration(actor.name), rel=1e-6, abs=1e-6)
            assert found.shape.type == 1
            assert list(found.shape.dimensions) == near(size)


def test_detections(converted):
    assert len(converted.topics[LABELS][1]) == 1
    names = {each.class_name for each in converted.message(LABELS, 0).class_map}
    for i, message in converted.of(DETECTIONS):
        for found, actor in zip(message.detections, converted.objects(i), strict=True):
            center, size = center_and_size(actor)
            result, = found.results
            assert (result.hypothesis.class_id, result.hypothesis.score) == (
                class_of(actor)[2], 1.0)
            assert result.hypothesis.class_id in names
            assert found.id == actor.name
            for pose in (result.pose.pose, found.bbox.center):
                is_pose(pose, center, actor.orientation)
            assert values(found.bbox.size) == near(size)


def base_link(actor):
    """Return the middle of the rear wheels in the axes of the actor."""
    rear = [actor.wheels.get(i, (None,))[0] for i in (2, 3)]
    if None in rear:
        return (0.0, 0.0, 0.0)
    return tuple((a + b) / 2.0 for a, b in zip(*rear, strict=True))


def at_base_link(actor):
    point = plus(actor.position, turned(actor.orientation, base_link(actor)))
    return point, velocity_at(actor, point)


def steering(actor):
    if not math.isnan(actor.steering):
        return actor.steering
    angles = [2.0 * math.atan2(z, w) if abs(w) > abs(y) else 2.0 * math.atan2(-x, y)
              for x, y, z, w in (actor.wheels[i][1] for i in (0, 1) if i in actor.wheels)]
    turns = [math.remainder(angle, 2.0 * math.pi) for angle in angles]
    if turns or not abs(speed := into(actor.orientation, actor.velocity)[0]) >= 1.0:
        return sum(turns) / len(turns) if turns else math.nan
    return math.atan(2.9 * actor.rate[2] / speed)


def test_ego_is_at_its_base_link(converted):
    with_ego = [i for i in range(len(converted.frames)) if converted.ego(i) is not None]
    assert with_ego
    assert len(converted.topics[CLOUD][1]) == len(converted.topics[GRID][1]) == len(with_ego)
    states = itertools.groupby(3 if i in with_ego else 1 for i in range(len(converted.frames)))
    assert [converted.message(INITIALIZATION, i).state for i in range(
        len(converted.topics[INITIALIZATION][1]))] == [state for state, _ in states]
    known = [i for i in with_ego if not math.isnan(steering(converted.ego(i)))]
    assert len(known) == len(converted.topics[STEERING][1])
    for i, found in converted.of(STEERING, known) if known else ():
        assert found.steering_tire_angle == pytest.approx(steering(converted.ego(i)), abs=1e-6)
    accelerations, speeds = (dict(converted.of(topic, with_ego))
                             for topic in (ACCELERATION, VELOCITY))
    for i, state in converted.of(KINEMATIC, with_ego):
        ego, acceleration, speed = converted.ego(i), accelerations[i], speeds[i]
        point, velocity = at_base_link(ego)
        own = into(ego.orientation, velocity)
        assert (state.header.frame_id, state.child_frame_id) == ('map', 'base_link')
        is_pose(state.pose.pose, point, ego.orientation)
        assert values(state.twist.twist.linear) == near(own)
        rates = into(ego.orientation, ego.rate)
        assert values(state.twist.twist.angular) == near(rates)
        assert acceleration.header.frame_id == speed.header.frame_id == 'base_link'
        change = converted.change(i, lambda actor: at_base_link(actor)[1])(ego.name)
        assert values(acceleration.accel.accel.linear) == pytest.approx(
            into(ego.orientation, change), rel=1e-6, abs=1e-6)
        assert [speed.longitudinal_velocity, speed.lateral_velocity, speed.heading_rate] == \
            pytest.approx([own[0], own[1], rates[2]], rel=1e-6, abs=1e-6)


def pose_at(frames, name, time_s):
    """Return center and orientation of an actor between two frames, None where it is absent."""
    i = max(bisect.bisect(frames, time_s, key=lambda frame: frame[0]) - 2, 0)
    for (first_s, first), (last_s, last) in itertools.pairwise(frames[i:i + 4]):
        if first_s <= time_s + 1e-5 and (time_s < last_s or last_s == frames[-1][0]):
            if time_s < first_s or abs(time_s - first_s) < 1e-9:
                last, last_s = first, first_s + 1.0
            if time_s > last_s + 1e-5 or name not in first or name not in last:
                return None
            share = (time_s - first_s) / (last_s - first_s)
            one, other = first[name], last[name]
            center = plus(center_and_size(one)[0], plus(
                center_and_size(other)[0], center_and_size(one)[0], -1.0), share)
            a, b = one.orientation, other.orientation
            cosine = sum(x * y for x, y in zip(a, b, strict=True))
            if cosine < 0.0:
                b, cosine = tuple(-x for x in b), -cosine
            angle = math.acos(min(cosine, 1.0))
            if angle < 1e-6:
                return center, a
            return center, tuple(
                (math.sin((1.0 - share) * angle) * x + math.sin(share * angle) * y)
                / math.sin(angle) for x, y in zip(a, b, strict=True))
    return None


def test_predicted_path_is_where_the_object_will_be(converted):
    frames = converted.frames
    for i in range(0, len(frames), len(frames) // 10):
        message, now_s = converted.message(PREDICTED, i), frames[i][0]
        for found, actor in zip(message.objects, converted.objects(i), strict=True):
            path, = found.kinematics.predicted_paths
            assert (path.time_step.sec, path.time_step.nanosec, path.confidence) == (
                0, 500_000_000, 1.0)
            longest = 31 if actor.is_vehicle else 21
            expected = []
            for k in range(longest):
                pose = pose_at(frames, actor.name, now_s + 0.5 * k)
                if pose is None:
                    break
                expected.append(pose)
            assert len(path.path) == len(expected)
            for pose, (center, orientation) in zip(path.path, expected, strict=True):
                assert values(pose.position) == pytest.approx(center, abs=1e-6)
                found_xyzw = values(pose.orientation, 'xyzw')
                assert abs(sum(a * b for a, b in zip(found_xyzw, orientation, strict=True))) == \
                    pytest.approx(1.0, abs=1e-9)
            center, _ = center_and_size(actor)
            is_pose(path.path[0], center, actor.orientation)
            is_pose(found.kinematics.initial_pose_with_covariance.pose, center, actor.orientation)


def test_filters_and_base_link_of_options(tmp_path, capsys):
    converted = Converted(SAMPLE, tmp_path / 'bag', '-p', 'object_classes:=[car]', '-p',
                          'object_range:=50', '-p', 'base_link_xyz:=[-1.5, 0.0, 0.25]', '-p',
                          'ego_frame:=rear')
    n_objects, rows = 0, range(0, len(converted.frames), 3)
    for i in rows:
        message = converted.message(TRACKED[0], i)
        ego = converted.ego(i)
        expected = [actor.name for actor in converted.objects(i) if class_of(actor)[2] == 'car'
                    and math.dist(center_and_size(actor)[0], ego.position) <= 50.0]
        assert [bytes(each.object_id.uuid) for each in message.objects] == [
            uuid.uuid5(NAMESPACE, name).bytes for name in expected]
        n_objects += len(expected)
    assert 0 < n_objects < sum(len(converted.objects(i)) for i in rows)
    for i, state in converted.of(KINEMATIC):
        ego = converted.ego(i)
        point = plus(ego.position, turned(ego.orientation, (-1.5, 0.0, 0.25)))
        assert state.child_frame_id == 'rear'
        is_pose(state.pose.pose, point, ego.orientation)
        odometry = converted.message('/state_sensor/ego/odometry', i)
        is_pose(odometry.pose.pose, point, ego.orientation)
        assert values(odometry.twist.twist.linear) == near(
            into(ego.orientation, velocity_at(ego, point)))
        transform, = [each.transform for each in converted.message('/tf', i).transforms
                      if each.child_frame_id == 'rear']
        assert values(transform.translation) == near(point)
    assert capsys.readouterr().err == ''
