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

Range, field of view and occlusion apply to the ground truth; what remains may be missed, and has
noise added. False positives are cars that do not exist.

Random numbers depend on the seed, a raw name and the game time alone. Those of an actor are a hash
of all three (BLAKE2b): they depend neither on the other actors nor on which of them are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
import math
import struct
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import CAR, CLASSES
from state_sensor_ros.frame import Bools, Floats, Frame, NS_PER_S, Rows
from state_sensor_ros.naming import Actor, ActorList
from state_sensor_ros.objects.object_maker import as_slice, default_sizes, ObjectMaker, Objects
from state_sensor_ros.objects.predicted_paths import ConstantPaths, Paths, TIMES_S
from state_sensor_ros.perception.occlusion import visible_shares
from state_sensor_ros.settings import Perception, Settings
from state_sensor_ros.source import Report

Words = npt.NDArray[np.uint64]

_BYTE: Final = np.uint64(0xFF)
_BYTE_SHARES: Floats = np.array((2.0 ** -8, 2.0 ** -16, 2.0 ** -24, 2.0 ** -32))
# Words of 64 bits for each actor and frame.
_N_WORDS: Final = 4
_KEY: Final = struct.Struct('<QQ')


def normal_deviates(words: Words) -> Floats:
    """Return two numbers of the normal distribution for each word (Box and Muller, 1958)."""
    # words: (W, R) uint64; their upper 56 bits are used, 28 for each number.
    # Returns (2 W, R) float64; those of word w are in rows w and W + w.
    # Half a step above 0, which has no logarithm; 28 bits reach 6.3 standard deviations.
    chances = ((words >> np.uint64(36)).astype(np.float64) + 0.5) * 2.0 ** -28
    radii: Floats = np.sqrt(-2.0 * np.log(chances))
    angles: Floats = ((words >> np.uint64(8)) & np.uint64(0xFFFFFFF)).astype(np.float64) \
        * (2.0 * np.pi * 2.0 ** -28)
    deviates: Floats = np.empty((2, *words.shape))
    np.cos(angles, out=deviates[0])
    np.sin(angles, out=deviates[1])
    deviates *= radii
    return deviates.reshape(2 * len(words), words.shape[1])


def frame_number(game_time: float) -> int:
    """Return the number by which a frame is known, its game time in ns."""
    # game_time: s; NaN and infinity, also in ns, give 0.
    time_ns = game_time * NS_PER_S
    return round(time_ns) % 2 ** 64 if math.isfinite(time_ns) else 0


def actor_words(seed: int, number: int, actor_list: ActorList, rows: Rows) -> Words:
    """Return the random words of some actors."""
    # seed: parameter ``perception.seed``.
    # rows: (R,) int64, rows of those actors in the frame.
    # Returns (4, R) uint64.
    # A copy of the hash of the frame takes half the time of another hash of both.
    of_frame = blake2b(_KEY.pack(seed, number), digest_size=8 * _N_WORDS)
    digests = []
    for row in rows.tolist():
        of_actor = of_frame.copy()
        of_actor.update(actor_list.names[row].encode('utf-8', 'surrogatepass'))
        digests.append(of_actor.digest())
    return np.frombuffer(b''.join(digests), '<u8').astype(np.uint64).reshape(-1, _N_WORDS).T


def chances_of(words: Words) -> Floats:
    """Return a number from 0 to below 1 for each actor, of the bits that its deviates leave."""
    # words: (4, R) uint64, the words of the actors; their lower 8 bits are used.
    # Returns (R,) float64, of 32 bits.
    return _BYTE_SHARES @ (words & _BYTE).astype(np.float64)


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
_FALSE_PREFIX: Final = 'ghost_'


class Viewpoint(NamedTuple):
    """``origin`` (3,) of the ego, m, and ``heading``, yaw of its x axis, rad; global frame."""

    origin: Floats = np.zeros(3)
    heading: float = 0.0


