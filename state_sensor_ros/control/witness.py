# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The witness: what is measured of the ego, and whether it does what is ordered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
import math
from statistics import median_low
import time

from state_sensor_ros.control.ego_commands import ControlParameters, EgoCommand, slowing_by_slope
from state_sensor_ros.control.gate import EgoMotion
from state_sensor_ros.rotations import heading_of

# Frames that are closer, s, say nothing about the acceleration; a larger one, m/s2, is an error.
_SHORTEST_STEP_S, _MOST_ACCELERATION = 1e-3, 15.0
# A pose that changes by less, m and rad, stands; it is frozen if it stands for so long, s of game
# time, and its own velocity or the throttle says that it moves. One that changes by so much more
# than the velocity says, m, is put somewhere else.
_STILL_M, _STILL_RAD, FROZEN_S, _JUMP_M = 1e-3, 1e-4, 2.0, 1.0
# A fault ends after so long without it, s of the steady clock.
HOLD_S = 2.0
# Simulated time from an order until the ego must be measured to follow it, and time of the steady
# clock without a new frame of an ego that is to slow, s.
OBEY_S, _UNSEEN_S = 1.5, 2.5
# Below this speed it has slowed; above this one its pose moves, m/s.
_STANDS, _MOVES = 0.3, 0.1
# Share of the ordered deceleration, or turning, that is obedience: an ego may be heavy, or go
# downhill. More turning than so many times the ordered one, and so much across, m/s2, is none.
_SHARE, _MOST, _ACROSS = 0.1, 2.0, 2.0
# Speed below which turning counts as at this one, m/s; less ordered turning, rad, or a turn with
# so much brake, shows nothing.
_SLOW, _LEAST_TURN, _LOCKS = 2.0, 0.2, 0.5
# Throttle above which an ego should move, and the shortest time for it, s of the steady clock: of
# a simulation that is faster than the commands.
_PUSH, _PUSHED_S = 0.1, 0.5
_MANY_FRAMES = 3


class EgoWatch:
    """
    Keeps the last frame; :meth:`see` is called by one thread, the others by any.

    :param clock: returns the steady time, s.
    :ivar last: the ego in it, with the age that it had then; None before the first.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.last: EgoMotion | None = None
        self._clock, self._was_paused = clock, False
        # From here the age of the ego counts: at first from the activation.
        self._fresh_s = clock()
        # The first frame with the present pose.
        self._still = EgoMotion()
        # When the last frames were received, and when the time went back, of the steady clock.
        self._received_s: deque[float] = deque(maxlen=4)
        self._back_s = -math.inf, -math.inf

    def see(self, frame: EgoMotion, received_s: float) -> None:
        """Take a frame; one whose time went back, as at the begin of a run, is not fresh."""
        last = self.last or EgoMotion()
        step_s = frame.game_time - last.game_time
        if step_s < 0.0:
            self._back_s = self._back_s[1], received_s
        elif step_s != 0.0 and math.isfinite(frame.speed):
            self._fresh_s = received_s
        gain = (frame.speed - last.speed) / step_s if step_s > _SHORTEST_STEP_S else math.nan
        if step_s < 0.0 or not frame.pose or not self._still.pose or math.dist(
                frame.pose[:3], self._still.pose[:3]) > _STILL_M or math.dist(
                    frame.pose[3:], self._still.pose[3:]) > _STILL_RAD / 2.0:
            self._still = frame
        self._received_s.append(received_s)
        self.last = replace(
            frame, acceleration=gain if abs(gain) < _MOST_ACCELERATION else 0.0,
            elapsed_s=step_s, still_s=frame.game_time - self._still.game_time,
            step_s=median_low([after - before for before, after in pairwise(self._received_s)]
                              or [math.nan]))

    def motion(self, fault: str, *, is_paused: bool) -> EgoMotion:
        """Return the ego's motion; ``fault``: why the simulation is not under control, or ''."""
        now_s, last = self._clock(), self.last or EgoMotion()
        if is_paused or self._was_paused:
            self._fresh_s = now_s
        self._was_paused = is_paused
        if now_s - self._back_s[0] < HOLD_S:
            fault = fault or 'the time of its frames goes back again and again'
        return replace(last if last.pose else EgoMotion(step_s=last.step_s),
                       age_s=now_s - self._fresh_s, fault=fault, is_paused=is_paused)


class _Trial:
    """Whether an order is followed: what is ordered and measured of it since some time."""

    def __init__(self) -> None:
        self.is_failed, self._n_failures = False, 0
        self._begin()

    def _begin(self) -> None:
        self._elapsed_s = self._ordered = self._measured = self._allowed = 0.0

    def note(self, step_s: float, ordered: float, measured: float, *, least: float = 0.0,
             allowed: float = math.inf) -> None:
        """Note what is ordered and measured of one frame; judge after some time."""
        # least: an order of less shows nothing; allowed: error of what is measured.
        self._elapsed_s += step_s
        self._ordered += ordered
        self._measured += measured
        self._allowed += allowed
        if self._elapsed_s < OBEY_S:
            return
        most, measured = abs(self._ordered), math.copysign(1.0, self._ordered) * self._measured
        is_followed = (_SHARE * most if most > least else -self._allowed) <= measured \
            <= _MOST * most + self._allowed
        self._n_failures = 0 if is_followed else self._n_failures + 1
        # One frame may be wrong.
        if is_followed or self._n_failures >= _MANY_FRAMES:
            self.is_failed = not is_followed
            self._begin()


