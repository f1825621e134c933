# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA's own topics: the player, lights and signs, and the images of a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
import math
import struct
from typing import Any, ClassVar, Final

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Given, MESSAGE_PHASE, MessageInstance, Slot, Table
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Boxes, Rows
from state_sensor_ros.naming import Actor
from state_sensor_ros.rotations import normalized
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.frames import (
    control_inputs,
    data_of,
    LIGHT,
    number_text,
    PlayerStatus,
    SIGN,
)
from state_sensor_ros.simulators.carla.images import (
    Camera,
    CameraImage,
    CLASS_COLORS,
    CLASS_NAMES,
    colored,
    decode,
    DEPTH,
    optical_frame,
    Pixels,
    RGB,
    SEGMENTATION,
)
from state_sensor_ros.source import Report
from state_sensor_ros.topics import encoding
from state_sensor_ros.topics.map_topics import LIGHTS_NS, STATE_COLORS
from state_sensor_ros.topics.markers import MarkerEncoder, NewMarker
from state_sensor_ros.topics.tables import Fields, given_header, given_stamp, header, pose, xyz
from state_sensor_ros.topics.topic import LATCHED, Subscriptions, Topic

_STATUS: Final = 'state_sensor_ros/msg/CarlaPlayerStatus'
_CONTROL: Final = 'state_sensor_ros/msg/VehicleControl'
_IMAGE: Final = 'sensor_msgs/msg/Image'
_INFO: Final = 'sensor_msgs/msg/CameraInfo'
# Rows by origin: steer (+ = left), raw steer (+ = right), steering angle rad, throttle, brake.
CONTROLS: Final = Table('carla controls', np.float64, 5)
# Rows by origin: hand brake, reverse.
SWITCHES: Final = Table('carla switches', np.bool_, 2)
# By the value of VehicleControl.origin.
AUTOPILOT, EXPERT, APPLIED = range(3)


def _player(now: encoding.FrameToSend) -> PlayerStatus | None:
    data = data_of(now.frame)
    return None if data is None else data.player


def _control_fields(origin: int) -> Fields:
    return {
        'header': header(Given('frame')), 'origin': origin,
        **{name: Slot(CONTROLS, i) for i, name in enumerate(
            ('steer', 'raw_steer', 'steering_angle', 'throttle', 'brake'))},
        'hand_brake': Slot(SWITCHES, 0), 'reverse': Slot(SWITCHES, 1)}


def _control_numbers(player: PlayerStatus) -> encoding.Numbers:
    """Return the numbers of the commands of all origins."""
    inputs = control_inputs(player.controls)
    return {CONTROLS: np.column_stack((inputs[:, 2], player.controls[:, 0], inputs[:, 3],
                                       player.controls[:, 1:])),
            SWITCHES: player.switches.astype(np.uint8)}


class ControlEncoder(encoding.TopicEncoder):
    """One VehicleControl; the base of the three topics."""

    origin: ClassVar[int]  # value of the field of this name

    def set_up(self, settings: Settings) -> None:
        self._template = self.message(_CONTROL, _control_fields(self.origin))

    def key(self, now: encoding.FrameToSend) -> object:
        player = _player(now)
        return player is not None and (self.origin == AUTOPILOT or player.is_dataset)

    def blocks(self, now: encoding.FrameToSend) -> list[encoding.MessageBlock]:
        if not self.key(now):
            return []
        command = MessageInstance(self._template, {'frame': now.actor_list.actors[0].frame_id})
        rows = np.array((self.origin,))
        return encoding.message_blocks([command], {CONTROLS: rows, SWITCHES: rows}, self.topics)

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        """Add the commands, once for all topics of the player."""
        player = _player(now)
        if CONTROLS not in numbers and player is not None:
            numbers |= _control_numbers(player)


class AutopilotControlEncoder(ControlEncoder):
    topics = (Topic('~/player/autopilot_control', _CONTROL),)
    origin = AUTOPILOT


class ExpertControlEncoder(ControlEncoder):
    """What the expert of a dataset proposed."""

    topics = (Topic('~/player/expert_control', _CONTROL),)
    origin = EXPERT


class AppliedControlEncoder(ControlEncoder):
    """What was applied in a dataset: the expert's command with noise."""

    topics = (Topic('~/player/control', _CONTROL),)
    origin = APPLIED


