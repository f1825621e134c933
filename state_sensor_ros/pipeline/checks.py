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

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from state_sensor_ros import frame as frames
from state_sensor_ros import rotations, texts
from state_sensor_ros.classes import cached_class_of, CLASSES, PERSON
from state_sensor_ros.frame import Bools, Floats, Frame
from state_sensor_ros.jumps import Jumps, norm, Pair, POSITION, with_velocities

# Slower actors are not compared: noise would dominate. Over a longer gap, the mean of two
# velocities is not the mean velocity; over a still longer one, a turn may exceed half a circle,
# and people turn at once.
_MIN_SPEED, _MIN_YAW_RATE = 1.0, 0.1  # m/s, rad/s
_MAX_GAP_S, _MAX_TURN_GAP_S, _MAX_PERSON_TURN_GAP_S = 0.5, 2.0, 0.06
# A slower velocity or rate is 0, m/s or rad/s.
_ZERO = 1e-3
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
    linear_residual: float = math.nan  # m
    rotation: float = math.nan  # per angular velocity x time
    angular_residual: float = math.nan  # rad
    still: str = ''  # how many actors have the velocity 0 while they move
    is_coarse: bool = False  # whether the frames are far apart
    slip: float = math.nan  # sine between the x axis of vehicles and their displacement
    left_m: float = math.nan  # y of the left wheels minus y of the right ones
    length_m: float = math.nan  # of vehicles


class Check(NamedTuple):
    """A row of the table: the complaint ``text`` is due if ``is_wrong``."""

    name: str
    is_wrong: Callable[[Figures], bool]
    text: str


# The slope of displacement on velocity is 1.000 +- 0.002 in every recording, and noisier over long
# gaps (doc/protocol/units.md#lengths). Rotation is noisier, as cars start to turn within a step.
# Heading and velocity agree within 15 degrees in 99 % of all frames. Cars are 1 to 25 m long,
# trains 200 m; centimeters are off by 100.
CHECKS = (
    Check('still', lambda of: bool(of.still), 'velocities of {of.still} are 0 while they move'),
    Check('displacement', lambda of: math.isfinite(of.displacement) and not (
        0.4 <= of.displacement <= 2.5 if of.is_coarse else 0.75 <= of.displacement <= 1.25),
        'displacement is {of.displacement:.3g} times velocity x time: lengths and velocities are '
        'not in the same units or axes'),
    Check('rotation', lambda of: of.rotation < 0.4 or of.rotation > 2.5,
          'rotation is {of.rotation:.3g} times angular velocity x time: rates are not in rad/s '
          '(0.0175: degrees/s), are 0 (inf), or axes are mirrored (-1)'),
    Check('slip', lambda of: of.slip > 0.4, 'vehicles do not move along their own x axis: y is '
          'not mirrored, or quaternions are'),
    Check('wheels', lambda of: of.left_m < 0.0, 'left wheels lie on the right: y is not mirrored'),
    Check('length', lambda of: of.length_m < 0.3 or of.length_m > 300.0, 'vehicles would be '
          '{of.length_m:.3g} m long: lengths are not in the expected unit'))


class _Compared(NamedTuple):
    """The actors of a pair of frames that move or turn."""

    names: npt.NDArray[np.object_]
    rows: Floats  # (M, 3) class, ratio of observed to predicted, residual

    @classmethod
    def of(cls, pair: Pair, chosen: Bools, classes: npt.NDArray[np.int64], observed: Floats,
           predicted: Floats) -> _Compared:
        """Compare the chosen rows of a pair; a prediction below the least is 0."""
        observed, predicted = observed[chosen], predicted[chosen]
        squares = np.einsum('ij,ij->i', predicted, predicted)
        ratios = np.where(squares > (_ZERO * pair.elapsed) ** 2,
                          np.einsum('ij,ij->i', observed, predicted) / squares, math.inf)
        return cls(np.array(pair.names(chosen), object), np.column_stack(
            (classes[chosen], ratios, norm(observed - predicted))))

    def of_class(self, class_: float) -> _Compared:
        """Return those of a class."""
        chosen = self.rows[:, 0] == class_
        return _Compared(self.names[chosen], self.rows[chosen])


