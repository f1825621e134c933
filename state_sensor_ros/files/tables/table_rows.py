# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The rows of a table: one for each actor of each frame.

A central difference needs the frame after, so that rows are completed at least one frame later::

    frame       0    1    2 repeated    3
    completed        0                  1, 2
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from state_sensor_ros.bodies import Bools, Floats
from state_sensor_ros.classes import class_of, UNKNOWN
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.fields import joined, rows_of
from state_sensor_ros.files.tables.table_columns import FLOAT_NAMES
from state_sensor_ros.frame import (
    DERIVED_SIZE,
    Frame,
    Ints,
    KIND_VEHICLE,
    Kinds,
    Rows,
)
from state_sensor_ros.naming import ActorList, Registry
from state_sensor_ros.objects.criticality import Criticality, Situation
from state_sensor_ros.objects.object_maker import centers_of, default_sizes, MAX_GAP_S
from state_sensor_ros.pipeline.stamps import Stamper, Step
from state_sensor_ros.rotations import rpy_from_quaternion
from state_sensor_ros.settings import DEFAULTS, Settings

# Column of the first value of each group in the block of floating-point columns.
_AT = {name: i for i, name in enumerate(FLOAT_NAMES)}
_POSE, _ANGLES, _TWIST = _AT['x'], _AT['roll'], _AT['vx']
_ACCELERATION, _SPEED = _AT['ax'], _AT['speed']
_CENTER, _SIZE, _S = _AT['center_x'], _AT['length'], _AT['s']
# Largest number of repeated frames, from a paused simulator, that wait for an acceleration.
_MAX_REPEATED = 256
# Larger blocks are not faster, and OpenBLAS would start threads for their products.
_BLOCK_ROWS, _MAX_BLOCK_FRAMES = 1024, 256


@dataclass(frozen=True, slots=True, eq=False)
class ActorColumns:
    """The (N,) columns that do not change while the actors are the same."""

    actor_list: ActorList
    ids: npt.NDArray[np.uint32]
    are_vehicles: Bools
    classes: Kinds
    are_egos: Bools


