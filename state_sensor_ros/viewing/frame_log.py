# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Frames as entities of the viewer: boxes by kind, points, lines, the ego, sensors, notes.

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

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import rerun as rr

from state_sensor_ros.classes import class_of, ego_row
from state_sensor_ros.drawing import shapes
from state_sensor_ros.drawing.shapes import edges_of, FARTHEST_M
from state_sensor_ros.drawing.style import (
    EGO,
    GREEN,
    OBJECT,
    PEDESTRIAN,
    QUIET,
    RED,
    SIGN,
    UNKNOWN,
    VEHICLE,
    YELLOW,
)
from state_sensor_ros.frame import (
    Bools,
    DERIVED_SIZE,
    Floats,
    Frame,
    Kinds,
    MapLine,
    NS_PER_S,
    Rows,
)
from state_sensor_ros.settings import DEFAULTS
from state_sensor_ros.simulators import SensorImage
from state_sensor_ros.viewing import ego_log
from state_sensor_ros.viewing.columns import (
    FRAME,
    GAME_TIME,
    Instances,
    OPAQUE,
    RunClock,
    Timelines,
)
from state_sensor_ros.viewing.ego_log import EgoLog
from state_sensor_ros.viewing.layout import Content, EGO_TRAIL, layout, TRAILS

NOTES, POINTS, ASSUMED = 'notes', 'world/points', 'world/assumed_boxes'
KINDS = tuple(f'world/{name.replace(" ", "_")}s' for name in shapes.KIND_NAMES)
_COLORS = (VEHICLE, PEDESTRIAN, UNKNOWN, SIGN, SIGN, OBJECT)
_LIGHT_COLORS = {'red': RED, 'yellow': YELLOW, 'green': GREEN}
_STATE_COLORS = (GREEN, YELLOW, RED)
# Length, width and height, m, by class; the last row is the size of a cone.
_SIZES = np.array((*DEFAULTS.default_sizes, 0.5, 0.5, 0.7)).reshape(-1, 3)
_POINT_RADIUS_M = 0.3
WARNING, INFO = 'WARN', 'INFO'
MAP = 'world/map'
_LINE_RADIUS_M = 0.05
# Colors of lanes for vehicles and of others: red, green, blue.
_DRIVING, _OTHER = (66, 77, 89), (50, 60, 71)
# Distance of bands below the ground, so that they do not cover the actors.
_BELOW_M = 0.03