def _figures(linear: Sequence[_Compared], angular: Sequence[_Compared]) -> Figures:
    """Return the medians, and how many actors move in most pairs without a velocity."""
    of = Figures()
    of.displacement, of.linear_residual, of.rotation, of.angular_residual = (
        _median(column) for pairs in (linear, angular) for column in np.concatenate(
            [np.empty((0, 3)), *(pair.rows for pair in pairs)]).T[1:])
    moving = Counter(chain(*(pair.names for pair in linear)))
    still = Counter(chain(*(pair.names[np.isinf(pair.rows[:, 1])] for pair in linear)))
    n_still = sum(count >= _MIN_PAIRS and 2 * count > moving[name]
                  for name, count in still.items())
    of.still = texts.counted(n_still, 'actor') * bool(n_still)
    return of


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
        self.not_compared, self.jumps, self._of_all = Counter[str](), Jumps(), Figures()
        self._linear, self._angular = (deque[_Compared](maxlen=_N_KEPT) for _ in range(2))
        self.begin_run()

    def begin_run(self) -> None:
        """Start a new run of the clock, and keep the results."""
        self._last: Frame | None = None

    # Overflow and NaN of unusual numbers do not change a median.
    @np.errstate(all='ignore')
    def add(self, frame: Frame, place: str = '') -> None:
        """Check a frame whose ``game_time`` advanced; ``place`` is its time by default."""
        last, self._last = self._last, with_velocities(frame)
        self._n_frames += 1
        self._look_at_parts(self._last)
        if last is not None and 0.0 < frame.game_time - last.game_time <= self._max_gap_s:
            self._compare(Pair(last, self._last), place)
            if self._periods_s[0]:
                self.next_s = frame.game_time + self._periods_s[
                    self.n_pairs >= _MIN_PAIRS and not self._due()]
                self._last = None

    def _compare(self, pair: Pair, place: str) -> None:
        frame, last, elapsed, rows = pair.frame, pair.last, pair.elapsed, pair.rows
        predicted = 0.5 * elapsed * (frame.velocity_xyz[rows] + last.velocity_xyz[pair.before])
        known: Bools = np.isfinite(predicted.sum(axis=1)) & ~pair.are_derived
        expected = np.where(known, norm(predicted), 0.0)
        # Either may be wrong: an actor moves if one of them exceeds the limit.
        moves: Bools = known & (np.maximum(norm(pair.moved), expected) > _MIN_SPEED * elapsed)
        self.not_compared += Counter({reason: int(np.sum(of)) for reason, of in (
            (ABSENT, pair.n_absent), (NO_POSE, pair.n_poseless),
            (NO_VELOCITY, ~known & ~pair.are_derived), (DERIVED, pair.are_derived),
            (SLOW, known & ~moves), (TURN, len(rows) * (elapsed > _MAX_TURN_GAP_S)))})
        self.n_compared += int(moves.sum())
        self.n_pairs += bool(moves.any())
        self._of_all.is_coarse = elapsed > _MAX_GAP_S
        steady = ~self.jumps.note(pair, place)[POSITION]
        classes = np.array([cached_class_of(frame.kinds[row], frame.tags[row])
                            for row in rows.tolist()], np.int64)
        self._linear.append(_Compared.of(pair, moves, classes, pair.moved, predicted))
        if elapsed > _MAX_TURN_GAP_S:
            return
        # Yaw alone: roll and pitch rates have an artifact of the simulator,
        # doc/protocol/units.md#angular-velocity.
        turned = rotations.rotation_vectors(last.orientation_xyzw[pair.before],
                                            frame.orientation_xyzw[rows])[:, 2:]
        now = elapsed * frame.angular_velocity_xyz[rows, 2:]
        predicted = 0.5 * (now + elapsed * last.angular_velocity_xyz[pair.before, 2:])
        # Some rates are those since the last frame.
        predicted = np.where(np.abs(turned - now) < np.abs(turned - predicted), now, predicted)
        turns = steady & ~pair.are_derived & (
            np.maximum(norm(turned), norm(predicted)) > _MIN_YAW_RATE * elapsed)
        if elapsed > _MAX_PERSON_TURN_GAP_S:
            turns &= classes != PERSON
        self._angular.append(_Compared.of(pair, turns, classes, turned, predicted))
        vehicles = moves & (frame.kinds[rows] == frames.KIND_VEHICLE)
        if vehicles.any():
            axes, (x, y) = rotations.global_from_body(frame.orientation_xyzw[rows[vehicles]]), \
                pair.moved[vehicles, :2].T
            sine = _median(np.abs(axes[:, 0, 0] * y - axes[:, 1, 0] * x) / np.maximum(
                norm(axes[:, :2, 0]) * np.hypot(x, y), 1e-9))
            slip = sine if math.isnan(self._of_all.slip) else self._of_all.slip
            self._of_all.slip = _SLIP_MEMORY * slip + (1.0 - _SLIP_MEMORY) * sine

    def _look_at_parts(self, frame: Frame) -> None:
        """Take the figures of wheels and boxes."""
        wheels, boxes, of = frame.wheels, frame.boxes, self._of_all
        if wheels is not None:
            self.next_details_s = frame.game_time + max(
                _DETAILS_PERIOD_S, _DETAILS_PERIOD_PER_ACTOR_S * frame.n_actors)
            left, right = (wheels.position_xyz[wheels.position_known & np.isin(
                wheels.wheel, side), 1] for side in ((frames.FRONT_LEFT, frames.REAR_LEFT),
                                                     (frames.FRONT_RIGHT, frames.REAR_RIGHT)))
            # REP-103: y points left.
            of.left_m = _median(left) - _median(right)
        if boxes is not None:
            sizes = boxes.size_xyz[frame.kinds[boxes.actor] == frames.KIND_VEHICLE]
            of.length_m = _median(sizes.max(axis=1))

    def figures(self, *, of_all: bool = False) -> Figures:
        """Return the figures of all classes of the last seconds, or of all frames."""
        return replace(_figures(*(list(pairs)[0 if of_all else -_N_RECENT:]
                                  for pairs in (self._linear, self._angular))),
                       slip=self._of_all.slip)

    def _due(self) -> dict[tuple[str, str], str]:
        """Return the complaints by class and name of the check."""
        recent = [list(pairs)[-_N_RECENT:] for pairs in (self._linear, self._angular)]
        of = {'': self._of_all if self.n_pairs >= _MIN_PAIRS
              else replace(self._of_all, slip=math.nan)}
        for class_ in {*chain(*(pair.rows[:, 0].tolist() for pair in chain(*recent)))}:
            chosen = ([own for pair in pairs if len((own := pair.of_class(class_)).names)]
                      for pairs in recent)
            of[f'{CLASSES[int(class_)].name}: '] = replace(_figures(*(
                pairs if len(pairs) >= _MIN_PAIRS else [] for pairs in chosen)),
                is_coarse=self._of_all.is_coarse)
        return {(whose, check.name): whose + check.text.format(of=each)
                for whose, each in sorted(of.items(), reverse=True)
                for check in CHECKS if check.is_wrong(each)}

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
        if self._n_frames > 1 and self.not_compared.keys() <= {SLOW}:
            return 'nothing moves'
        return 'nothing compared: ' + (texts.counted(self._n_frames, 'frame') if self._n_frames < 2
                                       else self.not_compared.most_common(1)[0][0])


def _median(values: Floats) -> float:
    """Return the median, with NaN as the greatest; ``np.median`` would import masked arrays."""
    if not len(values):
        return math.nan
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2.0
