# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Arrays and markers of traffic lights and speed limit signs."""

from __future__ import annotations

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import Given, MessageInstance, Slot, Table, Template
from state_sensor_ros.frame import Bools, Frame
from state_sensor_ros.naming import ActorList
from state_sensor_ros.rotations import normalised
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.carla_data import (
    CarlaData,
    CLASS_SPEED_LIMIT_SIGN,
    CLASS_TRAFFIC_LIGHT,
    number_text,
)
from state_sensor_ros.simulators.carla.carla_topics import LIGHTS_TOPIC, LIMITS_TOPIC
from state_sensor_ros.topics.markers import ADD, DELETE, NO_POSE, TEXT
from state_sensor_ros.topics.message_block import MessageBlock
from state_sensor_ros.topics.numbers import Numbers
from state_sensor_ros.topics.tables import Fields, header, pose, xyz
from state_sensor_ros.topics.topic import Demand, MARKERS_TOPIC, Topic

# One row for each actor of the frame: pose, state of a light, limit of a sign in m/s, colour of a
# light (rgba, float32), position of the number of a sign.
SIGN_POSES = Table('sign poses', 8, 7)
LIGHT_STATES = Table('light states', 1, 1)
SPEED_LIMITS = Table('speed limits', 8, 1)
LIGHT_COLORS = Table('light colours', 4, 4)
NUMBER_PLACES = Table('number places', 8, 3)

_SPHERE = 2
# m: visible in a view of a whole crossing; the number is above the sphere of its sign.
_DIAMETER = 1.0
_NUMBER_ABOVE = 1.2
# rgba 0..1 by state: green, yellow, red, and other actors.
_LIGHT_COLORS = np.array(((0.0, 0.8, 0.2, 1.0), (1.0, 0.8, 0.0, 1.0), (0.9, 0.1, 0.1, 1.0),
                          (0.5, 0.5, 0.5, 1.0)), np.float32)
_SIGN_COLOR: Fields = {'r': 1.0, 'g': 1.0, 'b': 1.0, 'a': 1.0}
# Ids of markers, int32, that are not negative.
_N_IDS = 2 ** 31

LIGHTS_NS, SIGNS_NS, NUMBERS_NS = 'traffic_lights', 'speed_limits', 'speed_limit_numbers'


class SignArrays:
    """
    One message for all lights and one for all signs of a frame.

    :param settings: parameters of the node.
    :param definitions: of the messages.
    """

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        self.heads = {topic: Template(definitions, topic.type_name,
                                      {'header': header(settings.global_frame)}, is_message=True)
                      for topic in (LIGHTS_TOPIC, LIMITS_TOPIC)}
        names: Fields = {name: Given(name) for name in ('name', 'frame_id', 'id')}
        self.elements = {
            LIGHTS_TOPIC: Template(definitions, 'state_sensor_ros/msg/TrafficLightState', {
                **names, 'state': Slot(LIGHT_STATES, 0), 'pose': pose(SIGN_POSES)}),
            LIMITS_TOPIC: Template(definitions, 'state_sensor_ros/msg/SpeedLimit', {
                **names, 'speed_limit': Slot(SPEED_LIMITS, 0), 'pose': pose(SIGN_POSES)})}

    def blocks(self, data: CarlaData, actor_list: ActorList,
               demand: Demand) -> list[MessageBlock]:
        """
        Lay out the arrays that ``demand`` names.

        :param data: of the N actors of a frame.
        :param actor_list: these actors, in the same order.
        :param demand: of which LIGHTS_TOPIC and LIMITS_TOPIC are used.
        :returns: one block for each array.
        """
        return [self._block(topic, data, actor_list) for topic in self.heads
                if demand.has_other(topic)]

    def _block(self, topic: Topic, data: CarlaData, actor_list: ActorList) -> MessageBlock:
        class_ = CLASS_TRAFFIC_LIGHT if topic is LIGHTS_TOPIC else CLASS_SPEED_LIMIT_SIGN
        rows = np.flatnonzero(data.classes == class_)
        element = self.elements[topic]
        buffer = PatchBuffer(is_array=True)
        buffer.update([MessageInstance(self.heads[topic], {}), *[
            MessageInstance(element, {
                'name': actor_list.actors[i].name, 'frame_id': actor_list.actors[i].frame_id,
                'id': int(data.ids[i])}) for i in rows.tolist()]])
        return MessageBlock(
            buffer, dict.fromkeys((SIGN_POSES, LIGHT_STATES, SPEED_LIMITS), rows), [topic])


