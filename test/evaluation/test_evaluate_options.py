# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor evaluate`: warnings, means, messages of other types."""

import math

import numpy as np
import pytest
from stack_bags import changed, EGO, messages_of, TRACKING, typestore

from state_sensor_ros.classes import CLASSES
from state_sensor_ros.commands.cli import main
from state_sensor_ros.evaluation.detection import score_classes
from state_sensor_ros.evaluation.matching import (
    EVALUATED_CLASSES,
    EvaluatedFrame,
    match,
    ObjectSet,
)
from state_sensor_ros.evaluation.messages import DERIVED, objects_in, VISION


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
    assert f'{n_messages} objects with a negative size, which is unknown' in errors
    assert 'half of the positions of the ego are more than 25 m off' in errors


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
    frames = []
    for i, (stamp_ns, message) in enumerate(written_scene(
            nuscenes, detections, type_name, stamps_ns)):
        found = objects_in(bytes(typestore().serialize_cdr(message, type_name)), type_name)
        stack = found.in_frame(np.array((0.0, 0.0, 0.0, 1.0)), np.zeros(3))
        rows = nuscenes.written(truths)[i]
        states = np.array([[*row[2:8], row[9], row[8], row[10], 2.0 * math.pi] for row in rows])
        truth = ObjectSet(tuple(map(str, range(len(rows)))), np.array(
            [EVALUATED_CLASSES.index(row[0]) for row in rows]), states, np.ones(len(rows)))
        frames.append(EvaluatedFrame(stamp_ns, stack, truth, match(stack, truth), np.zeros(3)))
    scores = {each.name: each for each in score_classes(frames)}
    n_errors = 3 if type_name == VISION else 4
    assert {'car', 'truck'} <= expected.keys() & scores.keys()
    for name, numbers in expected.items():
        assert scores[name].curves.average_precisions == pytest.approx(numbers['ap'], abs=1e-9)
        assert scores[name].recall_errors[:n_errors] == pytest.approx(
            numbers['recall_errors'][:n_errors], abs=1e-6)
