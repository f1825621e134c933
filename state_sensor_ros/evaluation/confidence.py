# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Confidence intervals of the numbers of a result, by the percentile bootstrap (Efron, 1979).

One recording is one scene, so its blocks of time are resampled; several recordings are resampled
as scenes. NDS, HOTA, IDF1, AMOTA and AMOTP are not sums over time and have no interval of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from state_sensor_ros.evaluation.detection_metrics import (
    averaged_classes,
    ClassScores,
    Curves,
    RECALLS,
)
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.frame_record import ERROR_NAMES
from state_sensor_ros.evaluation.matching import I_ERRORS, MATCH_DISTANCES_M
from state_sensor_ros.evaluation.prediction_metrics import HORIZONS_S, SCORE_NAMES
from state_sensor_ros.frame import Floats, Rows

LEVEL: Final = 0.95
BLOCK_S: Final = 10.0
# Shorter recordings have as many shorter blocks.
MIN_BLOCKS: Final = 10
N_RESAMPLES: Final = 1000
_SEED = 0
# Confidences of detections are rounded to so many ranks, which limits the memory.
_N_RANKS = 256

Interval = tuple[float, float]


def intervals_of(topic_results: Sequence[TopicResult]) -> dict[str, Any]:
    """
    Return the intervals of a result; the keys are described in doc/guide/evaluation.md.

    :param topic_results: results of topics; each part is that of the first one that has it.
    """
    intervals: dict[str, list[float]] = {}
    block_s, n_blocks = 0.0, 0
    for result in topic_results:
        stamps_ns = result.ego_stamps_ns if result.record is None else result.record.stamps_ns
        if stamps_ns is None or len(stamps_ns) < MIN_BLOCKS:
            continue
        duration_s = float(stamps_ns.max() - stamps_ns.min()) * 1e-9
        length_s = min(BLOCK_S, duration_s / MIN_BLOCKS)
        if not length_s:
            continue
        blocks = np.minimum(((stamps_ns - stamps_ns.min()) * 1e-9 / length_s).astype(np.int64),
                            max(round(duration_s / length_s) - 1, 0))
        block_s, n_blocks = max(block_s, length_s), max(n_blocks, int(blocks.max()) + 1)
        weights = _weights(int(blocks.max()) + 1)
        for path, samples in _samples(result, blocks, weights):
            found = interval(samples)
            if found is not None:
                intervals.setdefault(path, list(found))
    return {'level': LEVEL, 'resampled': 'blocks', 'block_s': block_s, 'n': n_blocks,
            'intervals': intervals}


def _weights(n_units: int) -> Floats:
    """Return (N_RESAMPLES, n_units) how often each unit is drawn."""
    random = np.random.default_rng(_SEED)
    return random.multinomial(n_units, np.full(n_units, 1.0 / n_units), N_RESAMPLES) \
        .astype(np.float64)


def interval(samples: Floats) -> Interval | None:
    """
    Return the interval of the resampled values of a number, None if most are undefined.

    :param samples: (N_RESAMPLES,) float64.
    """
    known = samples[np.isfinite(samples)]
    if 2 * len(known) <= len(samples):
        return None
    low, high = np.percentile(known, (50.0 * (1.0 - LEVEL), 50.0 * (1.0 + LEVEL))).tolist()
    return low, high


def mean_interval(numbers: Sequence[float]) -> Interval | None:
    """
    Return the interval of the mean of a number over scenes; None for less than two of them.

    :param numbers: a number of each scene.
    """
    if len(numbers) < 2:
        return None
    return interval(_weights(len(numbers)) @ np.array(numbers) / len(numbers))


