# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A bag as a recording: its StateFrames under any node name, its roads, map and traffic lights.

No unit or axis is converted: a StateFrame is in SI units and REP-103 axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
import math
from pathlib import Path
import struct
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from state_sensor_ros import errors, source
from state_sensor_ros.cdr.columns import ColumnReader
from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.files import ReadOptions, recording
from state_sensor_ros.files.bag import Bag, BEGIN, Position
from state_sensor_ros.files.input import closed_on_failure, decoding
from state_sensor_ros.frame import Floats, Frame, MapLine
from state_sensor_ros.topics.state_frame import FRAME_TOPIC, LIGHTS_TYPE, StateFrameReader

STATE_FRAME = FRAME_TOPIC.type_name
_ROADS = '~/roads', 'state_sensor_ros/msg/RoadArray'
_MAP = '~/map', 'visualization_msgs/msg/MarkerArray'
_OPEN_DRIVE = '~/map/opendrive', 'std_msgs/msg/String'
_LIGHTS = 'traffic_lights', LIGHTS_TYPE
_LINE_LIST, _ADD = 5, 0

# The encapsulation, 4 bytes, the second of which is the byte order; then header.stamp.
_STAMP = {0: struct.Struct('>4xiI'), 1: struct.Struct('<4xiI')}


class Place(NamedTuple):
    """Place of a frame in a bag: from where on it is read, and which of the frames it is."""

    begin: Position  # of the first of its messages
    log_ns: int  # log time of the frame, ns
    number: int  # among the frames of that log time


def full_name(topic_name: str, node_name: str) -> str:
    """
    Resolve the name of a topic, absolute or with ``~`` for that of the node.

    >>> full_name('~/frame', '/front/state_sensor'), full_name('/tf', '/front/state_sensor')
    ('/front/state_sensor/frame', '/tf')
    """
    return node_name + topic_name[1:] if topic_name.startswith('~') else topic_name


def stamp_of(data: bytes) -> tuple[int, int] | None:
    """Return the stamp of a serialized message that begins with one, without decoding the rest."""
    # Returns s and ns; None if the message is too short or has an unknown byte order.
    if len(data) < 12 or data[1] not in _STAMP:
        return None
    seconds, nanoseconds = _STAMP[data[1]].unpack_from(data)
    return seconds, nanoseconds


