# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Known perturbations move the numbers that they should by the amount that mathematics says."""

import copy

from budgets import one_of
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from stack_bags import (
    changed,
    DERIVED,
    DETECTION,
    EGO,
    messages_of,
    N_CARS,
    N_FRAMES,
    PREDICTED,
    TRACKING,
    VISION,
    write_bag,
)

PERFECT = {'ap': 1.0, 'ate': 0.0, 'ase': 0.0, 'aoe': 0.0, 'ave': 0.0, 'recall': 1.0,
           'precision': 1.0, 'hota': 1.0, 'mota': 1.0, 'idf1': 1.0}


@pytest.fixture
def evaluated(tmp_path, evaluate, stack):
    """Return a function that changes the stack's messages and returns the numbers in a row."""
    def numbers_of(change, *options, topic=TRACKING):
        bag = changed(stack, tmp_path / 'changed', change, (topic,))
        result = evaluate(bag, *options)
        car = result['detection']['classes']['car']
        return {**{name: car[name] for name in PERFECT if name in car}, 'ap': car['ap']['2.0'],
                **result.get('tracking', {}), 'result': result}
    return numbers_of


def others_are_perfect(numbers, *moved):
    for name, value in PERFECT.items():
        if name not in moved and name in numbers:
            assert numbers[name] == pytest.approx(value, abs=1e-6), name


def test_false_objects(evaluated):
    """Beside N cars two false ones, far away and less likely: precision N / (N + 2)."""
    def with_false_objects(message, log_ns):
        for i in range(2):
            false = copy.deepcopy(message.objects[0])
            false.existence_probability = 0.5
            false.object_id.uuid = np.full(16, 200 + i, np.uint8)
            false.kinematics.pose_with_covariance.pose.position.x += 1e5 * (i + 1)
            message.objects.append(false)
    numbers = evaluated(with_false_objects)
    assert numbers['precision'] == pytest.approx(N_CARS / (N_CARS + 2.0), abs=1e-12)
    assert numbers['mota'] == pytest.approx(1.0 - 2.0 / N_CARS, abs=1e-9)
    assert numbers['idf1'] == pytest.approx(N_CARS / (N_CARS + 1.0), abs=1e-9)
    # Of 90 precisions the last one is that of all detections.
    assert numbers['ap'] == pytest.approx(1.0 - (2.0 / (N_CARS + 2.0)) / (0.9 * 90.0), abs=1e-9)
    others_are_perfect(numbers, 'precision', 'mota', 'idf1', 'hota', 'ap')


def test_turned_boxes(evaluated):
    """The twist is in the axes of the object: turned back, the velocity stays."""
    def turned(message, log_ns):
        for each in message.objects:
            orientation = each.kinematics.pose_with_covariance.pose.orientation
            before = rotation(orientation)
            put(orientation, (Rotation.from_euler('z', 0.3) * before).as_quat())
            linear = each.kinematics.twist_with_covariance.twist.linear
            put(linear, rotation(orientation).inv().apply(before.apply(vector(linear))))
    numbers = evaluated(turned)
    assert numbers['aoe'] == pytest.approx(0.3, abs=1e-6)
    others_are_perfect(numbers, 'aoe')


