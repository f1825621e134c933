# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Checks of a stream: one table of what is impossible. No value is changed.

Displacements are compared with velocities, and turns with rates, both in REP-103, for each class
of actors. A figure is a median, so that no single actor changes it. A world that is mirrored or
scaled as a whole passes this comparison, so the side of the wheels, their radius and the length of
the vehicles are checked as well. A motion that no road user has is named with its actor.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
import math
from typing import Any, NamedTuple

import numpy as np

from state_sensor_ros import frame as frames
from state_sensor_ros.classes import cached_class_of, CLASSES, PERSON
from state_sensor_ros.frame import Bools, Floats, Frame
from state_sensor_ros.jumps import Jumps, norm, Pair, POSITION, with_velocities
from state_sensor_ros.rotations import global_from_body, rotation_vectors
from state_sensor_ros.texts import counted

# Slower actors are not compared: noise would dominate. Over a longer gap, the mean of two
# velocities is not the mean velocity; over a still longer one, a turn may exceed half a circle,
# and people turn at once.
_MIN_SPEED, _MIN_YAW_RATE = 1.0, 0.1  # m/s, rad/s
_MAX_GAP_S, _MAX_TURN_GAP_S, _MAX_PERSON_TURN_GAP_S = 0.5, 2.0, 0.06
# A slower velocity or rate is 0. m or rad between two frames: more is no movement.
_ZERO, _FARTHEST = 1e-3, 1e6
# Pairs of frames of the last seconds; fewer than the second give no result; pairs that are kept.
_N_RECENT, _MIN_PAIRS, _N_KEPT = 20, 3, 1000
_SLIP_MEMORY = 0.95
# Game time between two frames with wheels and boxes; those of 10,000 actors take 0.2 s.
_DETAILS_PERIOD_S, _DETAILS_PERIOD_PER_ACTOR_S = 5.0, 0.005
# From a pair of frames of a stream to the next one, before and after all checks have passed, s:
# the three pairs of a complaint take 3 s.
SAMPLED = 0.8, 4.0
# Reasons why an actor in two successive frames is not compared.
ABSENT, NO_POSE, NO_VELOCITY, DERIVED, SLOW, TURN = (
    'in one of two frames only', 'without a usable pose', 'without a velocity',
    'with a velocity derived from positions',
    f'slower than {_MIN_SPEED:g} m/s', f'rotations over more than {_MAX_TURN_GAP_S:g} s')


@dataclass(slots=True)
class Figures:
    """What is checked, of one class or of all; NaN or 0 if unknown."""

    displacement: float = math.nan  # per velocity x time
    rotation: float = math.nan  # per angular velocity x time
    linear_residual: float = math.nan  # m
    angular_residual: float = math.nan  # rad
    still: str = ''  # how many actors have the velocity 0 while they move
    is_coarse: bool = False  # whether the frames are far apart
    lateral: float = math.nan  # displacement along y per velocity x time
    slip: float = math.nan  # sine between the x axis of vehicles and their displacement
    left_m: float = math.nan  # y of the left wheels minus y of the right ones
    radius_m: float = math.nan  # of wheels
    length_m: float = math.nan  # of vehicles


class Check(NamedTuple):
    """A row of the table: the complaint ``text`` is due if ``is_wrong``."""

    name: str
    is_wrong: Callable[[Figures], bool]
    text: str


