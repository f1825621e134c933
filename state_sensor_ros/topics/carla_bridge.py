# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The topics of CARLA's ROS bridge, from any simulator (doc/guide/carla_bridge.md).

Numbers that a source does not have are NaN in its messages, which have no other word for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
import math
import re

import numpy as np

from state_sensor_ros import frame as frames
from state_sensor_ros.cdr.templates import Each, Given, MessageInstance, Slot, Table, Values
from state_sensor_ros.classes import cached_class_of, CLASSES, PERSON, UNKNOWN
from state_sensor_ros.frame import TrafficLights
from state_sensor_ros.perception.perceiver import Perceived
from state_sensor_ros.settings import EGO_ROLE, Settings
from state_sensor_ros.topics import encoding
from state_sensor_ros.topics.actors import ODOMETRY, OdometryEncoder
from state_sensor_ros.topics.autoware_signals import lights_of, ShownLight
from state_sensor_ros.topics.map_topics import OpenDriveEncoder
from state_sensor_ros.topics.objects import DerivedObjectsEncoder
from state_sensor_ros.topics.tables import Fields, header, twist, xyzw
from state_sensor_ros.topics.topic import ORDINARY, Qos, Topic

# Of the ego: orientation xyzw, acceleration (global axes); speed, throttle, steer (+ = right),
# brake.
EGO_STATE = Table('ego state of the bridge', np.float64, 10)
EGO_PEDALS = Table('ego pedals of the bridge', np.float32, 4)

_LATCHED = Qos(latched=True)
_NO_XYZ = dict.fromkeys('xyz', math.nan)
# Constants of CarlaTrafficLightStatus.
_STATES = {frames.LIGHT_RED: 0, frames.LIGHT_YELLOW: 1, frames.LIGHT_GREEN: 2}
_UNKNOWN: dict[str, float] = {'state': 4}
# The name of the map in an OpenDRIVE document.
_HEADER_NAME = re.compile(r'<header\b[^>]*?\sname\s*=\s*"([^"]*)"')


def _topic(name: str, kind: str, qos: Qos = ORDINARY) -> Topic:
    return Topic(f'/carla/{name}', f'carla_msgs/msg/Carla{kind}', qos, is_exclusive=True)


class OfEgo(encoding.TopicEncoder):
    """A topic whose name has the role of the ego."""

    @classmethod
    def topics_of(cls, settings: Settings) -> tuple[Topic, ...]:
        """Return the topic with the role that the source has."""
        return tuple([replace(topic, name=topic.name.replace(EGO_ROLE, settings.role, 1))
                      for topic in cls.topics])


class EgoObjectsEncoder(OfEgo, DerivedObjectsEncoder):
    """The objects, as ``perception.*`` make them."""

    topics = (replace(DerivedObjectsEncoder.topics[0], name=f'/carla/{EGO_ROLE}/objects',
                      is_exclusive=True),)


class WorldObjectsEncoder(DerivedObjectsEncoder):
    """The true objects and, among them, the ego."""

    topics = (replace(DerivedObjectsEncoder.topics[0], name='/carla/objects',
                      is_exclusive=True, is_perceived=False),)
    uses_perception = frozenset()
    # Computed once for a frame.
    _last: tuple[encoding.FrameToSend, Perceived] | None = None

    def _perceived(self, now: encoding.FrameToSend) -> Perceived:
        if self._last is None or self._last[0] is not now:
            objects, i_ego = now.objects.of(now.frame, now.actor_list), now.actor_list.i_ego
            if i_ego >= 0 and now.usable[i_ego]:
                objects = now.objects.everyone.at(np.union1d(objects.rows, (i_ego,)))
            self._last = now, Perceived(objects, objects, objects.twists)
        return self._last[1]


class EgoOdometryEncoder(OfEgo, OdometryEncoder):
    """The odometry of the ego alone."""

    topics = (Topic(f'/carla/{EGO_ROLE}/odometry', ODOMETRY, is_exclusive=True),)
    kind = actor_switch = ''


