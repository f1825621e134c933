# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Write a scene as one HTML file that plays in a browser without a network."""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass
import html
import json
import math
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from state_sensor_ros.drawing import marks, shapes, style
from state_sensor_ros.drawing.marks import Mark
from state_sensor_ros.drawing.scene import LEFT, Scene, speed_band
from state_sensor_ros.drawing.shapes import bands_of
from state_sensor_ros.frame import Bools, Floats
from state_sensor_ros.jumps import MAX_SPEED
from state_sensor_ros.small_files import share_file
from state_sensor_ros.texts import seconds

Json = dict[str, object]
Values = Floats | npt.NDArray[np.float32]
# Types of the arrays as the player reads them, little-endian.
_PACKED = {'time_s': '<f8', 'row_start': '<i4', 'actor': '<i4', 'position_xy': '<f4',
           'yaw': '<f4', 'speed': '<f4', 'lane': '<i4', 'display': '<i4', 'footprint_xy': '<f4'}
# Diameters of symbols by kind, pixels.
_SYMBOL_PX = {shapes.PEDESTRIAN: 8, shapes.LIGHT: 11, shapes.SIGN: 19,
              shapes.OTHER_SIGN: 11}
# Color of tracks other than the ego's.
TRACK = '#b8c1cc'
# Shapes of swatches, by class of animation.css.
_SIGNS = frozenset((Mark.SIGN, Mark.OTHER_SIGN))
_ROUND = _SIGNS | {Mark.PEDESTRIAN, Mark.RED, Mark.YELLOW, Mark.GREEN, Mark.LIGHT}
_LINES = {Mark.EGO_TRACK: style.EGO_BED, Mark.TRACK: TRACK}
N_SPEED_CLASSES = 12
# Length of the arrow of a lane change, about the width of a lane, m.
_LANE_M = 3.5

# Zoom and image only: nothing that sends data, selects or edits.
TOOLBAR = [['zoomIn2d', 'zoomOut2d', 'resetScale2d'], ['toImage']]
# Margin above the map, for the toolbar, pixels.
_TOOLBAR_PX = 32
# Margins left and right of both figures, pixels; the player computes times from these.
_LEFT_PX, _RIGHT_PX = 66, 16
# Shadow around names.
_HALO = ', '.join(['0 0 2px white'] * 4)
# Font of names.
NAME_FAMILY, NAME_PX = 'Open Sans, verdana, arial, sans-serif', 10


def write_animation(scene: Scene, handle: BinaryIO, *, title: str,
                    coloring: str = style.BY_SPEED, at_s: float | None = None,
                    names: bool = True) -> None:
    """Write ``scene`` as a page of HTML."""
    # coloring: ``speed`` or ``actor``.
    # at_s: time at which it begins, s since the first frame; None for the start.
    figure, moving = map_figure(scene, coloring)
    data: Json = {
        'map': figure.to_plotly_json(), 'parts': asdict(moving),
        'strip': strip_figure(scene, coloring).to_plotly_json(), 'config': config(),
        'start_s': min(max(at_s or 0.0, 0.0), scene.duration_s),
        'scene': _packed(scene), 'changes': lane_changes(scene), 'names': names,
        'name_font': f'{NAME_PX}px {NAME_FAMILY}', 'colors': class_colors(coloring),
        'symbols': _symbols(),
        'colors_of_actors': marks.actor_colors(scene).tolist() if coloring == style.BY_ACTOR
        else None,
        'speed_range': marks.speed_range(scene), 'max_speed': MAX_SPEED}
    pieces = {
        'title': html.escape(title), 'facts': html.escape('  ·  '.join(scene.facts())),
        'key': _page_key(scene, coloring), 'style': _text('animation.css'),
        'speeds': '' if scene.has_curves else 'hidden',
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
    packed['has_size'] = scene.has_size.tolist()
    packed['kinds'] = [shapes.KIND_NAMES[kind] for kind in scene.kind.tolist()]
    packed['displays'] = scene.displays
    return packed


def _symbols() -> Json:
    """Return size, edge and fill of the actors that are symbols; fills of lights by display."""
    fills: dict[int, object] = {
        shapes.PEDESTRIAN: {'': marks.FILLS[Mark.PEDESTRIAN]},
        shapes.LIGHT: {'': marks.FILLS[Mark.LIGHT], **{
            display: marks.FILLS[mark] for display, mark in marks.LIGHT_MARKS.items()}},
        **{key: {'': marks.FILLS[Mark.SIGN]} for key in (shapes.SIGN, shapes.OTHER_SIGN)}}
    edges = {shapes.PEDESTRIAN: (style.DARK, 0.5), shapes.LIGHT: (style.DARK, 2.0),
             shapes.SIGN: (style.SIGN_EDGE, 2.0), shapes.OTHER_SIGN: (style.SIGN_EDGE, 2.0)}
    return {shapes.KIND_NAMES[kind]: {'size': size, 'edge': edges[kind], 'fills': fills[kind]}
            for kind, size in _SYMBOL_PX.items()}


def _base64(array: npt.NDArray[np.generic], type_: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, type_).tobytes()).decode('ascii')


