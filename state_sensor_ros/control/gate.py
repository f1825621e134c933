# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The gate: what may be written to a simulator, by ages and by the measured speed, and nothing else.

Every command passes it twice: :meth:`Gate.passed` when the driver takes it, and
:meth:`EgoCommand.now` immediately before it is written, in whatever thread or process.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
import math

from state_sensor_ros.control import ego_commands
from state_sensor_ros.control.ego_commands import ControlParameters, EgoCommand, slowing_by_slope

# Excess of the largest speed that the pedals do not lead beyond, m/s.
_EXCESS = 0.3
# A change of the pedals has its effect within about this time, s: with this share at each call.
_LAG_S, _SHARE = 0.6, 0.2
# Time in which it is learned what slows the ego beside pedals and slope, s.
_STEADY_S = 2.0
# Less is no slowing, m/s2; a frame may be so much late, s.
_SLOWING, _LATE_S = 0.1, 0.1


class DriverState(Enum):
    """What the driver does; the values are the texts of the diagnostics."""

    IDLE = 'no command has arrived yet'
    DRIVING = 'commands are sent'
    TIMED_OUT = 'the ego brakes: no command arrives within control.timeout'
    BLOCKED = 'the ego brakes: the commands are refused'
    STALE = 'the ego brakes: its speed is in no new frame for stale_after'
    SEVERAL = 'the ego brakes: several actors have the ego tag'
    FAULT = 'the ego brakes: the simulation is not under control'
    UNANSWERED = 'the ego brakes: nothing shows that commands arrive'
    DISOBEYED = 'the ego brakes: it does not obey'
    LEFT = 'the ego brakes: a killed node has left it moving'
    DEFECT = 'the ego brakes: an internal error'
    CLOSED = 'closed'


@dataclass(frozen=True, slots=True)
class EgoMotion:
    """The ego in the last frame."""

    # Along its x axis, m/s, NaN if unknown.
    speed: float = math.nan
    # Of the frame, s.
    game_time: float = math.nan
    # Time since the last new frame with the ego's speed, without that of a pause, s.
    age_s: float = math.inf
    # From the last two speeds, m/s2, 0 if unknown.
    acceleration: float = 0.0
    # Number of actors with its tag.
    n_egos: int = 0
    # Why the simulation is not under control, empty if it is.
    fault: str = ''
    # Whether time stands.
    is_paused: bool = False
    # Angle of the x axis above the horizontal, rad, NaN if unknown.
    climb: float = math.nan
    # Game time between the last two frames, s, NaN if unknown.
    elapsed_s: float = math.nan
    # Position, m, and unit quaternion x, y, z, w; empty if unknown.
    pose: tuple[float, ...] = ()
    # For how long it has not changed, s of game time.
    still_s: float = 0.0
    # Between two frames, the middle one of the last three times, s of the steady clock; NaN if
    # unknown.
    step_s: float = math.nan


