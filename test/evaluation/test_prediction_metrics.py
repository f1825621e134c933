# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Predicted paths: where Argoverse and nuScenes differ, numbers of paths."""

import math

import numpy as np
import pytest

from state_sensor_ros.evaluation.matching import EvaluatedFrame, match, ObjectSet, PathOfObject
from state_sensor_ros.evaluation.prediction import PathScorer
from state_sensor_ros.evaluation.truth import GroundTruthBuilder

STEP_NS = 500_000_000
N_STEPS = 17


def states(*rows):
    """Return states of rows of x, y, yaw, length and width."""
    found = np.zeros((len(rows), 10))
    for state, (x, y, yaw, length, width) in zip(found, rows, strict=True):
        state[:2], state[3], state[6:8] = (x, y), yaw, (length, width)
    return found


def objects(names, rows, paths=()):
    return ObjectSet(names, np.zeros(len(names), np.int64), states(*rows), np.ones(len(names)),
                     paths)


def path(points, confidence=1.0):
    poses = np.zeros((N_STEPS, 7))
    poses[:, 0], poses[:, 1] = points
    poses[:, 6] = 1.0
    return PathOfObject(STEP_NS, poses, confidence)


def scored(paths, *, period=1, horizons_s=(3.0, 5.0, 8.0), path_counts=(1, 6)):
    """
    Return the scores of paths of a car that drives 1 m in each step along x.

    :param period: steps from one frame of the ground truth to the next.
    """
    builder = GroundTruthBuilder('truth')
    for i in range(0, N_STEPS, period):
        builder.add(i * STEP_NS, objects(('a',), [(float(i), 0.0, 0.0, 4.0, 2.0)]),
                    np.ones(1, np.bool_))
    truth = builder.finish(None)
    stack = objects(('s',), [(0.0, 0.0, 0.0, 4.0, 2.0)], (tuple(paths),))
    found = truth.at(0)[0]
    scorer = PathScorer(truth, horizons_s, path_counts)
    scorer.add(EvaluatedFrame(0, stack, found, match(stack, found), np.full(3, np.nan)), 0)
    return scorer.finish()


STEPS = np.arange(float(N_STEPS))


def test_number_of_paths():
    """The seventh path is right and does not count for k = 6."""
    paths = [path((STEPS, np.full(N_STEPS, 7.0 - i)), 1.0 - 0.1 * i) for i in range(7)]
    scores = scored([*paths, path((STEPS, np.zeros(N_STEPS)), 0.0)])[5.0]
    assert [scores[k]['min_fde'] for k in (1, 6, 0)] == [7.0, 2.0, 0.0]
    assert [scores[k]['miss_rate'] for k in (1, 6, 0)] == [1.0, 0.0, 0.0]


def test_horizon_that_no_path_reaches():
    short = PathOfObject(STEP_NS, path((STEPS, 0.0 * STEPS)).poses[:8], 1.0)
    scores = scored([short])
    assert scores[3.0][1]['min_ade'] == 0.0
    assert scores[5.0][1].pop('objects') == 0
    assert all(map(math.isnan, scores[5.0][1].values()))


def test_all_numbers_of_paths_score_the_same_objects():
    """The most likely path ends early: the first one that reaches the horizon counts."""
    short = PathOfObject(STEP_NS, path((STEPS, 0.0 * STEPS)).poses[:8], 1.0)
    others = [path((STEPS, np.full(N_STEPS, 4.0 - i)), 0.9 - 0.1 * i) for i in range(4)]
    scores = scored([short, *others], path_counts=(1, 2, 10))
    assert [(scores[3.0][k]['min_fde'], scores[5.0][k]['min_fde']) for k in (1, 2, 10, 0)] == [
        (0.0, 4.0), (0.0, 3.0), (0.0, 1.0), (0.0, 1.0)]
    assert {scores[h][k]['objects'] for h in (3.0, 5.0, 8.0) for k in (0, 1, 2, 10)} == {1}


@pytest.mark.parametrize('period', [1, 2])
def test_truth_at_2_and_1_hz_is_interpolated(period):
    """Points of the paths lie between frames of the truth that are 0.5 or 1 s apart."""
    poses = path((0.4 * np.arange(N_STEPS), np.ones(N_STEPS)))
    fine = PathOfObject(200_000_000, poses.poses, 1.0)
    scores = scored([fine], period=period, horizons_s=(1.7, 3.0))
    for horizon in (1.7, 3.0):
        assert scores[horizon][0] == pytest.approx({
            'min_ade': 1.0, 'min_fde': 1.0, 'miss_rate': 0.0, 'objects': 1})
