# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Paths of objects: their future positions every half second.

In a recording the path is read from the frames that follow; of a live stream it is that of a body
with constant velocity and yaw rate.
"""

from __future__ import annotations

from bisect import bisect_right
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import CLASSES
from state_sensor_ros.frame import Bools, Floats, FutureFrame, Kinds, Rows
from state_sensor_ros.objects.object_maker import Objects
from state_sensor_ros.rotations import slerp

_Complex = npt.NDArray[np.complex128]

STEP_S = 0.5
HORIZON_S = 15.0
_SHORT_HORIZON_S = 10.0
# Times of poses, s from now.
TIMES_S: Floats = np.array([i * STEP_S for i in range(round(HORIZON_S / STEP_S) + 1)])
_N_POSES = len(TIMES_S)
# Number of poses of a whole path by class, including the present pose.
_LENGTHS: npt.NDArray[np.int64] = np.array([
    round((HORIZON_S if each.is_motor_vehicle else _SHORT_HORIZON_S) / STEP_S) + 1
    for each in CLASSES])
# Times of a recording that differ by less are equal, s: its float32 are no finer.
_SAME_TIME_S = 1e-5
# A smaller yaw rate, rad/s, counts as 0: within the horizon it moves no object by a micrometer.
_STRAIGHT = 1e-10


class Paths(NamedTuple):
    """Predicted paths of K objects."""

    # (K, P, 7) position xyz and orientation xyzw, global frame, at TIMES_S from now on.
    poses: Floats
    lengths: Rows  # (K,) int64, how many of the P poses there are

    def rows(self) -> Floats:
        """Return (R, 7) the poses of all paths, object by object."""
        n_poses = self.poses.shape[1]
        if np.logical_and.reduce(self.lengths == n_poses):
            return self.poses.reshape(-1, 7)
        rows: Floats = self.poses[np.arange(n_poses) < self.lengths[:, None]]
        return rows


class ConstantPaths:
    """Compute paths with constant velocity and yaw rate; the memory of the poses is kept."""

    def __init__(self) -> None:
        self._poses: Floats = np.empty((0, _N_POSES, 7))

    def paths(self, objects: Objects, twists: Floats | None = None) -> Paths:
        """
        Return paths that are valid until the next call.

        The velocity v turns with the yaw, at the yaw rate w: after t it has turned by a = w t
        about the global z, and the distance is the integral of it. In complex numbers x + i y,
        with h = exp(i a / 2): h h = exp(i a), and the distance is v (h h - 1) / (i w) = v h Im(h)
        2 / w, which loses no digits if a is small.

        :param twists: (K, 6) float64, their velocities; None for those that they have.
        """
        twists, now = objects.twists if twists is None else twists, objects.poses
        lengths = constant_lengths(objects.classes, twists)
        # An unknown rate counts as 0.
        if not math.isfinite(twists.sum()):
            twists = np.nan_to_num(twists)
        rates = twists[:, 5]
        are_straight = np.abs(rates) < _STRAIGHT
        half_turns = _half_turns(rates)
        if len(self._poses) < len(rates):
            self._poses = np.empty((len(rates), _N_POSES, 7))
        poses = self._poses[:len(rates)]
        # Columns x + i y of position and orientation, z + i w of the orientation.
        xy, orientation_xy, orientation_zw = (
            poses[:, :, i:i + 2].view(np.complex128)[:, :, 0] for i in (0, 3, 5))
        velocity, steps = _complex(twists[:, :2]), half_turns * half_turns.imag
        # Velocities are finite, and may be large.
        with np.errstate(all='ignore'):
            if np.logical_or.reduce(are_straight):
                steps *= velocity * (2.0 / np.where(are_straight, 1.0, rates))[:, None]
                np.multiply(velocity, TIMES_S, out=steps, where=are_straight[:, None])
            else:
                steps *= velocity * (2.0 / rates)[:, None]
        np.add(steps, _complex(now[:, :2]), out=xy)
        np.add(twists[:, 2:3] * TIMES_S, now[:, 2:3], out=poses[:, :, 2])
        # The product with the half turn cos(a/2) + k sin(a/2).
        np.multiply(half_turns, _complex(now[:, 3:5]), out=orientation_xy)
        np.multiply(half_turns.conj(), _complex(now[:, 5:7]), out=orientation_zw)
        return Paths(poses, lengths)


def constant_lengths(classes: Kinds, twists: Floats) -> Rows:
    """
    Return the number of poses of paths with constant velocity: only the present one if unknown.

    :param classes: (K,) uint8, index in CLASSES.
    :param twists: (K, 6) float64, NaN if unknown.
    :returns: (K,) int64.
    """
    lengths: Rows = np.where(np.isnan(twists[:, :3]).any(axis=1), 1, _LENGTHS[classes])
    return lengths


def _complex(pairs: Floats) -> _Complex:
    """Return (K, 1) complex numbers of (K, 2) real and imaginary parts."""
    return np.ascontiguousarray(pairs).view(np.complex128)


def _half_turns(rates: Floats) -> _Complex:
    """
    Return exp(i w t / 2) at TIMES_S, as powers of that of one step: sine and cosine take longer.

    :param rates: (K,) float64, w, rad/s.
    :returns: (K, P) complex128.
    """
    angles = rates * (0.5 * STEP_S)
    powers = np.empty((_N_POSES, len(rates)), np.complex128)
    powers[0] = 1.0
    powers[1].real, powers[1].imag = np.cos(angles), np.sin(angles)
    n_known = 2
    while n_known < _N_POSES:
        n_new = min(n_known - 1, _N_POSES - n_known)
        np.multiply(powers[1:1 + n_new], powers[n_known - 1], out=powers[n_known:n_known + n_new])
        n_known += n_new
    return np.ascontiguousarray(powers.T)


class TruePaths:
    """
    Read the paths of objects from the frames that follow.

    The frames of the horizon are kept: from one frame to the next, one is removed and one added.
    """

    def __init__(self) -> None:
        self._frames: list[FutureFrame] = []
        self._times: list[float] = []
        # Rows of the present actors by list of names, -1 for none.
        self._rows: dict[int, tuple[tuple[str, ...], Rows]] = {}
        self._names: tuple[str, ...] = ()

    def paths(self, objects: Objects, names: tuple[str, ...], now: FutureFrame) -> Paths:
        """Return paths that end with the recording, its run or the presence of the actor."""
        self._advance(now)
        if names != self._names:
            self._names = names
            self._rows.clear()
        before, after, shares = self._brackets(now.game_time)
        n_times, n_objects = len(shares), len(names)
        poses = np.empty((n_times, n_objects, 7))
        are_known = np.empty((n_times, n_objects), np.bool_)
        ends = np.empty((n_times, n_objects, 7))
        for k, (i, j) in enumerate(zip(before, after, strict=True)):
            poses[k], are_known[k] = self._poses_at(i)
            if i == j:
                ends[k] = poses[k]
            else:
                ends[k], are_present = self._poses_at(j)
                if now.game_time + TIMES_S[k] - self._times[i] < _SAME_TIME_S:
                    # At the time of the first frame the other one is not needed.
                    ends[k, ~are_present] = poses[k, ~are_present]
                else:
                    are_known[k] &= are_present
        poses = _between(poses.reshape(-1, 7), ends.reshape(-1, 7),
                         np.repeat(shares, n_objects)).reshape(n_times, n_objects, 7)
        poses[0], are_known[0] = objects.poses, True
        lengths = np.minimum.reduce((
            np.logical_and.accumulate(are_known, axis=0).sum(axis=0), _LENGTHS[objects.classes]))
        return Paths(poses.transpose(1, 0, 2), lengths)

    def _advance(self, now: FutureFrame) -> None:
        """Move the window so that it begins with ``now``."""
        i_now = next((i for i, frame in enumerate(self._frames[:3]) if frame is now), None)
        if i_now is None:
            self._frames, self._times = [now], [now.game_time]
        else:
            del self._frames[:i_now], self._times[:i_now]
        end_s = now.game_time + HORIZON_S + _SAME_TIME_S
        while self._times[-1] < end_s and (following := self._frames[-1].following) is not None:
            self._frames.append(following)
            self._times.append(following.game_time)

    def _brackets(self, now_s: float) -> tuple[list[int], list[int], Floats]:
        """Return the frames before and after each time, and the share of the time between."""
        before, after, shares = [], [], []
        for time_s in (now_s + TIMES_S).tolist():
            i = bisect_right(self._times, time_s) - 1
            j = i + 1
            if j == len(self._times):
                if time_s > self._times[i] + _SAME_TIME_S:
                    break
                j = i
            before.append(i)
            after.append(j)
            gap_s = self._times[j] - self._times[i]
            shares.append((time_s - self._times[i]) / gap_s if j > i else 0.0)
        return before, after, np.array(shares)

    def _poses_at(self, i: int) -> tuple[Floats, Bools]:
        """Return (K, 7) poses of the objects in a frame, and (K,) which of them it has."""
        frame = self._frames[i]
        known = self._rows.get(id(frame.names))
        if known is None:
            if len(self._rows) > _N_POSES * 2:
                self._rows.clear()
            index = {name: row for row, name in enumerate(frame.names)}
            # The names are kept with the rows, so that no other object gets their id.
            known = self._rows[id(frame.names)] = frame.names, np.array(
                [index.get(name, -1) for name in self._names], np.int64)
        rows = known[1]
        if not len(frame.poses):
            return np.zeros((len(rows), 7)), np.zeros(len(rows), np.bool_)
        return frame.poses[rows], (rows >= 0) & frame.are_usable[rows]


def _between(first: Floats, last: Floats, shares: Floats) -> Floats:
    """
    Interpolate poses: positions in a line, orientations by slerp.

    :param first: (R, 7) float64, poses at share 0.
    :param last: (R, 7) float64, poses at share 1.
    :param shares: (R,) float64, 0..1.
    :returns: (R, 7) float64.
    """
    with np.errstate(all='ignore'):
        poses = first + shares[:, None] * (last - first)
        poses[:, 3:] = slerp(first[:, 3:], last[:, 3:], shares)
    return poses