def false_positives_of(settings: Settings, number: int,
                       viewpoint: Viewpoint) -> tuple[Objects, Words]:
    """
    Draw the false objects of a frame, uniformly in the field of view.

    :param number: that of the frame.
    :returns: G objects and (G,) uint64, a random identity of each.
    """
    perception, size = settings.perception, default_sizes(settings)[CAR]
    random = np.random.Generator(np.random.Philox(key=perception.seed,
                                                  counter=(0, number, 0, 0)))
    n_false = int(random.poisson(perception.ghosts))
    share, side, yaw, pace = random.random((4, n_false))
    distances = (perception.range or _RANGE_M) * np.sqrt(share)
    directions = viewpoint.heading + math.radians(
        perception.field_of_view or 360.0) * (side - 0.5)
    half_yaws = np.pi * yaw
    angles = np.array((directions, half_yaws, 2.0 * half_yaws))
    cosines, sines = np.cos(angles), np.sin(angles)
    poses, twists = np.zeros((n_false, 7)), np.zeros((n_false, 6))
    poses[:, :3] = viewpoint.origin
    poses[:, 0] += distances * cosines[0]
    poses[:, 1] += distances * sines[0]
    # They stand on the ground of the ego.
    poses[:, 2] += size[2] / 2.0
    poses[:, 5], poses[:, 6] = sines[1], cosines[1]
    axes = np.zeros((n_false, 3, 3))
    axes[:, 0, 0] = axes[:, 1, 1] = cosines[2]
    axes[:, 1, 0], axes[:, 0, 1], axes[:, 2, 2] = sines[2], -sines[2], 1.0
    twists[:, :2] = (_MAX_SPEED * pace)[:, None] * axes[:, :2, 0]
    return Objects(np.full(n_false, -1), np.full(n_false, CAR, np.uint8), poses, axes,
                   np.tile(size, (n_false, 1)), twists, np.zeros((n_false, 6))), \
        random.integers(2 ** 64 - 1, size=n_false, dtype=np.uint64, endpoint=True)


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
        n_false = len(self.false_positives)
        return self.objects.at(slice(0, -n_false)) if n_false else self.objects

    def false_objects(self) -> Objects:
        return self.objects.at(slice(len(self.objects.rows) - len(self.false_positives), None))


