# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The actors of consecutive frames with what is computed of them, for tables and traces.

That is stamps, ids and classes, angles, speeds, centers and sizes, and accelerations. The last
need the frame after, so that rows are completed at least one frame later::

    frame       0    1    2 repeated    3
    completed        0                  1, 2
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
import math

import numpy as np
import numpy.typing as npt

from state_sensor_ros import errors, fields, jumps, naming, rotations, texts
from state_sensor_ros.classes import classes_of, UNKNOWN
from state_sensor_ros.frame import Bools, DERIVED_SIZE, Floats, Frame, Kinds
from state_sensor_ros.objects.object_maker import centers_of, default_sizes, MAX_GAP_S, transported
from state_sensor_ros.pipeline.stamps import Stamper, Step
from state_sensor_ros.settings import DEFAULTS, Settings

# Columns of the block of numbers.
FLOAT_NAMES = (
    'x', 'y', 'z', 'qx', 'qy', 'qz', 'qw', 'vx', 'vy', 'vz', 'wx', 'wy', 'wz', 'roll', 'pitch',
    'yaw', 'ax', 'ay', 'az', 'speed', 'center_x', 'center_y', 'center_z', 'length', 'width',
    'height')


def _group(first: str, last: str) -> slice:
    return slice(FLOAT_NAMES.index(first), FLOAT_NAMES.index(last) + 1)


