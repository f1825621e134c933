# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Recordings of CARLA: a dataset, and a bag, whose messages are decoded back to frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
import json
import math
from pathlib import Path
import re
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from state_sensor_ros.payloads import Decoded, frames_of, Members, SingleFrameDecoder
from state_sensor_ros.simulators import (
    counted,
    DecodeError,
    Frame,
    FrameFile,
    LOST,
    ReadOptions,
    restated,
    TrajectoryFormatError,
)
from state_sensor_ros.simulators.bag_reading import (
    Bag,
    BagRecording,
    NOT_SUCH,
    stamp_s,
    StateFrameDecoder,
    typestore,
)
from state_sensor_ros.simulators.carla.carla_data import (
    AGENT_CLASSES,
    CarlaData,
    CLASS_PLAYER,
    CLASS_SPEED_LIMIT_SIGN,
    CLASS_TRAFFIC_LIGHT,
    Command,
    DataFormat,
    DatasetCommands,
    EncodedImage,
    EncodedPoints,
    NO_LIGHT,
    PLAYER_NAME,
    PlayerStatus,
    SensorData,
)
from state_sensor_ros.simulators.carla.dataset import find_dataset, read_payloads
from state_sensor_ros.simulators.carla.decoder import DatasetDecoder
from state_sensor_ros.simulators.carla.frame_payload import POINT_BYTES
from state_sensor_ros.simulators.carla.sensors import known_pose, mount_frame, Pose, Sensor
from state_sensor_ros.simulators.carla.topic_names import (
    CAMERA_INFO,
    CONTROL_TOPIC,
    ENCODINGS,
    EXPERT_CONTROL_TOPIC,
    IMAGE,
    info_topic,
    LIGHTS_TOPIC,
    LIMITS_TOPIC,
    POINT_CLOUD,
    sensor_of_topic,
    STATUS_TOPIC,
)
from state_sensor_ros.simulators.carla.topics import EPISODE_MEMBERS
from state_sensor_ros.simulators.frame_arrays import from_rep103_rotator
from state_sensor_ros.simulators.json_values import parse_payload, to_object
from state_sensor_ros.simulators.own_topics import FRAME_TOPIC, STATIC_TF_TOPIC

TOPICS: Final = {topic.name.removeprefix('~/'): topic for topic in (
    FRAME_TOPIC, STATUS_TOPIC, CONTROL_TOPIC, EXPERT_CONTROL_TOPIC, LIGHTS_TOPIC, LIMITS_TOPIC)}
FRAME, _STATUS, _CONTROL, _EXPERT, _LIGHTS, _LIMITS = TOPICS
_INFO: Final = '/camera_info'

_NAME: Final = re.compile(f'({"|".join(AGENT_CLASSES[1:])})_([0-9]{{1,10}})')
_FOV_DIGITS: Final = 9
# Name, offset, type (float32) and count of each field of a point.
_POINT_FIELDS: Final = [('x', 0, 7, 1), ('y', 4, 7, 1), ('z', 8, 7, 1)]
_MAX_ID: Final = 2 ** 32 - 1
# Frames whose messages may be interleaved: those of one are recorded within some milliseconds.
_MAX_WAITING: Final = 16


def sensors_of_topics(topics: Iterable[tuple[str, str]]) -> tuple[Sensor, ...]:
    return tuple(sensor for topic in sorted(topics)
                 if (sensor := sensor_of_topic(*topic)) is not None)


def with_recorded_poses(sensors: Iterable[Sensor],
                        messages: Iterable[bytes]) -> tuple[Sensor, ...]:
    """Return sensors with the poses that a bag has."""
    # messages: serialized, of /tf_static; the last transform of a frame counts.
    placed = {transform.child_frame_id: transform for data in messages
              for transform in _read(STATIC_TF_TOPIC.name, data).transforms}
    sensors_with_poses = []
    for sensor in sensors:
        end = f'/{mount_frame(sensor)}'
        mount = next((transform for name, transform in placed.items()
                      if name == f'{transform.header.frame_id}{end}'), None)
        sensors_with_poses.append(sensor if mount is None else replace(
            sensor, pose=_pose_of(mount.transform), parent=mount.header.frame_id))
    return tuple(sensors_with_poses)


