# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The curves of an evaluation, and pictures of its worst moments (matplotlib, ``[plot]``)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.image import imsave
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
import numpy as np
import numpy.typing as npt

from state_sensor_ros.evaluation.detection_metrics import ClassScores, RECALLS
from state_sensor_ros.evaluation.frame_record import Records
from state_sensor_ros.evaluation.matching import (
    EvaluatedFrame,
    I_ERRORS,
    MATCH_DISTANCES_M,
    ObjectSet,
    SIZE,
    XY,
    YAW,
)
from state_sensor_ros.frame import Bools, Floats
from state_sensor_ros.rotations import plane_rotations

_TRUTH, _STACK, _MISSED, _FALSE = '#495057', '#1c7ed6', '#d6336c', '#f08c00'
_LINES = ('#0b7285', '#1c7ed6', '#7048e8', '#c2255c')
_N_BINS = 40
# Length and width of an object whose size is unknown, m.
_SMALL = 0.5
# Corners of an object of length and width 1.
_CORNERS: Floats = np.array(((0.5, 0.5), (0.5, -0.5), (-0.5, -0.5), (-0.5, 0.5)))
# Width and height of a picture; farther objects are not drawn.
_VIEW_M: Floats = np.array((90.0, 70.0))
# Least and greatest top of the axis of a measure of safety, by its unit.
_SAFETY_TOPS = {'m': (1.0, 50.0), 's': (1.0, 10.0), 'm/s2': (1.0, 15.0)}
# Least top of the axis of errors, so that smaller ones look small: m, deg, m/s.
_LEAST_TOPS = (0.01, 0.1, 0.01)


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """An evaluated frame and its errors."""

    frame: EvaluatedFrame
    n_missed: int  # ground-truth objects without a match at 2 m
    n_false: int  # detections without one
    errors: Floats  # (R,) translation errors of the matches, m


@dataclass(frozen=True, slots=True, eq=False)
class SafetySection:
    """Measures of safety of one actor in the ground truth."""

    actor: str  # its raw name
    # heading, value, time and other actor of each measure.
    worst: tuple[tuple[str, str, str, str], ...]
    events: tuple[tuple[str, str, str, str], ...]  # kind, times, other actor and value of each
    times_s: Floats  # (T,) game time, s
    # (T,) numbers by their heading and unit, NaN where undefined.
    curves: Mapping[tuple[str, str], Floats]
    spans_s: tuple[tuple[float, float], ...]  # begin and end of each event, s


def moment_of(frame: EvaluatedFrame) -> Moment:
    matches = frame.matches[I_ERRORS]
    rows = np.flatnonzero(matches >= 0)
    errors = np.linalg.norm(
        frame.stack.states[rows, XY] - frame.truth.states[matches[rows], XY], axis=1)
    return Moment(frame, len(frame.truth.ids) - len(rows), len(matches) - len(rows), errors)


def _png(figure: Figure) -> str:
    figure.set_dpi(110)
    canvas: Any = FigureCanvasAgg(figure)
    # ``savefig`` would compute the layout twice.
    canvas.draw()
    buffer = BytesIO()
    imsave(buffer, canvas.buffer_rgba(), format='png')
    return f'data:image/png;base64,{b64encode(buffer.getvalue()).decode()}'


