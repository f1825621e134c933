# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Frames as entities of the viewer: boxes by kind, points, lines, the ego, images, notes.

::

    world/vehicles, pedestrians, …   Boxes3D, the label is the name
    world/assumed_boxes              Boxes3D of assumed sizes
    world/points                     traffic lights and signs
    world/ego                        Transform3D and Boxes3D
    world/trails, world/ego_trail    LineStrips3D, the path since the frame before
    world/map/KIND                   Mesh3D of lanes, LineStrips3D of other lines, static
    camera/NAME                      images
    plots/NAME                       Scalars of the ego
    notes                            TextLog: faults, lane changes, runs
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
import math
from typing import Any

import numpy as np
import rerun as rr
import rerun.blueprint as rrb

from state_sensor_ros import frame as frames
from state_sensor_ros import jumps, rotations
from state_sensor_ros.classes import class_of, ego_row
from state_sensor_ros.drawing import scene as scenes
from state_sensor_ros.drawing import style
from state_sensor_ros.frame import Bools, Floats, Frame, Kinds, MapLine, NS_PER_S, Rows
from state_sensor_ros.objects.criticality import Situation
from state_sensor_ros.simulators import SensorImage

GAME_TIME, FRAME = 'game_time', 'frame'
EGO, TRAILS, EGO_TRAIL = 'world/ego', 'world/trails', 'world/ego_trail'
NOTES, POINTS, ASSUMED = 'notes', 'world/points', 'world/assumed_boxes'
KINDS = tuple(f'world/{name.replace(" ", "_")}s' for name in scenes.KIND_NAMES)
WARNING, INFO = 'WARN', 'INFO'
# Names of the plotted numbers with their units, by the view that they share.
PLOTS = {
    'Speed (m/s)': {'speed': 'speed, m/s'},
    'Acceleration (m/s²)': {'acceleration': 'acceleration, m/s²'},
    'Steering (+ = left)': {'steering': 'steering, -1..1, + = left',
                            'steering_angle': 'steering angle, rad, + = left'},
    'Lane': {'lane': 'lane, OpenDRIVE id'}, 'Gap (m)': {'gap': 'gap to the lead vehicle, m'},
    'Time headway, time to collision (s)': {'time_headway': 'time headway, s',
                                            'time_to_collision': 'time to collision, s'}}
# Distance of bands below the ground, so that they do not cover the actors; a step that is shorter
# is not drawn.
_BELOW_M, _SHORTEST_M = 0.03, 0.005
# Time between the last frame of a run and the first one of the next; stamps of ROS are below the
# greatest, s; a longer step has no acceleration; longer times say nothing about safety.
PAUSE_NS, _MAX_TIME_S, _MAX_GAP_S, _MAX_HEADWAY_S = NS_PER_S, 2.0 ** 31, 1.0, 10.0
TRAIL_S = 5.0


def _rgba(color: str) -> int:
    """Return a color such as ``#1f2933`` as an opaque color of 32 bits."""
    return int(color[1:], 16) << 8 | 255


_COLORS = np.array([_rgba(color) for color in (
    style.VEHICLE, style.PEDESTRIAN, style.UNKNOWN, style.SIGN, style.SIGN, style.OBJECT)],
    np.uint32)
_LIGHT_COLORS = {'red': _rgba(style.RED), 'yellow': _rgba(style.YELLOW),
                 'green': _rgba(style.GREEN)}
_STATE_COLORS = [_LIGHT_COLORS[color] for color in ('green', 'yellow', 'red')]


@lru_cache(maxsize=4)
def _looks(kinds: bytes, tags: tuple[tuple[str, ...], ...]) -> tuple[Kinds, Floats]:
    """Return the kind (N,) and the usual size (N, 3) of each actor."""
    classes = [class_of(kind, of_actor) for kind, of_actor in zip(kinds, tags, strict=True)]
    return np.array([scenes.kind_of(*each) for each in zip(classes, tags, strict=True)],
                    np.uint8), scenes.SIZES[np.array(classes, np.int64)]


