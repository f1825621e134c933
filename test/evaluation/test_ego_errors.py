# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Errors of the ego: values of evo 1.38.1, and cases worked out by hand."""

import math

import numpy as np
import pytest

from state_sensor_ros.evaluation.ego_errors import ate_rmse, rpe_rmse

TIME_S = np.arange(120) * 0.1


def poses(offset=(0.0, 0.0, 0.0), turn=0.0):
    """Return (120, 7) poses on a circle of 40 m, with an error that swings."""
    yaw = 0.15 * TIME_S + turn
    zeros = np.zeros(len(yaw))
    return np.column_stack((
        40.0 * np.sin(0.15 * TIME_S) + offset[0] * np.sin(TIME_S),
        40.0 * (1.0 - np.cos(0.15 * TIME_S)) + offset[1] * np.cos(2.0 * TIME_S),
        0.3 * np.sin(0.5 * TIME_S) + offset[2], zeros, zeros, np.sin(yaw / 2), np.cos(yaw / 2)))


def test_ego_errors_are_those_of_evo():
    """Computed once by evo: APE and RPE of the translation part, 1 m, pairs_from_reference."""
    stack, truth = poses((0.3, 0.2, 0.1), 0.02 * np.sin(3.0 * TIME_S)), poses()
    assert ate_rmse(stack[:, :3], truth[:, :3]) == pytest.approx(0.2764148719653861, rel=1e-12)
    assert rpe_rmse(stack, truth) == pytest.approx(0.07260042685172385, rel=1e-12)


def test_ego_errors_of_equal_poses_are_zero():
    assert ate_rmse(poses()[:, :3], poses()[:, :3]) == 0.0
    assert rpe_rmse(poses(), poses()) == 0.0


def test_ego_errors_of_a_constant_offset():
    """An offset along z moves every pose; no way of a metre differs."""
    stack = poses((0.0, 0.0, 0.5))
    assert ate_rmse(stack[:, :3], poses()[:, :3]) == pytest.approx(0.5)
    assert rpe_rmse(stack, poses()) == pytest.approx(0.0, abs=1e-12)


def test_ego_errors_of_a_wrong_scale():
    """Ways of exactly a metre that are estimated a tenth too long."""
    truth = np.zeros((11, 7))
    truth[:, 0], truth[:, 6] = np.arange(11.0), 1.0
    stack = truth.copy()
    stack[:, 0] *= 1.1
    assert rpe_rmse(stack, truth) == pytest.approx(0.1)


@pytest.mark.parametrize('n_poses', [0, 1])
def test_ego_errors_without_ways(n_poses):
    assert math.isnan(rpe_rmse(poses()[:n_poses], poses()[:n_poses]))


def test_ego_errors_without_poses():
    assert math.isnan(ate_rmse(np.zeros((0, 3)), np.zeros((0, 3))))
