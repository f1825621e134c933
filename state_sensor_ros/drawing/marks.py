# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The marks of a map, the entries that its legend can have, with their colors."""

from __future__ import annotations

from enum import Enum
import math

from matplotlib import colormaps
from matplotlib.colors import ListedColormap, to_hex, to_rgba_array
import numpy as np
import numpy.typing as npt

from state_sensor_ros import texts
from state_sensor_ros.classes import CLASS_NAMES
from state_sensor_ros.drawing import scene as scenes
from state_sensor_ros.drawing import style
from state_sensor_ros.frame import Floats, Rows


class Mark(Enum):
    """A mark and its label, in the order of the legend."""

    EGO = 'ego'
    VEHICLE = 'vehicle'
    UNKNOWN_SPEED = 'speed unknown'
    PEDESTRIAN = 'pedestrian'
    RED = 'red light'
    YELLOW = 'yellow light'
    GREEN = 'green light'
    LIGHT = 'light, state unknown'
    SIGN = 'speed limit (km/h)'
    OTHER_SIGN = 'traffic sign'
    OBJECT = 'object'
    ASSUMED = 'size assumed'
    EGO_TRACK = 'track of the ego'
    TRACK = 'track'
    LANE_CHANGE = 'lane change'


_MARKS = tuple(Mark)
OF_KINDS = (Mark.VEHICLE, Mark.PEDESTRIAN, Mark.LIGHT, Mark.SIGN, Mark.OTHER_SIGN, Mark.OBJECT)
_BY_KIND = np.array([_MARKS.index(mark) for mark in OF_KINDS])
# Marks by the color that a traffic light displays.
LIGHT_MARKS = {'red': Mark.RED, 'yellow': Mark.YELLOW, 'green': Mark.GREEN}
# Marks that are circles: diameter, edge and its width, points; and the kinds of these.
CIRCLES = {Mark.PEDESTRIAN: (5.0, style.DARK, 0.5), Mark.SIGN: (12.0, style.SIGN_EDGE, 1.4),
           Mark.OTHER_SIGN: (7.0, style.SIGN_EDGE, 1.4),
           **dict.fromkeys((*LIGHT_MARKS.values(), Mark.LIGHT), (7.0, style.DARK, 1.6))}
SYMBOLS = {kind: CIRCLES[mark] for kind, mark in enumerate(OF_KINDS) if mark in CIRCLES}
# Scales of speed begin and end at multiples of this, m/s.
_ROUND = 5.0
# Room above and below the curves, as a share of their height, and at least this.
_ROOM, _LEAST_ROOM_MPS = 0.06, 0.5
# Slow to fast, even in lightness, without the palest end, which is invisible on a light ground.
SPEEDS = ListedColormap(colormaps['viridis'](np.linspace(0.0, 0.9, 256)), 'speed')
# A speed, for the legend.
EXAMPLE = to_hex(SPEEDS(0.55))
# Fills of marks.
FILLS = {
    Mark.EGO: style.EGO, Mark.VEHICLE: EXAMPLE, Mark.OBJECT: style.OBJECT,
    Mark.PEDESTRIAN: style.PEDESTRIAN, Mark.RED: style.RED, Mark.YELLOW: style.YELLOW,
    Mark.GREEN: style.GREEN, Mark.LIGHT: style.UNKNOWN, Mark.SIGN: style.SIGN,
    Mark.OTHER_SIGN: style.SIGN, Mark.UNKNOWN_SPEED: style.UNKNOWN}
_FILLS = to_rgba_array([FILLS.get(mark, 'white') for mark in _MARKS])


def _marks_at(scene: scenes.Scene, samples: Rows) -> Rows:
    """Return the mark of each sample, (n,) index in ``_MARKS``."""
    actor = scene.actor[samples]
    of_light = np.array([_MARKS.index(LIGHT_MARKS.get(text, Mark.LIGHT))
                         for text in scene.displays])
    kind = scene.kind[actor]
    marks = np.where(kind == scenes.LIGHT, of_light[scene.display[samples]], _BY_KIND[kind])
    return np.where(scene.is_ego[actor], _MARKS.index(Mark.EGO), marks)


def marks_of(scene: scenes.Scene, samples: Rows) -> set[Mark]:
    actor = np.unique(scene.actor[samples])
    has_footprint = ~np.isin(scene.kind[actor], list(SYMBOLS)) | scene.is_ego[actor]
    marks = {_MARKS[i] for i in np.unique(_marks_at(scene, samples)).tolist()}
    return marks | ({Mark.ASSUMED} if (has_footprint & ~scene.has_size[actor]).any() else set())