class FrameLog:
    """Sends frames to a viewer."""

    # names: whether the names of all actors are shown, or only of the selected actor.

    def __init__(self, stream: rr.RecordingStream, *, ego_tag: str, names: bool, is_live: bool,
                 map_lines: tuple[MapLine, ...] = ()) -> None:
        self._stream, self._ego_tag, self._is_live = stream, ego_tag, is_live
        self._n_frames = self._now_ns = self._offset_ns = 0
        # Entities that have shown something, in the order in which they appeared.
        self._shown: dict[str, None] = {}
        self._last: tuple[float, int | None] | None = None
        self._before: Frame | None = None  # of the trails
        self._ego_speed = math.nan, math.nan  # game time and speed at the frame before
        self._start_xyz: tuple[float, ...] = ()
        self._layout: object = None
        self._map_lines, self._is_map_given = map_lines, bool(map_lines)
        stream.set_log_time_enabled(False)
        stream.set_log_tick_enabled(False)
        self._send_appearance(names=names)
        self._send_map()
        self._set_time()

    def _set_time(self) -> None:
        self._stream.set_time(GAME_TIME, duration=np.timedelta64(self._now_ns, 'ns'))
        self._stream.set_time(FRAME, sequence=self._n_frames)

    def _send_static(self, entity: str, archetype: Any) -> None:  # noqa: ANN401
        self._stream.log(entity, archetype, static=True, strict=True)

    def _send_appearance(self, *, names: bool) -> None:
        """Send all that does not change: axes, colors, whether names are shown."""
        fill = rr.components.FillMode
        self._send_static('world', rr.ViewCoordinates.RIGHT_HAND_Z_UP)
        for entity, color in ((EGO, _rgba(style.EGO)), *zip(KINDS, _COLORS.tolist(), strict=True)):
            self._send_static(entity, rr.Boxes3D.from_fields(
                colors=[color], show_labels=names, fill_mode=fill.TransparentFillMajorWireframe))
        self._send_static(ASSUMED, rr.Boxes3D.from_fields(
            show_labels=names, fill_mode=fill.MajorWireframe))
        for entity, name in ((TRAILS, style.QUIET), (EGO_TRAIL, style.EGO)):
            self._send_static(entity, rr.LineStrips3D.from_fields(
                colors=[_rgba(name)], radii=[0.08]))
        self._send_static(POINTS, rr.Points3D.from_fields(radii=[0.3], show_labels=names))
        for plots in PLOTS.values():
            for name, title in plots.items():
                self._send_static(f'plots/{name}', rr.SeriesLines(names=title))

    def _send_map(self) -> None:
        """Send the map, an entity for each kind of line."""
        for kind in dict.fromkeys(line.kind for line in self._map_lines):
            same = [line for line in self._map_lines if line.kind == kind]
            bands = [line for line in same if line.width > 0.0]
            entity = f'world/map/{kind.replace(" ", "_")}'
            if bands:
                vertices, triangles = _mesh(bands)
                self._send_static(entity, rr.Mesh3D(
                    vertex_positions=vertices, triangle_indices=triangles, vertex_colors=[
                        (66, 77, 89) if kind == 'driving' else (50, 60, 71)] * len(vertices)))
            if len(bands) < len(same):
                self._send_static(f'{entity}/lines' if bands else entity, rr.LineStrips3D(
                    [line.points_xyz for line in same if line.width <= 0.0],
                    colors=[_rgba(style.QUIET)], radii=[0.05]))

    # Invalid numbers give NaN, which is not drawn.
    @np.errstate(all='ignore')
    def add(self, frame: Frame, images: Iterable[SensorImage] = ()) -> None:
        """Add a frame; ``frame``: SI, REP-103 axes."""
        is_restart = self._advance(frame)
        self._set_time()
        self._n_frames += 1
        if is_restart:
            self._before = None
            self.note(f'the clock went back to {frame.game_time:g} s: another run of the '
                      f'simulator, shown from {self._now_ns / NS_PER_S:g} s on', INFO)
        if frame.map_lines and not self._is_map_given and frame.map_lines is not self._map_lines:
            self._map_lines = frame.map_lines
            self._send_map()
        are_drawn = frame.has_pose() & (np.abs(frame.position_xyz) < scenes.FARTHEST_M).all(axis=1)
        ego = ego_row(frame.tags, self._ego_tag)
        ego = ego if ego is not None and are_drawn[ego] else None
        self._add_bodies(frame, are_drawn, ego)
        self._add_steps(frame, are_drawn, ego)
        for image in images:
            self._send_image(image)
        self._send_layout()

    def _send_layout(self) -> None:
        """Send the layout if its content has changed."""
        content = self._start_xyz, tuple(name for name in self._shown if name.startswith(
            ('plots/', 'camera/', NOTES)))
        if content != self._layout:
            self._layout = content
            self._stream.send_blueprint(layout(*content, is_live=self._is_live))

    def _show(self, entity: str, archetype: Any, **components: Any) -> None:  # noqa: ANN401
        """Show instances in the newest frame; none before an entity has had one is nothing."""
        if entity in self._shown or len(next(iter(components.values()))):
            self._log(entity, archetype.from_fields(**components))

    def _log(self, entity: str, archetype: Any) -> None:  # noqa: ANN401
        self._shown[entity] = None
        self._stream.log(entity, archetype, strict=True)

    def _advance(self, frame: Frame) -> bool:
        """
        Set the time of the viewer; return whether another run of the simulator begins.

        A frame without a time that a stamp can have gets that of the frame before.
        """
        # False for NaN.
        if not abs(frame.game_time) < _MAX_TIME_S:
            return False
        own_ns = round(frame.game_time * NS_PER_S)
        is_restart = self._last is not None and frame.begins_run(*self._last)
        if is_restart:
            self._offset_ns = self._now_ns + PAUSE_NS - own_ns
        self._last = frame.game_time, frame.identity
        self._now_ns = own_ns + self._offset_ns
        return is_restart

    def _add_bodies(self, frame: Frame, are_drawn: Bools, ego: int | None) -> None:
        n, poses = frame.n_actors, frame.bodies().normalized()
        kinds, sizes = _looks(frame.kinds.tobytes(), frame.tags)
        # Without a box of its own, one of the usual size; the origin is on the ground.
        boxes = np.concatenate((poses[:n, :7], sizes), axis=1)
        boxes[:, 2] += 0.5 * sizes[:, 2]
        has_box = np.zeros(n, np.bool_)
        if frame.boxes is not None:
            rows = frame.largest_boxes()
            rows = rows[(np.abs(frame.boxes.rows[rows, :3]) < scenes.FARTHEST_M).all(axis=1)]
            owners = frame.boxes.actor[rows]
            boxes[owners] = poses[n + rows, :10]
            # Some sources have boxes of assumed sizes.
            has_box[owners] = ~frame.is_derived(frames.DERIVED_SIZE)[owners]
        is_other = np.arange(n) != (-1 if ego is None else ego)
        for kind, entity in enumerate(KINDS):
            self._add_boxes(frame, entity, boxes, has_box & is_other & (kinds == kind))
        is_point = (kinds == scenes.LIGHT) | (kinds == scenes.SIGN) | (
            (kinds == scenes.OTHER_SIGN) & ~has_box)
        is_assumed = are_drawn & ~is_point & ~has_box & is_other
        self._add_boxes(frame, ASSUMED, boxes, is_assumed, colors=_COLORS[kinds[is_assumed]])
        self._add_points(frame, np.flatnonzero(are_drawn & is_point), kinds)
        if ego is not None:
            self._add_ego(frame, ego, poses[ego, :7], boxes[ego])
        self._add_boxes(frame, EGO, boxes, ~is_other)

    def _add_boxes(self, frame: Frame, entity: str, boxes: Floats, chosen: Bools,
                   **more: Any) -> None:  # noqa: ANN401
        """Add the boxes (N, 10) of the actors ``chosen`` (N,)."""
        boxes = boxes[chosen]
        self._show(
            entity, rr.Boxes3D, centers=boxes[:, :3], half_sizes=0.5 * boxes[:, 7:],
            quaternions=boxes[:, 3:7], labels=[
                frame.names[row] for row in np.flatnonzero(chosen).tolist()], **more)

    def _add_points(self, frame: Frame, rows: Rows, kinds: Kinds) -> None:
        """Add traffic lights, colored by their state, and signs."""
        displays = frame.extension.displays() if len(rows) and frame.extension is not None \
            else ('',) * frame.n_actors
        colors = [_LIGHT_COLORS.get(displays[i], _COLORS[kinds[i]]) for i in rows.tolist()]
        labels, positions = [frame.names[i] for i in rows.tolist()], frame.position_xyz[rows]
        if (lights := frame.traffic_lights) is not None:
            labels += lights.names
            colors += [_STATE_COLORS[state] for state in lights.states.tolist()]
            positions = np.concatenate((positions, lights.poses[:, :3]))
        self._show(POINTS, rr.Points3D, positions=positions, labels=labels,
                   colors=np.array(colors, np.uint32))

    def _add_ego(self, frame: Frame, row: int, pose: Floats, box: Floats) -> None:
        """Add the pose of the ego (7,) and its numbers; move its box (10,) to its own axes."""
        self._start_xyz = self._start_xyz or tuple(pose[:3].tolist())
        turn = pose[None, 3:7]
        self._show(EGO, rr.Transform3D, translation=pose[:3], quaternion=turn[0])
        box[:3] = rotations.body_from_global(turn, (box[:3] - pose[:3])[None, None])[0, 0]
        box[3:7] = rotations.quaternion_product(turn * rotations.CONJUGATE_XYZW, box[None, 3:7])[0]
        for name, value in self._numbers(frame, row).items():
            if math.isfinite(value):
                self._show(f'plots/{name}', rr.Scalars, scalars=[value])

    def _numbers(self, frame: Frame, row: int) -> dict[str, float]:
        """Return the plotted numbers of the ego by name, NaN if unknown."""
        speed = frames.speed_along(frame, row)
        last_time, last_speed = self._ego_speed
        elapsed = frame.game_time - last_time
        numbers = {'speed': speed}
        if 0.0 < elapsed <= _MAX_GAP_S:
            numbers['acceleration'] = (speed - last_speed) / elapsed
        if elapsed != 0.0:
            self._ego_speed = frame.game_time, speed
        if frame.inputs is not None:
            numbers['steering'], numbers['steering_angle'] = frame.inputs[row, 2:4].tolist()
        for lane in frame.lanes.lane_id[frame.lanes.actor == row].tolist():
            numbers['lane'] = float(lane)
        found = Situation(frame).criticality(row)
        numbers['gap'] = found.gap
        for name in ('time_headway', 'time_to_collision'):
            value = getattr(found, name)
            numbers[name] = value if value <= _MAX_HEADWAY_S else math.nan
        return numbers

    def _add_steps(self, frame: Frame, are_drawn: Bools, ego: int | None) -> None:
        """Add the way of each actor since the frame before, but no impossible one."""
        ways, rows = np.zeros((0, 2, 3)), np.zeros(0, np.int64)
        if self._before is not None:
            pair = jumps.Pair(self._before, frame)
            length = np.linalg.norm(pair.moved, axis=1)
            is_step = are_drawn[pair.rows] & (length >= _SHORTEST_M) & (
                length <= jumps.MAX_SPEED * pair.elapsed)
            rows, now = pair.rows[is_step], frame.position_xyz[pair.rows[is_step]]
            ways = np.stack((now - pair.moved[is_step], now), axis=1)
        is_ego = rows == (-1 if ego is None else ego)
        for entity, strips in ((TRAILS, ways[~is_ego]), (EGO_TRAIL, ways[is_ego])):
            self._show(entity, rr.LineStrips3D, strips=list(strips))
        self._before = frame

    def _send_image(self, item: SensorImage) -> None:
        image = rr.EncodedImage(contents=item.png, media_type='image/png') \
            if item.pixels is None else rr.DepthImage(item.pixels, meter=1.0) \
            if item.pixels.ndim == 2 else rr.Image(item.pixels)
        self._log(f'camera/{item.name}', image)

    def note(self, text: str, level: str = WARNING) -> None:
        """Send a line of text at the time of the newest frame."""
        self._log(NOTES, rr.TextLog(text, level=level))
        self._send_layout()


