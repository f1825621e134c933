# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A bag as a recording: its StateFrames under any node name, its roads and its map.

No unit or axis is converted: a StateFrame is in SI units and REP-103 axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
import math
from pathlib import Path
import struct
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from rosbags.serde import SerdeError

from state_sensor_ros.errors import DecodeError, StateError, TrajectoryFormatError
from state_sensor_ros.files.bags.bag_topics import full_name, typestore
from state_sensor_ros.files.bags.open_bag import MessagePlace, OpenBag, TopicKey
from state_sensor_ros.files.formats import ReadOptions
from state_sensor_ros.files.recording import FrameFile
from state_sensor_ros.files.storage.storage_file import BagLimits, DEFAULT_LIMITS
from state_sensor_ros.frame import Floats, Frame, MapLine, NO_ROADS
from state_sensor_ros.source import LOST
from state_sensor_ros.texts import counted
from state_sensor_ros.topics.state_frame import frame_of

_ROADS = '~/roads', 'state_sensor_ros/msg/RoadArray'
_MAP = '~/map', 'visualization_msgs/msg/MarkerArray'
_OPEN_DRIVE = '~/map/opendrive', 'std_msgs/msg/String'
_LIGHTS = 'traffic_lights', 'state_sensor_ros/msg/TrafficLightStateArray'
# The end of a payload with lights after the frame, and before it their size.
_WITH_LIGHTS, _SIZE = b'+lights\0', struct.Struct('<I')
_LINE_LIST, _ADD = 5, 0
STATE_FRAME = 'state_sensor_ros/msg/StateFrame'

# The encapsulation, 4 bytes, the second of which is the byte order; then header.stamp.
_STAMP = {0: struct.Struct('>4xiI'), 1: struct.Struct('<4xiI')}
# Exceptions of rosbags' deserializer for bytes that do not match the definition.
NOT_SUCH = (SerdeError, struct.error, ValueError, IndexError, AssertionError, OverflowError,
            MemoryError)


