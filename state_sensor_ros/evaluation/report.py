# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The result of an evaluation: the numbers of ``--json``, tables, and the page with pictures."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
import math
from statistics import fmean, stdev
from typing import Any, BinaryIO, Final, TYPE_CHECKING

import numpy as np

from state_sensor_ros import __version__
from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.evaluation import detection, matching, prediction, tracking
from state_sensor_ros.evaluation.detection import ERROR_NAMES, NUSCENES, PLAIN
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.matching import EvaluatedFrame
from state_sensor_ros.frame import Floats, Rows
from state_sensor_ros.parameters import near_names
from state_sensor_ros.rotations import plane_rotations
from state_sensor_ros.texts import counted, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Result = Mapping[str, Any]
DISTANCES: Final = tuple(str(distance) for distance in matching.MATCH_DISTANCES_M)
# Heading and key of the numbers in tables.
_OF_TRACKS = (
    ('HOTA', 'hota'), ('MOTA', 'mota'), ('IDF1', 'idf1'), ('MOTP m', 'motp'),
    ('IDS', 'identity_switches'), ('FRAG', 'fragmentations'), ('FP', 'false_positives'),
    ('FN', 'misses'), ('MT', 'mostly_tracked'), ('PT', 'partially_tracked'), ('ML', 'mostly_lost'))
_OF_CLASS = (('AMOTA', 'amota'), ('AMOTP m', 'amotp'), *(
    each for each in _OF_TRACKS if each[1] in tracking.WORST))
_OF_DETECTION = (
    *((f'AP {distance} m', distance) for distance in DISTANCES),
    *zip(('ATE m', 'ASE', 'AOE rad', 'AVE m/s', 'AAE'), ERROR_NAMES, strict=True),
    ('recall', 'recall'), ('precision', 'precision'), ('objects', 'truths'),
    ('detected', 'detections'))
_OF_PATHS = (('minADE m', 'min_ade'), ('minFDE m', 'min_fde'), ('miss rate', 'miss_rate'),
             ('objects', 'objects'))
_OF_EGO = tuple((name, name) for name in ('rmse', 'mean', 'median', 'std', 'min', 'max', 'sse'))
_MEANS = (('mAP', 'map'), ('NDS', 'nds'), *((f'm{name.upper()}', f'm{name}')
                                            for name in ERROR_NAMES))
# Of the head of the page, and of a row of several bags.
FIGURES: Final = (
    ('mAP', 'detection/map'), ('NDS', 'detection/nds'), ('HOTA', 'tracking/hota'),
    ('MOTA', 'tracking/mota'), ('IDF1', 'tracking/idf1'), ('AMOTA', 'tracking/amota'),
    ('ADE 3s', 'prediction/3.0/min_ade'), ('ATE', 'ego/ate_rmse'), ('frames', 'frames'))
# Worst moments, at most one of each half second; smaller costs are rounding.
_N_MOMENTS, _APART_NS, _LEAST_COST = 10, 500_000_000, 1e-6
_TRUTH, _STACK, _MISSED, _FALSE = '#495057', '#1c7ed6', '#d6336c', '#f08c00'
# Length and width of an object whose size is unknown, m; corners of one of length and width 1.
_SMALL = 0.5
_CORNERS: Floats = np.array(((0.5, 0.5), (0.5, -0.5), (-0.5, -0.5), (-0.5, 0.5)))
# Width and height of a picture, m; farther objects are not drawn.
_VIEW_M: Floats = np.array((90.0, 70.0))


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
            result.setdefault('ego', {
                'ate_rmse': numbers['ate']['translation']['rmse'],
                'rpe_rmse': numbers['rpe']['1m']['translation']['rmse'], **numbers,
                'alignment': alignment, 'scale': found.ego.scale})
    return _known(result)


def _known(result: Result) -> dict[str, Any]:
    """Return a result in which numbers that are not finite are None."""
    return {key: _known(value) if isinstance(value, dict) else None if isinstance(
        value, float) and not math.isfinite(value) else value for key, value in result.items()}


