# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The result of an evaluation as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.evaluation.evaluation_result import DISTANCES
from state_sensor_ros.evaluation.matches import ERROR_NAMES

_UNKNOWN = CLASS_NAMES[UNKNOWN]
_ERROR_HEADINGS = ('ATE m', 'ASE', 'AOE rad', 'AVE m/s', 'AAE')
_TRACKING = (('HOTA', 'hota'), ('MOTA', 'mota'), ('IDF1', 'idf1'))
_CLEAR = (
    ('MOTP m', 'motp'), ('IDS', 'identity_switches'), ('FRAG', 'fragmentations'),
    ('FP', 'false_positives'), ('FN', 'misses'), ('MT', 'mostly_tracked'),
    ('PT', 'partially_tracked'), ('ML', 'mostly_lost'),
    ('TID s', 'track_initialization_duration'), ('LGD s', 'longest_gap_duration'))
_PATHS = (('minADE m', 'min_ade'), ('minFDE m', 'min_fde'), ('miss rate', 'miss_rate'),
          ('overlap rate', 'overlap_rate'))
_STATISTICS = ('rmse', 'mean', 'median', 'std', 'min', 'max', 'sse')


def lines_of(result: Mapping[str, Any]) -> Iterator[str]:
    """
    Yield the lines of a readable table.

    :param result: result of ``result_of``.
    """
    yield (f'{result["frames"]} frames evaluated, {result["frames_without_truth"]} without ground '
           f'truth; {result["truth_frames"]} frames of ground truth')
    if 'detection' in result:
        yield from _detection_lines(result['detection'])
    if 'tracking' in result:
        tracking = result['tracking']
        yield from ('', _group('tracking', _TRACKING, tracking), _group('', _CLEAR, tracking))
        if 'amota' in tracking:
            yield _group('', (('AMOTA', 'amota'), ('AMOTP m', 'amotp')), tracking)
    if 'prediction' in result:
        yield from _prediction_lines(result['prediction'])
    if 'ego' in result:
        yield from _ego_lines(result['ego'])


def _detection_lines(detection: Mapping[str, Any]) -> Iterator[str]:
    headings = (*(f'AP {distance} m' for distance in DISTANCES), *_ERROR_HEADINGS,
                'recall', 'precision', 'truths', 'detected')
    rows = []
    for name, scores in detection['classes'].items():
        rows.append((name, _class_numbers(scores)))
        for band, numbers in scores.get('bands', {}).items():
            if numbers['truths'] or numbers['detections']:
                rows.append((f'  {band} m', _class_numbers(numbers)))
    yield ''
    yield from _table('detection', headings, rows)
    note = f'  (without class {_UNKNOWN})' if _UNKNOWN in detection['classes'] else ''
    yield (f'mAP {_text(detection["map"])}  NDS {_text(detection["nds"])}  ' + '  '.join(
        f'm{name.upper()} {_text(detection[f"m{name}"])}' for name in ERROR_NAMES) + note)


def _class_numbers(scores: Mapping[str, Any]) -> list[float | None]:
    return [*scores['ap'].values(), *(scores[name] for name in (
        *ERROR_NAMES, 'recall', 'precision', 'truths', 'detections'))]


def _prediction_lines(prediction: Mapping[str, Any]) -> Iterator[str]:
    rows = []
    for horizon, scores in prediction.items():
        for count, numbers in (('all', scores), *scores['k'].items()):
            rows.append((f'{horizon} s, k = {count}', [numbers[key] for _, key in _PATHS]))
    yield ''
    yield from _table('prediction', [heading for heading, _ in _PATHS], rows)


def _ego_lines(ego: Mapping[str, Any]) -> Iterator[str]:
    rows = [('ATE translation m', ego['ate']['translation']),
            ('ATE rotation rad', ego['ate']['rotation'])]
    for length, scores in ego['rpe'].items():
        rows += [(f'RPE {length} translation m', scores['translation']),
                 (f'RPE {length} rotation rad', scores['rotation'])]
    rows += [('longitudinal error m', ego['longitudinal_error']),
             ('lateral error m', ego['lateral_error']), ('speed error m/s', ego['speed_error'])]
    title = 'ego' if ego['alignment'] == 'none' else f'ego, aligned by {ego["alignment"]}'
    yield ''
    yield from _table(title, _STATISTICS, [
        (name, [scores[key] for key in _STATISTICS]) for name, scores in rows
        if scores['rmse'] is not None])


def _table(title: str, headings: Sequence[str],
           rows: Sequence[tuple[str, Sequence[float | None]]]) -> Iterator[str]:
    width = max(map(len, (title, *(name for name, _ in rows))))
    yield f'{title:{width}}' + ''.join(f'  {heading:>8}' for heading in headings)
    for name, numbers in rows:
        yield f'{name:{width}}' + ''.join(
            f'  {_text(number):>{max(8, len(heading))}}'
            for number, heading in zip(numbers, headings, strict=True))


def _group(title: str, names: Sequence[tuple[str, str]], scores: Mapping[str, Any]) -> str:
    return f'{title:8}' + ''.join(f'  {heading} {_text(scores[key])}' for heading, key in names)


def _text(number: float | None) -> str:
    if number is None:
        return '-'
    return str(number) if isinstance(number, int) else f'{number:.4f}'
