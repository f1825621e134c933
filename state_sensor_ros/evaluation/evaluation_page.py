# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The page of an evaluation: numbers, curves, and the worst moments; one file without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, BinaryIO

import numpy as np

from state_sensor_ros.evaluation import evaluation_plots as plots
from state_sensor_ros.evaluation.evaluation_lines import lines_of
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.worst_moments import Moment, moment_of, worst_moments

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; max-width: 76rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; margin: 0 0 .3rem; }
pre { background: #f5f7fa; padding: 1rem; overflow-x: auto; font-size: 13px; }
img { max-width: 100%; height: auto; }
.moments { display: grid; gap: 1.5rem;
           grid-template-columns: repeat(auto-fill, minmax(26rem, 1fr)); }
.moments p { margin: 0; color: #52606d; }
"""


def write_page(file: BinaryIO, stack: str, truth: str, topic_results: Sequence[TopicResult],
               result: Mapping[str, Any]) -> None:
    """
    Write the page.

    :param file: file open for writing.
    :param stack: name of the bag.
    :param truth: name of the truth.
    :param topic_results: topic_results on the topics.
    :param result: their result, as ``result_of`` returns it.
    """
    title = escape(f'{stack} compared with {truth}')
    numbers = escape('\n'.join(lines_of(result)))
    parts = ['<!DOCTYPE html>', '<html lang="en"><head><meta charset="utf-8">',
             '<meta name="viewport" content="width=device-width">', f'<title>{title}</title>',
             f'<style>{_STYLE}</style></head><body><h1>{title}</h1>', f'<pre>{numbers}</pre>']
    for found in topic_results:
        parts += _sections(found)
    parts.append('</body></html>\n')
    file.write('\n'.join(parts).encode('utf-8', 'replace'))


def _sections(found: TopicResult) -> Iterator[str]:
    topic = f'<code>{escape(found.topic)}</code>'
    if found.ego is not None and found.ego_stamps_ns is not None:
        times_s = (found.ego_stamps_ns - found.ego_stamps_ns[0]) * 1e-9
        yield f'<h2>Ego over time, {topic}</h2>'
        yield _image(plots.ego_over_time(np.column_stack((times_s, found.ego.distances))),
                     'error of the ego over time')
    if found.classes is None or found.matches is None:
        return
    if any(each.curves is not None for each in found.classes):
        yield f'<h2>Precision and recall, {topic}</h2>'
        yield _image(plots.precision_recall(found.classes), 'precision over recall')
    matches = found.matches
    begin_ns = found.frames[0].stamp_ns
    if np.isfinite(matches.distances).any():
        yield '<h2>Errors over the distance from the ego</h2>'
        yield _image(plots.errors_over(
            matches.distances, matches, 'distance from the ego (m)', width=10.0),
            'errors over distance')
    moments = [moment_of(frame) for frame in found.frames]
    yield '<h2>Errors over time</h2>'
    if len(matches.frames):
        times_s = (matches.stamps_ns - begin_ns).astype(np.float64) * 1e-9
        yield _image(plots.errors_over(times_s, matches, 'time since the first frame (s)',
                                       width=None), 'errors over time')
    yield _image(plots.counts_over_time(moments, begin_ns), 'missed and false objects over time')
    yield from _worst(worst_moments(moments), begin_ns)


def _worst(moments: Sequence[Moment], begin_ns: int) -> Iterator[str]:
    yield '<h2>The worst moments</h2>'
    if not moments:
        yield '<p>No moment has an error.</p>'
        return
    yield ('<p>By the number of missed and of false objects (no match within 2 m) plus the sum of '
           'the translation errors divided by 2 m; at least half a second apart. A '
           'picture shows 90 m by 70 m where most of them are.</p>'
           '<div class="moments">')
    for number, moment in enumerate(moments, 1):
        time_s = (moment.frame.stamp_ns - begin_ns) * 1e-9
        mean = f', mean error {moment.errors.mean():.2f} m' if len(moment.errors) else ''
        yield (f'<section><h3>{number}. {time_s:.2f} s</h3><p>{moment.n_missed} missed, '
               f'{moment.n_false} false, {len(moment.errors)} matched{mean}</p>'
               f'{_image(plots.moment_picture(moment), f"moment {number} from above")}</section>')
    yield '</div>'


def _image(address: str, text: str) -> str:
    return f'<img src="{address}" alt="{escape(text)}">'
