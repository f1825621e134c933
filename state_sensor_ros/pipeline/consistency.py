# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Consistency check of a stream: twists against pose differences, plausible wheels and boxes.

Pose differences over time are compared with the twists, both in REP-103. A world that is mirrored
or scaled as a whole passes this comparison, so the side of the wheels, their radius and the length
of the vehicles are checked as well.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
import math

import numpy as np

from state_sensor_ros.frame import (
    Bools,
    Floats,
    Frame,
    FRONT_LEFT,
    FRONT_RIGHT,
    KIND_VEHICLE,
    NO_LANES,
    REAR_LEFT,
    REAR_RIGHT,
    Rows,
)
from state_sensor_ros.rotations import global_from_body, rotation_vectors

# Slower actors are dropped: noise would dominate. Over a longer gap, the mean of two velocities
# is not the mean velocity; over a still longer one, a turn may exceed half a circle.
_MIN_SPEED = 1.0  # m/s
_MIN_YAW_RATE = 0.1  # rad/s
_MAX_GAP_S, _MAX_TURN_GAP_S = 0.5, 2.0
# Each pair multiplies the sums by this factor: the sums are over about twenty pairs, or all.
_MEMORY = 0.95
_MEMORIES = np.array(((_MEMORY,), (1.0,)))
_RECENT, _ALL = range(2)
_MIN_PAIRS = 3
# m or rad between two frames: more is an outlier, which would dominate the sums for long.
_FARTHEST = 1e6
# The slope of displacement on velocity is 1.000 +- 0.002 in every recording:
# doc/protocol/units.md#lengths.
_SLOPES = (0.75, 1.25)
# Rotation is noisier, as cars start to turn within a step and the simulator clamps first steps;
# displacement over long gaps is noisier, too.
_NOISY_SLOPES = (0.4, 2.5)
# A slope below minus this is not noise: observed and predicted movement are opposite.
_OPPOSITE = 0.5
# Heading and velocity of road users agree within 15 degrees in 99 % of all frames.
_MAX_SLIP_SINE = 0.4
# Cars have wheels of 0.25 to 0.6 m and bodies of 1 to 25 m; centimeters are off by 100.
_WHEEL_RADIUS_M = (0.08, 2.0)
_VEHICLE_LENGTH_M = (0.3, 60.0)
# Game time between the sampled pairs of a stream, before and after it has passed, and between
# frames with wheels and boxes.
_PAIR_PERIOD_S, _PASSED_PAIR_PERIOD_S, _DETAILS_PERIOD_S = 0.8, 4.0, 5.0
# Wheels and boxes of ten thousand actors take 0.2 s, so they are checked once in 50 s: this limits
# the work per second for any number of actors.
_DETAILS_PERIOD_PER_ACTOR_S = 0.005


@dataclass(frozen=True, slots=True)
class ConsistencyResult:
    """
    Result for the last seconds, or for all frames.

    ``linear_slope`` displacement per (velocity times time), 1 if units agree; ``angular_slope``
    the same for rotation; ``linear_residual`` m and ``angular_residual`` rad, RMS per step;
    ``slip`` median sine of the angle between a vehicle's own x axis and its displacement; all NaN
    as long as nothing moves. ``slip`` and ``complaints``, a line for each inconsistency, are
    always those of the last seconds; ``n_pairs`` number of compared pairs.
    """

    linear_slope: float
    angular_slope: float
    linear_residual: float
    angular_residual: float
    slip: float
    n_pairs: int
    complaints: tuple[str, ...]


# Reasons why an actor in two successive frames is not compared.
ABSENT, NO_POSE, NO_VELOCITY, SLOW, TURN = (
    'in one of two frames only', 'without a usable pose', 'without a velocity',
    f'slower than {_MIN_SPEED:g} m/s', f'rotations over more than {_MAX_TURN_GAP_S:g} s')


