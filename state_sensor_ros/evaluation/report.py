# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The result of an evaluation: the numbers of ``--json``, their change, tables, and the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
import math
from statistics import fmean, stdev
import sys
from typing import Any, BinaryIO, Final

import numpy as np

from state_sensor_ros import __version__
from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.evaluation import detection, prediction, tracking
from state_sensor_ros.evaluation.detection import ERROR_NAMES, NUSCENES, PLAIN
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.matching import MATCH_DISTANCES_M
from state_sensor_ros.frame import Floats, Rows
from state_sensor_ros.parameters import near_names
from state_sensor_ros.texts import counted, one_line

DISTANCES: Final = tuple(str(distance) for distance in MATCH_DISTANCES_M)
# Smaller costs are rounding.
_LEAST_COST = 1e-6
_N_MOMENTS = 10
_APART_NS = 500_000_000
# Heading and key of the numbers in tables.
_OF_TRACKS = (
    ('HOTA', 'hota'), ('MOTA', 'mota'), ('IDF1', 'idf1'), ('MOTP m', 'motp'),
    ('IDS', 'identity_switches'), ('FRAG', 'fragmentations'), ('FP', 'false_positives'),
    ('FN', 'misses'), ('MT', 'mostly_tracked'), ('PT', 'partially_tracked'), ('ML', 'mostly_lost'),
    ('TID s', 'track_initialization_duration'), ('LGD s', 'longest_gap_duration'))
_OF_CLASS = (('AMOTA', 'amota'), ('AMOTP m', 'amotp'), ('MOTA', 'mota'), ('MOTP m', 'motp'),
             ('IDS', 'identity_switches'), ('TID s', 'track_initialization_duration'),
             ('LGD s', 'longest_gap_duration'))
_OF_PATHS = (('minADE m', 'min_ade'), ('minFDE m', 'min_fde'), ('miss rate', 'miss_rate'),
             ('objects', 'objects'))
_OF_EGO = ('rmse', 'mean', 'median', 'std', 'min', 'max', 'sse')
# Of the head of the page, and of a row of several bags.
FIGURES: Final = (
    ('mAP', 'detection/map'), ('NDS', 'detection/nds'), ('HOTA', 'tracking/hota'),
    ('MOTA', 'tracking/mota'), ('IDF1', 'tracking/idf1'), ('AMOTA', 'tracking/amota'),
    ('ADE 3s', 'prediction/3.0/min_ade'), ('ATE', 'ego/ate_rmse'), ('frames', 'frames'))

Result = Mapping[str, Any]


def result_of(topic_results: Sequence[TopicResult], n_truth_frames: int, *,
              definition: str = PLAIN, alignment: str = 'none') -> dict[str, Any]:
    """Return the result with the keys of doc/guide/evaluation.md; undefined numbers are None."""
    first = topic_results[0]
    result: dict[str, Any] = {
        'frames': first.n_frames, 'frames_without_truth': first.n_without_truth,
        'unanswered_frames': first.n_unanswered, 'truth_frames': n_truth_frames,
        # As in the metadata of tables.
        'version': f'state_sensor_ros {__version__}'}
    for found in topic_results:
        if found.classes is not None:
            result.setdefault('detection', _detection(found.classes, definition))
        if found.no_tracking or found.tracking is not None:
            result.setdefault('tracking', _tracking(found.tracking))
        if found.prediction is not None:
            result.setdefault('prediction', {str(horizon_s): {
                **by_count[prediction.ALL_PATHS], 'matched': found.prediction.n_matched,
                'k': {str(n_paths): scores for n_paths, scores in by_count.items() if n_paths}}
                for horizon_s, by_count in found.prediction.finish().items()})
        if found.ego is not None:
            numbers = found.ego.statistics
            result.setdefault('ego', _nested((
                ('ate_rmse', numbers['ate/translation']['rmse']),
                ('rpe_rmse', numbers['rpe/1m/translation']['rmse']), *numbers.items(),
                ('alignment', alignment), ('scale', found.ego.scale))))
    known: dict[str, Any] = _known(result)
    return known


