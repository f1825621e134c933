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

The protobuf messages of CARLA 0.8 are built at run time from a table of their fields. Units:
doc/protocol/carla.md#measurements; axes: doc/protocol/carla.md#rotators.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
import math
from typing import Any, Final, TYPE_CHECKING, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
import numpy as np
import numpy.typing as npt

from state_sensor_ros import frame as parts
from state_sensor_ros.emulator.bicycle import FULL_LOCK_DEG
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Bools, Floats, Frame, Rows
from state_sensor_ros.rep103 import mirrored_vectors, to_rep103_inputs, to_rep103_rotator
from state_sensor_ros.rotations import global_from_unit, quaternion_product
from state_sensor_ros.simulators.json_text import rows_of
from state_sensor_ros.source import DROPPED, DUPLICATE, Faults

if TYPE_CHECKING:
    from state_sensor_ros.simulators.carla.dataset import CameraImage

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    'float': _Field.TYPE_FLOAT, 'bool': _Field.TYPE_BOOL, 'string': _Field.TYPE_STRING,
    'uint32': _Field.TYPE_UINT32, 'uint64': _Field.TYPE_UINT64, 'fixed32': _Field.TYPE_FIXED32,
}
# Fields of each message of 0.8.4: `number name type`, then `*` if repeated, `|` in the oneof
# `agent`. `box_extent`, of 0.8.0 and 0.8.1, is a box without a transform.
_MOVER: Final = ('1 transform Transform, 2 box_extent Vector3D, 3 forward_speed float, '
                 '4 bounding_box BoundingBox')
_MESSAGES: Final = {
    'Vector3D': '1 x float, 2 y float, 3 z float',
    'Rotation3D': '1 pitch float, 2 yaw float, 3 roll float',
    'Transform': '1 location Vector3D, 2 orientation Vector3D, 3 rotation Rotation3D',
    'BoundingBox': '1 transform Transform, 2 extent Vector3D',
    'Control': '1 steer float, 2 throttle float, 3 brake float, 4 hand_brake bool, 5 reverse bool',
    'Vehicle': _MOVER,
    'Pedestrian': _MOVER,
    'TrafficLight': '1 transform Transform, 2 state TrafficLightState',
    'SpeedLimitSign': '1 transform Transform, 2 speed_limit float',
    'Agent': '1 id fixed32, 2 vehicle Vehicle |, 3 pedestrian Pedestrian |, '
             '4 traffic_light TrafficLight |, 5 speed_limit_sign SpeedLimitSign |',
    'PlayerMeasurements':
        '1 transform Transform, 3 acceleration Vector3D, 4 forward_speed float, '
        '5 collision_vehicles float, 6 collision_pedestrians float, 7 collision_other float, '
        '8 intersection_otherlane float, 9 intersection_offroad float, '
        '10 autopilot_control Control, 11 box_extent Vector3D, 12 bounding_box BoundingBox',
    'Measurements':
        '1 platform_timestamp uint32, 2 game_timestamp uint32, '
        '3 player_measurements PlayerMeasurements, 4 non_player_agents Agent *, '
        '5 frame_number uint64',
    'Sensor': '1 id fixed32, 2 type uint32, 3 name string',
    'RequestNewEpisode': '1 ini_file string',
    'SceneDescription': '1 player_start_spots Transform *, 2 sensors Sensor *, 3 map_name string',
    'EpisodeStart': '1 player_start_spot_index uint32',
    'EpisodeReady': '1 ready bool',
}
_LIGHT: Final = 'TrafficLightState'
LIGHT_STATES: Final = ('green', 'yellow', 'red')

# Protobuf makes message classes at run time: they have no static type.
Message: TypeAlias = Any
_Actor: TypeAlias = tuple[int, int, Message]  # id, class, with a transform


