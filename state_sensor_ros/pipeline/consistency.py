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

Pose differences over time are compared with the twists, both in REP-103, for each class of actors.
A result is the median of all ratios, so that no outlier changes it; an actor that was put
somewhere else is counted as a jump. A world that is mirrored or scaled as a whole passes this
comparison, so the side of the wheels, their radius and the length of the vehicles are checked as
well.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field, replace
import math
import re

import numpy as np

from state_sensor_ros.classes import cached_class_of, CLASSES, PERSON
from state_sensor_ros.frame import (
    Bools,
    DERIVED_VELOCITY,
    Floats,
    Frame,
    FRONT_LEFT,
    FRONT_RIGHT,
    KIND_VEHICLE,
    Kinds,
    NO_LANES,
    REAR_LEFT,
    REAR_RIGHT,
    Rows,
)
from state_sensor_ros.rotations import global_from_body, rotation_vectors
from state_sensor_ros.texts import counted

# Slower actors are dropped: noise would dominate. Over a longer gap, the mean of two velocities
# is not the mean velocity; over a still longer one, a turn may exceed half a circle.
_MIN_SPEED = 1.0  # m/s
_MIN_YAW_RATE = 0.1  # rad/s
_MAX_GAP_S, _MAX_TURN_GAP_S = 0.5, 2.0
# People turn at once: between frames that are farther apart, such as those of a recording with
# every other frame, they turn without rates.
_MAX_PERSON_TURN_GAP_S = 0.06
# A slower velocity or rate is 0.
_ZERO = 1e-3
# Pairs of frames whose ratios are the recent ones; fewer than the second give no result.
_N_RECENT, _MIN_PAIRS = 20, 3
# Ratios that are kept of all frames: twice as many are thinned out.
_N_KEPT = 10_000
# An actor that is farther from where its velocity leads, and is so by more than a road user could
# go and by several times what it says, was put there.
_JUMP_M, _JUMP_SPEED, _JUMP_RATIO = 2.0, 70.0, 4.0
# In complaints.
_NUMBER = re.compile(r'[-+\d.e]*\d')
# m or rad between two frames: more is no movement.
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
_MAX_SLIP_SINE, _SLIP_MEMORY = 0.4, 0.95
# Cars have wheels of 0.25 to 0.6 m and bodies of 1 to 25 m, trains of 200 m; centimeters are off
# by 100.
_WHEEL_RADIUS_M = (0.08, 2.0)
_VEHICLE_LENGTH_M = (0.3, 300.0)
# Game time between the sampled pairs of a stream, before and after it has passed, and between
# frames with wheels and boxes.
_PAIR_PERIOD_S, _PASSED_PAIR_PERIOD_S, _DETAILS_PERIOD_S = 0.8, 4.0, 5.0
# Wheels and boxes of ten thousand actors take 0.2 s, so they are checked once in 50 s: this limits
# the work per second for any number of actors.
_DETAILS_PERIOD_PER_ACTOR_S = 0.005


@dataclass(frozen=True, slots=True)
class ConsistencyResult:
    """Medians of the last seconds, or of all frames; NaN as long as nothing moves."""

    linear_slope: float  # displacement per (velocity times time), 1 if units agree
    angular_slope: float  # the same for rotation
    linear_residual: float  # m
    angular_residual: float  # rad, per step
    # Sine of the angle between a vehicle's own x axis and its displacement, in the last seconds.
    slip: float
    n_pairs: int  # number of compared pairs
    complaints: tuple[str, ...]  # a line for each inconsistency of the last seconds
    jumps: str  # how many there were and which one was the longest, empty for none
    reason: str  # why nothing was compared, empty if it was


# Reasons why an actor in two successive frames is not compared.
ABSENT, NO_POSE, NO_VELOCITY, DERIVED, SLOW, TURN = (
    'in one of two frames only', 'without a usable pose', 'without a velocity',
    'with a velocity derived from positions',
    f'slower than {_MIN_SPEED:g} m/s', f'rotations over more than {_MAX_TURN_GAP_S:g} s')


