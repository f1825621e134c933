# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Evaluate the tracks of a bag with motmetrics, as its users do: BAG TRUTH_TOPIC STACK_TOPIC."""

from pathlib import Path
import sys

import motmetrics
import numpy as np
from rosbags.highlevel import AnyReader

LIMIT_M = 2.0
METRICS = ('mota', 'motp', 'idf1', 'num_switches', 'num_fragmentations', 'mostly_tracked',
           'mostly_lost')


def objects_by_stamp(reader, topic):
    """Return ids, which motmetrics takes as numbers, and positions by stamp."""
    found, numbers = {}, {}
    connections = [each for each in reader.connections if each.topic == topic]
    for connection, _, data in reader.messages(connections):
        message = reader.deserialize(data, connection.msgtype)
        poses = [each.kinematics.pose_with_covariance.pose.position for each in message.objects]
        found[message.header.stamp.sec, message.header.stamp.nanosec] = (
            [numbers.setdefault(bytes(each.object_id.uuid), len(numbers))
             for each in message.objects],
            np.array([(pose.x, pose.y) for pose in poses]).reshape(-1, 2))
    return found


def main(bag, truth_topic, stack_topic):
    """Print the metrics."""
    with AnyReader([Path(bag)]) as reader:
        truth, stack = (objects_by_stamp(reader, topic) for topic in (truth_topic, stack_topic))
    accumulator = motmetrics.MOTAccumulator(auto_id=True)
    for stamp, (ids, positions) in stack.items():
        true_ids, true_positions = truth[stamp]
        distances = np.linalg.norm(true_positions[:, None] - positions, axis=2)
        accumulator.update(true_ids, ids, np.where(distances < LIMIT_M, distances, np.nan))
    print(motmetrics.metrics.create().compute(accumulator, metrics=METRICS))


if __name__ == '__main__':
    main(*sys.argv[1:])
