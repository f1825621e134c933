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
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from state_sensor_ros import errors, fields, jumps, naming, rotations, texts
from state_sensor_ros.classes import classes_of, UNKNOWN
from state_sensor_ros.frame import Bools, DERIVED_SIZE, Floats, Frame, Kinds, Rows
from state_sensor_ros.objects.object_maker import centers_of, default_sizes, MAX_GAP_S, transported
from state_sensor_ros.pipeline.stamps import Stamper, Step
from state_sensor_ros.settings import DEFAULTS, Settings

# Columns of the block of numbers, and of the first of each group.
FLOAT_NAMES = (
    'x', 'y', 'z', 'qx', 'qy', 'qz', 'qw', 'vx', 'vy', 'vz', 'wx', 'wy', 'wz', 'roll', 'pitch',
    'yaw', 'ax', 'ay', 'az', 'speed', 'center_x', 'center_y', 'center_z', 'length', 'width',
    'height')
_VELOCITY, _ANGLES, _ACCELERATION, _SPEED, _CENTER, _SIZE = map(
    FLOAT_NAMES.index, ('vx', 'roll', 'ax', 'speed', 'center_x', 'length'))
# Largest number of repeated frames, from a paused simulator, that wait for an acceleration.
_MAX_REPEATED = 256
# Larger blocks are not faster, and OpenBLAS would start threads for their products.
_BLOCK_ROWS, _MAX_BLOCK_FRAMES = 1024, 256


@dataclass(frozen=True, slots=True, eq=False)
class ActorColumns:
    """The (N,) columns that do not change while the actors are the same."""

    actor_list: naming.ActorList
    ids: npt.NDArray[np.uint32]
    classes: Kinds
    are_egos: Bools


@dataclass(slots=True, eq=False)
class FrameRows:
    """A frame, and the columns of its actors that are computed."""

    frame: Frame
    index: int
    stamp_ns: int | None  # None for a frame whose time ROS cannot represent
    step: Step  # of the clock before the frame
    actors: ActorColumns
    floats: Floats = field(init=False)  # (N, 26) columns FLOAT_NAMES
    # (N, 3) those from which accelerations are derived: of the origins, or of the centers.
    velocities: Floats = field(init=False)
    has_box: Bools = field(init=False)  # (N,) whether center and size are those of a box
    # (N,) as of :class:`Frame`, with the sizes of actors without a box.
    derived: Kinds = field(init=False)


