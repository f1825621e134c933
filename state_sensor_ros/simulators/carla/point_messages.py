# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Points of lidars as messages."""

from __future__ import annotations

from collections.abc import Collection, Iterator
import struct

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Given, MESSAGE_PHASE, Template
from state_sensor_ros.errors import DecodeError, EncodeError
from state_sensor_ros.payloads import Report
from state_sensor_ros.simulators.carla.carla_data import EncodedPoints
from state_sensor_ros.simulators.carla.carla_topics import POINT_CLOUD, points_topic
from state_sensor_ros.simulators.carla.points import decode_points, POINT_BYTES
from state_sensor_ros.simulators.carla.sensors import lidar_frame
from state_sensor_ros.topics.numbers import stamp_numbers
from state_sensor_ros.topics.tables import given_header
from state_sensor_ros.topics.topic import Demand, Topic

_FLOAT32 = 7
_FLOAT_BYTES = 4
# What follows the count of the points: none of them, and whether all are finite.
_END = struct.Struct('<I?')
_COUNT = struct.Struct('<I')
_LAST_FIELDS = ('data', 'is_dense')


class PointMessages:
    """
    One message for the points of each lidar that has a subscriber.

    :param definitions: of the messages.
    :param report: called with a kind and a line about points that cannot be published.
    :param topics: that exist; points of other lidars are left out. None: all.
    """

    def __init__(self, definitions: Definitions, report: Report,
                 topics: Collection[Topic] | None) -> None:
        self._report, self._topics = report, topics
        last = tuple(field.name for field in definitions[POINT_CLOUD][-2:])
        if last != _LAST_FIELDS:
            raise EncodeError(POINT_CLOUD, f'{", ".join(last)} as the last fields',
                              ', '.join(_LAST_FIELDS))
        self.points = Template(definitions, POINT_CLOUD, {
            'header': given_header(Given('frame')), 'height': 1, 'width': Given('width'),
            'fields': [{'name': name, 'offset': _FLOAT_BYTES * i, 'datatype': _FLOAT32, 'count': 1}
                       for i, name in enumerate('xyz')],
            'point_step': POINT_BYTES, 'row_step': Given('row_step'), 'is_dense': True},
            is_message=True)

    def encode(self, points: tuple[EncodedPoints, ...], player_frame: str, stamp_ns: int,
               demand: Demand) -> Iterator[tuple[Topic, bytes]]:
        """
        Encode the points that ``demand`` names.

        :param points: of a frame.
        :param player_frame: frame of the player, which carries the lidars.
        :param stamp_ns: of that frame, ns since the epoch of the messages' clock.
        :param demand: the topics that have subscribers.
        """
        for one in points:
            topic = points_topic(one.lidar)
            if not demand.has_other(topic) or (
                    self._topics is not None and topic not in self._topics):
                continue
            try:
                data = decode_points(one)
            except DecodeError as error:
                self._report('points', str(error))
                continue
            sec, nanosec = stamp_numbers(stamp_ns).tolist()
            head = bytes(self.points.lay_out({
                'frame': f'{player_frame}/{lidar_frame(one.lidar)}', 'sec': sec,
                'nanosec': nanosec, 'width': len(data) // POINT_BYTES, 'row_step': len(data)},
                MESSAGE_PHASE).data)
            # The template has no points: they are between their count and the last field.
            yield topic, b''.join((head[:-_END.size], _COUNT.pack(len(data)), data,
                                   head[_COUNT.size - _END.size:]))
