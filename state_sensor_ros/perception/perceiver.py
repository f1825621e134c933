# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Objects as the parameters ``perception.*`` describe a sensor, and frames of them.

Range, field of view and occlusion apply to the ground truth; what remains may be missed, and has
noise added. False positives are cars that do not exist.

Random numbers depend on the seed, a raw name and the game time alone. Those of an actor are a hash
of all three (BLAKE2b): they depend neither on the other actors nor on which of them are used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
import math
import struct
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros import fields, jumps, source
from state_sensor_ros.classes import CAR, CLASSES
from state_sensor_ros.frame import Boxes, Floats, Frame, KIND_VEHICLE, NO_BOXES, NS_PER_S, Rows
from state_sensor_ros.naming import Actor, ActorList, Registry
from state_sensor_ros.objects import object_maker, predicted_paths
from state_sensor_ros.objects.object_maker import ObjectMaker, Objects
from state_sensor_ros.perception.occlusion import visible_shares
from state_sensor_ros.settings import Perception, Settings

Words = npt.NDArray[np.uint64]
# Origin of the ego, (3,) m, and yaw of its x axis, rad, in the global frame.
Viewpoint = tuple[Floats, float]

_BYTE_SHARES: Floats = 2.0 ** np.array((-8.0, -16.0, -24.0, -32.0))
# Words of 64 bits for each actor and frame.
_N_WORDS: Final = 4
# Greatest distance of a false positive if the range is not limited, m.
_RANGE_M: Final = 100.0
# Assumed: a false car moves at up to this speed, m/s, along its length.
_MAX_SPEED: Final = 15.0
# An edge is never shorter, m.
_LEAST_EDGE: Final = 0.1
# Rounding of a share that is 1.
_SHARE_ERROR: Final = 1e-9
# Cosine of the pitch from which on an actor has no direction in the plane.
_UPRIGHT: Final = 1e-6
# Ids of actors count up from 1.
_LEAST_FALSE_ID: Final = 2 ** 31
_FALSE_PREFIX, _FALSE_TAGS, _BOX_NAME = 'ghost_', ('vehicle', 'car'), 'perceived'


def actor_words(seed: int, number: int, actor_list: ActorList, rows: Rows) -> Words:
    """
    Return the random words of some actors.

    :param seed: parameter ``perception.seed``.
    :param number: that of the frame.
    :param rows: (R,) int64, rows of those actors in the frame.
    :returns: (4, R) uint64.
    """
    # A copy of the hash of the frame takes half the time of another hash of both.
    of_frame, digests = blake2b(struct.pack('<QQ', seed, number), digest_size=8 * _N_WORDS), []
    for row in rows.tolist():
        of_actor = of_frame.copy()
        of_actor.update(actor_list.names[row].encode('utf-8', 'surrogatepass'))
        digests.append(of_actor.digest())
    return np.frombuffer(b''.join(digests), '<u8').astype(np.uint64).reshape(-1, _N_WORDS).T


def normal_deviates(words: Words) -> Floats:
    """
    Return two numbers of the normal distribution for each word (Box and Muller, 1958).

    :param words: (W, R) uint64; their upper 56 bits are used, 28 for each number.
    :returns: (2 W, R) float64; those of word w are in rows w and W + w.
    """
    # Half a step above 0, which has no logarithm; 28 bits reach 6.3 standard deviations.
    chances = ((words >> np.uint64(36)).astype(np.float64) + 0.5) * 2.0 ** -28
    angles = ((words >> np.uint64(8)) & np.uint64(0xFFFFFFF)).astype(np.float64) \
        * (2.0 * np.pi * 2.0 ** -28)
    deviates: Floats = np.concatenate((np.cos(angles), np.sin(angles)))
    deviates.reshape(2, *words.shape)[:] *= np.sqrt(-2.0 * np.log(chances))
    return deviates


def chances_of(words: Words) -> Floats:
    """Return (R,) numbers from 0 to below 1, of the lower 8 bits of (4, R) words."""
    return _BYTE_SHARES @ (words & np.uint64(0xFF)).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Perceived:
    """The objects of a frame that a sensor reports."""

    truth: Objects  # all T objects as they are
    # The R that are reported: S that are seen, in the same order, and then G false positives,
    # whose ``rows`` are -1.
    objects: Objects
    true_twists: Floats  # (R, 6) their velocities without noise
    seen: Rows | None = None  # (S,) int64 which of the T are seen, None for all
    turns: Floats | None = None  # (S,) error of the yaw, rad, None for no error
    is_noisy: bool = False  # whether poses have noise
    false_positives: tuple[Actor, ...] = ()  # G names and ids that no actor of the frame has

    def seen_objects(self) -> Objects:
        """Return the objects that are seen, as they are perceived, without false positives."""
        return self.objects.at(slice(len(self.objects.rows) - len(self.false_positives)))

    def false_objects(self) -> Objects:
        return self.objects.at(slice(len(self.objects.rows) - len(self.false_positives), None))


