# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The ego that a stack drives: the bicycle of the stand-ins, to whose place SUMO moves the ego.

SUMO's position is the middle of the front bumper; the rear axle is assumed half a wheelbase behind
the middle of the vehicle. SUMO's own speed of a vehicle that is moved from outside differs from
its movement, so the frame has the velocity of the bicycle.
"""

from __future__ import annotations

from dataclasses import replace
import math

import numpy as np

from state_sensor_ros.simulators import EgoCommand, Frame
from state_sensor_ros.simulators.frame_arrays import global_from_unit
from state_sensor_ros.simulators.sumo.step_reader import Sumo
from state_sensor_ros.simulators.vehicle_model import Bicycle, Pedals

# m, between the axles of each ego.
_WHEELBASE_M = 2.9
# moveToXY: any place of the network or outside of it.
_ANY_PLACE = 2
_NO_CHECKS = 0
# SUMO warns of each step that is faster than the maximum speed of the vehicle, m/s.
_MOST_SPEED = 200.0


class SumoEgo:
    """
    Takes the ego over at the first command.

    :param sumo: SUMO, started or joined.
    """

    def __init__(self, sumo: Sumo) -> None:
        self._sumo = sumo
        self._body: Bicycle | None = None
        self._name = ''
        self._length = 0.0

    def advance(self, command: EgoCommand | None, last: Frame | None, elapsed_s: float) -> None:
        """
        Move the ego to its place after the next step.

        :param command: command in effect, None before the first one.
        :param last: frame of the step before, None before the first step.
        :param elapsed_s: simulated time of the step, s.
        """
        if command is None or last is None or last.ego is None:
            self._body = None
            return
        if self._body is None or self._name != last.names[last.ego]:
            self._take_over(last, last.ego)
        body = self._body
        assert body is not None
        body.advance(Pedals(command.steer, command.throttle, command.brake, command.hand_brake,
                            command.reverse), elapsed_s)
        ahead = _WHEELBASE_M / 2 + self._length / 2
        self._sumo.vehicle.moveToXY(
            self._name, '', -1, body.x + ahead * math.cos(body.yaw),
            body.y + ahead * math.sin(body.yaw), 90.0 - math.degrees(body.yaw), _ANY_PLACE)

    def shown(self, frame: Frame) -> Frame:
        """
        Return a frame with the velocity of the driven ego.

        :param frame: frame of the step that followed :meth:`advance`.
        """
        body = self._body
        if body is None or frame.ego is None or frame.names[frame.ego] != self._name:
            return frame
        kinematics = frame.kinematics.copy()
        row = kinematics[frame.ego]
        rate = body.speed * body.curvature
        axes = global_from_unit(row[None, 3:7])[0]
        row[7:10] = body.speed * axes[:, 0] + rate * _WHEELBASE_M / 2 * axes[:, 1]
        row[10:13] = (0.0, 0.0, rate)
        return replace(frame, kinematics=kinematics)

    def _take_over(self, last: Frame, row: int) -> None:
        self._name = last.names[row]
        vehicle = self._sumo.vehicle
        self._length = vehicle.getLength(self._name)
        vehicle.setSpeedMode(self._name, _NO_CHECKS)
        vehicle.setLaneChangeMode(self._name, _NO_CHECKS)
        vehicle.setMaxSpeed(self._name, _MOST_SPEED)
        state = last.kinematics[row]
        forward = global_from_unit(state[None, 3:7])[0][:, 0]
        yaw = math.atan2(forward[1], forward[0])
        self._body = Bicycle(
            float(state[0]) - _WHEELBASE_M / 2 * math.cos(yaw),
            float(state[1]) - _WHEELBASE_M / 2 * math.sin(yaw), yaw,
            float(np.dot(state[7:10], forward)), _WHEELBASE_M)