# One row: forward speed m/s, then the numbers of a PlayerStatus.
STATUS_NUMBERS: Final = Table('carla status', np.float64, 13)
FRAME_NUMBER: Final = Table('carla frame number', np.uint64, 1)
# One row: game and platform timestamp, ms (uint32).
STATUS_COUNTS: Final = Table('carla counts', np.uint32, 2)


class PlayerStatusEncoder(encoding.TopicEncoder):
    """One CarlaPlayerStatus for each frame with a player."""

    topics = (Topic('~/player/status', _STATUS),)

    def set_up(self, settings: Settings) -> None:
        self._template = self.message(_STATUS, {
            'header': header(settings.global_frame), 'frame_number': Slot(FRAME_NUMBER, 0),
            'game_timestamp': Slot(STATUS_COUNTS, 0), 'platform_timestamp': Slot(STATUS_COUNTS, 1),
            'forward_speed': Slot(STATUS_NUMBERS, 0), 'acceleration': xyz(STATUS_NUMBERS, 1),
            **{name: Slot(STATUS_NUMBERS, 4 + i) for i, name in enumerate((
                'collision_vehicles', 'collision_pedestrians', 'collision_other',
                'intersection_otherlane', 'intersection_offroad', 'directions',
                'stop_pedestrian', 'stop_vehicle', 'stop_traffic_lights'))},
            'autopilot_control': _control_fields(AUTOPILOT),
            **{name: Given(name) for name in ('is_dataset', 'has_switches', 'extra_members')}})

    def key(self, now: encoding.FrameToSend) -> object:
        """Return the members of a dataset that are not numbers."""
        player = _player(now)
        return None if player is None else (
            player.is_dataset, player.has_switches, player.extra_members)

    def blocks(self, now: encoding.FrameToSend) -> list[encoding.MessageBlock]:
        player = _player(now)
        if player is None:
            return []
        status = MessageInstance(self._template, {
            'frame': now.actor_list.actors[0].frame_id, 'is_dataset': player.is_dataset,
            'has_switches': player.has_switches, 'extra_members': player.extra_members})
        rows = np.array((AUTOPILOT,))
        return encoding.message_blocks([status], {CONTROLS: rows, SWITCHES: rows}, self.topics)

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        """Add the numbers of the player, and the autopilot's command."""
        data, speeds = data_of(now.frame), now.frame.forward_speed
        if data is None or data.player is None or speeds is None:
            return
        numbers |= {
            STATUS_NUMBERS: np.concatenate((speeds[:1], data.player.numbers))[None],
            FRAME_NUMBER: np.array(((data.frame_number,),), np.uint64),
            STATUS_COUNTS: np.array(
                ((data.game_timestamp, data.platform_timestamp),), np.uint32),
            **_control_numbers(data.player)}


SIGN_POSES: Final = Table('sign poses', np.float64, 7)
SIGN_STATES: Final = Table('light states', np.uint8, 1)
SPEED_LIMITS: Final = Table('speed limits', np.float64, 1)


class SignArrayEncoder(encoding.TopicEncoder):
    """One array of the actors of a class; the base of the two topics."""

    class_: ClassVar[int]  # of the actors
    element_type: ClassVar[str]
    fields: ClassVar[Fields]  # of an element beside its name and pose

    def set_up(self, settings: Settings) -> None:
        self._element = self.element(self.element_type, {
            **{name: Given(name) for name in ('name', 'frame_id', 'id')},
            'pose': pose(SIGN_POSES), **self.fields})
        self._array = self.array({'header': header(settings.global_frame)})

    def key(self, now: encoding.FrameToSend) -> object:
        """Return the actors of the class."""
        data = data_of(now.frame)
        return None if data is None else (data.classes.tobytes(), data.ids.tobytes())

    def blocks(self, now: encoding.FrameToSend) -> list[encoding.MessageBlock]:
        data, actors = data_of(now.frame), now.actor_list.actors
        if data is None:
            return []
        rows = np.flatnonzero(data.classes == self.class_)
        return self._array.blocks([
            MessageInstance(self._element, {
                'name': actors[i].name, 'frame_id': actors[i].frame_id, 'id': int(data.ids[i])})
            for i in rows.tolist()],
            dict.fromkeys((SIGN_POSES, SIGN_STATES, SPEED_LIMITS), rows), self.topics)

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        """Add poses, states and limits, once for both topics; other rows are not used."""
        data = data_of(now.frame)
        if data is None or SIGN_POSES in numbers:
            return
        poses = now.frame.kinematics[:, :7].copy()
        # Displays take unit quaternions only.
        signs = now.usable & (data.classes >= LIGHT)
        poses[signs, 3:] = normalized(poses[signs, 3:])
        numbers |= {SIGN_POSES: poses, SIGN_STATES: data.lights[:, None],
                    SPEED_LIMITS: data.speed_limits[:, None]}


