# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""~/player/status and the topics of the commands to the player."""

from __future__ import annotations

import json
import math
from typing import ClassVar

import numpy as np

from state_sensor_ros.simulators import Report, Settings
from state_sensor_ros.simulators.carla.carla_data import (
    Command,
    command_inputs,
    data_of,
    player_of,
    PlayerStatus,
)
from state_sensor_ros.simulators.carla.topic_names import (
    AUTOPILOT_CONTROL_TOPIC,
    CONTROL,
    CONTROL_TOPIC,
    EXPERT_CONTROL_TOPIC,
    STATUS,
    STATUS_TOPIC,
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
    xyz,
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


# One row: acceleration xyz m/s2, forward speed m/s, collisions kg m/s,
# intersections, directions, reasons to stop.
STATUS_NUMBERS = Table('carla status', np.float64, 13)
FRAME_NUMBER = Table('carla frame number', np.uint64, 1)
# One row: game and platform timestamp, ms (uint32).
STATUS_COUNTS = Table('carla counts', np.uint32, 2)

_NUMBERS = ('collision_vehicles', 'collision_pedestrians', 'collision_other',
            'intersection_otherlane', 'intersection_offroad', 'directions', 'stop_pedestrian',
            'stop_vehicle', 'stop_traffic_lights')
# Member of extra_members with those of the episode, a name that the collector does not write.
EPISODE_MEMBERS = 'metadata.json'


class PlayerStatusEncoder(TopicEncoder):
    """One CarlaPlayerStatus for each frame with a player."""

    topics = (STATUS_TOPIC,)

    def __init__(self, settings: Settings, definitions: Definitions, report: Report) -> None:
        super().__init__(settings, definitions, report)
        self._template = self.message(STATUS, {
            'header': header(settings.global_frame), 'frame_number': Slot(FRAME_NUMBER, 0),
            'game_timestamp': Slot(STATUS_COUNTS, 0), 'platform_timestamp': Slot(STATUS_COUNTS, 1),
            'acceleration': xyz(STATUS_NUMBERS, 0), 'forward_speed': Slot(STATUS_NUMBERS, 3),
            **{name: Slot(STATUS_NUMBERS, 4 + i) for i, name in enumerate(_NUMBERS)},
            'autopilot_control': control_fields(AUTOPILOT),
            'is_dataset': Given('is_dataset'), 'has_switches': Given('has_switches'),
            'extra_members': Given('extra_members'),
        })

    def key(self, now: FrameToSend) -> object:
        """Return the members of a dataset that are not numbers."""
        player = player_of(now.frame)
        if player is None or player.dataset is None:
            return player is None
        return (player.dataset.has_switches, player.dataset.other_members,
                player.dataset.episode_members)

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the message."""
        player = player_of(now.frame)
        if player is None or now.frame.forward_speed is None:
            return []
        buffer = PatchBuffer()
        buffer.update([MessageInstance(
            self._template, _givens(player, now.actor_list.actors[0].frame_id))])
        rows = np.array((AUTOPILOT,))
        return [MessageBlock(buffer, {CONTROLS: rows, CONTROL_SWITCHES: rows}, self.topics)]

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        """Add the numbers of the player, and the autopilot's command."""
        frame, forward_speed = now.frame, now.frame.forward_speed
        data, player = data_of(frame), player_of(frame)
        if data is None or player is None or forward_speed is None:
            return
        dataset = player.dataset
        row = np.array((
            *player.acceleration_xyz.tolist(), float(forward_speed[0]),
            player.collision_vehicles, player.collision_pedestrians, player.collision_other,
            player.intersection_otherlane, player.intersection_offroad,
            *((math.nan,) * 4 if dataset is None else (
                dataset.directions, dataset.stop_pedestrian, dataset.stop_vehicle,
                dataset.stop_traffic_lights))))
        numbers[STATUS_NUMBERS] = row[None]
        numbers[FRAME_NUMBER] = np.array(((data.frame_number,),), np.uint64)
        numbers[STATUS_COUNTS] = np.array(
            ((data.game_timestamp, data.platform_timestamp),), np.uint32)
        numbers |= control_numbers(player)


def _givens(player: PlayerStatus, frame_id: str) -> dict[str, bool | str]:
    dataset = player.dataset
    if dataset is None:
        return {'frame': frame_id, 'is_dataset': False, 'has_switches': False, 'extra_members': ''}
    members = _object(dataset.other_members)
    if dataset.episode_members:
        members = _object((*dataset.other_members,
                           (EPISODE_MEMBERS, _object(dataset.episode_members))))
    return {'frame': frame_id, 'is_dataset': True, 'has_switches': dataset.has_switches,
            'extra_members': members}


def _object(members: tuple[tuple[str, str], ...]) -> str:
    """Return a JSON object of names and JSON texts, '' for none."""
    text = ','.join(f'{json.dumps(name)}:{text}' for name, text in members)
    return f'{{{text}}}' if members else ''