def _page_key(scene: Scene, coloring: str) -> str:
    """Return the key in HTML: an item for each mark, and for the colors of vehicles."""
    shown = marks.legend_marks(scene, np.arange(len(scene.actor)), coloring)
    if scene.lane_changes:
        shown.add(Mark.LANE_CHANGE)
    if Mark.EGO in shown:
        # One entry for both.
        shown.discard(Mark.EGO_TRACK)
    items = [_speed_scale(scene)] * scene.has_speeds if coloring == style.BY_SPEED else [
        _item('box', color, text) for color, text in marks.actor_key(scene)]
    return '\n'.join([_entry(mark, scene) for mark in Mark if mark in shown] + items)


def _entry(mark: Mark, scene: Scene) -> str:
    if mark is Mark.LANE_CHANGE:
        return f'<li><b>▷</b>{mark.value}</li>'
    if mark is Mark.EGO:
        return _item('ego', style.EGO, marks.ego_text(scene))
    if mark in _LINES:
        return _item('line', _LINES[mark], mark.value)
    shape = 'round' if mark in _ROUND else 'assumed' if mark is Mark.ASSUMED else 'box'
    return _item(f'{shape} sign' if mark in _SIGNS else shape,
                 marks.FILLS.get(mark, 'white'), mark.value)


def _item(shape: str, color: str, label: str) -> str:
    return f'<li><i class="{shape}" style="background:{color}"></i>{html.escape(label)}</li>'


def _speed_scale(scene: Scene) -> str:
    low, high = marks.speed_range(scene)
    colors = ','.join(marks.speed_scale(N_SPEED_CLASSES))
    return (f'<li>{low:g}<i class="scale" style="background:linear-gradient(to right,{colors})">'
            f'</i>{high:g} m/s</li>')


@dataclass(frozen=True, slots=True)
class MovingTraces:
    """Indices of the traces of the map that the player fills."""

    classes: tuple[int, ...]  # fills of footprints, one trace for each of :func:`class_colors`
    outlines: int  # of known sizes
    assumed: int  # outlines of assumed sizes
    fronts: int  # arrow heads
    points: int  # dots and symbols, with the texts that are shown on hovering
    labels: int  # names and numbers
    changes: int  # arrows to the neighboring lane at the begin of lane changes


def config() -> dict[str, object]:
    """Return the settings of plotly for the map."""
    return {'responsive': True, 'displaylogo': False, 'displayModeBar': True, 'scrollZoom': True,
            'modeBarButtons': TOOLBAR, 'plotlyServerURL': '', 'editable': False,
            'showSendToCloud': False, 'showEditInChartStudio': False, 'showLink': False}


def class_colors(coloring: str) -> list[str]:
    """Return the colors of footprints: the scale, then unknown speed, object, ego."""
    # coloring: one of ``colors.COLORINGS``.
    # Returns as ``#rrggbb``.
    scale = style.ACTORS if coloring == style.BY_ACTOR \
        else marks.speed_scale(N_SPEED_CLASSES)
    return [*scale, style.UNKNOWN, style.OBJECT, style.EGO]