class TrafficLightsEncoder(SignArrayEncoder):
    topics = (Topic('~/traffic_lights', 'state_sensor_ros/msg/TrafficLightStateArray'),)
    class_ = LIGHT
    element_type = 'state_sensor_ros/msg/TrafficLightState'
    fields: ClassVar[Fields] = {'state': Slot(SIGN_STATES, 0)}


class SpeedLimitsEncoder(SignArrayEncoder):
    topics = (Topic('~/speed_limits', 'state_sensor_ros/msg/SpeedLimitArray'),)
    class_ = SIGN
    element_type = 'state_sensor_ros/msg/SpeedLimit'
    fields: ClassVar[Fields] = {'speed_limit': Slot(SPEED_LIMITS, 0)}


# One row for each actor.
LIGHT_COLORS: Final = Table('light colors', np.float32, 4)
SPHERE_PLACES: Final = Table('sphere places', np.float64, 3)
NUMBER_PLACES: Final = Table('number places', np.float64, 3)
_MARKER: Final = 'visualization_msgs/msg/Marker'
_SPHERE, _TEXT = 2, 9
# m; the heads of lights and signs are above their origins, which are at the foot of their poles.
_DIAMETER, _SPHERE_ABOVE, _NUMBER_ABOVE = 1.0, 4.0, 5.2
_COLORS: Final = np.concatenate((STATE_COLORS, np.array([(0.5, 0.5, 0.5, 1.0)], np.float32)))
_SIGN_COLOR: Final[Fields] = {'r': 1.0, 'g': 1.0, 'b': 1.0, 'a': 1.0}


class CarlaMarkerEncoder(MarkerEncoder):
    """The markers of all actors in one array: a display that is slow takes all or none of them."""

    def set_up(self, settings: Settings) -> None:
        super().set_up(settings)
        common: Fields = {'header': header(settings.global_frame), 'id': Given('id'), 'action': 0}
        sphere: Fields = {**common, 'type': _SPHERE, 'scale': dict.fromkeys('xyz', _DIAMETER),
                          'pose': {'position': xyz(SPHERE_PLACES, 0), 'orientation': {'w': 1.0}}}
        self._light = self.element(_MARKER, {
            **sphere, 'ns': LIGHTS_NS,
            'color': {name: Slot(LIGHT_COLORS, i) for i, name in enumerate('rgba')}})
        self._sign = self.element(_MARKER, {**sphere, 'ns': 'speed_limits', 'color': _SIGN_COLOR})
        self._number = self.element(_MARKER, {
            **common, 'ns': 'speed_limit_numbers', 'type': _TEXT,
            'pose': {'position': xyz(NUMBER_PLACES, 0), 'orientation': {'w': 1.0}},
            'scale': {'z': _DIAMETER}, 'color': _SIGN_COLOR, 'text': Given('text')})

    def key(self, now: encoding.FrameToSend) -> object:
        """Return the lights and the limits of the signs, too."""
        data = data_of(now.frame)
        return super().key(now), None if data is None else (
            data.classes.tobytes(), data.speed_limits.tobytes())

    def appearance(self, now: encoding.FrameToSend, boxes: Boxes) -> tuple[Sequence[Any], ...]:
        """Return the class of each actor and the text of a sign, too."""
        data, n_actors = data_of(now.frame), len(now.usable)
        classes = bytes(n_actors) if data is None else data.classes.tobytes()
        limits = [math.nan] * n_actors if data is None else data.speed_limits.tolist()
        return (*super().appearance(now, boxes), classes, [
            number_text(limit) if class_ == SIGN else ''
            for class_, limit in zip(classes, limits, strict=True)])

    def new_markers(self, actor: Actor, appearance: Sequence[Any]) -> list[NewMarker]:
        """Return the markers of a light or a sign, too."""
        *_, class_, text = appearance
        markers = super().new_markers(actor, appearance)
        if class_ == LIGHT:
            markers.append(NewMarker(LIGHTS_NS, self._light))
        elif class_ == SIGN:
            markers += (NewMarker('speed_limits', self._sign),
                        NewMarker('speed_limit_numbers', self._number, text))
        return markers

    def further_rows(self, now: encoding.FrameToSend) -> dict[Table, Rows]:
        """Return the rows of lights and signs."""
        data = data_of(now.frame)
        if data is None:
            return {}
        lights, signs = (np.flatnonzero(now.usable & (data.classes == class_))
                         for class_ in (LIGHT, SIGN))
        return {SPHERE_PLACES: np.sort(np.concatenate((lights, signs))), LIGHT_COLORS: lights,
                NUMBER_PLACES: signs}

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        """Add the colors of the lights and the places of the signs."""
        super().numbers(now, numbers)
        data = data_of(now.frame)
        if data is None:
            return
        numbers |= {LIGHT_COLORS: _COLORS[np.minimum(data.lights, len(_COLORS) - 1)],
                    SPHERE_PLACES: now.frame.position_xyz + (0.0, 0.0, _SPHERE_ABOVE),
                    NUMBER_PLACES: now.frame.position_xyz + (0.0, 0.0, _NUMBER_ABOVE)}


