# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Detection: nuscenes-devkit's own values, and matching against its loop written out."""

import math

import numpy as np
import pytest

from state_sensor_ros.evaluation.detection import detection_score, score_classes
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.matching import (
    EVALUATED_CLASSES,
    EvaluatedFrame,
    match,
    MATCH_DISTANCES_M,
    ObjectSet,
)
from state_sensor_ros.evaluation.report import result_of, tables_of

NOWHERE = np.full(3, math.nan)


def object_set(rows):
    """Return objects of rows of class, score and nine numbers."""
    return ObjectSet(
        tuple(str(i) for i in range(len(rows))),
        np.array([EVALUATED_CLASSES.index(row[0]) for row in rows], np.int64),
        np.column_stack((np.array([row[2:] for row in rows], np.float64).reshape(-1, 9),
                         np.full(len(rows), 2.0 * math.pi))),
        np.array([row[1] for row in rows], np.float64))


def scored(frames):
    """Return the scores of frames of rows of the stack and of the ground truth, by class."""
    pairs = [tuple(map(object_set, pair)) for pair in frames]
    return {each.name: each for each in score_classes([
        EvaluatedFrame(i, stack, truth, match(stack, truth), NOWHERE)
        for i, (stack, truth) in enumerate(pairs)])}


@pytest.mark.parametrize('seed', range(9))
def test_scores_are_those_of_nuscenes_devkit(seed, nuscenes):
    truths, detections = nuscenes.made_scene(seed)
    scores = scored(zip(nuscenes.written(detections), nuscenes.written(truths), strict=True))
    expected = nuscenes.expected(truths, detections)
    assert {name for name, each in scores.items() if each.n_truths} == expected.keys()
    for name, each in expected.items():
        assert scores[name].curves.average_precisions == pytest.approx(each['ap'], abs=1e-12)
        assert scores[name].errors == pytest.approx(each['errors'], rel=1e-9)
        assert scores[name].recall_errors == pytest.approx(each['recall_errors'], rel=1e-9)
    assert detection_score(list(scores.values())) == pytest.approx(
        nuscenes.detection_score(expected), abs=1e-12)


def by_loop(stack, truth, limit):
    """Return what the loop of nuscenes-devkit matches."""
    taken, found = set(), [-1] * len(stack.ids)
    order = [i for _, i in sorted((score, i) for i, score in enumerate(stack.scores))][::-1]
    for i in order:
        least, nearest = math.inf, None
        for j in range(len(truth.ids)):
            if truth.classes[j] == stack.classes[i] and j not in taken:
                distance = np.linalg.norm(stack.states[i, :2] - truth.states[j, :2])
                if distance < least:
                    least, nearest = distance, j
        if least < limit:
            taken.add(nearest)
            found[i] = nearest
    return found


@pytest.mark.parametrize('seed', range(40))
def test_matches_are_those_of_the_loop(seed):
    """Dense objects with equal confidences: many want the same ground-truth object."""
    random = np.random.default_rng(seed)

    def scattered(n_objects):
        return object_set([
            [str(random.choice(['car', 'truck'])), float(random.choice([0.3, 0.5, 1.0])),
             *random.uniform(0.0, 12.0, 2), 0, 0, 0, 0, 1, 1, 1] for _ in range(n_objects)])
    stack, truth = scattered(random.integers(0, 14)), scattered(random.integers(0, 14))
    for row, limit in zip(match(stack, truth), MATCH_DISTANCES_M, strict=True):
        assert row.tolist() == by_loop(stack, truth, limit)


CAR = ['car', 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 4.0, 2.0, 1.5]


def car(**changes):
    names = ['class', 'score', 'x', 'y', 'z', 'yaw', 'vx', 'vy', 'length', 'width', 'height']
    return [changes.get(name, value) for name, value in zip(names, CAR, strict=True)]


