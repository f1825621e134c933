# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What CARLA sends beyond the common frame: classes, lights, limits, the player's status, images.

May know: shapes, units, selection of actors. Must not know: how it was sent, ROS. Vectors are in
REP-103 axes; commands are as CARLA means them (steer + = right) until they are encoded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
import math

import numpy as np
import numpy.typing as npt

from state_sensor_ros.frame import Floats, Rows

GENERATION = 'carla'

# What an actor is; its name is the word of NAME_PREFIXES followed by its id.
CLASS_PLAYER, CLASS_VEHICLE, CLASS_PEDESTRIAN, CLASS_TRAFFIC_LIGHT, CLASS_SPEED_LIMIT_SIGN = \
    range(5)
AGENT_CLASSES = ('player', 'vehicle', 'pedestrian', 'traffic_light', 'speed_limit_sign')
PLAYER_NAME = 'player'
PLAYER_TAGS = ('ego', 'vehicle')

LIGHT_STATES = ('GREEN', 'YELLOW', 'RED')
NO_LIGHT = 255


@dataclass(frozen=True, slots=True)
class Command:
    """
    A command to a vehicle, as CARLA means it.

    ``steer`` -1..1, + = right; ``throttle`` and ``brake`` 0..1; NaN: not in the source.
    """

    steer: float = math.nan
    throttle: float = math.nan
    brake: float = math.nan
    hand_brake: bool = False
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class DatasetCommands:
    """
    What the collector of a dataset adds: its expert's command and the one that was applied.

    ``expert`` and ``applied``, the same with injected noise; ``has_switches`` the file has
    ``hand_brake`` and ``reverse``; ``directions`` the planner's 2 follow, 3 left, 4 right, 5
    straight; ``stop_*`` why the expert slows down, 0..1; NaN: not in the source. ``extras`` name
    and JSON text of every other member.
    """

    expert: Command
    applied: Command
    has_switches: bool
    directions: float
    stop_pedestrian: float
    stop_vehicle: float
    stop_traffic_lights: float
    extras: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PlayerStatus:
    """
    What is measured of the player only.

    ``acceleration_xyz`` (3,) m/s2, axes of the global frame; ``collision_*`` kg m/s since the
    episode began; ``intersection_*`` share of the footprint, 0..1; ``autopilot`` what the
    autopilot would do.
    """

    acceleration_xyz: Floats
    collision_vehicles: float
    collision_pedestrians: float
    collision_other: float
    intersection_otherlane: float
    intersection_offroad: float
    autopilot: Command
    dataset: DatasetCommands | None = None


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """
    An image as it came, decoded only when somebody looks.

    ``camera`` and ``kind`` as carla/images.py names them; ``data`` a PNG file, or where ``size``,
    width and height, is given, the pixels that its message has.
    """

    camera: str
    kind: str
    data: bytes | memoryview
    size: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class CarlaExtension:
    """
    Beside a frame of N actors.

    ``frame_number`` counts on over episodes; ``game_timestamp`` and ``platform_timestamp`` ms,
    uint32 as sent; ``ids`` (N,) uint32 of the agents, 0 for the player; ``classes`` (N,) uint8
    CLASS_*; ``lights`` (N,) uint8 index in LIGHT_STATES, NO_LIGHT for others; ``speed_limits``
    (N,) m/s, NaN for what is no sign; ``player`` ``None`` where the player is not in the frame.
    """

    frame_number: int
    game_timestamp: int
    platform_timestamp: int
    ids: npt.NDArray[np.uint32]
    classes: npt.NDArray[np.uint8]
    lights: npt.NDArray[np.uint8]
    speed_limits: Floats
    player: PlayerStatus | None = None
    images: tuple[EncodedImage, ...] = ()

    def select(self, rows: Rows) -> CarlaExtension:
        """
        Keep the actors at ``rows``; the player's status and images go with the player.

        :param rows: (K,) int64, ascending.
        """
        classes = self.classes[rows]
        has_player = bool((classes == CLASS_PLAYER).any())
        return replace(
            self, ids=self.ids[rows], classes=classes, lights=self.lights[rows],
            speed_limits=self.speed_limits[rows], player=self.player if has_player else None,
            images=self.images if has_player else ())