class SignMarkers:
    """
    One MarkerArray: a sphere for each light and sign, and the number of each sign.

    :param settings: parameters of the node.
    :param definitions: of the messages.
    """

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        marker = 'visualization_msgs/msg/Marker'
        common: Fields = {'header': header(settings.global_frame), 'id': Given('id')}
        sphere: Fields = {
            **common, 'type': _SPHERE, 'action': ADD, 'pose': pose(SIGN_POSES),
            'scale': dict.fromkeys('xyz', _DIAMETER)}
        self.head = Template(definitions, MARKERS_TOPIC.type_name, {}, is_message=True)
        self.elements = {
            LIGHTS_NS: Template(definitions, marker, {
                **sphere, 'ns': LIGHTS_NS,
                'color': {name: Slot(LIGHT_COLORS, i) for i, name in enumerate('rgba')}}),
            SIGNS_NS: Template(definitions, marker, {
                **sphere, 'ns': SIGNS_NS, 'color': _SIGN_COLOR}),
            NUMBERS_NS: Template(definitions, marker, {
                **common, 'ns': NUMBERS_NS, 'type': TEXT, 'action': ADD,
                'pose': {'position': xyz(NUMBER_PLACES, 0), 'orientation': {'w': 1.0}},
                'scale': {'z': _DIAMETER}, 'color': _SIGN_COLOR, 'text': Given('text')})}
        self.deletion = Template(definitions, marker, {
            **common, 'ns': Given('ns'), 'action': DELETE, 'pose': NO_POSE})
        self.restart()

    def restart(self) -> None:
        """Take the displays as empty."""
        self._shown: set[tuple[str, int]] = set()
        # Ids of markers by those of agents.
        self._ids: dict[int, int] = {}
        self.is_transient = False

    def blocks(self, data: CarlaData, usable: Bools) -> list[MessageBlock]:
        """
        Lay out the array; markers that only the previous array has are deleted.

        :param usable: (N,) whether an actor has a pose.

        Afterwards ``is_transient`` is True for an array that is valid in one frame only.
        """
        lights = np.flatnonzero(usable & (data.classes == CLASS_TRAFFIC_LIGHT))
        signs = np.flatnonzero(usable & (data.classes == CLASS_SPEED_LIMIT_SIGN))
        entries = [(LIGHTS_NS, i) for i in lights.tolist()] + [
            (ns, i) for i in signs.tolist() for ns in (SIGNS_NS, NUMBERS_NS)]
        # The id of an agent is unique within its class.
        self._assign_ids({int(data.ids[i]) for _, i in entries})
        ids = {i: self._ids[int(data.ids[i])] for _, i in entries}
        instances = [MessageInstance(self.elements[ns], {'id': ids[i], 'text': number_text(
            float(data.speed_limits[i]))}) for ns, i in entries]
        shown = {(ns, ids[i]) for ns, i in entries}
        gone = sorted(self._shown - shown)
        self._shown, self.is_transient = shown, bool(gone)
        instances += [MessageInstance(self.deletion, {'ns': ns, 'id': id_}) for ns, id_ in gone]
        if not instances:
            return []
        buffer = PatchBuffer(is_array=True)
        buffer.update([MessageInstance(self.head, {}), *instances])
        return [MessageBlock(
            buffer, {SIGN_POSES: np.concatenate((lights, signs)), LIGHT_COLORS: lights,
                     NUMBER_PLACES: signs}, [MARKERS_TOPIC])]

    def _assign_ids(self, agents: set[int]) -> None:
        """
        Give each agent an id for its markers, which stays while it is shown.

        The id of a marker is an int32, that of an agent a uint32: those from 2**31 on, and those
        that became equal, have others than their agents.
        """
        self._ids = {agent: own for agent, own in self._ids.items() if agent in agents}
        taken = set(self._ids.values())
        for agent in sorted(agents - self._ids.keys()):
            own = agent % _N_IDS
            while own in taken:
                own = (own + 1) % _N_IDS
            self._ids[agent] = own
            taken.add(own)


def sign_numbers(frame: Frame, data: CarlaData, tables: frozenset[Table]) -> Numbers:
    """
    Return the numbers of lights and signs; rows of other actors are not used.

    :param tables: in use.
    """
    states = np.minimum(data.lights, len(_LIGHT_COLORS) - 1)
    poses = frame.kinematics[:, :7].copy()
    # Displays take unit quaternions only.
    signs = frame.has_pose() & (data.classes >= CLASS_TRAFFIC_LIGHT)
    poses[signs, 3:] = normalised(poses[signs, 3:])
    numbers: Numbers = {
        SIGN_POSES: poses, LIGHT_STATES: data.lights[:, None],
        SPEED_LIMITS: data.speed_limits[:, None],
        # A table of four-byte words holds int32; the bits are those of the float32 colours.
        LIGHT_COLORS: _LIGHT_COLORS[states].view(np.int32)}
    if NUMBER_PLACES in tables:
        numbers[NUMBER_PLACES] = frame.position_xyz + np.array((0.0, 0.0, _NUMBER_ABOVE))
    return numbers