class ConsistencyCheck:
    """
    Compare the actors of each frame with those of the one before.

    :param max_gap_s: greatest time between two frames that are compared, s.
    :ivar n_compared: number of poses that were compared with the one before.
    :ivar not_compared: number of poses that were not compared, by reason.
    """

    def __init__(self, max_gap_s: float = _MAX_GAP_S) -> None:
        self._max_gap_s = max_gap_s
        self.restart()

    def restart(self) -> None:
        """Start a new run of the clock, without results."""
        self._last: Frame | None = None
        self._n_pairs = self._n_turns = self.n_compared = 0
        self.not_compared: Counter[str] = Counter()
        self._is_coarse = False
        # Sums over actors, recent and all: observed*predicted, predicted^2, residual^2, count.
        self._linear: Floats = np.zeros((2, 4))
        self._lateral: Floats = np.zeros((2, 4))
        self._angular: Floats = np.zeros((2, 4))
        self._slip = math.nan
        self._handedness = 0.0
        self._radius = math.nan
        self._length = math.nan

    def begin_run(self) -> None:
        """Start a new run of the clock, and keep the results."""
        self._last = None

    @property
    def has_passed(self) -> bool:
        """Whether enough movements and turns were compared, and all are consistent."""
        return min(self._n_pairs, self._n_turns) >= _MIN_PAIRS and not self.result().complaints

    # Overflow and NaN of unusual numbers are dropped from the sums.
    @np.errstate(all='ignore')
    def add(self, frame: Frame) -> None:
        """
        Check a frame.

        :param frame: frame whose ``game_time`` advanced; it is compared with the last one if the
            time between them is at most ``max_gap_s``.
        """
        last, self._last = self._last, _with_velocities(frame)
        frame = self._last
        self._check_wheels(frame)
        self._check_boxes(frame)
        if last is not None and 0.0 < frame.game_time - last.game_time <= self._max_gap_s:
            self._compare(*self._shared(last, frame))

    def _shared(self, last: Frame, frame: Frame) -> tuple[Frame, Frame]:
        """Return two frames with the actors that both have, in the same order."""
        if last.names == frame.names:
            return last, frame
        before = {name: row for row, name in enumerate(last.names)}
        rows = [(before[name], row) for row, name in enumerate(frame.names) if name in before]
        self.not_compared[ABSENT] += last.n_actors + frame.n_actors - 2 * len(rows)
        rows_before, rows_now = np.array(rows, np.int64).reshape(-1, 2).T
        return _poses(last, rows_before), _poses(frame, rows_now)

    def _compare(self, last: Frame, frame: Frame) -> None:
        elapsed = frame.game_time - last.game_time
        both = last.has_pose() & frame.has_pose()
        moved = (frame.position_xyz - last.position_xyz)[both]
        mean_velocity = (0.5 * (frame.velocity_xyz + last.velocity_xyz))[both]
        predicted = mean_velocity * elapsed
        # Either may be wrong: an actor moves if one of them exceeds the limit.
        known: Bools = np.isfinite(predicted.sum(axis=1))
        moves: Bools = known & (np.maximum(_norm(moved), _norm(predicted)) > _MIN_SPEED * elapsed)
        self._count(both, known, moves)
        self._is_coarse = elapsed > _MAX_GAP_S
        self._linear = _accumulate(self._linear, moved[moves], predicted[moves])
        self._lateral = _accumulate(self._lateral, moved[moves, 1:2], predicted[moves, 1:2])
        self._n_pairs += bool(moves.any())
        if elapsed > _MAX_TURN_GAP_S:
            self.not_compared[TURN] += int(np.count_nonzero(both))
            return
        turned = rotation_vectors(last.orientation_xyzw[both], frame.orientation_xyzw[both])
        mean_rate = (0.5 * (frame.angular_velocity_xyz + last.angular_velocity_xyz))[both]
        # Yaw alone: roll and pitch rates have an artifact of the simulator,
        # doc/protocol/units.md#angular-velocity.
        turned, predicted = turned[:, 2:], mean_rate[:, 2:] * elapsed
        turns = np.maximum(_norm(turned), _norm(predicted)) > _MIN_YAW_RATE * elapsed
        self._angular = _accumulate(self._angular, turned[turns], predicted[turns])
        self._n_turns += bool(turns.any())
        self._check_headings(frame, both, moved, moves)

    def _count(self, both: Bools, known: Bools, moves: Bools) -> None:
        """Count which actors of two frames are compared, and why the others are not."""
        n_known, n_moving = np.count_nonzero(known), np.count_nonzero(moves)
        self.n_compared += int(n_moving)
        for reason, count in ((NO_POSE, len(both) - len(known)),
                              (NO_VELOCITY, len(known) - n_known), (SLOW, n_known - n_moving)):
            if count:
                self.not_compared[reason] += int(count)

    def _check_headings(self, frame: Frame, both: Bools, moved: Floats, moves: Bools) -> None:
        vehicles = moves & (frame.kinds[both] == KIND_VEHICLE)
        if not vehicles.any():
            return
        forward_xy = global_from_body(frame.orientation_xyzw[both][vehicles])[:, :2, 0]
        step_xy = moved[vehicles, :2]
        crossed = forward_xy[:, 0] * step_xy[:, 1] - forward_xy[:, 1] * step_xy[:, 0]
        sines = np.abs(crossed) / np.maximum(_norm(forward_xy) * _norm(step_xy), 1e-9)
        sine = _median(sines)
        self._slip = sine if math.isnan(self._slip) else _MEMORY * self._slip + 0.05 * sine

    def _check_wheels(self, frame: Frame) -> None:
        wheels = frame.wheels
        if wheels is None or not len(wheels.wheel):
            return
        known = wheels.position_known
        left = np.isin(wheels.wheel, (FRONT_LEFT, REAR_LEFT)) & known
        right = np.isin(wheels.wheel, (FRONT_RIGHT, REAR_RIGHT)) & known
        if left.any() and right.any():
            # REP-103: y points left.
            self._handedness = (_median(wheels.position_xyz[left, 1])
                                - _median(wheels.position_xyz[right, 1]))
        speed = _norm(frame.velocity_xyz)[wheels.actor]
        rolling = (speed > _MIN_SPEED) & (np.abs(wheels.speed) > 1.0)
        if rolling.any():
            self._radius = _median(speed[rolling] / np.abs(wheels.speed[rolling]))

    def _check_boxes(self, frame: Frame) -> None:
        boxes = frame.boxes
        if boxes is not None and len(boxes.names):
            vehicles = frame.kinds[boxes.actor] == KIND_VEHICLE
            if vehicles.any():
                self._length = _median(boxes.size_xyz[vehicles].max(axis=1))

    def result(self, *, of_all: bool = False) -> ConsistencyResult:
        """
        Return the result so far.

        :param of_all: whether slopes and residuals are those of all frames, not of the last ones.
        """
        slopes = [_slope(sums[_RECENT]) for sums in (self._linear, self._lateral, self._angular)]
        linear, angular = (sums[_ALL if of_all else _RECENT]
                           for sums in (self._linear, self._angular))
        return ConsistencyResult(
            _slope(linear), _slope(angular), _rms(linear), _rms(angular), self._slip,
            self._n_pairs, self._complaints(*slopes))

    def _complaints(self, linear: float, lateral: float, angular: float) -> tuple[str, ...]:
        faults = []
        if self._n_pairs >= _MIN_PAIRS:
            if lateral < -_OPPOSITE:
                faults.append('y is not mirrored: actors move against their lateral velocity')
            elif not _within(linear, _NOISY_SLOPES if self._is_coarse else _SLOPES):
                faults.append(f'displacement is {linear:.3g} times velocity x time: lengths and '
                              'velocities are not in the same units')
            if self._slip > _MAX_SLIP_SINE:
                faults.append('vehicles do not move along their own x axis: y is not mirrored, or '
                              'quaternions are')
        if self._n_turns >= _MIN_PAIRS:
            if angular < -_OPPOSITE:
                faults.append('actors turn against their angular velocity: axes are mirrored')
            elif not _within(angular, _NOISY_SLOPES):
                faults.append(f'rotation is {angular:.3g} times angular velocity x time: '
                              + ('rates look like degrees/s' if 0.01 < angular < 0.03
                                 else 'rates are not in rad/s'))
        if self._handedness < 0.0:
            faults.append('left wheels lie on the right: y is not mirrored')
        if not _within(self._radius, _WHEEL_RADIUS_M):
            faults.append(f'wheels would have a radius of {self._radius:.3g} m: lengths are not '
                          'in the expected unit')
        if not _within(self._length, _VEHICLE_LENGTH_M):
            faults.append(f'vehicles would be {self._length:.3g} m long: lengths are not in the '
                          'expected unit')
        return tuple(faults)