class Bag(OpenBag):
    """
    A bag with StateFrames; it is open until :meth:`close`.

    :param path: folder with metadata.yaml, or a .mcap or .db3 file.
    :param topic: topic of the StateFrames; ``''`` for the only one of that type.
    :param limits: sizes above which the bag is refused.
    :ivar topic: topic of the StateFrames.
    :ivar n_messages: number of StateFrames.
    :raises TrajectoryFormatError: if it cannot be read or has no such topic.
    """

    def __init__(self, path: Path, topic: str = '', limits: BagLimits = DEFAULT_LIMITS) -> None:
        super().__init__(path, limits)
        try:
            self._frames = self._chosen(topic)
        except BaseException:
            self.close()
            raise
        self.topic = self._frames[0]
        self._node = self.topic.rpartition('/')[0]
        self.n_messages = self.count(self._frames)

    def frames_with_lights(self) -> Iterator[tuple[bytes, bytes]]:
        """
        Yield each serialized StateFrame, and it with the traffic lights of its stamp.

        :raises TrajectoryFormatError: if the bag is damaged.
        """
        lights_key = f'{self._node}/{_LIGHTS[0]}', _LIGHTS[1]
        frame, lights = b'', b''
        for topic, _, data in self.messages({self._frames, lights_key}):
            if topic == self.topic:
                if frame:
                    yield frame, frame
                frame = data
            else:
                lights = data
            if frame and lights and stamp_of(frame) == stamp_of(lights):
                yield frame, _with_lights(frame, lights)
                frame = b''
        if frame:
            yield frame, frame

    def placed_frames(self) -> Iterator[tuple[MessagePlace, bytes]]:
        """
        Yield the serialized StateFrames in the order of log times, each with its place.

        :raises TrajectoryFormatError: if the bag is damaged.
        """
        return self.placed_messages(self._frames)

    def has(self, name: str, type_name: str) -> bool:
        """
        Return whether the bag has a topic of the node that published the StateFrames.

        :param name: name of the topic, without the node's, such as ``frame``.
        :param type_name: ``package/msg/Name``.
        """
        return (f'{self._node}/{name}', type_name) in self.topics

    def counts_of_node(self) -> dict[tuple[str, str], int]:
        """
        Return the number of messages of each topic of the node that published the StateFrames.

        :returns: numbers by name, without the node's, and type.
        """
        prefix = f'{self._node}/'
        return {(name.removeprefix(prefix), type_name): self.count((name, type_name))
                for name, type_name in self.topics if name.startswith(prefix)}

    def timed_messages_of_node(self, names: Iterable[str], at_ns: int | None = None,
                               ) -> Iterator[tuple[str, int, bytes]]:
        """
        Yield messages of the node that published the StateFrames, in the order of log times.

        :param names: names of topics, without the node's, such as ``frame``.
        :param at_ns: the only log time whose messages are read; None for all.
        :returns: the name, the log time, ns, and the serialized message of each.
        :raises TrajectoryFormatError: if the bag is damaged.
        """
        short_names = {f'{self._node}/{name}': name for name in names}
        selected = {key for key in self.topics if key[0] in short_names}
        for topic, log_ns, data in self.messages(selected, at_ns):
            yield short_names[topic], log_ns, data

    def messages_of(self, name: str, type_name: str) -> Iterator[bytes]:
        """
        Yield the messages of any topic in the order of log times, none if the bag lacks it.

        :param name: name of the topic; ``~`` stands for the node of the StateFrames.
        :param type_name: ``package/msg/Name``.
        :raises TrajectoryFormatError: if the bag is damaged.
        """
        key = full_name(name, self._node), type_name
        # The messages of a latched topic are at the start: the rest of the bag is not read.
        for _, _, data in islice(self.messages({key}), self.count(key)):
            yield data

    def _chosen(self, topic: str) -> TopicKey:
        """Return name and type of the topic of the StateFrames."""
        frames = sorted(key for key in self.topics if key[1] == STATE_FRAME)
        names = [name for name, _ in frames]
        if not frames:
            raise TrajectoryFormatError(self.name, 'no topic of the type StateFrame',
                                        f'a bag with {STATE_FRAME}, such as ~/frame')
        if not topic and len(frames) > 1:
            raise TrajectoryFormatError(self.name, f'the topics {", ".join(names)}',
                                        'one of them to be named by --topic')
        if topic and topic not in names:
            raise TrajectoryFormatError(self.name, f'no topic {topic} of the type StateFrame',
                                        f'one of {", ".join(names)}')
        chosen = (topic or names[0], STATE_FRAME)
        self.check_definition(chosen)
        return chosen


def _with_lights(frame: bytes, lights: bytes) -> bytes:
    return b''.join((frame, lights, _SIZE.pack(len(lights)), _WITH_LIGHTS))


class Roads(NamedTuple):
    """Names of roads by number, lines of the map, and its document, of all frames of a bag."""

    road_names: Mapping[int, str] = NO_ROADS
    map_lines: tuple[MapLine, ...] = ()
    open_drive: str = ''


def roads_of(bag: Bag) -> Roads:
    """Read the roads of a bag; a bag without their topics has none."""
    names: dict[int, str] = {}
    for array in _messages(bag, *_ROADS):
        names.update((road.road_id, road.name) for road in array.roads)
    lines: list[MapLine] = []
    for array in _messages(bag, *_MAP):
        # The last map is that of the last frames.
        try:
            lines = [line for marker in array.markers
                     if (marker.type, marker.action) == (_LINE_LIST, _ADD)
                     for line in _lines(marker.ns, marker.scale.y, np.array(
                         [(point.x, point.y, point.z) for point in marker.points], float))]
        except StateError as error:
            raise TrajectoryFormatError(f'{bag.name}: {_MAP[0]}: {error.where}', error.found,
                                        error.expected) from error
    documents = [message.data for message in _messages(bag, *_OPEN_DRIVE)]
    return Roads(MappingProxyType(names), tuple(lines), documents[-1] if documents else '')


# rosbags generates message classes at run time; they have no static type.
def _messages(bag: Bag, name: str, type_name: str) -> Iterator[Any]:
    for data in bag.messages_of(name, type_name):
        try:
            yield typestore().deserialize_cdr(data, type_name)
        except NOT_SUCH as error:
            raise TrajectoryFormatError(f'{bag.name}: {name}', str(error),
                                        f'a message {type_name}') from error


