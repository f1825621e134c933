# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The parts of a frame without a column in tables, and the topics that differ or are missing."""

from __future__ import annotations

from dataclasses import dataclass

from state_sensor_ros.files.tables.table_recording import TableRecording
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.base_link import is_measured
from state_sensor_ros.topics.markers import MARKERS_TOPIC
from state_sensor_ros.topics.stacks.autoware_ego import AutowareEgoEncoder, STEERING_TOPIC
from state_sensor_ros.topics.state_frame import FRAME_TOPIC

_OBJECTS = 'objects of --outputs'


@dataclass(frozen=True, slots=True)
class TableGap:
    """Description of parts of a frame without a column, and the topics of a bag with them."""

    parts: str
    topics: tuple[str, ...]

    def __str__(self) -> str:
        return f'{self.parts} ({", ".join(self.topics)})' if self.topics else self.parts


def gaps_of(table: TableRecording, settings: Settings, *, has_own: bool) -> list[TableGap]:
    """
    Return the parts of frames that a table lacks.

    :param table: table, possibly with some of the columns only.
    :param settings: settings of the bag to write; topics that they switch off are not named.
    :param has_own: whether the table's simulator has its own topics.
    """
    frame = (FRAME_TOPIC.name,) if settings.frame else ()
    has_stack = 'autoware' in settings.outputs
    markers: tuple[str, ...] = (MARKERS_TOPIC.name,) \
        if settings.debug_drawing and settings.include_obb else ()
    gaps = [TableGap('time, sample_count, colors and replay classes', frame),
            TableGap('inputs', (*frame, *((STEERING_TOPIC.name,) if has_stack else ()))),
            TableGap('wheels', (*frame, *_wheel_topics(settings)))]
    boxes = 'names and axes of boxes, and all but the largest of an actor'
    if table.missing:
        boxes = f'boxes: {", ".join(table.missing)}'
        if settings.outputs:
            markers += (_OBJECTS,)
    gaps.append(TableGap(boxes, (*frame, *markers)))
    if has_own:
        gaps.append(TableGap(f'what only {table.generation} has', ('all its other topics',)))
    return gaps


def _wheel_topics(settings: Settings) -> list[str]:
    topics = ['/tf'] if settings.wheel_tf else []
    if settings.joint_states:
        topics.append('~/actors/*/joint_states')
    if is_measured(settings):
        if settings.ego_frame:
            topics += ['/tf', '~/ego/odometry']
        if 'autoware' in settings.outputs:
            topics += [topic.name for topic in AutowareEgoEncoder.topics]
    return list(dict.fromkeys(topics))
