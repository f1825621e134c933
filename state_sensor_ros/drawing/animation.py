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
import html
import json
import math
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt
from plotly.offline import get_plotlyjs

from state_sensor_ros import jumps, small_files, texts
from state_sensor_ros.drawing import marks, style
from state_sensor_ros.drawing import scene as scenes
from state_sensor_ros.frame import Bools, Floats

# A figure of plotly, or a part of one.
Json: TypeAlias = dict[str, Any]
Values = Floats | npt.NDArray[np.float32]
# Types of the arrays as the player reads them, little-endian.
_PACKED = {'time_s': '<f8', 'row_start': '<i4', 'actor': '<i4', 'position_xy': '<f4',
           'yaw': '<f4', 'speed': '<f4', 'lane': '<i4', 'display': '<i4', 'footprint_xy': '<f4'}
# Pixels for a point of a picture.
_PX_PER_PT = 1.6
# Kinds that are symbols: diameter, pixels, edge, and fill by what they display.
_SYMBOLS = {
    scenes.KIND_NAMES[kind]: {
        'size': round(size * _PX_PER_PT), 'edge': (edge, width * _PX_PER_PT), 'fills': {
            display: marks.FILLS[mark] for display, mark in (
                ('', marks.OF_KINDS[kind]),
                *(marks.LIGHT_MARKS.items() if kind == scenes.LIGHT else ()))}}
    for kind, (size, edge, width) in marks.SYMBOLS.items()}
# Shapes of swatches, by class of animation.css; others are boxes.
_SHAPES = {
    **dict.fromkeys(marks.CIRCLES, 'round'), marks.Mark.SIGN: 'round sign',
    marks.Mark.OTHER_SIGN: 'round sign', marks.Mark.EGO: 'ego', marks.Mark.ASSUMED: 'assumed',
    marks.Mark.EGO_TRACK: 'line', marks.Mark.TRACK: 'line'}
_FILLS = {**marks.FILLS, marks.Mark.EGO_TRACK: style.EGO_BED, marks.Mark.TRACK: style.QUIET}
N_SPEED_CLASSES = 12
# Length of the arrow of a lane change, about the width of a lane, m.
_LANE_M = 3.5
# Margins left and right of both figures, pixels; the player computes times from these.
_LEFT_PX, _RIGHT_PX = 66, 16
# Font of names.
NAME_FAMILY, NAME_PX = 'Open Sans, verdana, arial, sans-serif', 10
# Zoom and image only: nothing that sends data, selects or edits.
_CONFIG = {
    'displaylogo': False, 'displayModeBar': True, 'scrollZoom': True,
    'modeBarButtons': [['zoomIn2d', 'zoomOut2d', 'resetScale2d'], ['toImage']],
    'plotlyServerURL': '', 'editable': False, 'showSendToCloud': False,
    'showEditInChartStudio': False, 'showLink': False}


def write_animation(scene: scenes.Scene, handle: BinaryIO, *, title: str,
                    coloring: str = style.BY_SPEED, at_s: float | None = None,
                    names: bool = True) -> None:
    """Write ``scene`` as a page of HTML."""
    # coloring: ``speed`` or ``actor``.
    # at_s: time at which it begins, s since the first frame; None for the start.
    (figure, parts), band = _map_figure(scene, coloring), scenes.speed_band(scene)
    data: Json = {
        'map': figure, 'parts': parts, 'strip': _strip_figure(scene, band, coloring),
        'lines': np.flatnonzero(band.has_line).tolist(), 'config': _CONFIG,
        'start_s': min(max(at_s or 0.0, 0.0), scene.duration_s),
        'scene': _packed(scene), 'changes': _lane_changes(scene), 'names': names,
        'name_font': f'{NAME_PX}px {NAME_FAMILY}', 'colors': class_colors(coloring),
        'symbols': _SYMBOLS,
        'colors_of_actors': marks.actor_colors(scene).tolist() if coloring == style.BY_ACTOR
        else None,
        'speed_range': marks.speed_range(scene), 'max_speed': jumps.MAX_SPEED}
    pieces = {
        'title': html.escape(title), 'facts': html.escape('  ·  '.join(scene.facts())),
        'key': _key(scene, band, coloring), 'style': _text('animation.css'),
        'speeds': '' if scene.has_curves else 'hidden',
        'plotly': get_plotlyjs(), 'player': _text('animation.js'),
        # Names come from the network: in a script element no "<" may begin a tag.
        'data': json.dumps(data, allow_nan=False).replace('<', r'\u003c'),
    }
    for piece in _text('animation.html').split('@@'):
        handle.write(pieces.get(piece, piece).encode())


def _text(name: str) -> str:
    return small_files.share_file('resource', name).read_text('utf-8')


def _base64(array: npt.NDArray[np.generic], type_: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, type_).tobytes()).decode('ascii')


