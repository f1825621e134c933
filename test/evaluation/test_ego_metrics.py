# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Errors of the ego: values of evo, and cases worked out by hand."""

import math

import numpy as np
import pytest

from state_sensor_ros.evaluation.ego import (
    DegenerateAlignmentError,
    score_ego,
    statistics,
)


def ego_poses(poses, speeds=math.nan):
    """Return poses with speeds."""
    poses = np.array(poses, np.float64).reshape(-1, 7)
    return np.column_stack((poses, np.broadcast_to(speeds, len(poses))))


def along_x(n_poses, step=1.0):
    """Return poses along the x axis."""
    poses = np.zeros((n_poses, 7))
    poses[:, 0], poses[:, 6] = step * np.arange(n_poses), 1.0
    return poses


def check(scores, expected):
    """Check the table of evo."""
    for name, parts in expected.items():
        found = scores.statistics['ate'] if name == 'ate' else scores.statistics['rpe'][name]
        for part, numbers in parts.items():
            assert found[part] == pytest.approx(numbers, rel=1e-6, abs=1e-9), (name, part)


@pytest.mark.parametrize('alignment', ['none', 'se3', 'sim3'])
@pytest.mark.parametrize('seed', range(3))
def test_scores_are_those_of_evo(alignment, seed):
    metrics, trajectory = (pytest.importorskip(f'evo.core.{name}')
                           for name in ('metrics', 'trajectory'))
    random = np.random.default_rng(seed)
    truth, estimate = (np.column_stack((random.normal(0.0, 5.0, (90, 3)).cumsum(axis=0),
                                        random.normal(0.0, 1.0, (90, 4)))) for _ in range(2))
    for poses in (truth, estimate):
        poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    pair = [trajectory.PosePath3D(poses[:, :3].copy(), poses[:, [6, 3, 4, 5]].copy())
            for poses in (truth, estimate)]
    if alignment != 'none':
        pair[1].align(pair[0], correct_scale=alignment == 'sim3')
    expected = {}
    for name, relation in (('translation', metrics.PoseRelation.translation_part),
                           ('rotation', metrics.PoseRelation.rotation_angle_rad)):
        for key, metric in (
                ('ate', metrics.APE(relation)), *(
                    (f'{delta}m', metrics.RPE(relation, float(delta), metrics.Unit.meters,
                                              pairs_from_reference=True))
                    for delta in (1, 10, 100))):
            metric.process_data(pair)
            expected.setdefault(key, {})[name] = metric.get_all_statistics()
    scores = score_ego(ego_poses(estimate), ego_poses(truth), alignment)
    check(scores, expected)
    assert (scores.scale == 1.0) is (alignment != 'sim3')


def test_errors_of_a_driver():
    """Truth heads along y: an error along x is one to the right."""
    truth = along_x(4)
    truth[:, 5:] = math.sqrt(0.5)
    stack = truth.copy()
    stack[:, :2] += (0.3, -0.4)
    scores = score_ego(ego_poses(stack, [5.0, 5.0, 5.0, math.nan]),
                       ego_poses(truth, [4.0, 6.0, 7.0, 5.0]), 'none').statistics
    assert scores['lateral_error']['bias'] == pytest.approx(-0.3)
    assert scores['lateral_error']['mean'] == pytest.approx(0.3)
    assert scores['longitudinal_error']['bias'] == pytest.approx(-0.4)
    assert scores['speed_error']['bias'] == pytest.approx(-2.0 / 3.0)
    assert scores['speed_error']['max'] == 2.0


def test_line_cannot_be_aligned():
    with pytest.raises(DegenerateAlignmentError):
        score_ego(ego_poses(along_x(5)), ego_poses(along_x(5)), 'se3')


def test_statistics_worked_out_by_hand():
    assert statistics(np.array([1.0, 1.0, 4.0])) == pytest.approx({
        'rmse': math.sqrt(6.0), 'mean': 2.0, 'median': 1.0, 'std': math.sqrt(2.0), 'min': 1.0,
        'max': 4.0, 'sse': 18.0})