def _lines(kind: str, width: float, points_xyz: Floats) -> Iterator[MapLine]:
    """Yield the lines of a list that has the begin and the end of each segment."""
    if not len(points_xyz):
        return
    begins, ends = points_xyz[0:len(points_xyz) - 1:2], points_xyz[1::2]
    breaks = np.flatnonzero((ends[:-1] != begins[1:]).any(axis=1)) + 1
    for first, last in zip([0, *breaks.tolist()], [*breaks.tolist(), len(ends)], strict=True):
        yield MapLine(kind, np.concatenate((begins[first:last], ends[last - 1:last])), width)


class BagRecording(FrameFile):
    """
    The StateFrames of a bag; a frame without time has that of its stamp.

    :param bag: bag with StateFrames; :meth:`close` closes it.
    :ivar bag: the same bag.
    """

    def __init__(self, bag: Bag, simulator: str = '') -> None:
        super().__init__(bag.name, f'bag, topic {bag.topic}', simulator, bag.n_messages)
        self.bag, self.topic = bag, bag.topic
        self._decoder = StateFrameDecoder(*roads_of(bag))

    def read(self, mark: None) -> Iterator[Frame]:
        """Yield all frames in the order of their log times."""
        for index, (data, payload) in enumerate(self.payloads()):
            self.faults.place = f'message {index} of {self.topic}'
            try:
                frame = self.decoded(payload)
            except DecodeError as error:
                self.faults.add(LOST, error)
                continue
            if self.is_timed and math.isnan(frame.game_time):
                frame = replace(frame, game_time=stamp_s(data))
            yield frame

    def decoded(self, payload: bytes) -> Frame:
        """
        Decode one of :meth:`payloads`.

        :raises DecodeError: if it is no frame.
        """
        return self._decoder.decode(payload)

    def payloads(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield each serialized StateFrame, and what its frame is made of."""
        if self.bag.has(*_LIGHTS):
            return self.bag.frames_with_lights()
        return ((data, data) for _, data in self.bag.placed_frames())

    def close(self) -> None:
        """Close the bag."""
        self.bag.close()


def open_bag(path: str, options: ReadOptions) -> BagRecording:
    return BagRecording(Bag(Path(path), options.topic, options.limits))


def stamp_of(data: bytes) -> tuple[int, int] | None:
    """Return the stamp of a serialized StateFrame without decoding the rest."""
    # Returns s and ns; None if the message is too short or has an unknown byte order.
    if len(data) < 12 or data[1] not in _STAMP:
        return None
    seconds, nanoseconds = _STAMP[data[1]].unpack_from(data)
    return seconds, nanoseconds


def stamp_s(data: bytes) -> float:
    """
    Return the same in seconds, NaN for None.

    :param data: serialized message with its encapsulation.
    """
    seconds, nanoseconds = stamp_of(data) or (math.nan, 0)
    return float(seconds + nanoseconds * 1e-9)


class StateFrameDecoder:
    """
    Decodes serialized StateFrames.

    :param road_names: names of the roads of all frames by their numbers.
    :param map_lines: the map of all frames.
    :param open_drive: its document.
    """

    def __init__(self, road_names: Mapping[int, str] = NO_ROADS,
                 map_lines: tuple[MapLine, ...] = (), open_drive: str = '') -> None:
        self._store = typestore()
        self._roads = Roads(road_names, map_lines, open_drive)

    def decode(self, data: bytes) -> Frame:
        """
        Decode one message.

        :param data: serialized message with its encapsulation, alone or as of
            :meth:`Bag.frames_with_lights`.
        :raises DecodeError: if it is not a StateFrame.
        """
        n_bytes, lights = len(data), None
        try:
            if data.endswith(_WITH_LIGHTS):
                end = len(data) - len(_WITH_LIGHTS) - _SIZE.size
                begin = end - _SIZE.unpack_from(data, end)[0]
                lights = self._store.deserialize_cdr(data[begin:end], _LIGHTS[1])
                data = data[:begin]
            message = self._store.deserialize_cdr(data, STATE_FRAME)
            return frame_of(message, *self._roads, lights)
        except NOT_SUCH as error:
            raise DecodeError('~/frame', f'{counted(n_bytes, "byte")} but no StateFrame '
                              f'({error})', 'a message of that definition') from error
