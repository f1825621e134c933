# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Confidence intervals of the numbers of a result, by resampling the blocks of time of a recording.

What has been matched stays matched: each resample only weights the counts of the blocks. The
assignment of tracks by IDF1 and HOTA, and the thresholds of AMOTA, are those of the recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from state_sensor_ros.evaluation.detection_metrics import (
    averaged_classes,
    ClassScores,
    Curves,
    I_FIRST,
    MAP_WEIGHT,
    recall_means,
    RECALLS,
)
from state_sensor_ros.evaluation.ego_metrics import EgoScores
from state_sensor_ros.evaluation.evaluation_result import NUSCENES
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.frame_record import ERROR_NAMES
from state_sensor_ros.evaluation.matching import I_ERRORS, MATCH_DISTANCES_M
from state_sensor_ros.evaluation.prediction_metrics import HORIZONS_S, SCORE_NAMES
from state_sensor_ros.evaluation.resampling import (
    interval,
    LEVEL,
    MIN_BLOCKS,
    time_blocks,
    TimeBlocks,
    weights_of,
)
from state_sensor_ros.evaluation.tracking_metrics import (
    average_scores,
    mean_averages,
    TrackingScores,
)
from state_sensor_ros.frame import Floats

# Confidences of detections are rounded to so many ranks, which limits the memory.
_N_RANKS = 256
# Path of a number, and its value in each resample.
_Samples = Iterator[tuple[str, Floats]]


def intervals_of(topic_results: Sequence[TopicResult], definition: str) -> dict[str, Any]:
    """
    Return the intervals of a result; the keys are described in doc/guide/evaluation.md.

    :param topic_results: results of topics; each part is that of the first one that has it.
    :param definition: one of DEFINITIONS, of the errors of detections.
    """
    intervals: dict[str, list[float]] = {}
    block_s, n_blocks = 0.0, 0
    for result in topic_results:
        stamps_ns = result.ego_stamps_ns if result.record is None else result.record.stamps_ns
        blocks = None if stamps_ns is None else time_blocks(stamps_ns)
        if blocks is None or not blocks.length_s:
            continue
        block_s, n_blocks = max(block_s, blocks.length_s), max(n_blocks, blocks.n_blocks)
        with np.errstate(all='ignore'):
            for path, samples in _samples(result, blocks, definition):
                found = interval(samples)
                if found is not None:
                    intervals.setdefault(path, list(found))
    return {'level': LEVEL, 'resampled': 'blocks', 'block_s': block_s, 'n': n_blocks,
            'intervals': intervals}


def _samples(result: TopicResult, blocks: TimeBlocks, definition: str) -> _Samples:
    weights = weights_of(blocks.n_blocks)
    if result.classes is not None:
        yield from _detection_samples(result.classes, blocks, weights, definition)
    if result.tracking is not None:
        yield from _tracking_samples(result.tracking, weights)
    if result.prediction is not None:
        sums = blocks.sums(result.prediction[:, :, 0].reshape(len(result.prediction), -1))
        totals = (weights @ sums).reshape(len(weights), len(HORIZONS_S), -1)
        for i, horizon_s in enumerate(HORIZONS_S):
            for j, name in enumerate(SCORE_NAMES, 1):
                yield f'prediction/{horizon_s}/{name}', totals[:, i, j] / totals[:, i, 0]
    if result.ego is not None:
        yield from _ego_samples(result.ego, blocks, weights)


def _tracking_samples(scores: TrackingScores, weights: Floats) -> _Samples:
    truths, stacks, matches, switches, distances = (weights @ scores.block_counts).T
    yield 'tracking/mota', 1.0 - (truths + stacks - 2.0 * matches + switches) / truths
    yield 'tracking/motp', distances / matches
    if scores.hota is not None:
        yield 'tracking/hota', scores.identity_counts.hota(weights)
        yield 'tracking/idf1', scores.identity_counts.idf1(weights)
    if scores.averages is None:
        return
    averages = {}
    for name, counts in scores.threshold_counts.items():
        resampled: Floats = np.tensordot(weights, counts, (1, 0)).astype(np.float64, copy=False)
        averages[name] = average_scores(resampled)
    for name, both in averages.items():
        for key, samples in zip(('amota', 'amotp'), both, strict=True):
            yield f'tracking/classes/{name}/{key}', samples
    for key, samples in zip(('amota', 'amotp'), mean_averages(averages), strict=True):
        yield f'tracking/{key}', np.broadcast_to(samples, len(weights))


