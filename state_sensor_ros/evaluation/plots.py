# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The curves of an evaluation, and pictures of its worst moments, as elements of a page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from io import BytesIO
import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
import numpy as np

from state_sensor_ros.evaluation.detection import ClassScores, RECALLS
from state_sensor_ros.evaluation.matching import (
    EvaluatedFrame,
    MATCH_DISTANCES_M,
    ObjectSet,
    SIZE,
    XY,
    YAW,
)
from state_sensor_ros.frame import Bools, Floats
from state_sensor_ros.rotations import plane_rotations

_TRUTH, _STACK, _MISSED, _FALSE = '#495057', '#1c7ed6', '#d6336c', '#f08c00'
_LINES = (_STACK, _FALSE, '#7048e8', '#c2255c')
_N_BINS = 40
# Length and width of an object whose size is unknown, m.
_SMALL = 0.5
# Corners of an object of length and width 1.
_CORNERS: Floats = np.array(((0.5, 0.5), (0.5, -0.5), (-0.5, -0.5), (-0.5, 0.5)))
# Width and height of a picture, m; farther objects are not drawn.
_VIEW_M: Floats = np.array((90.0, 70.0))
# Least top of the axis of errors, so that smaller ones look small: m, deg, m/s.
_ERRORS = ((0, 'translation (m)', 1.0, 0.01), (2, 'orientation (deg)', 180.0 / math.pi, 0.1),
           (3, 'velocity (m/s)', 1.0, 0.01))


def _image(figure: Figure, text: str) -> str:
    buffer = BytesIO()
    figure.savefig(buffer, format='png', dpi=110)
    return (f'<img src="data:image/png;base64,{b64encode(buffer.getvalue()).decode()}" '
            f'alt="{text}">')


