# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Confidence intervals of the numbers of a result: see resampling.py.

What has been matched stays matched: only the counts of a block are left out. The assignment of
tracks by IDF1 and HOTA, the association of each pair of tracks, and the thresholds of AMOTA are
those of the recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.evaluation import detection_metrics, resampling
from state_sensor_ros.evaluation.detection_metrics import BlockCounts, MAP_WEIGHT
from state_sensor_ros.evaluation.ego_metrics import EgoScores
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.frame_record import ERROR_NAMES
from state_sensor_ros.evaluation.matching import I_ERRORS, MATCH_DISTANCES_M
from state_sensor_ros.evaluation.prediction_metrics import OVERLAP_NAME, PathSums, SCORE_NAMES
from state_sensor_ros.evaluation.resampling import TimeBlocks
from state_sensor_ros.evaluation.tracking_metrics import average_scores, TrackingScores
from state_sensor_ros.frame import Floats

# Ranks of equal confidences times blocks: their counts without each block take 1 MB.
_MAX_COLUMNS: Final = 1024
# Recalls at which the curves of a resample end: a block changes the last one by less than 1 %.
_FINE_RECALLS: Floats = np.linspace(0.0, 1.0, 2001, dtype=np.float64)
# The last key of numbers of which more, or less, is better.
MORE: Final = frozenset((
    'map', 'nds', 'recall', 'precision', 'hota', 'mota', 'idf1', 'amota', 'mostly_tracked',
    '0.5', '1.0', '2.0', '4.0'))
LESS: Final = frozenset((
    *ERROR_NAMES, *(f'm{name}' for name in ERROR_NAMES), 'motp', 'amotp', 'identity_switches',
    'fragmentations', 'false_positives', 'misses', 'mostly_lost', 'track_initialization_duration',
    'longest_gap_duration', 'min_ade', 'min_fde', 'miss_rate', 'min_ade_argoverse',
    'miss_rate_nuscenes', 'overlap_rate', 'ate_rmse', 'rpe_rmse', 'rmse'))
# Parts of paths whose numbers repeat others in more detail.
_DETAILS = ('/bands/', '/nuscenes/', '/k/', '/unknown/')
# Path of a number, its values without each unit, and the number of units that it rests on.
_Samples = Iterator[tuple[str, Floats, int]]


def is_compared(path: str) -> bool:
    return path.rpartition('/')[2] in MORE | LESS and not any(part in path for part in _DETAILS)


def intervals_of(topic_results: Sequence[TopicResult], numbers: Mapping[str, float | None],
                 definition: str, bags: TimeBlocks | None = None) -> dict[str, Any]:
    """Return the intervals of a result; the keys are described in doc/guide/evaluation.md."""
    intervals: dict[str, list[float]] = {}
    units: dict[str, int] = {}
    deviations: dict[str, list[float]] = {}
    block_s, n_blocks, begin_s = 0.0, 0, 0.0
    for result in topic_results:
        stamps_ns = result.ego_stamps_ns if result.record is None else result.record.stamps_ns
        blocks = None if stamps_ns is None else bags or resampling.time_blocks(stamps_ns)
        if stamps_ns is None or blocks is None or blocks.n_blocks < 2:
            continue
        if blocks.n_blocks > n_blocks:
            block_s, n_blocks = blocks.length_s, blocks.n_blocks
            begin_s = float(stamps_ns.min()) * 1e-9
        with np.errstate(all='ignore'):
            for path, values, n_units in samples_of(
                    result, blocks, resampling.weights_without(blocks.n_blocks), definition):
                number, differences = numbers.get(path), values - values.mean()
                found = None if number is None or path in intervals else resampling.interval(
                    path, number, differences, n_units)
                if found is not None:
                    intervals[path], units[path] = list(found), n_units
                    if is_compared(path):
                        deviations[path] = [float(f'{each:.4g}') for each in differences]
    return {'level': resampling.LEVEL, 'resampled': 'blocks' if bags is None else 'bags',
            'block_s': block_s, 'n': n_blocks, 'begin_s': begin_s, 'intervals': intervals,
            'units': units, 'deviations': deviations}


def half_of_difference(path: str, new: Mapping[str, Any], old: Mapping[str, Any]) -> float | None:
    """Return half the interval of the difference of a number in two runs, by paired blocks."""
    ours, theirs = (run.get('deviations', {}).get(path) for run in (new, old))
    are_paired = ours is not None and theirs is not None and len(ours) == len(theirs) and all(
        abs(new[name] - old.get(name, np.inf)) < 1e-3 for name in ('begin_s', 'block_s'))
    if not are_paired:
        return None
    return resampling.half_width(path, np.array(ours) - np.array(theirs),
                                 min(new['units'][path], old['units'][path]))


