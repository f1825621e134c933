# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The player's status and the commands to its vehicle as messages."""

from __future__ import annotations

import json
import math

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import Given, MessageInstance, Slot, Table, Template
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.carla_data import (
    CarlaData,
    Command,
    command_inputs,
    PlayerStatus,
)
from state_sensor_ros.simulators.carla.carla_topics import (
    AUTOPILOT_CONTROL_TOPIC,
    CONTROL,
    CONTROL_TOPIC,
    EXPERT_CONTROL_TOPIC,
    STATUS,
    STATUS_TOPIC,
)
from state_sensor_ros.topics.message_block import MessageBlock
from state_sensor_ros.topics.numbers import Numbers
from state_sensor_ros.topics.tables import Fields, header, xyz
from state_sensor_ros.topics.topic import Demand, Topic

# One row: frame number (uint64), acceleration xyz m/s2, forward speed m/s, collisions kg m/s,
# intersections, directions, reasons to stop.
STATUS_NUMBERS = Table('carla status', 8, 14)
# One row: game and platform timestamp, ms (uint32).
STATUS_COUNTS = Table('carla counts', 4, 2)
# Rows by origin: steer (+ = left), raw steer (+ = right), steering angle rad, throttle, brake.
CONTROLS = Table('carla controls', 8, 5)
# Rows by origin: hand brake, reverse.
CONTROL_SWITCHES = Table('carla switches', 1, 2)

# By the value of VehicleControl.origin.
_ORIGIN_AUTOPILOT = 0
_TOPIC_OF_ORIGIN = (AUTOPILOT_CONTROL_TOPIC, EXPERT_CONTROL_TOPIC, CONTROL_TOPIC)
_NUMBERS = ('collision_vehicles', 'collision_pedestrians', 'collision_other',
            'intersection_otherlane', 'intersection_offroad', 'directions', 'stop_pedestrian',
            'stop_vehicle', 'stop_traffic_lights')
_NO_COMMAND = Command()


class PlayerMessages:
    """
    The status, and a message for each command that the frame has.

    :param settings: parameters of the node.
    :param definitions: of the messages.
    """

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        self.status = Template(definitions, STATUS, {
            'header': header(settings.global_frame), 'frame_number': Slot(STATUS_NUMBERS, 0),
            'game_timestamp': Slot(STATUS_COUNTS, 0), 'platform_timestamp': Slot(STATUS_COUNTS, 1),
            'acceleration': xyz(STATUS_NUMBERS, 1), 'forward_speed': Slot(STATUS_NUMBERS, 4),
            **{name: Slot(STATUS_NUMBERS, 5 + i) for i, name in enumerate(_NUMBERS)},
            'autopilot_control': _control(_ORIGIN_AUTOPILOT),
            'is_dataset': Given('is_dataset'), 'has_switches': Given('has_switches'),
            'extra_members': Given('extra_members'),
        }, is_message=True)
        self.controls = [Template(definitions, CONTROL, _control(origin), is_message=True)
                         for origin in range(len(_TOPIC_OF_ORIGIN))]
        self._buffer = PatchBuffer()

    def key(self, data: CarlaData) -> object:
        """
        Return what the layout depends on.

        :param data: of a frame, with or without a player.
        :returns: a value to compare; equal ones give the same layout of these messages.
        """
        player = data.player
        if player is None or player.dataset is None:
            return player is None
        return player.dataset.has_switches, player.dataset.other_members

    def blocks(self, player: PlayerStatus, frame_id: str, demand: Demand) -> list[MessageBlock]:
        """
        Lay out the messages that ``demand`` names.

        :param frame_id: the player's own frame.
        """
        topics: list[Topic] = []
        instances: list[MessageInstance] = []
        rows: list[int] = []
        if demand.has_other(STATUS_TOPIC):
            topics.append(STATUS_TOPIC)
            instances.append(MessageInstance(self.status, _givens(player, frame_id)))
            rows.append(_ORIGIN_AUTOPILOT)
        for origin, topic in enumerate(_TOPIC_OF_ORIGIN):
            if demand.has_other(topic) and (
                    origin == _ORIGIN_AUTOPILOT or player.dataset is not None):
                topics.append(topic)
                instances.append(MessageInstance(self.controls[origin], {'frame': frame_id}))
                rows.append(origin)
        if not instances:
            return []
        self._buffer.update(instances)
        by_origin = dict.fromkeys((CONTROLS, CONTROL_SWITCHES), np.array(rows))
        return [MessageBlock(self._buffer, by_origin, topics)]


def player_numbers(data: CarlaData, player: PlayerStatus, forward_speed: float,
                   tables: frozenset[Table]) -> Numbers:
    """
    Return the numbers of the player.

    :param forward_speed: of the player, m/s.
    :param tables: in use; others are left out.
    """
    numbers: Numbers = {}
    dataset = player.dataset
    if STATUS_NUMBERS in tables:
        row = np.array((
            0.0, *player.acceleration_xyz.tolist(), forward_speed, player.collision_vehicles,
            player.collision_pedestrians, player.collision_other, player.intersection_otherlane,
            player.intersection_offroad, *((math.nan,) * 4 if dataset is None else (
                dataset.directions, dataset.stop_pedestrian, dataset.stop_vehicle,
                dataset.stop_traffic_lights))))
        row.view(np.uint64)[0] = data.frame_number
        numbers[STATUS_NUMBERS] = row[None]
        numbers[STATUS_COUNTS] = np.array(
            ((data.game_timestamp, data.platform_timestamp),), np.uint32).view(np.int32)
    if CONTROLS in tables:
        commands = (player.autopilot, _NO_COMMAND, _NO_COMMAND) if dataset is None else (
            player.autopilot, dataset.expert, dataset.applied)
        inputs = command_inputs(*commands)
        numbers[CONTROLS] = np.array([
            (steer, command.steer, angle, command.throttle, command.brake)
            for command, (steer, angle) in zip(commands, inputs[:, 2:].tolist(), strict=True)])
        numbers[CONTROL_SWITCHES] = np.array([
            (command.hand_brake, command.reverse) for command in commands], np.uint8)
    return numbers


def _control(origin: int) -> Fields:
    """Return the fields of a VehicleControl; in a status it has the rows of the autopilot."""
    return {
        'header': header(Given('frame')), 'origin': origin,
        **{name: Slot(CONTROLS, i) for i, name in enumerate(
            ('steer', 'raw_steer', 'steering_angle', 'throttle', 'brake'))},
        'hand_brake': Slot(CONTROL_SWITCHES, 0), 'reverse': Slot(CONTROL_SWITCHES, 1)}


def _givens(player: PlayerStatus, frame_id: str) -> dict[str, bool | str]:
    dataset = player.dataset
    if dataset is None:
        return {'frame': frame_id, 'is_dataset': False, 'has_switches': False, 'extra_members': ''}
    members = ','.join(f'{json.dumps(name)}:{text}' for name, text in dataset.other_members)
    return {'frame': frame_id, 'is_dataset': True, 'has_switches': dataset.has_switches,
            'extra_members': f'{{{members}}}' if members else ''}