def _mesh(bands: Sequence[MapLine]) -> tuple[Floats, Rows]:
    """Return the vertices (V, 3) and the triangles (T, 3) of bands of the lines' widths."""
    vertices: list[Floats] = []
    triangles: list[Rows] = []
    for band in bands:
        left, right = scenes.edges_of(band.points_xyz, band.width)
        first = sum(map(len, vertices)) + 2 * np.arange(len(left) - 1)[:, None]
        vertices.append(np.stack((left, right), axis=1).reshape(-1, 3) - (0.0, 0.0, _BELOW_M))
        triangles.append(np.concatenate((first + (0, 1, 2), first + (1, 3, 2))))
    return np.concatenate(vertices), np.concatenate(triangles)


def layout(start_xyz: tuple[float, ...], shown: Sequence[str], *, is_live: bool) -> rrb.Blueprint:
    """Return the layout: the scene on the left, the other views on the right."""
    # start_xyz: first position of the ego, m, empty without an ego.
    # shown: entities beside the scene that have data.
    # is_live: whether the viewer follows the newest frame.
    views = [rrb.TimeSeriesView(
        origin='plots', contents=[f'$origin/{name}' for name in names], name=title,
        plot_legend=rrb.PlotLegend(visible=len(names) > 1))
        for title, names in PLOTS.items() if any(f'plots/{name}' in shown for name in names)]
    images = [rrb.Spatial2DView(origin=name, name=name.removeprefix('camera/'))
              for name in sorted(shown) if name.startswith('camera/')]
    notes = [rrb.TextLogView(
        origin=NOTES, name='Faults and lane changes',
        columns=rrb.TextLogColumns(text_log_columns=['loglevel', 'body']))] * (NOTES in shown)
    side: list[rrb.View | rrb.Container] = [
        *([rrb.Grid(*images, name='Cameras')] if images else []),
        *([rrb.Vertical(*views, name='Ego')] if views else []), *notes]
    shares = [2.0] * (len(side) - len(notes)) + [1.0] * len(notes)
    parts: list[rrb.View | rrb.Container] = [
        _scene_view(start_xyz), *([rrb.Vertical(*side, row_shares=shares)] if side else [])]
    return rrb.Blueprint(
        rrb.Horizontal(*parts, column_shares=[2.2, 1.0][:len(parts)]),
        rrb.TimePanel(state='collapsed', timeline=GAME_TIME,
                      play_state='following' if is_live else 'playing',
                      loop_mode='off' if is_live else 'all'),
        rrb.SelectionPanel(state='hidden'), rrb.BlueprintPanel(state='collapsed'),
        auto_views=False)


def _scene_view(start_xyz: tuple[float, ...]) -> rrb.Spatial3DView:
    now = rrb.TimeRangeBoundary.cursor_relative()
    trail = rrb.VisibleTimeRanges([
        rrb.VisibleTimeRange(GAME_TIME, end=now, start=rrb.TimeRangeBoundary.cursor_relative(
            seconds=-TRAIL_S)),
        rrb.VisibleTimeRange(FRAME, end=now, start=rrb.TimeRangeBoundary.cursor_relative(
            seq=-100))])
    eye = None
    if start_xyz:
        x, y, z = start_xyz
        eye = rrb.EyeControls3D(
            kind=rrb.Eye3DKind.Orbital, tracking_entity=EGO, look_target=(x, y, z),
            position=(x - 25.0, y - 18.0, z + 18.0), eye_up=(0.0, 0.0, 1.0))
    return rrb.Spatial3DView(
        origin='world', name='Scene', background=[31, 41, 51], eye_controls=eye,
        line_grid=rrb.LineGrid3D(spacing=10.0, color=[62, 76, 89], stroke_width=0.5,
                                 plane=rr.components.Plane3D.XY),
        overrides={TRAILS: trail, EGO_TRAIL: trail})
