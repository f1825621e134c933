# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""~/traffic_lights, ~/speed_limits, and the lights and signs in ~/markers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from state_sensor_ros.simulators import Boxes, Report, Settings
from state_sensor_ros.simulators.carla.carla_data import (
    CarlaData,
    CLASS_SPEED_LIMIT_SIGN,
    CLASS_TRAFFIC_LIGHT,
    data_of,
    number_text,
)
from state_sensor_ros.simulators.carla.topic_names import LIGHTS_TOPIC, LIMITS_TOPIC
from state_sensor_ros.simulators.frame_arrays import normalised, Rows
from state_sensor_ros.simulators.own_topics import (
    Actor,
    Column,
    Definitions,
    Fields,
    FrameToSend,
    Given,
    header,
    LIGHTS_NS,
    MarkerEncoder,
    MessageBlock,
    MessageInstance,
    NewMarker,
    Numbers,
    pose,
    Slot,
    STATE_COLORS,
    Table,
    Template,
    TopicEncoder,
    xyz,
)

# One row for each actor of the frame: pose, state of a light, limit of a sign in m/s.
SIGN_POSES = Table('sign poses', np.float64, 7)
LIGHT_STATES = Table('light states', np.uint8, 1)
SPEED_LIMITS = Table('speed limits', np.float64, 1)


def add_sign_poses(now: FrameToSend, data: CarlaData, numbers: Numbers) -> None:
    """
    Add SIGN_POSES once for all topics of lights and signs; rows of other actors are not used.

    :param data: CARLA's own data of the frame.
    """
    if SIGN_POSES in numbers:
        return
    poses = now.frame.kinematics[:, :7].copy()
    # Displays take unit quaternions only.
    signs = now.usable & (data.classes >= CLASS_TRAFFIC_LIGHT)
    poses[signs, 3:] = normalised(poses[signs, 3:])
    numbers[SIGN_POSES] = poses