def message_classes(package: str, float_type: _Field.Type.ValueType) -> dict[str, Any]:
    """Return the classes of all messages, by name, of a package with floats of a type."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f'state_sensor_ros/{package}.proto', package=package, syntax='proto3')
    enum = file.enum_type.add(name=_LIGHT)
    for number, state in enumerate(LIGHT_STATES):
        enum.value.add(name=state.upper(), number=number)
    for message, fields in _MESSAGES.items():
        proto = file.message_type.add(name=message)
        if '|' in fields:
            proto.oneof_decl.add(name='agent')
        for index, name, type_name, *marks in map(str.split, fields.split(', ')):
            field = proto.field.add(name=name, number=int(index))
            field.label = _Field.LABEL_REPEATED if '*' in marks else _Field.LABEL_OPTIONAL
            if type_name in _SCALARS:
                field.type = float_type if type_name == 'float' else _SCALARS[type_name]
                continue
            field.type = _Field.TYPE_ENUM if type_name == _LIGHT else _Field.TYPE_MESSAGE
            field.type_name = f'.{package}.{type_name}'
            if '|' in marks:
                field.oneof_index = 0
    # A pool of its own: the process may also load CARLA's generated messages of the same names.
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    # Before protobuf 4.22 (Ubuntu 24.04 has 4.21) a factory object makes the class.
    factory: Any = message_factory
    make = getattr(factory, 'GetMessageClass', None) or factory.MessageFactory(pool).GetPrototype
    return {name: make(pool.FindMessageTypeByName(f'{package}.{name}')) for name in _MESSAGES}


# The floats of a server are float32, those of a dataset, which are decimal text, float64.
SERVER: Final = message_classes('carla_server', _Field.TYPE_FLOAT)
FILE: Final = message_classes('carla_dataset', _Field.TYPE_DOUBLE)

GENERATION: Final = 'carla'
PLAYER, VEHICLE, PEDESTRIAN, LIGHT, SIGN = range(5)
CLASSES: Final = ('player', 'vehicle', 'pedestrian', 'traffic_light', 'speed_limit_sign')
PLAYER_TAGS: Final = ('ego', 'vehicle')
_TAGS: Final = (PLAYER_TAGS, *((name,) for name in CLASSES[1:]))
_KINDS: Final = np.array([parts.KIND_VEHICLE] * 2 + [parts.KIND_OBJECT] * 3, np.uint8)
NO_LIGHT: Final = 255
_KPH_PER_MPS: Final = 3.6
# Of 0.8.0 and 0.8.1: half sizes above this are cm, and limits of these values km/h.
_GREATEST_HALF_SIZE_M: Final = 15.0
_LIMITS_KPH: Final = (30.0, 40.0, 50.0, 60.0, 90.0, 100.0, 120.0, 130.0)


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
        """Return the color of each light, the km/h of each sign ('?': unknown), else ''."""
        return tuple(
            LIGHT_STATES[light] if light != NO_LIGHT else '' if class_ != SIGN
            else f'{limit * _KPH_PER_MPS:.0f}' if math.isfinite(limit) else '?'
            for class_, light, limit in zip(self.classes.tolist(), self.lights.tolist(),
                                            self.speed_limits.tolist(), strict=True))


def data_of(frame: Frame) -> CarlaData | None:
    """Return CARLA's own data of a frame, None of one without."""
    data = frame.extension
    return data if isinstance(data, CarlaData) else None


def control_inputs(controls: Floats) -> Floats:
    """Convert steer, throttle, brake, (K, 3), to the inputs of a frame, (K, 4)."""
    steer, throttle, brake = controls.T
    # Adding 0.0 turns -0.0, a steer of 0 to the left, into 0.0.
    return to_rep103_inputs(np.stack(
        (throttle, brake, steer, FULL_LOCK_DEG * steer), axis=1)) + 0.0


def _numbers_of(id_: int, class_: int, body: Message) -> tuple[float, ...]:
    """Return id, class, light, limit, xyz m, roll pitch yaw deg, speed m/s; NaN for none."""
    return (id_, class_, body.state if class_ == LIGHT else NO_LIGHT,
            body.speed_limit if class_ == SIGN else math.nan, *_pose(body.transform),
            body.forward_speed if class_ <= PEDESTRIAN else math.nan)