class Gate:
    """
    Pass, limit or replace commands, by the motion that :meth:`see` took last.

    :param parameters: limits and the time-out.
    :param stale_after: age of the last frame of the ego above which it brakes, s.
    """

    def __init__(self, parameters: ControlParameters, stale_after: float) -> None:
        self._parameters, self._stale_after = parameters, stale_after
        # The motion at this steady time; game time since the one before and between its frames, s.
        self._motion, self._now_s, self._elapsed_s, self._step_s = EgoMotion(), 0.0, 0.0, 0.0
        # Of the last frame with the ego's speed, s.
        self._game_time = math.nan
        # By how much the steering may still change, rad.
        self._reach = 0.0
        # Acceleration by the pedals that have passed, the same as it has an effect, and at most
        # with what is added to it, m/s2.
        self._pedals = self._expected = self._gain = 0.0
        # What takes from it for longer, such as drag, m/s2.
        self._resistance = 0.0
        # Predicted speed, m/s, at this steady time.
        self._speed = self._at_s = 0.0

    def see(self, motion: EgoMotion, now_s: float) -> float:
        """
        Take the motion by which the next commands pass.

        :param motion: the ego as measured.
        :param now_s: steady time.
        :returns: game time since the last motion with a speed, s; NaN if unknown.
        """
        self._elapsed_s = elapsed_s = motion.game_time - self._game_time
        self._motion, self._now_s = motion, now_s
        if elapsed_s != 0.0 and not math.isnan(motion.speed):
            self._game_time = motion.game_time
            before_s, self._step_s = self._step_s, elapsed_s
            self._speed, self._at_s = abs(motion.speed), now_s - motion.age_s
            # After a gap between frames it moves as in one step, not as in the gap.
            self._reach = self._parameters.max_steering_rate * min(elapsed_s, before_s) \
                if elapsed_s > 0.0 and before_s > 0.0 else 0.0
        return elapsed_s

    @property
    def patience_s(self) -> float:
        """Return how long a command may be without a proof, s: the time-out, or two steps."""
        step_s = self._motion.step_s
        return self._stale_after if math.isnan(step_s) \
            else max(self._parameters.timeout, 2.0 * step_s + _LATE_S)

    def state(self, stack_s: float, unproven_s: float) -> DriverState:
        """
        Return whether commands of a stack pass, or why the ego brakes.

        :param stack_s: age of the last accepted command, s.
        :param unproven_s: time since the first write after the last one that is proven, s.
        """
        motion = self._motion
        return next((state for is_present, state in (
            (stack_s >= self._parameters.timeout, DriverState.TIMED_OUT),
            (motion.n_egos > 1, DriverState.SEVERAL), (bool(motion.fault), DriverState.FAULT),
            (motion.age_s > self._stale_after, DriverState.STALE),
            (unproven_s > self.patience_s, DriverState.UNANSWERED)) if is_present),
            DriverState.DRIVING)

    def passed(self, command: EgoCommand, stack_s: float,
               wanted_speed: float = math.inf) -> EgoCommand:
        """
        Return a command within the largest speed, with the times until which it may be written.

        :param command: pedals, or a speed that the simulator follows.
        :param stack_s: age of the command, s.
        """
        motion, now_s = self._motion, self._now_s
        if math.isnan(motion.speed):
            # Whatever is wanted, it could be too fast.
            return command.full_brake()
        left_s = math.inf if motion.is_paused else self._stale_after - motion.age_s
        until_s = now_s + min(self._parameters.timeout - stack_s, left_s)
        if not math.isnan(command.speed) or motion.is_paused:
            return replace(command, until_s=until_s)
        command = self._limited(command, abs(wanted_speed))
        return replace(command, until_s=min(until_s, self._stands_s(command)))

    def steered(self, command: EgoCommand, angle: float) -> EgoCommand:
        """
        Return a command within the bounds of steering; that of the measured speed is the stronger.

        :param angle: steering angle that was written last, rad.
        """
        parameters, speed = self._parameters, self._motion.speed
        if math.isfinite(speed):
            change = min(max(command.steering_angle - angle, -self._reach), self._reach)
            self._reach -= abs(change)
            most = math.atan2(parameters.max_lateral_acceleration * parameters.wheelbase,
                              speed ** 2)
            angle = min(max(angle + change, -most), most)
        angle, steer = parameters.steering(angle)
        return replace(command, steering_angle=angle, steer=steer)

    def _stands_s(self, command: EgoCommand) -> float:
        """
        Return when an ego that moved in the last frame stands, of the steady clock; or infinity.

        The pedals that have stopped it may not hold it on a slope.
        """
        motion, parameters = self._motion, self._parameters
        if not abs(motion.speed) > ego_commands.STANDSTILL_SPEED:
            return math.inf
        begin_s, gravity = self._now_s - motion.age_s, slowing_by_slope(motion.climb, motion.speed)
        thrust = 0.0 if command.reverse is (motion.speed > 0.0) else command.throttle
        slowing = gravity + parameters.full_brake * command.brake \
            - parameters.full_throttle * thrust
        if slowing <= _SLOWING:
            # Uphill, when the throttle has ended.
            begin_s, slowing = max(command.coast_s, begin_s), gravity
        return begin_s + _LATE_S + abs(motion.speed) / slowing if slowing > _SLOWING else math.inf

    def _limited(self, command: EgoCommand, wanted_speed: float) -> EgoCommand:
        """Return pedals that do not take the ego beyond the largest and the wanted speed."""
        parameters, motion, now_s = self._parameters, self._motion, self._now_s
        self._expected += _SHARE * (self._pedals - self._expected)
        is_backward = motion.speed < 0.0 if abs(motion.speed) > ego_commands.STANDSTILL_SPEED \
            else command.reverse
        sign = -1.0 if is_backward else 1.0
        # What a slope, or an engine that is stronger than it should be, adds to the pedals, m/s2.
        extra, gravity = sign * motion.acceleration - self._expected, slowing_by_slope(
            motion.climb, sign)
        # After a gap the acceleration is not that of these pedals.
        if 0.0 < self._elapsed_s < _STEADY_S:
            self._resistance += self._elapsed_s / _STEADY_S * (
                max(-extra - gravity, 0.0) - self._resistance)
        extra = max(extra, -gravity - self._resistance)
        # The speed to which the pedals have led since the last frame.
        self._speed += self._gain * max(now_s - self._at_s, 0.0)
        self._at_s = now_s
        # Acceleration by which the largest speed is reached when the next pedals have an effect.
        most = (parameters.max_speed + _EXCESS - self._speed) / _LAG_S - extra
        thrust = parameters.full_throttle * command.throttle
        if most < 0.0:
            command = replace(command, throttle=0.0,
                              brake=max(command.brake, min(-most / parameters.full_brake, 1.0)))
        elif thrust > most and command.reverse is is_backward:
            command = replace(command, throttle=most / parameters.full_throttle)
        thrust = parameters.full_throttle * command.throttle
        self._pedals = thrust - parameters.full_brake * command.brake
        self._gain = max(extra + thrust, 0.0)
        speed, gain = self._speed, self._gain
        if command.reverse is not is_backward:
            # As if it stood in the last frame: until it does, there is time to spare.
            now_s, speed = now_s - motion.age_s, 0.0
            gain = thrust + max(gravity, 0.0)
        if not thrust or not gain:
            return command
        wanted_speed = min(wanted_speed, parameters.max_speed) + _EXCESS
        return replace(command, coast_s=now_s + max(wanted_speed - speed, 0.0) / gain)
