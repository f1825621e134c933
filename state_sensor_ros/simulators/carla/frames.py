# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Frames of measurements: a message of a server or a file of a dataset, which have equal members.

Units: doc/protocol/carla.md#measurements; axes: doc/protocol/carla.md#rotators.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
import math
from typing import Any, Final, TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from state_sensor_ros.emulator.bicycle import FULL_LOCK_DEG
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import (
    Bools,
    Boxes,
    Floats,
    Frame,
    KIND_OBJECT,
    KIND_VEHICLE,
    NO_LANES,
    NO_WHEELS,
    Rows,
)
from state_sensor_ros.rep103 import mirrored_vectors, to_rep103_inputs, to_rep103_rotator
from state_sensor_ros.rotations import global_from_unit, quaternion_product
from state_sensor_ros.simulators.json_text import rows_of
from state_sensor_ros.source import DROPPED, DUPLICATE, Faults

if TYPE_CHECKING:
    from state_sensor_ros.simulators.carla.images import CameraImage

# Protobuf makes message classes at run time: they have no static type.
Message: TypeAlias = Any

GENERATION: Final = 'carla'
PLAYER, VEHICLE, PEDESTRIAN, LIGHT, SIGN = range(5)
CLASSES: Final = ('player', 'vehicle', 'pedestrian', 'traffic_light', 'speed_limit_sign')
_NUMBERS: Final = {name: class_ for class_, name in enumerate(CLASSES)}
PLAYER_TAGS: Final = ('ego', 'vehicle')
_TAGS: Final = (PLAYER_TAGS, *((name,) for name in CLASSES[1:]))
_KINDS: Final = np.array((KIND_VEHICLE, KIND_VEHICLE, KIND_OBJECT, KIND_OBJECT, KIND_OBJECT),
                         np.uint8)
LIGHT_STATES: Final = ('green', 'yellow', 'red')
NO_LIGHT: Final = 255
_KPH_PER_MPS: Final = 3.6
# Of 0.8.0 and 0.8.1: half sizes above this are cm, and limits of these values km/h.
_GREATEST_HALF_SIZE_M: Final = 15.0
_LIMITS_KPH: Final = (30.0, 40.0, 50.0, 60.0, 90.0, 100.0, 120.0, 130.0)
_UINT32_MAX: Final = 2 ** 32 - 1
# A decrease of the counter is a wrap if the step across the wrap is at most this, else a restart.
_LONGEST_STEP_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class PlayerStatus:
    """Measurements that only the player has; NaN: not in the source."""

    # (12,) acceleration xyz (m/s2, global axes); collisions with vehicles, pedestrians, others
    # (kg m/s since the episode began); share of the footprint in other lanes, off the road; the
    # planner's direction; 0..1 why the expert slows down: pedestrian, vehicle, light.
    numbers: Floats
    # (3, 3) steer (-1..1, + = right), throttle, brake of the autopilot's proposal and, in a
    # dataset, of the expert and of what was applied; (3, 2) hand brake, reverse.
    controls: Floats
    switches: Bools
    is_dataset: bool = False
    has_switches: bool = False  # the file has those of the expert
    extra_members: str = ''  # JSON object of all other members of the file, '' for none


@dataclass(frozen=True, slots=True)
class CarlaData:
    """What only CARLA has of a frame of N actors."""

    frame_number: int  # counts on over episodes
    game_timestamp: int  # game_timestamp, platform_timestamp: ms, uint32 as sent
    platform_timestamp: int
    ids: npt.NDArray[np.uint32]  # (N,) of the agents, 0 for the player
    classes: npt.NDArray[np.uint8]  # (N,) PLAYER, VEHICLE …
    lights: npt.NDArray[np.uint8]  # (N,) index in LIGHT_STATES, NO_LIGHT for other actors
    speed_limits: Floats  # (N,) m/s, NaN for other actors
    player: PlayerStatus | None = None  # None if the player, whose row is the first, is not there
    images: tuple[CameraImage, ...] = ()  # of a dataset

    def select(self, rows: Rows) -> CarlaData:
        """Keep the actors at ``rows``, (K,) ascending; status and images go with the player."""
        classes = self.classes[rows]
        has_player = PLAYER in classes[:1]
        return replace(
            self, ids=self.ids[rows], classes=classes, lights=self.lights[rows],
            speed_limits=self.speed_limits[rows], player=self.player if has_player else None,
            images=self.images if has_player else ())

    def displays(self) -> tuple[str, ...]:
        """Return the color of each light, the number of each sign, and '' of other actors."""
        return tuple(number_text(limit) if class_ == SIGN
                     else LIGHT_STATES[light] if light != NO_LIGHT else ''
                     for class_, light, limit in zip(
                         self.classes.tolist(), self.lights.tolist(),
                         self.speed_limits.tolist(), strict=True))