def _boxes_of(actors: list[_Actor]) -> Iterator[tuple[str, int, tuple[float, ...]]]:
    """Yield name and owner of each box, and from it xyz m, roll pitch yaw deg, half sizes m."""
    for row, (_, class_, body) in enumerate(actors):
        if class_ > PEDESTRIAN:
            continue
        if body.HasField('bounding_box'):
            box = body.bounding_box
            yield 'bounding_box', row, (*_pose(box.transform), *_xyz(box.extent))
        elif body.HasField('box_extent'):
            halves = _xyz(body.box_extent)
            unit = 100.0 if class_ != PLAYER and max(halves) > _GREATEST_HALF_SIZE_M else 1.0
            yield 'box_extent', row, (*(0.0,) * 6, *(half / unit for half in halves))


def _xyz(vector: Message) -> tuple[float, float, float]:
    return vector.x, vector.y, vector.z


def _pose(transform: Message) -> tuple[float, ...]:
    at, turned = transform.location, transform.rotation
    return at.x, at.y, at.z, turned.roll, turned.pitch, turned.yaw


class FrameMaker:
    """
    Makes the frames of one stream of measurements; unchanged actors keep their names.

    :param faults: gets the actors that are dropped.
    :ivar details: whether boxes and inputs are used.
    """

    def __init__(self, faults: Faults) -> None:
        self.details = True
        self._faults = faults
        self._key = b''
        self._names: tuple[str, ...] = ()
        self._tags: tuple[tuple[str, ...], ...] = ()

    # Results that cannot be computed are NaN, unknown, without a warning.
    @np.errstate(all='ignore')
    def frame(self, message: Message, *, status: PlayerStatus | None = None,
              images: tuple[CameraImage, ...] = ()) -> Frame:
        """
        Return the frame of a measurement.

        :param message: of a server or of a file; ``status`` and ``images`` are those of the file.
        :raises DecodeError: if it has no actors.
        """
        player = message.player_measurements
        if not message.HasField('player_measurements'):
            if not message.non_player_agents:
                raise DecodeError('playerMeasurements', 'nothing',
                                  'an object, or nonPlayerAgents')
            player = None
        elif not self._has_transform(player, 'playerMeasurements'):
            player = None
        actors = self._collected(message, player)
        owned, n_actors = [*_boxes_of(actors)] if self.details else [], len(actors)
        numbers = rows_of([number for actor in actors for number in _numbers_of(*actor)], 11)
        ids, classes = numbers[:, 0].astype(np.uint32), numbers[:, 1].astype(np.uint8)
        lights, limits = numbers[:, 2].astype(np.uint8), numbers[:, 3]
        # The older box of the player is that of 0.8.0, with limits in km/h, and 0.8.1.
        if player is not None and player.HasField('box_extent'):
            limits = np.where(np.isin(limits, _LIMITS_KPH), limits / _KPH_PER_MPS, limits)
        self._name(ids, classes)
        # One array: the poses of actors and boxes are checked together (Frame.bodies).
        poses, boxes = _finite(numbers[:, 4:]), _finite(rows_of(
            [number for _, row, box in owned for number in (row, *box)], 10))
        bodies = np.full((n_actors + len(boxes), 13), np.nan)
        kinematics, owners = bodies[:n_actors], boxes[:, 0].astype(np.int64)
        kinematics[:, 0:3] = mirrored_vectors(poses[:, 0:3])
        kinematics[:, 3:7] = to_rep103_rotator(poses[:, 3:6])
        if len(boxes):
            _place_boxes(bodies[n_actors:], boxes[:, 1:], kinematics[owners, :7])
        inputs = np.full((n_actors, 4), np.nan)
        if player is None:
            status, images = None, ()
        else:
            status = _with_measured(status or _NO_STATUS, player)
            if status.is_dataset:
                inputs[0] = control_inputs(status.controls[2:])[0]
        shown, blank = np.flatnonzero(classes == LIGHT), ('',) * n_actors
        return Frame(
            GENERATION, message.game_timestamp / 1000.0, 0,
            message.frame_number % 2 ** 32, self._names, _KINDS[classes], self._tags, kinematics,
            parts.NO_LANES, boxes=parts.Boxes(
                owners, tuple([name for name, _, _ in owned]), bodies[n_actors:])
            if self.details else None,
            wheels=parts.NO_WHEELS if self.details else None,
            inputs=inputs if self.details else None,
            colors=blank, replay_classes=blank, forward_speed=poses[:, 6].copy(),
            # The player has none.
            ids=np.where(classes == PLAYER, -1, ids.astype(np.int64)),
            traffic_lights=parts.TrafficLights(
                ids[shown].astype(np.int64), tuple(self._names[row] for row in shown.tolist()),
                lights[shown], kinematics[shown, :7]),
            extension=CarlaData(
                message.frame_number, message.game_timestamp, message.platform_timestamp, ids,
                classes, lights, limits, status, images),
            # CARLA counts whole milliseconds; 0.8.0 and 0.8.1 send no number.
            has_exact_time=True, identity=message.frame_number or message.platform_timestamp
            or None)

    def _collected(self, message: Message, player: Message | None) -> list[_Actor]:
        actors = [] if player is None else [(0, PLAYER, player)]
        seen: set[tuple[int, str]] = set()
        for i, agent in enumerate(message.non_player_agents):
            where, name = f'nonPlayerAgents[{i}]', agent.WhichOneof('agent')
            if name is None:
                self._drop(where, 'nothing', ', '.join(CLASSES[1:]))
                continue
            class_, body = CLASSES.index(name), getattr(agent, name)
            if (agent.id, name) in seen:
                self._faults.add(DUPLICATE, DecodeError(
                    f'{where}.id', f'another {name} {agent.id}', 'each id once'))
            elif class_ == LIGHT and not 0 <= body.state < len(LIGHT_STATES):
                self._drop(f'{where}.trafficLight.state', str(body.state), 'GREEN, YELLOW, RED')
            elif self._has_transform(body, f'{where}.{name}'):
                seen.add((agent.id, name))
                actors.append((agent.id, class_, body))
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


