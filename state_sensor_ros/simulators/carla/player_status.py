# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""~/player/status: what CARLA measures of the player alone."""

from __future__ import annotations

import json
import math

import numpy as np

from state_sensor_ros.simulators import Report, Settings
from state_sensor_ros.simulators.carla.carla_data import data_of, player_of, PlayerStatus
from state_sensor_ros.simulators.carla.carla_topics import STATUS, STATUS_TOPIC
from state_sensor_ros.simulators.carla.vehicle_control import (
    AUTOPILOT,
    control_fields,
    control_numbers,
    CONTROL_SWITCHES,
    CONTROLS,
)
from state_sensor_ros.simulators.own_topics import (
    Definitions,
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
