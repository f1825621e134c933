# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Names of roads, traffic lights that are not actors, lines of the map, and its document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from state_sensor_ros.cdr import templates
from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Each, Given, GivenRows, MessageInstance, Slot, Table
from state_sensor_ros.frame import Floats, Frame, NO_ROADS, TrafficLights
from state_sensor_ros.settings import Settings
from state_sensor_ros.source import Report
from state_sensor_ros.topics import encoding
from state_sensor_ros.topics.tables import Fields, header, pose
from state_sensor_ros.topics.topic import LATCHED, Topic

_LINE_LIST, _TRIANGLE_LIST, _ADD, _DELETE = 5, 11, 0, 2
# Width of the drawn lines, m.
_WIDTH_M = 0.15
# Lanes have their width in `scale.y`, which viewers do not use for lines: a viewer turns a line
# of 3 m toward its camera, in front of the vehicles. Rounded to 1 cm: few markers.
_WIDTH_DIGITS = 2
# Colors by kind, rgb 0..1; all others are gray.
_COLORS = {'driving': (0.75, 0.78, 0.82), 'junction': (0.45, 0.5, 0.55),
           'biking': (0.75, 0.45, 0.35), 'sidewalk': (0.35, 0.6, 0.45)}
_GRAY = 0.55, 0.58, 0.62
# Of the surfaces of lanes: RViz turns lines once, to where its camera is when they come, and
# hardly shows them from elsewhere. m below the lines, m narrower than the lane, brightness
# relative to the lines.
_BELOW, _NARROWER, _DARKER = 0.05, 0.2, 0.6


LIGHTS_NS = 'traffic_lights'
_SPHERE_LIST = 7
# m: the spheres are above the stop line, and visible in a view of a whole crossing.
_DIAMETER, _ABOVE = 1.0, 1.0
# rgba 0..1 by state: green, yellow, red.
STATE_COLORS = np.array(((0.0, 0.8, 0.2, 1.0), (1.0, 0.8, 0.0, 1.0), (0.9, 0.1, 0.1, 1.0)),
                        np.float32)
# One row for each light.
SIGNAL_POSES = Table('signal poses', np.float64, 7)
SIGNAL_STATES = Table('signal states', np.uint8, 1)


def light_fields(frame_id: str) -> Fields:
    """Return a marker with the spheres of all lights."""
    return {
        'header': header(frame_id), 'ns': LIGHTS_NS, 'type': _SPHERE_LIST,
        'pose': {'orientation': {'w': 1.0}}, 'scale': dict.fromkeys('xyz', _DIAMETER),
        'color': {'a': 1.0}, 'points': GivenRows('points', ('x', 'y', 'z')),
        'colors': GivenRows('colors', ('r', 'g', 'b', 'a'))}


def light_values(lights: TrafficLights) -> templates.Values:
    """Return the givens of this marker."""
    return {'points': lights.poses[:, :3] + (0.0, 0.0, _ABOVE),
            'colors': STATE_COLORS[lights.states]}


class LightsEncoder(encoding.TopicEncoder):
    """One TrafficLightStateArray for each frame of a source with lights that are not actors."""

    topics = (Topic('~/traffic_lights', 'state_sensor_ros/msg/TrafficLightStateArray'),)
    opens_with = attrgetter('traffic_lights')

    def set_up(self, settings: Settings) -> None:
        self._element = self.element('state_sensor_ros/msg/TrafficLightState', {
            'name': Given('name'), 'id': Given('id'), 'frame_id': settings.global_frame,
            'state': Slot(SIGNAL_STATES, 0), 'pose': pose(SIGNAL_POSES)})
        self._head = MessageInstance(self.message(
            self.topics[0].type_name, {'header': header(settings.global_frame)}), {})

    def key(self, now: encoding.FrameToSend) -> object:
        lights = now.frame.traffic_lights
        return None if lights is None else (lights.names, lights.ids.tobytes())

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock | None:
        """Lay out the array; there is none without lights."""
        lights = now.frame.traffic_lights
        return None if lights is None else encoding.MessageBlock([self._head, *[
            MessageInstance(self._element, {'name': name, 'id': number})
            for name, number in zip(lights.names, lights.ids.tolist(), strict=True)]],
            {}, self.topics, is_array=True)

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        """Add states and poses."""
        lights = now.frame.traffic_lights
        assert lights is not None
        numbers |= {SIGNAL_STATES: lights.states[:, None], SIGNAL_POSES: lights.poses}


class RoadsEncoder(encoding.ChangeEncoder):
    """One RoadArray for each frame with further roads; it has all roads so far."""

    topics = (Topic('~/roads', 'state_sensor_ros/msg/RoadArray', LATCHED),)
    opens_with = attrgetter('lanes.road_names')

    def prototype(self, settings: Settings) -> Fields:
        return {'header': header(settings.global_frame),
                'roads': Each('roads', {'road_id': Given('road_id'), 'name': Given('name')})}

    def restart(self) -> None:
        """Remove the roads of the previous run."""
        super().restart()
        self._newest = self._names = NO_ROADS

    def state(self, now: encoding.FrameToSend) -> object:
        """Return the names so far, in a tuple: it is compared by identity first."""
        newest = now.frame.lanes.road_names
        if newest is not self._newest:
            self._newest, self._names = newest, {**self._names, **newest}
        return (self._names,) if self._names else None

    def values(self, now: encoding.FrameToSend) -> templates.Values:
        return {'roads': [{'road_id': number, 'name': name}
                          for number, name in self._names.items()]}


