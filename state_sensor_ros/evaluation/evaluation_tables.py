# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The tables of an evaluation, and their lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.evaluation.evaluation_result import Change, DISTANCES, numbers_of
from state_sensor_ros.evaluation.frame_record import ERROR_NAMES

_UNKNOWN = CLASS_NAMES[UNKNOWN]
# So many changes are shown, the greatest relative ones.
N_SHOWN_CHANGES = 20
_ERROR_HEADINGS = ('ATE m', 'ASE', 'AOE rad', 'AVE m/s', 'AAE')
TRACKING: Final = (('HOTA', 'hota'), ('MOTA', 'mota'), ('IDF1', 'idf1'))
CLEAR: Final = (
    ('MOTP m', 'motp'), ('IDS', 'identity_switches'), ('FRAG', 'fragmentations'),
    ('FP', 'false_positives'), ('FN', 'misses'), ('MT', 'mostly_tracked'),
    ('PT', 'partially_tracked'), ('ML', 'mostly_lost'),
    ('TID s', 'track_initialization_duration'), ('LGD s', 'longest_gap_duration'))
_COUNTS = ('identity_switches', 'fragmentations', 'false_positives', 'misses', 'mostly_tracked',
           'mostly_lost')
AVERAGES: Final = (('AMOTA', 'amota'), ('AMOTP m', 'amotp'))
_OF_CLASS: Final = (*AVERAGES, ('MOTA', 'mota'), ('MOTP m', 'motp'), ('IDS', 'identity_switches'),
                    ('TID s', 'track_initialization_duration'), ('LGD s', 'longest_gap_duration'))
_PATHS = (('minADE m', 'min_ade'), ('minFDE m', 'min_fde'), ('miss rate', 'miss_rate'),
          ('objects', 'objects'))
_STATISTICS = ('rmse', 'mean', 'median', 'std', 'min', 'max', 'sse')


@dataclass(frozen=True, slots=True)
class Row:
    name: str  # name, path: of its part of the result
    path: str
    numbers: Mapping[str, float | None]  # by their keys


@dataclass(frozen=True, slots=True)
class ResultTable:
    title: str  # title, headings, rows: and a line after them
    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ''


