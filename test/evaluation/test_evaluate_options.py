# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Options of `state_sensor evaluate`: IoU, areas, the ego of /tf, patterns of topics."""

import math

import numpy as np
import pytest
from stack_bags import changed, EGO, messages_of, N_CARS, TRACKING, typestore

from state_sensor_ros.classes import CLASSES
from state_sensor_ros.commands.cli import main
from state_sensor_ros.evaluation.detection_metrics import score_classes
from state_sensor_ros.evaluation.frame_record import FrameRecorder
from state_sensor_ros.evaluation.iou_metrics import ious, IouScorer
from state_sensor_ros.evaluation.matching import (
    EVALUATED_CLASSES,
    EvaluatedFrame,
    match,
    ObjectSet,
)
from state_sensor_ros.evaluation.resampling import time_blocks
from state_sensor_ros.evaluation.stack_messages import DERIVED, objects_in, VISION

TF = 'tf2_msgs/msg/TFMessage'


def boxes(random, n_boxes):
    states = np.zeros((n_boxes, 9))
    states[:, :3] = random.uniform(-3.0, 3.0, (n_boxes, 3)) * (1.0, 1.0, 0.3)
    states[:, 3] = random.uniform(-4.0, 4.0, n_boxes)
    states[:, 6:] = random.uniform(0.5, 6.0, (n_boxes, 3))
    return states


def test_ious_are_those_of_shapely():
    affinity, geometry = (pytest.importorskip(f'shapely.{name}')
                          for name in ('affinity', 'geometry'))
    random = np.random.default_rng(0)
    first, second = boxes(random, 600), boxes(random, 600)
    # Equal ones, moved along an edge, and turned by a right angle.
    second[:60] = first[:60]
    second[20:40, 0] += 0.5
    second[40:60, 3] += math.pi / 2
    origin = np.array((5e5, 4e6, *[0.0] * 7))
    flat, solid = ious(first + origin, second + origin)
    for i, pair in enumerate(zip(first, second, strict=True)):
        one, other = (affinity.translate(affinity.rotate(
            geometry.box(-box[6] / 2, -box[7] / 2, box[6] / 2, box[7] / 2), box[3], (0, 0),
            use_radians=True), *box[:2]) for box in pair)
        shared = one.intersection(other).area
        assert flat[i] == pytest.approx(shared / one.union(other).area, abs=1e-8)
        height = min(box[2] + box[8] / 2 for box in pair) - max(
            box[2] - box[8] / 2 for box in pair)
        volume = shared * max(height, 0.0)
        assert solid[i] == pytest.approx(
            volume / (one.area * pair[0][8] + other.area * pair[1][8] - volume), abs=1e-8)
    assert ious(first[:1] * np.nan, second[:1]) == ([0.0], [0.0])


def test_precision_by_iou_worked_out_by_hand():
    """Of four cars one is missed, one a fifth of its length off, one turned by 18 degrees."""
    truth = np.zeros((4, 9))
    truth[:, 0], truth[:, 6:] = 20.0 * np.arange(4), (4.0, 4.0, 2.0)
    stack = np.vstack((truth[:3], truth[:1] + (0, 9, 0, 0, 0, 0, 0, 0, 0)))
    stack[1, 0] += 0.8
    stack[2, 3] = math.pi / 10
    cars = np.full(4, EVALUATED_CLASSES.index('car'))
    truth, stack = (ObjectSet(tuple('abcd'), cars, states, scores) for states, scores in (
        (truth, np.ones(4)), (stack, np.array((0.9, 0.8, 0.7, 0.95)))))
    scorer = IouScorer([('bev', 0.5), ('bev', 0.7), ('3d', 0.5)])
    scorer.add(EvaluatedFrame(0, stack, truth, match(stack, truth), np.zeros(3)))
    found = scorer.finish().scores()['car']
    # Precisions 0 (false), 1/2, 2/3, 3/4: the greatest from each recall on is 3/4 up to 75 %.
    assert found['iou_bev']['0.5']['ap'] == pytest.approx(0.75 * 0.75)
    assert found['iou_bev']['0.5']['aph'] == pytest.approx(0.75 * (3.0 - 0.1) / 4.0)
    # IoU of the second one is 3.2 / 4.8: two matches are left, precisions 1/2, 1/3, 2/4.
    assert found['iou_bev']['0.7']['ap'] == pytest.approx(0.5 * 0.5)
    assert found['iou_3d'] == {'0.5': found['iou_bev']['0.5']}


def cars(states, scores):
    return ObjectSet(tuple(map(str, range(len(states)))),
                     np.full(len(states), EVALUATED_CLASSES.index('car')), states, scores)