class FrameLog:
    """Sends frames to a viewer, several at once."""

    # names: whether the names of all actors are shown, or only of the selected actor.
    # flush: called after frames were sent; waits until they have arrived.

    def __init__(self, stream: rr.RecordingStream, *, ego_tag: str, names: bool, n_together: int,
                 is_live: bool, flush: Callable[[], None],
                 map_lines: tuple[MapLine, ...] = ()) -> None:
        self._stream, self._ego_tag, self._n_together = stream, ego_tag, n_together
        self._is_live, self._flush = is_live, flush
        self._clock, self._timelines = RunClock(), Timelines()
        self._n_frames = 0
        self._now_ns = 0
        box = 'centers', 'half_sizes', 'quaternions'
        self._boxes = [Instances(entity, rr.Boxes3D, *box) for entity in KINDS]
        self._assumed = Instances(ASSUMED, rr.Boxes3D, *box, 'colors')
        self._points = Instances(POINTS, rr.Points3D, 'positions', 'colors')
        self._ego, self._trails = EgoLog(), TrailLog()
        self._cameras: set[str] = set()
        self._has_notes = False
        self._layout: Content | None = None
        # Kinds and usual sizes of the actors of the last frame.
        self._last: tuple[tuple[str, ...], bytes] = ((), b'')
        self._kinds: Kinds = np.zeros(0, np.uint8)
        self._sizes: Floats = np.zeros((0, 3))
        self._send_appearance(names=names)
        self._map_lines, self._is_map_given = map_lines, bool(map_lines)
        send_map(stream, map_lines)

    def _send_appearance(self, *, names: bool) -> None:
        """Send all that does not change: axes, colors, whether names are shown."""
        stream = self._stream
        stream.set_log_time_enabled(False)
        stream.set_log_tick_enabled(False)
        stream.log('world', rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True, strict=True)
        for entity, color in ((ego_log.EGO, EGO), *zip(KINDS, _COLORS, strict=True)):
            stream.log(entity, rr.Boxes3D.from_fields(
                colors=[_rgba(color)], show_labels=names,
                fill_mode=rr.components.FillMode.TransparentFillMajorWireframe),
                static=True, strict=True)
        stream.log(ASSUMED, rr.Boxes3D.from_fields(
            show_labels=names, fill_mode=rr.components.FillMode.MajorWireframe),
            static=True, strict=True)
        for entity, color in ((TRAILS, QUIET), (EGO_TRAIL, EGO)):
            stream.log(entity, rr.LineStrips3D.from_fields(colors=[_rgba(color)], radii=[0.08]),
                       static=True, strict=True)
        stream.log(POINTS, rr.Points3D.from_fields(radii=[_POINT_RADIUS_M], show_labels=names),
                   static=True, strict=True)

    def add(self, frame: Frame, sensor_data: Iterable[SensorImage] = ()) -> None:
        """Add a frame; ``frame``: SI, REP-103 axes."""
        n_runs = self._clock.n_runs
        self._now_ns = self._clock.advance(frame)
        i_frame = len(self._timelines)
        self._timelines.add(self._now_ns, self._n_frames)
        self._n_frames += 1
        if n_runs and self._clock.n_runs > n_runs:
            self._trails.begin_run()
            self.note(f'the clock went back to {frame.game_time:g} s: another run of the '
                      f'simulator, shown from {self._now_ns / NS_PER_S:g} s on', INFO)
        if frame.map_lines and not self._is_map_given \
                and frame.map_lines is not self._map_lines:
            self._map_lines = frame.map_lines
            send_map(self._stream, frame.map_lines)
        self._add_bodies(frame, i_frame)
        for item in sensor_data:
            self._send_sensor(item)
        if len(self._timelines) >= self._n_together:
            self.send()

    # Invalid numbers give NaN, which is not drawn.
    @np.errstate(all='ignore')
    def _add_bodies(self, frame: Frame, i_frame: int) -> None:
        n_actors, boxes = frame.n_actors, frame.boxes
        poses = frame.bodies().normalized()
        are_drawn = frame.has_pose() & (np.abs(frame.position_xyz) < FARTHEST_M).all(axis=1)
        box_rows: Rows = np.zeros(0, np.int64)
        owners: Rows = box_rows
        if boxes is not None:
            box_rows = frame.largest_boxes()
            is_near = (np.abs(boxes.rows[box_rows, :3]) < FARTHEST_M).all(axis=1)
            box_rows = box_rows[is_near]
            owners = boxes.actor[box_rows]
        ego = ego_row(frame.tags, self._ego_tag)
        ego = ego if ego is not None and are_drawn[ego] else None
        self._classify(frame)
        boxes_of_all = self._with_assumed(poses, n_actors, box_rows, owners)
        self._ego.add(frame, ego, poses, None if ego is None else boxes_of_all[ego], i_frame)
        # Some sources have boxes of assumed sizes.
        owners = owners[~frame.is_derived(DERIVED_SIZE)[owners]]
        self._add_boxes(frame, boxes_of_all, owners, ego)
        is_lit = (self._kinds == shapes.LIGHT) | (self._kinds == shapes.SIGN)
        has_box = np.zeros(n_actors, np.bool_)
        has_box[owners] = True
        is_lit |= (self._kinds == shapes.OTHER_SIGN) & ~has_box
        is_assumed = are_drawn & ~is_lit & ~has_box
        if ego is not None:
            is_assumed[ego] = False
        rows = np.flatnonzero(is_assumed)
        self._assumed.add([frame.names[i] for i in rows.tolist()], *_parts(boxes_of_all[rows]),
                          _COLOR_NUMBERS[self._kinds[rows]])
        self._add_points(frame, are_drawn & is_lit)
        self._trails.add(frame, are_drawn, ego)

    def _with_assumed(self, poses: Floats, n_actors: int, box_rows: Rows,
                      owners: Rows) -> Floats:
        """Return a box for each actor, (N, 10): its own, or one of the usual size at its pose."""
        boxes = np.concatenate((poses[:n_actors, :7], self._sizes), axis=1)
        # The origin is on the ground.
        boxes[:, 2] += 0.5 * self._sizes[:, 2]
        boxes[owners] = poses[n_actors + box_rows, :10]
        return boxes

    def _add_boxes(self, frame: Frame, boxes: Floats, owners: Rows, ego: int | None) -> None:
        """Add the boxes of the actors at the rows ``owners``, without the ego."""
        kind = self._kinds[owners]
        is_other = owners != (-1 if ego is None else ego)
        for k, instances in enumerate(self._boxes):
            rows = owners[is_other & (kind == k)]
            instances.add([frame.names[i] for i in rows.tolist()], *_parts(boxes[rows]))

    def _classify(self, frame: Frame) -> None:
        """Set the kind and the usual size of each actor; computed again if the actors change."""
        key = frame.names, frame.kinds.tobytes()
        if key != self._last:
            self._last = key
            classes = [class_of(kind, tags) for kind, tags in zip(
                frame.kinds.tolist(), frame.tags, strict=True)]
            self._kinds = np.array([shapes.kind_of(class_, tags) for class_, tags in zip(
                classes, frame.tags, strict=True)], np.uint8)
            self._sizes = _SIZES[np.array(classes, np.int64)]

    def _add_points(self, frame: Frame, is_point: Bools) -> None:
        """Add traffic lights, colored by their state, and signs."""
        rows = np.flatnonzero(is_point)
        displays = frame.extension.displays() if len(rows) and frame.extension is not None else ()
        colors = [_LIGHT_COLORS.get(displays[i] if displays else '', _COLORS[self._kinds[i]])
                  for i in rows.tolist()]
        labels = [frame.names[i] for i in rows.tolist()]
        positions = frame.position_xyz[rows]
        lights = frame.traffic_lights
        if lights is not None:
            labels += lights.names
            colors += [_STATE_COLORS[state] for state in lights.states.tolist()]
            positions = np.concatenate((positions, lights.poses[:, :3]))
        self._points.add(labels, positions, np.array([_rgba(color) >> 8 for color in colors]))

    def _send_sensor(self, item: SensorImage) -> None:
        stream = self._stream
        stream.set_time(GAME_TIME, duration=np.timedelta64(self._now_ns, 'ns'))
        stream.set_time(FRAME, sequence=self._n_frames - 1)
        self._cameras.add(item.name)
        image = rr.EncodedImage(contents=item.png, media_type='image/png') \
            if item.pixels is None else rr.DepthImage(item.pixels, meter=1.0) \
            if item.pixels.ndim == 2 else rr.Image(item.pixels)
        stream.log(f'camera/{item.name}', image, strict=True)

    def note(self, text: str, level: str = WARNING) -> None:
        """Send a line of text at the time of the newest frame."""
        self._has_notes = True
        self._stream.set_time(GAME_TIME, duration=np.timedelta64(self._now_ns, 'ns'))
        self._stream.set_time(FRAME, sequence=max(self._n_frames - 1, 0))
        self._stream.log(NOTES, rr.TextLog(text, level=level), strict=True)

    def send(self) -> None:
        """Send the frames that were not sent yet, and the layout if its content has changed."""
        if len(self._timelines):
            for instances in (*self._boxes, self._assumed, self._points):
                instances.send(self._stream, self._timelines)
            self._trails.send(self._stream, self._timelines)
            self._ego.send(self._stream, self._timelines)
            self._timelines.clear()
        content = Content(self._ego.start_xyz, frozenset(self._ego.plots),
                          frozenset(self._cameras), self._has_notes, self._is_live)
        if content != self._layout:
            self._layout = content
            self._stream.send_blueprint(layout(content))
        self._flush()