def data_of(frame: Frame) -> CarlaData | None:
    """Return CARLA's own data of a frame, None of one without."""
    data = frame.extension
    return data if isinstance(data, CarlaData) else None


def number_text(speed_limit: float) -> str:
    """Return the text of a sign, km/h, for ``speed_limit`` in m/s; '?' for NaN."""
    return f'{speed_limit * _KPH_PER_MPS:.0f}' if math.isfinite(speed_limit) else '?'


def control_inputs(controls: Floats) -> Floats:
    """Convert steer, throttle, brake, (K, 3), to the inputs of a frame, (K, 4)."""
    steer, throttle, brake = controls.T
    # Adding 0.0 turns -0.0, a steer of 0 to the left, into 0.0.
    return to_rep103_inputs(np.stack(
        (throttle, brake, steer, FULL_LOCK_DEG * steer), axis=1)) + 0.0


class GameClock:
    """Seconds from the counter of milliseconds, which wraps after 49.7 days."""

    def __init__(self) -> None:
        self._last = self._base = 0

    def seconds(self, game_timestamp: int) -> float:
        """Return the time since the episode began, s; it decreases when a new one begins."""
        if game_timestamp < self._last:
            is_wrap = game_timestamp + _UINT32_MAX + 1 - self._last <= _LONGEST_STEP_MS
            self._base = self._base + _UINT32_MAX + 1 if is_wrap else 0
        self._last = game_timestamp
        return (self._base + game_timestamp) / 1000.0


class _Actors:
    """Numbers of the actors of a measurement in CARLA's units and axes, in flat lists."""

    def __init__(self, *, with_boxes: bool) -> None:
        self.with_boxes = with_boxes
        self.ids: list[int] = []
        self.classes: list[int] = []
        # 7 for each actor: xyz m, roll pitch yaw deg, forward speed m/s.
        self.poses: list[float] = []
        # 9 for each box: xyz m, roll pitch yaw deg relative to the owner, half sizes xyz m.
        self.boxes: list[float] = []
        self.owners: list[int] = []
        self.box_names: list[str] = []
        self.lights: list[int] = []
        self.limits: list[float] = []

    def add(self, id_: int, class_: int, body: Message, *, is_in_cm: bool | None = None) -> None:
        """Add an actor with a transform; ``is_in_cm``: of an old box, None by its size."""
        at, turned = body.transform.location, body.transform.rotation
        is_mover = class_ <= PEDESTRIAN
        self.poses += (at.x, at.y, at.z, turned.roll, turned.pitch, turned.yaw,
                       body.forward_speed if is_mover else math.nan)
        if is_mover and self.with_boxes:
            self._add_box(body, is_in_cm)
        self.ids.append(id_)
        self.classes.append(class_)
        self.lights.append(body.state if class_ == LIGHT else NO_LIGHT)
        self.limits.append(body.speed_limit if class_ == SIGN else math.nan)

    def _add_box(self, body: Message, is_in_cm: bool | None) -> None:
        if body.HasField('bounding_box'):
            box, name = body.bounding_box, 'bounding_box'
            at, turned, extent = box.transform.location, box.transform.rotation, box.extent
            self.boxes += (at.x, at.y, at.z, turned.roll, turned.pitch, turned.yaw,
                           extent.x, extent.y, extent.z)
        elif body.HasField('box_extent'):
            extent, name = body.box_extent, 'box_extent'
            halves = extent.x, extent.y, extent.z
            unit = 100.0 if is_in_cm or (
                is_in_cm is None and max(halves) > _GREATEST_HALF_SIZE_M) else 1.0
            self.boxes += (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, *(half / unit for half in halves))
        else:
            return
        self.owners.append(len(self.ids))
        self.box_names.append(name)