CLASSES_TOPIC: Final = Topic(
    '~/camera/segmentation_classes', 'state_sensor_ros/msg/SegmentationClassArray', LATCHED)
# Names of topics, and encodings with their bytes for each pixel.
_TOKENS: Final = {RGB: 'image', DEPTH: 'depth', SEGMENTATION: 'segmentation'}
_ENCODINGS: Final = {RGB: ('rgb8', 3), DEPTH: ('32FC1', 4), SEGMENTATION: ('mono8', 1)}
_COUNT: Final = struct.Struct('<I')
_FULL_CIRCLE_HALF_DEG: Final = 180.0


def image_topic(camera: str, kind: str) -> Topic:
    """Return the topic of images."""
    return Topic(f'~/camera/{camera}/{_TOKENS[kind]}', _IMAGE)


def colored_topic(camera: str) -> Topic:
    """Return the topic of segmentations in colors."""
    return Topic(f'~/camera/{camera}/segmentation_color', _IMAGE)


def info_topic(camera: str) -> Topic:
    """Return the topic of the intrinsics."""
    return Topic(f'~/camera/{camera}/camera_info', _INFO)


def camera_topics(cameras: Sequence[Camera]) -> tuple[Topic, ...]:
    """Return the topics of cameras, and that of the legend if there is a segmentation."""
    topics: dict[Topic, None] = {}
    for camera in cameras:
        for kind in camera.kinds:
            topics[image_topic(camera.name, kind)] = topics[info_topic(camera.name)] = None
            if kind == SEGMENTATION:
                topics[colored_topic(camera.name)] = topics[CLASSES_TOPIC] = None
    return tuple(topics)