def _place_boxes(box_rows: Floats, boxes: Floats, owners: Floats) -> None:
    """Place the boxes, which are relative to their owners, in the global frame."""
    # box_rows: (M, 13) output, the rows of :class:`Boxes`; boxes: (M, 9) poses and half sizes;
    # owners: (M, 7) poses of the owners.
    position, orientation = owners[:, :3], owners[:, 3:]
    center = global_from_unit(orientation) @ mirrored_vectors(boxes[:, 0:3])[:, :, None]
    # Boxes have the orientation of their owners, except those of custom vehicles.
    if boxes[:, 3:6].any():
        orientation = quaternion_product(orientation, to_rep103_rotator(boxes[:, 3:6]))
    box_rows[:, 0:3] = position + center[:, :, 0]
    box_rows[:, 3:7] = orientation
    box_rows[:, 7:10] = 2.0 * boxes[:, 6:9]
    box_rows[:, 10:13] = 1.0


_NO_STATUS: Final = PlayerStatus(np.full(12, np.nan), np.full((3, 3), np.nan),
                                 np.zeros((3, 2), np.bool_))


def _with_measured(status: PlayerStatus, player: Message) -> PlayerStatus:
    """Return a status with what the player measures, and the autopilot's proposal."""
    numbers, controls = status.numbers.copy(), status.controls.copy()
    switches, proposal = status.switches.copy(), player.autopilot_control
    numbers[:3] = mirrored_vectors(np.array(_xyz(player.acceleration)))
    numbers[3:8] = (player.collision_vehicles, player.collision_pedestrians,
                    player.collision_other, player.intersection_otherlane,
                    player.intersection_offroad)
    controls[0] = proposal.steer, proposal.throttle, proposal.brake
    switches[0] = proposal.hand_brake, proposal.reverse
    return replace(status, numbers=numbers, controls=controls, switches=switches)