def _detection(classes: Sequence[detection.ClassScores], definition: str) -> dict[str, Any]:
    means = detection.mean_recall_errors(classes).tolist()
    return {
        'map': detection.mean_average_precision(classes),
        'classes': {scores.name: _class(scores, definition) for scores in classes},
        'nds': detection.detection_score(classes),
        **{f'm{name}': mean for name, mean in zip(ERROR_NAMES, means, strict=True)},
        'definition': definition}


def _class(scores: detection.ClassScores, definition: str) -> dict[str, Any]:
    curves, n_matches = scores.curves, scores.n_matches
    plain, over_recall = (dict(zip(ERROR_NAMES, errors.tolist(), strict=True))
                          for errors in (scores.errors, scores.recall_errors))
    return {
        'ap': dict.fromkeys(DISTANCES) if curves is None else dict(
            zip(DISTANCES, curves.average_precisions.tolist(), strict=True)),
        **(over_recall if definition == NUSCENES else plain),
        'recall': n_matches / scores.n_truths if scores.n_truths else None,
        'precision': n_matches / scores.n_detections if scores.n_detections else None,
        'truths': scores.n_truths, 'detections': scores.n_detections, NUSCENES: over_recall}


def _tracking(scores: tracking.TrackingScores | None) -> dict[str, Any] | None:
    if scores is None or scores.classes is None:
        return None if scores is None else dict(scores.numbers)
    means = tracking.class_means(scores.classes)
    averages = {name: means.pop(name) for name in ('amota', 'amotp')}
    return {**scores.numbers, **averages, NUSCENES: means, 'classes': scores.classes}


def number_at(result: Result, path: str) -> float | None:
    """Return the number at a path such as ``detection/classes/car/ate``; None if undefined."""
    numbers = dict(numbers_of(result))
    if path not in numbers and not any(
            path.startswith(f'{name}/') and number is None for name, number in numbers.items()):
        raise ConfigError(path, f'no such number{near_names([path], numbers)}')
    return numbers.get(path)


def numbers_of(result: Result, path: str = '') -> Iterator[tuple[str, float | None]]:
    """Yield the path of each number, and the number; ``path``: that of the part, with ``/``."""
    for key, value in result.items():
        if isinstance(value, Mapping):
            yield from numbers_of(value, f'{path}{key}/')
        elif value is None or isinstance(value, (int, float)):
            yield f'{path}{key}', None if value is None else float(value)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of numbers: lines of a terminal, CSV, LaTeX or HTML."""

    title: str  # heading of the names
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, Sequence[float | None]]]  # name, and a cell for each heading
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


def _text_of(cell: float | None) -> str:
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
        found = result['detection']
        yield _table(
            'detection', _OF_DETECTION,
            [(name, {**numbers, **numbers['ap']}) for name, numbers in found['classes'].items()],
            '  '.join(f'{name} {_text_of(found[key])}' for name, key in _MEANS)
            + '  (errors as nuScenes defines them: means over recall, of single matches if all '
            'confidences are equal)' + (f'  (without class {CLASS_NAMES[UNKNOWN]})'
                                        if CLASS_NAMES[UNKNOWN] in found['classes'] else ''))
    if found := result.get('tracking'):
        yield _table('tracking', _OF_TRACKS, [('all objects', found)])
        if 'amota' in found:
            yield _table('tracking as nuScenes', _OF_CLASS, [
                ('mean', {**found, **found[NUSCENES]}), *found['classes'].items()])
    if 'prediction' in result:
        rows = [(f'{horizon} s, k = {count}', numbers)
                for horizon, scores in result['prediction'].items()
                for count, numbers in (('all', scores), *scores['k'].items())]
        yield _table('prediction', _OF_PATHS, rows, f'matched objects with paths: '
                     f'{rows[0][1]["matched"]}; objects: those that reach the horizon')
    if 'ego' in result:
        found = result['ego']
        parts = [(f'{name} {kind} {unit}', errors[kind]) for name, errors in (
            ('ATE', found['ate']), *((f'RPE {length}', both) for length, both in
                                     found['rpe'].items()))
            for kind, unit in (('translation', 'm'), ('rotation', 'rad'))]
        parts += [(f'{name} error {unit}', found[f'{name}_error']) for name, unit in (
            ('longitudinal', 'm'), ('lateral', 'm'), ('speed', 'm/s'))]
        yield _table('ego' if found['alignment'] == 'none' else
                     f'ego, aligned by {found["alignment"]}', _OF_EGO,
                     [part for part in parts if part[1]['rmse'] is not None])


def _table(title: str, names: Sequence[tuple[str, str]], rows: Iterable[tuple[str, Result]],
           note: str = '') -> Table:
    """Return a table of the numbers by their keys; ``names``: heading and key of each."""
    return Table(title, tuple(heading for heading, _ in names), [
        (name, [numbers[key] for _, key in names]) for name, numbers in rows], note)


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
body { font: 14px/1.45 system-ui, sans-serif; max-width: 86rem; margin: 2rem auto; }
.figures { display: flex; flex-wrap: wrap; gap: 2rem; } b { display: block; font-size: 2em; }
table { border-collapse: collapse; font-size: 12.5px; display: block; overflow-x: auto; }
th, td { padding: .2rem .4rem; text-align: right; white-space: pre; border-top: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; } img { max-width: 100%; height: auto; }
.moments { display: grid; gap: 1rem; grid: auto / repeat(auto-fill, minmax(26rem, 1fr)); }
"""


