# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The result of an evaluation: the numbers of ``--json``, their names, their change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
import math
from pathlib import Path
import sys
from typing import Any, Final

import msgspec
import numpy as np

from state_sensor_ros.errors import ConfigError, TrajectoryFormatError
from state_sensor_ros.evaluation import detection_metrics, prediction_metrics, tracking_metrics
from state_sensor_ros.evaluation.detection_metrics import ClassScores, NUSCENES, PLAIN
from state_sensor_ros.evaluation.ego_metrics import EgoPoses, EgoScores, score_ego
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.frame_record import BANDS, ERROR_NAMES
from state_sensor_ros.evaluation.ground_truth import GroundTruthBuilder
from state_sensor_ros.evaluation.matching import EVALUATED_CLASSES, MATCH_DISTANCES_M
from state_sensor_ros.evaluation.track_record import TrackRecorder
from state_sensor_ros.parameters import near_names
from state_sensor_ros.texts import one_line
from state_sensor_ros.version import __version__

DISTANCES: Final = tuple(str(distance) for distance in MATCH_DISTANCES_M)
# Key of the result with the differences, new less old.
AGAINST: Final = 'against'
# The last key of numbers of which more, or less, is better.
MORE: Final = frozenset((
    'map', 'nds', 'recall', 'precision', 'hota', 'mota', 'idf1', 'amota', 'mostly_tracked',
    *DISTANCES))
LESS: Final = frozenset((
    *ERROR_NAMES, *(f'm{name}' for name in ERROR_NAMES), 'motp', 'amotp', 'identity_switches',
    'fragmentations', 'false_positives', 'misses', 'mostly_lost', 'track_initialization_duration',
    'longest_gap_duration', 'min_ade', 'min_fde', 'miss_rate', 'min_ade_argoverse',
    'miss_rate_nuscenes', 'ate_rmse', 'rpe_rmse', 'rmse'))
# Parts of paths whose numbers repeat others in more detail.
_DETAILS = ('/bands/', '/nuscenes/', '/k/', '/unknown/')
_EXPECTED = 'the output of evaluate --json'
# Smaller differences are rounding: relative, and of errors near zero.
_LEAST_SHARE, _LEAST_CHANGE = 1e-9, 1e-6


def result_of(topic_results: Sequence[TopicResult], n_truth_frames: int, *,
              definition: str = PLAIN, alignment: str = 'none') -> dict[str, Any]:
    """Return the result with the keys of doc/guide/evaluation.md; undefined numbers are None."""
    result: dict[str, Any] = {
        'frames': topic_results[0].n_frames,
        'frames_without_truth': topic_results[0].n_without_truth,
        'truth_frames': n_truth_frames,
        # As in the metadata of tables.
        'version': f'state_sensor_ros {__version__}'}
    for found in topic_results:
        if found.classes is not None:
            result.setdefault('detection', _detection(found.classes, definition))
        if found.tracking is not None:
            result.setdefault('tracking', _tracking(found.tracking))
        if found.prediction is not None:
            result.setdefault('prediction', _prediction(found.prediction))
        if found.ego is not None:
            result.setdefault('ego', _ego(found.ego, alignment))
    known: dict[str, Any] = _known(result)
    return known


