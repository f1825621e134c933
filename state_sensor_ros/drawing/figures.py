# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Figures that a notebook shows, and the small ones of a track and of safety measures."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
import numpy as np

from state_sensor_ros.drawing.style import EGO, QUIET, SPEED_TITLE, X_TITLE, Y_TITLE
from state_sensor_ros.frame import Floats

_SIZE, _DPI = (8.0, 2.6), 100.0


class ShownFigure(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        stream = BytesIO()
        self.savefig(stream, format='png')
        return stream.getvalue()


def track_figure(name: str, time_s: Floats, position_xy: Floats, speed: Floats) -> Figure:
    """
    Draw a path, and its speed over time.

    :param name: title.
    :param time_s: (T,) game times.
    :param position_xy: (T, 2) m.
    :param speed: (T,) m/s.
    """
    figure = _figure()
    path, strip = figure.subplots(1, 2, width_ratios=(1, 2))
    path.plot(*position_xy.T, color=EGO)
    path.plot(*position_xy[-1:].T, 'o', color=EGO)
    path.set(xlabel=X_TITLE, ylabel=Y_TITLE, title=name.replace('$', r'\$'))
    path.set_aspect('equal', 'datalim')
    strip.plot(time_s, speed, color=EGO)
    strip.set(xlabel='game time (s)', ylabel=SPEED_TITLE)
    return figure


def measures_figure(time_s: Floats, measures: Mapping[str, Floats]) -> Figure:
    """
    Draw measures over time, one below the other.

    :param time_s: (T,) game times.
    :param measures: (T,) each, by the titles of their axes.
    """
    figure = _figure()
    plots = figure.subplots(len(measures), sharex=True, squeeze=False)[:, 0]
    for axes, (title, values) in zip(plots, measures.items(), strict=True):
        # A frame alone between undefined ones has no line.
        axes.plot(time_s, np.where(np.isfinite(values), values, np.nan), '.-', markersize=2,
                  color=EGO)
        axes.set_ylabel(title)
        axes.grid(color=QUIET, alpha=0.3)
    plots[-1].set_xlabel('game time (s)')
    return figure


def _figure() -> ShownFigure:
    figure = ShownFigure(_SIZE, dpi=_DPI, layout='constrained')
    FigureCanvasAgg(figure)
    return figure
