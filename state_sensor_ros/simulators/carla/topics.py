# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA's own topics: the player, speed limits, and the images of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
import math
import struct
from typing import Any, Final, TypeAlias

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Given, MessageInstance, Slot, Table
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.naming import Registry
from state_sensor_ros.rotations import normalized
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla import CarlaParameters, dataset, frames
from state_sensor_ros.simulators.carla.dataset import DEPTH, RGB, SEGMENTATION
from state_sensor_ros.source import Report
from state_sensor_ros.topics import encoding
from state_sensor_ros.topics.tables import Fields, header, pose, xyz
from state_sensor_ros.topics.topic import LATCHED, Topic
from state_sensor_ros.topics.transforms import StaticTransform

_CONTROL: Final = 'state_sensor_ros/msg/VehicleControl'
# Rows by origin: steer (+ = left), raw steer (+ = right), steering angle rad, throttle, brake.
CONTROLS: Final = Table('carla controls', np.float64, 5)
# Rows by origin: hand brake, reverse.
SWITCHES: Final = Table('carla switches', np.bool_, 2)


def _player(now: encoding.FrameToSend) -> frames.PlayerStatus | None:
    data = frames.data_of(now.frame)
    return None if data is None else data.player


def _control_fields(origin: int) -> Fields:
    return {
        'header': header(Given('frame')), 'origin': origin,
        **{name: Slot(CONTROLS, i) for i, name in enumerate(
            ('steer', 'raw_steer', 'steering_angle', 'throttle', 'brake'))},
        'hand_brake': Slot(SWITCHES, 0), 'reverse': Slot(SWITCHES, 1)}


class ControlEncoder(encoding.TopicEncoder):
    """
    A VehicleControl by origin: of the autopilot, and of the expert and applied in a dataset.

    What was applied is the expert's command with noise.
    """

    topics = tuple(Topic(f'~/player/{name}', _CONTROL)
                   for name in ('autopilot_control', 'expert_control', 'control'))

    def set_up(self, settings: Settings) -> None:
        self._templates = [self.message(_CONTROL, _control_fields(origin))
                           for origin in range(len(self.topics))]

    def key(self, now: encoding.FrameToSend) -> object:
        return _player(now) is not None

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock | None:
        if not self.key(now):
            return None
        givens = {'frame': now.actor_list.actors[0].frame_id}
        rows = np.arange(len(self.topics))
        return encoding.MessageBlock(
            [MessageInstance(template, givens) for template in self._templates],
            {CONTROLS: rows, SWITCHES: rows}, self.topics)

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        """Add the commands, once for all topics of the player."""
        player = _player(now)
        if player is not None and CONTROLS not in numbers:
            inputs = frames.control_inputs(player.controls)
            numbers |= {CONTROLS: np.column_stack((
                inputs[:, 2], player.controls[:, 0], inputs[:, 3], player.controls[:, 1:])),
                SWITCHES: player.switches.astype(np.uint8)}


class AutopilotEncoder(ControlEncoder):
    """The autopilot's command alone, which is all that a stream has."""

    topics = ControlEncoder.topics[:1]


# One row: forward speed m/s, then the numbers of a PlayerStatus.
STATUS_NUMBERS: Final = Table('carla status', np.float64, 13)
FRAME_NUMBER: Final = Table('carla frame number', np.uint64, 1)
# One row: game and platform timestamp, ms (uint32).
STATUS_COUNTS: Final = Table('carla counts', np.uint32, 2)


