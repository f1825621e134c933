# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Build a scene from the frames of a recording.

Memory is bounded: while a long recording is read, instants are omitted evenly. Tracks are thinned
out within a bound of their error.
"""

from __future__ import annotations

from dataclasses import dataclass
import math

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import class_of, ego_row
from state_sensor_ros.drawing.scene import Lane, LaneChangeMark, LEFT, NO_LANE, RIGHT, Scene
from state_sensor_ros.drawing.shapes import (
    box_footprints,
    default_footprint,
    FARTHEST_M,
    kind_of,
    VEHICLE,
)
from state_sensor_ros.drawing.tracks import TrackBuilder
from state_sensor_ros.frame import (
    Bools,
    DERIVED_SIZE,
    direction_of_change,
    Floats,
    Frame,
    Ints,
    MapLine,
    Rows,
)
from state_sensor_ros.rotations import global_from_body, rpy_from_quaternion

# Above one of these limits, 15 MB, every second instant is omitted: a screen does not show more.
MAX_INSTANTS = 3000
MAX_SAMPLES = 300_000

# Time between the last frame before a restart of the simulator and the first one after it.
_RESTART_S = 1e-3
# A sample of an actor, as in :class:`Scene`.
_SAMPLE = np.dtype([
    ('actor', np.int64), ('position_xy', np.float32, 2), ('yaw', np.float32),
    ('speed', np.float32), ('lane', np.int32), ('display', np.int32)])


@dataclass(frozen=True, slots=True, eq=False)
class _Instant:
    time_s: float
    samples: npt.NDArray[np.void]


class SceneBuilder:
    """
    Builds a scene from frames in their order.

    A frame without ``game_time``, or with that of the last frame, is omitted.
    """

    def __init__(self, ego_tag: str, map_lines: tuple[MapLine, ...] = ()) -> None:
        self._ego_tag = ego_tag
        self._map_lines, self._is_map_given = map_lines, bool(map_lines)
        self._instants: list[_Instant] = []
        self._stride = 1
        self._n_samples = 0
        self._n_advanced = 0
        self._newest: _Instant | None = None
        self._generation = ''
        self._n_frames = 0
        self._start_s = math.nan  # game_time at time_s 0 of this run of the simulator
        self._last: tuple[float, int | None] = (math.nan, None)  # game_time and identity
        self._columns: dict[str, int] = {}
        self._is_ego: list[bool] = []
        self._kinds: list[int] = []
        self._classes: list[int] = []
        self._footprints: list[Floats] = []
        self._has_box: list[bool] = []
        self._has_size: list[bool] = []
        self._lanes: dict[Lane, int] = {}
        self._displays = {'': 0}
        self._changing: dict[int, int] = {}
        self._lane_of: dict[int, tuple[Lane, float]] = {}
        self._flagged: list[LaneChangeMark] = []
        self._crossed: list[LaneChangeMark] = []
        self._tracks = TrackBuilder()

    # Invalid numbers give NaN, which is not drawn.
    @np.errstate(all='ignore')
    def add(self, frame: Frame) -> None:
        """Add a frame."""
        # frame: frame in SI units and REP-103 axes; an actor without a box has a default footprint
        # until a later frame has its box.
        self._n_frames += 1
        self._generation = self._generation or frame.generation
        if frame.map_lines and not self._is_map_given:
            self._map_lines = frame.map_lines
        if math.isnan(frame.game_time):
            return
        time_s = self._time_of(frame)
        if self._newest is not None and time_s == self._newest.time_s:
            return
        is_drawn = frame.has_pose() & (np.abs(frame.position_xyz) < FARTHEST_M).all(axis=1)
        rows = np.flatnonzero(is_drawn)
        actor = self._actors_of(frame)
        self._take_footprints(frame, actor)
        lane = np.full(frame.n_actors, NO_LANE, np.int32)
        yaw = rpy_from_quaternion(frame.orientation_xyzw)[:, 2]
        self._take_lanes(frame, actor, yaw, time_s, lane, is_drawn)
        samples, speed = np.empty(len(rows), _SAMPLE), _speed_of(frame)[rows]
        samples['actor'], samples['position_xy'] = actor[rows], frame.position_xyz[rows, :2]
        samples['yaw'], samples['speed'], samples['lane'] = yaw[rows], speed, lane[rows]
        samples['display'] = self._displays_of(frame)[rows]
        self._newest = _Instant(time_s, samples)
        self._tracks.add(time_s, actor[rows], frame.position_xyz[rows, :2], speed)
        if self._n_advanced % self._stride == 0:
            self._keep(self._newest)
        self._n_advanced += 1

    def finish(self) -> Scene:
        """Return the scene of all added frames."""
        instants = self._instants
        if self._newest is not None and instants[-1] is not self._newest:
            instants = [*instants, self._newest]
        sizes = [len(instant.samples) for instant in instants]
        samples = np.concatenate([np.empty(0, _SAMPLE), *(each.samples for each in instants)])
        tracks, has_moved = self._tracks.finish(len(self._columns))
        kind = np.array(self._kinds, np.uint8)
        return Scene(
            generation=self._generation, n_frames=self._n_frames,
            time_s=np.array([instant.time_s for instant in instants]),
            row_start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            **{name: samples[name].copy() for name in _SAMPLE.names or ()},
            lanes=tuple(self._lanes), displays=tuple(self._displays), names=tuple(self._columns),
            is_ego=np.array(self._is_ego, np.bool_), kind=kind,
            actor_class=np.array(self._classes, np.uint8),
            has_size=np.array(self._has_size, np.bool_),
            footprint_xy=np.array(self._footprints).reshape(-1, 4, 2),
            # Changes of the lane's id count only if the simulator flags no lane change.
            lane_changes=tuple(self._flagged or self._crossed),
            tracks=tracks, moves=has_moved | (kind == VEHICLE), map_lines=self._map_lines)

    def _time_of(self, frame: Frame) -> float:
        """Return the time since the first frame, continued over restarts of the simulator."""
        if math.isnan(self._start_s):
            self._start_s = frame.game_time
        elif self._newest is not None and frame.begins_run(*self._last):
            self._start_s = frame.game_time - self._newest.time_s - _RESTART_S
        self._last = frame.game_time, frame.identity
        return frame.game_time - self._start_s

    def _actors_of(self, frame: Frame) -> Rows:
        columns, ego = self._columns, ego_row(frame.tags, self._ego_tag)
        for i, name in enumerate(frame.names):
            if name not in columns:
                actor_class = class_of(int(frame.kinds[i]), frame.tags[i])
                columns[name] = len(columns)
                self._is_ego.append(i == ego)
                self._classes.append(actor_class)
                self._kinds.append(kind_of(actor_class, frame.tags[i]))
                self._footprints.append(default_footprint(actor_class))
                self._has_box.append(False)
                self._has_size.append(False)
        return np.array([columns[name] for name in frame.names], np.int64)

    def _displays_of(self, frame: Frame) -> Ints:
        """Return the text or color that each actor displays, (N,) indices in ``displays``."""
        if frame.extension is None:
            return np.zeros(frame.n_actors, np.int32)
        return np.array([self._displays.setdefault(text, len(self._displays))
                         for text in frame.extension.displays()], np.int32)

    def _take_footprints(self, frame: Frame, actor: Rows) -> None:
        # Bodies are rigid: the first box of an actor is used for the whole scene.
        if frame.boxes is None or all(self._has_box[i] for i in actor[frame.boxes.actor]):
            return
        rows, footprints = box_footprints(frame)
        are_known = ~frame.is_derived(DERIVED_SIZE)[rows]
        for i, footprint, is_known in zip(
                actor[rows].tolist(), footprints, are_known.tolist(), strict=True):
            if not self._has_box[i]:
                self._footprints[i], self._has_box[i] = footprint, True
                self._has_size[i] = is_known

    def _take_lanes(self, frame: Frame, actor: Rows, yaw: Floats, time_s: float,
                    lane: Ints, is_drawn: Bools) -> None:
        lanes = frame.lanes
        for row, i, (road, section, id_), (left, right), s in zip(
                lanes.actor.tolist(), actor[lanes.actor].tolist(), lanes.ids.tolist(),
                lanes.is_changing.tolist(), lanes.s.tolist(), strict=True):
            ids = (road, section, id_)
            lane[row] = self._lanes.setdefault(ids, len(self._lanes))
            if not is_drawn[row]:
                continue
            side = LEFT if left else RIGHT if right else 0
            x, y, _ = frame.position_xyz[row].tolist()
            if side and side != self._changing.get(i, 0):
                self._flagged.append(LaneChangeMark(time_s, i, (x, y), float(yaw[row]), side))
            last, last_s = self._lane_of.get(i, (ids, s))
            direction = direction_of_change(last, ids, s - last_s)
            if direction is not None:
                self._crossed.append(LaneChangeMark(
                    time_s, i, (x, y), float(yaw[row]), LEFT if direction == 'left' else RIGHT))
            self._changing[i], self._lane_of[i] = side, (ids, s)

    def _keep(self, instant: _Instant) -> None:
        self._instants.append(instant)
        self._n_samples += len(instant.samples)
        if len(self._instants) > MAX_INSTANTS or self._n_samples > MAX_SAMPLES:
            del self._instants[1::2]
            self._stride *= 2
            self._n_samples = sum(len(kept.samples) for kept in self._instants)


def _speed_of(frame: Frame) -> Floats:
    # Along the actor's own x axis, as in tables.
    speed: Floats = np.abs(
        frame.forward_speed if frame.forward_speed is not None else np.einsum(
            'ni,ni->n', frame.velocity_xyz, global_from_body(frame.orientation_xyzw)[:, :, 0]))
    return np.where(speed < FARTHEST_M, speed, np.nan)
