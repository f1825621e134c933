# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Objects of a frame, of which every output for autonomy stacks is a projection.

An object is an actor other than the ego that is a vehicle, has a box, or has the tag of a class.
Its reference point is the center of its largest box, its axes are those of the actor. Boxes of
vehicles have permuted axes (doc/protocol/units.md#boxes): sizes are turned into the actor's axes::

    box   x 1.8  y 1.5  z 4.5         |R_actor^T R_box|  0 0 1     size  4.5  length, along x
    whose z axis is the actor's x                        1 0 0           1.8  width, along y
    and whose x axis is the actor's y                    0 1 0           1.5  height, along z
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
import math
from typing import NamedTuple

import numpy as np

from state_sensor_ros import jumps, naming, rotations
from state_sensor_ros.classes import CLASSES, classes_of, UNKNOWN
from state_sensor_ros.frame import Bools, Floats, Frame, Kinds, Rows
from state_sensor_ros.settings import Settings

# Longest time between two frames for which accelerations are computed, s.
MAX_GAP_S = 1.0


@dataclass(frozen=True, eq=False)
class Objects:
    """K objects of a frame, in the order of its actors; SI units, global frame."""

    rows: Rows  # (K,) int64 of the actors
    classes: Kinds  # (K,) uint8, index in CLASSES
    poses: Floats  # (K, 7) center xyz (m) and orientation xyzw of the actor, of unit length
    axes: Floats  # (K, 3, 3) rotation matrices of these
    sizes: Floats  # (K, 3) length, width, height (m) along the actor's axes
    twists: Floats  # (K, 6) velocity of the center (m/s) and angular velocity (rad/s)
    # (K, 6) their change (m/s2, rad/s2); both in the axes of the global frame, NaN if unknown.
    accelerations: Floats

    def at(self, rows: Rows | Bools | slice) -> Objects:
        """Return some of the objects; ``rows``: index of each, (K,) bool, or a slice."""
        return Objects(*[getattr(self, name)[rows] for name in _MEMBERS])

    def followed_by(self, others: Objects) -> Objects:
        return Objects(*[np.concatenate((getattr(self, name), getattr(others, name)))
                         for name in _MEMBERS])

    def is_known(self) -> bool:
        """Return whether all twists and accelerations are known."""
        return math.isfinite(self.twists.sum() + self.accelerations.sum())

    @cached_property
    def own_motion(self) -> tuple[Floats, Floats]:
        """Twists and accelerations in the axes of their objects, (K, 6) each; computed once."""
        return (rotations.motion_in_axes(self.twists, self.axes),
                rotations.motion_in_axes(self.accelerations, self.axes))


_MEMBERS = tuple(each.name for each in fields(Objects))


@dataclass(frozen=True, slots=True, eq=False)
class Centers:
    """Centers and sizes of the N actors of a frame, whether they are objects or not."""

    poses: Floats  # (N, 7)
    axes: Floats  # (N, 3, 3)
    sizes: Floats  # (N, 3) as in :class:`Objects`
    arms: Floats  # (N, 3) from the actor's origin to the center, m, axes of the global frame
    have_boxes: Bools  # (N,) bool. Rows of actors without a usable pose have no meaning


def centers_of(frame: Frame, default_sizes: Floats, classes: Kinds) -> Centers:
    """Return center and size of each actor."""
    # default_sizes: (len(CLASSES), 3) float64, length, width, height (m) without a box.
    # classes: (N,) uint8, index in CLASSES.
    n_actors = frame.n_actors
    with _NOTHING if frame.bodies().is_plain else np.errstate(all='ignore'):
        unit = frame.bodies().normalized()
        matrices = rotations.global_from_unit(unit[:, 3:7])
        axes, poses = matrices[:n_actors], unit[:n_actors, :7].copy()
        largest = frame.largest_boxes()
        have_boxes = np.zeros(n_actors, np.bool_)
        sizes = default_sizes[classes]
        # Without a box the actor stands on its origin.
        arms = axes[:, :, 2] * (0.5 * sizes[:, 2:])
        poses[:, :3] += arms
        if len(largest):
            assert frame.boxes is not None
            owners = as_slice(frame.boxes.actor[largest])
            boxes = as_slice(n_actors + largest)
            have_boxes[owners] = True
            relative = axes[owners].transpose(0, 2, 1) @ matrices[boxes]
            # Exactly: sizes and centers of a table remain the same when it becomes frames again.
            relative[np.logical_and.reduce(
                unit[boxes, 3:7] == unit[owners, 3:7], axis=1)] = _IDENTITY
            sizes[owners] = (np.abs(relative) @ unit[boxes, 7:10, None])[:, :, 0]
            arms[owners] = unit[boxes, 0:3] - unit[owners, 0:3]
            poses[owners, :3] = unit[boxes, 0:3]
    return Centers(poses, axes, sizes, arms, have_boxes)


def as_slice(rows: Rows) -> Rows | slice:
    """Return rows as a slice, which needs no copy, if they are consecutive."""
    # rows: (R,) int64, ascending.
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


_IDENTITY: Floats = np.eye(3)
_NOTHING = nullcontext()


@lru_cache(maxsize=4)
def _classes_of(actor_list: naming.ActorList) -> Kinds:
    """Return (N,) uint8, the class of each actor, index in CLASSES; computed once for a list."""
    return classes_of(actor_list.kinds, actor_list.tags)


class ObjectMaker:
    """Make the objects of consecutive frames, when the first topic needs them."""

    # all_objects: of the last frame: (N,) bool, which actors are objects, including those that
    # object_classes and object_range leave out; and the centers of all actors.
    # everyone: all N actors of the last frame as objects, with the ego.

    everyone: Objects

    def __init__(self, settings: Settings) -> None:
        self._made: tuple[Frame, Objects] | None = None
        self._last: _Motion | None = None
        self.all_objects: tuple[Bools, Centers] | None = None
        self.reconfigure(settings)

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings``, which differ in dynamic parameters only, from the next frame on."""
        self._settings = settings

    def restart(self) -> None:
        """Start a new run of the simulator: the next frame has no accelerations."""
        self._last = None

    def of(self, frame: Frame, actor_list: naming.ActorList) -> Objects:
        """Return the objects of a frame."""
        # frame: frame with boxes: the last one again, or one whose clock has advanced.
        if self._made is None or frame is not self._made[0]:
            self._made = frame, self._make(frame, actor_list)
        return self._made[1]

    def _make(self, frame: Frame, actor_list: naming.ActorList) -> Objects:
        settings, classes = self._settings, _classes_of(actor_list)
        with np.errstate(all='ignore'):
            centers = centers_of(frame, default_sizes(settings), classes)
            twists = center_twists(frame, centers)
            last, self._last = self._last, _Motion(frame.game_time, actor_list, twists)
            have_poses, i_ego = frame.has_pose() & naming.are_real(actor_list), actor_list.i_ego
            are_objects = have_poses & ((classes != UNKNOWN) | centers.have_boxes)
            if i_ego >= 0:
                are_objects[i_ego] = False
            self.all_objects = are_objects, centers
            names = settings.object_classes
            are_chosen = are_objects & np.array(
                [not names or each.name in names for each in CLASSES])[classes]
            if i_ego >= 0 and settings.object_range and have_poses[i_ego]:
                distances = centers.poses[:, :3] - frame.position_xyz[i_ego]
                are_chosen &= np.einsum('ij,ij->i', distances, distances) \
                    <= settings.object_range ** 2
            rows = are_chosen.nonzero()[0]
            accelerations = _accelerations(self._last, last)
            if frame.accelerations is not None:
                accelerations[:, :3] = np.where(np.isfinite(frame.accelerations),
                                                frame.accelerations, accelerations[:, :3])
        self.everyone = Objects(np.arange(frame.n_actors), classes, centers.poses, centers.axes,
                                centers.sizes, twists, accelerations)
        return self.everyone.at(as_slice(rows))


def default_sizes(settings: Settings) -> Floats:
    """Return the sizes of objects without a box."""
    # Returns (len(CLASSES), 3) float64, length, width, height, m.
    sizes = np.zeros((len(CLASSES), 3))
    given = np.array(settings.default_sizes).reshape(-1, 3)
    sizes[:len(given)] = given
    return sizes


class _Motion(NamedTuple):
    """Velocities of the N actors of a frame."""

    game_time: float
    actor_list: naming.ActorList
    twists: Floats  # (N, 6) as in :class:`Objects`


def center_twists(frame: Frame, centers: Centers) -> Floats:
    """Return (N, 6) velocities of the centers and angular velocities, NaN if unknown."""
    if frame.forward_speed is not None:
        # Without angular velocities those of the origins are the same.
        return _forward_twists(frame.forward_speed, centers.axes)
    return transported(frame.kinematics[:, 7:], centers.arms, is_finite=frame.bodies().is_finite)


def _forward_twists(forward_speed: Floats, axes: Floats) -> Floats:
    twists = np.full((len(forward_speed), 6), np.nan)
    twists[:, :3] = forward_speed[:, None] * axes[:, :, 0]
    return twists


def origin_twists(frame: Frame) -> Floats:
    """Return (N, 6) velocities of the actors' origins and angular velocities, NaN if unknown."""
    if frame.forward_speed is not None:
        return _forward_twists(frame.forward_speed,
                               rotations.global_from_body(frame.orientation_xyzw))
    twists = frame.kinematics[:, 7:]
    known: Floats = np.where(np.isfinite(twists), twists, np.nan)
    return known


def transported(twists: Floats, arms: Floats, *, is_finite: bool) -> Floats:
    """Move velocities to other points of their bodies: v + omega x arm."""
    # twists: (N, 6) float64, velocity and angular velocity, NaN if unknown; the velocity of a body
    # whose angular velocity is unknown stays.
    # arms: (N, 3) float64, from the old to the new point, m, in the same axes.
    # Returns (N, 6) float64, a copy.
    moved = twists.copy() if is_finite else np.where(np.isfinite(twists), twists, np.nan)
    rates = moved[:, 3:] if is_finite else np.nan_to_num(moved[:, 3:])
    (x, y, z), (a, b, c) = rates.T, arms.T
    moved[:, 0] += y * c - z * b
    moved[:, 1] += z * a - x * c
    moved[:, 2] += x * b - y * a
    return moved


def _accelerations(now: _Motion, last: _Motion | None) -> Floats:
    """Return (N, 6) accelerations since the last frame, NaN for actors that it does not have."""
    accelerations = np.full_like(now.twists, np.nan)
    elapsed = math.nan if last is None else now.game_time - last.game_time
    # A comparison with NaN is false.
    if last is None or not 0.0 < elapsed <= MAX_GAP_S:
        return accelerations
    if last.actor_list is now.actor_list:
        return jumps.possible((now.twists - last.twists) / elapsed)
    before = {actor: i for i, actor in enumerate(last.actor_list.actors)}
    pairs = [(i, before[actor]) for i, actor in enumerate(now.actor_list.actors)
             if actor in before]
    if pairs:
        rows, old_rows = np.array(pairs).T
        accelerations[rows] = (now.twists[rows] - last.twists[old_rows]) / elapsed
    return jumps.possible(accelerations)
