# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA's own topics but those of sensors: the player, lights and signs; the list of all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
import json
import math
from typing import Any, ClassVar

import numpy as np

from state_sensor_ros.simulators import Boxes, Settings
from state_sensor_ros.simulators.carla.carla_data import (
    CarlaData,
    CLASS_SPEED_LIMIT_SIGN,
    CLASS_TRAFFIC_LIGHT,
    Command,
    command_inputs,
    data_of,
    number_text,
    player_of,
    PlayerStatus,
)
from state_sensor_ros.simulators.carla.sensor_topics import ImageEncoder, PointEncoder
from state_sensor_ros.simulators.carla.sensors import Sensor
from state_sensor_ros.simulators.carla.topic_names import (
    AUTOPILOT_CONTROL_TOPIC,
    CONTROL,
    CONTROL_TOPIC,
    EXPERT_CONTROL_TOPIC,
    LIGHTS_TOPIC,
    LIMITS_TOPIC,
    STATUS,
    STATUS_TOPIC,
)
from state_sensor_ros.simulators.frame_arrays import normalized, Rows
from state_sensor_ros.simulators.own_topics import (
    Actor,
    Column,
    Fields,
    FrameToSend,
    Given,
    header,
    LIGHTS_NS,
    MarkerEncoder,
    message_blocks,
    MessageBlock,
    MessageInstance,
    NewMarker,
    NewTopicEncoder,
    Numbers,
    pose,
    Slot,
    STATE_COLORS,
    Table,
    TopicEncoder,
    xyz,
)

# Rows by origin: steer (+ = left), raw steer (+ = right), steering angle rad, throttle, brake.
CONTROLS = Table('carla controls', np.float64, 5)
# Rows by origin: hand brake, reverse.
CONTROL_SWITCHES = Table('carla switches', np.bool_, 2)

# By the value of VehicleControl.origin.
AUTOPILOT, _EXPERT, _APPLIED = range(3)
_NO_COMMAND = Command()


def control_fields(origin: int) -> Fields:
    """Return the fields of a VehicleControl, with the numbers of an origin's row."""
    return {
        'header': header(Given('frame')), 'origin': origin,
        **{name: Slot(CONTROLS, i) for i, name in enumerate(
            ('steer', 'raw_steer', 'steering_angle', 'throttle', 'brake'))},
        'hand_brake': Slot(CONTROL_SWITCHES, 0), 'reverse': Slot(CONTROL_SWITCHES, 1)}


def control_numbers(player: PlayerStatus) -> Numbers:
    """Return the numbers of the commands of all origins."""
    dataset = player.dataset
    commands = (player.autopilot, _NO_COMMAND, _NO_COMMAND) if dataset is None else (
        player.autopilot, dataset.expert, dataset.applied)
    inputs = command_inputs(*commands)
    return {
        CONTROLS: np.array([
            (steer, command.steer, angle, command.throttle, command.brake)
            for command, (steer, angle) in zip(commands, inputs[:, 2:].tolist(), strict=True)]),
        CONTROL_SWITCHES: np.array([
            (command.hand_brake, command.reverse) for command in commands], np.uint8)}


class ControlEncoder(TopicEncoder):
    """One VehicleControl; the base of the three topics."""

    origin: ClassVar[int]  # value of the field of this name

    def set_up(self, settings: Settings) -> None:
        self._template = self.message(CONTROL, control_fields(self.origin))

    def key(self, now: FrameToSend) -> object:
        return self._has_command(now)

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        if not self._has_command(now):
            return []
        command = MessageInstance(self._template, {'frame': now.actor_list.actors[0].frame_id})
        rows = np.array((self.origin,))
        return message_blocks([command], {CONTROLS: rows, CONTROL_SWITCHES: rows}, self.topics)

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        """Add the commands, once for all topics of the player."""
        player = player_of(now.frame)
        if CONTROLS not in numbers and player is not None:
            numbers |= control_numbers(player)

    def _has_command(self, now: FrameToSend) -> bool:
        player = player_of(now.frame)
        return player is not None and (self.origin == AUTOPILOT or player.dataset is not None)


class AutopilotControlEncoder(ControlEncoder):
    topics = (AUTOPILOT_CONTROL_TOPIC,)
    origin = AUTOPILOT


class ExpertControlEncoder(ControlEncoder):
    """What the expert of a dataset proposed."""

    topics = (EXPERT_CONTROL_TOPIC,)
    origin = _EXPERT


class AppliedControlEncoder(ControlEncoder):
    """What was applied in a dataset: the expert's command with noise."""

    topics = (CONTROL_TOPIC,)
    origin = _APPLIED


# One row: acceleration xyz m/s2, forward speed m/s, collisions kg m/s,
# intersections, directions, reasons to stop.
STATUS_NUMBERS = Table('carla status', np.float64, 13)
FRAME_NUMBER = Table('carla frame number', np.uint64, 1)
# One row: game and platform timestamp, ms (uint32).
STATUS_COUNTS = Table('carla counts', np.uint32, 2)