class SampledConsistencyCheck(ConsistencyCheck):
    """
    Check pairs of successive frames at intervals of game time, to save time in a live stream.

    With a pair per 0.8 s, the three pairs that a warning needs take 3 s; a stream that has passed
    is checked every 4 s.

    :ivar next_s: game time of the next frame to add.
    :ivar next_details_s: game time of the next frame to add with wheels and boxes. Decoding them
        costs as much as all other members together, so it is done every 5 s, and less often above
        1000 actors.
    """

    def restart(self) -> None:
        """Start without results: the next frame begins a pair."""
        super().restart()
        self.next_s = self.next_details_s = self._next_pair_s = -math.inf
        self._is_pair_open = False

    def add(self, frame: Frame) -> None:
        """
        Check a frame if one is due.

        :param frame: as for the base class; one with wheels renews :attr:`next_details_s`.
        """
        if frame.wheels is not None:
            self.next_details_s = frame.game_time + max(
                _DETAILS_PERIOD_S, _DETAILS_PERIOD_PER_ACTOR_S * frame.n_actors)
        if self._is_pair_open:
            super().add(frame)
            self._is_pair_open = False
        elif frame.game_time >= self._next_pair_s:
            self._next_pair_s = frame.game_time + (
                _PASSED_PAIR_PERIOD_S if self.has_passed else _PAIR_PERIOD_S)
            self._last = None
            super().add(frame)
            self._is_pair_open = True
        self.next_s = -math.inf if self._is_pair_open \
            else min(self._next_pair_s, self.next_details_s)


