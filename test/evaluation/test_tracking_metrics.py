# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Tracking: the numbers of motmetrics and nuscenes-devkit, and cases worked out by hand."""

import json
import math

from budgets import one_of
import numpy as np
from paths import DATA
import pytest

from state_sensor_ros.evaluation.matching import (
    EVALUATED_CLASSES,
    EvaluatedFrame,
    match,
    ObjectSet,
)
from state_sensor_ros.evaluation.resampling import time_blocks
from state_sensor_ros.evaluation.track_record import TrackRecorder
from state_sensor_ros.evaluation.tracking_metrics import (
    load_trackeval,
    mean_averages,
    score_tracks,
)

# Made by make_golden.py beside it.
GOLDEN = json.loads((DATA / 'evaluation' / 'golden.json').read_text())['tracking']
NAMES = {'num_switches': 'identity_switches', 'num_fragmentations': 'fragmentations',
         'num_false_positives': 'false_positives', 'num_misses': 'misses',
         'num_objects': 'objects', 'num_unique_objects': 'tracks',
         'mostly_tracked': 'mostly_tracked', 'partially_tracked': 'partially_tracked',
         'mostly_lost': 'mostly_lost', 'motp': 'motp', 'tid': 'track_initialization_duration',
         'lgd': 'longest_gap_duration'}
PERIOD_NS = 500_000_000


def object_set(rows):
    """Return objects of rows of id, class, score, x and y."""
    states = np.full((len(rows), 9), np.nan)
    states[:, :2] = np.array([row[3:] for row in rows], np.float64).reshape(-1, 2)
    return ObjectSet(tuple(row[0] for row in rows),
                     np.array([EVALUATED_CLASSES.index(row[1]) for row in rows], np.int64), states,
                     np.array([row[2] for row in rows], np.float64))


def scored(truths, stacks):
    """Return the scores of frames of rows, two in a second."""
    recorder = TrackRecorder()
    for i, (truth, stack) in enumerate(zip(truths, stacks, strict=True)):
        truth, stack = object_set(truth), object_set(stack)
        recorder.add(EvaluatedFrame(i * PERIOD_NS, stack, truth, match(stack, truth),
                                    np.full(3, np.nan)))
    load_trackeval()
    tracks = recorder.finish()
    return score_tracks(tracks, time_blocks(np.arange(len(truths)) * PERIOD_NS),
                        with_averages=True)


@pytest.mark.parametrize('scene', GOLDEN, ids=['good', 'bad', 'worse'])
def test_scores_are_those_of_motmetrics_and_nuscenes(scene):
    scores, expected = scored(scene['truths'], scene['stacks']), scene['expected']
    found = {name: getattr(scores.clear, ours) for name, ours in NAMES.items()}
    assert found == pytest.approx({name: expected[name] for name in NAMES}, rel=1e-12)
    assert (scores.mota, scores.idf1) == pytest.approx((expected['mota'], expected['idf1']))
    assert scores.averages == {name: pytest.approx(both, rel=1e-12)
                               for name, both in expected['averages'].items()}
    assert mean_averages(scores.averages) == pytest.approx(
        np.mean(list(expected['averages'].values()), axis=0))


@pytest.mark.parametrize('seed', one_of([5, 3, 4]))
def test_averages_are_those_of_nuscenes_devkit(seed, nuscenes):
    truths, stacks = nuscenes.made_tracks(seed)
    expected = nuscenes.expected_tracking(truths, stacks)
    scores = scored(truths, stacks)
    assert scores.averages == {name: pytest.approx(both, rel=1e-12)
                               for name, both in expected['averages'].items()}
    clear = scores.clear
    assert (clear.track_initialization_duration, clear.longest_gap_duration) == pytest.approx(
        (expected['tid'], expected['lgd']))


def test_golden_scenes_have_every_error():
    assert all(any(scene['expected'][name] > 0.0 for scene in GOLDEN) for name in NAMES)
    assert 0.0 < GOLDEN[1]['expected']['averages']['car'][0] < 1.0


