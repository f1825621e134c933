# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A bag as a recording: its StateFrames under any node name, its roads and its map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from state_sensor_ros.errors import StateError, TrajectoryFormatError, TruncatedError
from state_sensor_ros.files.bags.bag_types import typestore
from state_sensor_ros.files.bags.open_bag import OpenBag, TopicKey
from state_sensor_ros.files.bags.state_frames import (
    NOT_SUCH,
    stamp_s,
    STATE_FRAME,
    StateFrameDecoder,
)
from state_sensor_ros.files.formats import ReadOptions
from state_sensor_ros.files.recording import RecordedFrame
from state_sensor_ros.files.storage.storage_file import BagLimits, DEFAULT_LIMITS
from state_sensor_ros.frame import Floats, MapLine, NO_ROADS
from state_sensor_ros.payloads import Packet, PayloadDecoder

_ROADS = 'roads', 'state_sensor_ros/msg/RoadArray'
_MAP = 'map', 'visualization_msgs/msg/MarkerArray'
_LINE_LIST, _ADD = 5, 0


class Bag:
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
        self._bag = OpenBag(path, limits)
        self.name = self._bag.name
        try:
            self._frames = self._chosen(topic)
        except BaseException:
            self.close()
            raise
        self.topic = self._frames[0]
        self._node = self.topic.rpartition('/')[0]
        self.n_messages = self._bag.count(self._frames)

    def messages(self) -> Iterator[tuple[int, bytes]]:
        """
        Yield log time, ns, and serialized StateFrame of each message, in the order of log times.

        :raises TrajectoryFormatError: if the bag is damaged.
        """
        for _, log_ns, data in self._bag.messages({self._frames}):
            yield log_ns, data

    def has(self, name: str, type_name: str) -> bool:
        """
        Return whether the bag has a topic of the node that published the StateFrames.

        :param name: name of the topic, without the node's, such as ``frame``.
        :param type_name: ``package/msg/Name``.
        """
        return (f'{self._node}/{name}', type_name) in self._bag.topics

    def counts_of_node(self) -> dict[tuple[str, str], int]:
        """
        Return the number of messages of each topic of the node that published the StateFrames.

        :returns: numbers by name, without the node's, and type.
        """
        prefix = f'{self._node}/'
        return {(name.removeprefix(prefix), type_name): self._bag.count((name, type_name))
                for name, type_name in self._bag.topics if name.startswith(prefix)}

    def messages_of_node(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """
        Yield messages of the node that published the StateFrames, in the order of log times.

        :param names: names of topics, without the node's, such as ``frame``.
        :returns: the name and the serialized message of each.
        :raises TrajectoryFormatError: if the bag is damaged.
        """
        short_names = {f'{self._node}/{name}': name for name in names}
        selected = {key for key in self._bag.topics if key[0] in short_names}
        for topic, _, data in self._bag.messages(selected):
            yield short_names[topic], data

    def messages_of(self, name: str, type_name: str) -> Iterator[bytes]:
        """
        Yield the messages of any topic in the order of log times.

        :param name: name of the topic.
        :param type_name: ``package/msg/Name``.
        :raises TrajectoryFormatError: if the bag is damaged.
        """
        key = name, type_name
        # The messages of a latched topic are at the start: the rest of the bag is not read.
        for _, _, data in islice(self._bag.messages({key}), self._bag.count(key)):
            yield data

    def latched(self, name: str, type_name: str) -> Iterator[bytes]:
        """
        Yield the messages of a topic of the node that published the StateFrames.

        :param name: name of a topic with few messages, as for :meth:`has`.
        :param type_name: ``package/msg/Name``.
        :raises TrajectoryFormatError: if the bag is damaged.
        """
        return self.messages_of(f'{self._node}/{name}', type_name)

    def close(self) -> None:
        """Close the bag; a second call has no effect."""
        self._bag.close()

    def _chosen(self, topic: str) -> TopicKey:
        """Return name and type of the topic of the StateFrames."""
        frames = sorted(key for key in self._bag.topics if key[1] == STATE_FRAME)
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
        self._bag.check_definition(chosen)
        return chosen


class Roads(NamedTuple):
    """Names of roads by number, and lines of the map, of all frames of a bag."""

    road_names: Mapping[int, str] = NO_ROADS
    map_lines: tuple[MapLine, ...] = ()


def roads_of(bag: Bag) -> Roads:
    """
    Read the roads of a bag; a bag without their topics has none.

    :param bag: open bag.
    :raises TrajectoryFormatError: if a message is damaged.
    """
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
            raise TrajectoryFormatError(f'{bag.name}: ~/{_MAP[0]}: {error.where}', error.found,
                                        error.expected) from error
    return Roads(MappingProxyType(names), tuple(lines))


# rosbags generates message classes at run time; they have no static type.
def _messages(bag: Bag, name: str, type_name: str) -> Iterator[Any]:
    if not bag.has(name, type_name):
        return
    for data in bag.latched(name, type_name):
        try:
            yield typestore().deserialize_cdr(data, type_name)
        except NOT_SUCH as error:
            raise TrajectoryFormatError(f'{bag.name}: ~/{name}', str(error),
                                        f'a message {type_name}') from error


def _lines(kind: str, width: float, points_xyz: Floats) -> Iterator[MapLine]:
    """Yield the lines of a list that has the begin and the end of each segment."""
    if not len(points_xyz):
        return
    begins, ends = points_xyz[0:len(points_xyz) - 1:2], points_xyz[1::2]
    breaks = np.flatnonzero((ends[:-1] != begins[1:]).any(axis=1)) + 1
    for first, last in zip([0, *breaks.tolist()], [*breaks.tolist(), len(ends)], strict=True):
        yield MapLine(kind, np.concatenate((begins[first:last], ends[last - 1:last])), width)


class BagRecording:
    """
    The StateFrames of a bag; their times are their stamps.

    :param bag: bag with StateFrames; :meth:`close` closes it.
    :ivar bag: the same bag.
    """

    unit = 'frame'
    simulator = ''

    def __init__(self, bag: Bag) -> None:
        self.name = bag.name
        self.topic = bag.topic
        self.format_name = f'bag, topic {bag.topic}'
        self.total: int | None = bag.n_messages
        self.cut: TruncatedError | None = None
        self.bag = bag
        self._roads = roads_of(bag)
        self.decoder = self.new_decoder()

    def new_decoder(self) -> PayloadDecoder:
        """Make a decoder of StateFrames."""
        return StateFrameDecoder(*self._roads)

    def frames(self) -> Iterator[RecordedFrame]:
        """Yield all frames in the order of their log times."""
        for index, (data, payload) in enumerate(self.payloads()):
            clock_s = stamp_s(data)
            yield RecordedFrame(Packet(payload, clock_s, 0, 0), clock_s, index,
                                f'message {index} of {self.topic}', index + 1)

    def payloads(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield each serialized StateFrame, and the payload that the decoder takes."""
        return ((data, data) for _, data in self.bag.messages())

    def messages_of_node(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """
        Yield the messages of other topics of the same node.

        :param names: names of topics, as for :meth:`Bag.messages_of_node`.
        :returns: the name and the serialized message of each.
        :raises TrajectoryFormatError: if the bag is damaged.
        """
        return self.bag.messages_of_node(names)

    def close(self) -> None:
        """Close the bag."""
        self.bag.close()


def open_bag(path: str, options: ReadOptions) -> BagRecording:
    """
    Open a bag.

    :raises TrajectoryFormatError: if it is damaged, or has no topic of frames.
    """
    return BagRecording(Bag(Path(path), options.topic, options.limits))