class SignArrayEncoder(TopicEncoder):
    """
    One array of the actors of a class; the base of the two topics.

    ``class_`` of the actors; ``fields`` of an element beside its name and pose.
    """

    class_: ClassVar[int]
    element_type: ClassVar[str]
    fields: ClassVar[Fields]

    def __init__(self, settings: Settings, definitions: Definitions, report: Report) -> None:
        super().__init__(settings, definitions, report)
        self._element = Template(definitions, self.element_type, {
            **{name: Given(name) for name in ('name', 'frame_id', 'id')},
            'pose': pose(SIGN_POSES), **self.fields})
        self._array = self.array({'header': header(settings.global_frame)},
                                 self._element, self._element)

    def key(self, now: FrameToSend) -> object:
        """Return the actors of the class."""
        data = data_of(now.frame)
        return None if data is None else (data.classes.tobytes(), data.ids.tobytes())

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the array."""
        data, actors = data_of(now.frame), now.actor_list.actors
        if data is None:
            return []
        rows = np.flatnonzero(data.classes == self.class_)
        return self._array.blocks([
            MessageInstance(self._element, {
                'name': actors[i].name, 'frame_id': actors[i].frame_id, 'id': int(data.ids[i])})
            for i in rows.tolist()],
            dict.fromkeys((SIGN_POSES, LIGHT_STATES, SPEED_LIMITS), rows), self.topics)

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        """Add poses, states and limits."""
        data = data_of(now.frame)
        if data is not None:
            add_sign_poses(now, data, numbers)
            numbers[LIGHT_STATES] = data.lights[:, None]
            numbers[SPEED_LIMITS] = data.speed_limits[:, None]


class TrafficLightsEncoder(SignArrayEncoder):
    """The traffic lights and their states."""

    topics = (LIGHTS_TOPIC,)
    class_ = CLASS_TRAFFIC_LIGHT
    element_type = 'state_sensor_ros/msg/TrafficLightState'
    fields: ClassVar[Fields] = {'state': Slot(LIGHT_STATES, 0)}


class SpeedLimitsEncoder(SignArrayEncoder):
    """The speed limit signs and their limits."""

    topics = (LIMITS_TOPIC,)
    class_ = CLASS_SPEED_LIMIT_SIGN
    element_type = 'state_sensor_ros/msg/SpeedLimit'
    fields: ClassVar[Fields] = {'speed_limit': Slot(SPEED_LIMITS, 0)}


# One row for each actor of the frame: colour of a light (rgba, float32), position of the number
# of a sign.
LIGHT_COLORS = Table('light colours', np.float32, 4)
NUMBER_PLACES = Table('number places', np.float64, 3)

_MARKER = 'visualization_msgs/msg/Marker'
_SPHERE, _TEXT = 2, 9
_ADD = 0
# m: visible in a view of a whole crossing; the number is above the sphere of its sign.
_DIAMETER = 1.0
_NUMBER_ABOVE = 1.2
# The last one is that of other actors.
_LIGHT_COLORS = np.concatenate((STATE_COLORS, np.array([(0.5, 0.5, 0.5, 1.0)], np.float32)))
_SIGN_COLOR: Fields = {'r': 1.0, 'g': 1.0, 'b': 1.0, 'a': 1.0}

SIGNS_NS, NUMBERS_NS = 'speed_limits', 'speed_limit_numbers'


class CarlaMarkerEncoder(MarkerEncoder):
    """The markers of all actors in one array: a display that is slow takes all or none of them."""

    def __init__(self, settings: Settings, definitions: Definitions, report: Report) -> None:
        super().__init__(settings, definitions, report)
        common: Fields = {'header': header(settings.global_frame), 'id': Given('id'),
                          'action': _ADD}
        sphere: Fields = {**common, 'type': _SPHERE, 'pose': pose(SIGN_POSES),
                          'scale': dict.fromkeys('xyz', _DIAMETER)}
        self._light = Template(definitions, _MARKER, {
            **sphere, 'ns': LIGHTS_NS,
            'color': {name: Slot(LIGHT_COLORS, i) for i, name in enumerate('rgba')}})
        self._sign = Template(definitions, _MARKER, {
            **sphere, 'ns': SIGNS_NS, 'color': _SIGN_COLOR})
        self._number = Template(definitions, _MARKER, {
            **common, 'ns': NUMBERS_NS, 'type': _TEXT,
            'pose': {'position': xyz(NUMBER_PLACES, 0), 'orientation': {'w': 1.0}},
            'scale': {'z': _DIAMETER}, 'color': _SIGN_COLOR, 'text': Given('text')})

    def samples(self) -> list[Sequence[Template]]:
        """Return an array with a marker of each further template as well."""
        first, *others = super().samples()
        return [[*first, self._light, self._sign, self._number], *others]

    def key(self, now: FrameToSend) -> object:
        """Return the lights and the limits of the signs, too."""
        data = data_of(now.frame)
        return super().key(now), None if data is None else (
            data.classes.tobytes(), data.speed_limits.tobytes())

    def appearance(self, now: FrameToSend, boxes: Boxes) -> tuple[Column, ...]:
        """Return the class of each actor and the text of a sign, too."""
        data = data_of(now.frame)
        n_actors = len(now.usable)
        classes = bytes(n_actors) if data is None else data.classes.tobytes()
        limits = [0.0] * n_actors if data is None else data.speed_limits.tolist()
        return (*super().appearance(now, boxes), Column(classes), Column(tuple(
            number_text(limit) if class_ == CLASS_SPEED_LIMIT_SIGN else ''
            for class_, limit in zip(classes, limits, strict=True))))

    def new_markers(self, actor: Actor, appearance: tuple[Any, ...]) -> list[NewMarker]:
        """Return the markers of a light or a sign, too."""
        *_, class_, text = appearance
        markers = super().new_markers(actor, appearance)
        if class_ == CLASS_TRAFFIC_LIGHT:
            markers.append(NewMarker(LIGHTS_NS, self._light))
        elif class_ == CLASS_SPEED_LIMIT_SIGN:
            markers += (NewMarker(SIGNS_NS, self._sign),
                        NewMarker(NUMBERS_NS, self._number, text))
        return markers

    def further_rows(self, now: FrameToSend) -> dict[Table, Rows]:
        """Return the rows of lights and signs."""
        data = data_of(now.frame)
        if data is None:
            return {}
        lights, signs = (np.flatnonzero(now.usable & (data.classes == class_))
                         for class_ in (CLASS_TRAFFIC_LIGHT, CLASS_SPEED_LIMIT_SIGN))
        return {SIGN_POSES: np.sort(np.concatenate((lights, signs))), LIGHT_COLORS: lights,
                NUMBER_PLACES: signs}

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        """Add the colours of the lights and the places of the signs."""
        super().numbers(now, numbers)
        data = data_of(now.frame)
        if data is None:
            return
        add_sign_poses(now, data, numbers)
        states = np.minimum(data.lights, len(_LIGHT_COLORS) - 1)
        # A table of four-byte words holds int32; the bits are those of the float32 colours.
        numbers[LIGHT_COLORS] = _LIGHT_COLORS[states]
        numbers[NUMBER_PLACES] = now.frame.position_xyz + np.array((0.0, 0.0, _NUMBER_ABOVE))