class _OfMap(encoding.ChangeEncoder):
    """A topic of the map, that of the frames or a given one."""

    opens_with: Callable[[Frame], object] | None

    def __init__(self, settings: Settings, definitions: Definitions, report: Report,
                 given: Any = None) -> None:  # noqa: ANN401
        super().__init__(settings, definitions, report)
        self._given = given
        if given:
            self.opens_with = None


class MapEncoder(_OfMap):
    """One MarkerArray for each map; its stamp is zero, as a map is valid at any time."""

    topics = (Topic('~/map', 'visualization_msgs/msg/MarkerArray', LATCHED),)
    opens_with = attrgetter('map_lines')
    # Namespaces and numbers of the markers that are shown.
    _shown: frozenset[tuple[str, int]] = frozenset()

    def prototype(self, settings: Settings) -> Fields:
        return {'markers': Each('markers', {
            'header': {'frame_id': settings.global_frame}, 'ns': Given('ns'), 'id': Given('id'),
            'type': Given('type'), 'action': Given('action'), 'pose': {'orientation': {'w': 1.0}},
            'scale': {'x': Given('x'), 'y': Given('y'), 'z': Given('z')},
            'color': {'r': Given('r'), 'g': Given('g'), 'b': Given('b'), 'a': 1.0},
            'points': GivenRows('points', ('x', 'y', 'z'))})}

    def state(self, now: encoding.FrameToSend) -> object:
        """Return the map, and whether displays show its surfaces."""
        lines = self._given or now.frame.map_lines
        return (lines, now.settings.debug_drawing) if lines else None

    def values(self, now: encoding.FrameToSend) -> templates.Values:
        groups: dict[str, dict[float, list[Floats]]] = {}
        for line in self._given or now.frame.map_lines:
            groups.setdefault(line.kind, {}).setdefault(
                round(line.width, _WIDTH_DIGITS), []).append(line.points_xyz)
        markers = [_marker(kind, kind, number, _segments(points), _WIDTH_M, width)
                   for kind, same in groups.items()
                   for number, (width, points) in enumerate(same.items())]
        for kind, same in groups.items() if now.settings.debug_drawing else ():
            triangles = [_triangles(points, width) for width, all_points in same.items() if width
                         for points in all_points]
            if triangles:
                color = 'driving' if kind == 'junction' else kind
                markers.append(_marker(f'{kind}_surface', color, 0, np.concatenate(triangles)))
        shown = frozenset((marker['ns'], marker['id']) for marker in markers)
        gone, self._shown = self._shown - shown, shown
        markers += [{**_marker(namespace, '', number, np.zeros((0, 3))), 'action': _DELETE}
                    for namespace, number in sorted(gone)]
        return {'markers': markers}


class OpenDriveEncoder(_OfMap):
    """One String for each OpenDRIVE document."""

    topics = (Topic('~/map/opendrive', 'std_msgs/msg/String', LATCHED),)
    opens_with = attrgetter('open_drive')

    def prototype(self, settings: Settings) -> Fields:
        return {'data': Given('state')}

    def state(self, now: encoding.FrameToSend) -> object:
        """Return the document, None for none."""
        return self._given or now.frame.open_drive or None


def _marker(namespace: str, color_of: str, number: int, points_xyz: Floats,
            line_width: float = 0.0, width: float = 0.0) -> dict[str, Any]:
    """Return lines if ``line_width`` is not 0, otherwise triangles."""
    color = np.array(_COLORS.get(color_of, _GRAY)) * (1.0 if line_width else _DARKER)
    scale = (line_width, width, 0.0) if line_width else (1.0, 1.0, 1.0)
    return {'ns': namespace, 'id': number, 'type': _LINE_LIST if line_width else _TRIANGLE_LIST,
            'action': _ADD, 'points': points_xyz, **dict(zip('xyz', scale, strict=True)),
            **dict(zip('rgb', color.tolist(), strict=True))}


def _triangles(points_xyz: Floats, width: float) -> Floats:
    """Return (6 M, 3), the corners of two triangles for each of the M segments of a lane."""
    along: Floats = np.gradient(points_xyz[:, :2], axis=0)
    along /= np.maximum(np.hypot(*along.T), 1e-9)[:, None]
    left = np.column_stack((-along[:, 1], along[:, 0], np.zeros(len(along))))
    left *= 0.5 * max(width - _NARROWER, 0.0)
    middle = points_xyz - (0.0, 0.0, _BELOW)
    edges = np.stack((middle + left, middle - left), axis=1)
    return np.concatenate((edges[:-1], edges[1:]), axis=1)[:, (0, 1, 2, 1, 3, 2)].reshape(-1, 3)


def _segments(lines: Sequence[Floats]) -> Floats:
    """Return (2 M, 3), begin and end of each of the M segments of some lines."""
    return np.concatenate([np.repeat(points, 2, axis=0)[1:-1] for points in lines])