def _axes(figure: Figure, rows: int, columns: int, index: int, x: str, y: str) -> Axes:
    axes = figure.add_subplot(rows, columns, index, xlabel=x, ylabel=y)
    axes.grid(visible=True, color='#dee2e6', linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[['top', 'right']].set_visible(False)
    return axes


def precision_recall(classes: Sequence[ClassScores]) -> str:
    """Draw precision over recall of each class with ground truth, for each match distance."""
    # classes: scores, at least of one class with ground truth.
    drawn = [(each.name, each.curves) for each in classes if each.curves is not None]
    columns = min(len(drawn), 3)
    rows = math.ceil(len(drawn) / columns)
    figure = Figure(figsize=(3.6 * columns + 0.4, 3.2 * rows), layout='constrained')
    for index, (name, curves) in enumerate(drawn, 1):
        axes = _axes(figure, rows, columns, index, 'recall', 'precision')
        axes.set(title=name, xlim=(0.0, 1.02), ylim=(0.0, 1.05))
        for precision, distance, color in zip(
                curves.precisions, MATCH_DISTANCES_M, _LINES, strict=True):
            reached = precision > 0.0
            axes.plot(RECALLS[reached], precision[reached], color=color, label=f'{distance:g} m')
    figure.legend(*axes.get_legend_handles_labels(), title='match within', frameon=False,
                  loc='outside right upper', fontsize=8)
    return _image(figure, 'precision over recall')


def errors_over(values: Floats, errors: Floats, label: str) -> str:
    """Draw the mean errors of the matches in bins, with their 10th to 90th percentile."""
    # values: (R,) by which the matches are divided, at least one is known.
    # errors: (R, 5) of the matches.
    known = np.isfinite(values)
    edges = np.linspace(values[known].min(), values[known].max() + 1e-9, _N_BINS + 1)
    bins = np.searchsorted(edges, values[known], side='right') - 1
    figure = Figure(figsize=(11.2, 2.9), layout='constrained')
    for index, (column, name, factor, top) in enumerate(_ERRORS, 1):
        axes = _axes(figure, 1, 3, index, label, name)
        numbers = errors[known, column] * factor
        found = [(0.5 * (edges[i] + edges[i + 1]), each.mean(), *np.percentile(each, (10, 90)))
                 for i in range(_N_BINS)
                 if len(each := numbers[(bins == i) & np.isfinite(numbers)])]
        if found:
            centers, means, low, high = np.array(found).T
            axes.fill_between(centers, low, high, color=_STACK, alpha=0.2, label='10 % to 90 %')
            axes.plot(centers, means, color=_STACK, marker='.', label='mean')
            axes.set_ylim(0.0, max(axes.get_ylim()[1], top))
            axes.legend(frameon=False, fontsize=8)
        else:
            axes.text(0.5, 0.5, 'not in the messages', ha='center', transform=axes.transAxes)
    return _image(figure, f'errors over {label}')


def over_time(y: str, times_s: Floats, curves: Mapping[str, Any]) -> str:
    """Draw curves, (T,) each, by their names, over time, (T,) s."""
    figure = Figure(figsize=(11.2, 2.4), layout='constrained')
    axes = _axes(figure, 1, 1, 1, 'time since the first frame (s)', y)
    for color, (name, values) in zip(_LINES, curves.items(), strict=False):
        axes.plot(times_s, values, color=color, label=name or None, linewidth=1.3)
    axes.set_ylim(0.0)
    if len(curves) > 1:
        axes.legend(frameon=False, fontsize=8)
    return _image(figure, f'{" and ".join(filter(None, curves)) or y} over time')


def moment_picture(frame: EvaluatedFrame) -> str:
    """Draw ground truth and stack at one moment from above, in the area with the most errors."""
    # frame: with at least one object.
    rows, others = frame.matched
    is_matched, is_found = (np.isin(np.arange(len(objects.ids)), found) for objects, found in (
        (frame.stack, rows), (frame.truth, others)))
    figure = Figure(figsize=(5.4, 4.6), layout='constrained')
    axes = _axes(figure, 1, 1, 1, 'x (m)', 'y (m)')
    axes.set_aspect('equal')
    # A matched ground-truth object has a wide line, which is visible around the detection.
    for objects, mask, name, color, width in (
            (frame.truth, is_found, 'ground truth', _TRUTH, 2.6),
            (frame.truth, ~is_found, 'missed', _MISSED, 1.8),
            (frame.stack, is_matched, 'stack', _STACK, 1.2),
            (frame.stack, ~is_matched, 'false positive', _FALSE, 1.8)):
        _draw(axes, objects, mask, color, width)
        axes.add_line(Line2D([], [], color=color, linewidth=width, label=name))
    links = np.stack((frame.stack.states[rows, XY], frame.truth.states[others, XY]), axis=1)
    axes.add_collection(LineCollection(list(links), colors=_STACK, linewidths=1.0))
    if np.isfinite(frame.ego_xyz).all():
        axes.plot(*frame.ego_xyz[:2], marker='*', color='black', linestyle='none', label='ego')
    figure.legend(loc='outside upper center', ncols=5, frameon=False, fontsize=8)
    points = np.concatenate((frame.truth.states[~is_found, XY], frame.stack.states[~is_matched,
                                                                                   XY]))
    if not len(points):
        lengths = np.linalg.norm(links[:, 0] - links[:, 1], axis=1)
        points = links[[lengths.argmax()], 0]
    # Around the point with the most missed and false objects, else the greatest error.
    are_near = (np.abs(points[:, None] - points) < 0.4 * _VIEW_M).all(axis=2)
    middle = points[are_near.sum(axis=1).argmax()]
    axes.set_xlim(*(middle[0] + 0.5 * _VIEW_M[0] * np.array((-1.0, 1.0))))
    axes.set_ylim(*(middle[1] + 0.5 * _VIEW_M[1] * np.array((-1.0, 1.0))))
    return _image(figure, 'the moment from above')


def _draw(axes: Axes, objects: ObjectSet, mask: Bools, color: str, width: float) -> None:
    states = objects.states[mask]
    edges = np.where(states[:, SIZE][:, :2] > 0.0, states[:, SIZE][:, :2], _SMALL)
    rotations = plane_rotations(np.nan_to_num(states[:, YAW]))
    outlines = states[:, None, XY] + np.einsum(
        'nij,nkj->nki', rotations, _CORNERS * edges[:, None])
    axes.add_collection(PolyCollection(
        list(outlines), facecolors='none', edgecolors=color, linewidths=width))
    # A line from the center to the front marks the heading.
    fronts = np.stack((states[:, XY], states[:, XY] + 0.5 * rotations[:, :, 0] * edges[:, :1]),
                      axis=1)
    axes.add_collection(LineCollection(list(fronts), colors=color, linewidths=width))