# Of translation, scale, orientation, velocity and attribute: a speed of 1 m/s moves.
@pytest.mark.parametrize(('changes', 'expected'), [
    ({}, (0.0, 0.0, 0.0, 0.0, 0.0)),
    ({'x': 0.3, 'y': 0.4}, (0.5, 0.0, 0.0, 0.0, 0.0)),
    ({'z': 5.0}, (0.0, 0.0, 0.0, 0.0, 0.0)),
    ({'length': 2.0}, (0.0, 0.5, 0.0, 0.0, 0.0)),
    ({'length': 8.0, 'width': 4.0}, (0.0, 0.75, 0.0, 0.0, 0.0)),
    ({'yaw': 3.5}, (0.0, 0.0, 2.0 * math.pi - 3.5, 0.0, 0.0)),
    ({'yaw': -math.pi}, (0.0, 0.0, math.pi, 0.0, 0.0)),
    ({'vx': 4.0, 'vy': 6.0}, (0.0, 0.0, 0.0, 5.0, 0.0)),
    ({'vx': 0.0, 'vy': 0.1}, (0.0, 0.0, 0.0, math.hypot(1.0, 1.9), 1.0)),
    ({'vx': math.nan}, (0.0, 0.0, 0.0, math.nan, math.nan)),
    ({'yaw': math.nan}, (0.0, 0.0, math.nan, 0.0, 0.0))])
def test_errors_of_one_match(changes, expected):
    errors = scored([([car(**changes)], [car()])])['car'].errors
    assert errors == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(('name', 'truth_speed', 'speed', 'expected'), [
    ('person', 0.0, 0.1, 0.0), ('person', 0.0, 1.0, 1.0),
    # A cycle that stands may have a rider or not.
    ('cyclist', 2.0, 2.0, 0.0), ('cyclist', 2.0, 0.0, 1.0), ('cyclist', 0.0, 2.0, math.nan),
    ('unknown', 2.0, 2.0, math.nan)])
def test_attribute_error(name, truth_speed, speed, expected):
    errors = scored([([car(**{'class': name}, vx=speed, vy=0.0)],
                      [car(**{'class': name}, vx=truth_speed, vy=0.0)])])[name].errors
    assert errors[4] == pytest.approx(expected, nan_ok=True)


def test_scores_of_a_class_without_truths_or_detections():
    scores = scored([([car()], [car(**{'class': 'bus'})])])
    assert scores['car'].curves is None
    assert (scores['car'].n_truths, scores['car'].n_detections) == (0, 1)
    assert scores['bus'].curves.average_precisions.tolist() == [0.0] * 4
    assert np.isnan(scores['bus'].errors).all()


def test_perfect_detections_score_one_at_most():
    """The mean of 90 equal precisions is exact, whatever is omitted from it."""
    frames = [([car(), car(x=20.0)], [car(), car(x=20.0)])] * 7
    assert scored(frames)['car'].curves.average_precisions.tolist() == [1.0] * 4


def result_of_classes(frames):
    """Return the result of frames of rows of the stack and of the ground truth."""
    return result_of([TopicResult('/t', classes=list(scored(frames).values()))], 1)


def test_class_unknown_is_reported_and_not_part_of_the_mean():
    cone = {'class': 'unknown', 'x': 30.0}
    detection = result_of_classes([([car()], [car(), car(**cone)])])['detection']
    assert detection['classes']['unknown']['truths'] == 1
    assert detection['classes']['unknown']['ap'] == dict.fromkeys(('0.5', '1.0', '2.0', '4.0'), 0)
    assert detection['map'] == 1.0
    assert detection['nds'] == 1.0
    [table] = tables_of(result_of_classes([([car()], [car(), car(**cone)])]))
    last = table.note
    assert last.startswith('mAP 1.0000  NDS 1.0000  mATE 0.0000')
    assert last.endswith('(without class unknown)')
    only_unknown = result_of_classes([([], [car(**cone)])])['detection']
    assert (only_unknown['map'], only_unknown['nds']) == (None, None)
    assert only_unknown['classes'].keys() == {'unknown'}
