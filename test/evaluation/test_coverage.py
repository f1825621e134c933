# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Coverage of confidence intervals: the share of recordings whose interval has the true value.

Blocks of a recording are drawn from one distribution: each has its own quality. The true value is
that of 40,000 blocks.
"""

from types import SimpleNamespace

from budgets import one_of
import numpy as np
import pytest

from state_sensor_ros.evaluation import confidence
from state_sensor_ros.evaluation.detection_metrics import BlockCounts, ClassScores, Curves
from state_sensor_ros.evaluation.ego_metrics import EgoScores
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.prediction_metrics import PathSums
from state_sensor_ros.evaluation.resampling import (
    interval,
    mean_interval,
    TimeBlocks,
    weights_without,
)
from state_sensor_ros.evaluation.tracking_metrics import (
    ThresholdScores,
    TrackCounts,
    TrackingScores,
)

COUNTS = ('misses', 'false_positives', 'identity_switches')
LEVELS = np.linspace(1.0, 0.0, 41)[1:]


def drawn(random, n_blocks):
    """Return the result of a topic with blocks of one frame."""
    quality = random.beta(8.0, 3.0, n_blocks)
    spread = random.gamma(6.0, 0.1, n_blocks)
    n_truths = 20 + random.poisson(20.0, n_blocks)
    n_matches = random.binomial(n_truths, quality)
    n_false = random.poisson(20.0 * (1.0 - quality))
    matched, false = (random.multinomial(counts, shares / shares.sum()) for counts, shares in (
        (n_matches, LEVELS ** 2), (n_false, (1.0 - LEVELS) + 0.05)))
    n_near = [random.binomial(matched, np.exp(-spread / limit)[:, None])
              for limit in (0.5, 1.0, 4.0, 9.0)]
    # Sums of five errors of the matches of each rank.
    errors = spread[None, :, None] * n_near[2] * random.gamma(
        20.0, 0.05, (5, n_blocks, len(LEVELS)))
    known = np.broadcast_to(n_near[2], errors.shape)
    sums = np.column_stack((errors.sum(2).T, known.sum(2).T, n_near[2].sum(1),
                            n_matches + n_false))
    counts = BlockCounts(sums[None], n_truths[None].astype(float), LEVELS,
                         np.stack((matched + false, *n_near)), errors, known)
    unknown, curve = np.full(5, np.nan), np.zeros((4, 101))
    classes = [ClassScores('car', 1, 1, 1, Curves(curve, curve), unknown, unknown, counts)]
    n_switches = random.binomial(n_matches, 0.1 * (1.0 - quality))
    distances = n_matches * spread * random.gamma(20.0, 0.05, n_blocks)
    positives = random.binomial(n_matches[:, None], np.exp(
        -spread[:, None] * np.linspace(0.05, 0.95, 19)))
    track_counts = TrackCounts(
        np.column_stack((n_truths, n_matches + n_false, n_matches, n_switches, distances)),
        random.binomial(n_matches, 0.9).astype(float), positives.astype(float),
        positives * quality[:, None])
    reached = np.cumsum(matched, axis=1)
    at_thresholds = np.stack((
        reached + np.cumsum(false, axis=1), reached, np.minimum(reached // 30, reached),
        reached * spread[:, None]), axis=2).astype(float)
    scores = TrackingScores({}, track_counts, {'car': ThresholdScores(
        n_truths.astype(float), np.concatenate((at_thresholds, at_thresholds[:, -1:]), axis=1),
        {})})
    worse = 3.0 * spread * random.gamma(10.0, 0.1, n_blocks)
    misses = random.binomial(n_matches, 1.0 - np.exp(-spread))
    paths = np.column_stack((n_matches, worse * n_matches / 2.0, worse * n_matches, misses,
                             worse * n_matches, misses, misses // 2))[:, None, None]
    rows = np.repeat(np.arange(n_blocks), 10)
    lateral = random.normal(0.0, spread)[rows] + random.normal(0.0, 0.2, len(rows))
    ego = EgoScores({'ate/translation': (rows, np.abs(lateral)),
                     'lateral_error': (rows, lateral)}, {}, 1.0)
    return TopicResult('', record=SimpleNamespace(stamps_ns=np.arange(n_blocks) * 10 ** 10),
                       classes=classes, tracking=scores,
                       prediction=PathSums((5.0,), (0,), paths, 0), ego=ego)


def numbers_of(found, n_blocks):
    """Return all numbers, of all blocks."""
    blocks = TimeBlocks(np.arange(n_blocks), n_blocks, 10.0)
    return {path: float(value) for path, [value], _ in confidence.samples_of(
        found, blocks, np.ones((1, n_blocks)), 'plain')}


@pytest.fixture(scope='module')
def true_numbers():
    return numbers_of(drawn(np.random.default_rng(1), 40_000), 40_000)


@pytest.mark.parametrize('n_blocks', one_of([10, 20, 60]))
@pytest.mark.parametrize('n_runs', [400, pytest.param(2000, marks=pytest.mark.thorough)])
def test_intervals_have_the_true_value_as_often_as_they_say(monkeypatch, true_numbers, n_blocks,
                                                            n_runs):
    random = np.random.default_rng(n_blocks)
    blocks = TimeBlocks(np.arange(n_blocks), n_blocks, 10.0)
    monkeypatch.setattr(confidence.resampling, 'time_blocks', lambda stamps_ns: blocks)
    covered = {}
    for _ in range(n_runs):
        found = drawn(random, n_blocks)
        numbers = numbers_of(found, n_blocks)
        for path, (low, high) in confidence.intervals_of(
                [found], numbers, 'plain')['intervals'].items():
            name, true = path.rpartition('/')[2], true_numbers[path]
            if name in COUNTS:
                assert (type(low), type(high)) == (int, int)
                true *= n_blocks / 40_000
            assert low <= numbers[path] <= high
            covered.setdefault(path, []).append(low <= true <= high)
    kinds = {'hota', 'mota', 'idf1', 'motp', 'amota', 'amotp', 'map', 'nds', 'recall', 'precision',
             'ate', 'mate', 'min_ade', 'miss_rate', 'ate_rmse', 'mean', 'bias', *COUNTS}
    assert kinds <= {path.rpartition('/')[2] for path in covered}
    shares = {path: np.mean(each) for path, each in covered.items()}
    assert {path: share for path, share in shares.items() if not 0.90 <= share <= 0.98} == {}
    assert 0.92 < np.mean(list(shares.values())) < 0.97


@pytest.mark.parametrize('n_bags', [5, 10, 20, 60])
def test_intervals_of_means_over_bags(n_bags):
    random = np.random.default_rng(n_bags)
    found = [mean_interval('tracking/hota', random.beta(8.0, 3.0, n_bags)) for _ in range(2000)]
    # Rarely, one bag alone differs from all others.
    known = [each for each in found if each is not None]
    assert len(known) > 1980
    assert 0.92 < np.mean([low < 8.0 / 11.0 < high for low, high in known]) < 0.97


@pytest.mark.parametrize(('name', 'n_units', 'of_unit'), [
    ('miss_rate', 10, 0.35), ('miss_rate', 10, 1.0), ('miss_rate', 20, 0.2),
    ('miss_rate', 60, 0.1), ('identity_switches', 20, 0.5), ('identity_switches', 60, 0.2)])
def test_intervals_of_rare_events(name, n_units, of_unit):
    """Few events in each unit; those of one unit alone have no interval."""
    random, weights = np.random.default_rng(n_units), weights_without(n_units)
    covered = []
    for _ in range(2000):
        chances = 30 + random.poisson(10.0, n_units)
        events = random.binomial(chances, of_unit / 40.0)
        total, true = events.sum(), of_unit * n_units
        without = weights @ events
        if name == 'miss_rate':
            total, true = total / chances.sum(), of_unit / 40.0
            without /= weights @ chances
        found = interval(name, float(total), without - without.mean(), n_units)
        assert found is not None or (events > 0).sum() < 2
        covered += [] if found is None else [found[0] <= true <= found[1]]
    # Three standard errors are 1 %.
    assert 0.91 <= np.mean(covered) <= 0.99


def test_few_units_have_no_interval():
    assert mean_interval('tracking/hota', [0.2, 0.5, 0.4, 0.1]) is None
    found = drawn(np.random.default_rng(0), 10)
    numbers = numbers_of(found, 10)
    counts = found.tracking.counts.clear
    counts[4:] = 0.0
    intervals = confidence.intervals_of([found], numbers, 'plain')
    assert 'tracking/mota' not in intervals['intervals']
    assert intervals['units']['detection/map'] == 10
