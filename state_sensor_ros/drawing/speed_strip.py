# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The speeds of all moving actors over time in matplotlib."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
import numpy as np

from state_sensor_ros.drawing import palette, tracks
from state_sensor_ros.drawing.colorings import BY_ACTOR
from state_sensor_ros.drawing.legend import INSTANT_DASHES
from state_sensor_ros.drawing.scene import Scene
from state_sensor_ros.drawing.wording import (
    KPH_PER_MPS,
    SPEED_KPH_TITLE,
    SPEED_TITLE,
    TIME_TITLE,
)
from state_sensor_ros.frame import Floats

# The lines of more actors than this are more transparent.
_MANY = 40


def draw_strip(axes: Axes, scene: Scene, instant: int, coloring: str) -> None:
    """
    Draw the speeds, the ego's on top, and a line at one instant.

    :param axes: without content.
    :param instant: -1 draws no line.
    :param coloring: ``speed`` or ``actor``.
    """
    drawn = scene.tracks
    begin, end = tracks.segments(drawn, scene.moves)
    lines = np.stack([np.stack([drawn.time_s[row], drawn.speed[row]], axis=-1)
                      for row in (begin, end)], axis=1)
    is_ego = scene.is_ego[drawn.actor[begin]]
    others: Floats | str = palette.colors_of(
        scene, drawn.actor[end[~is_ego]], drawn.speed[end[~is_ego]], BY_ACTOR) \
        if coloring == BY_ACTOR else palette.QUIET
    opacity = 0.7 * min(1.0, _MANY / max(int(scene.moves.sum()), 1)) ** 0.5
    # Round ends close the seams of opaque segments; they would be seen where others overlap.
    for rows, colors, width, alpha, ends in (
            (~is_ego, others, 0.8, opacity, 'butt'), (is_ego, palette.EGO, 2.0, 1.0, 'round')):
        axes.add_collection(LineCollection(
            list(lines[rows]), colors=colors, linewidths=width, alpha=alpha, capstyle=ends,
            snap=False), autolim=False)
    low, high = palette.speed_range(scene)
    axes.set(xlim=(0.0, scene.duration_s or 1.0), xlabel=TIME_TITLE, ylim=(low, high),
             ylabel=SPEED_TITLE, facecolor=palette.GROUND)
    axes.grid(color='white', linewidth=1.0)
    axes.set_axisbelow(True)
    if instant >= 0:
        # Also at the right edge in its whole width.
        axes.axvline(scene.time_s[instant], color=palette.INK, linewidth=0.9,
                     linestyle=INSTANT_DASHES, clip_on=False)
    kph = axes.twinx()
    kph.set(ylim=(low * KPH_PER_MPS, high * KPH_PER_MPS), ylabel=SPEED_KPH_TITLE)
