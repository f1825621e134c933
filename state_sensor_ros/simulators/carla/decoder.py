# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Decode the payloads of a CARLA server and those of a dataset to frames: one decoder for each.

A payload is that of carla/measurement_framing.py: a measurement, then sensors. The opener of the
source chooses the decoder, never a mark in the payload, which a peer could forge.
"""

from __future__ import annotations

from dataclasses import replace
import math

from google.protobuf.message import DecodeError as ProtobufError
import numpy as np

from state_sensor_ros.emulator.carla_server.carla_schema import Measurements
from state_sensor_ros.simulators import (
    counted,
    Decoded,
    DecodeError,
    EVERYTHING,
    Fault,
    LEFT_OUT,
    Needs,
    SingleFrameDecoder,
)
from state_sensor_ros.simulators.carla.carla_data import (
    Command,
    command_inputs,
    DatasetCommands,
    NO_SENSOR_DATA,
    PlayerStatus,
    SensorData,
)
from state_sensor_ros.simulators.carla.frame_maker import FrameCounters, FrameMaker
from state_sensor_ros.simulators.carla.measurement_file import (
    parse_measurement_file,
    Parsed,
    to_float,
)
from state_sensor_ros.simulators.carla.measurement_framing import split_frame, split_messages
from state_sensor_ros.simulators.carla.number_extraction import (
    Agents,
    agents_of_file,
    agents_of_message,
    Tree,
)
from state_sensor_ros.simulators.carla.sensor_payloads import (
    episode_members,
    sensor_files,
    ServerSensors,
)
from state_sensor_ros.simulators.frame_arrays import mirrored_vectors
from state_sensor_ros.simulators.protobuf_lists import checked_message, NotFieldsError

_UINT32_MAX = 2 ** 32 - 1
_UINT64_MAX = 2 ** 64 - 1
# A decrease of the counter is a wrap if the step across the wrap is at most this, else a restart.
_LONGEST_STEP_MS = 3_600_000


class GameClock:
    """Seconds from the counter of milliseconds, which wraps after 49.7 days."""

    def __init__(self) -> None:
        self._last = 0
        self._base = 0

    def seconds(self, game_timestamp: int) -> float:
        """
        Return the time since the episode began, s; it decreases when a new episode begins.

        :param game_timestamp: ms, uint32.
        """
        if game_timestamp < self._last:
            wrapped = game_timestamp + _UINT32_MAX + 1 - self._last <= _LONGEST_STEP_MS
            self._base = self._base + _UINT32_MAX + 1 if wrapped else 0
        self._last = game_timestamp
        return (self._base + game_timestamp) / 1000.0


class _MeasurementDecoder(SingleFrameDecoder):
    """
    The common base of both decoders: the clock of a stream, and the frame of a measurement.

    :param needs: parts of the frame that are read afterwards.
    """

    def __init__(self, needs: Needs = EVERYTHING) -> None:
        self.needs = needs
        self._maker = FrameMaker()
        self._clock = GameClock()

    def _decoded(self, tree: Tree, agents: Agents, player: Tree,
                 dataset: DatasetCommands | None, sensor_data: SensorData) -> Decoded:
        if player is None and not tree.non_player_agents:
            raise DecodeError('playerMeasurements', 'nothing', 'an object, or nonPlayerAgents')
        counters = _counters(tree)
        inputs = None if dataset is None else command_inputs(dataset.applied)[0]
        status = None if player is None else _status(player, dataset)
        frame, faults = self._maker.frame(
            counters, agents, player, self.needs,
            game_time=self._clock.seconds(counters.game_timestamp), status=status, inputs=inputs,
            sensor_data=sensor_data)
        return Decoded(frame, tuple(faults))


class CarlaDecoder(_MeasurementDecoder):
    """
    Decode the payloads of a server.

    :param needs: parts of the frame that are read afterwards.
    """

    def __init__(self, needs: Needs = EVERYTHING) -> None:
        super().__init__(needs)
        self._sensors = ServerSensors()

    def decode(self, payload: bytes | bytearray | memoryview, *, game_time: float = math.nan,
               time: int = 0, sample_count: int = 0) -> list[Decoded]:
        """
        Decode one frame; times and counts are read from the measurement, not from the header.

        :param payload: messages with their lengths: a protobuf measurement and messages of
            sensors; then the scene that names these.
        :returns: one frame.
        :raises DecodeError: if the payload is not a frame; no other error is raised.
        """
        (measurement, *messages), scene = split_frame(payload)
        return [self.decode_measurements(measurement, self._sensors.parse(messages, scene))]

    def decode_measurements(self, payload: bytes | memoryview,
                            sensor_data: SensorData = NO_SENSOR_DATA) -> Decoded:
        """
        Decode a measurement of a server.

        :param payload: a protobuf ``Measurements``.
        :param sensor_data: sensor data of the same frame.
        :raises DecodeError: if it is not valid.
        """
        message = Measurements()
        try:
            message.ParseFromString(checked_message(payload, Measurements.DESCRIPTOR))
        except (ProtobufError, NotFieldsError) as error:
            raise DecodeError('payload', f'{counted(len(payload), "byte")} ({error})',
                              'a protobuf Measurements') from error
        player = message.player_measurements if message.HasField('player_measurements') else None
        return self._decoded(message, agents_of_message(message.non_player_agents), player,
                             None, sensor_data)


class DatasetDecoder(_MeasurementDecoder):
    """
    Decode the frames of a dataset.

    :param needs: parts of the frame that are read afterwards.
    """

    def __init__(self, needs: Needs = EVERYTHING) -> None:
        super().__init__(needs)
        # Of the episode, until one of its frames has a player.
        self._episode_members: tuple[tuple[str, str], ...] = ()

    def decode(self, payload: bytes | bytearray | memoryview, *, game_time: float = math.nan,
               time: int = 0, sample_count: int = 0) -> list[Decoded]:
        """
        Decode one frame; times and counts are read from the measurement, not from the header.

        :param payload: messages with their lengths: a file of the dataset, then that of
            :func:`pack_episode` in the first frame of an episode, then those of sensors as
            :func:`pack_sensor_file` makes them.
        :returns: one frame.
        :raises DecodeError: if the payload is not a frame; no other error is raised.
        """
        measurement, *messages = split_messages(payload)
        members = episode_members(messages[0]) if messages else None
        if members is not None:
            self._episode_members = members
            del messages[0]
        return [self.decode_dataset(measurement, sensor_files(messages))]

    def decode_dataset(self, payload: bytes | memoryview,
                       sensor_data: SensorData = NO_SENSOR_DATA) -> Decoded:
        """
        Decode a file of the dataset.

        :param payload: JSON text, UTF-8.
        :param sensor_data: sensor data of the same frame.
        :raises DecodeError: with the key path, if it is not valid.
        """
        parsed = parse_measurement_file(payload)
        self.unknown_members |= parsed.unknown
        file = parsed.file
        agents = agents_of_file(file.non_player_agents)
        commands = _dataset_commands(parsed)
        if self._episode_members and file.player_measurements is not None:
            commands = replace(commands, episode_members=self._episode_members)
        decoded = self._decoded(file, agents, file.player_measurements, commands, sensor_data)
        if commands.episode_members:
            self._episode_members = ()
        bad_actors = tuple(Fault(LEFT_OUT, error) for error in parsed.bad_actors)
        return Decoded(decoded.frame, bad_actors + decoded.faults)


def _counters(tree: Tree) -> FrameCounters:
    return FrameCounters(
        _checked('frameNumber', int(tree.frame_number), _UINT64_MAX),
        _checked('gameTimestamp', int(tree.game_timestamp), _UINT32_MAX),
        _checked('platformTimestamp', int(tree.platform_timestamp), _UINT32_MAX))


def _checked(name: str, value: int, most: int) -> int:
    if value > most:
        raise DecodeError(f'$.{name}', str(value), f'at most {most}')
    return value


def _status(player: Tree, dataset: DatasetCommands | None) -> PlayerStatus:
    acceleration = player.acceleration
    return PlayerStatus(
        mirrored_vectors(np.array([to_float(acceleration.x), to_float(acceleration.y),
                                   to_float(acceleration.z)])),
        to_float(player.collision_vehicles), to_float(player.collision_pedestrians),
        to_float(player.collision_other), to_float(player.intersection_otherlane),
        to_float(player.intersection_offroad), _command(player.autopilot_control), dataset)


def _command(control: Tree) -> Command:
    return Command(to_float(control.steer), to_float(control.throttle), to_float(control.brake),
                   control.hand_brake, control.reverse)


def _dataset_commands(parsed: Parsed) -> DatasetCommands:
    file = parsed.file
    hand_brake, reverse = bool(file.hand_brake), bool(file.reverse)
    return DatasetCommands(
        Command(to_float(file.steer), to_float(file.throttle), to_float(file.brake), hand_brake,
                reverse),
        Command(to_float(file.steer_noise), to_float(file.throttle_noise),
                to_float(file.brake_noise), hand_brake, reverse),
        file.hand_brake is not None or file.reverse is not None, to_float(file.directions),
        to_float(file.stop_pedestrian), to_float(file.stop_vehicle),
        to_float(file.stop_traffic_lights), parsed.other_members)