class _Ratios:
    """Ratios of observed to predicted movement, and residuals: the recent ones, and all."""

    def __init__(self) -> None:
        self.n_pairs = 0
        self.recent: deque[Floats] = deque(maxlen=_N_RECENT)
        self._all: list[Floats] = []
        self._n_kept, self._stride = 0, 1

    def add(self, observed: Floats, predicted: Floats, least: float) -> None:
        """Add the vectors of a pair of frames; a prediction below ``least`` is 0."""
        fine = (np.abs(observed) < _FARTHEST).all(axis=1) \
            & (np.abs(predicted) < _FARTHEST).all(axis=1)
        observed, predicted = observed[fine], predicted[fine]
        if not len(observed):
            return
        squares = np.einsum('ij,ij->i', predicted, predicted)
        ratios = np.where(squares > least * least,
                          np.einsum('ij,ij->i', observed, predicted) / squares, math.inf)
        rows = np.column_stack((ratios, _norm(observed - predicted)))
        self.recent.append(rows)
        if self.n_pairs % self._stride == 0:
            self._all.append(rows)
            self._n_kept += len(rows)
        self.n_pairs += 1
        if self._n_kept > 2 * _N_KEPT and len(self._all) > 1:
            self._all, self._stride = self._all[::2], 2 * self._stride
            self._n_kept = sum(map(len, self._all))

    def rows(self, *, of_all: bool) -> list[Floats]:
        return self._all if of_all else list(self.recent)


def _medians(rows: list[Floats]) -> tuple[float, float]:
    """Return the medians of ratios and residuals, NaN without any."""
    if not rows:
        return math.nan, math.nan
    ratios, residuals = np.concatenate(rows).T
    return _median(ratios), _median(residuals)


@dataclass(slots=True)
class _ClassRatios:
    linear: _Ratios = field(default_factory=_Ratios)
    angular: _Ratios = field(default_factory=_Ratios)
    # Movements and turns that were compared, and jumps among them.
    n_moves: int = 0
    n_jumps: int = 0
    longest: tuple[float, str] = (0.0, '')
    # By name: movements, and of these the ones with a velocity of 0.
    moves: Counter[str] = field(default_factory=Counter)
    still: Counter[str] = field(default_factory=Counter)
    # Number of pairs when the last velocity was 0.
    last_still: int = -_N_RECENT

    def add_jumps(self, distances: Floats, names: list[str], place: str) -> None:
        """Count actors that were put somewhere else."""
        self.n_jumps += len(names)
        if names:
            i = int(distances.argmax())
            self.longest = max(self.longest, (float(distances[i]), f'{names[i]}, {place}'))

    def add_still(self, are_still: Bools, names: list[str]) -> None:
        """Count actors that move with a velocity of 0."""
        if are_still.any():
            self.last_still = self.linear.n_pairs
            self.still.update(name for name, is_still in zip(names, are_still, strict=True)
                              if is_still)
        if self.still:
            self.moves.update(names)

    def complaints(self, *, is_coarse: bool) -> list[str]:
        """Return a line for each inconsistency of the last seconds."""
        found = []
        if self.linear.n_pairs - self.last_still < _N_RECENT:
            n_still = sum(count >= _MIN_PAIRS and 2 * count > self.moves[name]
                          for name, count in self.still.items())
            if n_still:
                found.append(f'velocities of {counted(n_still, "actor")} are 0 while they move')
        slope, _ = _medians(self.linear.rows(of_all=False))
        if self.linear.n_pairs >= _MIN_PAIRS and math.isfinite(slope) and not _within(
                slope, _NOISY_SLOPES if is_coarse else _SLOPES):
            found.append(f'displacement is {slope:.3g} times velocity x time: lengths and '
                         'velocities are not in the same units or axes')
        slope, _ = _medians(self.angular.rows(of_all=False))
        if self.angular.n_pairs < _MIN_PAIRS or _within(slope, _NOISY_SLOPES):
            return found
        if slope < -_OPPOSITE:
            found.append('actors turn against their angular velocity: axes are mirrored')
        elif math.isinf(slope):
            found.append('angular velocities are 0 while they turn')
        else:
            found.append(f'rotation is {slope:.3g} times angular velocity x time: '
                         + ('rates look like degrees/s' if 0.01 < slope < 0.03
                            else 'rates are not in rad/s'))
        return found