class Witness:
    """
    Compares what was written with what is measured; called by one thread.

    :ivar fault: what the ego does not do, empty if it obeys; it ends after 2 s without it.
    """

    def __init__(self, parameters: ControlParameters) -> None:
        self._parameters, self._last = parameters, EgoMotion()
        self.fault, self._fault_s = '', -math.inf
        self._slowing, self._turning = _Trial(), _Trial()
        # Since when it is to slow, s of the steady clock.
        self._slower_s = -math.inf
        # For how long it should have moved while its pose stands, s of game time, and since when,
        # of the steady clock; whether backward, and the direction that has not moved it.
        self._moving_s, self._since_s, self._is_backward, self._stuck = 0.0, math.inf, False, 0.0

    def note(self, command: EgoCommand, deceleration: float, wanted: float, motion: EgoMotion,
             now_s: float) -> None:
        """
        Note what is measured now.

        :param command: that was written last.
        :param deceleration: that of an order to slow, m/s2; 0 if it is none.
        :param wanted: 1 if the stack wants to go forward, -1 backward, 0 neither.
        """
        last, self._last = self._last, motion
        step_s = motion.game_time - last.game_time
        if not step_s >= 0.0 or not last.pose or not motion.pose or math.dist(
                last.pose[:3], motion.pose[:3]) > abs(motion.speed) * step_s + _JUMP_M:
            # A new run, or another place.
            self._turning, step_s = _Trial(), 0.0
        self._note_slowing(deceleration, last, motion, step_s, now_s)
        if step_s > 0.0:
            self._note_turning(command, last, motion, step_s)
        is_standing = self._is_standing(command, wanted, motion, step_s, now_s)
        if self._slowing.is_failed:
            fault = f'a brake is ordered at {abs(motion.speed):.1f} m/s'
        elif self._turning.is_failed:
            fault = f'it turns otherwise than ordered at {abs(motion.speed):.1f} m/s'
        elif is_standing:
            fault = (f'its pose stands for {FROZEN_S:g} s, although its velocity or the throttle '
                     'moves it: it may be old; let the stack stop')
        else:
            self.fault = self.fault if now_s - self._fault_s < HOLD_S else ''
            return
        self.fault, self._fault_s = fault, now_s

    def _note_slowing(self, deceleration: float, last: EgoMotion, motion: EgoMotion,
                      step_s: float, now_s: float) -> None:
        slowed = abs(last.speed) - abs(motion.speed)
        if deceleration <= 0.0 or abs(motion.speed) < _STANDS:
            self._slowing, self._slower_s = _Trial(), now_s
        elif step_s > 0.0 and math.isfinite(slowed):
            self._slowing.note(step_s, deceleration * step_s, slowed)
        elif min(motion.age_s, now_s - self._slower_s) > _UNSEEN_S \
                and math.isfinite(motion.speed):
            self._slowing.is_failed = True

    def _note_turning(self, command: EgoCommand, last: EgoMotion, motion: EgoMotion,
                      step_s: float) -> None:
        turned = math.remainder(heading_of(motion.pose[3:]) - heading_of(last.pose[3:]), math.tau)
        ordered = motion.speed * math.tan(command.steering_angle) / self._parameters.wheelbase
        if math.isfinite(ordered):
            # Wheels that are locked do not steer.
            self._turning.note(
                step_s, step_s * ordered, turned,
                least=_LEAST_TURN if command.brake < _LOCKS else math.inf,
                allowed=step_s * _ACROSS / max(abs(motion.speed), _SLOW))

    def _is_standing(self, command: EgoCommand, wanted: float, motion: EgoMotion, step_s: float,
                     now_s: float) -> bool:
        """Return whether the pose stands although the velocity or the pedals move it."""
        gained = self._gained(command, motion)
        if abs(motion.speed) > _MOVES:
            self._moving_s += step_s
        elif gained > 0.0:
            # From a wall it goes the other way.
            self._moving_s += step_s if command.reverse is self._is_backward else -step_s
        else:
            self._moving_s += step_s * gained / self._parameters.full_throttle
        self._moving_s = min(max(self._moving_s, 0.0), motion.still_s)
        if not self._moving_s:
            self._since_s, self._is_backward = now_s, command.reverse
        is_frozen = self._moving_s > FROZEN_S and (
            abs(motion.speed) > _MOVES or now_s - self._since_s > _PUSHED_S)
        if is_frozen:
            self._stuck = self._stuck or wanted
        elif motion.still_s < FROZEN_S or wanted != self._stuck:
            self._stuck = 0.0
        return is_frozen or self._stuck != 0.0

    def _gained(self, command: EgoCommand, motion: EgoMotion) -> float:
        """Return the acceleration by a command from a stand, m/s2; negative: a brake holds it."""
        parameters = self._parameters
        thrust, brake = parameters.full_throttle * command.throttle, command.brake
        if math.isfinite(command.speed):
            # The pedals are those of a controller of the simulator.
            thrust, brake = min(command.max_acceleration, parameters.full_throttle), 0.0
        if command.hand_brake or thrust <= max(_PUSH * parameters.full_throttle, slowing_by_slope(
                motion.climb, -1.0 if command.reverse else 1.0)):
            thrust = 0.0
        return thrust - parameters.full_brake * brake
