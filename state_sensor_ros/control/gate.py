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

from state_sensor_ros.control.ego_commands import ControlParameters, EgoCommand

# Excess of the largest speed, m/s, from which the throttle ends and the brake begins; the brake is
# full after as much again.
_EXCESS = 0.3
# A change of the pedals has an effect after about this time, s.
_LAG_S = 0.3
# Age of a command without a sign that it has arrived, s: nothing is known of the ego's pedals.
_UNANSWERED_S = 1.0


class DriverState(Enum):
    """What the driver does; the values are the texts of the diagnostics."""

    IDLE = 'no command has arrived yet'
    DRIVING = 'commands are sent'
    TIMED_OUT = 'the ego brakes: no command arrives'
    BLOCKED = 'the ego brakes: the commands are refused'
    STALE = 'the ego brakes: it is not in new frames'
    SEVERAL = 'the ego brakes: several actors have the ego tag'
    FAULT = 'the ego brakes: the simulation is not under control'
    UNANSWERED = 'the ego brakes: nothing shows that commands arrive'
    LEFT = 'the ego brakes: a killed node has left it moving'
    DEFECT = 'the ego brakes: an internal error'
    CLOSED = 'closed'


@dataclass(frozen=True, slots=True)
class EgoMotion:
    """
    The ego in the last frame.

    ``speed`` along its x axis, m/s, NaN if unknown; ``game_time`` of the frame, s; ``age_s`` time
    since the last new frame with the ego, without that of a pause, s; ``acceleration`` from the
    last two speeds, m/s2, 0 if unknown; ``n_egos`` number of actors with its tag; ``fault`` why
    the simulation is not under control, empty if it is; ``is_paused`` whether time stands.
    """

    speed: float = math.nan
    game_time: float = math.nan
    age_s: float = math.inf
    acceleration: float = 0.0
    n_egos: int = 0
    fault: str = ''
    is_paused: bool = False


class Gate:
    """
    Pass, limit or replace commands.

    :param parameters: limits and the time-out.
    :param stale_after: age of the last frame of the ego above which it brakes, s.
    """

    def __init__(self, parameters: ControlParameters, stale_after: float) -> None:
        self._parameters, self._stale_after = parameters, stale_after

    def state(self, motion: EgoMotion, stack_s: float, unanswered_s: float) -> DriverState:
        """
        Return whether commands of a stack pass, or why the ego brakes.

        :param motion: the ego as measured.
        :param stack_s: age of the last accepted command, s.
        :param unanswered_s: age of the oldest command without a sign that it has arrived, s.
        """
        if stack_s >= self._parameters.timeout:
            return DriverState.TIMED_OUT
        if motion.n_egos > 1:
            return DriverState.SEVERAL
        if motion.fault:
            return DriverState.FAULT
        if motion.age_s > self._stale_after:
            return DriverState.STALE
        if unanswered_s > _UNANSWERED_S:
            return DriverState.UNANSWERED
        return DriverState.DRIVING

    def passed(self, command: EgoCommand, motion: EgoMotion, stack_s: float,
               now_s: float) -> EgoCommand:
        """
        Return a command within the largest speed, with the times until which it may be written.

        :param command: pedals, or a speed that the simulator follows.
        :param motion: the ego as measured.
        :param stack_s: age of the command, s.
        :param now_s: steady time.
        """
        left_s = math.inf if motion.is_paused else self._stale_after - motion.age_s
        command = replace(command, until_s=now_s + min(self._parameters.timeout - stack_s, left_s))
        if not math.isnan(command.speed) or not math.isfinite(motion.speed) or motion.is_paused:
            return command
        direction = -1.0 if motion.speed < 0.0 else 1.0
        gain = max(direction * motion.acceleration, 0.0)
        # Where the frame and the pedals until now lead.
        predicted = abs(motion.speed) + gain * (motion.age_s + _LAG_S)
        excess = predicted - self._parameters.max_speed - _EXCESS
        if excess > 0.0:
            return replace(command, throttle=0.0, brake=max(command.brake,
                                                            min(excess / _EXCESS, 1.0)))
        push = self._parameters.full_throttle * command.throttle
        if not command.throttle or command.reverse is not (direction < 0.0):
            return command
        gain = max(gain, push)
        room = self._parameters.max_speed + _EXCESS - abs(motion.speed) - gain * motion.age_s
        return replace(command, coast_s=now_s + room / gain) if room > 0.0 \
            else replace(command, throttle=0.0)