def test_wrong_class(evaluated):
    """A third of the cars is called a truck: cars are missed, and trucks are false."""
    def wrong(message, log_ns):
        for each in message.objects[:N_CARS // 3]:
            each.classification[0].label = 2
    numbers = evaluated(wrong)
    assert numbers['recall'] == pytest.approx(2.0 / 3.0)
    others_are_perfect(numbers, 'recall', 'ap')
    truck = numbers['result']['detection']['classes']['truck']
    assert (truck['truths'], truck['detections'], truck['recall']) == (
        0, N_CARS // 3 * N_FRAMES, None)
    assert list(truck['ap'].values()) == [None] * 4
    # The mean is that of the classes with ground-truth objects.
    assert numbers['result']['detection']['map'] == pytest.approx(numbers['ap'])


def test_prediction_that_is_off_to_a_side(tmp_path, evaluate, stack):
    """A constant offset of a path: both errors are the offset, and above 2 m a miss."""
    for offset_m, miss_rate in ((0.7, 0.0), (2.5, 1.0)):
        def off(message, log_ns, offset_m=offset_m):
            for each in message.objects:
                for pose in each.kinematics.predicted_paths[0].path:
                    pose.position.y += offset_m
        bag = changed(stack, tmp_path / f'bag{offset_m}', off, (PREDICTED,))
        result = evaluate(bag)
        assert result['detection']['map'] == pytest.approx(1.0, abs=1e-9)
        for horizon in ('3.0', '5.0'):
            scores = result['prediction'][horizon]
            assert scores['min_ade'] == pytest.approx(offset_m, abs=1e-6)
            assert scores['min_fde'] == pytest.approx(offset_m, abs=1e-6)
            assert scores['miss_rate'] == miss_rate


def test_ego_that_is_off(tmp_path, evaluate, stack):
    def off(message, log_ns):
        message.pose.pose.position.x += 0.3
        message.pose.pose.position.y -= 0.4
        message.twist.twist.linear.x += 0.25
    bag = changed(stack, tmp_path / 'bag', off, (EGO,))
    ego = evaluate(bag)['ego']
    assert ego['ate_rmse'] == ego['ate']['translation']['rmse'] == pytest.approx(0.5, abs=1e-9)
    assert ego['rpe_rmse'] < 1e-9
    assert ego['speed_error']['bias'] == pytest.approx(0.25, abs=1e-9)
    assert ego['ate']['translation']['sse'] == pytest.approx(
        ego['longitudinal_error']['sse'] + ego['lateral_error']['sse'], rel=0.01)
    aligned = evaluate(bag, '--align', 'se3')['ego']
    assert aligned['ate_rmse'] < 1e-6
    assert (aligned['alignment'], aligned['scale']) == ('se3', 1.0)
    assert abs(evaluate(bag, '--align', 'sim3')['ego']['scale'] - 1.0) < 1e-6


def test_ego_in_another_child_frame(tmp_path, evaluate, stack):
    """Odometry of a sensor beside the ego that looks to the left; its place is on /tf_static."""
    place, turn = np.array((1.0, -0.25, 0.5)), Rotation.from_euler('z', 90, degrees=True)

    def moved():
        for _, type_name, log_ns, message in messages_of(stack, ('/tf',)):
            [first] = message.transforms[:1]
            first.header.frame_id, first.child_frame_id = 'base_link', 'gnss'
            put(first.transform.translation, place)
            put(first.transform.rotation, turn.as_quat())
            message.transforms = [first]
            yield '/tf_static', type_name, log_ns, message
            break
        for topic, type_name, log_ns, message in messages_of(stack, (EGO,)):
            message.child_frame_id = 'gnss'
            pose, twist = message.pose.pose, message.twist.twist
            axes, rate = rotation(pose.orientation), vector(twist.angular)
            put(pose.position, vector(pose.position) + axes.apply(place))
            put(pose.orientation, (axes * turn).as_quat())
            put(twist.linear, turn.inv().apply(vector(twist.linear) + np.cross(rate, place)))
            put(twist.angular, turn.inv().apply(rate))
            yield topic, type_name, log_ns, message
    ego = evaluate(write_bag(tmp_path / 'bag', moved()))['ego']
    assert max(ego['ate_rmse'], ego['rpe_rmse'], ego['speed_error']['max']) < 1e-9


@pytest.mark.parametrize(('child', 'is_named'), [('gnss', True), ('', False)])
def test_ego_in_an_unknown_child_frame(tmp_path, evaluate, stack, child, is_named):
    def renamed(message, log_ns):
        message.child_frame_id = child
    bag = changed(stack, tmp_path / 'bag', renamed, (EGO,))
    evaluate(bag)
    assert evaluate.warnings == is_named * (
        f'warning: {bag}: {EGO}: the bag has no transform from base_link to {child}, which is '
        'evaluated as if it were base_link\n')


@pytest.mark.parametrize('topic', one_of([DETECTION, DERIVED, VISION]))
def test_objects_in_base_link(tmp_path, evaluate, stack, topic):
    """Objects in the ego's frame are brought back by the bag's own TF."""
    egos = {log_ns: message.pose.pose for _, _, log_ns, message in messages_of(stack, (EGO,))}

    def moved():
        for name, type_name, log_ns, message in messages_of(stack, (topic,)):
            pose = egos[log_ns]
            message.header.frame_id = 'base_link'
            for each in getattr(message, 'objects', None) or message.detections:
                into_frame(each, pose, topic)
            yield name, type_name, log_ns, message
        for name, type_name, log_ns, message in messages_of(stack, ('/tf',)):
            [first] = message.transforms[:1]
            first.header.frame_id, first.child_frame_id = 'map', 'base_link'
            pose = egos[log_ns]
            put(first.transform.translation, vector(pose.position))
            first.transform.rotation = pose.orientation
            message.transforms = [first]
            yield name, type_name, log_ns, message
    bag = write_bag(tmp_path / 'bag', sorted(moved(), key=lambda each: each[2]))
    result = evaluate(bag, '--topic', topic)
    assert result['detection']['map'] == pytest.approx(1.0, abs=1e-9)
    car = result['detection']['classes']['car']
    assert car['ate'] < 1e-6
    assert car['aoe'] < 1e-6
    assert car['ave'] is None if topic == VISION else car['ave'] < 1e-6


def vector(values):
    return np.array((values.x, values.y, values.z))


def rotation(values):
    return Rotation.from_quat((values.x, values.y, values.z, values.w))


def put(target, values):
    for axis, value in zip('xyzw', values.tolist(), strict=False):
        setattr(target, axis, value)


def into_frame(each, frame, topic):
    """Bring an object from the global frame into that of ``frame``."""
    back = rotation(frame.orientation).inv()
    pose = each.bbox.center if topic == VISION else each.pose if topic == DERIVED \
        else each.kinematics.pose_with_covariance.pose
    put(pose.position, back.apply(vector(pose.position) - vector(frame.position)))
    put(pose.orientation, (back * rotation(pose.orientation)).as_quat())
    if topic == DERIVED:
        put(each.twist.linear, back.apply(vector(each.twist.linear)))