_NUMBERS = ('collision_vehicles', 'collision_pedestrians', 'collision_other',
            'intersection_otherlane', 'intersection_offroad', 'directions', 'stop_pedestrian',
            'stop_vehicle', 'stop_traffic_lights')
# Member of extra_members with those of the episode, a name that the collector does not write.
EPISODE_MEMBERS = 'metadata.json'


class PlayerStatusEncoder(TopicEncoder):
    """One CarlaPlayerStatus for each frame with a player."""

    topics = (STATUS_TOPIC,)

    def set_up(self, settings: Settings) -> None:
        self._template = self.message(STATUS, {
            'header': header(settings.global_frame), 'frame_number': Slot(FRAME_NUMBER, 0),
            'game_timestamp': Slot(STATUS_COUNTS, 0), 'platform_timestamp': Slot(STATUS_COUNTS, 1),
            'acceleration': xyz(STATUS_NUMBERS, 0), 'forward_speed': Slot(STATUS_NUMBERS, 3),
            **{name: Slot(STATUS_NUMBERS, 4 + i) for i, name in enumerate(_NUMBERS)},
            'autopilot_control': control_fields(AUTOPILOT),
            'is_dataset': Given('is_dataset'), 'has_switches': Given('has_switches'),
            'extra_members': Given('extra_members'),
        })

    def key(self, now: FrameToSend) -> object:
        """Return the members of a dataset that are not numbers."""
        player = player_of(now.frame)
        if player is None or player.dataset is None:
            return player is None
        return (player.dataset.has_switches, player.dataset.other_members,
                player.dataset.episode_members)

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        player = player_of(now.frame)
        if player is None or now.frame.forward_speed is None:
            return []
        status = MessageInstance(
            self._template, _givens(player, now.actor_list.actors[0].frame_id))
        rows = np.array((AUTOPILOT,))
        return message_blocks([status], {CONTROLS: rows, CONTROL_SWITCHES: rows}, self.topics)

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        """Add the numbers of the player, and the autopilot's command."""
        frame, forward_speed = now.frame, now.frame.forward_speed
        data, player = data_of(frame), player_of(frame)
        if data is None or player is None or forward_speed is None:
            return
        dataset = player.dataset
        row = np.array((
            *player.acceleration_xyz.tolist(), float(forward_speed[0]),
            player.collision_vehicles, player.collision_pedestrians, player.collision_other,
            player.intersection_otherlane, player.intersection_offroad,
            *((math.nan,) * 4 if dataset is None else (
                dataset.directions, dataset.stop_pedestrian, dataset.stop_vehicle,
                dataset.stop_traffic_lights))))
        numbers[STATUS_NUMBERS] = row[None]
        numbers[FRAME_NUMBER] = np.array(((data.frame_number,),), np.uint64)
        numbers[STATUS_COUNTS] = np.array(
            ((data.game_timestamp, data.platform_timestamp),), np.uint32)
        numbers |= control_numbers(player)


def _givens(player: PlayerStatus, frame_id: str) -> dict[str, bool | str]:
    dataset = player.dataset
    if dataset is None:
        return {'frame': frame_id, 'is_dataset': False, 'has_switches': False, 'extra_members': ''}
    members = _object(dataset.other_members)
    if dataset.episode_members:
        members = _object((*dataset.other_members,
                           (EPISODE_MEMBERS, _object(dataset.episode_members))))
    return {'frame': frame_id, 'is_dataset': True, 'has_switches': dataset.has_switches,
            'extra_members': members}


def _object(members: tuple[tuple[str, str], ...]) -> str:
    """Return a JSON object of names and JSON texts, '' for none."""
    text = ','.join(f'{json.dumps(name)}:{text}' for name, text in members)
    return f'{{{text}}}' if members else ''


# One row for each actor of the frame: pose, state of a light, limit of a sign in m/s.
SIGN_POSES = Table('sign poses', np.float64, 7)
LIGHT_STATES = Table('light states', np.uint8, 1)
SPEED_LIMITS = Table('speed limits', np.float64, 1)


def add_sign_poses(now: FrameToSend, data: CarlaData, numbers: Numbers) -> None:
    """Add SIGN_POSES once for all topics of lights and signs; other rows are not used."""
    if SIGN_POSES in numbers:
        return
    poses = now.frame.kinematics[:, :7].copy()
    # Displays take unit quaternions only.
    signs = now.usable & (data.classes >= CLASS_TRAFFIC_LIGHT)
    poses[signs, 3:] = normalized(poses[signs, 3:])
    numbers[SIGN_POSES] = poses