def samples_of(result: TopicResult, blocks: TimeBlocks, weights: Floats,
               definition: str) -> _Samples:
    """Yield numbers of a result that is made of its blocks."""
    # weights: (R, B) float64, how often each block counts.
    if result.classes is not None:
        yield from _detection_samples(result.classes, weights, definition)
    if result.tracking is not None:
        yield from _tracking_samples(result.tracking, weights)
    if result.prediction is not None:
        yield from _prediction_samples(result.prediction, blocks, weights)
    if result.ego is not None:
        yield from _ego_samples(result.ego, blocks, weights)


def _prediction_samples(found: PathSums, blocks: TimeBlocks, weights: Floats) -> _Samples:
    sums = blocks.sums(found.sums.reshape(len(found.sums), -1)).reshape(
        blocks.n_blocks, *found.sums.shape[1:])
    totals = np.tensordot(weights, sums, (1, 0))
    n_units = (sums[..., 0] > 0.0).sum(axis=0)
    for i, horizon_s in enumerate(found.horizons_s):
        for k, n_paths in enumerate(found.path_counts):
            path = f'prediction/{horizon_s}' + (f'/k/{n_paths}' if n_paths else '')
            for j, name in enumerate((*SCORE_NAMES, OVERLAP_NAME), 1):
                yield (f'{path}/{name}', totals[:, i, k, j] / totals[:, i, k, 0],
                       int(n_units[i, k]))


def _tracking_samples(scores: TrackingScores, weights: Floats) -> _Samples:
    n_units = _n_used(scores.counts.clear[:, 0])
    for name, values in scores.counts.scores(weights).items():
        yield f'tracking/{name}', values, n_units
    averages = {}
    for name, of_class in (scores.classes or {}).items():
        units = _n_used(of_class.n_truths)
        averages[name] = average_scores(of_class, weights)
        for key, values in zip(('amota', 'amotp'), averages[name], strict=True):
            yield f'tracking/classes/{name}/{key}', values, units
        n_units = min(n_units, units)
    averages.pop(CLASS_NAMES[UNKNOWN], None)
    for i, key in enumerate(('amota', 'amotp')) if averages else ():
        yield f'tracking/{key}', np.mean([both[i] for both in averages.values()], axis=0), n_units


def _n_used(counts: Floats) -> int:
    return int((counts > 0.0).sum())


def _ego_samples(scores: EgoScores, blocks: TimeBlocks, weights: Floats) -> _Samples:
    main = {'ate/translation': 'ego/ate_rmse', 'rpe/1m/translation': 'ego/rpe_rmse'}
    for path, (rows, errors) in scores.errors.items():
        known = np.isfinite(errors)
        rows, errors = rows[known], errors[known]
        sums = blocks.sums_at(rows, np.column_stack((
            np.ones(len(rows)), errors, np.abs(errors), np.square(errors))))
        number, total, size, square = (weights @ sums).T
        n_units = _n_used(sums[:, 0])
        samples = {'rmse': np.sqrt(square / number), 'mean': size / number}
        if path.endswith('_error'):
            samples['bias'] = total / number
        for name, values in samples.items():
            yield f'ego/{path}/{name}', values, n_units
        if path in main:
            yield main[path], samples['rmse'], n_units


def _detection_samples(classes: Sequence[detection_metrics.ClassScores], weights: Floats,
                       definition: str) -> _Samples:
    precisions, recall_errors, units = {}, {}, {}
    for scores in classes:
        assert scores.counts is not None
        path, counts = f'detection/classes/{scores.name}', scores.counts
        n_units = units[scores.name] = _n_used(counts.truths[0] + counts.sums[0, :, -1])
        for place, sums, truths in zip((path, *(f'{path}/bands/{band}' for band in scores.bands)),
                                       counts.sums, counts.truths, strict=False):
            yield from ((f'{place}/{name}', values, _n_used(truths + sums[:, -1]))
                        for name, values in _plain_samples(weights @ sums, weights @ truths)
                        if definition != detection_metrics.NUSCENES or name not in ERROR_NAMES)
        if scores.curves is None:
            continue
        n_truths = weights @ counts.truths[0]
        found = precisions[scores.name] = _average_precisions(counts, weights, n_truths)
        for distance, column in zip(MATCH_DISTANCES_M, found.T, strict=True):
            yield f'{path}/ap/{distance}', column, n_units
        # Of equal confidences, the errors over recall are those of single matches.
        if len(counts.confidences) > 1 and np.isfinite(counts.confidences).all():
            over_recall = recall_errors[scores.name] = _recall_errors(counts, weights, n_truths)
            for name, values in zip(ERROR_NAMES, over_recall.T, strict=True):
                yield f'{path}/{detection_metrics.NUSCENES}/{name}', values, n_units
                if definition == detection_metrics.NUSCENES:
                    yield f'{path}/{name}', values, n_units
    yield from _mean_samples(precisions, recall_errors, [
        scores.name for scores in detection_metrics.averaged_classes(classes)], units)