class EgoStatusEncoder(OfEgo):
    """Speed, acceleration, orientation and pedals of the ego; the gear of the last command."""

    topics = (_topic(f'{EGO_ROLE}/vehicle_status', 'EgoVehicleStatus'),)
    has_details = True

    def set_up(self, settings: Settings) -> None:
        own = header(settings.global_frame)
        self._template = self.message(self.topics[0].type_name, {
            'header': own, 'velocity': Slot(EGO_PEDALS, 0), 'orientation': xyzw(EGO_STATE, 0),
            'acceleration': twist(EGO_STATE, 4), 'control': {
                'header': own, 'hand_brake': Given('is_parked'), 'reverse': Given('is_reverse'),
                **{name: Slot(EGO_PEDALS, i) for i, name in enumerate(
                    ('throttle', 'steer', 'brake'), 1)}}})

    def key(self, now: encoding.FrameToSend) -> dict[str, bool]:
        """Return the gear of the last command, forward before the first one."""
        command = now.last_command()
        return {'is_reverse': command is not None and command.is_reverse,
                'is_parked': command is not None and command.is_parked}

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock | None:
        """Lay out the message; there is none without an ego."""
        i_ego = now.actor_list.i_ego
        if i_ego < 0 or not now.usable[i_ego]:
            return None
        return encoding.MessageBlock(
            [MessageInstance(self._template, self.key(now))], {}, self.topics)

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        """Compute the speed of the origin; the acceleration is that of ``/carla/objects``."""
        frame, row = now.frame, slice(now.actor_list.i_ego, now.actor_list.i_ego + 1)
        now.objects.of(frame, now.actor_list)
        ego = now.objects.everyone.at(row)
        moving = frame.velocity_xyz[row] if frame.forward_speed is None \
            else frame.forward_speed[row, None]
        pedals = np.full((1, 4), np.nan) if frame.inputs is None else frame.inputs[row]
        numbers[EGO_STATE] = np.concatenate((ego.poses[:, 3:], ego.accelerations), axis=1)
        numbers[EGO_PEDALS] = np.column_stack((
            np.sqrt((moving ** 2).sum(1)), pedals[:, 0], 0.0 - pedals[:, 2], pedals[:, 1]))


class EgoInfoEncoder(OfEgo, encoding.ChangeEncoder):
    """Who the ego is, and where its wheels are, once for each ego."""

    topics = (_topic(f'{EGO_ROLE}/vehicle_info', 'EgoVehicleInfo', _LATCHED),)

    def prototype(self, settings: Settings) -> Fields:
        """Return the fields; of the physics of CARLA nothing is known."""
        vehicle, wheel = [{field.name: math.nan for field in self._definitions[
            f'carla_msgs/msg/CarlaEgoVehicle{name}'] if field.type_name == 'float32'}
            for name in ('Info', 'InfoWheel')]
        return {**vehicle, 'center_of_mass': _NO_XYZ, 'id': Given('id'), 'type': Given('type'),
                'rolename': settings.role, 'use_gear_autobox': True, 'wheels': Each('wheels', {
                    **wheel, 'position': {axis: Given(axis) for axis in 'xyz'}})}

    def state(self, now: encoding.FrameToSend) -> object:
        """Return the ego, None in a frame without it or whose wheels are not decoded."""
        i_ego = now.actor_list.i_ego
        ego = None if i_ego < 0 or now.frame.wheels is None else now.actor_list.actors[i_ego]
        return ego and (ego.name, ego.id)

    def values(self, now: encoding.FrameToSend) -> Values:
        actor_list, wheels, i_ego = now.actor_list, now.frame.wheels, now.actor_list.i_ego
        assert wheels is not None
        places = sorted((int(wheels.wheel[row]), wheels.position_xyz[row].tolist())
                        for row in wheels.rows_of(i_ego) if wheels.position_known[row])
        return {'id': actor_list.actors[i_ego].id,
                'type': _type_of(actor_list.kinds[i_ego], actor_list.tags[i_ego]),
                'wheels': [dict(zip('xyz', place, strict=True)) for _, place in places]}