class FrameMaker:
    """
    Makes the frames of one stream of measurements; unchanged actors keep their names.

    :param faults: gets the actors that are dropped.
    :ivar details: whether boxes and inputs are used.
    """

    def __init__(self, faults: Faults) -> None:
        self.details = True
        self._faults = faults
        self._clock = GameClock()
        self._key = b''
        self._names: tuple[str, ...] = ()
        self._tags: tuple[tuple[str, ...], ...] = ()

    def frame(self, message: Message, *, status: PlayerStatus | None = None,
              images: tuple[CameraImage, ...] = ()) -> Frame:
        """
        Return the frame of a measurement.

        :param message: of a server or of a file; ``status`` and ``images`` are those of the file.
        :raises DecodeError: if it has no actors.
        """
        has_player = message.HasField('player_measurements')
        if not has_player and not message.non_player_agents:
            raise DecodeError('playerMeasurements', 'nothing', 'an object, or nonPlayerAgents')
        player = message.player_measurements
        has_player = has_player and self._has_transform(player, 'playerMeasurements')
        actors = self._collected(message, player if has_player else None)
        ids, classes = np.array(actors.ids, np.uint32), np.array(actors.classes, np.uint8)
        self._name(ids, classes)
        # One array: the poses of actors and boxes are checked together (Frame.bodies).
        bodies = np.full((len(ids) + len(actors.owners), 13), np.nan)
        kinematics, box_rows = bodies[:len(ids)], bodies[len(ids):]
        owners = np.array(actors.owners, np.int64)
        # Results that cannot be computed are NaN, unknown, without a warning.
        with np.errstate(all='ignore'):
            poses = _finite(rows_of(actors.poses, 7))
            kinematics[:, 0:3] = mirrored_vectors(poses[:, 0:3])
            kinematics[:, 3:7] = to_rep103_rotator(poses[:, 3:6])
            if len(owners):
                _place_boxes(box_rows, actors, kinematics[owners, :7])
        if has_player:
            status = status or _live_status(player)
            status = replace(status, numbers=np.concatenate(
                (_measured(player), status.numbers[8:])))
        inputs = np.full((len(ids), 4), np.nan)
        if has_player and status is not None and status.is_dataset:
            inputs[0] = control_inputs(status.controls[2:])[0]
        blank, number = ('',) * len(ids), message.frame_number
        return Frame(
            GENERATION, self._clock.seconds(message.game_timestamp), 0, number % 2 ** 32,
            self._names, _KINDS[classes], self._tags, kinematics, NO_LANES,
            boxes=Boxes(owners, tuple(actors.box_names), box_rows) if self.details else None,
            wheels=NO_WHEELS if self.details else None, inputs=inputs if self.details else None,
            colors=blank, replay_classes=blank, forward_speed=poses[:, 6].copy(),
            extension=CarlaData(
                number, message.game_timestamp, message.platform_timestamp, ids, classes,
                np.array(actors.lights, np.uint8), np.array(actors.limits),
                status if has_player else None, images if has_player else ()),
            # CARLA counts whole milliseconds; 0.8.0 and 0.8.1 send no number.
            has_exact_time=True, identity=number or message.platform_timestamp or None)

    def _collected(self, message: Message, player: Message | None) -> _Actors:
        actors = _Actors(with_boxes=self.details)
        if player is not None:
            actors.add(0, PLAYER, player, is_in_cm=False)
        seen: set[tuple[int, int]] = set()
        for i, agent in enumerate(message.non_player_agents):
            name = agent.WhichOneof('agent')
            if name is None:
                self._drop(f'nonPlayerAgents[{i}]', 'nothing', ', '.join(CLASSES[1:]))
                continue
            class_, body = _NUMBERS[name], getattr(agent, name)
            if (agent.id, class_) in seen:
                self._faults.add(DUPLICATE, DecodeError(
                    f'nonPlayerAgents[{i}].id', f'another {name} {agent.id}', 'each id once'))
            elif class_ == LIGHT and not 0 <= body.state < len(LIGHT_STATES):
                self._drop(f'nonPlayerAgents[{i}].trafficLight.state', str(body.state),
                           'GREEN, YELLOW, RED')
            elif self._has_transform(body, f'nonPlayerAgents[{i}].{name}'):
                seen.add((agent.id, class_))
                actors.add(agent.id, class_, body)
        # The older box of the player is that of 0.8.0, with limits in km/h, and 0.8.1.
        if player is not None and player.HasField('box_extent'):
            actors.limits = [limit / _KPH_PER_MPS if limit in _LIMITS_KPH else limit
                             for limit in actors.limits]
        return actors

    def _has_transform(self, body: Message, where: str) -> bool:
        if body.HasField('transform'):
            return True
        self._drop(f'{where}.transform', 'nothing', 'an object')
        return False

    def _drop(self, where: str, found: str, expected: str) -> None:
        self._faults.add(DROPPED, DecodeError(where, found, expected))

    def _name(self, ids: npt.NDArray[np.uint32], classes: npt.NDArray[np.uint8]) -> None:
        """Set names and tags if the actors differ from those of the previous frame."""
        key = ids.tobytes() + classes.tobytes()
        if key != self._key:
            self._key = key
            self._names = tuple(
                CLASSES[class_] if class_ == PLAYER else f'{CLASSES[class_]}_{id_}'
                for id_, class_ in zip(ids.tolist(), classes.tolist(), strict=True))
            self._tags = tuple(_TAGS[class_] for class_ in classes.tolist())