class PlayerStatusEncoder(ControlEncoder):
    """One CarlaPlayerStatus for each frame with a player."""

    topics = (Topic('~/player/status', 'state_sensor_ros/msg/CarlaPlayerStatus'),)

    def set_up(self, settings: Settings) -> None:
        self._template = self.message(self.topics[0].type_name, {
            'header': header(settings.global_frame), 'frame_number': Slot(FRAME_NUMBER, 0),
            'game_timestamp': Slot(STATUS_COUNTS, 0), 'platform_timestamp': Slot(STATUS_COUNTS, 1),
            'forward_speed': Slot(STATUS_NUMBERS, 0), 'acceleration': xyz(STATUS_NUMBERS, 1),
            **{name: Slot(STATUS_NUMBERS, 4 + i) for i, name in enumerate((
                'collision_vehicles', 'collision_pedestrians', 'collision_other',
                'intersection_otherlane', 'intersection_offroad', 'directions',
                'stop_pedestrian', 'stop_vehicle', 'stop_traffic_lights'))},
            'autopilot_control': _control_fields(0),
            **{name: Given(name) for name in ('is_dataset', 'has_switches', 'extra_members')}})

    def key(self, now: encoding.FrameToSend) -> object:
        """Return the members of a dataset that are not numbers."""
        player = _player(now)
        return None if player is None else (
            player.is_dataset, player.has_switches, player.extra_members)

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock | None:
        player, row = _player(now), np.zeros(1, np.int64)
        if player is None:
            return None
        status = MessageInstance(self._template, {
            'frame': now.actor_list.actors[0].frame_id, 'is_dataset': player.is_dataset,
            'has_switches': player.has_switches, 'extra_members': player.extra_members})
        return encoding.MessageBlock([status], {CONTROLS: row, SWITCHES: row}, self.topics)

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        """Add the numbers of the player, and the autopilot's command."""
        super().numbers(now, numbers)
        data, speeds = frames.data_of(now.frame), now.frame.forward_speed
        if data is not None and data.player is not None and speeds is not None:
            numbers |= {
                STATUS_NUMBERS: np.concatenate((speeds[:1], data.player.numbers))[None],
                FRAME_NUMBER: np.array(((data.frame_number,),), np.uint64),
                STATUS_COUNTS: np.array(
                    ((data.game_timestamp, data.platform_timestamp),), np.uint32)}


# One row for each actor.
SIGN_POSES: Final = Table('sign poses', np.float64, 7)
SPEED_LIMITS: Final = Table('speed limits', np.float64, 1)


class SpeedLimitsEncoder(encoding.TopicEncoder):
    """One array of all speed limits for each frame."""

    topics = (Topic('~/speed_limits', 'state_sensor_ros/msg/SpeedLimitArray'),)

    def set_up(self, settings: Settings) -> None:
        self._element = self.element('state_sensor_ros/msg/SpeedLimit', {
            **{name: Given(name) for name in ('name', 'frame_id', 'id')},
            'pose': pose(SIGN_POSES), 'speed_limit': Slot(SPEED_LIMITS, 0)})
        self._head = MessageInstance(self.message(
            self.topics[0].type_name, {'header': header(settings.global_frame)}), {})

    def key(self, now: encoding.FrameToSend) -> object:
        """Return the signs."""
        data = frames.data_of(now.frame)
        return None if data is None else (data.classes.tobytes(), data.ids.tobytes())

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock | None:
        data, actors = frames.data_of(now.frame), now.actor_list.actors
        if data is None:
            return None
        rows = np.flatnonzero(data.classes == frames.SIGN)
        return encoding.MessageBlock([self._head, *[
            MessageInstance(self._element, {
                'name': actors[i].name, 'frame_id': actors[i].frame_id, 'id': int(data.ids[i])})
            for i in rows.tolist()]], dict.fromkeys((SIGN_POSES, SPEED_LIMITS), rows),
            self.topics, is_array=True)

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        """Add poses and limits; rows of other actors are not used."""
        data = frames.data_of(now.frame)
        if data is not None:
            poses = now.frame.kinematics[:, :7].copy()
            # Displays take unit quaternions only.
            signs = now.usable & (data.classes == frames.SIGN)
            poses[signs, 3:] = normalized(poses[signs, 3:])
            numbers |= {SIGN_POSES: poses, SPEED_LIMITS: data.speed_limits[:, None]}