def lines_of(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of readable tables."""
    yield heading_of(result)
    if 'detection' in result:
        yield from _table_lines(detection_table(result['detection']))
    if 'tracking' in result:
        tracking = result['tracking']
        yield from ('', _group('tracking', TRACKING, tracking), _group('', CLEAR, tracking))
        if 'amota' in tracking:
            yield from _table_lines(class_tracking_table(tracking))
    if 'prediction' in result:
        yield from _table_lines(prediction_table(result['prediction']))
    if 'ego' in result:
        yield from _table_lines(ego_table(result['ego']))


def heading_of(result: Mapping[str, Any]) -> str:
    """Return the line about the numbers of frames."""
    return (f'{result["frames"]} frames evaluated, {result["frames_without_truth"]} without '
            f'ground truth; {result["truth_frames"]} frames of ground truth')


def detection_table(detection: Mapping[str, Any]) -> ResultTable:
    """Return the table of classes, and of distance bands that have objects."""
    rows = []
    for name, scores in detection['classes'].items():
        path = f'detection/classes/{name}'
        rows.append(Row(name, path, _class_numbers(scores)))
        rows += [Row(f'  {band} m', f'{path}/bands/{band}', _class_numbers(numbers))
                 for band, numbers in scores.get('bands', {}).items()
                 if numbers['truths'] or numbers['detections']]
    note = ('  (errors as nuScenes defines them: means over recall, of single matches if all '
            'confidences are equal)')
    if _UNKNOWN in detection['classes']:
        note += f'  (without class {_UNKNOWN})'
    return ResultTable(
        'detection', (*(f'AP {distance} m' for distance in DISTANCES), *_ERROR_HEADINGS,
                      'recall', 'precision', 'objects', 'detected'), tuple(rows),
        f'mAP {text_of(detection["map"])}  NDS {text_of(detection["nds"])}  ' + '  '.join(
            f'm{name.upper()} {text_of(detection[f"m{name}"])}' for name in ERROR_NAMES) + note)


def _class_numbers(scores: Mapping[str, Any]) -> dict[str, float | None]:
    return {**{f'ap/{distance}': number for distance, number in scores['ap'].items()},
            **{name: scores[name] for name in (
                *ERROR_NAMES, 'recall', 'precision', 'truths', 'detections')}}


def class_tracking_table(tracking: Mapping[str, Any]) -> ResultTable:
    """Return the table of tracking of nuScenes: each class at its greatest MOTA, and means."""
    rows = [('mean', 'tracking/nuscenes', {**tracking['nuscenes'], **{
        key: tracking[key] for _, key in AVERAGES}})]
    rows += [(name, f'tracking/classes/{name}', numbers)
             for name, numbers in tracking['classes'].items()]
    return ResultTable('tracking as nuScenes', tuple(heading for heading, _ in _OF_CLASS), tuple(
        Row(name, path, {key: numbers[key] for _, key in _OF_CLASS})
        for name, path, numbers in rows))


def prediction_table(prediction: Mapping[str, Any]) -> ResultTable:
    rows = []
    for horizon, scores in prediction.items():
        path = f'prediction/{horizon}'
        for count, place, numbers in (('all', path, scores), *(
                (count, f'{path}/k/{count}', part) for count, part in scores['k'].items())):
            rows.append(Row(f'{horizon} s, k = {count}', place,
                            {key: numbers[key] for _, key in _PATHS}))
    n_matched = next(iter(prediction.values()))['matched']
    return ResultTable('prediction', tuple(heading for heading, _ in _PATHS), tuple(rows),
                       f'matched objects with paths: {n_matched}; objects: those that reach the '
                       'horizon')


def ego_table(ego: Mapping[str, Any]) -> ResultTable:
    """Return the table that evo prints, of all errors of the ego."""
    parts = [('ATE translation m', 'ate/translation'), ('ATE rotation rad', 'ate/rotation')]
    for length in ego['rpe']:
        parts += [(f'RPE {length} translation m', f'rpe/{length}/translation'),
                  (f'RPE {length} rotation rad', f'rpe/{length}/rotation')]
    parts += [('longitudinal error m', 'longitudinal_error'), ('lateral error m', 'lateral_error'),
              ('speed error m/s', 'speed_error')]
    numbers = dict(numbers_of(ego))
    rows = [Row(name, f'ego/{path}', {key: numbers[f'{path}/{key}'] for key in _STATISTICS})
            for name, path in parts if numbers[f'{path}/rmse'] is not None]
    title = 'ego' if ego['alignment'] == 'none' else f'ego, aligned by {ego["alignment"]}'
    return ResultTable(title, _STATISTICS, tuple(rows))


def _table_lines(table: ResultTable) -> Iterator[str]:
    width = max(map(len, (table.title, *(row.name for row in table.rows))))
    yield ''
    yield f'{table.title:{width}}' + ''.join(f'  {heading:>8}' for heading in table.headings)
    for row in table.rows:
        yield f'{row.name:{width}}' + ''.join(
            f'  {text_of(number):>{max(8, len(heading))}}'
            for number, heading in zip(row.numbers.values(), table.headings, strict=True))
    if table.note:
        yield table.note


def _group(title: str, names: Sequence[tuple[str, str]], scores: Mapping[str, Any]) -> str:
    return f'{title:8}' + ''.join(f'  {heading} {text_of(scores[key])}' for heading, key in names)


def text_of(number: float | None) -> str:
    """
    Return a number as text, ``-`` if it is undefined.

    :param number: any number.
    """
    if number is None:
        return '-'
    return str(number) if isinstance(number, int) else f'{number:.4f}'


def change_texts(change: Change) -> tuple[str, str, str]:
    """Return the old and the new number of a change, and their difference, as text."""
    digits = 0 if change.path.rpartition('/')[2] in _COUNTS else 4
    if change.new is None:
        return f'{change.old:.{digits}f}', '-', 'lost'
    return (f'{change.old:.{digits}f}', f'{change.new:.{digits}f}',
            f'{change.new - change.old:+.{digits}f}')


def change_lines(old: str, changes: Sequence[Change] | None) -> Iterator[str]:
    """Yield the lines about what got better or worse."""
    # changes: as ``comparison.changes`` returns them, None without an earlier result.
    if changes is None:
        return
    yield ''
    if not changes:
        yield f'no number differs from {old}'
        return
    yield f'against {old}: {counts_of(changes)}'
    shown = changes[:N_SHOWN_CHANGES]
    width = max(len(change.path) for change in shown)
    for change in shown:
        old_text, new_text, difference = change_texts(change)
        yield (f'{word_of(change):6}  {change.path:{width}}  {old_text} -> {new_text}  '
               f'{difference}')
    if len(changes) > len(shown):
        yield f'and {len(changes) - len(shown)} smaller changes (--json has all)'


def word_of(change: Change) -> str:
    """Return whether a number is lost, better or worse."""
    return 'lost' if change.new is None else 'better' if change.is_better else 'worse'


def counts_of(changes: Sequence[Change]) -> str:
    """Return how many numbers are lost, better or worse."""
    words = [word_of(change) for change in changes]
    return ', '.join(f'{words.count(word)} {word}' for word in ('better', 'worse', 'lost'))