def _known(value: Any) -> Any:  # noqa: ANN401
    """Return a result in which numbers that are not finite are None."""
    if isinstance(value, dict):
        return {key: _known(part) for key, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _detection(classes: Sequence[detection.ClassScores], definition: str) -> dict[str, Any]:
    means = detection.mean_recall_errors(classes).tolist()
    return {
        'map': detection.mean_average_precision(classes),
        'classes': {scores.name: {
            **_class(scores, definition),
            **({'bands': {name: _class(band, definition) for name, band in scores.bands.items()}}
               if scores.bands else {})} for scores in classes},
        'nds': detection.detection_score(classes),
        **{f'm{name}': mean for name, mean in zip(ERROR_NAMES, means, strict=True)},
        'definition': definition}


def _class(scores: detection.ClassScores, definition: str) -> dict[str, Any]:
    curves = scores.curves
    plain, over_recall = (dict(zip(ERROR_NAMES, errors.tolist(), strict=True))
                          for errors in (scores.errors, scores.recall_errors))
    if curves is None:
        over_recall = dict.fromkeys(ERROR_NAMES, math.nan)
    n_matches, n_truths, n_detections = scores.n_matches, scores.n_truths, scores.n_detections
    return {
        'ap': dict.fromkeys(DISTANCES) if curves is None else dict(
            zip(DISTANCES, curves.average_precisions.tolist(), strict=True)),
        **(over_recall if definition == NUSCENES else plain),
        'recall': n_matches / n_truths if n_truths else None,
        'precision': n_matches / n_detections if n_detections else None,
        'truths': n_truths, 'detections': n_detections, NUSCENES: over_recall}


def _tracking(scores: tracking.TrackingScores | None) -> dict[str, Any] | None:
    if scores is None or scores.classes is None:
        return None if scores is None else dict(scores.numbers)
    means = tracking.class_means(scores.classes)
    averages = {name: means.pop(name) for name in ('amota', 'amotp')}
    return {**scores.numbers, **averages, NUSCENES: means, 'classes': scores.classes}


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


def number_at(result: Result, path: str) -> float | None:
    """Return the number at a path such as ``detection/classes/car/ate``; None if undefined."""
    # path: keys, separated by ``/``.
    found: Any = result
    for i, key in enumerate(path.split('/')):
        if found is None:
            return None
        if not isinstance(found, Mapping) or key not in found:
            names = near_names([key], found) if isinstance(found, Mapping) \
                else ', which is not a group'
            place = '/'.join(path.split('/')[:i])
            raise ConfigError(path, f'no {key} in {place or "the result"}{names}')
        found = found[key]
    if isinstance(found, Mapping):
        raise ConfigError(path, 'a group of numbers', f'{path}/ and one of {", ".join(found)}')
    if not _is_number(found):
        raise ConfigError(path, f'{found}', 'the path of a number')
    return None if found is None else float(found)


def numbers_of(result: Result, path: str = '') -> Iterator[tuple[str, float | None]]:
    """Yield the path of each number, and the number."""
    # path: path of the part, with ``/`` at its end.
    for key, value in result.items():
        if isinstance(value, Mapping):
            yield from numbers_of(value, f'{path}{key}/')
        elif _is_number(value):
            yield f'{path}{key}', None if value is None else float(value)


def _is_number(value: object) -> bool:
    """Return whether a value is None or a number; numbers beyond float64 are none."""
    return value is None or isinstance(value, float) or (
        isinstance(value, int) and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of numbers: lines of a terminal, CSV, LaTeX or HTML."""

    title: str  # heading of the names
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, Sequence[float | str | None]]]  # name, and a cell for each heading
    note: str = ''

    def lines(self, style: str = 'text') -> Iterator[str]:
        """Yield the lines in a style: ``text``, ``csv``, ``latex`` or ``html``."""
        heading, *rows = [[self.title, *self.headings], *(
            [name, *map(_text_of, cells)] for name, cells in self.rows)]
        if style == 'html':
            yield '<table><thead><tr>' + ''.join(f'<th>{escape(each)}</th>' for each in heading)
            yield '</tr></thead><tbody>'
            for row in rows:
                yield '<tr>' + ''.join(f'<td>{escape(cell)}</td>' for cell in row) + '</tr>'
            yield f'</tbody></table><p>{escape(self.note)}</p>'
        elif style == 'text':
            first = max(len(row[0]) for row in (heading, *rows))
            widths = [max(8, len(each)) for each in self.headings]
            for name, *cells in (heading, *rows):
                yield f'{name:{first}}' + ''.join(
                    f'  {cell:>{width}}' for cell, width in zip(cells, widths, strict=True))
            if self.note:
                yield self.note
        else:
            for row in (heading, *rows):
                yield ','.join(row) if style == 'csv' else \
                    ' & '.join(cell.strip().replace('_', r'\_') for cell in row) + r' \\'


def _text_of(cell: float | str | None) -> str:
    """Return a number as text, ``-`` if it is undefined."""
    return '-' if cell is None else f'{cell:.4f}' if isinstance(cell, float) else str(cell)


def heading_of(result: Result) -> str:
    """Return the line about the numbers of frames."""
    unanswered = f', {result["unanswered_frames"]} unanswered' if result['unanswered_frames'] \
        else ''
    return (f'{result["frames"]} frames evaluated, {result["frames_without_truth"]} without '
            f'ground truth{unanswered}; {result["truth_frames"]} frames of ground truth')


def tables_of(result: Result) -> Iterator[Table]:
    """Yield the tables of a result."""
    if 'detection' in result:
        yield _detection_table(result['detection'])
    found = result.get('tracking')
    if found:
        yield Table('tracking', *_columns(_OF_TRACKS, [('all objects', found)]))
        if 'amota' in found:
            yield Table('tracking as nuScenes', *_columns(_OF_CLASS, [
                ('mean', {**found, **found[NUSCENES]}), *found['classes'].items()]))
    if 'prediction' in result:
        rows = [(f'{horizon} s, k = {count}', numbers)
                for horizon, scores in result['prediction'].items()
                for count, numbers in (('all', scores), *scores['k'].items())]
        yield Table('prediction', *_columns(_OF_PATHS, rows),
                    f'matched objects with paths: {rows[0][1]["matched"]}; objects: those that '
                    'reach the horizon')
    if 'ego' in result:
        yield _ego_table(result['ego'])


def _columns(names: Sequence[tuple[str, str]], rows: Iterable[tuple[str, Result]],
             ) -> tuple[tuple[str, ...], list[tuple[str, list[float | None]]]]:
    """Return headings and rows of the numbers by their keys."""
    return tuple(heading for heading, _ in names), [
        (name, [numbers[key] for _, key in names]) for name, numbers in rows]


def _detection_table(found: Result) -> Table:
    """Return the table of classes, and of distance bands that have objects."""
    rows: list[tuple[str, Result]] = []
    for name, scores in found['classes'].items():
        rows.append((name, {**scores, **scores['ap']}))
        rows += [(f'  {band} m', {**numbers, **numbers['ap']})
                 for band, numbers in scores.get('bands', {}).items()
                 if numbers['truths'] or numbers['detections']]
    names = [*((f'AP {distance} m', distance) for distance in DISTANCES),
             *zip(('ATE m', 'ASE', 'AOE rad', 'AVE m/s', 'AAE'), ERROR_NAMES, strict=True),
             ('recall', 'recall'), ('precision', 'precision'), ('objects', 'truths'),
             ('detected', 'detections')]
    means = '  '.join(f'{name} {_text_of(found[key])}' for name, key in (
        ('mAP', 'map'), ('NDS', 'nds'), *((f'm{name.upper()}', f'm{name}')
                                          for name in ERROR_NAMES)))
    return Table('detection', *_columns(names, rows), f'{means}  (errors as nuScenes defines '
                 'them: means over recall, of single matches if all confidences are equal)' + (
                     f'  (without class {CLASS_NAMES[UNKNOWN]})'
                     if CLASS_NAMES[UNKNOWN] in found['classes'] else ''))


def _ego_table(found: Result) -> Table:
    """Return the table that evo prints, of all errors of the ego."""
    parts = [('ATE translation m', found['ate']['translation']),
             ('ATE rotation rad', found['ate']['rotation'])]
    for length, both in found['rpe'].items():
        parts += [(f'RPE {length} translation m', both['translation']),
                  (f'RPE {length} rotation rad', both['rotation'])]
    parts += [(f'{name} error {unit}', found[f'{name}_error']) for name, unit in (
        ('longitudinal', 'm'), ('lateral', 'm'), ('speed', 'm/s'))]
    title = 'ego' if found['alignment'] == 'none' else f'ego, aligned by {found["alignment"]}'
    return Table(title, *_columns([(name, name) for name in _OF_EGO], [
        part for part in parts if part[1]['rmse'] is not None]))


def bags_table(records: Sequence[Result]) -> Table:
    """
    Return a row for each of several bags, and their means and standard deviations.

    :param records: result of each bag, with the keys ``file`` and ``error``, None if it was
        evaluated.
    """
    results = [(one_line(str(record['file'])), dict(numbers_of(record))) for record in records
               if record['error'] is None]
    shown = [figure for figure in FIGURES if any(found.get(figure[1]) is not None
                                                 for _, found in results)]
    rows = [(name, [found.get(path) for _, path in shown]) for name, found in results]
    columns = [[number for number in column if number is not None]
               for column in zip(*(cells for _, cells in rows), strict=True)]
    if len(rows) > 1:
        rows += [('mean', [fmean(column) for column in columns]), (
            'standard deviation', [stdev(column) if len(column) > 1 else None
                                   for column in columns])]
    return Table('bag', tuple(heading for heading, _ in shown), rows)


_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; color: #1f2933; max-width: 86rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0 0 .3rem; }
img { max-width: 100%; height: auto; }
.figures { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1rem 0; }
.figures div { background: #f1f5f9; border-radius: .5rem; padding: .6rem 1rem; min-width: 7rem; }
.figures b { display: block; font-size: 1.5rem; }
table { border-collapse: collapse; font-size: 12.5px; display: block; overflow-x: auto; }
th, td { padding: .2rem .4rem; text-align: right; white-space: pre; }
th:first-child, td:first-child { text-align: left; }
tbody tr + tr td { border-top: 1px solid #e9ecef; } thead th { border-bottom: 2px solid #adb5bd; }
.moments { display: grid; gap: 1.5rem;
           grid-template-columns: repeat(auto-fill, minmax(26rem, 1fr)); }
"""


def write_page(file: BinaryIO, title: str, tables: Iterable[Table], parts: Iterable[str] = (),
               result: Result | None = None) -> None:
    """
    Write a page: figures, tables, and more parts.

    :param file: stays open.
    :param title: text.
    :param parts: HTML of :func:`sections`.
    :param result: the result whose main numbers are at the head, None for none.
    """
    numbers = {} if result is None else dict(numbers_of(result))
    figures = [f'<div>{name}<b>{numbers[path]:.3f}</b></div>' for name, path in FIGURES[:-1]
               if numbers.get(path) is not None]
    file.write('\n'.join((
        '<!DOCTYPE html>', '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">', f'<title>{escape(title)}</title>',
        f'<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>',
        f'<div class="figures">{"".join(figures)}</div>',
        *(line for table in tables for line in ('<h2></h2>', *table.lines('html'))), *parts,
        '</body></html>\n')).encode('utf-8', 'replace'))


def sections(found: TopicResult) -> Iterator[str]:
    """Yield the curves of a topic, and its worst moments, as HTML; needs matplotlib."""
    from state_sensor_ros.evaluation import plots
    topic = f'<code>{escape(found.topic)}</code>'
    if found.ego is not None and found.ego_stamps_ns is not None:
        yield f'<h2>Ego over time, {topic}</h2>'
        times_s = (found.ego_stamps_ns - found.ego_stamps_ns[0]) * 1e-9
        yield plots.over_time('error of the ego (m)', times_s, {'': found.ego.distances})
    if found.classes is None or found.detections is None:
        return
    if any(scores.curves is not None for scores in found.classes):
        yield f'<h2>Precision and recall, {topic}</h2>'
        yield plots.precision_recall(found.classes)
    stamps_ns = np.array([frame.stamp_ns for frame in found.frames])
    times_s, matches = (stamps_ns - stamps_ns[0]) * 1e-9, found.detections.matches
    for heading, values in (('distance from the ego (m)', matches['distance']),
                            ('time since the first frame (s)', times_s[matches['frame']])):
        if np.isfinite(values).any():
            yield f'<h2>Errors over {heading}</h2>'
            yield plots.errors_over(values, matches['errors'], heading)
    n_frames = len(found.frames)
    n_matched = np.bincount(matches['frame'], minlength=n_frames)
    n_missed, n_false = (np.array([len(objects.ids) for objects in side]) - n_matched for side in (
        [frame.truth for frame in found.frames], [frame.stack for frame in found.frames]))
    errors = np.bincount(matches['frame'], matches['errors'][:, 0], n_frames)
    yield plots.over_time('objects in a frame', times_s, {
        'misses': n_missed, 'false positives': n_false})
    yield '<h2>The worst moments</h2>'
    worst = _worst(stamps_ns, n_missed + n_false + errors / 2.0)
    if not worst:
        yield '<p>No moment has an error.</p>'
        return
    yield ('<p>By the number of misses and of false positives (no match within 2 m) plus the sum '
           'of the translation errors divided by 2 m; at most one of each half second.</p>'
           '<div class="moments">')
    for number, i in enumerate(worst, 1):
        mean = f', mean error {errors[i] / n_matched[i]:.2f} m' if n_matched[i] else ''
        yield (f'<section><h3>{number}. {times_s[i]:.2f} s after the first frame (stamp '
               f'{stamps_ns[i] * 1e-9:.2f} s)</h3><p>{n_missed[i]} missed, '
               f'{counted(int(n_false[i]), "false positive")}, {n_matched[i]} matched{mean}</p>'
               f'{plots.moment_picture(found.frames[i])}</section>')
    yield '</div>'


def _worst(stamps_ns: Rows, costs: Floats) -> list[int]:
    """Return the frames of the greatest costs, (F,), at most one of each half second."""
    found: dict[int, int] = {}
    for i in np.argsort(-costs, kind='stable').tolist():
        if costs[i] > _LEAST_COST:
            found.setdefault(int(stamps_ns[i]) // _APART_NS, i)
    return [*found.values()][:_N_MOMENTS]