def _parts(boxes: Floats) -> tuple[Floats, Floats, Floats]:
    """Return centers, half edges and orientations of boxes, (K, 10)."""
    return boxes[:, :3], 0.5 * boxes[:, 7:10], boxes[:, 3:7]


def _rgba(color: str) -> int:
    """Return a color such as ``#1f2933`` as an opaque color of 32 bits."""
    return int(color[1:], 16) << 8 | OPAQUE


_COLOR_NUMBERS = np.array([_rgba(color) >> 8 for color in _COLORS])


def send_map(stream: rr.RecordingStream, lines: Sequence[MapLine]) -> None:
    """Send the map, an entity for each kind of line."""
    for kind in dict.fromkeys(line.kind for line in lines):
        same = [line for line in lines if line.kind == kind]
        bands = [line for line in same if line.width > 0.0]
        entity = f'{MAP}/{kind.replace(" ", "_")}'
        if bands:
            vertices, triangles = _mesh(bands)
            color = _DRIVING if kind == 'driving' else _OTHER
            stream.log(entity, rr.Mesh3D(
                vertex_positions=vertices, triangle_indices=triangles,
                vertex_colors=[color] * len(vertices)), static=True, strict=True)
        if len(bands) < len(same):
            stream.log(f'{entity}/lines' if bands else entity, rr.LineStrips3D(
                [line.points_xyz for line in same if line.width <= 0.0],
                colors=[_rgba(QUIET)], radii=[_LINE_RADIUS_M]),
                static=True, strict=True)