# The slope of displacement on velocity is 1.000 +- 0.002 in every recording, and noisier over long
# gaps (doc/protocol/units.md#lengths). Rotation is noisier, as cars start to turn within a step.
# Below -0.5, observed and predicted movement are opposite. Heading and velocity agree within 15
# degrees in 99 % of all frames. Cars have wheels of 0.25 to 0.6 m and bodies of 1 to 25 m, trains
# of 200 m; centimeters are off by 100.
CHECKS = (
    Check('still', lambda of: bool(of.still),
          'velocities of {of.still} are 0 while they move'),
    Check('displacement', lambda of: math.isfinite(of.displacement) and not (
        0.4 <= of.displacement <= 2.5 if of.is_coarse else 0.75 <= of.displacement <= 1.25),
        'displacement is {of.displacement:.3g} times velocity x time: lengths and velocities are '
        'not in the same units or axes'),
    Check('opposite rotation', lambda of: of.rotation < -0.5,
          'actors turn against their angular velocity: axes are mirrored'),
    Check('no rotation', lambda of: math.isinf(of.rotation),
          'angular velocities are 0 while they turn'),
    Check('degrees', lambda of: 0.01 < of.rotation < 0.03, 'rotation is {of.rotation:.3g} times '
          'angular velocity x time: rates look like degrees/s'),
    Check('rotation', lambda of: -0.5 <= of.rotation <= 0.01 or 0.03 <= of.rotation < 0.4
          or 2.5 < of.rotation < math.inf, 'rotation is {of.rotation:.3g} times angular velocity '
          'x time: rates are not in rad/s'),
    Check('lateral', lambda of: of.lateral < -0.5,
          'y is not mirrored: actors move against their lateral velocity'),
    Check('slip', lambda of: of.slip > 0.4, 'vehicles do not move along their own x axis: y is '
          'not mirrored, or quaternions are'),
    Check('wheels', lambda of: of.left_m < 0.0, 'left wheels lie on the right: y is not mirrored'),
    Check('radius', lambda of: of.radius_m < 0.08 or of.radius_m > 2.0, 'wheels would have a '
          'radius of {of.radius_m:.3g} m: lengths are not in the expected unit'),
    Check('length', lambda of: of.length_m < 0.3 or of.length_m > 300.0, 'vehicles would be '
          '{of.length_m:.3g} m long: lengths are not in the expected unit'),
)