def legend_marks(scene: scenes.Scene, samples: Rows, coloring: str) -> set[Mark]:
    """Return the marks of samples and of tracks that a legend explains."""
    # coloring: one of ``style.COLORINGS``; by actor, a key has entries for vehicles.
    marks = marks_of(scene, samples)
    begin, end = scene.tracks.segments(scene.moves)
    is_ego = scene.is_ego[scene.tracks.actor[begin]]
    # The ego has one entry.
    marks |= {mark for mark, is_drawn in (
        (Mark.EGO_TRACK, is_ego.any() and Mark.EGO not in marks),
        (Mark.TRACK, not is_ego.all())) if is_drawn}
    if coloring == style.BY_ACTOR:
        return marks - {Mark.VEHICLE}
    rows = samples[scene.is_vehicle[scene.actor[samples]] & ~scene.is_ego[scene.actor[samples]]]
    if np.isnan(scene.tracks.speed[end]).any() or np.isnan(scene.speed[rows]).any():
        marks.add(Mark.UNKNOWN_SPEED)
    return marks


def speed_range(scene: scenes.Scene) -> tuple[float, float]:
    """Return a non-empty range of speeds that contains those of all moving actors."""
    # Returns lowest and highest speed, multiples of 5 m/s.
    slowest, fastest = _known_speeds(scene)
    low = _ROUND * math.floor(slowest / _ROUND)
    return low, max(_ROUND * math.ceil(fastest / _ROUND), low + _ROUND)


def speed_limits(scene: scenes.Scene) -> tuple[float, float]:
    """Return the limits of the axis of speeds over time, m/s."""
    slowest, fastest = _known_speeds(scene)
    room = max(_ROOM * (fastest - slowest), _LEAST_ROOM_MPS)
    # A curve on the frame would be hidden. No speed is below 0, but a curve at 0 needs room.
    return max(slowest - room, -room / 2), fastest + room


def _known_speeds(scene: scenes.Scene) -> tuple[float, float]:
    """Return the lowest and the highest speed of all moving actors, m/s, 0 if none is known."""
    speed = scene.tracks.speed[scene.moves[scene.tracks.actor]]
    known = speed[np.isfinite(speed)]
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)


def speed_scale(n_colors: int) -> list[str]:
    """Return colors for ``n_colors`` equal classes of speed, slow to fast."""
    return [to_hex(color) for color in SPEEDS((np.arange(n_colors) + 0.5) / n_colors)]


def actor_colors(scene: scenes.Scene) -> Rows:
    """Return the color of each vehicle if colors distinguish vehicles."""
    # Returns (A,) int64, index in ACTORS: one for each vehicle, or one for each class if there are
    # more vehicles than colors; -1 for the ego and for actors that are not vehicles.
    has_color = scene.is_vehicle & ~scene.is_ego
    index: Rows = np.cumsum(has_color) - 1
    if np.count_nonzero(has_color) > len(style.ACTORS):
        index[has_color] = np.unique(scene.actor_class[has_color], return_inverse=True)[1]
    return np.where(has_color, index, -1)


def actor_key(scene: scenes.Scene) -> list[tuple[str, str]]:
    """Return the colors that distinguish vehicles other than the ego, and their key."""
    index = actor_colors(scene)
    colored = np.flatnonzero(index >= 0)
    if len(colored) <= len(style.ACTORS):
        return [(style.ACTORS[index[i]], texts.abbreviated(scene.names[i])) for i in colored]
    classes, first, numbers = np.unique(
        scene.actor_class[colored], return_index=True, return_counts=True)
    return [(style.ACTORS[index[colored[i]]], f'class {CLASS_NAMES[class_]} ({number})')
            for class_, i, number in zip(classes, first, numbers, strict=True)]


def ego_text(scene: scenes.Scene) -> str:
    """Return the text of the ego in a key, with its name if there is exactly one ego."""
    egos = np.flatnonzero(scene.is_ego)
    name = scene.names[egos[0]] if len(egos) == 1 else ''
    return f'ego {texts.abbreviated(name)}' if name.lower() not in ('', 'ego') else 'ego'


def colors_of(scene: scenes.Scene, actor: npt.NDArray[np.integer], speed: npt.NDArray[np.float32],
              coloring: str) -> Floats:
    """Return the colors of actors at speeds."""
    # speed: (n,) m/s, NaN unknown.
    # coloring: one of ``style.COLORINGS``.
    # Returns (n, 4) float64, red green blue alpha, 0..1.
    if coloring == style.BY_ACTOR:
        of_actor = to_rgba_array([*style.ACTORS, style.OBJECT])[actor_colors(scene)]
        of_actor[scene.kind == scenes.PEDESTRIAN] = to_rgba_array(style.PEDESTRIAN)
        of_actor[scene.is_ego] = to_rgba_array(style.EGO)
        colors: Floats = of_actor[actor]
        return colors
    low, high = speed_range(scene)
    colors = SPEEDS((speed.astype(np.float64) - low) / (high - low))
    colors[~np.isfinite(speed)] = to_rgba_array(style.UNKNOWN)
    return colors


def fills_of(scene: scenes.Scene, samples: Rows, coloring: str) -> Floats:
    """Return the fills of the marks of samples: vehicles by ``coloring``, others by their mark."""
    # Returns (n, 4) float64, red green blue alpha, 0..1.
    marks = _marks_at(scene, samples)
    colors = colors_of(scene, scene.actor[samples], scene.speed[samples], coloring)
    return np.where((marks == _MARKS.index(Mark.VEHICLE))[:, None], colors, _FILLS[marks])
