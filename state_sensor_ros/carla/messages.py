# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Serialised messages of one frame of CARLA, as bags carry them, back to the frame.

May know: the fields of the messages in msg/, rosbags' deserialiser. Must not know: bags, files,
the dataset's JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
import json
import math
import re
from typing import Any, Final

import numpy as np

from state_sensor_ros.bag_types import typestore
from state_sensor_ros.carla.extension import (
    AGENT_CLASSES,
    CarlaExtension,
    CLASS_PLAYER,
    CLASS_SPEED_LIMIT_SIGN,
    CLASS_TRAFFIC_LIGHT,
    Command,
    DatasetCommands,
    NO_LIGHT,
    PLAYER_NAME,
    PlayerStatus,
)
from state_sensor_ros.carla.topics import (
    CONTROL_TOPIC,
    EXPERT_CONTROL_TOPIC,
    LIGHTS_TOPIC,
    LIMITS_TOPIC,
    STATUS_TOPIC,
)
from state_sensor_ros.encode.topics import FRAME_TOPIC
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Frame
from state_sensor_ros.state_frames import NOT_SUCH, stamp_s, StateFrameDecoder

TOPICS: Final = {topic.name.removeprefix('~/'): topic for topic in (
    FRAME_TOPIC, STATUS_TOPIC, CONTROL_TOPIC, EXPERT_CONTROL_TOPIC, LIGHTS_TOPIC, LIMITS_TOPIC)}
_FRAME, _STATUS, _CONTROL, _EXPERT, _LIGHTS, _LIMITS = TOPICS

_NAME: Final = re.compile(f'({"|".join(AGENT_CLASSES[1:])})_([0-9]{{1,10}})')
_MAX_ID: Final = 2 ** 32 - 1
# Messages of one frame are recorded within some milliseconds of each other.
_MAX_WAITING: Final = 16


def frames_of_messages(messages: Iterable[tuple[str, bytes]]) -> Iterator[Frame]:
    """
    Put together what belongs together: messages with the stamp of the same frame.

    A ~/frame without a ~/player/status is left out: it repeats one, or was recorded first or last.

    :param messages: names of TOPICS and serialised messages, roughly in the order of time.
    :returns: frames with a CarlaExtension, in the order of time.
    :raises DecodeError: where a message is not what its name says.
    """
    waiting: dict[float, dict[str, bytes]] = {}
    for name, data in messages:
        stamp = stamp_s(data)
        if name in waiting.get(stamp, {}):
            # The same stamp again: the simulator was restarted.
            yield from map(frame_of_messages, _whole(waiting))
            waiting.clear()
        waiting.setdefault(stamp, {})[name] = data
        if len(waiting) > _MAX_WAITING:
            oldest = waiting.pop(next(iter(waiting)))
            yield from map(frame_of_messages, _whole({0.0: oldest}))
    yield from map(frame_of_messages, _whole(waiting))


def _whole(waiting: Mapping[float, dict[str, bytes]]) -> Iterator[dict[str, bytes]]:
    """Leave out what is not complete."""
    return (parts for parts in waiting.values() if _FRAME in parts and _STATUS in parts)


def frame_of_messages(parts: Mapping[str, bytes]) -> Frame:
    """
    Make a frame of the messages that have its stamp.

    :param parts: serialised messages by their names in TOPICS; ``frame`` and ``player/status``
        must be among them.
    :raises DecodeError: where one is not what its name says, or the frame is not CARLA's.
    """
    frame = StateFrameDecoder().decode(parts[_FRAME])[0].frame
    read = {name: _read(name, data) for name, data in parts.items() if name != _FRAME}
    ids, classes = _identities(frame)
    lights = {light.id: light.state for light in _entries(read.get(_LIGHTS), 'traffic_lights')}
    limits = {sign.id: sign.speed_limit for sign in _entries(read.get(_LIMITS), 'speed_limits')}
    status = read[_STATUS]
    rows = list(zip(ids, classes, strict=True))
    return replace(frame, extension=CarlaExtension(
        status.frame_number, status.game_timestamp, status.platform_timestamp,
        np.array(ids, np.uint32), np.array(classes, np.uint8),
        lights=np.array([lights.get(id_, NO_LIGHT) if class_ == CLASS_TRAFFIC_LIGHT else NO_LIGHT
                         for id_, class_ in rows], np.uint8),
        speed_limits=np.array([limits.get(id_, math.nan) if class_ == CLASS_SPEED_LIMIT_SIGN
                               else math.nan for id_, class_ in rows]),
        player=_player(status, read)))


# rosbags makes message classes at run time; they have no static type.
def _read(name: str, data: bytes) -> Any:  # noqa: ANN401
    type_name = TOPICS[name].type_name
    try:
        return typestore().deserialize_cdr(data, type_name)
    except NOT_SUCH as error:
        raise DecodeError(f'~/{name}', f'{len(data)} bytes that are no {type_name} ({error})',
                          'a message as its definition says') from error


def _identities(frame: Frame) -> tuple[list[int], list[int]]:
    """Return ids and classes of the actors, which their names tell."""
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


def _player(status: Any, read: Mapping[str, Any]) -> PlayerStatus:  # noqa: ANN401
    acceleration = status.acceleration
    return PlayerStatus(
        np.array((acceleration.x, acceleration.y, acceleration.z)), status.collision_vehicles,
        status.collision_pedestrians, status.collision_other, status.intersection_otherlane,
        status.intersection_offroad, _command(status.autopilot_control),
        _dataset(status, read) if status.is_dataset else None)


def _command(control: Any) -> Command:  # noqa: ANN401
    if control is None:
        return Command()
    return Command(control.raw_steer, control.throttle, control.brake, control.hand_brake,
                   control.reverse)


def _dataset(status: Any, read: Mapping[str, Any]) -> DatasetCommands:  # noqa: ANN401
    try:
        extras = json.loads(status.extra_members or '{}')
    except ValueError as error:
        raise DecodeError('~/player/status extra_members', str(error), 'a JSON object') from error
    return DatasetCommands(
        _command(read.get(_EXPERT)), _command(read.get(_CONTROL)), status.has_switches,
        status.directions, status.stop_pedestrian, status.stop_vehicle,
        status.stop_traffic_lights,
        tuple((name, json.dumps(value)) for name, value in extras.items()))