class Checks:
    """
    Compare the actors of each frame with those of the one before.

    :param max_gap_s: greatest time between two frames that are compared, s.
    :param periods_s: game time from a pair of frames to the next one that is compared, s; the
        second one while no check complains.
    :ivar next_s: time of the next frame to add, s.
    :ivar next_details_s: time of the next frame to add with wheels and boxes, s.
    """

    def __init__(self, max_gap_s: float = _MAX_GAP_S,
                 periods_s: tuple[float, float] = (0.0, 0.0)) -> None:
        self._max_gap_s, self._periods_s = max_gap_s, periods_s
        self._named: set[tuple[str, str]] = set()
        self.restart()

    def restart(self) -> None:
        """Start a new run of the clock, without results."""
        self.next_s = self.next_details_s = -math.inf
        self.n_pairs = self.n_compared = self._n_frames = 0
        self.not_compared, self.jumps = Counter[str](), Jumps()
        # By class: ratios and residuals of movements and of turns, names of actors that move, and
        # of these the ones with a velocity of 0.
        self._linear, self._angular, self._moves, self._still = (
            defaultdict[int, deque[Any]](lambda: deque(maxlen=_N_KEPT)) for _ in range(4))
        self._lateral: deque[Floats] = deque(maxlen=_N_RECENT)
        self._of_all = Figures()
        self.begin_run()

    def begin_run(self) -> None:
        """Start a new run of the clock, and keep the results."""
        self._last: Frame | None = None

    # Overflow and NaN of unusual numbers are dropped.
    @np.errstate(all='ignore')
    def add(self, frame: Frame, place: str = '') -> None:
        """Check a frame whose ``game_time`` advanced; ``place`` is its time by default."""
        last, self._last = self._last, with_velocities(frame)
        self._n_frames += 1
        self._look_at_parts(self._last)
        if last is not None and 0.0 < frame.game_time - last.game_time <= self._max_gap_s:
            self._compare(Pair(last, self._last), place)
            self.next_s = frame.game_time + self._periods_s[
                self.n_pairs >= _MIN_PAIRS and not self._due()]
            if self._periods_s[0]:
                self._last = None

    def _compare(self, pair: Pair, place: str) -> None:
        frame, elapsed, rows, moved = pair.frame, pair.elapsed, pair.rows, pair.moved
        predicted = 0.5 * elapsed * (
            frame.velocity_xyz[rows] + pair.last.velocity_xyz[pair.before])
        known: Bools = np.isfinite(predicted.sum(axis=1)) & ~pair.are_derived
        expected, least = np.where(known, norm(predicted), 0.0), _ZERO * elapsed
        # Either may be wrong: an actor moves if one of them exceeds the limit.
        moves: Bools = known & (np.maximum(norm(moved), expected) > _MIN_SPEED * elapsed)
        for reason, count in (
                (ABSENT, pair.n_absent), (NO_POSE, pair.n_poseless),
                (NO_VELOCITY, np.sum(~known & ~pair.are_derived)),
                (DERIVED, np.sum(pair.are_derived)), (SLOW, np.sum(known & ~moves)),
                (TURN, len(rows) * (elapsed > _MAX_TURN_GAP_S))):
            self.not_compared += Counter({reason: int(count)})
        self.n_compared += int(moves.sum())
        self.n_pairs += bool(moves.any())
        self._of_all.is_coarse = elapsed > _MAX_GAP_S
        steady = ~self.jumps.note(pair, place)[POSITION]
        classes = np.array([cached_class_of(frame.kinds[row], frame.tags[row])
                            for row in rows.tolist()], np.int64)
        for class_ in set(classes[moves].tolist()):
            chosen = moves & (classes == class_)
            _add_ratios(self._linear[class_], moved[chosen], predicted[chosen], least)
            self._moves[class_].append(pair.names(chosen & steady))
            self._still[class_].append(pair.names(chosen & steady & (expected <= least)))
        across = moves & (np.maximum(np.abs(moved[:, 1]), np.abs(predicted[:, 1]))
                          > _MIN_SPEED * elapsed)
        _add_ratios(self._lateral, moved[across, 1:2], predicted[across, 1:2], least)
        if elapsed > _MAX_TURN_GAP_S:
            return
        # Yaw alone: roll and pitch rates have an artifact of the simulator,
        # doc/protocol/units.md#angular-velocity.
        turned = rotation_vectors(pair.last.orientation_xyzw[pair.before],
                                  frame.orientation_xyzw[rows])[:, 2:]
        now = elapsed * frame.angular_velocity_xyz[rows, 2:]
        predicted = 0.5 * (now + elapsed * pair.last.angular_velocity_xyz[pair.before, 2:])
        # Some rates are those since the last frame.
        predicted = np.where(np.abs(turned - now) < np.abs(turned - predicted), now, predicted)
        turns = steady & ~pair.are_derived & (
            np.maximum(norm(turned), norm(predicted)) > _MIN_YAW_RATE * elapsed)
        if elapsed > _MAX_PERSON_TURN_GAP_S:
            turns &= classes != PERSON
        for class_ in set(classes[turns].tolist()):
            chosen = turns & (classes == class_)
            _add_ratios(self._angular[class_], turned[chosen], predicted[chosen], least)
        vehicles = moves & (frame.kinds[rows] == frames.KIND_VEHICLE)
        if vehicles.any():
            forward_xy = global_from_body(frame.orientation_xyzw[rows[vehicles]])[:, :2, 0]
            step_xy = moved[vehicles, :2]
            crossed = forward_xy[:, 0] * step_xy[:, 1] - forward_xy[:, 1] * step_xy[:, 0]
            sine = _median(np.abs(crossed) / np.maximum(norm(forward_xy) * norm(step_xy), 1e-9))
            slip = self._of_all.slip
            self._of_all.slip = sine if math.isnan(slip) \
                else _SLIP_MEMORY * slip + (1.0 - _SLIP_MEMORY) * sine

    def _look_at_parts(self, frame: Frame) -> None:
        """Take the figures of wheels and boxes."""
        wheels, boxes, of = frame.wheels, frame.boxes, self._of_all
        if wheels is not None:
            self.next_details_s = frame.game_time + max(
                _DETAILS_PERIOD_S, _DETAILS_PERIOD_PER_ACTOR_S * frame.n_actors)
            left, right = (np.isin(wheels.wheel, side) & wheels.position_known for side in (
                (frames.FRONT_LEFT, frames.REAR_LEFT), (frames.FRONT_RIGHT, frames.REAR_RIGHT)))
            if left.any() and right.any():
                # REP-103: y points left.
                of.left_m = (_median(wheels.position_xyz[left, 1])
                             - _median(wheels.position_xyz[right, 1]))
            speed = norm(frame.velocity_xyz)[wheels.actor]
            rolling = (speed > _MIN_SPEED) & (np.abs(wheels.speed) > 1.0)
            if rolling.any():
                of.radius_m = _median(speed[rolling] / np.abs(wheels.speed[rolling]))
        if boxes is not None:
            vehicles = frame.kinds[boxes.actor] == frames.KIND_VEHICLE
            if vehicles.any():
                of.length_m = _median(boxes.size_xyz[vehicles].max(axis=1))

    def figures(self, *, of_all: bool = False) -> Figures:
        """Return the figures of all classes of the last seconds, or of all frames."""
        linear, angular = (
            [rows for each in of_class.values() for rows in (each if of_all else _recent(each))]
            for of_class in (self._linear, self._angular))
        return replace(_medians(linear, angular), slip=self._of_all.slip)

    def _due(self) -> dict[tuple[str, str], str]:
        """Return the complaints by class and name of the check."""
        of_all = replace(self._of_all, lateral=_medians(list(self._lateral), []).displacement)
        if self.n_pairs < _MIN_PAIRS:
            of_all = replace(of_all, lateral=math.nan, slip=math.nan)
        of = {f'{CLASSES[class_].name}: ': self._figures_of(class_)
              for class_ in sorted({*self._linear, *self._angular})} | {'': of_all}
        return {(whose, check.name): whose + check.text.format(of=each)
                for whose, each in of.items() for check in CHECKS if check.is_wrong(each)}

    def _figures_of(self, class_: int) -> Figures:
        linear, angular = (_recent(each[class_]) if len(each[class_]) >= _MIN_PAIRS else []
                           for each in (self._linear, self._angular))
        moves, still = (Counter(chain(*_recent(each[class_])))
                        for each in (self._moves, self._still))
        n_still = sum(count >= _MIN_PAIRS and 2 * count > moves[name]
                      for name, count in still.items())
        return replace(_medians(linear, angular), still=counted(n_still, 'actor') * bool(n_still),
                       is_coarse=self._of_all.is_coarse)

    @property
    def complaints(self) -> tuple[str, ...]:
        """Return a line for each complaint about the last seconds."""
        return tuple(self._due().values())

    def new_complaints(self) -> list[str]:
        """Return the complaints whose check and class differ from those returned before."""
        due = self._due()
        new = [text for key, text in due.items() if key not in self._named]
        self._named |= due.keys()
        return new

    @property
    def reason(self) -> str:
        """Return why nothing was compared, empty if it was."""
        if self.n_pairs:
            return ''
        if self._n_frames < 2:
            return f'nothing compared: {counted(self._n_frames, "frame")}'
        if self.not_compared.keys() <= {SLOW}:
            return 'nothing moves'
        [(reason, _)] = self.not_compared.most_common(1)
        return f'nothing compared: {reason}'


def _add_ratios(rows: deque[Floats], observed: Floats, predicted: Floats, least: float) -> None:
    """Add ratios and residuals; a prediction below ``least`` is 0."""
    fine = (np.abs(np.hstack((observed, predicted))) < _FARTHEST).all(axis=1)
    observed, predicted = observed[fine], predicted[fine]
    if len(observed):
        squares = np.einsum('ij,ij->i', predicted, predicted)
        ratios = np.where(squares > least * least,
                          np.einsum('ij,ij->i', observed, predicted) / squares, math.inf)
        rows.append(np.column_stack((ratios, norm(observed - predicted))))


def _recent(rows: deque[Any]) -> list[Any]:
    return list(rows)[-_N_RECENT:]


def _medians(linear: list[Floats], angular: list[Floats]) -> Figures:
    """Return the medians of ratios and residuals, NaN without any."""
    (displacement, moved), (rotation, turned) = (
        map(_median, np.concatenate([np.empty((0, 2)), *rows]).T) for rows in (linear, angular))
    return Figures(displacement, rotation, moved, turned)


def _median(values: Floats) -> float:
    """Return the median, with NaN as the greatest; ``np.median`` would import masked arrays."""
    if not len(values):
        return math.nan
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2.0
