# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Predicted paths of perceived objects: off as their objects are, and straight for ghosts."""

import numpy as np

from state_sensor_ros.objects.predicted_paths import ConstantPaths, Paths, TIMES_S
from state_sensor_ros.perception.perceiver import Perceived, turn


def perceived_paths(paths: Paths, perceived: Perceived) -> Paths:
    """
    Return the paths of the objects that are reported.

    :param paths: of all objects as they are; their poses may be changed.
    :param perceived: of the same frame.
    """
    (poses, lengths), seen = paths, perceived.seen
    true_poses, found_poses = perceived.truth.poses, perceived.seen_objects().poses
    if seen is not None:
        poses, lengths, true_poses = poses[seen], lengths[seen], true_poses[seen]
    if perceived.is_noisy:
        poses[:, :, :2] += (found_poses[:, :2] - true_poses[:, :2])[:, None]
        if perceived.turns is not None:
            turn(poses[:, :, 3:], perceived.turns[:, None])
        # Without the rounding of the difference.
        poses[:, 0] = found_poses
    if not perceived.ghosts:
        return Paths(poses, lengths)
    ghosts = ConstantPaths().paths(perceived.ghost_objects())
    joined = np.zeros((len(poses) + len(ghosts.poses), len(TIMES_S), 7))
    joined[:len(poses), :poses.shape[1]], joined[len(poses):] = poses, ghosts.poses
    return Paths(joined, np.concatenate((lengths, ghosts.lengths)))
