# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Write a scene as one HTML file that plays in a browser without a network.

The page contains the scene, two plotly figures, plotly.js and the player ``animation.js``, which
fills the moving traces of the map.
"""

from __future__ import annotations

import base64
from dataclasses import asdict
import html
import json
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from plotly.offline import get_plotlyjs

from state_sensor_ros.drawing import shapes
from state_sensor_ros.drawing.colors import BY_ACTOR, BY_SPEED, DARK, EGO, EGO_BED, SIGN_EDGE
from state_sensor_ros.drawing.figures import (
    class_colors,
    config,
    lane_changes,
    map_figure,
    N_SPEED_CLASSES,
    NAME_FAMILY,
    NAME_PX,
    strip_figure,
    TRACK,
)
from state_sensor_ros.drawing.marks import (
    actor_colors,
    actor_key,
    ego_text,
    FILLS,
    has_unknown_speed,
    LIGHT_MARKS,
    Mark,
    marks_of,
    speed_range,
    speed_scale,
    track_marks,
)
from state_sensor_ros.drawing.scene import Scene
from state_sensor_ros.drawing.tracks import JUMP_FACTOR, JUMP_M
from state_sensor_ros.share import share_file

Json = dict[str, object]
# Types of the arrays as the player reads them, little-endian.
_PACKED = {'time_s': '<f8', 'row_start': '<i4', 'actor': '<i4', 'position_xy': '<f4',
           'yaw': '<f4', 'speed': '<f4', 'lane': '<i4', 'display': '<i4', 'footprint_xy': '<f4'}
# Diameters of symbols by kind, pixels.
_SYMBOL_PX = {shapes.PEDESTRIAN: 8, shapes.LIGHT: 11, shapes.SIGN: 19}
# Shapes of swatches, by class of animation.css.
_ROUND = frozenset((Mark.PEDESTRIAN, Mark.RED, Mark.YELLOW, Mark.GREEN, Mark.LIGHT, Mark.SIGN))
_LINES = {Mark.EGO_TRACK: EGO_BED, Mark.TRACK: TRACK}


def write_animation(scene: Scene, handle: BinaryIO, *, title: str,
                    coloring: str = BY_SPEED, at_s: float | None = None,
                    names: bool = True) -> None:
    """
    Write ``scene`` as a page of HTML.

    :param handle: open for writing.
    :param title: heading, such as the name of the recording.
    :param coloring: ``speed`` or ``actor``.
    :param at_s: time at which it begins, s since the first frame; None for the start.
    :param names: whether the names of actors are shown at the beginning.
    """
    figure, moving = map_figure(scene, coloring)
    data: Json = {
        'map': figure.to_plotly_json(), 'parts': asdict(moving),
        'strip': strip_figure(scene, coloring).to_plotly_json(), 'config': config(),
        'start_s': min(max(at_s or 0.0, 0.0), scene.duration_s),
        'scene': _packed(scene), 'changes': lane_changes(scene), 'names': names,
        'name_font': f'{NAME_PX}px {NAME_FAMILY}', 'colors': class_colors(coloring),
        'symbols': _symbols(),
        'colors_of_actors': actor_colors(scene).tolist() if coloring == BY_ACTOR
        else None,
        'speed_range': speed_range(scene), 'jump': {'m': JUMP_M, 'factor': JUMP_FACTOR}}
    pieces = {
        'title': html.escape(title), 'facts': html.escape('  ·  '.join(scene.facts())),
        'key': _page_key(scene, coloring), 'style': _text('animation.css'),
        'plotly': get_plotlyjs(), 'player': _text('animation.js'),
        # Names come from the network: in a script element no "<" may begin a tag.
        'data': json.dumps(data, cls=_Encoder, allow_nan=False).replace('<', r'\u003c'),
    }
    for piece in _text('animation.html').split('@@'):
        handle.write(pieces.get(piece, piece).encode())


def _text(name: str) -> str:
    return share_file('resource', name).read_text('utf-8')


class _Encoder(json.JSONEncoder):
    """Encode arrays as lists and NaN, which JSON does not have, as null."""

    def default(self, o: object) -> object:
        assert isinstance(o, np.ndarray)
        return [None if item != item else item for item in o.tolist()]


def _packed(scene: Scene) -> Json:
    """Return the parts of the scene that the player reads, arrays as base64."""
    packed: Json = {name: _base64(getattr(scene, name), type_) for name, type_ in _PACKED.items()}
    # plotly interprets some HTML in the texts that it shows.
    packed['names'] = [html.escape(name) for name in scene.names]
    packed['lanes'] = scene.lanes
    packed['is_ego'] = scene.is_ego.tolist()
    packed['moves'] = scene.moves.tolist()
    packed['is_vehicle'] = scene.is_vehicle.tolist()
    packed['has_box'] = scene.has_box.tolist()
    packed['kinds'] = [shapes.KIND_NAMES[kind] for kind in scene.kind.tolist()]
    packed['displays'] = scene.displays
    return packed


def _symbols() -> Json:
    """Return size, edge and fill of the actors that are symbols; fills of lights by display."""
    fills: dict[int, object] = {
        shapes.PEDESTRIAN: {'': FILLS[Mark.PEDESTRIAN]},
        shapes.LIGHT: {'': FILLS[Mark.LIGHT], **{
            display: FILLS[mark] for display, mark in LIGHT_MARKS.items()}},
        shapes.SIGN: {'': FILLS[Mark.SIGN]}}
    edges = {shapes.PEDESTRIAN: (DARK, 0.5), shapes.LIGHT: (DARK, 2.0),
             shapes.SIGN: (SIGN_EDGE, 2.0)}
    return {shapes.KIND_NAMES[kind]: {'size': size, 'edge': edges[kind], 'fills': fills[kind]}
            for kind, size in _SYMBOL_PX.items()}


def _base64(array: npt.NDArray[np.generic], type_: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, type_).tobytes()).decode('ascii')


def _page_key(scene: Scene, coloring: str) -> str:
    """Return the key in HTML: an item for each mark, and for the colors of vehicles."""
    marks = marks_of(scene, slice(None)) | track_marks(scene)
    if scene.lane_changes:
        marks.add(Mark.LANE_CHANGE)
    if Mark.EGO in marks:
        # One entry for both.
        marks.discard(Mark.EGO_TRACK)
    if coloring == BY_SPEED:
        if has_unknown_speed(scene, np.arange(len(scene.actor))):
            marks.add(Mark.UNKNOWN_SPEED)
        items = [_speed_scale(scene)]
    else:
        marks.discard(Mark.VEHICLE)
        items = [_item('box', color, text) for color, text in actor_key(scene)]
    return '\n'.join([_entry(mark, scene) for mark in Mark if mark in marks] + items)


def _entry(mark: Mark, scene: Scene) -> str:
    if mark is Mark.LANE_CHANGE:
        return f'<li><b>▷</b>{mark.value}</li>'
    if mark is Mark.EGO:
        return _item('ego', EGO, ego_text(scene))
    if mark in _LINES:
        return _item('line', _LINES[mark], mark.value)
    shape = 'round' if mark in _ROUND else 'assumed' if mark is Mark.ASSUMED else 'box'
    return _item(f'{shape} sign' if mark is Mark.SIGN else shape,
                 FILLS.get(mark, 'white'), mark.value)


def _item(shape: str, color: str, label: str) -> str:
    return f'<li><i class="{shape}" style="background:{color}"></i>{html.escape(label)}</li>'


def _speed_scale(scene: Scene) -> str:
    """Return the scale of speeds."""
    low, high = speed_range(scene)
    colors = ','.join(speed_scale(N_SPEED_CLASSES))
    return (f'<li>{low:g}<i class="scale" style="background:linear-gradient(to right,{colors})">'
            f'</i>{high:g} m/s</li>')