class RowMaker:
    """
    Make the rows of consecutive frames.

    Frames are computed in blocks of about a thousand rows: for single frames of fifty actors, the
    overhead of numpy's calls would take most of the time.

    :param of_centers: whether accelerations are those of the centers, over any gap, and known
        wherever the velocity is: at the ends of an actor's time from one side, and 0 if it is
        alone. Otherwise they are those of the origins, as far as central differences exist.
    :ivar n_impossible: number of motions that are left out of the accelerations.
    """

    def __init__(self, settings: Settings = DEFAULTS, *, of_centers: bool = False) -> None:
        self._of_centers, self.n_impossible = of_centers, 0
        self._default_sizes = default_sizes(settings)
        self._stamper = Stamper('game_time')
        self._registry = naming.Registry(ego_tag=settings.ego_tag)
        self._actors: ActorColumns | None = None
        self._n_frames = 0
        self._block: list[FrameRows] = []
        # The last frame that is complete, and those that wait for the next one.
        self._last: FrameRows | None = None
        self._waiting: deque[FrameRows] = deque()

    @property
    def notes(self) -> list[str]:
        """Return a line about the motions that are left out, if there are any."""
        text = (f'{texts.counted(self.n_impossible, "motion")} beyond {jumps.MAX_SPEED:g} m/s or '
                f'{jumps.MAX_ACCELERATION:g} m/s2, left out of the accelerations')
        return [text] if self.n_impossible else []

    def add(self, frame: Frame) -> list[FrameRows]:
        """Add a frame; ``frame``: next frame in time; SI, REP-103 axes."""
        complete = [] if not self._block or _are_alike(self._block[0].frame, frame) \
            else self.flush()
        self._block.append(self._named(frame))
        n_rows = sum([rows.frame.n_actors for rows in self._block])
        if n_rows >= _BLOCK_ROWS or len(self._block) >= _MAX_BLOCK_FRAMES:
            complete += self.flush()
        return complete

    def flush(self, *, is_end: bool = False) -> list[FrameRows]:
        """Return the rows of the frames that are complete, at the end of all frames."""
        block, self._block = self._block, []
        if block:
            self._compute(block)
        complete: list[FrameRows] = []
        for rows in block:
            if rows.step is not Step.REPEATED or len(self._waiting) > _MAX_REPEATED:
                complete += self._completed(rows)
            self._waiting.append(rows)
        return complete + self._completed(None) if is_end else complete

    def _completed(self, following: FrameRows | None) -> list[FrameRows]:
        complete = list(self._waiting)
        self._waiting.clear()
        if complete:
            now = complete[0]
            self._set_accelerations(
                self._last if now.step is Step.ADVANCED else None, now,
                following if following and following.step is Step.ADVANCED else None)
            self._last = now
        return complete

    def _named(self, frame: Frame) -> FrameRows:
        stamp_ns: int | None = None
        # A frame without a time has no neighbors in time.
        step = Step.RESTARTED
        with suppress(errors.DecodeError):
            step, stamp_ns = self._stamper.step(frame, 0), self._stamper.stamp_ns
            if step is Step.RESTARTED:
                self._registry.restart()
        actor_list = self._registry.update(frame)
        if self._actors is None or self._actors.actor_list is not actor_list:
            self._actors = ActorColumns(
                actor_list, np.array([actor.id for actor in actor_list.actors], np.uint32),
                classes_of(frame.kinds.tolist(), frame.tags),
                np.arange(frame.n_actors) == actor_list.i_ego)
        self._n_frames += 1
        return FrameRows(frame, self._n_frames - 1, stamp_ns, step, self._actors)

    def _compute(self, block: list[FrameRows]) -> None:
        """Set the computed columns of the frames of a block."""
        frames = [rows.frame for rows in block]
        ends = np.cumsum([frame.n_actors for frame in frames]).tolist()
        whole = frames[0] if len(frames) == 1 else fields.joined(frames, [0, *ends[:-1]])
        floats = np.full((whole.n_actors, len(FLOAT_NAMES)), np.nan)
        with np.errstate(all='ignore'):
            has_box = self._fill(
                whole, np.concatenate([rows.actors.classes for rows in block]), floats)
        has_box &= ~whole.is_derived(DERIVED_SIZE)
        velocities = floats[:, _VELOCITY:_VELOCITY + 3]
        if self._of_centers:
            velocities = transported(
                floats[:, _VELOCITY:_VELOCITY + 6],
                floats[:, _CENTER:_CENTER + 3] - floats[:, :3], is_finite=False)[:, :3]
        derived = (~has_box & np.isfinite(floats[:, _SIZE])).astype(np.uint8) * DERIVED_SIZE
        if whole.derived is not None:
            derived |= whole.derived
        begin = 0
        for rows, end in zip(block, ends, strict=True):
            rows.floats, rows.has_box = floats[begin:end], has_box[begin:end]
            rows.derived, rows.velocities = derived[begin:end], velocities[begin:end]
            begin = end

    def _set_accelerations(self, before: FrameRows | None, now: FrameRows,
                           after: FrameRows | None) -> None:
        """Set those that the source does not have; None for a frame of another run."""
        accelerations = now.floats[:, _ACCELERATION:_ACCELERATION + 3]
        (known_before, first, first_s), (known_after, last, last_s) = (
            self._neighbors(now, before), self._neighbors(now, after))
        with np.errstate(all='ignore'):
            found = (last - first) / (last_s - first_s)[:, None]
        if self._of_centers:
            found[~(known_before | known_after) & np.isfinite(first).all(axis=1)] = 0.0
        else:
            found[~(known_before & known_after)] = np.nan
        np.copyto(accelerations, found, where=np.isnan(accelerations).all(axis=1, keepdims=True))

    def _neighbors(self, now: FrameRows, other: FrameRows | None) -> tuple[Bools, Floats, Floats]:
        """Return velocities and times there of those actors of which it is true, or those now."""
        now_s = now.frame.game_time
        known: Bools = np.zeros(len(now.floats), np.bool_)
        times = np.full(len(now.floats), now_s)
        other_s = now_s if other is None else other.frame.game_time
        if other is None or not other.frame.n_actors or not (
                self._of_centers or abs(other_s - now_s) <= MAX_GAP_S):
            return known, now.velocities, times
        there, velocities, known = other.floats, other.velocities, np.logical_not(known)
        if other.actors is not now.actors:
            rows = _rows_of(now.actors, other.actors)
            there, velocities, known = there[rows], velocities[rows], rows >= 0
        known &= np.isfinite(velocities).all(axis=1)
        wild = known & jumps.are_impossible(there[:, :3] - now.floats[:, :3],
                                            velocities - now.velocities, abs(other_s - now_s))
        if wild.any():
            known &= ~wild
            self.n_impossible += np.count_nonzero(wild) * (other_s < now_s)
        if known.all():
            return known, velocities, np.full(len(known), other_s)
        return (known, np.where(known[:, None], velocities, now.velocities),
                np.where(known, other_s, times))

    def _fill(self, frame: Frame, classes: Kinds, floats: Floats) -> Bools:
        """Set all columns of frames but central differences; return which actors have a box."""
        usable = frame.bodies().usable
        floats[:, :_VELOCITY + 6] = frame.kinematics
        if frame.accelerations is not None:
            floats[:, _ACCELERATION:_ACCELERATION + 3] = frame.accelerations
        centers = centers_of(frame, self._default_sizes, classes)
        floats[:, _ANGLES:_ANGLES + 3] = np.where(
            usable[:, None], rotations.rpy_from_quaternion(centers.poses[:, 3:7]), np.nan)
        floats[:, _SPEED] = np.where(usable, np.einsum(
            'ij,ij->i', frame.velocity_xyz, centers.axes[:, :, 0]), np.nan) \
            if frame.forward_speed is None else frame.forward_speed
        have_centers = usable & (centers.have_boxes | (classes != UNKNOWN))
        floats[have_centers, _CENTER:_CENTER + 3] = centers.poses[have_centers, :3]
        floats[have_centers, _SIZE:_SIZE + 3] = centers.sizes[have_centers]
        return centers.have_boxes


def _are_alike(frame: Frame, other: Frame) -> bool:
    """Return whether two frames have the same parts, and can be in one block."""
    return all((getattr(frame, row.name) is None) is (getattr(other, row.name) is None)
               for row in fields.rows_of(Frame))


def _rows_of(actors: ActorColumns, others: ActorColumns) -> Rows:
    """Return (N,) int64, the row of each actor in another frame, -1 if it is not there."""
    rows = {int(id_): row for row, id_ in enumerate(others.ids)}
    return np.array([rows.get(int(id_), -1) for id_ in actors.ids], np.int64)