KINEMATICS, VELOCITY, TURNING = _group('x', 'wz'), _group('vx', 'vz'), _group('wx', 'wz')
TWIST, ANGLES, ACCELERATION = _group('vx', 'wz'), _group('roll', 'yaw'), _group('ax', 'az')
BOX, CENTER = _group('center_x', 'height'), _group('center_x', 'center_z')
SIZE, SPEED = _group('length', 'height'), FLOAT_NAMES.index('speed')
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
    number: int  # of the steps of the clock so far; a restart counts as two
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
        self._registry = naming.Registry(settings)
        self._actors: ActorColumns | None = None
        self._n_frames = self._n_steps = 0
        self._block: list[FrameRows] = []
        # The last frame that is complete and no repeated one, and those that are not complete.
        self._last: list[FrameRows] = []
        self._waiting: list[FrameRows] = []

    @property
    def notes(self) -> list[str]:
        """Return a line about the motions that are left out, if there are any."""
        text = (f'{texts.counted(self.n_impossible, "motion")} beyond {jumps.MAX_SPEED:g} m/s or '
                f'{jumps.MAX_ACCELERATION:g} m/s2, left out of the accelerations')
        return [text] if self.n_impossible else []

    def add(self, frame: Frame) -> list[FrameRows]:
        """Add a frame; ``frame``: next frame in time; SI, REP-103 axes."""
        complete = [] if not self._block or parts_of(self._block[0].frame) == parts_of(frame) \
            else self.flush()
        self._block.append(self._named(frame))
        n_rows = sum([rows.frame.n_actors for rows in self._block])
        if n_rows >= _BLOCK_ROWS or len(self._block) >= _MAX_BLOCK_FRAMES:
            complete += self.flush()
        return complete

    def flush(self, *, is_end: bool = False) -> list[FrameRows]:
        """Return the rows of the frames that are complete, at the end of all frames."""
        if self._block:
            self._compute(self._block)
        frames, self._block = self._waiting + self._block, []
        steps = [i for i, rows in enumerate(frames) if rows.step is not Step.REPEATED]
        end = len(frames) if is_end or len(frames) > (steps or [0])[-1] + _MAX_REPEATED \
            else (steps or [0])[-1]
        complete, self._waiting = frames[:end], frames[end:]
        new = [frames[i] for i in steps if i < end]
        self._set_accelerations(self._last, new, self._waiting[:1])
        self._last = new[-1:] or self._last
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
        self._n_steps += {Step.REPEATED: 0, Step.ADVANCED: 1, Step.RESTARTED: 2}[step]
        return FrameRows(frame, self._n_frames - 1, stamp_ns, step, self._n_steps, self._actors)

    def _compute(self, block: list[FrameRows]) -> None:
        """Set the computed columns of the frames of a block, but central differences."""
        frames = [rows.frame for rows in block]
        ends = np.cumsum([frame.n_actors for frame in frames]).tolist()
        whole = frames[0] if len(frames) == 1 else fields.joined(frames, [0, *ends[:-1]])
        floats = np.full((whole.n_actors, len(FLOAT_NAMES)), np.nan)
        with np.errstate(all='ignore'):
            has_box = self._fill(
                whole, np.concatenate([rows.actors.classes for rows in block]), floats)
        has_box &= ~whole.is_derived(DERIVED_SIZE)
        velocities = floats[:, VELOCITY]
        if self._of_centers:
            velocities = transported(
                floats[:, TWIST], floats[:, CENTER] - floats[:, :3], is_finite=False)[:, :3]
        derived = (~has_box & np.isfinite(floats[:, SIZE.start])).astype(np.uint8) * DERIVED_SIZE
        if whole.derived is not None:
            derived |= whole.derived
        begin = 0
        for rows, end in zip(block, ends, strict=True):
            rows.floats, rows.has_box = floats[begin:end], has_box[begin:end]
            rows.derived, rows.velocities = derived[begin:end], velocities[begin:end]
            begin = end

    @np.errstate(all='ignore')
    def _set_accelerations(self, last: list[FrameRows], new: list[FrameRows],
                           following: list[FrameRows]) -> None:
        """Set those in ``new`` that the source does not have, also by the frames beside them."""
        frames = [*last, *new, *following]
        counts = [len(rows.floats) for rows in frames]
        if not new or not any(counts):
            return
        ids = np.concatenate([rows.actors.ids for rows in frames])
        number = np.repeat([rows.number for rows in frames], counts)
        # One actor after the other, each over time.
        order = np.lexsort((number, ids))
        ids, number, time_s, places, velocities = (column[order] for column in (
            ids, number, np.repeat([rows.frame.game_time for rows in frames], counts),
            np.concatenate([rows.floats[:, :3] for rows in frames]),
            np.concatenate([rows.velocities for rows in frames])))
        step_s, is_known = np.diff(time_s), np.isfinite(velocities).all(axis=1)
        is_pair = (np.diff(ids) == 0) & (np.diff(number) == 1) & (
            step_s <= (math.inf if self._of_centers else MAX_GAP_S))
        is_wild = is_pair & jumps.are_impossible(
            np.diff(places, axis=0), np.diff(velocities, axis=0), step_s)
        self.n_impossible += np.count_nonzero(is_wild & (number[:-1] >= new[0].number))
        is_pair &= ~is_wild
        # Whether the rows before and after are those of the neighbors in time.
        before = np.append(False, is_pair & is_known[:-1])
        after = np.append(is_pair & is_known[1:], False)
        i, j = np.arange(len(ids)) - before, np.arange(len(ids)) + after
        found = (velocities[j] - velocities[i]) / (time_s[j] - time_s[i])[:, None]
        if self._of_centers:
            found[~(before | after) & is_known] = 0.0
        else:
            found[~(before & after)] = np.nan
        found[order] = found.copy()
        for rows, end in zip(frames, np.cumsum(counts).tolist(), strict=True):
            if new[0].number <= rows.number <= new[-1].number:
                target = rows.floats[:, ACCELERATION]
                np.copyto(target, found[end - len(target):end],
                          where=np.isnan(target).all(axis=1, keepdims=True))

    def _fill(self, frame: Frame, classes: Kinds, floats: Floats) -> Bools:
        """Set all columns of frames but central differences; return which actors have a box."""
        usable = frame.bodies().usable
        floats[:, KINEMATICS] = frame.kinematics
        if frame.accelerations is not None:
            floats[:, ACCELERATION] = frame.accelerations
        centers = centers_of(frame, self._default_sizes, classes)
        floats[:, ANGLES] = np.where(
            usable[:, None], rotations.rpy_from_quaternion(centers.poses[:, 3:7]), np.nan)
        floats[:, SPEED] = np.where(usable, np.einsum(
            'ij,ij->i', frame.velocity_xyz, centers.axes[:, :, 0]), np.nan) \
            if frame.forward_speed is None else frame.forward_speed
        have_centers = usable & (centers.have_boxes | (classes != UNKNOWN))
        floats[have_centers, CENTER] = centers.poses[have_centers, :3]
        floats[have_centers, SIZE] = centers.sizes[have_centers]
        return centers.have_boxes


def parts_of(frame: Frame) -> list[bool]:
    """Return which parts a frame has; only frames with the same can be joined."""
    return [getattr(frame, row.name) is not None for row in fields.rows_of(Frame)]
