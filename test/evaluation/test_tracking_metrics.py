# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Tracking: the numbers of trackeval and nuscenes-devkit, and cases worked out by hand."""

import math

from budgets import one_of
import numpy as np
import pytest

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.evaluation import tracking
from state_sensor_ros.evaluation.matching import (
    EVALUATED_CLASSES,
    EvaluatedFrame,
    match,
    MAX_OBJECTS,
    near_pairs,
    ObjectSet,
)
from state_sensor_ros.evaluation.tracking import class_means, load_trackeval, score_tracks

PERIOD_NS = 500_000_000


def object_set(rows):
    """Return objects of rows of id, class, score, x and y."""
    states = np.full((len(rows), 10), np.nan)
    states[:, :2] = np.array([row[3:] for row in rows], np.float64).reshape(-1, 2)
    return ObjectSet(tuple(row[0] for row in rows),
                     np.array([EVALUATED_CLASSES.index(row[1]) for row in rows], np.int64), states,
                     np.array([row[2] for row in rows], np.float64))


def scored(truths, stacks):
    """Return the scores of frames of rows, two in a second."""
    load_trackeval()
    pairs = [(object_set(truth), object_set(stack))
             for truth, stack in zip(truths, stacks, strict=True)]
    return score_tracks([EvaluatedFrame(i * PERIOD_NS, stack, truth, match(stack, truth),
                                        np.full(3, np.nan))
                         for i, (truth, stack) in enumerate(pairs)], with_nuscenes=True)


@pytest.mark.parametrize('seed', one_of([1, 0, *range(2, 9)]))
def test_scores_of_classes_are_those_of_nuscenes_devkit(seed, nuscenes):
    """With gaps filled by its loader, AMOTA, and the numbers at the greatest MOTA."""
    truths, stacks = nuscenes.made_tracks(seed)
    expected = nuscenes.expected_tracking(truths, stacks)['classes']
    scores = scored(truths, stacks)
    assert scores.classes == {name: pytest.approx(numbers, rel=1e-9, nan_ok=True)
                              for name, numbers in expected.items()}
    means = class_means(scores.classes)
    assert means['amota'] == pytest.approx(np.mean([each['amota'] for each in expected.values()]))
    assert seed % 3 == 0 or means['identity_switches'] > 0


