# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The page of an evaluation: figures, curves, the worst moments; one file without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from statistics import fmean
from typing import Any, BinaryIO, Final

import numpy as np

from state_sensor_ros.evaluation import evaluation_plots as plots
from state_sensor_ros.evaluation import evaluation_tables as tables
from state_sensor_ros.evaluation.evaluation_plots import moment_of
from state_sensor_ros.evaluation.evaluation_result import AGAINST, Change, numbers_of
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.matching import EvaluatedFrame
from state_sensor_ros.texts import counted

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; color: #1f2933; max-width: 86rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #dee2e6; }
h3 { font-size: 1rem; margin: 0 0 .3rem; }
img { max-width: 100%; height: auto; }
p { margin: .3rem 0; color: #52606d; }
.figures { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1rem 0; }
.figures div { background: #f1f5f9; border-radius: .5rem; padding: .6rem 1rem; min-width: 7rem; }
.figures b { display: block; font-size: 1.5rem; }
small { color: #52606d; white-space: nowrap; }
table { border-collapse: collapse; font-size: 12.5px; display: block; overflow-x: auto; }
th, td { padding: .2rem; text-align: right; vertical-align: top; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td:first-child { white-space: pre; }
td small { display: block; font-size: 8.5px; }
thead th { border-bottom: 2px solid #adb5bd; } tbody tr + tr td { border-top: 1px solid #e9ecef; }
.better { color: #087f5b; } .worse { color: #c2255c; }
.beside { display: flex; flex-wrap: wrap; gap: 1rem 3rem; }
.moments { display: grid; gap: 1.5rem;
           grid-template-columns: repeat(auto-fill, minmax(26rem, 1fr)); }
section, table, img { break-inside: avoid; }
"""
# Figures at the head of the page, if the result has them.
FIGURES: Final = (
    ('mAP', 'detection/map', ''), ('NDS', 'detection/nds', ''), ('HOTA', 'tracking/hota', ''),
    ('MOTA', 'tracking/mota', ''), ('IDF1', 'tracking/idf1', ''),
    ('AMOTA', 'tracking/amota', ''), *(
        figure for horizon in range(1, 31) for figure in (
            (f'minADE at {horizon} s', f'prediction/{horizon}.0/min_ade', ' m'),
            (f'miss rate at {horizon} s', f'prediction/{horizon}.0/miss_rate', ''))),
    ('ATE', 'ego/ate_rmse', ' m'),
    ('RPE over 1 m', 'ego/rpe_rmse', ' m'))
_N_CHANGES = 15
_N_EVENTS = 20


def write_page(file: BinaryIO, stack: str, truth: str, topic_results: Sequence[TopicResult],
               result: Mapping[str, Any], changes: Sequence[Change] | None,
               safety: plots.SafetySection | None) -> None:
    """Write the page of one evaluation; ``file`` stays open."""
    # result: their result, as ``result_of`` returns it.
    # changes: what got better or worse, None without an earlier result.
    # safety: measures of the ego in the ground truth, None without an ego.
    parts = [f'<p>Ground truth: {escape(truth)}. {tables.heading_of(result)}.</p>']
    parts += [*_figures(dict(numbers_of(result))), *_changes(changes), *_tables(result)]
    for found in topic_results:
        parts += _sections(found)
    parts += _safety(safety)
    write_document(file, f'Evaluation of {stack}', parts)


def write_document(file: BinaryIO, title: str, parts: Sequence[str]) -> None:
    """Write a document with the style of the pages."""
    file.write('\n'.join((
        '<!DOCTYPE html>', '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">', f'<title>{escape(title)}</title>',
        f'<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>', *parts,
        '</body></html>\n')).encode('utf-8', 'replace'))


def _figures(numbers: Mapping[str, float | None]) -> Iterator[str]:
    yield '<div class="figures">'
    for name, path, unit in FIGURES:
        number, change = numbers.get(path), numbers.get(f'{AGAINST}/{path}')
        if number is not None:
            than_before = '' if change is None else f'<small>{change:+.4f} against before</small>'
            yield f'<div>{name}<b>{number:.3f}{unit}</b>{than_before}</div>'
    yield '</div>'


def _table(headings: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield a table; ``rows``: cells as HTML."""
    yield '<table><thead><tr>' + ''.join(f'<th>{escape(heading)}</th>' for heading in headings)
    yield '</tr></thead><tbody>'
    for cells in rows:
        yield '<tr>' + ''.join(f'<td>{cell}</td>' for cell in cells) + '</tr>'
    yield '</tbody></table>'


def _changes(changes: Sequence[Change] | None) -> Iterator[str]:
    if changes is None:
        return
    yield '<h2>Against the earlier run</h2><div class="beside">'
    for name in ('better', 'worse', 'lost'):
        chosen = [change for change in changes if tables.word_of(change) == name]
        yield f'<section><h3 class="{name}">{counted(len(chosen), "number")} {name}</h3>'
        if chosen:
            yield from _table(('number', 'old', 'new', 'change'), [
                (escape(change.path), *_change_cells(change, name))
                for change in chosen[:_N_CHANGES]])
        yield '</section>'
    yield '</div>'


def _change_cells(change: Change, class_: str) -> tuple[str, ...]:
    old, new, difference = tables.change_texts(change)
    return old, new, f'<span class="{class_}">{difference}</span>'


def _tables(result: Mapping[str, Any]) -> Iterator[str]:
    if 'detection' in result:
        yield '<h2>Detection</h2>'
        yield from table_elements(tables.detection_table(result['detection']))
    if 'tracking' in result:
        tracking = result['tracking']
        names = [names for names in (*tables.TRACKING, *tables.CLEAR) if names[1] in tracking]
        yield '<h2>Tracking</h2>'
        yield from table_elements(tables.ResultTable('', tuple(heading for heading, _ in names), (
            tables.Row('all objects', 'tracking', {key: tracking[key] for _, key in names}),)))
        if 'amota' in tracking:
            yield from table_elements(tables.class_tracking_table(tracking))
    if 'prediction' in result:
        yield '<h2>Prediction</h2>'
        yield from table_elements(tables.prediction_table(result['prediction']))
    if 'ego' in result:
        yield '<h2>Ego</h2>'
        yield from table_elements(tables.ego_table(result['ego']))


def table_elements(table: tables.ResultTable) -> Iterator[str]:
    yield from _table((table.title, *table.headings), [
        (escape(row.name), *map(tables.text_of, row.numbers.values())) for row in table.rows])
    if table.note:
        yield f'<p>{escape(table.note)}</p>'


def _safety(section: plots.SafetySection | None) -> Iterator[str]:
    if section is None:
        return
    yield (f'<h2>Safety of {escape(section.actor)} in the ground truth</h2>'
           '<p>Boxes in the plane; definitions in the guide, &ldquo;Measures of safety&rdquo;. '
           'Areas in the curves are events.</p>')
    if not section.worst:
        yield '<p>There is no other actor to measure.</p>'
        return
    yield '<div class="beside"><section><h3>Worst moments</h3>'
    yield from _table(('measure', 'value', 'game time', 'other actor'),
                      (map(escape, row) for row in section.worst))
    yield f'</section><section><h3>{counted(len(section.events), "event")}</h3>'
    if section.events:
        yield from _table(('event', 'game time', 'other actor', 'worst'),
                          (map(escape, row) for row in section.events[:_N_EVENTS]))
    if len(section.events) > _N_EVENTS:
        yield (f'<p>and {len(section.events) - _N_EVENTS} later ones '
               '(<code>inspect --safety</code> has all)</p>')
    yield '</section></div>'
    yield _image(plots.safety_over_time(section), 'measures of safety over time')


def _sections(found: TopicResult) -> Iterator[str]:
    topic = f'<code>{escape(found.topic)}</code>'
    if found.ego is not None and found.ego_stamps_ns is not None:
        times_s = (found.ego_stamps_ns - found.ego_stamps_ns[0]) * 1e-9
        yield f'<h2>Ego over time, {topic}</h2>'
        yield _image(plots.ego_over_time(np.column_stack((times_s, found.ego.distances))),
                     'error of the ego over time')
    if found.classes is None or found.record is None:
        return
    if any(scores.curves is not None for scores in found.classes):
        yield f'<h2>Precision and recall, {topic}</h2>'
        yield _image(plots.precision_recall(found.classes), 'precision over recall')
    frames = found.record.frames
    matches = found.record.matches()
    times_s = (frames['stamp_ns'] - frames['stamp_ns'][0]) * 1e-9
    for heading, values, label, width in (
            ('the distance from the ego', matches['distance'], 'distance from the ego (m)', 10.0),
            ('time', times_s[matches['frame']], 'time since the first frame (s)', None)):
        if np.isfinite(values).any() or width is None:
            yield f'<h2>Errors over {heading}</h2>'
        if np.isfinite(values).any():
            yield _image(plots.errors_over(values, matches['errors'], label, width=width),
                         f'errors over {heading}')
    yield _image(plots.counts_over_time(frames), 'misses and false positives over time')
    yield from _worst(found.record.worst, int(frames['stamp_ns'][0]))


def _worst(frames: Sequence[EvaluatedFrame], begin_ns: int) -> Iterator[str]:
    yield '<h2>The worst moments</h2>'
    if not frames:
        yield '<p>No moment has an error.</p>'
        return
    yield ('<p>By the number of misses and of false positives (no match within 2 m) plus the sum '
           'of the translation errors divided by 2 m; at most one of each half second. A '
           'picture shows 90 m by 70 m where most of them are.</p>'
           '<div class="moments">')
    for number, moment in enumerate(map(moment_of, frames), 1):
        time_s = (moment.frame.stamp_ns - begin_ns) * 1e-9
        mean = f', mean error {moment.errors.mean():.2f} m' if len(moment.errors) else ''
        yield (f'<section><h3>{number}. {time_s:.2f} s after the first frame (stamp '
               f'{moment.frame.stamp_ns * 1e-9:.2f} s)</h3><p>{moment.n_missed} missed, '
               f'{counted(moment.n_false, "false positive")}, '
               f'{len(moment.errors)} matched{mean}</p>'
               f'{_image(plots.moment_picture(moment), f"moment {number} from above")}</section>')
    yield '</div>'


def _image(address: str, text: str) -> str:
    return f'<img src="{address}" alt="{escape(text)}">'


def write_scenes_page(file: BinaryIO, records: Sequence[Mapping[str, Any]]) -> None:
    """Write the page of several bags: the means over them, and a row for each."""
    # records: result of each bag, with the keys ``file`` and ``error``, None if it was evaluated.
    results = [(str(record['file']), dict(numbers_of(record))) for record in records
               if record['error'] is None]
    text = (f'{counted(len(results), "bag")} evaluated, {len(records) - len(results)} failed.')
    columns = {path: numbers for _, figure, _ in FIGURES for path in (
        figure, f'{AGAINST}/{figure}') if (numbers := [
            number for _, found in results if (number := found.get(path)) is not None])}
    parts = [f'<p>{text}</p>', *_figures(
        {path: fmean(numbers) for path, numbers in columns.items()})]
    shown = [(name, path) for name, path, _ in FIGURES if path in columns]
    parts += ['<h2>Bags</h2>', *table_elements(tables.ResultTable(
        'bag', tuple(name for name, _ in shown),
        tuple(tables.Row(name, '', {path: found.get(path) for _, path in shown})
              for name, found in results)))]
    parts += [f'<p class="worse">{escape(str(record["file"]))}: {escape(str(record["error"]))}</p>'
              for record in records if record['error'] is not None]
    write_document(file, f'Evaluation of {counted(len(records), "bag")}', parts)
