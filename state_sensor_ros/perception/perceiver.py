# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Objects as the parameters ``perception.*`` describe a sensor.

Range, field of view and occlusion look at the truth; what remains may be missed, and is then off
by noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
import math
from typing import Final

import numpy as np

from state_sensor_ros.classes import CAR, CLASSES
from state_sensor_ros.frame import Bools, Floats, Frame, Rows
from state_sensor_ros.naming import Actor, ActorList
from state_sensor_ros.objects.frame_objects import FrameObjects
from state_sensor_ros.objects.object_maker import default_sizes, Objects
from state_sensor_ros.payloads import Report
from state_sensor_ros.perception.actor_noise import (
    ActorNoise,
    chances_of,
    Deviates,
    deviates_of,
    frame_number,
)
from state_sensor_ros.perception.ghosts import ghosts_of, NO_EGO, Viewpoint
from state_sensor_ros.perception.occlusion import visible_shares
from state_sensor_ros.perception.philox import Words
from state_sensor_ros.settings import Perception, Settings

# An edge is never shorter, m.
_LEAST_EDGE: Final = 0.1
# Rounding of a share that is 1.
_SHARE_ERROR: Final = 1e-9
# Ids of actors count up from 1.
_LEAST_GHOST_ID: Final = 2 ** 31


@dataclass(frozen=True, slots=True, eq=False)
class Perceived:
    """
    The objects of a frame that a sensor reports.

    ``truth`` all T objects as they are; ``objects`` the same as they are perceived, also where
    they are not seen; ``are_seen`` (T,) bool, None for all; ``turns`` (T,) by how much their yaw
    is off, rad, None for not at all; ``ghosts`` G names and ids that no actor of the frame has,
    ``ghost_objects`` their objects, whose ``rows`` are -1, None without any.
    """

    truth: Objects
    objects: Objects
    are_seen: Bools | None = None
    turns: Floats | None = None
    ghosts: tuple[Actor, ...] = ()
    ghost_objects: Objects | None = None

    def seen(self) -> Objects:
        """Return the objects that are seen, without ghosts."""
        return self.objects if self.are_seen is None else self.objects.at(self.are_seen)

    def reported(self) -> Objects:
        """Return the objects that are seen, and then the ghosts."""
        seen, ghosts = self.seen(), self.ghost_objects
        return seen if ghosts is None else Objects(*(
            np.concatenate((getattr(seen, name), getattr(ghosts, name))) for name in (
                'rows', 'classes', 'poses', 'axes', 'sizes', 'twists', 'accelerations')))