CLASSES_TOPIC: Final = Topic(
    '~/camera/segmentation_classes', 'state_sensor_ros/msg/SegmentationClassArray', LATCHED)
# Last words of the topics of each kind of image, and encodings.
_WORDS: Final = {RGB: ('image',), DEPTH: ('depth',),
                 SEGMENTATION: ('segmentation', 'segmentation_color')}
_ENCODINGS: Final = {'image': 'rgb8', 'depth': '32FC1', 'segmentation': 'mono8',
                     'segmentation_color': 'rgb8'}
INFO: Final = 'camera_info'
_COUNT: Final = struct.Struct('<I')
_FULL_CIRCLE_HALF_DEG: Final = 180.0


def camera_topic(camera: str, word: str) -> Topic:
    """Return a topic of a camera; ``word``: such as ``image``, or :data:`INFO`."""
    return Topic(f'~/camera/{camera}/{word}',
                 f'sensor_msgs/msg/{"CameraInfo" if word == INFO else "Image"}')


class ImageEncoder(encoding.TopicEncoder):
    """One message for each image of a dataset; only images of topics with a reader are decoded."""

    # cameras: those of the recording, which have topics.

    def __init__(self, settings: Settings, definitions: Definitions, report: Report,
                 cameras: Sequence[dataset.Camera] = ()) -> None:
        super().__init__(settings, definitions, report)
        self.topics = tuple(dict.fromkeys(
            camera_topic(camera.name, word) for camera in cameras for kind in camera.kinds
            for word in (*_WORDS[kind], INFO)))
        if any(SEGMENTATION in camera.kinds for camera in cameras):
            self.topics += (CLASSES_TOPIC,)
        self._image = self.message('sensor_msgs/msg/Image', {
            'header': header(Given('frame')),
            **{name: Given(name) for name in ('height', 'width', 'encoding', 'step')}})
        # Without a field of view the matrices are zero, which means that they are unknown.
        focus, x, y, one = (Given(name) for name in ('focus', 'x', 'y', 'one'))
        self._info = self.message('sensor_msgs/msg/CameraInfo', {
            'header': header(Given('frame')), 'height': Given('height'),
            'width': Given('width'), 'distortion_model': 'plumb_bob', 'd': [0.0] * 5,
            'k': [focus, 0.0, x, 0.0, focus, y, 0.0, 0.0, one],
            'r': [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            'p': [focus, 0.0, x, 0.0, 0.0, focus, y, 0.0, 0.0, 0.0, one, 0.0]})
        self._legend = self.message(CLASSES_TOPIC.type_name, {
            'header': header(Given('frame')),
            'classes': [{'tag': tag, 'name': name, 'color': {
                **dict(zip('rgb', (value / 255.0 for value in color), strict=True)), 'a': 1.0}}
                for tag, (name, color) in enumerate(
                    zip(dataset.CLASS_NAMES, dataset.CLASS_COLORS, strict=True))]})
        self._is_legend_sent = False

    def messages(self, now: encoding.FrameToSend) -> encoding.Messages:
        """Return the images of a frame, and before the first segmentation its legend."""
        data, described = frames.data_of(now.frame), set[Topic]()
        found = encoding.Messages()
        for image in () if data is None else data.images:
            givens = {'frame': optical_frame(now.actor_list.actors[0].frame_id, image.camera)}
            if image.kind == SEGMENTATION and not self._is_legend_sent:
                self._is_legend_sent = True
                found.append((CLASSES_TOPIC, encoding.stamped(
                    [MessageInstance(self._legend, givens)], now.stamp_ns)))
            try:
                found += self._encoded(image, givens, now, described)
            except DecodeError as error:
                self._report('image', str(error))
        return found

    def _encoded(self, image: dataset.CameraImage, givens: dict[str, Any],
                 now: encoding.FrameToSend, described: set[Topic]
                 ) -> Iterator[tuple[Topic, bytes]]:
        """Encode an image for the topics with subscriptions; once for each camera its info."""
        topics = {word: topic for word in (*_WORDS[image.kind], INFO) if now.subscriptions.has(
            topic := camera_topic(image.camera, word)) and topic not in described}
        if not topics:
            return
        pixels = dataset.decode(image)
        givens |= {'height': pixels.shape[0], 'width': pixels.shape[1]}
        for word, topic in topics.items():
            if word == INFO:
                described.add(topic)
                yield topic, encoding.stamped(
                    [self._info_of(givens, image.fov_deg)], now.stamp_ns)
            else:
                shown = dataset.colored(pixels) if word == 'segmentation_color' else pixels
                head = encoding.stamped([MessageInstance(self._image, {
                    **givens, 'encoding': _ENCODINGS[word], 'step': shown.nbytes // len(shown)})],
                    now.stamp_ns)
                # The count of the pixels, which are the last field, is the last word of the head.
                yield topic, b''.join((head[:-_COUNT.size], _COUNT.pack(shown.nbytes),
                                       shown.tobytes()))

    def _info_of(self, givens: dict[str, Any], fov_deg: float) -> MessageInstance:
        focus = x = y = one = 0.0
        if 0.0 < fov_deg < _FULL_CIRCLE_HALF_DEG:
            x, y, one = givens['width'] / 2.0, givens['height'] / 2.0, 1.0
            focus = x / math.tan(math.radians(fov_deg) / 2.0)
        return MessageInstance(
            self._info, {**givens, 'focus': focus, 'x': x, 'y': y, 'one': one})


def carla_encoders(
        cameras: Sequence[dataset.Camera] | None) -> tuple[encoding.NewTopicEncoder, ...]:
    """Return the topics of a dataset with cameras, or of a stream."""
    if cameras is None:
        return PlayerStatusEncoder, AutopilotEncoder, SpeedLimitsEncoder
    return (PlayerStatusEncoder, ControlEncoder, SpeedLimitsEncoder,
            partial(ImageEncoder, cameras=cameras))


Pose: TypeAlias = tuple[float, ...]  # x y z m, roll pitch yaw rad
_OPTICAL: Final[Pose] = (0.0, 0.0, 0.0, -math.pi / 2.0, 0.0, -math.pi / 2.0)


def optical_frame(player_frame: str, camera: str) -> str:
    """Return the frame of a camera's images: z forward, x right, y down (REP-103)."""
    return f'{player_frame}/camera_{camera}_optical'


def camera_transforms(cameras: Iterable[dataset.Camera],
                      settings: Settings) -> tuple[StaticTransform, ...]:
    """Return the frames of the cameras on the player, none unless ``camera_tf`` is true."""
    # cameras: of a recording; without any, those of ``camera_poses``. A pose that is unknown is
    # that of the player.
    own = settings.of(CarlaParameters)
    if not own.camera_tf:
        return ()
    player = Registry(settings).first_frame_id(frames.CLASSES[frames.PLAYER])
    offset: Pose = (0.0,) * 6
    # With another ego tag the player has a frame of its own.
    if settings.ego_frame and settings.ego_tag.lower() in frames.PLAYER_TAGS:
        player = settings.ego_frame
        # CARLA has no wheels: base_link is at the origin unless its place is given.
        if math.isfinite(settings.base_link_xyz[0]):
            offset = (*settings.base_link_xyz, 0.0, 0.0, 0.0)
    given = {camera: pose for i, camera in enumerate(dataset.CAMERAS)
             if any(pose := own.camera_poses[6 * i:6 * i + 6])}
    transforms = []
    for camera in tuple(cameras) or tuple(map(dataset.Camera, dataset.CAMERAS)):
        place = given.get(camera.name, camera.pose or (0.0,) * 6)
        optical = optical_frame(player, camera.name)
        body = optical.removesuffix('_optical')
        transforms += [
            StaticTransform(player, body, [
                number - shift for number, shift in zip(place, offset, strict=True)]),
            StaticTransform(body, optical, _OPTICAL)]
    return tuple(transforms)
