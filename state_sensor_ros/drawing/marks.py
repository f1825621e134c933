# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The marks of a map: the entries that its legend can have."""

from __future__ import annotations

from enum import Enum

import numpy as np

from state_sensor_ros.drawing import kinds
from state_sensor_ros.drawing.scene import Scene
from state_sensor_ros.drawing.tracks import segments
from state_sensor_ros.frame import Rows


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
    OBJECT = 'object'
    ASSUMED = 'size assumed'
    EGO_TRACK = 'track of the ego'
    TRACK = 'track'
    LANE_CHANGE = 'lane change begins'
    CLOSE_UP = 'close-up'


_BY_KIND = {kinds.VEHICLE: Mark.VEHICLE, kinds.PEDESTRIAN: Mark.PEDESTRIAN,
            kinds.LIGHT: Mark.LIGHT, kinds.SIGN: Mark.SIGN, kinds.OBJECT: Mark.OBJECT}
# Marks by the colour that a traffic light displays.
LIGHT_MARKS = {'red': Mark.RED, 'yellow': Mark.YELLOW, 'green': Mark.GREEN}
# Marks of footprints; the others are symbols.
FOOTPRINTS = frozenset((Mark.EGO, Mark.VEHICLE, Mark.OBJECT))


def mark_of(scene: Scene, actor: int, display: int) -> Mark:
    """
    Return the mark of an actor.

    :param actor: index of the actor.
    :param display: text or colour that it displays, index in ``scene.displays``.
    """
    if scene.is_ego[actor]:
        return Mark.EGO
    if scene.kind[actor] == kinds.LIGHT:
        return LIGHT_MARKS.get(scene.displays[display], Mark.LIGHT)
    return _BY_KIND[int(scene.kind[actor])]


def marks_of(scene: Scene, samples: slice | Rows) -> set[Mark]:
    """
    Return the marks of the actors at samples.

    :param samples: n indices into the samples.
    :returns: marks, with Mark.ASSUMED if a footprint is not that of a box.
    """
    pairs = np.unique(np.stack([scene.actor[samples], scene.display[samples]]), axis=1)
    marks = set()
    for actor, display in pairs.T.tolist():
        mark = mark_of(scene, actor, display)
        marks.add(mark)
        if mark in FOOTPRINTS and not scene.has_box[actor]:
            marks.add(Mark.ASSUMED)
    return marks


def track_marks(scene: Scene) -> set[Mark]:
    """
    Return the marks of the tracks that are drawn.

    :param scene: the recording, with the tracks.
    """
    begin, _ = segments(scene.tracks, scene.moves)
    is_ego = scene.is_ego[scene.tracks.actor[begin]]
    return {mark for mark, is_drawn in (
        (Mark.EGO_TRACK, is_ego.any()), (Mark.TRACK, not is_ego.all())) if is_drawn}


def has_unknown_speed(scene: Scene, samples: Rows) -> bool:
    """
    Return whether a track, or a vehicle at one of the samples, has no known speed.

    :param samples: n indices into the samples.
    """
    _, end = segments(scene.tracks, scene.moves)
    rows = samples[scene.is_vehicle[scene.actor[samples]] & ~scene.is_ego[scene.actor[samples]]]
    return bool(np.isnan(scene.tracks.speed[end]).any() or np.isnan(scene.speed[rows]).any())