def _samples(result: TopicResult, blocks: Rows,
             weights: Floats) -> Iterator[tuple[str, Floats]]:
    """
    Yield the path of each number that is resampled, and its values.

    :param result: result of a topic.
    :param blocks: (F,) int64, block of each frame.
    :param weights: (N_RESAMPLES, B) float64, of the blocks.
    """
    with np.errstate(all='ignore'):
        if result.classes is not None:
            yield from _detection_samples(result.classes, blocks, weights)
        if result.tracking is not None:
            counts = weights @ _block_sums(result.tracking.frame_counts, blocks)
            truths, stacks, matches, switches, distances = counts.T
            yield 'tracking/mota', 1.0 - (truths + stacks - 2.0 * matches + switches) / truths
            yield 'tracking/motp', distances / matches
        if result.prediction is not None:
            sums = _block_sums(result.prediction[:, :, 0].reshape(len(blocks), -1), blocks)
            totals = (weights @ sums).reshape(len(weights), len(HORIZONS_S), -1)
            for i, horizon_s in enumerate(HORIZONS_S):
                for j, name in enumerate(SCORE_NAMES, 1):
                    yield f'prediction/{horizon_s}/{name}', totals[:, i, j] / totals[:, i, 0]
        if result.ego is not None:
            squares = np.column_stack((np.square(result.ego.distances), np.ones(len(blocks))))
            total, count = (weights @ _block_sums(squares, blocks)).T
            yield 'ego/ate_rmse', np.sqrt(total / count)


def _block_sums(values: Floats, blocks: Rows) -> Floats:
    """Return (B, K) sums of (F, K) values."""
    sums = np.zeros((int(blocks.max()) + 1, values.shape[1]))
    np.add.at(sums, blocks, values)
    return sums


def _detection_samples(classes: Sequence[ClassScores], blocks: Rows,
                       weights: Floats) -> Iterator[tuple[str, Floats]]:
    averages = {}
    for scores in classes:
        path, detections = f'detection/classes/{scores.name}', scores.detections
        rows = blocks[detections.frames]
        known = np.isfinite(detections.errors)
        counts = np.zeros((weights.shape[1], 2 * len(ERROR_NAMES) + 3))
        np.add.at(counts[:, :-1], rows, np.column_stack((
            np.where(known, detections.errors, 0.0), known, detections.are_matches[I_ERRORS],
            np.ones(len(rows)))))
        counts[:, -1] = np.bincount(blocks[detections.truth_frames], minlength=weights.shape[1])
        totals = weights @ counts
        for i, name in enumerate(ERROR_NAMES):
            yield f'{path}/{name}', totals[:, i] / totals[:, len(ERROR_NAMES) + i]
        yield f'{path}/precision', totals[:, -3] / totals[:, -2]
        yield f'{path}/recall', totals[:, -3] / totals[:, -1]
        if scores.curves is not None:
            found = _average_precisions(scores, rows, weights, totals[:, -1])
            averages[scores.name] = found
            for distance, column in zip(MATCH_DISTANCES_M, found.T, strict=True):
                yield f'{path}/ap/{distance}', column
    means = [averages[scores.name].mean(axis=1) for scores in averaged_classes(classes)]
    if means:
        yield 'detection/map', np.mean(means, axis=0)


def _average_precisions(scores: ClassScores, rows: Rows, weights: Floats,
                        n_truths: Floats) -> Floats:
    """
    Return (N_RESAMPLES, 4) average precisions of a class.

    :param scores: scores of the class.
    :param rows: (N,) int64, block of each detection.
    :param weights: (N_RESAMPLES, B) float64.
    :param n_truths: (N_RESAMPLES,) float64, numbers of ground-truth objects.
    """
    detections, n_blocks = scores.detections, weights.shape[1]
    if not len(rows):
        return np.zeros((len(weights), len(MATCH_DISTANCES_M)))
    levels, ranks = np.unique(-detections.scores, return_inverse=True)
    if len(levels) > _N_RANKS:
        ranks = np.argsort(np.argsort(-detections.scores, kind='stable')) * _N_RANKS // len(rows)
    n_ranks = int(ranks.max()) + 1
    places = rows * n_ranks + ranks
    counts = np.stack([np.bincount(places, chosen, n_blocks * n_ranks).reshape(n_blocks, n_ranks)
                       for chosen in (np.ones(len(rows)), *detections.are_matches)])
    totals, *positives = np.cumsum(weights @ counts, axis=2)
    found: Floats = np.empty((len(weights), len(MATCH_DISTANCES_M)))
    for i, matched in enumerate(positives):
        precision = matched / np.maximum(totals, 1.0)
        recall = matched / np.maximum(n_truths, 1.0)[:, None]
        curves = np.stack([np.interp(RECALLS, *both, right=0.0)
                           for both in zip(recall, precision, strict=True)])
        found[:, i] = Curves(curves, curves).average_precisions
    return found