def detected(random):
    """Return 12 frames of cars, and what a stack detects of them."""
    frames = []
    for _ in range(12):
        truth = boxes(random, 8)
        truth[:, :2] *= 3.0
        truth[:, 6:] = (4.5, 2.0, 1.5)
        stack = truth[random.random(8) < 0.8] + random.normal(0.0, 1.0, (1, 9)) * (
            0.2, 0.2, 0.1, 0.2, 0.0, 0.0, 0.2, 0.1, 0.1)
        stack[random.random(len(stack)) < 0.2, 3] += math.pi
        stack = np.vstack((stack, boxes(random, 2) * 2.0))
        frames.append((cars(stack, random.permutation(len(stack)) / 20.0 + random.random() / 50),
                       cars(truth, np.ones(8))))
    return frames


def published(frames, threshold, geometry, affinity):
    """
    Return AP and APH as KITTI, at 40 recalls, and as the paper of Waymo, integrals over recall.

    Geiger et al. (2012) with the 40 recalls of Simonelli et al. (2019), Sun et al. (2020).
    """
    found = []
    for stack, truth in frames:
        outlines, others = ([affinity.translate(affinity.rotate(geometry.box(
            -box[6] / 2, -box[7] / 2, box[6] / 2, box[7] / 2), box[3], (0, 0), use_radians=True),
            *box[:2]) for box in objects.states] for objects in (stack, truth))
        free = set(range(len(others)))
        for i in np.argsort(-stack.scores):
            most, nearest = 0.0, None
            for j in sorted(free):
                iou = outlines[i].intersection(others[j]).area / outlines[i].union(others[j]).area
                if iou > most:
                    most, nearest = iou, j
            if most >= threshold:
                free.remove(nearest)
                turn = abs(stack.states[i, 3] - truth.states[nearest, 3]) % (2 * math.pi)
                found.append((stack.scores[i], 1.0 - min(turn, 2 * math.pi - turn) / math.pi))
            else:
                found.append((stack.scores[i], None))
    n_truths = sum(len(truth.ids) for _, truth in frames)
    recalls, precisions, weighted, n_right, right = [], [], [], 0, 0.0
    for number, (_, heading) in enumerate(sorted(found, reverse=True), 1):
        n_right, right = n_right + (heading is not None), right + (heading or 0.0)
        recalls.append(n_right / n_truths)
        precisions.append(n_right / number)
        weighted.append(right / number)

    def greatest(values, recall):
        return max((value for value, at in zip(values, recalls, strict=True)
                    if at >= recall - 1e-9), default=0.0)
    kitti = [sum(greatest(values, i / 40) for i in range(1, 41)) / 40
             for values in (precisions, weighted)]
    waymo = [sum(greatest(values, i / n_truths) for i in range(1, n_truths + 1)) / n_truths
             for values in (precisions, weighted)]
    return kitti, waymo


@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize('threshold', [0.3, 0.5, 0.7])
def test_precision_by_iou_is_that_of_the_published_definitions(seed, threshold):
    """Waymo's integral differs by less than a step of the 40 recalls."""
    affinity, geometry = (pytest.importorskip(f'shapely.{name}')
                          for name in ('affinity', 'geometry'))
    frames = detected(np.random.default_rng(seed))
    scorer = IouScorer([('bev', threshold)])
    for i, (stack, truth) in enumerate(frames):
        scorer.add(EvaluatedFrame(i, stack, truth, match(stack, truth), np.zeros(3)))
    found = scorer.finish().scores()['car']['iou_bev'][f'{threshold:g}']
    kitti, waymo = published(frames, threshold, geometry, affinity)
    assert [found['ap'], found['aph']] == pytest.approx(kitti, abs=1e-9)
    assert [found['ap'], found['aph']] == pytest.approx(waymo, abs=1 / 40)
    assert 0.0 < found['aph'] < found['ap'] < 1.0


def test_warnings_of_what_is_wrong(tmp_path, drive, stack, capsys):
    def wrong(message, log_ns):
        if hasattr(message, 'objects'):
            message.objects[0].existence_probability = math.nan
            message.objects[0].shape.dimensions.x = -4.0
        else:
            message.pose.pose.position.y += 25.0
    bag = changed(stack, tmp_path / 'bag', wrong, (TRACKING, EGO))
    n_messages = sum(1 for _ in messages_of(stack, (TRACKING,)))
    assert main(['evaluate', str(drive), str(bag), '-q']) == 0
    errors = capsys.readouterr().err
    assert f'{n_messages} objects: a negative size counts as unknown' in errors
    assert 'half of the positions of the ego are more than 25 m off' in errors


