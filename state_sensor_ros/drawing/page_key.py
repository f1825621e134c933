# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The key of an animation: entries for what its map shows, as HTML."""

from __future__ import annotations

import html

import numpy as np

from state_sensor_ros.drawing import palette
from state_sensor_ros.drawing.figures import N_SPEED_CLASSES, TRACK
from state_sensor_ros.drawing.marks import has_unknown_speed, Mark, marks_of, track_marks
from state_sensor_ros.drawing.scene import Scene
from state_sensor_ros.drawing.wording import names_text

# Shapes of swatches, by class of animation.css.
_ROUND = frozenset((Mark.PEDESTRIAN, Mark.RED, Mark.YELLOW, Mark.GREEN, Mark.LIGHT, Mark.SIGN))
_LINES = {Mark.EGO_TRACK: palette.EGO_BED, Mark.TRACK: TRACK}


def page_key(scene: Scene, coloring: str) -> str:
    """
    Return a list item for each mark of the recording, and for the colours of vehicles.

    :param coloring: ``speed`` or ``actor``.
    """
    marks = marks_of(scene, slice(None)) | track_marks(scene)
    if scene.lane_changes:
        marks.add(Mark.LANE_CHANGE)
    items = []
    if coloring == palette.BY_SPEED:
        if has_unknown_speed(scene, np.arange(len(scene.actor))):
            marks.add(Mark.UNKNOWN_SPEED)
        items = [_scale(scene)]
    else:
        marks.discard(Mark.VEHICLE)
        items = [_item('box', color, names_text(names))
                 for color, names in palette.actor_key(scene)]
    return '\n'.join([_entry(mark) for mark in Mark if mark in marks] + items)


def _entry(mark: Mark) -> str:
    if mark is Mark.LANE_CHANGE:
        return f'<li><b>▷</b>{mark.value}</li>'
    if mark in _LINES:
        return _item('line', _LINES[mark], mark.value)
    shape = 'round' if mark in _ROUND else 'assumed' if mark is Mark.ASSUMED else 'box'
    return _item(f'{shape} sign' if mark is Mark.SIGN else shape,
                 palette.FILLS.get(mark, 'white'), mark.value)


def _item(shape: str, color: str, label: str) -> str:
    return f'<li><i class="{shape}" style="background:{color}"></i>{html.escape(label)}</li>'


def _scale(scene: Scene) -> str:
    """Return the scale of speeds."""
    low, high = palette.speed_range(scene)
    colors = ','.join(palette.speed_scale(N_SPEED_CLASSES))
    return (f'<li>{low:g}<i class="scale" style="background:linear-gradient(to right,{colors})">'
            f'</i>{high:g} m/s</li>')
