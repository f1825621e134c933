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

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.evaluation.detection_metrics import (
    averaged_classes,
    BlockCounts,
    ClassScores,
    Curves,
    I_FIRST,
    MAP_WEIGHT,
    N_RANKS,
    NUSCENES,
    recall_means,
    RECALLS,
)
from state_sensor_ros.evaluation.ego_metrics import EgoScores
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.frame_record import ERROR_NAMES
from state_sensor_ros.evaluation.matching import I_ERRORS, MATCH_DISTANCES_M
from state_sensor_ros.evaluation.prediction_metrics import (
    HORIZONS_S,
    OVERLAP_NAME,
    PATH_COUNTS,
    SCORE_NAMES,
)
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

# Ranks of equal confidences times blocks: their counts in all resamples take 8 MB.
_MAX_COLUMNS: Final = 1024
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
        yield from _detection_samples(result.classes, weights, definition)
    if result.tracking is not None:
        yield from _tracking_samples(result.tracking, weights)
    if result.prediction is not None:
        sums = blocks.sums(result.prediction.reshape(len(result.prediction), -1))
        totals = (weights @ sums).reshape(len(weights), *result.prediction.shape[1:])
        for i, horizon_s in enumerate(HORIZONS_S):
            for k, n_paths in enumerate(PATH_COUNTS):
                path = f'prediction/{horizon_s}' + (f'/k/{n_paths}' if n_paths else '')
                for j, name in enumerate((*SCORE_NAMES, OVERLAP_NAME), 1):
                    yield f'{path}/{name}', totals[:, i, k, j] / totals[:, i, k, 0]
    if result.ego is not None:
        yield from _ego_samples(result.ego, blocks, weights)


def _tracking_samples(scores: TrackingScores, weights: Floats) -> _Samples:
    truths, stacks, matches, switches, distances = (weights @ scores.block_counts).T
    yield 'tracking/mota', 1.0 - (truths + stacks - 2.0 * matches + switches) / truths
    yield 'tracking/motp', distances / matches
    yield 'tracking/misses', truths - matches
    yield 'tracking/false_positives', stacks - matches
    yield 'tracking/identity_switches', switches
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


def _detection_samples(classes: Sequence[ClassScores], weights: Floats,
                       definition: str) -> _Samples:
    precisions, recall_errors = {}, {}
    for scores in classes:
        assert scores.counts is not None
        path, counts = f'detection/classes/{scores.name}', scores.counts
        places = (path, *(f'{path}/bands/{band}' for band in scores.bands))
        plain = [dict(_plain_samples(weights @ sums, weights @ truths))
                 for sums, truths in zip(counts.sums, counts.truths, strict=True)]
        for place, samples in zip(places[1:], plain[1:], strict=False):
            yield from ((f'{place}/{name}', each) for name, each in samples.items()
                        if definition != NUSCENES or name not in ERROR_NAMES)
        n_truths = weights @ counts.truths[0]
        over_recall: Floats = np.full((len(weights), len(ERROR_NAMES)), np.nan)
        if scores.curves is not None:
            found = _average_precisions(counts, weights, n_truths)
            if np.isfinite(counts.confidences).all():
                over_recall = _recall_errors(counts, weights, n_truths)
            precisions[scores.name], recall_errors[scores.name] = found, over_recall
            for distance, column in zip(MATCH_DISTANCES_M, found.T, strict=True):
                yield f'{path}/ap/{distance}', column
        for name, theirs in zip(ERROR_NAMES, over_recall.T, strict=True):
            yield f'{path}/{NUSCENES}/{name}', theirs
            if definition == NUSCENES:
                plain[0][name] = theirs
        yield from ((f'{path}/{name}', each) for name, each in plain[0].items())
    yield from _mean_samples(precisions, recall_errors, [
        scores.name for scores in averaged_classes(classes)])


def _plain_samples(totals: Floats, n_truths: Floats) -> _Samples:
    """Yield precision, recall and plain means of errors, of sums as of :class:`BlockCounts`."""
    n_errors = len(ERROR_NAMES)
    yield 'precision', totals[:, -2] / totals[:, -1]
    yield 'recall', totals[:, -2] / n_truths
    yield from zip(ERROR_NAMES, (totals[:, :n_errors] / totals[:, n_errors:-2]).T, strict=True)


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


def _average_precisions(ranks: BlockCounts, weights: Floats, n_truths: Floats) -> Floats:
    """
    Return (N_RESAMPLES, 4) average precisions of a class.

    :param ranks: detections of the class.
    :param weights: (N_RESAMPLES, B) float64.
    :param n_truths: (N_RESAMPLES,) float64, numbers of ground-truth objects.
    """
    found: Floats = np.zeros((len(weights), len(MATCH_DISTANCES_M)))
    if not len(ranks.confidences):
        return found
    totals, *positives = (np.cumsum(counts, axis=1)
                          for counts in _ranked_counts(ranks.counts, weights))
    # Ranks before the first detection of a resample have the precision there.
    columns = np.maximum(np.arange(totals.shape[1]), (totals > 0.0).argmax(axis=1)[:, None])
    for i, matched in enumerate(positives):
        precision = np.take_along_axis(matched / np.maximum(totals, 1.0), columns, 1)
        recall = matched / np.maximum(n_truths, 1.0)[:, None]
        curves = np.stack([np.interp(RECALLS, *both, right=0.0)
                           for both in zip(recall, precision, strict=True)])
        found[:, i] = Curves(curves, curves).average_precisions
    return found


def _ranked_counts(counts: npt.NDArray[np.uint32], weights: Floats) -> Iterator[Floats]:
    """
    Yield (N_RESAMPLES, C) counts in the order of falling confidence, for each kind of counts.

    Of equal confidences the later one is first: few ranks are divided into their blocks.

    :param counts: (5, B, K) uint32, see :class:`BlockCounts`.
    :param weights: (N_RESAMPLES, B) float64.
    """
    n_columns = counts.shape[1] * counts.shape[2]
    for of_kind in counts:
        if counts.shape[2] < N_RANKS and n_columns <= _MAX_COLUMNS:
            by_rank = weights[:, None, ::-1] * of_kind.T[:, ::-1]
            yield by_rank.reshape(len(weights), n_columns)
        else:
            yield weights @ of_kind


def _recall_errors(ranks: BlockCounts, weights: Floats, n_truths: Floats) -> Floats:
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
