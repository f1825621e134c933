# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Commands to CARLA's player: the answers to the frames of an episode."""

from __future__ import annotations

from state_sensor_ros.emulator.carla_server.carla_schema import Control
from state_sensor_ros.simulators import EgoCommand
from state_sensor_ros.simulators.carla.source import EpisodeClient, PlayerCommand

# For the frame that is answered with the last brake; frames come at 10 Hz or more.
_LAST_ANSWER_S = 0.25


class CarlaCommands:
    """
    Answer the next frame with the newest command.

    :param client: client of the episodes.
    """

    def __init__(self, client: EpisodeClient) -> None:
        self._client = client

    def send(self, command: EgoCommand) -> None:
        """
        Replace the answer to the next frames.

        :param command: its wheel counts to the left, CARLA's to the right.
        :raises TransportError: without an episode; the command is then sent in the next one.
        """
        self._client.drive(PlayerCommand(
            _serialized(command), _serialized(command.full_brake()), command.until_s))

    def close(self) -> None:
        """Wait until a frame is answered with the last command, which stays the answer."""
        self._client.finish(_LAST_ANSWER_S)


def _serialized(command: EgoCommand) -> bytes:
    control: bytes = Control(
        steer=-command.steer, throttle=command.throttle, brake=command.brake,
        hand_brake=command.hand_brake, reverse=command.reverse).SerializeToString()
    return control