class SignArrayEncoder(TopicEncoder):
    """One array of the actors of a class; the base of the two topics."""

    class_: ClassVar[int]  # of the actors
    element_type: ClassVar[str]
    fields: ClassVar[Fields]  # of an element beside its name and pose

    def set_up(self, settings: Settings) -> None:
        self._element = self.element(self.element_type, {
            **{name: Given(name) for name in ('name', 'frame_id', 'id')},
            'pose': pose(SIGN_POSES), **self.fields})
        self._array = self.array({'header': header(settings.global_frame)})

    def key(self, now: FrameToSend) -> object:
        """Return the actors of the class."""
        data = data_of(now.frame)
        return None if data is None else (data.classes.tobytes(), data.ids.tobytes())

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
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
    topics = (LIGHTS_TOPIC,)
    class_ = CLASS_TRAFFIC_LIGHT
    element_type = 'state_sensor_ros/msg/TrafficLightState'
    fields: ClassVar[Fields] = {'state': Slot(LIGHT_STATES, 0)}


class SpeedLimitsEncoder(SignArrayEncoder):
    topics = (LIMITS_TOPIC,)
    class_ = CLASS_SPEED_LIMIT_SIGN
    element_type = 'state_sensor_ros/msg/SpeedLimit'
    fields: ClassVar[Fields] = {'speed_limit': Slot(SPEED_LIMITS, 0)}


# One row for each actor of the frame: color of a light (rgba, float32), positions of the sphere of
# a light or a sign and of the number of a sign.
LIGHT_COLORS = Table('light colors', np.float32, 4)
SPHERE_PLACES = Table('sphere places', np.float64, 3)
NUMBER_PLACES = Table('number places', np.float64, 3)

_MARKER = 'visualization_msgs/msg/Marker'
_SPHERE, _TEXT = 2, 9
_ADD = 0
# m: visible in a view of a whole crossing, above the axes and the label of the actor; the number
# is above the sphere of its sign.
_DIAMETER = 1.0
_SPHERE_ABOVE, _NUMBER_ABOVE = 4.0, 5.2
# The last one is that of other actors.
_LIGHT_COLORS = np.concatenate((STATE_COLORS, np.array([(0.5, 0.5, 0.5, 1.0)], np.float32)))
_SIGN_COLOR: Fields = {'r': 1.0, 'g': 1.0, 'b': 1.0, 'a': 1.0}

SIGNS_NS, NUMBERS_NS = 'speed_limits', 'speed_limit_numbers'


class CarlaMarkerEncoder(MarkerEncoder):
    """The markers of all actors in one array: a display that is slow takes all or none of them."""

    def set_up(self, settings: Settings) -> None:
        super().set_up(settings)
        common: Fields = {'header': header(settings.global_frame), 'id': Given('id'),
                          'action': _ADD}
        sphere: Fields = {**common, 'type': _SPHERE, 'scale': dict.fromkeys('xyz', _DIAMETER),
                          'pose': {'position': xyz(SPHERE_PLACES, 0), 'orientation': {'w': 1.0}}}
        self._light = self.element(_MARKER, {
            **sphere, 'ns': LIGHTS_NS,
            'color': {name: Slot(LIGHT_COLORS, i) for i, name in enumerate('rgba')}})
        self._sign = self.element(_MARKER, {
            **sphere, 'ns': SIGNS_NS, 'color': _SIGN_COLOR})
        self._number = self.element(_MARKER, {
            **common, 'ns': NUMBERS_NS, 'type': _TEXT,
            'pose': {'position': xyz(NUMBER_PLACES, 0), 'orientation': {'w': 1.0}},
            'scale': {'z': _DIAMETER}, 'color': _SIGN_COLOR, 'text': Given('text')})

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
        return {SPHERE_PLACES: np.sort(np.concatenate((lights, signs))), LIGHT_COLORS: lights,
                NUMBER_PLACES: signs}

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        """Add the colors of the lights and the places of the signs."""
        super().numbers(now, numbers)
        data = data_of(now.frame)
        if data is None:
            return
        states = np.minimum(data.lights, len(_LIGHT_COLORS) - 1)
        # A table of four-byte words holds int32; the bits are those of the float32 colors.
        numbers[LIGHT_COLORS] = _LIGHT_COLORS[states]
        numbers[SPHERE_PLACES] = now.frame.position_xyz + (0.0, 0.0, _SPHERE_ABOVE)
        numbers[NUMBER_PLACES] = now.frame.position_xyz + (0.0, 0.0, _NUMBER_ABOVE)


# In the order in which their messages are sent.
CARLA_TOPICS: tuple[type[TopicEncoder], ...] = (
    CarlaMarkerEncoder,
    PlayerStatusEncoder,
    AutopilotControlEncoder,
    ExpertControlEncoder,
    AppliedControlEncoder,
    TrafficLightsEncoder,
    SpeedLimitsEncoder,
    ImageEncoder,
    PointEncoder,
)
# What the collector of a dataset adds.
_OF_DATASETS = (ExpertControlEncoder, AppliedControlEncoder)


def carla_encoders(sensors: Sequence[Sensor] | None = None, *,
                   is_dataset: bool = True) -> tuple[NewTopicEncoder, ...]:
    """Return the topics of a stream or a recording."""
    return tuple([
        partial(encoder, sensors=sensors) if encoder in (ImageEncoder, PointEncoder) else encoder
        for encoder in CARLA_TOPICS if is_dataset or encoder not in _OF_DATASETS])
