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

A payload is that of carla/frame_payload.py: a measurement, then sensors. The opener of the source
chooses the decoder, never a mark in the payload, which a peer could forge.

Units: doc/protocol/carla.md#measurements; axes: doc/protocol/carla.md#rotators.
"""

from __future__ import annotations

from dataclasses import replace
import math
from typing import Any, Final

from google.protobuf.message import DecodeError as ProtobufError
import numpy as np
import numpy.typing as npt

from state_sensor_ros.payloads import Decoded, SingleFrameDecoder
from state_sensor_ros.simulators import (
    Boxes,
    counted,
    DecodeError,
    DROPPED,
    Fault,
    Frame,
)
from state_sensor_ros.simulators.carla.carla_data import (
    AGENT_CLASSES,
    CarlaData,
    CLASS_PLAYER,
    Command,
    command_inputs,
    DatasetCommands,
    GENERATION,
    NO_LIGHT,
    NO_SENSOR_DATA,
    PLAYER_NAME,
    PLAYER_TAGS,
    PlayerStatus,
    SensorData,
    starts_with_player,
)
from state_sensor_ros.simulators.carla.carla_schema import Measurements
from state_sensor_ros.simulators.carla.frame_payload import (
    ServerSensors,
    split_frame,
    unpack_dataset,
)
from state_sensor_ros.simulators.carla.measurement import (
    ActorNumbers,
    Agents,
    agents_of_file,
    agents_of_message,
    collect,
    parse_measurement_file,
    Parsed,
    to_float,
    Tree,
)
from state_sensor_ros.simulators.frame_arrays import (
    Floats,
    global_from_unit,
    KIND_OBJECT,
    KIND_VEHICLE,
    mirrored_vectors,
    NO_LANES,
    NO_WHEELS,
    quaternion_product,
    to_rep103_rotator,
)
from state_sensor_ros.simulators.json_values import as_rows

_TAGS: Final = (PLAYER_TAGS, *((name,) for name in AGENT_CLASSES[1:]))
_KINDS: Final = np.array((KIND_VEHICLE, KIND_VEHICLE, KIND_OBJECT, KIND_OBJECT, KIND_OBJECT),
                         np.uint8)


def _finite(rows: Floats) -> Floats:
    """Replace infinity, which is not a valid position or speed, by NaN."""
    # Fast path: a finite sum proves that all are finite. An overflow only takes the slow path.
    return rows if math.isfinite(rows.sum()) else np.where(np.isfinite(rows), rows, np.nan)


def _place_boxes(box_rows: Floats, numbers: ActorNumbers, owners: Floats) -> None:
    """Place the boxes, which are relative to their owners, in the global frame."""
    # box_rows: (M, 13) float64, output, the rows of :class:`Boxes`.
    # owners: (M, 7) float64, position and orientation of the owner of each box.
    boxes = _finite(as_rows(numbers.boxes, 9))
    position, orientation = owners[:, :3], owners[:, 3:]
    center = global_from_unit(orientation) @ mirrored_vectors(boxes[:, 0:3])[:, :, None]
    turned = boxes[:, 3:6]
    # Boxes have the orientation of their owners, except those of custom vehicles.
    if turned.any():
        orientation = quaternion_product(orientation, to_rep103_rotator(turned))
    box_rows[:, 0:3] = position + center[:, :, 0]
    box_rows[:, 3:7] = orientation
    box_rows[:, 7:10] = 2.0 * boxes[:, 6:9]
    box_rows[:, 10:13] = 1.0


def _scattered(entries: list[tuple[int, Any]], n_actors: int, dtype: npt.DTypeLike,
               fill: float) -> npt.NDArray[Any]:
    """Return an array with the values of ``entries`` in their rows and ``fill`` elsewhere."""
    column = np.full(n_actors, fill, dtype)
    if entries:
        column[[row for row, _ in entries]] = [value for _, value in entries]
    return column


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
        """Return the time since the episode began, s; it decreases when a new episode begins."""
        # game_timestamp: ms, uint32.
        if game_timestamp < self._last:
            wrapped = game_timestamp + _UINT32_MAX + 1 - self._last <= _LONGEST_STEP_MS
            self._base = self._base + _UINT32_MAX + 1 if wrapped else 0
        self._last = game_timestamp
        return (self._base + game_timestamp) / 1000.0


class _MeasurementDecoder(SingleFrameDecoder):
    """
    The common base of both decoders: the clock of a stream, and the frame of a measurement.

    An unchanged list of actors keeps its name objects.
    """

    def __init__(self) -> None:
        self._clock = GameClock()
        self._key = (b'', b'')
        self._names: tuple[str, ...] = ()
        self._tags: tuple[tuple[str, ...], ...] = ()

    def _decoded(self, tree: Tree, agents: Agents, player: Tree,
                 dataset: DatasetCommands | None, sensor_data: SensorData) -> Decoded:
        if player is None and not tree.non_player_agents:
            raise DecodeError('playerMeasurements', 'nothing', 'an object, or nonPlayerAgents')
        counters = _counters(tree)
        details = self.details
        numbers = collect(player, agents, with_boxes=details)
        n_actors = len(numbers.ids)
        ids, classes = np.array(numbers.ids, np.uint32), np.array(numbers.classes, np.uint8)
        self._name(ids, classes)
        # One array: the poses of actors and boxes are checked together (Frame.bodies).
        bodies = np.full((n_actors + len(numbers.owners), 13), np.nan)
        kinematics, box_rows = bodies[:n_actors], bodies[n_actors:]
        # Results that cannot be computed are NaN, unknown, without a warning.
        with np.errstate(all='ignore'):
            poses = _finite(as_rows(numbers.poses, 7))
            kinematics[:, 0:3] = mirrored_vectors(poses[:, 0:3])
            kinematics[:, 3:7] = to_rep103_rotator(poses[:, 3:6])
            owners = np.array(numbers.owners, np.int64)
            if len(owners):
                _place_boxes(box_rows, numbers, kinematics[owners, :7])
        has_player = starts_with_player(classes)
        data = CarlaData(
            *counters, ids, classes,
            _scattered(numbers.lights, n_actors, np.uint8, NO_LIGHT),
            _scattered(numbers.limits, n_actors, np.float64, math.nan),
            _status(player, dataset) if has_player else None, sensor_data)
        inputs = np.full((n_actors, 4), np.nan) if details else None
        if inputs is not None and has_player and dataset is not None:
            inputs[0] = command_inputs(dataset.applied)[0]
        frame = Frame(
            GENERATION, self._clock.seconds(data.game_timestamp), 0, data.frame_number % 2 ** 32,
            self._names, _KINDS[classes], self._tags, kinematics, NO_LANES,
            boxes=Boxes(owners, tuple(numbers.box_names), box_rows) if details else None,
            wheels=NO_WHEELS if details else None, inputs=inputs,
            forward_speed=poses[:, 6].copy(), extension=data,
            # CARLA counts whole milliseconds.
            has_exact_time=True, identity=data.identity)
        return Decoded(frame, tuple(numbers.faults))

    def _name(self, ids: npt.NDArray[np.uint32], classes: npt.NDArray[np.uint8]) -> None:
        """Set names and tags if the actors differ from those of the previous frame."""
        key = (ids.tobytes(), classes.tobytes())
        if key != self._key:
            self._key = key
            self._names = tuple(
                PLAYER_NAME if class_ == CLASS_PLAYER else f'{AGENT_CLASSES[class_]}_{id_}'
                for id_, class_ in zip(ids.tolist(), classes.tolist(), strict=True))
            self._tags = tuple(_TAGS[class_] for class_ in classes.tolist())


class CarlaDecoder(_MeasurementDecoder):
    """Decode the payloads of a server."""

    def __init__(self) -> None:
        super().__init__()
        self._sensors = ServerSensors()

    def decode(self, payload: bytes | bytearray | memoryview, *, game_time: float = math.nan,
               time: int = 0, sample_count: int = 0) -> list[Decoded]:
        """Decode one frame; times and counts are those of the measurement, not of the header."""
        (measurement, *messages), scene = split_frame(payload)
        return [self.decode_measurements(measurement, self._sensors.parse(messages, scene))]

    def decode_measurements(self, payload: bytes | memoryview,
                            sensor_data: SensorData = NO_SENSOR_DATA) -> Decoded:
        """Decode a measurement of a server; ``payload``: a protobuf ``Measurements``."""
        message = Measurements()
        try:
            message.ParseFromString(payload)
        except ProtobufError as error:
            raise DecodeError('payload', f'{counted(len(payload), "byte")} ({error})',
                              'a protobuf Measurements') from error
        player = message.player_measurements if message.HasField('player_measurements') else None
        return self._decoded(message, agents_of_message(message.non_player_agents), player,
                             None, sensor_data)


class DatasetDecoder(_MeasurementDecoder):

    def __init__(self) -> None:
        super().__init__()
        # Of the episode, until one of its frames has a player.
        self._episode_members: tuple[tuple[str, str], ...] = ()

    def decode(self, payload: bytes | bytearray | memoryview, *, game_time: float = math.nan,
               time: int = 0, sample_count: int = 0) -> list[Decoded]:
        """
        Decode one frame; times and counts are read from the measurement, not from the header.

        :param payload: messages with their lengths: a file of the dataset, then that of
            :func:`pack_episode` in the first frame of an episode, then those of sensors as
            :func:`pack_sensor_file` makes them.
        """
        parts = unpack_dataset(payload)
        if parts.members is not None:
            self._episode_members = tuple(parts.members.items())
        return [self.decode_dataset(parts.measurement, parts.sensor_data())]

    def decode_dataset(self, payload: bytes | memoryview,
                       sensor_data: SensorData = NO_SENSOR_DATA) -> Decoded:
        """Decode a file of the dataset; ``payload``: JSON text, UTF-8."""
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
        bad_actors = tuple(Fault(DROPPED, error) for error in parsed.bad_actors)
        return Decoded(decoded.frame, bad_actors + decoded.faults)


def _counters(tree: Tree) -> tuple[int, int, int]:
    """Return the number of the frame and its two timestamps."""
    return (_checked('frameNumber', int(tree.frame_number), _UINT64_MAX),
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
