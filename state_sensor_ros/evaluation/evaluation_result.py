# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The result of an evaluation as JSON, as lines for a terminal, and by the path of a number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
import math
from typing import Any, Final

from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.evaluation.detection_metrics import ClassScores
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.matching import MATCH_DISTANCES_M

ERROR_NAMES: Final = ('ate', 'ase', 'aoe', 'ave')
_DISTANCES = tuple(str(each) for each in MATCH_DISTANCES_M)
# Cones, signs and whatever else has no class: reported, but not a class that a stack detects.
_NOT_IN_MEAN: Final = CLASS_NAMES[UNKNOWN]


def result_of(topic_results: Sequence[TopicResult], n_truth_frames: int) -> dict[str, Any]:
    """
    Return the result with the keys of doc/interface.md; undefined numbers are None.

    :param topic_results: results of topics; each part is that of the first one that has it.
    :param n_truth_frames: number of frames of the truth.
    """
    result: dict[str, Any] = {
        'frames': topic_results[0].n_frames,
        'frames_without_truth': topic_results[0].n_without_truth,
        'truth_frames': n_truth_frames}
    for found in topic_results:
        if found.classes is not None:
            result.setdefault('detection', _detection(found.classes))
        if found.tracking is not None:
            tracking = found.tracking
            result.setdefault('tracking', {'hota': tracking.hota, 'mota': tracking.mota,
                                           'idf1': tracking.idf1})
        if found.prediction is not None:
            result.setdefault('prediction', {str(horizon_s): {
                'min_ade': _known(scores.min_ade), 'min_fde': _known(scores.min_fde),
                'miss_rate': _known(scores.miss_rate)}
                for horizon_s, scores in found.prediction.items()})
        if found.ego is not None:
            result.setdefault('ego', {'ate_rmse': _known(found.ego[0]),
                                      'rpe_rmse': _known(found.ego[1])})
    return result


def _detection(classes: Sequence[ClassScores]) -> dict[str, Any]:
    precisions = [float(each.average_precisions.mean()) for each in classes
                  if each.average_precisions is not None and each.name != _NOT_IN_MEAN]
    return {'map': sum(precisions) / len(precisions) if precisions else None,
            'classes': {each.name: _class(each) for each in classes}}


def _class(scores: ClassScores) -> dict[str, Any]:
    found = [None] * len(_DISTANCES) if scores.average_precisions is None \
        else scores.average_precisions.tolist()
    return {
        'ap': dict(zip(_DISTANCES, found, strict=True)),
        **dict(zip(ERROR_NAMES, map(_known, scores.errors.tolist()), strict=True)),
        'recall': _share(scores.n_matches, scores.n_truths),
        'precision': _share(scores.n_matches, scores.n_detections),
        'truths': scores.n_truths, 'detections': scores.n_detections}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _known(number: float) -> float | None:
    return number if math.isfinite(number) else None


def number_at(result: Mapping[str, Any], path: str) -> float | None:
    """
    Return the number at a path such as ``detection/classes/car/ate``; None if undefined.

    :param result: result of :func:`result_of`.
    :param path: keys, separated by ``/``.
    :raises ConfigError: if there is no such number.
    """
    found: Any = result
    done: list[str] = []
    for key in path.split('/'):
        if not isinstance(found, Mapping) or key not in found:
            options = ', '.join(found) if isinstance(found, Mapping) else 'a number here'
            raise ConfigError(path, f'no {key} in {"/".join(done) or "the result"}',
                              f'one of {options}')
        found = found[key]
        done.append(key)
    if isinstance(found, Mapping):
        raise ConfigError(path, 'no number', f'{path}/ and one of {", ".join(found)}')
    return None if found is None else float(found)


def lines_of(result: Mapping[str, Any]) -> Iterator[str]:
    """
    Yield the lines of a readable table.

    :param result: result of :func:`result_of`.
    """
    yield (f'{result["frames"]} frames evaluated, {result["frames_without_truth"]} without truth; '
           f'{result["truth_frames"]} frames of truth')
    if 'detection' in result:
        yield from _detection_lines(result['detection'])
    if 'tracking' in result:
        yield from _group('tracking', {each.upper(): each for each in ('hota', 'mota', 'idf1')},
                          result['tracking'])
    for horizon, scores in result.get('prediction', {}).items():
        yield from _group(f'prediction {horizon} s', {
            'minADE m': 'min_ade', 'minFDE m': 'min_fde', 'miss rate': 'miss_rate'}, scores)
    if 'ego' in result:
        yield from _group('ego', {'ATE m': 'ate_rmse', 'RPE m': 'rpe_rmse'}, result['ego'])


def _detection_lines(detection: Mapping[str, Any]) -> Iterator[str]:
    width = max(map(len, ('detection', *detection['classes'])))
    headings = (*(f'AP {each} m' for each in _DISTANCES), 'ATE m', 'ASE', 'AOE rad', 'AVE m/s',
                'recall', 'precision', 'truths', 'detected')
    yield ''
    yield f'{"detection":{width}}' + ''.join(f'  {heading:>8}' for heading in headings)
    for name, scores in detection['classes'].items():
        numbers = (*scores['ap'].values(), *(scores[each] for each in (
            *ERROR_NAMES, 'recall', 'precision', 'truths', 'detections')))
        yield f'{name:{width}}' + ''.join(
            f'  {_text(number):>{max(8, len(heading))}}'
            for number, heading in zip(numbers, headings, strict=True))
    note = f'  (without class {_NOT_IN_MEAN})' if _NOT_IN_MEAN in detection['classes'] else ''
    yield f'{"mAP":{width}}  {_text(detection["map"]):>8}{note}'


def _group(title: str, names: Mapping[str, str], scores: Mapping[str, Any]) -> Iterator[str]:
    yield ''
    yield title + ''.join(f'  {heading} {_text(scores[key])}' for heading, key in names.items())


def _text(number: float | None) -> str:
    if number is None:
        return '-'
    return str(number) if isinstance(number, int) else f'{number:.4f}'