class ImageEncoder(encoding.TopicEncoder):
    """One message for each image of a dataset; only images of topics with a reader are decoded."""

    # cameras: those of the recording, which have topics.

    def __init__(self, settings: Settings, definitions: Definitions, report: Report,
                 cameras: Sequence[Camera] = ()) -> None:
        super().__init__(settings, definitions, report)
        self.topics = camera_topics(cameras)
        self.image = self.message(_IMAGE, {
            'header': given_header(Given('frame')),
            **{name: Given(name) for name in ('height', 'width', 'encoding', 'step')}})
        # Without a field of view the matrices are zero, which means that they are unknown.
        focus, x, y, one = (Given(name) for name in ('focus', 'x', 'y', 'one'))
        self.info = self.message(_INFO, {
            'header': given_header(Given('frame')), 'height': Given('height'),
            'width': Given('width'), 'distortion_model': 'plumb_bob', 'd': [0.0] * 5,
            'k': [focus, 0.0, x, 0.0, focus, y, 0.0, 0.0, one],
            'r': [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            'p': [focus, 0.0, x, 0.0, 0.0, focus, y, 0.0, 0.0, 0.0, one, 0.0]})
        self.legend = self.message(CLASSES_TOPIC.type_name, {
            'header': given_header(Given('frame')),
            'classes': [{'tag': tag, 'name': name, 'color': {
                **dict(zip('rgb', (value / 255.0 for value in color), strict=True)), 'a': 1.0}}
                for tag, (name, color) in enumerate(
                    zip(CLASS_NAMES, CLASS_COLORS, strict=True))]})
        self._is_legend_sent = False

    def messages(self, now: encoding.FrameToSend) -> encoding.Messages:
        """Return the images of a frame, and before the first segmentation its legend."""
        data, described = data_of(now.frame), set[str]()
        found = encoding.Messages()
        for image in () if data is None else data.images:
            frame_id = optical_frame(now.actor_list.actors[0].frame_id, image.camera)
            givens = {'frame': frame_id, **given_stamp(now.stamp_ns)}
            if image.kind == SEGMENTATION and not self._is_legend_sent:
                self._is_legend_sent = True
                found.append((CLASSES_TOPIC, bytes(
                    self.legend.lay_out(givens, MESSAGE_PHASE).data)))
            try:
                found += self._encoded(image, givens, now.subscriptions, described)
            except DecodeError as error:
                self._report('image', str(error))
        return found

    def _encoded(self, image: CameraImage, givens: dict[str, Any], subscriptions: Subscriptions,
                 described: set[str]) -> Iterator[tuple[Topic, bytes]]:
        """Encode an image for the topics with subscriptions; once for each camera its info."""
        topic, info = image_topic(image.camera, image.kind), info_topic(image.camera)
        in_colors = colored_topic(image.camera)
        wanted = {each for each in (topic, info, in_colors) if subscriptions.has(each)
                  and (each is not in_colors or image.kind == SEGMENTATION)}
        if not wanted - ({info} if image.camera in described else set()):
            return
        pixels = decode(image)
        if topic in wanted:
            yield topic, self._image(givens, _ENCODINGS[image.kind], pixels)
        if in_colors in wanted:
            yield in_colors, self._image(givens, _ENCODINGS[RGB], colored(pixels))
        if info in wanted and image.camera not in described:
            described.add(image.camera)
            yield info, self._info(givens, pixels.shape, image.fov_deg)

    def _image(self, givens: dict[str, Any], encoding: tuple[str, int], pixels: Pixels) -> bytes:
        height, width, data = *pixels.shape[:2], pixels.tobytes()
        head = bytes(self.image.lay_out({
            **givens, 'height': height, 'width': width, 'encoding': encoding[0],
            'step': width * encoding[1]}, MESSAGE_PHASE).data)
        # The count of the pixels, which are the last field, is the last word of the head.
        return b''.join((head[:-_COUNT.size], _COUNT.pack(len(data)), data))

    def _info(self, givens: dict[str, Any], shape: tuple[int, ...], fov_deg: float) -> bytes:
        height, width, *_ = shape
        focus = x = y = one = 0.0
        if 0.0 < fov_deg < _FULL_CIRCLE_HALF_DEG:
            focus = width / (2.0 * math.tan(math.radians(fov_deg) / 2.0))
            x, y, one = width / 2.0, height / 2.0, 1.0
        return bytes(self.info.lay_out({
            **givens, 'height': height, 'width': width, 'focus': focus, 'x': x, 'y': y,
            'one': one}, MESSAGE_PHASE).data)


_OF_STREAMS: Final[tuple[encoding.NewTopicEncoder, ...]] = (
    CarlaMarkerEncoder, PlayerStatusEncoder, AutopilotControlEncoder, TrafficLightsEncoder,
    SpeedLimitsEncoder)
_OF_DATASETS: Final[tuple[encoding.NewTopicEncoder, ...]] = (
    *_OF_STREAMS[:3], ExpertControlEncoder, AppliedControlEncoder, *_OF_STREAMS[3:])


def carla_encoders(cameras: Sequence[Camera] | None) -> tuple[encoding.NewTopicEncoder, ...]:
    """Return the topics of a dataset with cameras, or of a stream."""
    return _OF_STREAMS if cameras is None else (
        *_OF_DATASETS, partial(ImageEncoder, cameras=cameras))
