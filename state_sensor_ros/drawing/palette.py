# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Colours of pictures and animations."""

from __future__ import annotations

import math

from matplotlib import colormaps
from matplotlib.colors import ListedColormap, to_hex, to_rgba_array
import numpy as np

from state_sensor_ros.drawing.scene import Scene
from state_sensor_ros.drawing.tracks import actors_in_motion
from state_sensor_ros.frame import Floats, Rows

INK = '#1f2933'
QUIET = '#7b8794'
FAINT = '#cbd2d9'
GROUND = '#f5f7fa'
EGO = '#d6336c'
EGO_BED = '#f4b6cb'
OBJECT = '#f08c00'
OBJECT_EDGE = '#7a4600'
UNKNOWN = '#9aa5b1'

# Scales of speed begin and end at multiples of this, m/s.
_ROUND = 5.0
BY_SPEED, BY_ACTOR = 'speed', 'actor'
COLORINGS = (BY_SPEED, BY_ACTOR)

# Eight colours that differ clearly from each other and from those of ego and objects.
ACTORS = ('#4263eb', '#0ca678', '#7048e8', '#a0522d', '#1098ad', '#74b816', '#495057', '#b58900')
# Slow to fast, even in lightness, without the palest end, which is invisible on a light ground.
SPEEDS = ListedColormap(colormaps['viridis'](np.linspace(0.0, 0.9, 256)), 'speed')


def speed_range(scene: Scene) -> tuple[float, float]:
    """
    Return a non-empty range of speeds that contains those of all moving actors.

    :param scene: the recording; unknown speeds are ignored.
    :returns: lowest and highest speed, multiples of 5 m/s.
    """
    known = scene.speed[actors_in_motion(scene)[scene.actor] & np.isfinite(scene.speed)]
    slowest, fastest = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    low = _ROUND * math.floor(slowest / _ROUND)
    return low, max(_ROUND * math.ceil(fastest / _ROUND), low + _ROUND)


def speed_scale(n_colors: int) -> list[str]:
    """Return colours for ``n_colors`` equal classes of speed, slow to fast."""
    return [to_hex(color) for color in SPEEDS((np.arange(n_colors) + 0.5) / n_colors)]


def colors_of(scene: Scene, samples: slice | Rows, coloring: str) -> Floats:
    """
    Return the colours of samples.

    :param samples: n indices into the samples of ``scene``.
    :param coloring: one of COLORINGS.
    :returns: (n, 4) float64, red green blue alpha, 0..1.
    """
    actor = scene.actor[samples]
    if coloring == BY_ACTOR:
        colors = to_rgba_array(ACTORS)[actor % len(ACTORS)]
        colors[~scene.is_vehicle[actor]] = to_rgba_array(OBJECT)
        colors[scene.is_ego[actor]] = to_rgba_array(EGO)
        return colors
    speed = scene.speed[samples].astype(np.float64)
    low, high = speed_range(scene)
    colors = SPEEDS((speed - low) / (high - low))
    colors[~np.isfinite(speed)] = to_rgba_array(UNKNOWN)
    return colors