class Perceiver:
    """
    Perceive the objects of a frame, once for all topics.

    :param settings: parameters; :meth:`reconfigure` replaces the dynamic ones.
    :param objects: of the same frames.
    :param report: called with a kind and a line, once where the ego is missing.
    :ivar changes_who_is_there: whether objects may be missing, or ghosts be there.
    """

    def __init__(self, settings: Settings, objects: FrameObjects, report: Report) -> None:
        self._objects, self._report = objects, report
        self._noise = ActorNoise()
        self._is_reported = False
        self.reconfigure(settings)

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings``, which differ in dynamic parameters only, from the next frame on."""
        self._perception = settings.perception
        self._is_off = replace(self._perception, delay=0.0, seed=0) == Perception()
        self._has_noise = any((self._perception.position_std, self._perception.yaw_std,
                               self._perception.size_std, self._perception.velocity_std))
        self._car_size = default_sizes(settings)[CAR]
        classes = settings.object_classes
        self._has_ghosts = self._perception.ghosts > 0.0 and (
            not classes or CLASSES[CAR].name in classes)
        self.changes_who_is_there = self._has_ghosts or any((
            self._perception.range, self._perception.field_of_view, self._perception.occlusion,
            self._perception.missing))
        self._object_range = settings.object_range
        self._frame: Frame | None = None
        self._perceived: Perceived | None = None

    def of(self, frame: Frame, actor_list: ActorList) -> Perceived:
        """
        Return the perceived objects of a frame.

        :param frame: as for :meth:`FrameObjects.of`.
        :param actor_list: its actors.
        """
        if frame is not self._frame or self._perceived is None:
            objects = self._objects.of(frame, actor_list)
            self._frame = frame
            if self._is_off:
                self._perceived = Perceived(objects, objects)
            else:
                # Positions are finite, and may be large.
                with np.errstate(all='ignore'):
                    self._perceived = self._perceive(objects, frame, actor_list)
        return self._perceived

    def _perceive(self, objects: Objects, frame: Frame, actor_list: ActorList) -> Perceived:
        perception, number = self._perception, frame_number(frame.game_time)
        viewpoint = self._viewpoint(frame, actor_list)
        are_seen: Bools | None = np.ones(len(objects.rows), np.bool_)
        assert are_seen is not None
        if viewpoint is not None:
            self._look(objects, viewpoint, are_seen)
        words = self._noise.words(perception.seed, number, actor_list, objects.rows) \
            if self._has_noise or perception.missing else None
        if words is not None and perception.missing:
            are_seen &= chances_of(words) >= perception.missing
        if are_seen.all():
            are_seen = None
        perceived, turns = objects, None
        if words is not None and self._has_noise:
            perceived, turns = _noisy(objects, deviates_of(words), perception)
        if self._has_ghosts:
            ghosts, identities = self._ghosts(number, viewpoint)
            if len(identities):
                return Perceived(objects, perceived, are_seen, turns,
                                 _named(identities, actor_list), ghosts)
        return Perceived(objects, perceived, are_seen, turns)

    def _viewpoint(self, frame: Frame, actor_list: ActorList) -> Viewpoint | None:
        """Return where the ego is, None without one."""
        i_ego, perception = actor_list.i_ego, self._perception
        if i_ego >= 0 and frame.has_pose()[i_ego]:
            x, y, z, w = frame.orientation_xyzw[i_ego].tolist()
            # Of the x axis, whatever the length of the quaternion.
            return Viewpoint(frame.position_xyz[i_ego], math.atan2(
                2.0 * (x * y + z * w), x * x - y * y - z * z + w * w))
        if not self._is_reported and (
                perception.range or perception.field_of_view or perception.occlusion):
            self._is_reported = True
            self._report('perception', 'perception: found no ego with a pose, so range, '
                         'field_of_view and occlusion have no effect; expected an actor with '
                         'ego_tag (reported once)')
        return None

    def _look(self, objects: Objects, viewpoint: Viewpoint, are_seen: Bools) -> None:
        """Remove from ``are_seen`` what is too far, beside the field of view or hidden."""
        perception = self._perception
        ways = objects.poses[:, :3] - viewpoint.origin
        if perception.range:
            are_seen &= np.einsum('ij,ij->i', ways, ways) <= perception.range ** 2
        if 0.0 < perception.field_of_view < 360.0:
            ahead = np.array((math.cos(viewpoint.heading), math.sin(viewpoint.heading)))
            # The cosine of the angle, times the distance.
            limit = math.cos(math.radians(perception.field_of_view) / 2.0)
            are_seen &= ways[:, :2] @ ahead >= limit * np.hypot(ways[:, 0], ways[:, 1])
        if perception.occlusion:
            are_seen &= self._visible(objects.rows, viewpoint) \
                >= perception.occlusion - _SHARE_ERROR

    def _visible(self, rows: Rows, viewpoint: Viewpoint) -> Floats:
        """Return which share of the width of objects is seen; all objects hide others."""
        assert self._objects.all_objects is not None
        are_objects, centres = self._objects.all_objects
        headings = centres.axes[are_objects, :2, 0]
        lengths = np.hypot(headings[:, 0], headings[:, 1])
        # Of an actor on its nose any direction will do.
        headings = np.where(lengths[:, None] > 1e-6, headings, (1.0, 0.0))
        headings /= np.where(lengths > 1e-6, lengths, 1.0)[:, None]
        shares = np.zeros(len(are_objects))
        shares[are_objects] = visible_shares(
            centres.poses[are_objects, :2] - viewpoint.origin[:2], headings,
            centres.sizes[are_objects, :2])
        return shares[rows]

    def _ghosts(self, number: int, viewpoint: Viewpoint | None) -> tuple[Objects, Words]:
        perception = self._perception
        ghosts, identities = ghosts_of(
            perception.seed, number, perception.ghosts, viewpoint or NO_EGO,
            range_m=perception.range, field_of_view=perception.field_of_view, size=self._car_size)
        if viewpoint is None or not self._object_range:
            return ghosts, identities
        ways = ghosts.poses[:, :3] - viewpoint.origin
        are_near = np.einsum('ij,ij->i', ways, ways) <= self._object_range ** 2
        return ghosts.at(are_near), identities[are_near]


def _noisy(truth: Objects, deviates: Deviates,
           perception: Perception) -> tuple[Objects, Floats | None]:
    """Return objects that are off by noise, and by how much their yaw is."""
    poses, axes, sizes, twists, turns = truth.poses, truth.axes, truth.sizes, truth.twists, None
    if perception.position_std or perception.yaw_std:
        poses = poses.copy()
        poses[:, :2] += perception.position_std * deviates.position.T
    if perception.yaw_std:
        turns = perception.yaw_std * deviates.yaw
        turn(poses[:, 3:], turns)
        rotations = np.empty((len(turns), 2, 2))
        rotations[:, 0, 0] = rotations[:, 1, 1] = np.cos(turns)
        rotations[:, 1, 0] = np.sin(turns)
        rotations[:, 0, 1] = -rotations[:, 1, 0]
        axes = axes.copy()
        axes[:, :2] = rotations @ axes[:, :2]
    if perception.size_std:
        sizes = np.maximum(sizes + perception.size_std * deviates.size.T, _LEAST_EDGE)
    if perception.velocity_std:
        twists = twists.copy()
        twists[:, :2] += perception.velocity_std * deviates.velocity.T
    return replace(truth, poses=poses, axes=axes, sizes=sizes, twists=twists), turns


def turn(orientations_xyzw: Floats, angles: Floats) -> None:
    """
    Turn rotations about the global z axis, in place.

    :param orientations_xyzw: (..., 4) float64.
    :param angles: (...) float64, rad.
    """
    # The product with the half turn, in complex numbers: (x + i y) h and (z + i w) conj(h).
    half_turns = np.exp(0.5j * angles)
    orientations_xyzw[..., 0:2].view(np.complex128)[..., 0] *= half_turns
    orientations_xyzw[..., 2:4].view(np.complex128)[..., 0] *= half_turns.conj()


def _named(identities: Words, actor_list: ActorList) -> tuple[Actor, ...]:
    """Return a name and an id for each ghost, neither of which an actor of the frame has."""
    ghosts = []
    for identity in identities.tolist():
        name = f'ghost_{identity:016x}'
        while name in actor_list.names:
            name += '_'
        ghosts.append(Actor(name, '', '', _LEAST_GHOST_ID + identity % _LEAST_GHOST_ID, False))
    return tuple(ghosts)