class Perceiver:
    """Perceive the objects of a frame, once for all topics."""

    def __init__(self, settings: Settings, objects: ObjectMaker, report: source.Report) -> None:
        # Each text is reported once.
        self._objects, self._report = objects, cache(report)
        self.reconfigure(settings)

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings``, which differ in dynamic parameters only, from the next frame on."""
        self._settings = settings
        self._last: tuple[Frame, Perceived] | None = None

    def of(self, frame: Frame, actor_list: ActorList) -> Perceived:
        if self._last is None or frame is not self._last[0]:
            objects = self._objects.of(frame, actor_list)
            # Positions are finite, and may be large.
            with np.errstate(all='ignore'):
                self._last = frame, self._perceive(objects, frame, actor_list)
        return self._last[1]

    def _perceive(self, truth: Objects, frame: Frame, actor_list: ActorList) -> Perceived:
        settings, perception = self._settings, self._settings.perception
        seen: Rows = np.arange(len(truth.rows))
        turns, false_positives = None, tuple[Actor, ...]()
        # A frame is known by its game time, ns.
        time_ns = frame.game_time * NS_PER_S
        number = round(time_ns) % 2 ** 64 if math.isfinite(time_ns) else 0
        looks = bool(perception.range or perception.field_of_view or perception.occlusion)
        is_noisy = any((perception.position_std, perception.yaw_std, perception.size_std,
                        perception.velocity_std))
        invents = perception.ghosts > 0.0 and (
            not settings.object_classes or CLASSES[CAR].name in settings.object_classes)
        viewpoint = self._viewpoint(frame, actor_list, looks) if looks or invents else None
        if viewpoint is not None and looks:
            seen = self._in_view(truth, viewpoint)
        if is_noisy or perception.missing:
            words = actor_words(perception.seed, number, actor_list, truth.rows[seen])
            found = (chances_of(words) >= perception.missing).nonzero()[0]
            seen, words = seen[found], words[:, found]
        are_all = len(seen) == len(truth.rows)
        objects = truth if are_all else truth.at(seen)
        twists = objects.twists
        if is_noisy:
            objects, turns = _noisy(objects, normal_deviates(words), perception)
        if invents:
            ghosts, false_positives = self._invented(number, viewpoint, actor_list)
            if false_positives:
                objects = objects.followed_by(ghosts)
                twists = np.concatenate((twists, ghosts.twists))
        return Perceived(truth, objects, twists, None if are_all else seen, turns, is_noisy,
                         false_positives)

    def _viewpoint(self, frame: Frame, actor_list: ActorList, looks: bool) -> Viewpoint | None:
        """Return the viewpoint of the ego, None without one."""
        i_ego = actor_list.i_ego
        if i_ego >= 0 and frame.has_pose()[i_ego]:
            x, y, z, w = frame.orientation_xyzw[i_ego].tolist()
            # Of the x axis, whatever the length of the quaternion.
            return frame.position_xyz[i_ego], math.atan2(
                2.0 * (x * y + z * w), x * x - y * y - z * z + w * w)
        if looks:
            self._report('perception', 'perception: found no ego with a pose, so range, '
                         'field_of_view and occlusion have no effect; expected an actor with '
                         'ego_tag (reported once)')
        return None

    def _in_view(self, objects: Objects, viewpoint: Viewpoint) -> Rows:
        """Return the objects that are near enough, in the field of view and not hidden."""
        perception, (origin, heading) = self._settings.perception, viewpoint
        ways = objects.poses[:, :3] - origin
        are_seen = np.ones(len(ways), np.bool_)
        if perception.range:
            are_seen &= np.einsum('ij,ij->i', ways, ways) <= perception.range ** 2
        if 0.0 < perception.field_of_view < 360.0:
            ahead = np.array((math.cos(heading), math.sin(heading)))
            # The cosine of the angle, times the distance.
            limit = math.cos(math.radians(perception.field_of_view) / 2.0)
            are_seen &= ways[:, :2] @ ahead >= limit * np.hypot(ways[:, 0], ways[:, 1])
        seen: Rows = are_seen.nonzero()[0]
        if perception.occlusion and len(seen):
            seen = seen[self._visible(objects.rows[seen], origin)
                        >= perception.occlusion - _SHARE_ERROR]
        return seen

    def _visible(self, rows: Rows, origin: Floats) -> Floats:
        """Return which share of the width of objects, (S,), is seen; all objects hide others."""
        assert self._objects.all_objects is not None
        are_objects, centers = self._objects.all_objects
        all_rows = are_objects.nonzero()[0]
        chosen = object_maker.as_slice(all_rows)
        headings = centers.axes[chosen, :2, 0]
        lengths = np.hypot(headings[:, 0], headings[:, 1])[:, None]
        # Of an actor on its nose any direction will do.
        headings = np.where(lengths < _UPRIGHT, (1.0, 0.0), headings / np.maximum(
            lengths, _UPRIGHT))
        wanted = np.searchsorted(all_rows, rows)
        return visible_shares(
            centers.poses[chosen, :2] - origin[:2], headings, centers.sizes[chosen, :2],
            wanted)[wanted]

    def _invented(self, number: int, viewpoint: Viewpoint | None,
                  actor_list: ActorList) -> tuple[Objects, tuple[Actor, ...]]:
        """Draw G false objects, uniformly in the field of view, and their names and ids."""
        settings, perception = self._settings, self._settings.perception
        origin, heading = viewpoint or (np.zeros(3), 0.0)
        size = object_maker.default_sizes(settings)[CAR]
        random = np.random.Generator(np.random.Philox(
            key=perception.seed, counter=(0, number, 0, 0)))
        n_false = int(random.poisson(perception.ghosts))
        share, side, yaw, pace = random.random((4, n_false))
        distances = (perception.range or _RANGE_M) * np.sqrt(share)
        directions = heading + math.radians(perception.field_of_view or 360.0) * (side - 0.5)
        angles = np.array((directions, np.pi * yaw, 2.0 * np.pi * yaw))
        cosines, sines = np.cos(angles), np.sin(angles)
        poses, twists, axes = (np.zeros((n_false, *shape)) for shape in ((7,), (6,), (3, 3)))
        poses[:, 0] = origin[0] + distances * cosines[0]
        poses[:, 1] = origin[1] + distances * sines[0]
        # They stand on the ground of the ego.
        poses[:, 2] = origin[2] + size[2] / 2.0
        poses[:, 5], poses[:, 6] = sines[1], cosines[1]
        axes[:, 0, 0] = axes[:, 1, 1] = cosines[2]
        axes[:, 1, 0], axes[:, 0, 1], axes[:, 2, 2] = sines[2], -sines[2], 1.0
        twists[:, :2] = (_MAX_SPEED * pace)[:, None] * axes[:, :2, 0]
        objects = Objects(np.full(n_false, -1), np.full(n_false, CAR, np.uint8), poses, axes,
                          np.tile(size, (n_false, 1)), twists, np.zeros((n_false, 6)))
        identities = random.integers(2 ** 64 - 1, size=n_false, dtype=np.uint64, endpoint=True)
        if viewpoint is not None and settings.object_range:
            ways = poses[:, :3] - origin
            are_near = np.einsum('ij,ij->i', ways, ways) <= settings.object_range ** 2
            objects, identities = objects.at(are_near), identities[are_near]
        false_positives = []
        for identity in identities.tolist():
            while (name := f'{_FALSE_PREFIX}{identity:016x}') in actor_list.names:
                identity = (identity + 1) % 2 ** 64
            false_positives.append(
                Actor(name, '', '', _LEAST_FALSE_ID + identity % _LEAST_FALSE_ID, False))
        return objects, tuple(false_positives)


def _noisy(truth: Objects, deviates: Floats,
           perception: Perception) -> tuple[Objects, Floats | None]:
    """Return objects with noise, and the errors of their yaw; ``deviates``: (8, R) float64."""
    poses, axes, sizes, twists, turns = truth.poses, truth.axes, truth.sizes, truth.twists, None
    if perception.position_std or perception.yaw_std:
        poses = poses.copy()
        poses[:, :2] += perception.position_std * deviates[0::4].T
    if perception.yaw_std:
        turns = perception.yaw_std * deviates[7]
        turn(poses[:, 3:], turns)
        cosines, sines = np.cos(turns)[:, None], np.sin(turns)[:, None]
        axes, (true_x, true_y) = axes.copy(), (axes[:, 0], axes[:, 1])
        axes[:, 0] = cosines * true_x - sines * true_y
        axes[:, 1] = sines * true_x + cosines * true_y
    if perception.size_std:
        sizes = np.maximum(sizes + perception.size_std * deviates[[2, 6, 3]].T, _LEAST_EDGE)
    if perception.velocity_std:
        twists = twists.copy()
        twists[:, :2] += perception.velocity_std * deviates[1::4].T
    return Objects(truth.rows, truth.classes, poses, axes, sizes, twists,
                   truth.accelerations), turns


def turn(orientations_xyzw: Floats, angles: Floats) -> None:
    """Turn rotations about the global z axis, in place; ``angles``: (...) float64, rad."""
    # The product with the half turn, in complex numbers: (x + i y) h and (z + i w) conj(h).
    half_turns = np.exp(0.5j * angles)
    orientations_xyzw[..., 0:2].view(np.complex128)[..., 0] *= half_turns
    orientations_xyzw[..., 2:4].view(np.complex128)[..., 0] *= half_turns.conj()


def perceived_paths(paths: predicted_paths.Paths, perceived: Perceived) -> predicted_paths.Paths:
    """Return the paths of the T objects as those of the R that are reported."""
    (poses, lengths), seen = paths, perceived.seen
    true_poses, found_poses = perceived.truth.poses, perceived.seen_objects().poses
    if seen is not None:
        poses, lengths, true_poses = poses[seen], lengths[seen], true_poses[seen]
    if perceived.is_noisy:
        poses[:, :, :2] += (found_poses[:, :2] - true_poses[:, :2])[:, None]
        if perceived.turns is not None:
            turn(poses[:, :, 3:], perceived.turns[:, None])
        # Without the rounding of the difference.
        poses[:, 0] = found_poses
    if not perceived.false_positives:
        return predicted_paths.Paths(poses, lengths)
    ghosts = predicted_paths.ConstantPaths().paths(perceived.false_objects())
    joined = np.zeros((len(poses) + len(ghosts.poses), len(predicted_paths.TIMES_S), 7))
    joined[:len(poses), :poses.shape[1]], joined[len(poses):] = poses, ghosts.poses
    return predicted_paths.Paths(joined, np.concatenate((lengths, ghosts.lengths)))


class FramePerceiver:
    """
    Make frames of perceived objects, of which the same objects are made again.

    The ego, and actors that are not objects, stay as they are.
    """

    def __init__(self, settings: Settings) -> None:
        self._registry = Registry(settings)
        self._perceiver = Perceiver(settings, ObjectMaker(settings), source.ignore)

    def perceived(self, frame: Frame) -> Frame:
        """Return a frame as a sensor would see it."""
        found = self._perceiver.of(frame, self._registry.update(frame))
        if found.is_noisy:
            frame = _with_objects(frame, found)
        if found.seen is not None:
            missed = np.delete(found.truth.rows, found.seen)
            frame = frame.select(np.delete(np.arange(frame.n_actors), missed))
        return _with_false_positives(frame, found) if found.false_positives else frame


def _with_objects(frame: Frame, perceived: Perceived) -> Frame:
    """Return a frame whose actors have the poses, sizes and velocities that are perceived."""
    objects, truth = perceived.seen_objects(), perceived.truth
    rows, truth = objects.rows, truth if perceived.seen is None else truth.at(perceived.seen)
    # From the center to the origin, in the axes of the actor, which are turned with it.
    arms = ((frame.position_xyz[rows] - truth.poses[:, :3])[:, None] @ truth.axes)[:, 0]
    arms = (objects.axes @ arms[:, :, None])[:, :, 0]
    kinematics = jumps.with_velocities(frame).kinematics.copy()
    kinematics[rows, :3] = objects.poses[:, :3] + arms
    kinematics[rows, 3:7] = objects.poses[:, 3:]
    kinematics[rows, 7:] = object_maker.transported(objects.twists, arms, is_finite=False)
    return replace(frame, kinematics=kinematics, forward_speed=None, accelerations=None,
                   boxes=_with_boxes(frame.boxes or NO_BOXES, rows, objects))


def _with_boxes(boxes: Boxes, rows: Rows, objects: Objects) -> Boxes:
    """Return boxes with one for each actor at ``rows``, that of its object."""
    kept = np.flatnonzero(~np.isin(boxes.actor, rows))
    owners = np.concatenate((boxes.actor[kept], rows))
    order = np.argsort(owners, kind='stable')
    names = (*[boxes.names[i] for i in kept.tolist()], *[_BOX_NAME] * len(rows))
    numbers = np.concatenate((boxes.rows[kept], np.column_stack((
        objects.poses, objects.sizes, np.ones((len(rows), 3))))))
    return Boxes(owners[order], tuple([names[i] for i in order.tolist()]), numbers[order])


def _with_false_positives(frame: Frame, perceived: Perceived) -> Frame:
    """Return a frame with the false positives as its last actors; they stand on the ground."""
    ghosts, n_false = perceived.false_objects(), len(perceived.false_positives)
    kinematics = np.column_stack((ghosts.poses, ghosts.twists))
    kinematics[:, 2] -= ghosts.sizes[:, 2] / 2.0
    # An extension has the actors of the simulator alone.
    known = replace(jumps.with_velocities(frame), accelerations=None, extension=None, boxes=None)
    return replace(
        fields.extended(known, n_false, kinematics=kinematics, tags=(_FALSE_TAGS,) * n_false,
                        names=tuple([actor.name for actor in perceived.false_positives]),
                        kinds=np.full(n_false, KIND_VEHICLE, np.uint8)),
        boxes=_with_boxes(frame.boxes or NO_BOXES, frame.n_actors + np.arange(n_false), ghosts))
