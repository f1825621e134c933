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

from collections.abc import Sequence
import struct

from state_sensor_ros.simulators import DecodeError, Report, Settings
from state_sensor_ros.simulators.carla.carla_data import data_of
from state_sensor_ros.simulators.carla.carla_topics import POINT_CLOUD, points_topic, sensor_topics
from state_sensor_ros.simulators.carla.points import decode_points, POINT_BYTES
from state_sensor_ros.simulators.carla.sensors import lidar_frame, POINTS, Sensor
from state_sensor_ros.simulators.own_topics import (
    Definitions,
    Demand,
    EncodeError,
    FrameToSend,
    Given,
    given_header,
    given_stamp,
    MESSAGE_PHASE,
    Messages,
    TopicEncoder,
)

_FLOAT32 = 7
_FLOAT_BYTES = 4
# What follows the count of the points: none of them, and whether all are finite.
_END = struct.Struct('<I?')
_COUNT = struct.Struct('<I')
_LAST_FIELDS = ('data', 'is_dense')


class PointEncoder(TopicEncoder):
    """
    One message for the points of each lidar that has a reader.

    :param sensors: lidars that have topics; points of others are left out. None: all have.
    """

    def __init__(self, settings: Settings, definitions: Definitions, report: Report,
                 sensors: Sequence[Sensor] | None = None) -> None:
        super().__init__(settings, definitions, report)
        self._report, self._has_all_topics = report, sensors is None
        self.topics = sensor_topics(
            [sensor for sensor in sensors or () if sensor.kind == POINTS])
        last = tuple(field.name for field in definitions[POINT_CLOUD][-2:])
        if last != _LAST_FIELDS:
            raise EncodeError(POINT_CLOUD, f'{", ".join(last)} as the last fields',
                              ', '.join(_LAST_FIELDS))
        self.points = self.message(POINT_CLOUD, {
            'header': given_header(Given('frame')), 'height': 1, 'width': Given('width'),
            'fields': [{'name': name, 'offset': _FLOAT_BYTES * i, 'datatype': _FLOAT32, 'count': 1}
                       for i, name in enumerate('xyz')],
            'point_step': POINT_BYTES, 'row_step': Given('row_step'), 'is_dense': True})

    def is_wanted(self, settings: Settings, demand: Demand) -> bool:
        """Return whether any lidar may have a reader."""
        return self._has_all_topics or super().is_wanted(settings, demand)

    def messages(self, now: FrameToSend) -> Messages:
        """Return the points of a frame."""
        data, messages = data_of(now.frame), Messages()
        if data is None or not data.has_player:
            return messages
        player_frame = now.actor_list.actors[0].frame_id
        for points in data.sensor_data.points:
            topic = points_topic(points.lidar)
            if not now.demand.has(topic) or not (self._has_all_topics or topic in self.topics):
                continue
            try:
                rows = decode_points(points)
            except DecodeError as error:
                self._report('points', str(error))
                continue
            head = bytes(self.points.lay_out({
                'frame': f'{player_frame}/{lidar_frame(points.lidar)}',
                **given_stamp(now.stamp_ns), 'width': len(rows) // POINT_BYTES,
                'row_step': len(rows)}, MESSAGE_PHASE).data)
            # The template has no points: they are between their count and the last field.
            messages.append((topic, b''.join((
                head[:-_END.size], _COUNT.pack(len(rows)), rows,
                head[_COUNT.size - _END.size:]))))
        return messages