class Perceiver:
    """Perceive the objects of a frame, once for all topics."""

    def __init__(self, settings: Settings, objects: ObjectMaker, report: Report) -> None:
        self._objects, self._report = objects, report
        self._is_reported = False
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
        number, seen, turns, words = frame_number(frame.game_time), None, None, None
        looks = bool(perception.range or perception.field_of_view or perception.occlusion)
        is_noisy = any((perception.position_std, perception.yaw_std, perception.size_std,
                        perception.velocity_std))
        has_false_positives = perception.ghosts > 0.0 and (
            not settings.object_classes or CLASSES[CAR].name in settings.object_classes)
        viewpoint = self._viewpoint(frame, actor_list, looks) \
            if looks or has_false_positives else None
        if viewpoint is not None and looks:
            seen = self._in_view(truth, viewpoint)
        if is_noisy or perception.missing:
            words = actor_words(perception.seed, number, actor_list,
                                truth.rows if seen is None else truth.rows[seen])
            if perception.missing:
                found = (chances_of(words) >= perception.missing).nonzero()[0]
                seen, words = found if seen is None else seen[found], words[:, found]
        objects = truth if seen is None else truth.at(seen)
        twists = objects.twists
        if is_noisy:
            assert words is not None
            objects, turns = _noisy(objects, normal_deviates(words), perception)
        false_positives: tuple[Actor, ...] = ()
        if has_false_positives:
            false_objects, identities = false_positives_of(settings, number,
                                                           viewpoint or Viewpoint())
            if viewpoint is not None and settings.object_range:
                ways = false_objects.poses[:, :3] - viewpoint.origin
                are_near = np.einsum('ij,ij->i', ways, ways) <= settings.object_range ** 2
                false_objects, identities = false_objects.at(are_near), identities[are_near]
            false_positives = _named(identities, actor_list)
        if false_positives:
            objects = objects.followed_by(false_objects)
            twists = np.concatenate((twists, false_objects.twists))
        return Perceived(truth, objects, twists, seen, turns, is_noisy, false_positives)

    def _viewpoint(self, frame: Frame, actor_list: ActorList, looks: bool) -> Viewpoint | None:
        """Return the viewpoint of the ego, None without one."""
        i_ego = actor_list.i_ego
        if i_ego >= 0 and frame.has_pose()[i_ego]:
            x, y, z, w = frame.orientation_xyzw[i_ego].tolist()
            # Of the x axis, whatever the length of the quaternion.
            return Viewpoint(frame.position_xyz[i_ego], math.atan2(
                2.0 * (x * y + z * w), x * x - y * y - z * z + w * w))
        if looks and not self._is_reported:
            self._is_reported = True
            self._report('perception', 'perception: found no ego with a pose, so range, '
                         'field_of_view and occlusion have no effect; expected an actor with '
                         'ego_tag (reported once)')
        return None

    def _in_view(self, objects: Objects, viewpoint: Viewpoint) -> Rows:
        """Return the objects that are near enough, in the field of view and not hidden."""
        perception = self._settings.perception
        ways = objects.poses[:, :3] - viewpoint.origin
        are_seen: Bools = np.ones(len(ways), np.bool_)
        if perception.range:
            are_seen &= np.einsum('ij,ij->i', ways, ways) <= perception.range ** 2
        if 0.0 < perception.field_of_view < 360.0:
            ahead = np.array((math.cos(viewpoint.heading), math.sin(viewpoint.heading)))
            # The cosine of the angle, times the distance.
            limit = math.cos(math.radians(perception.field_of_view) / 2.0)
            are_seen &= ways[:, :2] @ ahead >= limit * np.hypot(ways[:, 0], ways[:, 1])
        seen: Rows = are_seen.nonzero()[0]
        if perception.occlusion and len(seen):
            seen = seen[self._visible(objects.rows[seen], viewpoint)
                        >= perception.occlusion - _SHARE_ERROR]
        return seen

    def _visible(self, rows: Rows, viewpoint: Viewpoint) -> Floats:
        """Return which share of the width of objects is seen; all objects hide others."""
        # rows: (S,) int64, actors of the objects.
        assert self._objects.all_objects is not None
        are_objects, centers = self._objects.all_objects
        all_rows = are_objects.nonzero()[0]
        chosen = as_slice(all_rows)
        headings = centers.axes[chosen, :2, 0]
        lengths = np.hypot(headings[:, 0], headings[:, 1])[:, None]
        if np.minimum.reduce(lengths, axis=None, initial=1.0) < _UPRIGHT:
            # Of an actor on its nose any direction will do.
            headings = np.where(lengths < _UPRIGHT, (1.0, 0.0), headings)
            lengths = np.where(lengths < _UPRIGHT, 1.0, lengths)
        wanted = np.searchsorted(all_rows, rows)
        return visible_shares(
            centers.poses[chosen, :2] - viewpoint.origin[:2], headings / lengths,
            centers.sizes[chosen, :2], wanted)[wanted]


def _noisy(truth: Objects, deviates: Floats,
           perception: Perception) -> tuple[Objects, Floats | None]:
    """Return objects that are off by noise, and by how much their yaw is."""
    # deviates: (8, R) float64, normal_deviates() of the words of the objects.
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


def _named(identities: Words, actor_list: ActorList) -> tuple[Actor, ...]:
    """Return a name and an id for each false positive, which no actor of the frame has."""
    false_positives = []
    for identity in identities.tolist():
        while (name := f'{_FALSE_PREFIX}{identity:016x}') in actor_list.names:
            identity = (identity + 1) % 2 ** 64
        false_positives.append(
            Actor(name, '', '', _LEAST_FALSE_ID + identity % _LEAST_FALSE_ID, False))
    return tuple(false_positives)


def perceived_paths(paths: Paths, perceived: Perceived) -> Paths:
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
        return Paths(poses, lengths)
    false_positives = ConstantPaths().paths(perceived.false_objects())
    joined = np.zeros((len(poses) + len(false_positives.poses), len(TIMES_S), 7))
    joined[:len(poses), :poses.shape[1]], joined[len(poses):] = poses, false_positives.poses
    return Paths(joined, np.concatenate((lengths, false_positives.lengths)))