def _plain_samples(totals: Floats, n_truths: Floats) -> Iterator[tuple[str, Floats]]:
    """Yield precision, recall and plain means of errors, of sums as of :class:`BlockCounts`."""
    n_errors = len(ERROR_NAMES)
    yield 'precision', totals[:, -2] / totals[:, -1]
    yield 'recall', totals[:, -2] / n_truths
    yield from zip(ERROR_NAMES, (totals[:, :n_errors] / totals[:, n_errors:-2]).T, strict=True)


def _mean_samples(precisions: Mapping[str, Floats], recall_errors: Mapping[str, Floats],
                  names: Sequence[str], units: Mapping[str, int]) -> _Samples:
    """Yield mAP, NDS and its errors: means over the classes of some names."""
    if not names:
        return
    n_units = min(units[name] for name in names)
    mean_precision = np.mean([precisions[name].mean(axis=1) for name in names], axis=0)
    yield 'detection/map', mean_precision, n_units
    if not recall_errors.keys() >= set(names):
        return
    errors = np.mean([recall_errors[name] for name in names], axis=0)
    yield 'detection/nds', (MAP_WEIGHT * mean_precision + (
        1.0 - np.minimum(errors, 1.0)).sum(axis=1)) / (MAP_WEIGHT + len(ERROR_NAMES)), n_units
    for name, column in zip(ERROR_NAMES, errors.T, strict=True):
        yield f'detection/m{name}', column, n_units


def _average_precisions(ranks: BlockCounts, weights: Floats, n_truths: Floats) -> Floats:
    """Return (R, 4) average precisions of a class."""
    # weights: (R, B) float64.
    # n_truths: (R,) float64, numbers of ground-truth objects.
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
        curves = np.stack([np.interp(_FINE_RECALLS, *both, right=0.0)
                           for both in zip(recall, precision, strict=True)])
        found[:, i] = detection_metrics.average_precision(curves)
    return found


def _ranked_counts(counts: Floats, weights: Floats) -> Iterator[Floats]:
    """
    Yield (R, C) counts in the order of falling confidence, for each kind of counts.

    Of equal confidences the later one is first: few ranks are divided into their blocks.

    :param counts: (5, B, K) float64, see :class:`BlockCounts`.
    :param weights: (R, B) float64.
    """
    n_columns = counts.shape[1] * counts.shape[2]
    for of_kind in counts:
        if counts.shape[2] < detection_metrics.N_RANKS and n_columns <= _MAX_COLUMNS:
            by_rank = weights[:, None, ::-1] * of_kind.T[:, ::-1]
            yield by_rank.reshape(len(weights), n_columns)
        else:
            yield weights @ of_kind


def _recall_errors(ranks: BlockCounts, weights: Floats, n_truths: Floats) -> Floats:
    """Return (R, 5) means over recall of the errors of a class, as of nuScenes."""
    # weights: (R, B) float64.
    # n_truths: (R,) float64, numbers of ground-truth objects.
    found: Floats = np.ones((len(weights), len(ERROR_NAMES)))
    if not len(ranks.confidences):
        return found
    matched = np.cumsum(weights @ ranks.counts[1 + I_ERRORS], axis=1)
    recalls = matched / np.maximum(n_truths, 1.0)[:, None]
    known = np.cumsum(weights @ ranks.known, axis=2)
    means = np.cumsum(weights @ ranks.errors, axis=2) / np.maximum(known, 1.0)
    are_unknown = known[:, :, -1] == 0.0
    means[are_unknown] = 1.0
    for i, recall in enumerate(recalls):
        confidences = np.interp(detection_metrics.RECALLS, recall, ranks.confidences, right=0.0)
        found[i] = detection_metrics.recall_means(ranks.confidences, means[:, i].T, confidences)
    return found