def _ego_samples(scores: EgoScores, blocks: TimeBlocks, weights: Floats) -> _Samples:
    main = {'ate/translation': 'ego/ate_rmse', 'rpe/1m/translation': 'ego/rpe_rmse'}
    for path, (rows, errors) in scores.errors.items():
        known = np.isfinite(errors)
        rows, errors = rows[known], errors[known]
        # Errors over long distances are too few to resample.
        if len(np.unique(blocks.of_frames[rows])) * 2 < MIN_BLOCKS:
            continue
        sums = blocks.sums_at(rows, np.column_stack((
            np.ones(len(rows)), errors, np.abs(errors), np.square(errors))))
        number, total, size, square = (weights @ sums).T
        mean, rmse = size / number, np.sqrt(square / number)
        yield f'ego/{path}/rmse', rmse
        yield f'ego/{path}/mean', mean
        yield f'ego/{path}/std', np.sqrt(np.maximum(square / number - np.square(mean), 0.0))
        if path.endswith('_error'):
            yield f'ego/{path}/bias', total / number
        if path in main:
            yield main[path], rmse


def _detection_samples(classes: Sequence[ClassScores], blocks: TimeBlocks, weights: Floats,
                       definition: str) -> _Samples:
    precisions, recall_errors = {}, {}
    n_errors = len(ERROR_NAMES)
    for scores in classes:
        path, detections = f'detection/classes/{scores.name}', scores.detections
        known = np.isfinite(detections.errors)
        sums = blocks.sums_at(detections.frames, np.column_stack((
            np.where(known, detections.errors, 0.0), known, detections.are_matches[I_ERRORS],
            np.ones(len(known)))))
        totals = weights @ sums
        n_truths = weights @ np.bincount(blocks.of_frames[detections.truth_frames],
                                         minlength=blocks.n_blocks)
        plain = totals[:, :n_errors] / totals[:, n_errors:2 * n_errors]
        yield f'{path}/precision', totals[:, -2] / totals[:, -1]
        yield f'{path}/recall', totals[:, -2] / n_truths
        over_recall = np.full_like(plain, np.nan)
        if scores.curves is not None:
            ranks = _ranked(scores, blocks)
            found = _average_precisions(ranks, weights, n_truths)
            if np.isfinite(ranks.confidences).all():
                over_recall = _recall_errors(ranks, weights, n_truths)
            precisions[scores.name], recall_errors[scores.name] = found, over_recall
            for distance, column in zip(MATCH_DISTANCES_M, found.T, strict=True):
                yield f'{path}/ap/{distance}', column
        for name, ours, theirs in zip(ERROR_NAMES, plain.T, over_recall.T, strict=True):
            yield f'{path}/{name}', theirs if definition == NUSCENES else ours
            yield f'{path}/{NUSCENES}/{name}', theirs
    yield from _mean_samples(precisions, recall_errors, [
        scores.name for scores in averaged_classes(classes)])


def _mean_samples(precisions: Mapping[str, Floats], recall_errors: Mapping[str, Floats],
                  names: Sequence[str]) -> _Samples:
    """Yield mAP, NDS and its errors: means over the classes of some names."""
    if not names:
        return
    mean_precision = np.mean([precisions[name].mean(axis=1) for name in names], axis=0)
    errors = np.mean([recall_errors[name] for name in names], axis=0)
    yield 'detection/map', mean_precision
    yield 'detection/nds', (MAP_WEIGHT * mean_precision + (
        1.0 - np.minimum(errors, 1.0)).sum(axis=1)) / (MAP_WEIGHT + len(ERROR_NAMES))
    for name, column in zip(ERROR_NAMES, errors.T, strict=True):
        yield f'detection/m{name}', column


@dataclass(frozen=True, slots=True, eq=False)
class _Ranks:
    """
    The detections of a class by B blocks and K ranks of their confidence, the highest first.

    ``confidences`` (K,); ``counts`` (5, B, K) detections, and matches at each of
    MATCH_DISTANCES_M; ``errors`` and ``known`` (5, B, K) sums of errors at 2 m, and numbers of
    known ones; ``last_errors`` (B, 5) of the last match of each block, NaN without one.
    """

    confidences: Floats
    counts: Floats
    errors: Floats
    known: Floats
    last_errors: Floats