def dense(seed):
    """Return truths and stacks of 60 frames: several matches are possible in most of them."""
    random = np.random.default_rng(seed)
    truths, stacks = [], []
    for frame in range(60):
        numbers, others = (random.permutation(12)[:random.integers(0, 9)].tolist()
                           for _ in range(2))
        positions = {i: np.array((i % 4, i // 4)) * 1.3 + 0.02 * frame for i in range(12)}
        truths.append([[str(i), 'car', 1.0, *positions[i]] for i in numbers])
        stacks.append([[str(i), 'car', 1.0, *(positions[i] + random.normal(0.0, 0.7, 2))]
                       for i in others])
    return truths, stacks


@pytest.mark.parametrize('seed', one_of(range(10), n_always=3))
def test_scores_are_those_of_trackeval(seed):
    truths, stacks = dense(seed)
    ids = [[np.array([int(row[0]) for row in rows], int) for rows in frames]
           for frames in (truths, stacks)]
    scores = scored(truths, stacks)
    metrics = pytest.importorskip('trackeval').metrics
    data = {'gt_ids': ids[0], 'tracker_ids': ids[1], 'num_timesteps': len(truths),
            'num_gt_ids': 12, 'num_tracker_ids': 12,
            'num_gt_dets': sum(map(len, truths)), 'num_tracker_dets': sum(map(len, stacks)),
            'similarity_scores': [np.maximum(0.0, 1.0 - np.linalg.norm(
                np.array([row[3:] for row in truth]).reshape(-1, 1, 2)
                - np.array([row[3:] for row in stack]).reshape(1, -1, 2), axis=2) / 4.0)
                for truth, stack in zip(truths, stacks, strict=True)]}
    clear = metrics.CLEAR({'PRINT_CONFIG': False}).eval_sequence(data)
    expected = {
        'hota': metrics.HOTA().eval_sequence(data)['HOTA'].mean(), 'mota': clear['MOTA'],
        'idf1': metrics.Identity({'PRINT_CONFIG': False}).eval_sequence(data)['IDF1'],
        'motp': 4.0 * (1.0 - clear['MOTP']), 'identity_switches': clear['IDSW'],
        'false_positives': clear['CLR_FP'], 'misses': clear['CLR_FN']}
    of_tracks = {'fragmentations': clear['Frag'], 'mostly_tracked': clear['MT'],
                 'partially_tracked': clear['PT'], 'mostly_lost': clear['ML']}
    assert scores.numbers.items() >= of_tracks.items()
    assert {name: scores.numbers[name] for name in expected} == pytest.approx(expected)


def row(name, x, score=1.0):
    return [name, 'car', score, x, 0.0]


def test_track_worked_out_by_hand():
    """
    Missed, found as a, lost, found as a, taken over by b, missed at the end.

    Frames without any detection make no fragment for trackeval.
    """
    truths = [[row('t', float(i))] for i in range(8)]
    stacks = [[], [row('a', 1.5)], [], [], [row('a', 4.0)], [row('b', 5.0)],
              [row('b', 6.0), row('c', 60.0)], []]
    numbers = scored(truths, stacks).numbers
    assert numbers == pytest.approx({
        **{name: numbers[name] for name in ('hota', 'idf1')}, 'objects': 8, 'tracks': 1,
        'misses': 4, 'false_positives': 1, 'identity_switches': 1, 'fragmentations': 0,
        'mostly_tracked': 0, 'partially_tracked': 1, 'mostly_lost': 0, 'motp': 0.125,
        'mota': 1.0 - 6 / 8})


def test_kept_match_is_preferred_to_a_nearer_one():
    truths = [[row('t', 0.0)], [row('t', 0.0)]]
    stacks = [[row('a', 0.0)], [row('b', 0.1), row('a', 1.9)]]
    numbers = scored(truths, stacks).numbers
    assert (numbers['identity_switches'], numbers['false_positives']) == (0, 1)
    assert numbers['motp'] == pytest.approx(0.95)


def test_scores_without_truths_or_detections():
    scores = scored([[row('t', 0.0)]], [[]])
    assert scores.classes['car'] == pytest.approx({
        'amota': 0.0, 'amotp': 2.0, 'mota': 0.0, 'motp': 2.0, 'identity_switches': math.nan},
        nan_ok=True)
    assert (scores.numbers['mota'], scores.numbers['misses']) == (0.0, 1)
    assert math.isnan(scores.numbers['motp'])
    scores = scored([[]], [[row('a', 0.0)]])
    assert scores.classes == {}
    assert all(map(math.isnan, class_means(scores.classes).values()))
    assert scores.numbers['false_positives'] == 1
    assert math.isnan(scores.numbers['mota'])


def test_too_many_ids_for_hota(monkeypatch):
    expected = scored(*dense(3)).numbers
    monkeypatch.setattr(tracking, 'MAX_IDS', 1)
    assert scored(*dense(3)).numbers == pytest.approx(
        {**expected, 'hota': math.nan, 'idf1': math.nan}, nan_ok=True)


def test_frame_with_too_many_objects_is_one_sentence():
    states = np.zeros((MAX_OBJECTS + 1, 2))
    with pytest.raises(DecodeError, match='found 100001 objects in a frame; expected at most'):
        near_pairs(states, states[:1], 4.0)
    with pytest.raises(DecodeError, match='pairs of objects beside each other in a frame'):
        near_pairs(states[:3000], states[:3000], 4.0)


@pytest.mark.parametrize('seed', range(4))
def test_near_pairs_are_those_of_all_distances(seed):
    random = np.random.default_rng(seed)
    width = (5.0, 40.0, 400.0, 1e7)[seed]
    places, others = (random.uniform(-width, width, (n, 2)) for n in (200, 150))
    others[:20] = places[:20] + 1e-9
    distances = np.linalg.norm(places[:, None] - others, axis=2)
    rows, columns, near = near_pairs(places, others, 4.0)
    expected = (distances < 4.0).nonzero()
    assert np.array_equal((rows, columns), expected)
    assert near == pytest.approx(distances[expected], abs=1e-9)
