# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Write a scene as a film: a GIF, or an MP4.

The page is drawn once; for each picture of the film, the map and the time are drawn on it. The map
follows the ego if footprints would be too small otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
import math
from typing import Any, BinaryIO, NamedTuple

from matplotlib import rc_context
import numpy as np
import numpy.typing as npt

from state_sensor_ros.drawing import layers
from state_sensor_ros.drawing.layers import Fonts, style_of
from state_sensor_ros.drawing.map_layout import CLOSE_UP_M, Map, MapLayout, visible_samples
from state_sensor_ros.drawing.names import Direction, draw_names
from state_sensor_ros.drawing.picture import draw_page, Page
from state_sensor_ros.drawing.scene import LaneChangeMark, Scene
from state_sensor_ros.drawing.shapes import Area
from state_sensor_ros.drawing.style import DARK, MARKS, PictureStyle
from state_sensor_ros.texts import seconds

Pixels = npt.NDArray[np.uint8]

GIF_HZ, MP4_HZ = 10, 20
# A longer recording is played faster.
_LONGEST_S = 60.0
# Time for which a film shows the begin of a lane change.
_CHANGE_S = 3.0
# Room for the title of the axis, inches.
_AFTER_TITLE = 0.4
# A view with more actors has no names.
_MAX_NAMED = 40


def write_gif(scene: Scene, handle: BinaryIO, style: PictureStyle) -> Sequence[str]:
    """Write ``scene`` as a GIF that plays in a loop; return notes of what has no room on it."""
    from PIL import Image
    drawn = film(scene, style, GIF_HZ)
    pictures = map(Image.fromarray, drawn.pictures)
    begin = next(pictures)
    # One palette, so that what stands still keeps its color; it includes colors of few pixels.
    marks = bytes(channel for color in MARKS for channel in bytes.fromhex(color[1:]))
    common = begin.quantize(256 - len(MARKS), dither=Image.Dither.NONE).getpalette() or []
    colors = Image.new('P', (1, 1))
    colors.putpalette(marks + bytes(common[:3 * 256 - len(marks)]))
    first = begin.quantize(palette=colors, dither=Image.Dither.NONE)
    others = (picture.quantize(palette=colors, dither=Image.Dither.NONE) for picture in pictures)
    first.save(handle, format='GIF', save_all=True, append_images=others,
               duration=round(1000 / GIF_HZ), loop=0)
    return drawn.notes


def write_mp4(scene: Scene, handle: BinaryIO, style: PictureStyle) -> Sequence[str]:
    """Write ``scene`` as an MP4, H.264; return notes of what has no room on it."""
    import av
    # A pipe cannot be rewound, so that the index is written in fragments.
    options = {} if handle.seekable() else {'movflags': 'frag_keyframe+empty_moov'}
    drawn = film(scene, style, MP4_HZ)
    first = _even(next(drawn.pictures))
    with av.open(handle, 'w', format='mp4', options=options) as container:
        stream: Any = container.add_stream('libx264', rate=MP4_HZ, options={'crf': '20'})
        stream.height, stream.width = first.shape[:2]
        stream.pix_fmt = 'yuv420p'
        for pixels in chain([first], map(_even, drawn.pictures)):
            for packet in stream.encode(av.VideoFrame.from_ndarray(pixels, format='rgb24')):
                container.mux(packet)
        for packet in stream.encode(None):
            container.mux(packet)
    return drawn.notes


