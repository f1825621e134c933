# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What a notebook shows of recordings, frames, tracks and measures: a small table and picture."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from html import escape
from io import BytesIO
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from state_sensor_ros import errors, rotations
from state_sensor_ros.classes import EGO_TAG, Kind
from state_sensor_ros.drawing.scene import SceneBuilder
from state_sensor_ros.drawing.style import PageSize, PictureStyle
from state_sensor_ros.frame import Frame, speed_along

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from state_sensor_ros.drawing.scene import Scene
    from state_sensor_ros.library.recording import Recording
    from state_sensor_ros.library.safety import Safety
    from state_sensor_ros.library.track import Track

# Titles, and rows of texts, of which so many are shown.
_Table: TypeAlias = Sequence[tuple[str, ...]]
_N_ROWS = 8
# Larger recordings are not read only to be shown, by the unit of their size.
_READ_AT_MOST = {'B': 30_000_000, 'frame': 2000}
_PICTURE = PageSize(7.0, dpi=90.0)


class Animation:
    """
    An interactive animation, shown by a notebook in the page.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     animation: sensor.Animation = recording.animate()
    >>> animation.html.startswith('<!DOCTYPE html>')
    True

    :ivar html: the page, complete, also without a network.
    """

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: str | os.PathLike[str]) -> None:
        """
        Write the page.

        :param path: path of the ``.html`` file.
        """
        Path(path).write_text(self.html, 'utf-8')

    def __repr__(self) -> str:
        return f'Animation({len(self.html) / 1e6:.1f} MB of HTML)'

    def _repr_html_(self) -> str:
        page = escape(self.html)
        return f'<iframe srcdoc="{page}" width="100%" height="700" style="border: 0"></iframe>'


def scene_of(frames: Iterable[Frame]) -> Scene:
    """Return frames as what is drawn."""
    builder = SceneBuilder(EGO_TAG)
    for frame in frames:
        builder.add(frame)
    return builder.finish()


def recording_html(recording: Recording, *, is_open: bool) -> str:
    """Return a recording as HTML; ``is_open`` whether it can be read."""
    if not is_open or recording.total is None or recording.total > _READ_AT_MOST[recording.unit]:
        return _page(recording)
    # Their first use makes the index, and the text of the recording has more facts.
    actors = sorted(recording.actors.values(), key=lambda actor: actor.kind != Kind.VEHICLE)
    return _page(recording, [('name', 'class', 'first (s)', 'last (s)'), *(
        (actor.name, actor.class_name, f'{actor.first:.2f}', f'{actor.last:.2f}')
        for actor in actors)], draw=lambda: recording.plot(size=(_PICTURE.width, None), title=''))


def frame_html(frame: Frame) -> str:
    """Return a frame as HTML, the ego and vehicles first."""
    lanes = dict(zip(frame.lanes.actor.tolist(), frame.lanes.ids.tolist(), strict=True))
    yaw = np.degrees(rotations.rpy_from_quaternion(frame.orientation_xyzw)[:, 2])
    order = sorted(range(len(frame)), key=lambda row: (
        row != frame.ego, frame.kinds[row] != Kind.VEHICLE))

    def draw() -> Figure:
        from state_sensor_ros.drawing.picture import scene_figure
        return scene_figure(scene_of([frame]), PictureStyle('', size=_PICTURE))

    return _page(frame, [
        ('name', 'tags', 'x (m)', 'y (m)', 'z (m)', 'yaw (deg)', 'speed (m/s)',
         'road/section/lane'), *(
            (frame.names[i], ', '.join(frame.tags[i]),
             *(f'{x:.2f}' for x in frame.position_xyz[i]), f'{yaw[i]:.0f}',
             f'{speed_along(frame, i):.1f}', '/'.join(map(str, lanes.get(i, ()))))
            for i in order)], draw=None if np.isnan(frame.game_time) else draw)


def track_html(track: Track) -> str:
    """Return a track as HTML."""
    if not len(track):
        return _page(track)
    ways = np.linalg.norm(np.diff(track.position_xyz, axis=0), axis=1)
    speeds = track.speed[np.isfinite(track.speed)]
    return _page(track, [('distance', 'speed', 'changes of lane_id'), (
        f'{np.nansum(ways):.1f} m',
        f'{speeds.min():.1f} to {speeds.max():.1f} m/s' if len(speeds) else 'unknown',
        str(np.count_nonzero(np.abs(np.diff(track.lane_id)) > 0)))], draw=track.plot)


def safety_html(safety: Safety, worst: Sequence[tuple[str, ...]],
                events: Sequence[tuple[str, ...]]) -> str:
    """Return measures of safety as HTML; ``worst`` and ``events`` are rows of texts."""
    def draw() -> Figure:
        from state_sensor_ros.drawing.picture import measures_figure
        return measures_figure(safety.game_time, {
            'TTC (s)': safety.time_to_collision, 'distance (m)': safety.closest_distance})

    return _page(safety, [('measure', 'worst', 'game time', 'other actor'), *worst],
                 [('event', 'game time', 'other actor', 'worst'), *events],
                 lines=safety.assumptions, draw=draw)


def _page(shown: object, *tables: _Table, lines: Iterable[str] = (),
          draw: Callable[[], Figure] | None = None) -> str:
    """Return the text of a value, the first rows of tables below their titles, and a picture."""
    html = f'<p><code>{escape(repr(shown))}</code></p>'
    for titles, *rows in tables:
        html += '<table>' + ''.join(
            f'<tr>{"".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)}</tr>'
            for tag, row in (('th', titles), *(('td', row) for row in rows[:_N_ROWS])))
        html += '</table>' + f'<p>and {len(rows) - _N_ROWS} more</p>' * (len(rows) > _N_ROWS)
    html += ''.join(f'<p>{escape(line)}</p>' for line in lines)
    if draw is not None:
        with suppress(errors.StateSensorError), errors.importing('a picture'):
            stream = BytesIO()
            draw().savefig(stream, format='png', dpi=_PICTURE.dpi)
            html += f'<img src="data:image/png;base64,{b64encode(stream.getvalue()).decode()}">'
    return html