def _ranked(scores: ClassScores, blocks: TimeBlocks) -> _Ranks:
    detections, n_blocks = scores.detections, blocks.n_blocks
    levels, ranks = np.unique(-detections.scores, return_inverse=True)
    if len(levels) > _N_RANKS:
        ranks = np.argsort(np.argsort(-detections.scores, kind='stable')) * _N_RANKS // len(ranks)
    n_ranks = int(ranks.max(initial=-1)) + 1
    confidences = np.full(n_ranks, np.inf)
    np.minimum.at(confidences, ranks, detections.scores)
    places = blocks.of_frames[detections.frames] * n_ranks + ranks

    def counted(columns: Iterable[npt.ArrayLike]) -> Floats:
        counts: Floats = np.stack([np.bincount(places, column, n_blocks * n_ranks)
                                   for column in columns]).astype(np.float64)
        return counts.reshape(len(counts), n_blocks, n_ranks)

    known = np.isfinite(detections.errors)
    last_errors = np.full((n_blocks, len(ERROR_NAMES)), np.nan)
    rows = np.flatnonzero(detections.are_matches[I_ERRORS])
    # The last row of equal indices is what an assignment keeps.
    last_errors[blocks.of_frames[detections.frames[rows]]] = np.where(
        known, detections.errors, 0.0)[rows]
    return _Ranks(
        confidences, counted([np.ones(len(places)), *detections.are_matches]),
        counted(np.where(known, detections.errors, 0.0).T), counted(known.T), last_errors)


def _average_precisions(ranks: _Ranks, weights: Floats, n_truths: Floats) -> Floats:
    """
    Return (N_RESAMPLES, 4) average precisions of a class.

    :param ranks: detections of the class.
    :param weights: (N_RESAMPLES, B) float64.
    :param n_truths: (N_RESAMPLES,) float64, numbers of ground-truth objects.
    """
    found: Floats = np.zeros((len(weights), len(MATCH_DISTANCES_M)))
    if not len(ranks.confidences):
        return found
    totals, *positives = np.cumsum(weights @ ranks.counts, axis=2)
    for i, matched in enumerate(positives):
        precision = matched / np.maximum(totals, 1.0)
        recall = matched / np.maximum(n_truths, 1.0)[:, None]
        curves = np.stack([np.interp(RECALLS, *both, right=0.0)
                           for both in zip(recall, precision, strict=True)])
        found[:, i] = Curves(curves, curves).average_precisions
    return found


def _recall_errors(ranks: _Ranks, weights: Floats, n_truths: Floats) -> Floats:
    """
    Return (N_RESAMPLES, 5) means over recall of the errors of a class, as of nuScenes.

    :param ranks: detections of the class.
    :param weights: (N_RESAMPLES, B) float64.
    :param n_truths: (N_RESAMPLES,) float64, numbers of ground-truth objects.
    """
    found: Floats = np.ones((len(weights), len(ERROR_NAMES)))
    if not len(ranks.confidences):
        return found
    matched = np.cumsum(weights @ ranks.counts[1 + I_ERRORS], axis=1)
    recalls = matched / np.maximum(n_truths, 1.0)[:, None]
    known = np.cumsum(weights @ ranks.known, axis=2)
    means = np.cumsum(weights @ ranks.errors, axis=2) / np.maximum(known, 1.0)
    are_unknown = known[:, :, -1] == 0.0
    means[are_unknown] = 1.0
    if len(ranks.confidences) == 1:
        # Of equal confidences the definition takes the error of the last match alone.
        have_match = np.isfinite(ranks.last_errors[:, 0]) & (weights > 0.0)
        last = have_match.shape[1] - 1 - have_match[:, ::-1].argmax(axis=1)
        is_reached = recalls[:, -1:] >= RECALLS[I_FIRST]
        return np.where(is_reached & ~are_unknown.T, ranks.last_errors[last], 1.0)
    for i, recall in enumerate(recalls):
        confidences = np.interp(RECALLS, recall, ranks.confidences, right=0.0)
        found[i] = recall_means(ranks.confidences, means[:, i].T, confidences)
    return found