def _mesh(bands: Sequence[MapLine]) -> tuple[Floats, Rows]:
    """Return the vertices (V, 3) and the triangles (T, 3) of bands of the lines' widths."""
    vertices: list[Floats] = []
    triangles: list[Rows] = []
    n_vertices = 0
    for band in bands:
        left, right = edges_of(band.points_xyz, band.width)
        vertices.append(np.stack((left, right), axis=1).reshape(-1, 3) - (0.0, 0.0, _BELOW_M))
        first = n_vertices + 2 * np.arange(len(left) - 1)[:, None]
        triangles.append(np.concatenate((first + (0, 1, 2), first + (1, 3, 2))))
        n_vertices += 2 * len(left)
    return np.concatenate(vertices), np.concatenate(triangles)


# A shorter step is not drawn; a longer one is a jump.
_SHORTEST_M, _LONGEST_M = 0.005, 25.0


class TrailLog:
    """Collects the steps of the actors from frame to frame."""

    def __init__(self) -> None:
        self._ways, self._ego_ways = (
            Instances(entity, rr.LineStrips3D, 'strips', has_labels=False)
            for entity in (TRAILS, EGO_TRAIL))
        self._last_names: tuple[str, ...] = ()
        self._last_rows: dict[str, int] = {}
        self._last_position_xyz: Floats = np.zeros((0, 3))

    def add(self, frame: Frame, are_drawn: Bools, ego: int | None) -> None:
        """Append a frame; ``are_drawn``: (N,) bool, actors with a pose that can be drawn."""
        before, now = self._same_actors(frame.names)
        ways = np.stack((self._last_position_xyz[before], frame.position_xyz[now]), axis=1)
        with np.errstate(invalid='ignore', over='ignore'):
            length = np.abs(ways[:, 1] - ways[:, 0]).max(axis=1)
        # A comparison with NaN is false.
        is_way = are_drawn[now] & (length >= _SHORTEST_M) & (length <= _LONGEST_M)
        is_ego = is_way & (now == (-1 if ego is None else ego))
        self._ways.add((), ways[is_way & ~is_ego])
        self._ego_ways.add((), ways[is_ego])
        self._last_position_xyz = frame.position_xyz

    def begin_run(self) -> None:
        """Remove the last positions: the next frame is the first one of a run."""
        self._last_names, self._last_rows = (), {}
        self._last_position_xyz = np.zeros((0, 3))

    def _same_actors(self, names: tuple[str, ...]) -> tuple[Rows, Rows]:
        """Return the rows of the actors that the last frame and this one share, in both."""
        if names == self._last_names:
            same = np.arange(len(names))
            return same, same
        pairs = [(self._last_rows[name], i) for i, name in enumerate(names)
                 if name in self._last_rows]
        self._last_names = names
        self._last_rows = {name: i for i, name in enumerate(names)}
        before, now = np.array(pairs, np.int64).reshape(-1, 2).T
        return before, now

    def send(self, stream: rr.RecordingStream, timelines: Timelines) -> None:
        """Send the collected steps, and remove them."""
        self._ways.send(stream, timelines)
        self._ego_ways.send(stream, timelines)
