# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The inputs for commands: their topics, the commands in their messages, and the age of these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
import math
from typing import Any

from state_sensor_ros.control.ego_commands import ControlParameters, EgoCommand
from state_sensor_ros.control.speed_controller import finite, limited, pedals, Setpoint
from state_sensor_ros.settings import EGO_ROLE, ROS_BRIDGE

# Constants of autoware_vehicle_msgs/GearCommand: all gears forward, and those backward.
_FORWARD = frozenset((*range(2, 20), 23, 24))
_BACKWARD = frozenset((20, 21))
DRIVE, _PARK = 2, 22
_SAME_CLOCK_S = 1.0


@dataclass(frozen=True, slots=True)
class InputTopic:
    name: str  # absolute or with ``~`` for the node's own
    type_name: str  # ``package/msg/Name``
    # Whether a message counts until the next one, also one that was published before the
    # subscription: the others are streams, of which only the newest message counts.
    is_state: bool = False


class CommandInput(ABC):
    """
    One value of the parameter ``control_input``.

    Its topics that are no states are alternatives: only one publisher of all of them may drive.

    :param role: role name of the ego, in the names of topics that have one.
    """

    topics: tuple[InputTopic, ...]

    def __init__(self, parameters: ControlParameters, role: str = EGO_ROLE) -> None:
        self._parameters = parameters
        self.topics = tuple([replace(topic, name=topic.name.replace(f'/{EGO_ROLE}/', f'/{role}/'))
                             for topic in self.topics])

    @abstractmethod
    def wanted(self, gear: int | None, message: Any) -> Setpoint | EgoCommand:  # noqa: ANN401
        """Return the command in a message; ``gear``: that of the topic of a state, None so far."""


class VehicleControlInput(CommandInput):
    """Pedals and wheel, as they are sent."""

    topics = (InputTopic('~/command', 'state_sensor_ros/msg/VehicleControl'),)

    def wanted(self, gear: int | None, message: Any) -> EgoCommand:  # noqa: ANN401
        return pedals(message.throttle, message.brake, message.steer, message.steering_angle,
                      self._parameters, hand_brake=message.hand_brake, reverse=message.reverse)


class AckermannInput(CommandInput):
    """Speed and steering angle; the acceleration is a limit, 0 for none."""

    topics = (InputTopic('~/command_ackermann', 'ackermann_msgs/msg/AckermannDriveStamped'),)

    def wanted(self, gear: int | None, message: Any) -> Setpoint:  # noqa: ANN401
        """Return the speed and the limit on its change."""
        return _followed(message.drive, self._parameters)


def _followed(drive: Any, parameters: ControlParameters) -> Setpoint:  # noqa: ANN401
    """Return the setpoint of an AckermannDrive."""
    limit = abs(finite('acceleration', drive.acceleration)) or math.inf
    return limited(Setpoint(speed=drive.speed, max_acceleration=limit,
                            steering_angle=drive.steering_angle), parameters)


class BridgeInput(CommandInput):
    """Pedals and wheel, whose ``steer`` is positive to the right, or speed and angle."""

    topics = (
        InputTopic(f'/carla/{EGO_ROLE}/vehicle_control_cmd',
                   'carla_msgs/msg/CarlaEgoVehicleControl'),
        InputTopic(f'/carla/{EGO_ROLE}/ackermann_cmd', 'ackermann_msgs/msg/AckermannDrive'))

    def wanted(self, gear: int | None, message: Any) -> Setpoint | EgoCommand:  # noqa: ANN401
        """Return the command; of a gear that is shifted by hand, the direction counts."""
        if not hasattr(message, 'throttle'):
            return _followed(message, self._parameters)
        gear = message.gear if message.manual_gear_shift else -1 if message.reverse else 1
        steer = 0.0 - finite('steer', message.steer)
        command = pedals(message.throttle, message.brake, steer, 0.0, self._parameters,
                         hand_brake=message.hand_brake, reverse=gear < 0)
        return command if gear else replace(command, throttle=0.0)


class TwistInput(CommandInput):
    """Speed and yaw rate in the ego's axes."""

    topics = (InputTopic('~/command_velocity', 'geometry_msgs/msg/TwistStamped'),)

    def wanted(self, gear: int | None, message: Any) -> Setpoint:  # noqa: ANN401
        """Return the speed and the yaw rate."""
        return limited(Setpoint(
            speed=finite('linear.x', message.twist.linear.x),
            yaw_rate=finite('angular.z', message.twist.angular.z)), self._parameters)


class AutowareInput(CommandInput):
    """Speed, acceleration and angle of the tires, with the gear; it stops without a gear."""

    topics = (
        InputTopic('/control/command/control_cmd', 'autoware_control_msgs/msg/Control'),
        InputTopic('/control/command/gear_cmd', 'autoware_vehicle_msgs/msg/GearCommand',
                   is_state=True))

    def wanted(self, gear: int | None, message: Any) -> Setpoint:  # noqa: ANN401
        """Return the speed in the direction of the gear; 0 if sign and gear do not agree."""
        along = message.longitudinal
        # Autoware's controllers and its gate leave the flag false, and vehicles do not look at it.
        is_given = along.is_defined_acceleration or not math.isnan(along.acceleration)
        # In a gear backward, it is positive backward.
        forward = -along.acceleration if gear in _BACKWARD else along.acceleration
        wanted = limited(Setpoint(
            speed=along.velocity, acceleration=forward if is_given else 0.0,
            steering_angle=message.lateral.steering_tire_angle,
            hand_brake=gear == _PARK), self._parameters)
        if wanted.speed and gear not in (_FORWARD if wanted.speed > 0 else _BACKWARD):
            return Setpoint(speed=0.0, steering_angle=wanted.steering_angle,
                            hand_brake=wanted.hand_brake)
        return wanted


INPUTS: dict[str, type[CommandInput]] = {
    'vehicle_control': VehicleControlInput, 'ackermann': AckermannInput, 'twist': TwistInput,
    'autoware': AutowareInput, ROS_BRIDGE: BridgeInput}


class CommandAge:
    """
    Ages of the commands of one publisher, by the stamps of their headers or of its middleware.

    A stamp is of the clock from which the first one differed by less than a second. Stamps of
    another clock, and those of commands without one, are not judged.
    """

    def __init__(self) -> None:
        self._place: int | None = None

    def age_s(self, stamp_s: float, clocks_s: Sequence[float]) -> float:
        """
        Return the age of a command, s; 0 if it is not judged.

        :param stamp_s: its stamp, s; 0 if it has none.
        :param clocks_s: times of the clocks that it may be of, s; NaN if one is not known yet.
        """
        if not stamp_s:
            return 0.0
        if self._place is None:
            near = [place for place, clock_s in enumerate(clocks_s)
                    if abs(clock_s - stamp_s) < _SAME_CLOCK_S]
            # Before the first frame the game time is not known.
            if near or all(map(math.isfinite, clocks_s)):
                self._place = near[0] if near else -1
        if self._place is None or self._place < 0:
            return 0.0
        return max(clocks_s[self._place] - stamp_s, 0.0)