class ConsistencyCheck:
    """Compare the actors of each frame with those of the one before."""

    # max_gap_s: greatest time between two frames that are compared, s.

    def __init__(self, max_gap_s: float = _MAX_GAP_S) -> None:
        self._max_gap_s = max_gap_s
        self._known_complaints: set[str] = set()
        self.restart()

    def restart(self) -> None:
        """Start a new run of the clock, without results."""
        self._last: Frame | None = None
        self._n_frames = self._n_pairs = self._n_turns = self.n_compared = 0
        self.not_compared: Counter[str] = Counter()
        self._is_coarse = False
        # By index in CLASSES.
        self._classes: defaultdict[int, _ClassRatios] = defaultdict(_ClassRatios)
        self._lateral = _Ratios()
        self._slip = math.nan
        self._handedness = 0.0
        self._radius = math.nan
        self._length = math.nan

    def new_complaints(self) -> list[str]:
        """Return the complaints that differ in more than numbers from those returned before."""
        by_text = {_NUMBER.sub('', each): each for each in self.result().complaints}
        new = [each for text, each in by_text.items() if text not in self._known_complaints]
        self._known_complaints |= by_text.keys()
        return new

    def begin_run(self) -> None:
        """Start a new run of the clock, and keep the results."""
        self._last = None

    @property
    def has_passed(self) -> bool:
        """Whether enough movements and turns were compared, and all are consistent."""
        return min(self._n_pairs, self._n_turns) >= _MIN_PAIRS and not self.result().complaints

    # Overflow and NaN of unusual numbers are dropped.
    @np.errstate(all='ignore')
    def add(self, frame: Frame, place: str = '') -> None:
        """Check a frame."""
        # frame: frame whose ``game_time`` advanced; it is compared with the last one if the time
        # between them is at most ``max_gap_s``.
        last, self._last = self._last, _with_velocities(frame)
        frame = self._last
        self._n_frames += 1
        self._check_wheels(frame)
        self._check_boxes(frame)
        if last is not None and 0.0 < frame.game_time - last.game_time <= self._max_gap_s:
            self._compare(*self._shared(last, frame), place or f'{frame.game_time:.6g} s')

    def _shared(self, last: Frame, frame: Frame) -> tuple[Frame, Frame]:
        """Return two frames with the actors that both have, in the same order."""
        if last.names == frame.names:
            return last, frame
        before = {name: row for row, name in enumerate(last.names)}
        rows = [(before[name], row) for row, name in enumerate(frame.names) if name in before]
        self.not_compared[ABSENT] += last.n_actors + frame.n_actors - 2 * len(rows)
        rows_before, rows_now = np.array(rows, np.int64).reshape(-1, 2).T
        return _poses(last, rows_before), _poses(frame, rows_now)

    def _compare(self, last: Frame, frame: Frame, place: str) -> None:
        elapsed = frame.game_time - last.game_time
        both = last.has_pose() & frame.has_pose()
        rows = both.nonzero()[0]
        classes = _classes_of(frame, rows)
        moved = (frame.position_xyz - last.position_xyz)[rows]
        predicted = (0.5 * elapsed * (frame.velocity_xyz + last.velocity_xyz))[rows]
        derived = (last.is_derived(DERIVED_VELOCITY) | frame.is_derived(DERIVED_VELOCITY))[rows]
        known: Bools = np.isfinite(predicted.sum(axis=1)) & ~derived
        distances, expected = _norm(moved), np.where(known, _norm(predicted), 0.0)
        # Either may be wrong: an actor moves if one of them exceeds the limit.
        moves: Bools = known & (np.maximum(distances, expected) > _MIN_SPEED * elapsed)
        errors = np.where(known, _norm(moved - predicted), distances)
        jumps: Bools = errors > np.maximum(
            max(_JUMP_M, _JUMP_SPEED * elapsed), _JUMP_RATIO * expected)
        self._count(both, known, moves, int(np.count_nonzero(derived)))
        self._is_coarse = elapsed > _MAX_GAP_S
        least = _ZERO * elapsed
        goes: Bools = moves | (distances > _MIN_SPEED * elapsed)
        for class_ in set(classes[goes].tolist()):
            found, chosen = self._classes[class_], moves & (classes == class_)
            found.n_moves += int(np.count_nonzero(goes & (classes == class_)))
            found.linear.add(moved[chosen], predicted[chosen], least)
            jumped = (jumps & (classes == class_)).nonzero()[0]
            found.add_jumps(distances[jumped], [frame.names[i] for i in rows[jumped]], place)
            chosen &= ~jumps
            found.add_still(expected[chosen] <= least, [frame.names[i] for i in rows[chosen]])
        across = moves & (np.maximum(np.abs(moved[:, 1]), np.abs(predicted[:, 1]))
                          > _MIN_SPEED * elapsed)
        self._lateral.add(moved[across, 1:2], predicted[across, 1:2], least)
        self._n_pairs += bool(moves.any())
        if elapsed > _MAX_TURN_GAP_S:
            self.not_compared[TURN] += len(rows)
            return
        steady = ~derived & ~jumps
        self._compare_turns(last, frame, rows[steady], classes[steady])
        self._check_headings(frame, rows, moved, moves)

    def _compare_turns(self, last: Frame, frame: Frame, rows: Rows, classes: Kinds) -> None:
        elapsed = frame.game_time - last.game_time
        # Yaw alone: roll and pitch rates have an artifact of the simulator,
        # doc/protocol/units.md#angular-velocity.
        turned = rotation_vectors(last.orientation_xyzw[rows], frame.orientation_xyzw[rows])[:, 2:]
        now, before = (elapsed * each.angular_velocity_xyz[rows, 2:] for each in (frame, last))
        predicted = 0.5 * (now + before)
        # Some rates are those since the last frame.
        predicted = np.where(np.abs(turned - now) < np.abs(turned - predicted), now, predicted)
        turns = np.maximum(_norm(turned), _norm(predicted)) > _MIN_YAW_RATE * elapsed
        if elapsed > _MAX_PERSON_TURN_GAP_S:
            turns &= classes != PERSON
        for class_ in set(classes[turns].tolist()):
            chosen = turns & (classes == class_)
            self._classes[class_].angular.add(turned[chosen], predicted[chosen], _ZERO * elapsed)
        self._n_turns += bool(turns.any())

    def _count(self, both: Bools, known: Bools, moves: Bools, n_derived: int) -> None:
        """Count which actors of two frames are compared, and why the others are not."""
        n_known, n_moving = np.count_nonzero(known), np.count_nonzero(moves)
        self.n_compared += int(n_moving)
        for reason, count in ((NO_POSE, len(both) - len(known)),
                              (NO_VELOCITY, len(known) - n_known - n_derived),
                              (DERIVED, n_derived), (SLOW, n_known - n_moving)):
            if count:
                self.not_compared[reason] += int(count)

    def _check_headings(self, frame: Frame, rows: Rows, moved: Floats, moves: Bools) -> None:
        vehicles = moves & (frame.kinds[rows] == KIND_VEHICLE)
        if not vehicles.any():
            return
        forward_xy = global_from_body(frame.orientation_xyzw[rows[vehicles]])[:, :2, 0]
        step_xy = moved[vehicles, :2]
        crossed = forward_xy[:, 0] * step_xy[:, 1] - forward_xy[:, 1] * step_xy[:, 0]
        sine = _median(np.abs(crossed) / np.maximum(_norm(forward_xy) * _norm(step_xy), 1e-9))
        self._slip = sine if math.isnan(self._slip) \
            else _SLIP_MEMORY * self._slip + (1.0 - _SLIP_MEMORY) * sine

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
        found = self._classes.values()
        linear = _medians([rows for each in found for rows in each.linear.rows(of_all=of_all)])
        angular = _medians([rows for each in found for rows in each.angular.rows(of_all=of_all)])
        return ConsistencyResult(
            linear[0], angular[0], linear[1], angular[1], self._slip, self._n_pairs,
            self._complaints(), self._jumps(), self._reason())

    def _jumps(self) -> str:
        # Where most movements are jumps, lengths are in another unit.
        found = [each for each in self._classes.values()
                 if each.n_jumps and 2 * each.n_jumps <= max(each.n_moves, 2)]
        if not found:
            return ''
        distance, place = max(each.longest for each in found)
        n_jumps = sum(each.n_jumps for each in found)
        return f'{counted(n_jumps, "jump")}, the longest {distance:.4g} m ({place})'

    def _reason(self) -> str:
        if self._n_pairs:
            return ''
        if self._n_frames < 2:
            return f'nothing compared: {counted(self._n_frames, "frame")}'
        if self.not_compared.keys() <= {SLOW}:
            return 'nothing moves'
        [(reason, _)] = self.not_compared.most_common(1)
        return f'nothing compared: {reason}'

    def _complaints(self) -> tuple[str, ...]:
        faults = [f'{CLASSES[class_].name}: {complaint}'
                  for class_, each in sorted(self._classes.items())
                  for complaint in each.complaints(is_coarse=self._is_coarse)]
        if self._n_pairs >= _MIN_PAIRS:
            lateral, _ = _medians(self._lateral.rows(of_all=False))
            if lateral < -_OPPOSITE:
                faults.append('y is not mirrored: actors move against their lateral velocity')
            if self._slip > _MAX_SLIP_SINE:
                faults.append('vehicles do not move along their own x axis: y is not mirrored, or '
                              'quaternions are')
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
    is checked every 4 s, wheels and boxes every 5 s, and less often above 1000 actors.
    """

    def restart(self) -> None:
        """Start without results: the next frame begins a pair."""
        super().restart()
        self.next_s = self.next_details_s = self._next_pair_s = -math.inf
        self._is_pair_open = False

    def add(self, frame: Frame, place: str = '') -> None:
        """Check a frame if one is due."""
        # frame: as for the base class; one with wheels renews :attr:`next_details_s`.
        if frame.wheels is not None:
            self.next_details_s = frame.game_time + max(
                _DETAILS_PERIOD_S, _DETAILS_PERIOD_PER_ACTOR_S * frame.n_actors)
        if self._is_pair_open:
            super().add(frame, place)
            self._is_pair_open = False
        elif frame.game_time >= self._next_pair_s:
            self._next_pair_s = frame.game_time + (
                _PASSED_PAIR_PERIOD_S if self.has_passed else _PAIR_PERIOD_S)
            self._last = None
            super().add(frame, place)
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
    return Frame(
        frame.generation, frame.game_time, frame.time, frame.sample_count,
        tuple(frame.names[row] for row in rows), frame.kinds[rows],
        tuple(frame.tags[row] for row in rows), frame.kinematics[rows], NO_LANES,
        derived=None if frame.derived is None else frame.derived[rows])


def _classes_of(frame: Frame, rows: Rows) -> Kinds:
    """Return the class of the actors at ``rows``, index in CLASSES."""
    kinds, tags = frame.kinds, frame.tags
    return np.array([cached_class_of(kinds[row], tags[row]) for row in rows.tolist()], np.uint8)


def _within(value: float, bounds: tuple[float, float]) -> bool:
    return math.isnan(value) or bounds[0] <= value <= bounds[1]


def _median(values: Floats) -> float:
    """Return the median, with NaN as the greatest; ``np.median`` would import masked arrays."""
    if not len(values):
        return math.nan
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2.0


def _norm(vectors: Floats) -> Floats:
    norm: Floats = np.sqrt(np.einsum('ij,ij->i', vectors, vectors))
    return norm