def _packed(scene: scenes.Scene) -> Json:
    """Return the parts of the scene that the player reads, arrays as base64."""
    return {
        **{name: _base64(getattr(scene, name), type_) for name, type_ in _PACKED.items()},
        **{name: getattr(scene, name).tolist()
           for name in ('is_ego', 'moves', 'is_vehicle', 'has_size')},
        # plotly interprets some HTML in the texts that it shows.
        'names': [html.escape(name) for name in scene.names], 'lanes': scene.lanes,
        'kinds': [scenes.KIND_NAMES[kind] for kind in scene.kind.tolist()],
        'displays': scene.displays}


def _key(scene: scenes.Scene, band: scenes.SpeedBand, coloring: str) -> str:
    """Return the key in HTML: an item for each mark, and for the colors of vehicles."""
    shown = marks.legend_marks(scene, np.arange(len(scene.actor)), coloring)
    items = [_item(_SHAPES.get(mark, 'box'), _FILLS.get(mark, 'white'),
                   marks.ego_text(scene) if mark is marks.Mark.EGO else mark.value)
             for mark in marks.Mark if mark in shown]
    if scene.lane_changes:
        items.append(f'<li><b>▷</b>{marks.Mark.LANE_CHANGE.value}</li>')
    if band.n_others:
        items.append(_item('plain', f'linear-gradient({style.BAND} 40%,{style.QUIET} 40% 60%,'
                           f'{style.BAND} 60%)', band.text))
    if coloring == style.BY_ACTOR:
        items += [_item('box', color, text) for color, text in marks.actor_key(scene)]
    elif scene.has_speeds:
        low, high = marks.speed_range(scene)
        scale = f'linear-gradient(to right,{",".join(marks.speed_scale(N_SPEED_CLASSES))})'
        items.append(f'<li>{low:g}<i class="scale" style="background:{scale}"></i>'
                     f'{high:g} m/s</li>')
    return '\n'.join(items)


def _item(shape: str, color: str, label: str) -> str:
    return f'<li><i class="{shape}" style="background:{color}"></i>{html.escape(label)}</li>'


def class_colors(coloring: str) -> list[str]:
    """Return the colors of footprints: the scale, then unknown speed, object, ego, #rrggbb."""
    scale = style.ACTORS if coloring == style.BY_ACTOR else marks.speed_scale(N_SPEED_CLASSES)
    return [*scale, style.UNKNOWN, style.OBJECT, style.EGO]


def _map_figure(scene: scenes.Scene, coloring: str) -> tuple[Json, Json]:
    """Return the map without actors, and the indices of the traces that the player fills."""
    moves, x, y = scene.moves, *scene.tracks.position_xy.T
    traces = [
        # Closed outlines, with NaN between two of them.
        _trace(*np.concatenate([np.concatenate((outline, outline[:1], [[np.nan, np.nan]]))
                                for outline in outlines])[:-1].T,
               fill='toself', fillcolor=color, line={'width': 0})
        for outlines, color in zip(scenes.bands_of(scene.map_lines), style.ROADS, strict=True)
        if outlines]
    traces += [_lines(scene, moves & ~scene.is_ego, x, y, style.QUIET, 1.0),
               _lines(scene, moves & scene.is_ego, x, y, style.EGO_BED, 5.0)]
    edge = {'color': style.DARK, 'width': 1}
    shown: Json = {'hoverinfo': None, 'hovertemplate': '%{text}<extra></extra>'}
    filled: Json = {'fill': 'toself', 'line': {'width': 0}}
    colors = class_colors(coloring)
    moving = {
        # Arrows to the neighboring lane at lane changes.
        'changes': _trace(mode='lines+markers', line=edge, **shown, marker={
            'symbol': 'arrow', 'size': [], 'angle': [], 'color': 'white', 'opacity': 1,
            'line': edge}),
        # Footprints, a trace for each color; outlines of known and of assumed sizes; fronts.
        **{f'class {i}': _trace(fillcolor=color, **filled) for i, color in enumerate(colors)},
        'outlines': _trace(line={'color': style.DARK, 'width': 0.8, 'dash': 'solid'}),
        'assumed': _trace(line={'color': style.DARK, 'width': 1.2, 'dash': '2px,2px'}),
        'fronts': _trace(fillcolor='white', **filled),
        # Dots and symbols, with the texts that are shown on hovering; names and numbers.
        'points': _trace(mode='markers', **shown, marker={
            'size': 9, 'line': {'color': style.DARK, 'width': 0.5}}),
        'labels': _names()}
    parts: Json = {name: len(traces) + i for i, name in enumerate(moving)}
    parts['classes'] = [parts.pop(f'class {i}') for i in range(len(colors))]
    area = scenes.extent(scene.tracks.position_xy[~scene.tracks.are_beyond_reach()])
    layout = _layout((style.X_TITLE, area.x_range), (style.Y_TITLE, area.y_range), 32, 44)
    layout['yaxis']['scaleanchor'] = 'x'
    layout |= {'dragmode': 'pan', 'uirevision': 'map', 'modebar': {
        'bgcolor': 'rgba(0,0,0,0)', 'color': style.QUIET, 'activecolor': style.DARK}}
    if not len(scene.actor):
        layout['annotations'] = [{'text': style.NOTHING, 'showarrow': False,
                                  'font': {'color': style.QUIET, 'size': 16}}]
    return {'data': [*traces, *moving.values()], 'layout': layout}, parts