def map_figure(scene: Scene, coloring: str) -> tuple[go.Figure, MovingTraces]:
    """Return the map without actors, and the traces that show the actors."""
    # coloring: colors of the vehicles, one of ``colors.COLORINGS``.
    figure = go.Figure()
    x, y = scene.tracks.position_xy.T
    moving = scene.moves
    _add_roads(figure, scene)
    _add_lines(figure, scene, moving & ~scene.is_ego, x, y, TRACK, 1.0)
    _add_lines(figure, scene, moving & scene.is_ego, x, y, style.EGO_BED, 5.0)
    traces = _add_moving(figure, class_colors(coloring))
    area = shapes.extent(scene.tracks.position_xy[~scene.tracks.are_beyond_reach()])
    axis = {'gridcolor': 'white', 'gridwidth': 1, 'zeroline': False, 'ticks': 'outside',
            'tickcolor': style.FAINT}
    figure.update_layout(
        template='none', showlegend=False, plot_bgcolor=style.GROUND, dragmode='pan',
        uirevision='map', font={'color': style.DARK, 'size': 11},
        modebar={'bgcolor': 'rgba(0,0,0,0)', 'color': style.QUIET, 'activecolor': style.DARK},
        margin={'l': _LEFT_PX, 'r': _RIGHT_PX, 't': _TOOLBAR_PX, 'b': 44},
        xaxis={**axis, 'range': list(area.x_range), 'title': _title(style.X_TITLE)},
        yaxis={**axis, 'range': list(area.y_range), 'title': _title(style.Y_TITLE),
               'scaleanchor': 'x'})
    if not len(scene.actor):
        figure.add_annotation(text=style.NOTHING, showarrow=False,
                              font={'color': style.QUIET, 'size': 16})
    return figure, traces


def _add_roads(figure: go.Figure, scene: Scene) -> None:
    """Add the lanes of the map, one trace for each color."""
    for outlines, color in zip(bands_of(scene.map_lines), style.ROADS, strict=True):
        if outlines:
            # Closed outlines, with NaN between two of them.
            x, y = np.concatenate([
                np.concatenate((outline, outline[:1], [[np.nan, np.nan]]))
                for outline in outlines])[:-1].astype(np.float32).T
            figure.add_scatter(x=x, y=y, mode='lines', fill='toself', fillcolor=color,
                               line={'width': 0}, hoverinfo='skip')


def _add_moving(figure: go.Figure, colors: list[str]) -> MovingTraces:
    """Add the traces that the player fills, from the lowest to the highest."""
    changes = len(figure.data)
    figure.add_scatter(
        x=[], y=[], mode='lines+markers', hovertemplate='%{text}<extra></extra>',
        line={'color': style.DARK, 'width': 1},
        marker={'symbol': 'arrow', 'size': [], 'angle': [], 'color': 'white', 'opacity': 1,
                'line': {'color': style.DARK, 'width': 1}})
    first = changes + 1
    for color in colors:
        figure.add_scatter(x=[], y=[], mode='lines', fill='toself', fillcolor=color,
                           line={'width': 0}, hoverinfo='skip')
    for dash, width in (('solid', 0.8), ('2px,2px', 1.2)):
        figure.add_scatter(x=[], y=[], mode='lines', hoverinfo='skip',
                           line={'color': style.DARK, 'width': width, 'dash': dash})
    figure.add_scatter(x=[], y=[], mode='lines', fill='toself', fillcolor='white',
                       line={'width': 0}, hoverinfo='skip')
    figure.add_scatter(x=[], y=[], mode='markers', hovertemplate='%{text}<extra></extra>',
                       marker={'size': 9, 'line': {'color': style.DARK, 'width': 0.5}})
    figure.add_scatter(x=[], y=[], mode='text', hoverinfo='skip',
                       textfont={'family': NAME_FAMILY, 'size': NAME_PX, 'color': style.DARK,
                                 'shadow': _HALO})
    after = first + len(colors)
    outlines, assumed, fronts, points, labels = range(after, after + 5)
    return MovingTraces(tuple(range(first, after)), outlines, assumed, fronts, points, labels,
                        changes)


