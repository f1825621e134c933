# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""~/roads, ~/map, ~/map/opendrive: names of roads, lines of the map as markers, its document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Each, Given, GivenRows, MESSAGE_PHASE
from state_sensor_ros.frame import Floats, Frame, MapLine, NO_ROADS
from state_sensor_ros.payloads import Report
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.tables import given_header, given_stamp
from state_sensor_ros.topics.topic import LATCHED, Topic
from state_sensor_ros.topics.topic_encoder import (
    FrameToSend,
    Messages,
    NewTopicEncoder,
    TopicEncoder,
)

_LINE_LIST, _ADD, _DELETE = 5, 0, 2
# Width of the drawn lines, m.
_WIDTH_M = 0.15
# Lanes have their width in `scale.y`, which viewers do not use for lines: a viewer turns a line
# of 3 m toward its camera, in front of the vehicles. Rounded to 1 cm: few markers.
_WIDTH_DIGITS = 2
# Colors by kind, rgb 0..1; all others are gray.
_COLORS = {'driving': (0.75, 0.78, 0.82), 'junction': (0.45, 0.5, 0.55),
           'biking': (0.75, 0.45, 0.35), 'sidewalk': (0.35, 0.6, 0.45)}
_GREY = 0.55, 0.58, 0.62


class RoadsEncoder(TopicEncoder):
    """One RoadArray for each frame with further roads; it has all roads so far."""

    topics = (Topic('~/roads', 'state_sensor_ros/msg/RoadArray', LATCHED),)
    opens_with = attrgetter('lanes.road_names')

    def set_up(self, settings: Settings) -> None:
        self._message = self.message(self.topics[0].type_name, {
            'header': given_header(settings.global_frame),
            'roads': Each('roads', {'road_id': Given('road_id'), 'name': Given('name')})})
        self.restart()

    def restart(self) -> None:
        """Remove the roads of the previous run."""
        self._newest: Mapping[int, str] = NO_ROADS
        self._names: dict[int, str] = {}

    def messages(self, now: FrameToSend) -> Messages:
        """Return the array if there are further roads."""
        newest = now.frame.lanes.road_names
        if newest is self._newest:
            return []
        self._newest = newest
        if newest.items() <= self._names.items():
            return []
        self._names.update(newest)
        roads = [{'road_id': number, 'name': name} for number, name in self._names.items()]
        data = self._message.lay_out({'roads': roads, **given_stamp(now.stamp_ns)}, MESSAGE_PHASE)
        return [(self.topics[0], data.data)]


class MapEncoder(TopicEncoder):
    """One MarkerArray for each map; its stamp is zero, as a map is valid at any time."""

    topics = (Topic('~/map', 'visualization_msgs/msg/MarkerArray', LATCHED),)
    opens_with: Callable[[Frame], object] | None = attrgetter('map_lines')

    def __init__(self, settings: Settings, definitions: Definitions, report: Report,
                 lines: tuple[MapLine, ...] = ()) -> None:
        super().__init__(settings, definitions, report)
        self._lines = lines
        if lines:
            self.opens_with = None
        self._message = self.message(self.topics[0].type_name, {'markers': Each('markers', {
            'header': {'frame_id': settings.global_frame}, 'ns': Given('kind'), 'id': Given('id'),
            'type': _LINE_LIST, 'action': Given('action'), 'pose': {'orientation': {'w': 1.0}},
            'scale': {'x': _WIDTH_M, 'y': Given('width')},
            'color': {'r': Given('r'), 'g': Given('g'), 'b': Given('b'), 'a': 1.0},
            'points': GivenRows('points', ('x', 'y', 'z'))})})
        # Kinds and numbers of the markers that are shown.
        self._shown: frozenset[tuple[str, int]] = frozenset()
        self.restart()

    def restart(self) -> None:
        """Send the map of the next frame, whether it changed or not."""
        self._sent: tuple[MapLine, ...] = ()

    def messages(self, now: FrameToSend) -> Messages:
        """Return the map if it is not the one that was sent last."""
        lines = self._lines or now.frame.map_lines
        if lines is self._sent or not lines:
            return []
        self._sent = lines
        groups: dict[str, dict[float, list[Floats]]] = {}
        for line in lines:
            same = groups.setdefault(line.kind, {})
            same.setdefault(round(line.width, _WIDTH_DIGITS), []).append(line.points_xyz)
        markers = [_marker(kind, number, _ADD, width, _segments(points))
                   for kind, same in groups.items()
                   for number, (width, points) in enumerate(same.items())]
        shown = frozenset((kind, number) for kind, same in groups.items()
                          for number in range(len(same)))
        gone, self._shown = self._shown - shown, shown
        markers += [_marker(kind, number, _DELETE, 0.0, np.zeros((0, 3)))
                    for kind, number in sorted(gone)]
        return [(self.topics[0], self._message.lay_out({'markers': markers}, MESSAGE_PHASE).data)]


class OpenDriveEncoder(TopicEncoder):
    """One String for each OpenDRIVE document."""

    topics = (Topic('~/map/opendrive', 'std_msgs/msg/String', LATCHED),)
    opens_with: Callable[[Frame], object] | None = attrgetter('open_drive')

    def __init__(self, settings: Settings, definitions: Definitions, report: Report,
                 text: str = '') -> None:
        super().__init__(settings, definitions, report)
        self._text = text
        if text:
            self.opens_with = None
        self._message = self.message(self.topics[0].type_name, {'data': Given('text')})
        self.restart()

    def restart(self) -> None:
        """Send the document of the next frame, whether it changed or not."""
        self._sent = ''

    def messages(self, now: FrameToSend) -> Messages:
        """Return the document if it is not the one that was sent last."""
        text = self._text or now.frame.open_drive
        if text is self._sent or not text:
            return []
        self._sent = text
        return [(self.topics[0], self._message.lay_out({'text': text}, MESSAGE_PHASE).data)]


def topics_of_map(lines: tuple[MapLine, ...], open_drive: str) -> list[NewTopicEncoder]:
    """Return the topics of a given map."""
    # open_drive: its OpenDRIVE document, '' if it is of another format.
    encoders: list[NewTopicEncoder] = [partial(MapEncoder, lines=lines)]
    return [*encoders, partial(OpenDriveEncoder, text=open_drive)] if open_drive else encoders


def _marker(kind: str, number: int, action: int, width: float,
            points_xyz: Floats) -> dict[str, object]:
    return {'kind': kind, 'id': number, 'action': action, 'width': width, 'points': points_xyz,
            **dict(zip('rgb', _COLORS.get(kind, _GREY), strict=True))}


def _segments(lines: Sequence[Floats]) -> Floats:
    """Return (2 M, 3), begin and end of each of the M segments of some lines."""
    return np.concatenate([np.repeat(points, 2, axis=0)[1:-1] for points in lines])