def _known(value: Any) -> Any:  # noqa: ANN401
    """Return a result in which numbers that are not finite are None."""
    if isinstance(value, dict):
        return {key: _known(part) for key, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _detection(classes: Sequence[ClassScores], definition: str) -> dict[str, Any]:
    means = detection_metrics.mean_recall_errors(classes).tolist()
    return {
        'map': detection_metrics.mean_average_precision(classes),
        'classes': {scores.name: {
            **_class(scores, definition),
            **({'bands': {name: _class(band, definition) for name, band in scores.bands.items()}}
               if scores.bands else {})} for scores in classes},
        'nds': detection_metrics.detection_score(classes),
        **{f'm{name}': mean for name, mean in zip(ERROR_NAMES, means, strict=True)},
        'definition': definition}


def _class(scores: ClassScores, definition: str) -> dict[str, Any]:
    averages = scores.average_precisions
    plain, over_recall = (dict(zip(ERROR_NAMES, errors.tolist(), strict=True))
                          for errors in (scores.errors, scores.recall_errors))
    if scores.curves is None:
        over_recall = dict.fromkeys(ERROR_NAMES, math.nan)
    return {
        'ap': dict(zip(DISTANCES, [None] * len(DISTANCES) if averages is None
                       else averages.tolist(), strict=True)),
        **(over_recall if definition == NUSCENES else plain),
        'recall': _share(scores.n_matches, scores.n_truths),
        'precision': _share(scores.n_matches, scores.n_detections),
        'truths': scores.n_truths, 'detections': scores.n_detections, NUSCENES: over_recall}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _tracking(scores: tracking_metrics.TrackingScores) -> dict[str, Any]:
    result: dict[str, Any] = dict(scores.numbers)
    if scores.classes is not None:
        means = tracking_metrics.class_means(scores.classes)
        result |= {name: means.pop(name) for name in ('amota', 'amotp')}
        result[NUSCENES] = means
        result['classes'] = dict(scores.classes)
    return result


def _prediction(found: prediction_metrics.PathSums) -> dict[str, Any]:
    return {str(horizon_s): {
        **by_count[prediction_metrics.ALL_PATHS], 'matched': found.n_matched,
        'k': {str(n_paths): dict(scores) for n_paths, scores in by_count.items() if n_paths}}
        for horizon_s, by_count in prediction_metrics.path_scores(found).items()}


def _ego(scores: EgoScores, alignment: str) -> dict[str, Any]:
    found = scores.statistics
    return _nested((
        ('ate_rmse', found['ate/translation']['rmse']),
        ('rpe_rmse', found['rpe/1m/translation']['rmse']), *found.items(),
        ('alignment', alignment), ('scale', scores.scale)))


def _nested(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a result of values by their paths."""
    result: dict[str, Any] = {}
    for path, value in values:
        *keys, name = path.split('/')
        part = result
        for key in keys:
            part = part.setdefault(key, {})
        part[name] = value
    return result


def number_at(result: Mapping[str, Any], path: str) -> float | None:
    """Return the number at a path such as ``detection/classes/car/ate``; None if undefined."""
    # path: keys, separated by ``/``.
    found: Any = result
    done: list[str] = []
    for key in path.split('/'):
        if not isinstance(found, Mapping) or key not in found:
            names = near_names([key], found) if isinstance(found, Mapping) \
                else ', which is not a group'
            raise ConfigError(path, f'no {key} in {"/".join(done) or "the result"}{names}')
        found = found[key]
        done.append(key)
    if isinstance(found, Mapping):
        raise ConfigError(path, 'a group of numbers', f'{path}/ and one of {", ".join(found)}')
    if isinstance(found, str | list):
        raise ConfigError(path, f'{found}', 'the path of a number')
    return None if found is None else float(found)


def numbers_of(result: Mapping[str, Any], path: str = '') -> Iterator[tuple[str, float | None]]:
    """Yield the path of each number, and the number."""
    # path: path of the part, with ``/`` at its end.
    for key, value in result.items():
        if isinstance(value, Mapping):
            yield from numbers_of(value, f'{path}{key}/')
        elif _is_number(value):
            yield f'{path}{key}', None if value is None else float(value)


@dataclass(frozen=True, slots=True)
class Change:
    path: str  # path, old, new: None if the number is lost
    old: float
    new: float | None
    is_better: bool

    @property
    def size(self) -> float:
        """Change relative to the greater of both numbers; infinite for a lost one."""
        if self.new is None:
            return math.inf
        return abs(self.new - self.old) / max(abs(self.new), abs(self.old))


def read_results(path: str) -> list[dict[str, Any]]:
    """Read the results of an earlier run."""
    # path: file with the output of ``evaluate --json``, for one bag or for several.
    try:
        return _decoded(Path(path).read_bytes())
    except OSError as error:
        raise TrajectoryFormatError(path, one_line(str(error.strerror)), _EXPECTED) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise TrajectoryFormatError(path, 'no JSON object', _EXPECTED) from error


def result_of_bag(path: str, results: Sequence[dict[str, Any]], stack: str, *,
                  definition: str, alignment: str) -> dict[str, Any]:
    """Return the earlier result of a bag."""
    # stack: path of the bag; of several results, the one of the same path is returned, else the
    # only one of the same name.
    if len(results) > 1:
        files = [Path(str(result.get('file', ''))) for result in results]
        chosen = [file == Path(stack) for file in files]
        if not any(chosen):
            chosen = [file.name == Path(stack).name for file in files]
        results = [result for result, is_chosen in zip(results, chosen, strict=True) if is_chosen]
        if len(results) != 1:
            raise TrajectoryFormatError(
                path, f'no result of {stack}' if not results else
                f'{len(results)} results of bags named {Path(stack).name}', 'one result')
    if 'frames' not in results[0]:
        raise TrajectoryFormatError(path, 'no frames', _EXPECTED)
    for part, name, ours, option in (('detection', 'definition', definition, '--definition'),
                                     ('ego', 'alignment', alignment, '--align')):
        found = results[0].get(part)
        # Earlier versions did not name the definition.
        if isinstance(found, Mapping) and isinstance(found.get(name), str) and found[name] != ours:
            raise TrajectoryFormatError(f'{path}: {part}/{name}', one_line(found[name]),
                                        f'{ours}, as {option} of this run')
    return results[0]


def _decoded(data: bytes) -> list[dict[str, Any]]:
    """Return the only result, or that of each line."""
    try:
        return [msgspec.json.decode(data, type=dict[str, Any])]
    except msgspec.MsgspecError:
        results: list[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any]).decode_lines(data)
        if len(results) < 2:
            raise
        return results


def against(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the result that compares it with an earlier one."""
    found, before = changes(new, old), _compared(old)
    return {**_nested(
        (path, None if None in (number, before[path]) else number - before[path])
        for path, number in _compared(new).items() if path in before), 'lost': [
        change.path for change in found if change.new is None]}


def _compared(result: Mapping[str, Any]) -> dict[str, Any]:
    return dict(numbers_of({key: value for key, value in result.items()
                            if key != AGAINST}))


def _is_number(value: object) -> bool:
    """Return whether a value is None or a number; numbers beyond float64 are none."""
    return value is None or isinstance(value, float) or (
        isinstance(value, int) and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max)


def changes(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[Change]:
    """Return the main numbers that are lost, or got better or worse, the greatest change first."""
    ours, before = _compared(new), _compared(old)
    found = []
    for path, other in before.items():
        number = ours.get(path)
        if other is None or path.rpartition('/')[2] not in MORE | LESS or any(
                part in path for part in _DETAILS):
            continue
        if number is None or abs(number - other) > max(
                _LEAST_SHARE * max(abs(number), abs(other)), _LEAST_CHANGE):
            is_better = number is not None and (number > other) == (
                path.rpartition('/')[2] in MORE)
            found.append(Change(path, other, number, is_better))
    return sorted(found, key=lambda change: -change.size)


def possible_result(definition: str, *, has_earlier: bool, horizons_s: Sequence[float],
                    path_counts: Sequence[int]) -> dict[str, Any]:
    """Return a result with every name that a result can have; its numbers mean nothing."""
    nothing = np.zeros(0, np.int64)
    poses = EgoPoses(nothing, np.zeros((0, 7)), np.zeros(0))
    tracking = tracking_metrics.score_tracks(TrackRecorder().finish(), None)
    if definition == NUSCENES:
        names = ('amota', 'amotp', *tracking_metrics.WORST)
        tracking = replace(tracking, classes={
            name: dict.fromkeys(names, 0.0) for name in EVALUATED_CLASSES})
    found = TopicResult(
        '', classes=[_class_scores(name, is_band=False) for name in EVALUATED_CLASSES],
        tracking=tracking, ego=score_ego(poses, poses, 'none'),
        prediction=prediction_metrics.PathScorer(
            GroundTruthBuilder('').finish(None), horizons_s, path_counts).finish())
    result = result_of([found], 0, definition=definition)
    return {**result, AGAINST: against(result, result)} if has_earlier else result


def _class_scores(name: str, *, is_band: bool) -> ClassScores:
    unknown = np.full(len(ERROR_NAMES), math.nan)
    bands = {} if is_band else {band: _class_scores(band, is_band=True) for band in BANDS}
    return ClassScores(name, 0, 0, 0, None, unknown, unknown, bands)