def strip_figure(scene: Scene, coloring: str) -> go.Figure:
    """Return the speeds of all moving actors over time."""
    # coloring: one of ``colors.COLORINGS``; by speed, all lines but that of the ego are gray.
    figure = go.Figure()
    time_s, speed, moving = scene.tracks.time_s, scene.tracks.speed, scene.moves
    band = speed_band(scene)
    others = band.has_line & ~scene.is_ego
    if band.n_others:
        for speeds, fill, line in (
                (band.slowest, None, style.BAND), (band.fastest, 'tonexty', style.BAND),
                (band.median, None, style.QUIET)):
            figure.add_scatter(
                x=band.time_s, y=speeds, mode='lines', fill=fill, fillcolor=style.BAND,
                line={'color': line, 'width': 0.5 if line == style.BAND else 1}, name=band.text,
                hoverinfo='name' if fill is None and line == style.QUIET else 'skip')
    if coloring == style.BY_ACTOR:
        i_color = marks.actor_colors(scene)
        for k, color in enumerate(style.ACTORS):
            _add_lines(figure, scene, others & (i_color == k), time_s, speed, color, 1.0,
                       0.7)
    else:
        _add_lines(figure, scene, others, time_s, speed, style.QUIET, 1.0, 0.6)
    _add_lines(figure, scene, moving & scene.is_ego, time_s, speed, style.EGO, 2.0)
    figure.update_layout(
        template='none', showlegend=False, plot_bgcolor=style.GROUND, dragmode=False,
        font={'color': style.DARK, 'size': 11},
        margin={'l': _LEFT_PX, 'r': _RIGHT_PX, 't': 4, 'b': 38},
        xaxis={'range': [0.0, scene.duration_s or 1.0], 'gridcolor': 'white', 'zeroline': False,
               'fixedrange': True, 'nticks': 16, 'title': _title(style.TIME_TITLE)},
        yaxis={'range': list(marks.speed_range(scene)), 'gridcolor': 'white', 'zeroline': False,
               'fixedrange': True, 'nticks': 10, 'title': _title(style.SPEED_TITLE)})
    return figure


def _title(text: str) -> Json:
    return {'text': text, 'standoff': 6}


def _add_lines(figure: go.Figure, scene: Scene, chosen: Bools, horizontal: Values,
               vertical: Values, color: str, width: float, opacity: float = 1.0) -> None:
    """Add the lines of the actors ``chosen`` (A,) as one trace, from coordinates of V vertices."""
    rows = np.flatnonzero(chosen[scene.tracks.actor])
    breaks = np.flatnonzero(~scene.tracks.is_joined[rows])[1:]
    x, y = (np.insert(values[rows].astype(np.float32), breaks, np.nan)
            for values in (horizontal, vertical))
    figure.add_scatter(
        x=x, y=y, mode='lines',
        hoverinfo='skip', opacity=opacity, line={'color': color, 'width': width})


def lane_changes(scene: Scene) -> list[dict[str, float | str]]:
    """Return an arrow to the neighboring lane at the begin of each lane change."""
    # Returns begin ``x``, ``y`` and end ``end_x``, ``end_y``, m; ``angle`` of the marker, degrees
    # clockwise from straight up; ``text`` that is shown on hovering.
    arrows: list[dict[str, float | str]] = []
    for change in scene.lane_changes:
        x, y = change.position_xy
        side = 'left' if change.side == LEFT else 'right'
        arrows.append({
            'x': x, 'y': y, 'end_x': x + _LANE_M * math.cos(change.heading),
            'end_y': y + _LANE_M * math.sin(change.heading),
            'angle': 90.0 - math.degrees(change.heading),
            'text': f'{seconds(change.time_s)}: changes to the {side}'})
    return arrows