def write_page(file: BinaryIO, title: str, tables: Iterable[Table], parts: Iterable[str] = (),
               result: Result | None = None) -> None:
    """
    Write a page: figures, tables, and more parts.

    :param file: stays open.
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
    topic = f'<code>{escape(found.topic)}</code>'
    if found.ego is not None and found.ego_stamps_ns is not None:
        yield f'<h2>Ego over time, {topic}</h2>'
        yield _over_time('error of the ego (m)', found.ego_stamps_ns, {
            'position': found.ego.distances})
    if found.classes is None:
        return
    if curves := {each.name: (detection.RECALLS, each.curves.precisions[matching.I_ERRORS])
                  for each in found.classes if each.curves is not None}:
        yield f'<h2>Precision and recall of matches within 2 m, {topic}</h2>'
        yield _curves('recall', 'precision', curves)
    stamps_ns = np.array([frame.stamp_ns for frame in found.frames])
    pairs = [(frame.stack.states[rows, matching.XY], frame.truth.states[others, matching.XY])
             for frame in found.frames for rows, others in [frame.matched]]
    n_matched = np.array([len(places) for places, _ in pairs])
    errors = np.array([np.linalg.norm(some - others, axis=1).sum() for some, others in pairs])
    n_missed, n_false = (np.array([len(objects.ids) for objects in side]) - n_matched for side in (
        [frame.truth for frame in found.frames], [frame.stack for frame in found.frames]))
    yield _over_time('objects in a frame', stamps_ns, {
        'misses': n_missed, 'false positives': n_false})
    yield ('<h2>The worst moments</h2><p>By the number of misses and of false positives (no match '
           'within 2 m) plus the sum of the translation errors divided by 2 m; at most one of '
           'each half second.</p><div class="moments">')
    for number, i in enumerate(_worst(stamps_ns, n_missed + n_false + errors / 2.0), 1):
        mean = f', mean error {errors[i] / n_matched[i]:.2f} m' if n_matched[i] else ''
        yield (f'<section><h3>{number}. {(stamps_ns[i] - stamps_ns[0]) * 1e-9:.2f} s after the '
               f'first frame (stamp {stamps_ns[i] * 1e-9:.2f} s)</h3><p>{n_missed[i]} missed, '
               f'{counted(int(n_false[i]), "false positive")}, {n_matched[i]} matched{mean}</p>'
               f'{_moment(found.frames[i])}</section>')
    yield '</div>'


def _worst(stamps_ns: Rows, costs: Floats) -> list[int]:
    """Return the frames of the greatest costs, (F,), at most one of each half second."""
    found: dict[int, int] = {}
    for i in np.argsort(-costs, kind='stable').tolist():
        if costs[i] > _LEAST_COST:
            found.setdefault(int(stamps_ns[i]) // _APART_NS, i)
    return [*found.values()][:_N_MOMENTS]


def _axes(width: float, height: float, x: str, y: str) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure
    figure = Figure(figsize=(width, height), layout='constrained')
    axes = figure.add_subplot(xlabel=x, ylabel=y)
    axes.grid(visible=True, color='#dee2e6', linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[['top', 'right']].set_visible(False)
    return figure, axes


def _image(figure: Figure, text: str) -> str:
    buffer = BytesIO()
    figure.savefig(buffer, format='png', dpi=110)
    return (f'<img src="data:image/png;base64,{b64encode(buffer.getvalue()).decode()}" '
            f'alt="{text}">')


def _over_time(y: str, stamps_ns: Rows, curves: Mapping[str, Any]) -> str:
    """Draw curves, (T,) each, by their names, over time."""
    times_s = (stamps_ns - stamps_ns[0]) * 1e-9
    return _curves('time since the first frame (s)', y, {
        name: (times_s, values) for name, values in curves.items()})


def _curves(x: str, y: str, curves: Mapping[str, tuple[Floats, Floats]]) -> str:
    figure, axes = _axes(11.2, 2.8, x, y)
    for name, (places, values) in curves.items():
        axes.plot(places, values, label=name)
    axes.set_ylim(0.0)
    axes.legend(frameon=False, fontsize=8)
    return _image(figure, f'{y} over {x}')


def _moment(frame: EvaluatedFrame) -> str:
    """Draw ground truth and stack at one moment from above, in the area with the most errors."""
    from matplotlib.collections import LineCollection, PolyCollection
    rows, others = frame.matched
    is_matched, is_found = (np.isin(np.arange(len(objects.ids)), found) for objects, found in (
        (frame.stack, rows), (frame.truth, others)))
    figure, axes = _axes(5.4, 4.6, 'x (m)', 'y (m)')
    axes.set_aspect('equal')
    # A matched ground-truth object has a wide line, which is visible around the detection.
    for objects, mask, name, color, width in (
            (frame.truth, is_found, 'ground truth', _TRUTH, 2.6),
            (frame.truth, ~is_found, 'missed', _MISSED, 1.8),
            (frame.stack, is_matched, 'stack', _STACK, 1.2),
            (frame.stack, ~is_matched, 'false positive', _FALSE, 1.8)):
        states = objects.states[mask]
        sizes = states[:, matching.SIZE][:, :2]
        edges = np.where(sizes > 0.0, sizes, _SMALL)
        turns = plane_rotations(np.nan_to_num(states[:, matching.YAW]))
        # The line from the center to the front marks the heading.
        outlines, fronts = (
            states[:, None, matching.XY] + np.einsum(
                'nij,nkj->nki', turns, points * edges[:, None])
            for points in (_CORNERS, np.array(((0.0, 0.0), (0.5, 0.0)))))
        axes.add_collection(PolyCollection(
            list(outlines), facecolors='none', edgecolors=color, linewidths=width))
        axes.add_collection(LineCollection(list(fronts), colors=color, linewidths=width))
        axes.plot([], [], color=color, linewidth=width, label=name)
    stack_xy, truth_xy = (each.states[:, matching.XY] for each in (frame.stack, frame.truth))
    links = np.stack((stack_xy[rows], truth_xy[others]), axis=1)
    axes.add_collection(LineCollection(list(links), colors=_STACK, linewidths=1.0))
    if np.isfinite(frame.ego_xyz).all():
        axes.plot(*frame.ego_xyz[:2], marker='*', color='black', linestyle='none', label='ego')
    figure.legend(loc='outside upper center', ncols=5, frameon=False, fontsize=8)
    # Around the point with the most missed and false objects, else the greatest error.
    points = np.concatenate((truth_xy[~is_found], stack_xy[~is_matched]))
    if not len(points):
        points = links[[np.linalg.norm(links[:, 0] - links[:, 1], axis=1).argmax()], 0]
    are_near = (np.abs(points[:, None] - points) < 0.4 * _VIEW_M).all(axis=2)
    low, high = points[are_near.sum(axis=1).argmax()] + 0.5 * _VIEW_M * np.array(((-1.0,), (1.0,)))
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    return _image(figure, 'the moment from above')