def _with_velocities(frame: Frame) -> Frame:
    """Return a frame with velocities made of forward speeds; exact unless an actor slides."""
    if frame.forward_speed is None:
        return frame
    kinematics = frame.kinematics.copy()
    with np.errstate(invalid='ignore'):
        forward = global_from_body(frame.orientation_xyzw)[:, :, 0]
    kinematics[:, 7:10] = frame.forward_speed[:, None] * forward
    return replace(frame, kinematics=kinematics, forward_speed=None)


def _poses(frame: Frame, rows: Rows) -> Frame:
    """Return the kinds, poses and velocities of the actors at ``rows``, in their order."""
    return replace(
        frame, names=tuple(frame.names[row] for row in rows), kinds=frame.kinds[rows],
        tags=((),) * len(rows), kinematics=frame.kinematics[rows], lanes=NO_LANES, boxes=None,
        wheels=None, inputs=None, appearance=None, accelerations=None, ids=None,
        extension=None)


def _within(value: float, bounds: tuple[float, float]) -> bool:
    return math.isnan(value) or bounds[0] <= value <= bounds[1]


def _median(values: Floats) -> float:
    """Return the median, with NaN as the greatest; ``np.median`` would import masked arrays."""
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2.0


def _norm(vectors: Floats) -> Floats:
    norm: Floats = np.sqrt(np.einsum('ij,ij->i', vectors, vectors))
    return norm


def _accumulate(sums: Floats, observed: Floats, predicted: Floats) -> Floats:
    """Add the pairs without outliers to sums; in those of recent pairs, older ones count less."""
    fine = (np.abs(observed) < _FARTHEST).all(axis=1) & (np.abs(predicted) < _FARTHEST).all(axis=1)
    if not fine.any():
        return sums
    observed, predicted = observed[fine], predicted[fine]
    residual = observed - predicted
    kept: Floats = _MEMORIES * sums
    kept += (np.sum(observed * predicted), np.sum(predicted * predicted),
             np.sum(residual * residual), float(len(observed)))
    return kept


def _slope(sums: Floats) -> float:
    """Least-squares slope of observed on predicted through the origin."""
    return float(sums[0] / sums[1]) if sums[1] > 0.0 else math.nan


def _rms(sums: Floats) -> float:
    return math.sqrt(sums[2] / sums[3]) if sums[3] > 0.0 else math.nan
