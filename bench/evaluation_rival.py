# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Evaluate a bag with motmetrics or nuscenes-devkit: LIBRARY BAG TRUTH_TOPIC STACK_TOPIC."""

from pathlib import Path
import sys
from types import ModuleType

import numpy as np
from rosbags.highlevel import AnyReader

LIMIT_M = 2.0
METRICS = ('mota', 'motp', 'idf1', 'num_switches', 'num_fragmentations', 'mostly_tracked',
           'mostly_lost')


# By the labels of Autoware.
NAMES = ('barrier', 'car', 'truck', 'bus', 'trailer', 'motorcycle', 'bicycle', 'pedestrian')
DISTANCES_M = (0.5, 1.0, 2.0, 4.0)
ERRORS = ('trans_err', 'scale_err', 'orient_err', 'vel_err', 'attr_err')


def messages(reader, topic):
    """Yield stamp and objects of each message."""
    connections = [each for each in reader.connections if each.topic == topic]
    for connection, _, data in reader.messages(connections):
        message = reader.deserialize(data, connection.msgtype)
        yield (message.header.stamp.sec, message.header.stamp.nanosec), message.objects


def objects_by_stamp(reader, topic):
    """Return ids, which motmetrics takes as numbers, and positions by stamp."""
    found, numbers = {}, {}
    for stamp, objects in messages(reader, topic):
        poses = [each.kinematics.pose_with_covariance.pose.position for each in objects]
        found[stamp] = (
            [numbers.setdefault(bytes(each.object_id.uuid), len(numbers)) for each in objects],
            np.array([(pose.x, pose.y) for pose in poses]).reshape(-1, 2))
    return found


def evaluate_tracks(bag, truth_topic, stack_topic):
    """Print the metrics of motmetrics."""
    import motmetrics
    with AnyReader([Path(bag)]) as reader:
        truth, stack = (objects_by_stamp(reader, topic) for topic in (truth_topic, stack_topic))
    accumulator = motmetrics.MOTAccumulator(auto_id=True)
    for stamp, (ids, positions) in stack.items():
        true_ids, true_positions = truth[stamp]
        distances = np.linalg.norm(true_positions[:, None] - positions, axis=2)
        accumulator.update(true_ids, ids, np.where(distances < LIMIT_M, distances, np.nan))
    print(motmetrics.metrics.create().compute(accumulator, metrics=METRICS))


def boxes(reader, topic):
    """Return the objects of a topic as boxes of nuscenes-devkit."""
    from nuscenes.eval.common.data_classes import EvalBoxes
    from nuscenes.eval.detection.data_classes import DetectionBox
    found = EvalBoxes()
    for stamp, objects in messages(reader, topic):
        token = '{}.{:09}'.format(*stamp)
        rows = []
        for each in objects:
            pose = each.kinematics.pose_with_covariance.pose
            turn, size = pose.orientation, each.shape.dimensions
            velocity = each.kinematics.twist_with_covariance.twist.linear
            rows.append(DetectionBox(
                sample_token=token,
                translation=(pose.position.x, pose.position.y, pose.position.z),
                size=(size.y, size.x, size.z), rotation=(turn.w, turn.x, turn.y, turn.z),
                velocity=(velocity.x, velocity.y),
                detection_name=NAMES[each.classification[0].label],
                detection_score=float(each.existence_probability), attribute_name=''))
        found.add_boxes(token, rows)
    return found


def evaluate_detections(bag, truth_topic, stack_topic):
    """Print the average precisions and errors of nuscenes-devkit."""
    # It imports them for images and segmentation.
    for name in ('cv2', 'sklearn', 'sklearn.metrics'):
        sys.modules.setdefault(name, ModuleType(name))
    from nuscenes.eval.common.utils import center_distance
    from nuscenes.eval.detection.algo import accumulate, calc_ap, calc_tp
    with AnyReader([Path(bag)]) as reader:
        truth, stack = (boxes(reader, topic) for topic in (truth_topic, stack_topic))
    for name in sorted({box.detection_name for box in truth.all}):
        curves = {each: accumulate(truth, stack, name, center_distance, each)
                  for each in DISTANCES_M}
        print(name, [calc_ap(each, 0.1, 0.1) for each in curves.values()],
              [calc_tp(curves[LIMIT_M], 0.1, error) for error in ERRORS])


if __name__ == '__main__':
    {'motmetrics': evaluate_tracks, 'nuscenes': evaluate_detections}[sys.argv[1]](*sys.argv[2:])
