# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The simulator-specific data of CARLA: classes, lights, limits, the player's status, sensors.

Vectors are in REP-103 axes. Commands keep CARLA's sign (steer + = right) until they are encoded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
import math

import numpy as np
import numpy.typing as npt

from state_sensor_ros.simulators import DecodeError, Frame
from state_sensor_ros.simulators.frame_arrays import Floats, Rows, to_rep103_inputs

GENERATION = 'carla'

# Class of an actor. The name of an agent is the word of AGENT_CLASSES, `_` and its id.
CLASS_PLAYER, CLASS_VEHICLE, CLASS_PEDESTRIAN, CLASS_TRAFFIC_LIGHT, CLASS_SPEED_LIMIT_SIGN = \
    range(5)
AGENT_CLASSES = ('player', 'vehicle', 'pedestrian', 'traffic_light', 'speed_limit_sign')
PLAYER_NAME = 'player'
PLAYER_TAGS = ('ego', 'vehicle')

LIGHT_STATES = ('GREEN', 'YELLOW', 'RED')
NO_LIGHT = 255
_KPH_PER_MPS = 3.6
# Steering angle of the default vehicle, a Mustang, at steer 1; CARLA does not send it.
FULL_LOCK_DEG = 70.0


@dataclass(frozen=True, slots=True)
class Command:
    """A command to a vehicle in CARLA's signs."""

    steer: float = math.nan  # -1..1, + = right
    throttle: float = math.nan  # throttle, brake: 0..1; NaN: not in the source
    brake: float = math.nan
    hand_brake: bool = False
    reverse: bool = False


def command_inputs(*commands: Command) -> Floats:
    """Convert commands to the inputs of a driver."""
    # Returns (K, 4) float64: throttle, brake 0..1, steering -1..1 (+ = left), steering angle of
    # the default vehicle, rad (+ = left); NaN if a command has none.
    # Adding 0.0 turns -0.0, a steer of 0 to the left, into 0.0.
    return to_rep103_inputs(np.array([
        (command.throttle, command.brake, command.steer, FULL_LOCK_DEG * command.steer)
        for command in commands])) + 0.0


@dataclass(frozen=True, slots=True)
class DatasetCommands:
    """Members that the collector of a dataset adds: the command of its expert, the applied one."""

    expert: Command
    applied: Command  # ``expert`` with injected noise
    has_switches: bool  # the file has ``hand_brake`` and ``reverse``
    # The planner's 2 follow, 3 left, 4 right, 5 straight; ``stop_*`` why the expert slows down,
    # 0..1; NaN: not in the source.
    directions: float
    stop_pedestrian: float
    stop_vehicle: float
    stop_traffic_lights: float
    other_members: tuple[tuple[str, str], ...]  # name and JSON text of every other member
    # The same of the metadata.json of the episode, in its first frame.
    episode_members: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PlayerStatus:
    """Measurements that only the player has."""

    # (3,) m/s2, axes of the global frame; ``collision_*`` kg m/s since the episode began;
    # ``intersection_*`` share of the footprint, 0..1.
    acceleration_xyz: Floats
    collision_vehicles: float
    collision_pedestrians: float
    collision_other: float
    intersection_otherlane: float
    intersection_offroad: float
    autopilot: Command  # the command that the autopilot proposes
    dataset: DatasetCommands | None = None


class DataFormat(Enum):
    """
    Format of the data of a sensor.

    FILE: PNG or PLY. WIRE: pixels in the order blue, green, red, alpha, or points in the axes of
    the server. MESSAGE: as in the message of its topic.
    """

    FILE = 1
    WIRE = 2
    MESSAGE = 3


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An image as received, decoded only for a topic with a subscriber."""

    camera: str
    kind: str  # RGB, DEPTH or SEGMENTATION
    data: bytes | memoryview
    data_format: DataFormat = DataFormat.FILE  # that of ``data``
    size: tuple[int, int] | None = None  # width and height, pixels, None in a FILE
    fov_deg: float = math.nan  # horizontal field of view, degrees, NaN if it is unknown
    frame_number: int | None = None  # of its measurement, None if unknown


@dataclass(frozen=True, slots=True)
class EncodedPoints:
    """The points of a lidar as received."""

    lidar: str
    data: bytes | memoryview
    data_format: DataFormat = DataFormat.FILE


@dataclass(frozen=True, slots=True)
class SensorData:
    """What the sensors on the player produced."""

    images: tuple[EncodedImage, ...] = ()
    points: tuple[EncodedPoints, ...] = ()
    errors: tuple[DecodeError, ...] = ()  # of messages that were dropped

    def __bool__(self) -> bool:
        return bool(self.images or self.points or self.errors)


NO_SENSOR_DATA = SensorData()


def number_text(speed_limit: float) -> str:
    """Return the text of a sign, km/h, for ``speed_limit`` in m/s; '?' for NaN."""
    return f'{speed_limit * _KPH_PER_MPS:.0f}' if math.isfinite(speed_limit) else '?'


def starts_with_player(classes: npt.NDArray[np.uint8]) -> bool:
    """Return whether the first of ``classes``, (N,) CLASS_*, is the player's."""
    return CLASS_PLAYER in classes[:1]


@dataclass(frozen=True, slots=True)
class CarlaData:
    """Simulator-specific data of a frame of N actors."""

    frame_number: int  # counts on over episodes
    game_timestamp: int  # game_timestamp, platform_timestamp: ms, uint32 as sent
    platform_timestamp: int
    ids: npt.NDArray[np.uint32]  # (N,) uint32 of the agents, 0 for the player
    classes: npt.NDArray[np.uint8]  # (N,) uint8 CLASS_*
    lights: npt.NDArray[np.uint8]  # (N,) uint8 index in LIGHT_STATES, NO_LIGHT for other actors
    speed_limits: Floats  # (N,) m/s, NaN for other actors
    player: PlayerStatus | None = None  # ``None`` if the player is not in the frame
    sensor_data: SensorData = NO_SENSOR_DATA

    @property
    def identity(self) -> int | None:
        """Return what identifies the frame; 0.8.0 and 0.8.1 send no number."""
        return self.frame_number or self.platform_timestamp or None

    @property
    def has_player(self) -> bool:
        """Whether the player is in the frame; its row is the first."""
        return starts_with_player(self.classes)

    def select(self, rows: Rows) -> CarlaData:
        """Keep the actors at ``rows``; the player's status and sensors go with the player."""
        # rows: (K,) int64, ascending.
        classes = self.classes[rows]
        has_player = starts_with_player(classes)
        return replace(
            self, ids=self.ids[rows], classes=classes, lights=self.lights[rows],
            speed_limits=self.speed_limits[rows], player=self.player if has_player else None,
            sensor_data=self.sensor_data if has_player else NO_SENSOR_DATA)

    def displays(self) -> tuple[str, ...]:
        """Return the color of each light, the number of each sign, and '' of other actors."""
        return tuple(
            number_text(limit) if class_ == CLASS_SPEED_LIMIT_SIGN
            else LIGHT_STATES[light].lower() if light < len(LIGHT_STATES) else ''
            for class_, light, limit in zip(self.classes.tolist(), self.lights.tolist(),
                                            self.speed_limits.tolist(), strict=True))


def data_of(frame: Frame) -> CarlaData | None:
    """Return CARLA's own data of a frame, None of another simulator's."""
    data = frame.extension
    return data if isinstance(data, CarlaData) else None


def player_of(frame: Frame) -> PlayerStatus | None:
    """Return the status of the player, None without a player in the frame."""
    data = data_of(frame)
    return data.player if data is not None and data.has_player else None
