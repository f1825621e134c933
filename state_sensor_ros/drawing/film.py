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

The page is drawn once; for each picture, the actors and the time are drawn on it. The map follows
the ego if footprints would be too small otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
import math
from typing import Any, BinaryIO

from matplotlib.transforms import IdentityTransform
import numpy as np
import numpy.typing as npt

from state_sensor_ros.drawing import map as maps
from state_sensor_ros.drawing.picture import draw_page, Page
from state_sensor_ros.drawing.scene import Area, Scene
from state_sensor_ros.drawing.style import DARK, INSTANT_PT, MARKS, PictureStyle
from state_sensor_ros.texts import seconds

Pixels = npt.NDArray[np.uint8]

GIF_HZ, MP4_HZ = 10, 20
# A longer recording is played faster.
_LONGEST_S = 60.0
# Time for which a film shows the begin of a lane change.
_CHANGE_S = 3.0
# Footprints are too small on a map with fewer inches per meter; width of a map that follows, m.
_FOLLOWS_BELOW, _AROUND_M = 0.03, 80.0


def write_gif(scene: Scene, handle: BinaryIO, style: PictureStyle) -> None:
    """Write ``scene`` as a GIF that plays in a loop."""
    from PIL import Image
    pictures = map(Image.fromarray, film(scene, style, GIF_HZ))
    begin = next(pictures)
    # One palette, so that what stands still keeps its color; it includes colors of few pixels.
    marks = bytes(channel for color in MARKS for channel in bytes.fromhex(color[1:]))
    common = begin.quantize(256 - len(MARKS), dither=Image.Dither.NONE).getpalette() or []
    colors = Image.new('P', (1, 1))
    colors.putpalette(marks + bytes(common[:3 * 256 - len(marks)]))
    shown = (picture.quantize(palette=colors, dither=Image.Dither.NONE)
             for picture in chain([begin], pictures))
    next(shown).save(handle, format='GIF', save_all=True, append_images=shown,
                     duration=round(1000 / GIF_HZ), loop=0)


def write_mp4(scene: Scene, handle: BinaryIO, style: PictureStyle) -> None:
    """Write ``scene`` as an MP4, H.264."""
    import av
    # A pipe cannot be rewound, so that the index is written in fragments.
    options = {} if handle.seekable() else {'movflags': 'frag_keyframe+empty_moov'}
    # H.264 needs an even number of rows and columns.
    pictures = (np.ascontiguousarray(pixels[:pixels.shape[0] // 2 * 2, :pixels.shape[1] // 2 * 2])
                for pixels in film(scene, style, MP4_HZ))
    first = next(pictures)
    with av.open(handle, 'w', format='mp4', options=options) as container:
        stream: Any = container.add_stream('libx264', rate=MP4_HZ, options={'crf': '20'})
        stream.height, stream.width = first.shape[:2]
        stream.pix_fmt = 'yuv420p'
        for pixels in chain([first], pictures):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format='rgb24')))
        container.mux(stream.encode(None))


def film(scene: Scene, style: PictureStyle, rate_hz: int) -> Iterator[Pixels]:
    """Yield the pictures of a film, at least one: (height, width, 3) each."""
    pace = math.ceil(scene.duration_s / _LONGEST_S) or 1
    n_pictures = 1 + math.floor(scene.duration_s / pace * rate_hz + 1e-6)
    if pace > 1:
        style = replace(style, facts=(*style.facts, f'{pace} times as fast'))
    with maps.settings_of(style.size):
        yield from _pictures(scene, style, draw_page(scene, style, -1), [
            scene.instant_at(k * pace / rate_hz) for k in range(n_pictures)])


def _pictures(scene: Scene, style: PictureStyle, page: Page,
              instants: Sequence[int]) -> Iterator[Pixels]:
    axes, view = page.axes, page.view
    follows = view.inches_per_m < _FOLLOWS_BELOW
    # At the right, beside the title of the axis.
    box, title = axes.get_window_extent(), axes.xaxis.label.get_window_extent()
    clock = axes.text(box.x1, title.y0, '', transform=IdentityTransform(), ha='right',
                      va='bottom', fontsize='large', fontweight='bold')
    cursor = None if page.strip is None else page.strip.axvline(
        0.0, color=DARK, linewidth=INSTANT_PT, clip_on=False)
    # matplotlib has no types for the canvas.
    canvas: Any = page.figure.canvas
    kept: dict[int, int] = {}
    for instant in instants:
        before = set(axes.get_children())
        time_s = float(scene.time_s[instant]) if instant >= 0 else 0.0
        around = _around_ego(scene, instant, box.height / box.width) if follows else None
        if around is not None:
            view = maps.map_on(axes, around)
        clock.set_text(seconds(time_s))
        if cursor is not None:
            cursor.set_xdata([time_s, time_s])
        maps.draw_instant(axes, scene, instant, view, style, kept, _CHANGE_S)
        canvas.draw()
        pixels: Pixels = np.asarray(canvas.buffer_rgba())[..., :3].copy()
        yield pixels
        for artist in set(axes.get_children()) - before:
            artist.remove()


def _around_ego(scene: Scene, instant: int, aspect: float) -> Area | None:
    """Return the surroundings of the ego, None without one; ``aspect``: height / width."""
    samples = scene.samples_at(instant)
    egos = samples[scene.is_ego[scene.actor[samples]]]
    if not len(egos):
        return None
    x, y = scene.position_xy[egos[0]].tolist()
    return Area(x, y, _AROUND_M, _AROUND_M * aspect)