def _axes(figure: Figure, rows: int, columns: int, index: int, x: str, y: str) -> Axes:
    axes = figure.add_subplot(rows, columns, index)
    axes.grid(visible=True, color='#dee2e6', linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[['top', 'right']].set_visible(False)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return axes


def precision_recall(classes: Sequence[ClassScores]) -> str:
    """Draw precision over recall of each class with ground truth, for each match distance."""
    # classes: scores, at least of one class with ground truth.
    drawn = [each for each in classes if each.curves is not None]
    columns = min(len(drawn), 3)
    rows = math.ceil(len(drawn) / columns)
    figure = Figure(figsize=(3.6 * columns + 0.4, 3.2 * rows), layout='constrained')
    for index, scores in enumerate(drawn, 1):
        axes = _axes(figure, rows, columns, index, 'recall', 'precision')
        axes.set_title(scores.name)
        axes.set_xlim(0.0, 1.02)
        axes.set_ylim(0.0, 1.05)
        assert scores.curves is not None
        for precision, distance, color in zip(
                scores.curves.precisions, MATCH_DISTANCES_M, _LINES, strict=True):
            reached = precision > 0.0
            axes.plot(RECALLS[reached], precision[reached], color=color, linewidth=1.6,
                      label=f'{distance:g} m')
    figure.legend(*axes.get_legend_handles_labels(), title='match within', frameon=False,
                  loc='outside right upper', fontsize=8, title_fontsize=8)
    return _png(figure)


def errors_over(values: Floats, errors: Floats, label: str, *,
                width: float | None) -> str:
    """Draw the mean errors of the matches in bins, with their 10th to 90th percentile."""
    # values: (R,) by which the matches are divided, at least one is known.
    # errors: (R, 5) of the matches.
    # width: least width of a bin; None for a fortieth of the range.
    known = np.isfinite(values)
    bins, centers = _bins(values[known], width)
    figure = Figure(figsize=(11.2, 2.9), layout='constrained')
    for index, (column, name, factor) in enumerate((
            (0, 'translation (m)', 1.0), (2, 'orientation (deg)', 180.0 / math.pi),
            (3, 'velocity (m/s)', 1.0)), 1):
        axes = _axes(figure, 1, 3, index, label, name)
        numbers = errors[known, column]
        found = [_spread(numbers[bins == i] * factor) for i in range(len(centers))]
        rows = np.array(found).reshape(-1, 3)
        if np.isfinite(rows).any():
            axes.fill_between(centers, rows[:, 0], rows[:, 2], color=_STACK, alpha=0.2,
                              linewidth=0.0, label='10 % to 90 %')
            axes.plot(centers, rows[:, 1], color=_STACK, marker='.', markersize=4, label='mean')
            axes.set_ylim(0.0, max(axes.get_ylim()[1], _LEAST_TOPS[index - 1]))
            _add_legend(axes)
        else:
            axes.text(0.5, 0.5, 'not in the messages', ha='center', va='center',
                      transform=axes.transAxes, color=_TRUTH)
    return _png(figure)


def _bins(values: npt.NDArray[np.float32],
          width: float | None) -> tuple[npt.NDArray[np.uint8], Floats]:
    low, high = float(values.min()), float(values.max())
    if width is None:
        width = max((high - low) / _N_BINS, 1e-9)
    else:
        width *= max(math.ceil((high - low) / width / _N_BINS), 1)
        low = width * math.floor(low / width)
    bins = ((values - low) / width).astype(np.uint8)
    return bins, low + (np.arange(int(bins.max()) + 1, dtype=np.float64) + 0.5) * width


def _spread(errors: Floats) -> tuple[float, float, float]:
    errors = errors[np.isfinite(errors)]
    if not len(errors):
        return math.nan, math.nan, math.nan
    low, high = np.percentile(errors, (10, 90)).tolist()
    return low, float(errors.mean()), high


def counts_over_time(frames: Records) -> str:
    """Draw the numbers of misses and of false positives over time."""
    times = (frames['stamp_ns'] - frames['stamp_ns'][0]) * 1e-9
    return _over_time('time since the first frame (s)', 'objects in a frame', times, (
        ('misses', _MISSED, frames['n_missed']),
        ('false positives', _FALSE, frames['n_false'])), drawstyle='steps-mid')


def ego_over_time(distances: Floats) -> str:
    """Draw the error of the ego's position over time."""
    # distances: (T, 2) float64, time, s, and error, m.
    return _over_time('time since the first pose (s)', 'error of the ego (m)',
                      distances[:, 0] - distances[0, 0], (('', _STACK, distances[:, 1]),))


def _over_time(x: str, y: str, times: Floats, curves: Sequence[tuple[str, str, Any]],
               drawstyle: Any = 'default') -> str:  # noqa: ANN401
    figure = Figure(figsize=(11.2, 2.4), layout='constrained')
    axes = _axes(figure, 1, 1, 1, x, y)
    for name, color, values in curves:
        axes.plot(times, values, color=color, label=name, linewidth=1.3, drawstyle=drawstyle)
    axes.set_ylim(0.0, max(axes.get_ylim()[1], 1.0) if curves[1:] else None)
    if curves[1:]:
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        _add_legend(axes)
    return _png(figure)


def _add_legend(axes: Axes) -> None:
    axes.legend(frameon=False, fontsize=8, ncols=2, loc='lower right', bbox_to_anchor=(1.0, 1.0))


def safety_over_time(section: SafetySection) -> str:
    """Draw the measures of safety over time, with the events as areas."""
    # section: measures, at least one.
    columns = 3
    rows = math.ceil(len(section.curves) / columns)
    figure = Figure(figsize=(11.2, 2.5 * rows), layout='constrained')
    # A run that begins again draws no line back.
    breaks = np.flatnonzero(np.diff(section.times_s) < 0.0) + 1
    times = np.insert(section.times_s, breaks, np.nan)
    for index, ((heading, unit), values) in enumerate(section.curves.items(), 1):
        axes = _axes(figure, rows, columns, index, 'game time (s)', f'{heading} ({unit})')
        axes.yaxis.label.set_fontsize(8.5)
        shown = np.insert(np.where(np.isfinite(values), values, np.nan), breaks, np.nan)
        for begin, end in section.spans_s:
            axes.axvspan(begin, max(end, begin + 1e-3), color=_FALSE, alpha=0.25, linewidth=1.0)
        axes.plot(times, shown, color=_STACK, linewidth=1.3, marker='.', markersize=2)
        known = shown[np.isfinite(shown)]
        least, greatest = _SAFETY_TOPS[unit]
        top = min(max(1.1 * float(known.max(initial=0.0)), least), greatest)
        axes.set_ylim(0.0, top)
        if np.isfinite(times).any():
            axes.set_xlim(np.nanmin(times), np.nanmax(times) + 1e-3)
        if known.min(initial=np.inf) > top:
            axes.text(0.5, 0.5, f'always above {top:g} {unit}' if len(known) else 'undefined',
                      ha='center', va='center', transform=axes.transAxes, color=_TRUTH)
    return _png(figure)


def moment_picture(moment: Moment) -> str:
    """Draw ground truth and stack at one moment from above, in the area with the most errors."""
    # moment: with at least one object.
    frame = moment.frame
    matches = frame.matches[I_ERRORS]
    is_found = np.isin(np.arange(len(frame.truth.ids)), matches[matches >= 0])
    figure = Figure(figsize=(5.4, 4.6), layout='constrained')
    axes = _axes(figure, 1, 1, 1, 'x (m)', 'y (m)')
    axes.set_aspect('equal')
    # A matched ground-truth object has a wide line, which is visible around the detection.
    _draw(axes, frame.truth, is_found, _TRUTH, 2.6)
    _draw(axes, frame.truth, ~is_found, _MISSED, 1.8)
    _draw(axes, frame.stack, matches >= 0, _STACK, 1.2)
    _draw(axes, frame.stack, matches < 0, _FALSE, 1.8)
    rows = np.flatnonzero(matches >= 0)
    links = np.stack((frame.stack.states[rows, XY], frame.truth.states[matches[rows], XY]), axis=1)
    axes.add_collection(LineCollection(list(links), colors=_STACK, linewidths=1.0))
    if np.isfinite(frame.ego_xyz).all():
        axes.plot(*frame.ego_xyz[:2], marker='*', color='black', markersize=9, linestyle='none',
                  scalex=False, scaley=False)
    _frame_view(axes, moment, ~is_found)
    handles = [Line2D([], [], color=color, linewidth=width, label=name) for name, color, width in (
        ('ground truth', _TRUTH, 2.6), ('stack', _STACK, 1.2), ('missed', _MISSED, 1.8),
        ('false positive', _FALSE, 1.8))]
    figure.legend(handles=[*handles, Line2D(
        [], [], marker='*', color='black', linestyle='none', label='ego')],
        loc='outside upper center', ncols=5, frameon=False, fontsize=8)
    return _png(figure)


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


def _frame_view(axes: Axes, moment: Moment, are_missed: Bools) -> None:
    """Show the area with the most missed and false objects, else with the greatest error."""
    frame, matches = moment.frame, moment.frame.matches[I_ERRORS]
    points = np.concatenate((frame.truth.states[are_missed, XY],
                             frame.stack.states[matches < 0, XY]))
    if not len(points):
        rows = np.flatnonzero(matches >= 0)
        points = frame.stack.states[[rows[moment.errors.argmax()]], XY]
    are_near: Bools = np.logical_and.reduce(
        np.abs(points[:, None] - points) < 0.4 * _VIEW_M, axis=2)
    most = points[are_near[are_near.sum(axis=1).argmax()]]
    middle = 0.5 * (most.min(axis=0) + most.max(axis=0))
    low, high = middle - 0.5 * _VIEW_M, middle + 0.5 * _VIEW_M
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
