# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The commands to the player: of the autopilot, of a dataset's expert, and the applied ones."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from state_sensor_ros.simulators import Report, Settings
from state_sensor_ros.simulators.carla.carla_data import (
    Command,
    command_inputs,
    player_of,
    PlayerStatus,
)
from state_sensor_ros.simulators.carla.carla_topics import (
    AUTOPILOT_CONTROL_TOPIC,
    CONTROL,
    CONTROL_TOPIC,
    EXPERT_CONTROL_TOPIC,
)
from state_sensor_ros.simulators.own_topics import (
    Definitions,
    Fields,
    FrameToSend,
    Given,
    header,
    MessageBlock,
    MessageInstance,
    Numbers,
    PatchBuffer,
    Slot,
    Table,
    TopicEncoder,
)

# Rows by origin: steer (+ = left), raw steer (+ = right), steering angle rad, throttle, brake.
CONTROLS = Table('carla controls', np.float64, 5)
# Rows by origin: hand brake, reverse.
CONTROL_SWITCHES = Table('carla switches', np.bool_, 2)

# By the value of VehicleControl.origin.
AUTOPILOT, _EXPERT, _APPLIED = range(3)
_NO_COMMAND = Command()


def control_fields(origin: int) -> Fields:
    """Return the fields of a VehicleControl, with the numbers of an origin's row."""
    return {
        'header': header(Given('frame')), 'origin': origin,
        **{name: Slot(CONTROLS, i) for i, name in enumerate(
            ('steer', 'raw_steer', 'steering_angle', 'throttle', 'brake'))},
        'hand_brake': Slot(CONTROL_SWITCHES, 0), 'reverse': Slot(CONTROL_SWITCHES, 1)}


def control_numbers(player: PlayerStatus) -> Numbers:
    """
    Return the numbers of the commands of all origins.

    :param player: status of the player.
    """
    dataset = player.dataset
    commands = (player.autopilot, _NO_COMMAND, _NO_COMMAND) if dataset is None else (
        player.autopilot, dataset.expert, dataset.applied)
    inputs = command_inputs(*commands)
    return {
        CONTROLS: np.array([
            (steer, command.steer, angle, command.throttle, command.brake)
            for command, (steer, angle) in zip(commands, inputs[:, 2:].tolist(), strict=True)]),
        CONTROL_SWITCHES: np.array([
            (command.hand_brake, command.reverse) for command in commands], np.uint8)}


class ControlEncoder(TopicEncoder):
    """
    One VehicleControl; the base of the three topics.

    ``origin`` value of the field of this name.
    """

    origin: ClassVar[int]

    def __init__(self, settings: Settings, definitions: Definitions, report: Report) -> None:
        super().__init__(settings, definitions, report)
        self._template = self.message(CONTROL, control_fields(self.origin))

    def key(self, now: FrameToSend) -> object:
        """Return whether the frame has the command."""
        return self._has_command(now)

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the message."""
        if not self._has_command(now):
            return []
        buffer = PatchBuffer()
        buffer.update([MessageInstance(self._template, {
            'frame': now.actor_list.actors[0].frame_id})])
        rows = np.array((self.origin,))
        return [MessageBlock(buffer, {CONTROLS: rows, CONTROL_SWITCHES: rows}, self.topics)]

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        """Add the commands, once for all topics of the player."""
        player = player_of(now.frame)
        if CONTROLS not in numbers and player is not None:
            numbers |= control_numbers(player)

    def _has_command(self, now: FrameToSend) -> bool:
        player = player_of(now.frame)
        return player is not None and (self.origin == AUTOPILOT or player.dataset is not None)


class AutopilotControlEncoder(ControlEncoder):
    """What the autopilot proposes."""

    topics = (AUTOPILOT_CONTROL_TOPIC,)
    origin = AUTOPILOT


class ExpertControlEncoder(ControlEncoder):
    """What the expert of a dataset proposed."""

    topics = (EXPERT_CONTROL_TOPIC,)
    origin = _EXPERT


class AppliedControlEncoder(ControlEncoder):
    """What was applied in a dataset: the expert's command with noise."""

    topics = (CONTROL_TOPIC,)
    origin = _APPLIED