def _pose_of(transform: Any) -> Pose | None:  # noqa: ANN401
    place, turn = transform.translation, transform.rotation
    # CARLA's rotator has the opposite pitch and yaw.
    roll, pitch, yaw = np.radians(from_rep103_rotator(
        np.array([(turn.x, turn.y, turn.z, turn.w)])))[0].tolist()
    return known_pose((place.x, place.y, place.z, roll, 0.0 - pitch, 0.0 - yaw))


def topics_with_sensors(topics: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the names of the topics that the frames of a bag are made of."""
    names = dict.fromkeys(TOPICS)
    for topic in sorted(topics):
        # The colored segmentation is computed from the tags.
        sensor = sensor_of_topic(*topic)
        if sensor is not None:
            names[topic[0]] = names[_info_name(sensor.name)] = None
    return tuple(names)


def _info_name(camera: str) -> str:
    return info_topic(camera).name.removeprefix('~/')


# Log time, ns, and serialized message by name.
_TimedParts: TypeAlias = dict[str, tuple[int, bytes]]


def _timed_parts(messages: Iterable[tuple[str, int, bytes]]) -> Iterator[_TimedParts]:
    # Returns the messages of each frame by name, in the order of time; a repeated ~/frame, and the
    # first and last of a bag, may be alone.
    waiting: dict[float, _TimedParts] = {}
    for name, log_ns, data in messages:
        stamp = stamp_s(data)
        if name in waiting.get(stamp, {}):
            # The stamp occurred before: the frame is repeated, or the simulator was restarted.
            yield from _with_frame(waiting)
            waiting.clear()
        waiting.setdefault(stamp, {})[name] = log_ns, data
        if len(waiting) > _MAX_WAITING:
            oldest = waiting.pop(next(iter(waiting)))
            yield from _with_frame({0.0: oldest})
    yield from _with_frame(waiting)


def _with_frame(waiting: Mapping[float, _TimedParts]) -> Iterator[_TimedParts]:
    return (parts for parts in waiting.values() if FRAME in parts)


class MessagesDecoder(SingleFrameDecoder):
    """
    Decode payloads with the messages of a frame by name, always completely.

    A ~/frame without a ~/player/status becomes a frame without a CarlaData.
    """

    def decode(self, payload: bytes | bytearray | memoryview, *, game_time: float = math.nan,
               time: int = 0, sample_count: int = 0) -> list[Decoded]:
        """Decode one frame. ``game_time``, ``time`` and ``sample_count`` are in its messages."""
        parts = msgspec.msgpack.decode(payload, type=dict[str, bytes])
        if _STATUS in parts:
            return [Decoded(frame_of_messages(parts), ())]
        frame = StateFrameDecoder().decode(parts[FRAME])
        # It has the number of the frame as far as 32 bits hold it.
        return [Decoded(replace(frame, identity=frame.sample_count or None), ())]


def frame_of_messages(parts: Mapping[str, bytes]) -> Frame:
    """Decode the frame of the messages that have its stamp."""
    # parts: serialized messages by the names of their topics; ``frame`` and ``player/status`` must
    # be among them.
    frame = StateFrameDecoder().decode(parts[FRAME])
    read = {name: _read(name, data) for name, data in parts.items()
            if name in TOPICS and name != FRAME}
    ids, classes = _identities(frame)
    lights = {light.id: light.state for light in _entries(read.get(_LIGHTS), 'traffic_lights')}
    limits = {sign.id: sign.speed_limit for sign in _entries(read.get(_LIMITS), 'speed_limits')}
    status = read[_STATUS]
    rows = list(zip(ids, classes, strict=True))
    data = CarlaData(
        status.frame_number, status.game_timestamp, status.platform_timestamp,
        np.array(ids, np.uint32), np.array(classes, np.uint8),
        lights=np.array([lights.get(id_, NO_LIGHT) if class_ == CLASS_TRAFFIC_LIGHT else NO_LIGHT
                         for id_, class_ in rows], np.uint8),
        speed_limits=np.array([limits.get(id_, math.nan) if class_ == CLASS_SPEED_LIMIT_SIGN
                               else math.nan for id_, class_ in rows]),
        player=_player_status(status, read),
        sensor_data=_sensor_data(parts))
    return replace(frame, has_exact_time=True, identity=data.identity, extension=data)


# rosbags makes message classes at run time: they have no static type.
def _read(name: str, data: bytes) -> Any:  # noqa: ANN401
    type_name = _type_of(name)
    try:
        return typestore().deserialize_cdr(data, type_name)
    except NOT_SUCH as error:
        raise DecodeError(name if name.startswith('/') else f'~/{name}',
                          f'{counted(len(data), "byte")} but no {type_name} ({error})',
                          'a message with the fields of its definition') from error


def _type_of(name: str) -> str:
    if name == STATIC_TF_TOPIC.name:
        return STATIC_TF_TOPIC.type_name
    if name in TOPICS:
        return TOPICS[name].type_name
    if name.endswith(_INFO):
        return CAMERA_INFO
    return POINT_CLOUD if sensor_of_topic(name, POINT_CLOUD) else IMAGE


def _sensor_data(parts: Mapping[str, bytes]) -> SensorData:
    images, points, errors = [], [], []
    infos = {name: _read(name, data) for name, data in parts.items() if name.endswith(_INFO)}
    for name, data in sorted(parts.items()):
        try:
            if (image := sensor_of_topic(name, IMAGE)) is not None:
                images.append(_image_of(name, image, _read(name, data),
                                        infos.get(_info_name(image.name))))
            elif (lidar := sensor_of_topic(name, POINT_CLOUD)) is not None:
                points.append(_points_of(name, lidar, _read(name, data)))
        except DecodeError as error:
            errors.append(error)
    return SensorData(tuple(images), tuple(points), tuple(errors))


def _image_of(name: str, sensor: Sensor, message: Any, info: Any) -> EncodedImage:  # noqa: ANN401
    encoding, n_bytes = ENCODINGS[sensor.kind]
    size = message.width, message.height
    found = f'{message.encoding}, {size[0]} x {size[1]} pixels in ' \
        + counted(len(message.data), 'byte')
    if (message.encoding, message.is_bigendian, len(message.data)) != (
            encoding, 0, size[0] * size[1] * n_bytes):
        raise DecodeError(f'~/{name}', found, f'{encoding}, little-endian, without gaps')
    return EncodedImage(sensor.name, sensor.kind, memoryview(message.data), DataFormat.MESSAGE,
                        size, math.nan if info is None else _fov_deg(info))


def _fov_deg(info: Any) -> float:  # noqa: ANN401
    focus = float(info.k[0])
    if not focus > 0.0:
        return math.nan
    # Rounded so that an ordinary angle is recovered exactly.
    return round(math.degrees(2.0 * math.atan(info.width / (2.0 * focus))), _FOV_DIGITS)


def _points_of(name: str, sensor: Sensor, message: Any) -> EncodedPoints:  # noqa: ANN401
    fields = [(field.name, field.offset, field.datatype, field.count) for field in message.fields]
    n_points = message.width * message.height
    if (fields, message.is_bigendian, message.point_step, len(message.data)) != (
            _POINT_FIELDS, False, POINT_BYTES, n_points * POINT_BYTES):
        raise DecodeError(f'~/{name}', f'{counted(n_points, "point")} in '
                          f'{counted(len(message.data), "byte")}, with the '
                          f'fields {", ".join(field[0] for field in fields)}',
                          'x, y, z as float32, little-endian, without gaps')
    return EncodedPoints(sensor.name, memoryview(message.data), DataFormat.MESSAGE)


def _identities(frame: Frame) -> tuple[list[int], list[int]]:
    """Return ids and classes of the actors, which are parts of their names."""
    ids, classes = [], []
    for name in frame.names:
        match = _NAME.fullmatch(name)
        if name != PLAYER_NAME and (match is None or int(match[2]) > _MAX_ID):
            raise DecodeError('~/frame actors', repr(name), 'names as those of CARLA')
        ids.append(0 if match is None else int(match[2]))
        classes.append(CLASS_PLAYER if match is None else AGENT_CLASSES.index(match[1]))
    return ids, classes


def _entries(array: Any, name: str) -> list[Any]:  # noqa: ANN401
    return [] if array is None else list(getattr(array, name))


def _player_status(status: Any, read: Mapping[str, Any]) -> PlayerStatus:  # noqa: ANN401
    acceleration = status.acceleration
    return PlayerStatus(
        np.array((acceleration.x, acceleration.y, acceleration.z)), status.collision_vehicles,
        status.collision_pedestrians, status.collision_other, status.intersection_otherlane,
        status.intersection_offroad, _command_of(status.autopilot_control),
        _dataset(status, read) if status.is_dataset else None)


def _command_of(control: Any) -> Command:  # noqa: ANN401
    if control is None:
        return Command()
    return Command(control.raw_steer, control.throttle, control.brake, control.hand_brake,
                   control.reverse)


def _dataset(status: Any, read: Mapping[str, Any]) -> DatasetCommands:  # noqa: ANN401
    where = '~/player/status extra_members'
    members = dict(_members_of(status.extra_members or '{}', where))
    episode = members.pop(EPISODE_MEMBERS, '{}')
    return DatasetCommands(
        _command_of(read.get(_EXPERT)), _command_of(read.get(_CONTROL)), status.has_switches,
        status.directions, status.stop_pedestrian, status.stop_vehicle,
        status.stop_traffic_lights, tuple(members.items()),
        _members_of(episode, f'{where} {EPISODE_MEMBERS}'))


def _members_of(text: str, where: str) -> tuple[tuple[str, str], ...]:
    with restated(DecodeError, where):
        members = to_object(parse_payload(text.encode()), 'JSON')
        return tuple((name, json.dumps(value, separators=(',', ':')))
                     for name, value in members.items())


def _payload_of(timed: _TimedParts) -> bytes:
    return msgspec.msgpack.encode({name: data for name, (_, data) in timed.items()})


class CarlaBagRecording(BagRecording):
    """The StateFrames of a bag, each with the messages of CARLA's topics that have its stamp."""

    def __init__(self, bag: Bag) -> None:
        super().__init__(bag, 'carla')
        self._messages = MessagesDecoder()
        counts = bag.counts_of_node()
        self._topics = topics_with_sensors(counts)
        self.sensors = sensors_of_topics(counts)
        if self.sensors:
            with restated(TrajectoryFormatError, bag.name):
                self.sensors = with_recorded_poses(self.sensors, bag.messages_of(
                    STATIC_TF_TOPIC.name, STATIC_TF_TOPIC.type_name))
        self.sensor_counts: Mapping[tuple[str, str], int] = {
            (sensor.name, sensor.kind): counts[key] for key in sorted(counts)
            if (sensor := sensor_of_topic(*key)) is not None}
        self.ignored: Sequence[str] = ()

    def decoded(self, payload: bytes) -> Frame:
        """Decode the messages of a frame."""
        [decoded] = self._messages.decode(payload)
        return decoded.frame

    def payloads(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield each serialized StateFrame, and it with the other messages of its frame."""
        for timed in _timed_parts(self.bag.timed_messages_of_node(self._topics)):
            yield timed[FRAME][1], _payload_of(timed)

    def placed_sensors(self) -> tuple[Sensor, ...]:
        """Return the sensors with the poses that are known in the frame of the player."""
        return tuple(replace(sensor, pose=None)
                     if sensor.parent.rpartition('/')[2] != PLAYER_NAME
                     or not any(sensor.pose or ()) else sensor for sensor in self.sensors)


class DatasetRecording(FrameFile):
    """The episodes of a dataset in order; at the start of each, game time restarts."""

    def __init__(self, path: Path) -> None:
        self._dataset, self._next = find_dataset(path), 0
        dataset = self._dataset
        super().__init__(str(path), 'dataset of CARLA', 'carla',
                         sum(len(episode.measurements) for episode in dataset.episodes))
        self.sensors = dataset.sensors()
        self.sensor_counts: Mapping[tuple[str, str], int] = dict(sorted(dataset.counts.items()))
        self.ignored: Sequence[str] = dataset.ignored()

    def mark(self) -> int:
        """Return the number of the next measurement."""
        return self._next

    def read(self, mark: int | None) -> Iterator[Frame]:
        """Yield a frame for each measurement."""
        decoder, members, self._next = DatasetDecoder(), Members(), mark or 0
        for payload, place in read_payloads(self._dataset, self._next):
            self._next += 1
            self.faults.place, decoder.details = place, self.details
            try:
                decoded = decoder.decode(payload)
            except DecodeError as error:
                self.faults.add(LOST, error)
                continue
            members.name(decoder.unknown_members, self.faults)
            yield from frames_of(decoded, self.faults)


def open_dataset(path: str, options: ReadOptions) -> DatasetRecording:
    return DatasetRecording(Path(path))