@dataclass(slots=True, eq=False)
class FrameRows:
    index: int
    stamp_ns: int | None  # None for a frame whose time ROS cannot represent
    game_time: float
    actors: ActorColumns
    floats: Floats  # (N, 27) columns FLOAT_NAMES
    has_box: Bools  # (N,) whether center and size are those of a box
    lanes: Ints  # (N, 3) road, section and lane
    # (N, 2) left and right, both valid where ``has_lane`` (N,) is set, with ``road_names`` by the
    # number of the road.
    is_changing: Bools
    has_lane: Bools
    road_names: Mapping[int, str]
    # (N,) as of :class:`Frame`, with the sizes of actors without a box.
    derived: npt.NDArray[np.uint8]
    step: Step  # of the clock before the frame
    # Measures of each actor and the name of its lead vehicle, None if no column shows them.
    safety: list[tuple[Criticality, str]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _NamedFrame:
    """A frame with its stamp and its actors, whose rows are not computed yet."""

    frame: Frame
    stamp_ns: int | None
    actors: ActorColumns
    step: Step


class RowMaker:
    """
    Make the rows of consecutive frames.

    Frames are computed in blocks of about a thousand rows: for single frames of fifty actors, the
    overhead of numpy's calls would take most of the time.

    :param default_class: class of actors without a class tag, index in CLASSES; None for the usual
        one.
    """

    def __init__(self, settings: Settings = DEFAULTS, *,
                 default_class: int | None = None, has_safety: bool = False) -> None:
        self._has_safety = has_safety
        self._default_class = default_class
        self._default_sizes = default_sizes(settings)
        self._stamper = Stamper('game_time')
        self._registry = Registry(ego_tag=settings.ego_tag)
        self._actors: ActorColumns | None = None
        self._n_frames = 0
        self._block: list[_NamedFrame] = []
        self._n_block_rows = 0
        # The last frame that is complete, and those that wait for the next one.
        self._last: FrameRows | None = None
        self._waiting: deque[FrameRows] = deque()

    def add(self, frame: Frame) -> list[FrameRows]:
        """Add a frame; ``frame``: next frame in time; SI, REP-103 axes."""
        complete: list[FrameRows] = []
        if self._block and not _are_alike(self._block[0].frame, frame):
            complete = self._compute_block()
        self._block.append(self._named(frame))
        self._n_block_rows += frame.n_actors
        if self._n_block_rows >= _BLOCK_ROWS or len(self._block) >= _MAX_BLOCK_FRAMES:
            complete += self._compute_block()
        return complete

    def flush(self) -> list[FrameRows]:
        """Return the rows of the frames that are complete, although the block is not full."""
        return self._compute_block() if self._block else []

    def finish(self) -> list[FrameRows]:
        return self.flush() + self._completed(None)

    def _compute_block(self) -> list[FrameRows]:
        complete: list[FrameRows] = []
        for rows in self._rows():
            if rows.step is not Step.REPEATED or len(self._waiting) > _MAX_REPEATED:
                complete += self._completed(rows)
            self._waiting.append(rows)
        return complete

    def _completed(self, following: FrameRows | None) -> list[FrameRows]:
        complete = list(self._waiting)
        self._waiting.clear()
        if complete:
            now = complete[0]
            if following is not None and self._last is not None and now.step is Step.ADVANCED \
                    and following.step is Step.ADVANCED:
                _set_accelerations(self._last, now, following)
            self._last = now
        return complete

    def _named(self, frame: Frame) -> _NamedFrame:
        stamp_ns: int | None = None
        try:
            step = self._stamper.step(frame, 0)
            stamp_ns = self._stamper.stamp_ns
        except DecodeError:
            # The frame has no neighbors in time.
            step = Step.RESTARTED
        else:
            if step is Step.RESTARTED:
                self._registry.restart()
        actor_list = self._registry.name_repeated(frame) if step is Step.REPEATED \
            else self._registry.update(frame)
        return _NamedFrame(frame, stamp_ns, self._actor_columns(frame, actor_list), step)

    def _rows(self) -> list[FrameRows]:
        """Return the rows of the frames of the block, and begin another one."""
        block, self._block, self._n_block_rows = self._block, [], 0
        frames = [named.frame for named in block]
        whole = frames[0] if len(frames) == 1 else joined(
            frames, np.cumsum([0, *[frame.n_actors for frame in frames[:-1]]]).tolist())
        floats = np.full((whole.n_actors, len(FLOAT_NAMES)), np.nan)
        with np.errstate(all='ignore'):
            has_box = self._fill_poses(
                whole, np.concatenate([named.actors.classes for named in block]), floats)
        lanes, is_changing, has_lane = _lanes(whole, floats)
        has_box &= ~whole.is_derived(DERIVED_SIZE)
        derived = _derived(whole) | DERIVED_SIZE * (
            ~has_box & np.isfinite(floats[:, FLOAT_NAMES.index('length')])).astype(np.uint8)
        rows, begin = [], 0
        for named in block:
            span = slice(begin, begin + named.frame.n_actors)
            rows.append(FrameRows(
                self._n_frames, named.stamp_ns, named.frame.game_time, named.actors, floats[span],
                has_box[span], lanes[span], is_changing[span], has_lane[span],
                named.frame.lanes.road_names, derived[span], named.step,
                _safety(named.frame) if self._has_safety else None))
            self._n_frames += 1
            begin = span.stop
        return rows

    def _actor_columns(self, frame: Frame, actor_list: ActorList) -> ActorColumns:
        if self._actors is None or self._actors.actor_list is not actor_list:
            are_egos = np.zeros(frame.n_actors, np.bool_)
            if actor_list.i_ego >= 0:
                are_egos[actor_list.i_ego] = True
            self._actors = ActorColumns(
                actor_list, np.array([actor.id for actor in actor_list.actors], np.uint32),
                frame.kinds == KIND_VEHICLE, self._classes(frame), are_egos)
        return self._actors

    def _classes(self, frame: Frame) -> Kinds:
        # Traffic lights and signs have no class.
        displays = ('',) * frame.n_actors \
            if self._default_class is None or frame.extension is None \
            else frame.extension.displays()
        return np.array(
            [class_of(kind, tags, None if display else self._default_class)
             for kind, tags, display in zip(frame.kinds.tolist(), frame.tags, displays,
                                            strict=True)], np.uint8)

    def _fill_poses(self, frame: Frame, classes: Kinds, floats: Floats) -> Bools:
        """Set all columns of a frame but the accelerations and ``s``; return which have a box."""
        usable = frame.has_pose()
        floats[:, _POSE:_POSE + 7] = frame.kinematics[:, :7]
        floats[:, _TWIST:_TWIST + 6] = frame.kinematics[:, 7:]
        if frame.accelerations is not None:
            floats[:, _ACCELERATION:_ACCELERATION + 3] = frame.accelerations
        centers = centers_of(frame, self._default_sizes, classes)
        floats[:, _ANGLES:_ANGLES + 3] = np.where(
            usable[:, None], rpy_from_quaternion(centers.poses[:, 3:7]), np.nan)
        if frame.forward_speed is not None:
            floats[:, _SPEED] = frame.forward_speed
        else:
            floats[:, _SPEED] = np.where(usable, np.einsum(
                'ij,ij->i', frame.velocity_xyz, centers.axes[:, :, 0]), np.nan)
        have_centers = usable & (centers.have_boxes | (classes != UNKNOWN))
        floats[have_centers, _CENTER:_CENTER + 3] = centers.poses[have_centers, :3]
        floats[have_centers, _SIZE:_SIZE + 3] = centers.sizes[have_centers]
        return centers.have_boxes


def _safety(frame: Frame) -> list[tuple[Criticality, str]]:
    """Return the measures of each actor, undefined ones of objects, and names of leads."""
    situation = Situation(frame)
    found = [situation.criticality(row) if kind == KIND_VEHICLE else Criticality()
             for row, kind in enumerate(frame.kinds.tolist())]
    return [(each, frame.names[each.lead] if each.lead >= 0 else '') for each in found]


def _are_alike(frame: Frame, other: Frame) -> bool:
    """Return whether two frames have the same parts, and can be in one block."""
    return all((getattr(frame, field.name) is None) is (getattr(other, field.name) is None)
               for field in rows_of(Frame))


def _derived(frame: Frame) -> npt.NDArray[np.uint8]:
    return np.zeros(frame.n_actors, np.uint8) if frame.derived is None else frame.derived


def _lanes(frame: Frame, floats: Floats) -> tuple[Ints, Bools, Bools]:
    """Set ``s``; return the other columns of lanes."""
    n_actors, lanes = frame.n_actors, frame.lanes
    numbers = np.zeros((n_actors, 3), np.int32)
    is_changing = np.zeros((n_actors, 2), np.bool_)
    has_lane = np.zeros(n_actors, np.bool_)
    if len(lanes.actor):
        numbers[lanes.actor] = lanes.ids
        is_changing[lanes.actor] = lanes.is_changing
        has_lane[lanes.actor] = True
        floats[lanes.actor, _S] = lanes.s
    return numbers, is_changing, has_lane


def _set_accelerations(before: FrameRows, now: FrameRows, after: FrameRows) -> None:
    """
    Set central differences for the actors that are in all three frames, without a gap.

    Accelerations of the source stay.
    """
    if not (now.game_time - before.game_time <= MAX_GAP_S
            and after.game_time - now.game_time <= MAX_GAP_S):
        return
    elapsed = after.game_time - before.game_time
    accelerations = now.floats[:, _ACCELERATION:_ACCELERATION + 3]
    is_given = ~np.isnan(accelerations).all(axis=1)
    if before.actors is now.actors is after.actors and not is_given.any():
        accelerations[:] = (after.floats[:, _TWIST:_TWIST + 3]
                            - before.floats[:, _TWIST:_TWIST + 3]) / elapsed
        return
    rows: Rows = np.arange(len(now.floats), dtype=np.int64)
    rows_before, rows_after = (_rows_of(now.actors, other.actors) for other in (before, after))
    known = (rows_before >= 0) & (rows_after >= 0) & ~is_given
    rows, rows_before, rows_after = rows[known], rows_before[known], rows_after[known]
    accelerations[rows] = (after.floats[rows_after, _TWIST:_TWIST + 3]
                           - before.floats[rows_before, _TWIST:_TWIST + 3]) / elapsed


def _rows_of(actors: ActorColumns, others: ActorColumns) -> Rows:
    """Return (N,) int64, the row of each actor in another frame, -1 if it is not there."""
    if others is actors:
        return np.arange(len(actors.ids), dtype=np.int64)
    rows = {int(id_): row for row, id_ in enumerate(others.ids)}
    return np.array([rows.get(int(id_), -1) for id_ in actors.ids], np.int64)
