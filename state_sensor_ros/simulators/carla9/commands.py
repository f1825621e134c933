# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Commands to the ego by CARLA's client library, and which of them is in effect."""

from __future__ import annotations

from collections import deque
import math
from typing import cast

from state_sensor_ros.control.ego_commands import EgoCommand, STANDSTILL_SPEED
from state_sensor_ros.errors import line_of
from state_sensor_ros.simulators.carla9 import Carla9Parameters
from state_sensor_ros.simulators.carla9.world_reader import CarlaObject
from state_sensor_ros.simulators.child_process import Order
from state_sensor_ros.source import Report

# Commands that are compared with the pedals in effect, and the difference of equal ones.
_MAX_PRESSED, _NEAR = 64, 1e-3
# Speed that wakes a body, m/s.
_NUDGE = 0.1


class EgoDrive:
    """
    Sends commands to the ego; the library does not wait for an answer.

    :param note: called with a kind and a line about a command that is lost.
    :ivar carla: CARLA's client library.
    :ivar may_sleep: whether the server puts a body that stands to sleep.
    :ivar last: the last command, with its number.
    :ivar n_proven: number of the newest command that is shown to be in effect.
    """

    def __init__(self, own: Carla9Parameters, note: Report) -> None:
        self._own, self._note = own, note
        self.carla, self.may_sleep = cast(CarlaObject, None), False
        self.last, self.n_proven = Order(0, None), 0
        # Number of the last command before the last step.
        self._n_stepped = 0
        # The ego that the controller of the server drives, None for pedals.
        self._followed: CarlaObject | None = None
        # Whether the ego was woken since it has stood.
        self._gear, self._is_woken = 1, False
        # Throttle, brake and number of the last commands.
        self._pressed: deque[tuple[float, float, int]] = deque(maxlen=_MAX_PRESSED)

    def drive(self, ego: CarlaObject, order: Order) -> None:
        """Send what a command allows now; ``ego`` None for none."""
        assert order.command is not None
        command = order.command.now()
        # Before the call: what is sent late is followed by a brake, too.
        self.last = order._replace(command=command)
        if ego is None:
            self._followed = None
            self._note('command', 'a command is lost: there is no ego')
            return
        try:
            least = self._own.min_throttle if self._starts(ego, command) else 0.0
            if math.isnan(command.speed):
                self._followed = None
                first = {'manual_gear_shift': True, 'gear': -1 if command.reverse else 1}
                self._press(ego, throttle=max(command.throttle, least), brake=command.brake,
                            steer=-command.steer, hand_brake=command.hand_brake,
                            reverse=command.reverse, **(first if least else {}))
                return
            if self._followed is not ego:
                # The controller of the server leaves the hand brake as it is.
                self._press(ego, steer=-command.steer)
                self._followed = ego
            ego.apply_ackermann_control(self.carla.VehicleAckermannControl(
                steer=-command.steering_angle, speed=command.speed,
                acceleration=command.max_acceleration))
        except RuntimeError as error:
            self._note('command', f'a command is lost: {line_of(error)}')

    def _starts(self, ego: CarlaObject, command: EgoCommand) -> bool:
        """Return whether the ego is to move from rest; wake it once, since no throttle does."""
        # A comparison with NaN, of what the command does not have, is false.
        if not (abs(command.speed) > 0.0 or (command.throttle > 0.0 and not command.brake)) \
                or ego.get_velocity().length() > STANDSTILL_SPEED:
            self._is_woken = False
            return False
        if self.may_sleep and not self._is_woken:
            self._is_woken = True
            ego.set_target_velocity(ego.get_transform().get_forward_vector() * (
                -_NUDGE if command.reverse else _NUDGE))
        return True

    def _press(self, ego: CarlaObject, **pedals: float) -> None:
        # The library does not send a control that is equal to its last one, although another
        # client, or what drove before, may have changed the pedals since: each one differs by its
        # gear, which has no effect.
        self._gear = 3 - self._gear
        self._pressed.append((pedals.get('throttle', 0.0), pedals.get('brake', 0.0),
                              self.last.number))
        ego.apply_control(self.carla.VehicleControl(**{'gear': self._gear, **pedals}))

    def compare(self, ego: CarlaObject | None) -> None:
        """Note the newest command whose pedals the server shows, after each step."""
        if self._followed is not None:
            # Its controller has the pedals; what was sent before a step is in effect in the next.
            self.n_proven, self._n_stepped = self._n_stepped, self.last.number
        elif ego is not None:
            shown = ego.get_control()
            self.n_proven = max((number for throttle, brake, number in (*self._pressed,) if max(
                abs(shown.throttle - throttle), abs(shown.brake - brake)) < _NEAR),
                default=self.n_proven)