class LightInfoEncoder(encoding.ChangeEncoder):
    """Where the lights are that a run has had so far, when there are more."""

    topics = (_topic('traffic_lights/info', 'TrafficLightInfoList', _LATCHED),)

    def prototype(self, settings: Settings) -> Fields:
        return {'traffic_lights': Each('lights', {
            'id': Given('id'), 'transform': {
                'position': {axis: Given(axis) for axis in 'xyz'},
                'orientation': {axis: Given(f'q{axis}') for axis in 'xyzw'}},
            'trigger_volume': {'center': _NO_XYZ, 'size': _NO_XYZ}})}

    def restart(self) -> None:
        """Remove the lights of the previous run."""
        super().restart()
        self._lights: dict[int, dict[str, float]] = {}
        self._last: TrafficLights | None = None

    def state(self, now: encoding.FrameToSend) -> object:
        """Return what is said of each light by its id, None for none."""
        lights = now.frame.traffic_lights
        if lights is None or lights is not self._last:
            self._last, self._lights = lights, self.said({
                light.id: light for light in lights_of(now.frame) if light.id >= 0})
        return self._lights or None

    def said(self, lights: Mapping[int, ShownLight]) -> dict[int, dict[str, float]]:
        """Return what is said of each light so far; ``lights``: those that show a color."""
        return {number: dict(zip(('x', 'y', 'z', 'qx', 'qy', 'qz', 'qw'), light.pose.tolist(),
                                 strict=True)) for number, light in lights.items()} | self._lights

    def values(self, now: encoding.FrameToSend) -> Values:
        return {'lights': [{'id': number, **said} for number, said in self._lights.items()]}


class LightStatusEncoder(LightInfoEncoder):
    """The states of these lights, when one changes; one that shows no color is unknown."""

    topics = (_topic('traffic_lights/status', 'TrafficLightStatusList', _LATCHED),)

    def prototype(self, settings: Settings) -> Fields:
        return {'traffic_lights': Each('lights', {'id': Given('id'), 'state': Given('state')})}

    def said(self, lights: Mapping[int, ShownLight]) -> dict[int, dict[str, float]]:
        return {**dict.fromkeys(self._lights, _UNKNOWN), **{
            number: {'state': _STATES[light.state]} for number, light in lights.items()}}


class MapEncoder(OpenDriveEncoder):
    topics = (Topic('/carla/map', OpenDriveEncoder.topics[0].type_name, _LATCHED,
                    is_exclusive=True),)


class WorldInfoEncoder(OpenDriveEncoder):
    """The document with the name in its header."""

    topics = (_topic('world_info', 'WorldInfo', _LATCHED),)

    def prototype(self, settings: Settings) -> Fields:
        return {'map_name': Given('name'), 'opendrive': Given('state')}

    def values(self, now: encoding.FrameToSend) -> Values:
        name = _HEADER_NAME.search(str(self._sent))
        return {**super().values(now), 'name': name[1] if name else ''}


class ActorListEncoder(encoding.TopicEncoder):
    """All actors of each frame."""

    topics = (_topic('actor_list', 'ActorList'),)

    def set_up(self, settings: Settings) -> None:
        element = self.element('carla_msgs/msg/CarlaActorInfo', {
            name: Given(name) for name in ('id', 'type', 'rolename')})
        self._role = settings.role
        self._head = MessageInstance(self.message(self.topics[0].type_name, {}), {})
        self._elements = encoding.PerActor(
            lambda actor, kind, tags, role: MessageInstance(element, {
                'id': actor.id, 'type': _type_of(kind, tags), 'rolename': role}))

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock:
        """Lay out the list; an actor other than the ego has its name for a role."""
        actors, roles = now.actor_list, [*now.actor_list.names]
        if actors.i_ego >= 0:
            roles[actors.i_ego] = self._role
        return encoding.MessageBlock([self._head, *self._elements.of(
            actors.actors, actors.kinds, actors.tags, roles)], {}, self.topics, is_array=True)


class StatusEncoder(encoding.ChangeEncoder):
    """The number of each frame that has one."""

    topics = (_topic('status', 'Status'),)

    def prototype(self, settings: Settings) -> Fields:
        return {'frame': Given('state'), 'fixed_delta_seconds': math.nan,
                'synchronous_mode_running': True}

    def state(self, now: encoding.FrameToSend) -> object:
        return now.frame.sample_count or None


def _type_of(kind: int, tags: tuple[str, ...]) -> str:
    """Return the class of an actor as CARLA's types begin."""
    if of_traffic := next((tag for tag in tags if tag.startswith('traffic_')), ''):
        return f'traffic.{of_traffic}'
    class_ = cached_class_of(kind, tags)
    return 'walker.pedestrian' if class_ == PERSON else 'static.prop' if class_ == UNKNOWN \
        else f'vehicle.{CLASSES[class_].name}'
