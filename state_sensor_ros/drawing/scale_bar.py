# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The scale bar of a map."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
import numpy as np

from state_sensor_ros.drawing import palette

# Mark of the artists.
SCALE_GID = 'scale'
# The longest bar, its thickness, its distance below the map and from its text, inches.
_LONGEST, _THICK, _BELOW, _GAP = 1.1, 0.05, 0.38, 0.06
_N_PARTS = 4


def draw_scale_bar(axes: Axes, inches_per_m: float) -> None:
    """
    Draw a bar of a round length, about an inch, below the map, where no data is.

    :param axes: of the map: x and y in m; their limits must be final.
    :param inches_per_m: scale of the map.
    """
    length = round_length(_LONGEST / inches_per_m)
    thick, gap = _THICK / inches_per_m, _GAP / inches_per_m
    right, y = axes.get_xlim()[1], axes.get_ylim()[0] - _BELOW / inches_per_m
    for k in range(_N_PARTS):
        axes.add_patch(Rectangle(
            (right - length * (1.0 - k / _N_PARTS), y), length / _N_PARTS, thick, linewidth=0.6,
            edgecolor=palette.INK, facecolor=palette.INK if k % 2 == 0 else 'white',
            clip_on=False, gid=SCALE_GID))
    axes.text(right - length - gap, y + thick / 2, f'{length:g} m', ha='right',
              va='center_baseline', fontsize=8, gid=SCALE_GID)


def round_length(longest: float) -> float:
    """
    Return the largest of 1, 2, 5, 10, 20 … and their tenths that is not above ``longest``.

    >>> round_length(37.0), round_length(0.3)
    (20.0, 0.2)
    """
    power = 10.0 ** np.floor(np.log10(longest))
    return float(power * max(step for step in (1.0, 2.0, 5.0) if step * power <= longest))