def _even(pixels: Pixels) -> Pixels:
    """Return a picture with an even number of rows and columns, which H.264 needs."""
    height, width = pixels.shape[:2]
    return np.ascontiguousarray(pixels[:height // 2 * 2, :width // 2 * 2])


class Film(NamedTuple):
    """The pictures of a film, at least one, (height, width, 3) each."""

    pictures: Iterator[Pixels]
    notes: Sequence[str]  # of what has no room


def film(scene: Scene, style: PictureStyle, rate_hz: int) -> Film:
    """Draw the page of a film; its pictures are drawn when they are taken."""
    pace = math.ceil(scene.duration_s / _LONGEST_S) or 1
    n_pictures = 1 + math.floor(scene.duration_s / pace * rate_hz + 1e-6)
    if pace > 1:
        style = replace(style, facts=(*style.facts, f'{pace} times as fast'))
    fonts = Fonts([style.title, *scene.names])
    settings = style_of(fonts, style.size)
    with rc_context(settings):
        page = draw_page(scene, style, len(scene.time_s) - 1, fonts, is_ground=True)
        screen = _Screen(scene, style, page, fonts)

    def pictures() -> Iterator[Pixels]:
        with rc_context(settings):
            for k in range(n_pictures):
                yield screen.picture(scene.instant_at(k * pace / rate_hz))

    return Film(pictures(), page.notes)


class _Screen:
    """The page of a film, on which the pictures are drawn."""

    def __init__(self, scene: Scene, style: PictureStyle, page: Page, fonts: Fonts) -> None:
        self._scene, self._style, self._page, self._fonts = scene, style, page, fonts
        self._follows = MapLayout(page.view).needs_detail and bool(scene.is_ego.any())
        self._ego_xy: tuple[float, float] | None = None
        self._kept: dict[int, Direction] = {}
        axes = page.whole
        # Beside the scale, outside the map; on a narrow page the title of the axis is at the left.
        left = _AFTER_TITLE / page.view.width if style.size.is_compact else 0.0
        self._clock = axes.text(
            left, -(layers.SCALE_BELOW + 0.02) / page.view.height, '', transform=axes.transAxes,
            ha='left', va='baseline', fontsize='large', fontweight='bold')
        self._cursor = None if page.strip is None else page.strip.axvline(
            0.0, color=DARK, linewidth=1.6, clip_on=False, animated=True)
        # matplotlib has no types for the canvas.
        canvas: Any = page.figure.canvas
        self._canvas = canvas
        # The scale bar is drawn once, unless the map changes its scale.
        for artist in (*axes.texts, *axes.patches):
            if artist.get_gid() == layers.SCALE_GID and self._follows:
                artist.remove()
        axes.set_visible(False)
        self._canvas.draw()
        self._ground = self._canvas.copy_from_bbox(page.figure.bbox)
        axes.set_visible(True)

    def picture(self, instant: int) -> Pixels:
        page, scene = self._page, self._scene
        self._canvas.restore_region(self._ground)
        axes = page.whole
        before = set(axes.get_children())
        view = self._view(instant)
        axes.set(xlim=view.area.x_range, ylim=view.area.y_range)
        if self._follows:
            layers.draw_scale_bar(axes, view.inches_per_m)
        time_s = float(scene.time_s[instant]) if instant >= 0 else 0.0
        self._clock.set_text(seconds(time_s))
        self._draw_actors(instant, view, time_s)
        renderer = self._canvas.get_renderer()
        axes.draw(renderer)
        for artist in set(axes.get_children()) - before:
            artist.remove()
        if page.strip is not None and self._cursor is not None:
            self._cursor.set_xdata([time_s, time_s])
            page.strip.draw_artist(self._cursor)
        pixels: Pixels = np.asarray(self._canvas.buffer_rgba())[..., :3].copy()
        return pixels

    def _view(self, instant: int) -> Map:
        """Return the whole map, or the surroundings of the ego's last position."""
        scene, whole = self._scene, self._page.view
        if not self._follows:
            return whole
        samples = scene.samples_at(instant)
        egos = np.flatnonzero(scene.is_ego[scene.actor[samples]])
        if len(egos):
            x, y = scene.position_xy[samples][egos[0]].tolist()
            self._ego_xy = x, y
        if self._ego_xy is None:
            return whole
        area = Area(*self._ego_xy, CLOSE_UP_M, CLOSE_UP_M * whole.height / whole.width)
        return Map(area, whole.width, whole.height)

    def _draw_actors(self, instant: int, view: Map, time_s: float) -> None:
        scene, style, axes = self._scene, self._style, self._page.whole
        samples = visible_samples(scene, instant, [view.area])
        recent: list[LaneChangeMark] = [
            change for change in layers.free_lane_changes(scene, samples, view)
            if 0.0 <= time_s - change.time_s < _CHANGE_S]
        layers.draw_lane_changes(axes, recent)
        layers.draw_actors(axes, scene, samples, style.coloring, view.inches_per_m)
        if style.names and len(samples) <= _MAX_NAMED:
            draw_names(axes, scene, samples, self._fonts, view.inches_per_m, recent,
                       kept=self._kept)