class BagRecording(recording.FrameFile):
    """
    The StateFrames of a bag; a frame without time has that of its stamp.

    :param bag: any bag; :meth:`close` closes it.
    :param topic: topic of the StateFrames; ``''`` for the only one of that type.
    :raises TrajectoryFormatError: if the bag has no such topic.
    """

    def __init__(self, bag: Bag, topic: str = '') -> None:
        self.bag = bag
        self._key = _chosen(bag, topic)
        self.topic = self._key[0]
        self.node = self.topic.rpartition('/')[0]
        super().__init__(bag.name, f'bag, topic {self.topic}', '', bag.count(self._key))
        self._reader = StateFrameReader(*self._roads())
        # In the first file of a bag that was split while it was recorded.
        self._missing = [name for name, type_name in (_ROADS, _MAP, _OPEN_DRIVE) if (
            key := (full_name(name, self.node), type_name)) in bag.topics and not bag.count(key)]
        self._last: Place | None = None

    def mark(self) -> Place | None:
        """Return the place of the last frame."""
        return self._last

    def read(self, mark: Place | None) -> Iterator[Frame]:
        """Yield the frames in the order of their log times; after the one at a mark."""
        self._last, is_after = mark, mark is None
        if self._missing and is_after:
            self.faults.add(source.MISSING, errors.DecodeError(
                ', '.join(self._missing), 'topics without a message',
                'the folder of the bag: those of a bag that was split are in its first file'))
        for index, (place, data, lights) in enumerate(
                self._with_lights(mark.begin if mark else BEGIN)):
            if not is_after:
                is_after = mark is not None and place[1:] == mark[1:]
                continue
            self._last, self.faults.place = place, f'message {index} of {self.topic}'
            try:
                frame = self._reader.frame(data, lights)
            except errors.DecodeError as error:
                self.faults.add(source.LOST, error)
                continue
            if self.is_timed and math.isnan(frame.game_time):
                seconds, nanoseconds = stamp_of(data) or (math.nan, 0)
                frame = replace(frame, game_time=seconds + nanoseconds * 1e-9)
            yield frame

    def _with_lights(self, begin: Position) -> Iterator[tuple[Place, bytes, bytes]]:
        """Yield the place of each frame, it, and the traffic lights of its stamp, if any."""
        lights_key = f'{self.node}/{_LIGHTS[0]}', _LIGHTS[1]
        has_lights = lights_key in self.bag.topics
        frame = lights = b''
        place, lights_at = Place(begin, -1, 0), begin
        for topic, at, data in self.bag.messages_from({self._key, lights_key}, begin):
            if topic == self.topic:
                if frame:
                    yield place, frame, b''
                number = place.number + 1 if at[1] == place.log_ns else 0
                frame, place = data, Place(at, at[1], number)
            else:
                lights, lights_at = data, at
            if frame and not has_lights:
                yield place, frame, b''
                frame = b''
            elif frame and lights and stamp_of(frame) == stamp_of(lights):
                yield place._replace(begin=min(place.begin, lights_at)), frame, lights
                frame = b''
        if frame:
            yield place, frame, b''

    def _roads(self) -> tuple[Mapping[int, str], tuple[MapLine, ...], str]:
        """Read the names of roads by number, the lines of the map, and its document."""
        names: dict[int, str] = {}
        for roads in self._messages(*_ROADS):
            names.update(zip(roads.numbers('roads.road_id').tolist(), roads.texts('roads.name'),
                             strict=True))
        lines: list[MapLine] = []
        for markers in self._messages(*_MAP):
            # The last map is that of the last frames.
            points = np.column_stack([markers.numbers(f'markers.points.{axis}') for axis in 'xyz'])
            widths = markers.numbers('markers.scale')
            ends = np.cumsum(markers.lengths('markers.points'))
            are_lines = (markers.numbers('markers.type') == _LINE_LIST) & (
                markers.numbers('markers.action') == _ADD)
            try:
                lines = [line for row in np.flatnonzero(are_lines).tolist() for line in _lines(
                    markers.texts('markers.ns')[row], float(widths[row, 1]),
                    points[ends[row - 1] if row else 0:ends[row]])]
            except errors.StateError as error:
                raise errors.TrajectoryFormatError(f'{self.bag.name}: {_MAP[0]}: {error.where}',
                                                   error.found, error.expected) from error
        document = ''
        for strings in self._messages(*_OPEN_DRIVE):
            [document] = strings.texts('data')
        return MappingProxyType(names), tuple(lines), document

    def _messages(self, name: str, type_name: str) -> Iterator[ColumnReader]:
        """Yield a reader with each of the messages of a latched topic."""
        key = full_name(name, self.node), type_name
        # They are at the start: the rest of the bag is not read.
        n_messages = self.bag.count(key)
        reader = ColumnReader(load_definitions(), type_name)
        for _, _, data in islice(self.bag.messages({key}), n_messages):
            with decoding(f'{self.bag.name}: {name}', '{}', f'a message {type_name}'):
                reader.read(data)
            yield reader

    def close(self) -> None:
        """Close the bag."""
        self.bag.close()


def _chosen(bag: Bag, topic: str) -> tuple[str, str]:
    """Return name and type of the topic of the StateFrames."""
    names = sorted(name for name, type_name in bag.topics if type_name == STATE_FRAME)
    if not names:
        raise errors.TrajectoryFormatError(bag.name, 'no topic of the type StateFrame',
                                           f'a bag with {STATE_FRAME}, such as ~/frame')
    if not topic and len(names) > 1:
        raise errors.TrajectoryFormatError(bag.name, f'the topics {", ".join(names)}',
                                           'one of them to be named by --topic')
    if topic and topic not in names:
        raise errors.TrajectoryFormatError(bag.name, f'no topic {topic} of the type StateFrame',
                                           f'one of {", ".join(names)}')
    chosen = (topic or names[0], STATE_FRAME)
    bag.check_definition(chosen)
    return chosen


def open_bag(path: str, options: ReadOptions) -> BagRecording:
    bag = Bag(Path(path))
    with closed_on_failure(bag):
        return BagRecording(bag, options.topic)


def _lines(kind: str, width: float, points_xyz: Floats) -> Iterator[MapLine]:
    """Yield the lines of a list that has the begin and the end of each segment."""
    if not len(points_xyz):
        return
    begins, ends = points_xyz[0:len(points_xyz) - 1:2], points_xyz[1::2]
    breaks = np.flatnonzero((ends[:-1] != begins[1:]).any(axis=1)) + 1
    for first, last in zip([0, *breaks.tolist()], [*breaks.tolist(), len(ends)], strict=True):
        yield MapLine(kind, np.concatenate((begins[first:last], ends[last - 1:last])), width)