def _strip_figure(scene: scenes.Scene, band: scenes.SpeedBand, coloring: str) -> Json:
    """Return the speeds of all moving actors over time; the player fills the names of lines."""
    # By speed, all lines but that of the ego are gray.
    time_s, speed = scene.tracks.time_s, scene.tracks.speed
    others = band.has_line & ~scene.is_ego
    slowest, median, fastest = band.edges
    traces = [] if not band.n_others else [
        _trace(scene.time_s, slowest, line={'color': style.BAND, 'width': 0.5}),
        _trace(scene.time_s, fastest, line={'color': style.BAND, 'width': 0.5},
               fill='tonexty', fillcolor=style.BAND),
        _trace(scene.time_s, median, line={'color': style.QUIET, 'width': 1, 'dash': 'dash'})]
    colors = marks.actor_colors(scene)
    traces += [_lines(scene, others & (colors == k), time_s, speed, color, 1.0)
               for k, color in enumerate(style.ACTORS)] if coloring == style.BY_ACTOR else [
        _lines(scene, others, time_s, speed, style.QUIET, 1.0)]
    traces.append(_lines(scene, scene.moves & scene.is_ego, time_s, speed, style.EGO, 2.0))
    return {'data': [*traces, _names()], 'layout': {'dragmode': False, **_layout(
        (style.TIME_TITLE, (0.0, scene.duration_s or 1.0)),
        (style.SPEED_TITLE, marks.speed_limits(scene)), 4, 42, fixedrange=True, nticks=6)}}


def _layout(x: tuple[str, tuple[float, float]], y: tuple[str, tuple[float, float]], top_px: int,
            bottom_px: int, **axis: object) -> Json:
    """Return a layout; ``x``, ``y``: titles and ranges; ``axis``: options of both axes."""
    return {
        'showlegend': False, 'plot_bgcolor': style.GROUND,
        'font': {'color': style.DARK, 'size': 11},
        'margin': {'l': _LEFT_PX, 'r': _RIGHT_PX, 't': top_px, 'b': bottom_px},
        **{f'{name}axis': {'range': list(limits), 'title': {'text': title, 'standoff': 6},
                           'gridcolor': 'white', 'zeroline': False, 'ticks': 'outside',
                           'tickcolor': style.FAINT, **axis}
           for name, (title, limits) in (('x', x), ('y', y))}}


def _trace(x: Values | None = None, y: Values | None = None, **options: object) -> Json:
    """Return a trace, of which nothing is shown on hovering; arrays in the form of plotly."""
    return {'type': 'scatter', 'mode': 'lines', 'hoverinfo': 'skip', **{
        name: [] if values is None else {'dtype': 'f4', 'bdata': _base64(values, '<f4')}
        for name, values in (('x', x), ('y', y))}, **options}


def _names() -> Json:
    return _trace(mode='text', textfont={
        'family': NAME_FAMILY, 'size': NAME_PX, 'color': style.DARK,
        'shadow': ', '.join(['0 0 2px white'] * 4)})


def _lines(scene: scenes.Scene, chosen: Bools, horizontal: Values, vertical: Values, color: str,
           width: float) -> Json:
    """Return the lines of the actors ``chosen`` (A,) as a trace, from coordinates of vertices."""
    rows = np.flatnonzero(chosen[scene.tracks.actor])
    breaks = np.flatnonzero(~scene.tracks.is_joined[rows])[1:]
    return _trace(*(np.insert(values[rows].astype(np.float32), breaks, np.nan)
                    for values in (horizontal, vertical)),
                  line={'color': color, 'width': width})


def _lane_changes(scene: scenes.Scene) -> list[Json]:
    """Return an arrow to the neighboring lane at each lane change."""
    # Returns begin ``x``, ``y`` and end ``end_x``, ``end_y``, m; ``angle`` of the marker, degrees
    # clockwise from straight up; ``text`` that is shown on hovering.
    arrows = []
    for change in scene.lane_changes:
        (x, y), side = change.position_xy, 'left' if change.side == scenes.LEFT else 'right'
        arrows.append({
            'x': x, 'y': y, 'end_x': x + _LANE_M * math.cos(change.heading),
            'end_y': y + _LANE_M * math.sin(change.heading),
            'angle': 90.0 - math.degrees(change.heading),
            'text': f'{texts.seconds(change.time_s)}: changes to the {side}'})
    return arrows