@pytest.mark.parametrize('seed', one_of(range(10), n_always=3))
def test_scores_are_those_of_motmetrics(seed):
    """Dense objects: several matches are possible in most frames."""
    motmetrics = pytest.importorskip('motmetrics')
    random = np.random.default_rng(seed)
    accumulator = motmetrics.MOTAccumulator()
    truths, stacks = [], []
    for frame in range(60):
        numbers = random.permutation(12)[:random.integers(0, 9)].tolist()
        others = random.permutation(12)[:random.integers(0, 9)].tolist()
        positions = {i: np.array((i % 4, i // 4)) * 1.3 + 0.02 * frame for i in range(12)}
        truth = [[str(i), 'car', 1.0, *positions[i]] for i in numbers]
        stack = [[str(i), 'car', 1.0, *(positions[i] + random.normal(0.0, 0.7, 2))]
                 for i in others]
        distances = np.linalg.norm(
            np.array([row[3:] for row in truth]).reshape(-1, 1, 2)
            - np.array([row[3:] for row in stack]).reshape(1, -1, 2), axis=2)
        accumulator.update(numbers, others, np.where(distances < 2.0, distances, np.nan),
                           frameid=frame)
        truths.append(truth)
        stacks.append(stack)
    names = [name for name in NAMES if name not in ('tid', 'lgd')]
    summary = motmetrics.metrics.create().compute(accumulator, metrics=names)
    scores = scored(truths, stacks)
    assert {name: getattr(scores.clear, NAMES[name]) for name in names} == pytest.approx(
        {name: float(summary[name].iloc[0]) for name in names})
    # Our own sums over blocks of time are those of trackeval, and of a longer recording.
    counts = scores.identity_counts
    blocks = np.ones((1, len(counts.n_objects)))
    assert len(counts.n_objects) == 10
    assert [counts.hota(blocks)[0], counts.idf1(blocks)[0]] == pytest.approx(
        [scores.hota, scores.idf1], rel=1e-12)
    twice = scored(truths * 2, stacks * 2)
    assert [counts.hota(2.0 * blocks)[0], counts.idf1(2.0 * blocks)[0]] == pytest.approx(
        [twice.hota, twice.idf1], rel=1e-12)


def row(name, x, score=1.0):
    return [name, 'car', score, x, 0.0]


def test_track_worked_out_by_hand():
    """Missed, found as a, lost, found as a, taken over by b, missed at the end."""
    truths = [[row('t', float(i))] for i in range(8)]
    stacks = [[], [row('a', 1.5)], [], [], [row('a', 4.0)], [row('b', 5.0)],
              [row('b', 6.0), row('c', 60.0)], []]
    clear = scored(truths, stacks).clear
    assert (clear.objects - clear.misses, clear.misses, clear.false_positives) == (4, 4, 1)
    assert (clear.identity_switches, clear.fragmentations, clear.partially_tracked) == (1, 1, 1)
    assert (clear.motp, clear.track_initialization_duration) == (0.125, 0.5)
    assert clear.longest_gap_duration == 1.0


def test_equal_ids_in_a_frame_are_tracks_of_their_own():
    """By their order, whatever other ids look like; many of them take no more time than others."""
    truths = [[row('t', 0.0), row('u', 10.0), row('v', 20.0)]] * 2
    stacks = [[row('a', 0.0), row('a', 10.0), row('a+', 20.0)],
              [row('a', 0.0), row('a+', 20.0), row('a', 10.0)]]
    assert scored(truths, stacks).clear.identity_switches == 0
    swapped = [[row('a', 0.0), row('a', 10.0)], [row('a', 10.0), row('a', 0.0)]]
    assert scored([truths[0][:2]] * 2, swapped).clear.identity_switches == 2
    many = [[row('a', 1e6)] * 20_000]
    assert scored([[row('t', 0.0)]], many).clear.false_positives == 20_000


def test_kept_match_is_preferred_to_a_nearer_one():
    truths = [[row('t', 0.0)], [row('t', 0.0)]]
    stacks = [[row('a', 0.0)], [row('b', 0.1), row('a', 1.9)]]
    clear = scored(truths, stacks).clear
    assert (clear.identity_switches, clear.false_positives) == (0, 1)
    assert clear.motp == pytest.approx(0.95)


def test_average_scores_without_truths_or_detections():
    scores = scored([[row('t', 0.0)]], [[]])
    assert scores.averages == {'car': (0.0, 2.0)}
    assert math.isnan(scores.clear.motp)
    scores = scored([[]], [[row('a', 0.0)]])
    assert scores.averages == {}
    assert all(map(math.isnan, mean_averages(scores.averages)))
    assert scores.clear.false_positives == 1