def _finite(rows: Floats) -> Floats:
    """Replace infinity, which is not a valid position or speed, by NaN."""
    # Fast path: a finite sum proves that all are finite. An overflow only takes the slow path.
    return rows if math.isfinite(rows.sum()) else np.where(np.isfinite(rows), rows, np.nan)


def _place_boxes(box_rows: Floats, actors: _Actors, owners: Floats) -> None:
    """Place the boxes, which are relative to their owners, in the global frame."""
    # box_rows: (M, 13) output, the rows of :class:`Boxes`; owners: (M, 7) poses of the owners.
    boxes = _finite(rows_of(actors.boxes, 9))
    position, orientation = owners[:, :3], owners[:, 3:]
    center = global_from_unit(orientation) @ mirrored_vectors(boxes[:, 0:3])[:, :, None]
    # Boxes have the orientation of their owners, except those of custom vehicles.
    if boxes[:, 3:6].any():
        orientation = quaternion_product(orientation, to_rep103_rotator(boxes[:, 3:6]))
    box_rows[:, 0:3] = position + center[:, :, 0]
    box_rows[:, 3:7] = orientation
    box_rows[:, 7:10] = 2.0 * boxes[:, 6:9]
    box_rows[:, 10:13] = 1.0


def _measured(player: Message) -> Floats:
    acceleration = player.acceleration
    return np.concatenate((mirrored_vectors(np.array(
        (acceleration.x, acceleration.y, acceleration.z))), (
            player.collision_vehicles, player.collision_pedestrians, player.collision_other,
            player.intersection_otherlane, player.intersection_offroad)))


def _live_status(player: Message) -> PlayerStatus:
    controls, switches = np.full((3, 3), np.nan), np.zeros((3, 2), np.bool_)
    controls[0], switches[0] = control_of(player.autopilot_control)
    return PlayerStatus(np.full(12, np.nan), controls, switches)


def control_of(control: Message) -> tuple[tuple[float, float, float], tuple[bool, bool]]:
    """Return steer, throttle, brake, and the switches of a Control."""
    return (control.steer, control.throttle, control.brake), (control.hand_brake, control.reverse)