def test_many_bags_have_a_row_of_means(tmp_path, drive, stack, capsys):
    half = changed(stack, tmp_path / 'half', lambda message, log_ns: message.objects.__delitem__(
        slice(N_CARS // 2, None)))
    assert main(['evaluate', str(drive), str(stack), str(half), '--topic', TRACKING,
                 '--jobs', '1']) == 0
    heading, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert heading[:4] == ['bag', 'mAP', 'NDS', 'HOTA']
    assert [row[0] for row in rows][-1] == 'mean'
    for column in range(1, 6):
        numbers = [row[column] for row in rows]
        if '-' not in numbers:
            assert float(numbers[2]) == pytest.approx(
                (float(numbers[0]) + float(numbers[1])) / 2.0, abs=1e-4)


def written_scene(nuscenes, frames, type_name, stamps_ns):
    """Return messages of a type with the boxes of the frames of a scene of nuScenes."""
    types = typestore().types
    point, quaternion, vector = (types[f'geometry_msgs/msg/{name}'] for name in (
        'Point', 'Quaternion', 'Vector3'))
    for stamp_ns, rows in zip(stamps_ns, nuscenes.written(frames), strict=True):
        header = types['std_msgs/msg/Header'](types['builtin_interfaces/msg/Time'](
            *divmod(stamp_ns, 10 ** 9)), 'map')
        found = []
        for i, (name, score, x, y, z, yaw, vx, vy, width, length, height) in enumerate(rows):
            pose = types['geometry_msgs/msg/Pose'](point(x, y, z), quaternion(
                0.0, 0.0, math.sin(yaw / 2.0), math.cos(yaw / 2.0)))
            twist = types['geometry_msgs/msg/Twist'](vector(vx, vy, 0.0), vector(0.0, 0.0, 0.0))
            size = length, width, height
            [class_] = [each for each in CLASSES if each.name == name]
            if type_name == VISION:
                hypothesis = types['vision_msgs/msg/ObjectHypothesisWithPose'](
                    types['vision_msgs/msg/ObjectHypothesis'](name, score),
                    types['geometry_msgs/msg/PoseWithCovariance'](pose, np.zeros(36)))
                found.append(types['vision_msgs/msg/Detection3D'](
                    header, [hypothesis], types['vision_msgs/msg/BoundingBox3D'](
                        pose, vector(*size)), ''))
            elif type_name == DERIVED:
                found.append(types['derived_object_msgs/msg/Object'](
                    header, i, 0, True, pose, twist, types['geometry_msgs/msg/Accel'](
                        vector(0.0, 0.0, 0.0), vector(0.0, 0.0, 0.0)),
                    types['geometry_msgs/msg/Polygon']([]),
                    types['shape_msgs/msg/SolidPrimitive'](
                        1, np.array(size), types['geometry_msgs/msg/Polygon']([])),
                    class_.derived, round(score * 255.0), 1))
        yield stamp_ns, types[type_name](header, found)


@pytest.mark.parametrize('type_name', [VISION, DERIVED])
def test_other_messages_have_the_numbers_of_nuscenes_devkit(nuscenes, type_name):
    """Decoded from the wire; of the errors those that the messages have."""
    truths, detections = nuscenes.made_scene(4)
    # Confidences of derived_object_msgs are bytes: all differ.
    for i, box in enumerate(detections.all):
        box.detection_score = (i + 1.0) / 255.0
    expected = nuscenes.expected(truths, detections)
    stamps_ns = [i * 500_000_000 for i in range(12)]
    recorder = FrameRecorder()
    for i, (stamp_ns, message) in enumerate(written_scene(
            nuscenes, detections, type_name, stamps_ns)):
        found = objects_in(bytes(typestore().serialize_cdr(message, type_name)), type_name)
        stack = found.in_frame(np.array((0.0, 0.0, 0.0, 1.0)), np.zeros(3))
        rows = nuscenes.written(truths)[i]
        states = np.array([[*row[2:8], row[9], row[8], row[10]] for row in rows])
        truth = ObjectSet(tuple(map(str, range(len(rows)))), np.array(
            [EVALUATED_CLASSES.index(row[0]) for row in rows]), states, np.ones(len(rows)))
        recorder.add(EvaluatedFrame(stamp_ns, stack, truth, match(stack, truth), np.zeros(3)))
    record = recorder.finish()
    scores = {each.name: each for each in score_classes(
        record.classes, time_blocks(record.stamps_ns))}
    n_errors = 3 if type_name == VISION else 4
    assert {'car', 'truck'} <= expected.keys() & scores.keys()
    for name, numbers in expected.items():
        assert scores[name].average_precisions == pytest.approx(numbers['ap'], abs=1e-9)
        assert scores[name].recall_errors[:n_errors] == pytest.approx(
            numbers['recall_errors'][:n_errors], abs=1e-6)
