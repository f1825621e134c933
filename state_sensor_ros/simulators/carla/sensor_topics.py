# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Images, intrinsics of cameras, legends of segmentations and points, as messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import math
import struct

from state_sensor_ros.simulators import DecodeError, Report, Settings
from state_sensor_ros.simulators.carla.carla_data import data_of, EncodedImage
from state_sensor_ros.simulators.carla.frame_payload import decode_points, POINT_BYTES
from state_sensor_ros.simulators.carla.images import (
    CLASS_COLORS,
    CLASS_NAMES,
    colored,
    decode_depth,
    decode_rgb,
    decode_segmentation,
    DecodedImage,
    image_size,
)
from state_sensor_ros.simulators.carla.parameters import CarlaParameters
from state_sensor_ros.simulators.carla.sensors import (
    lidar_frame,
    optical_frame,
    POINTS,
    RGB,
    SEGMENTATION,
    Sensor,
)
from state_sensor_ros.simulators.carla.topic_names import (
    CAMERA_INFO,
    CLASSES_TOPIC,
    colored_topic,
    ENCODINGS,
    IMAGE,
    image_topic,
    info_topic,
    POINT_CLOUD,
    points_topic,
    sensor_topics,
)
from state_sensor_ros.simulators.own_topics import (
    Definitions,
    ENCAPSULATION,
    FrameToSend,
    Given,
    given_header,
    given_stamp,
    MESSAGE_PHASE,
    Messages,
    Subscriptions,
    Template,
    Topic,
    TopicEncoder,
)

_BYTES_A_PIXEL = dict(ENCODINGS.values())
_COUNT = struct.Struct('<I')
# Seconds and nanoseconds.
_STAMP = struct.Struct('<iI')
# Bounds the memory when the size of the images changes often.
_MAX_HEADS = 64
# Frames after which an image of a slow camera can still get the stamp of its own frame.
_MAX_STAMPS = 64
_FULL_CIRCLE_HALF_DEG = 180.0
_DECODERS = {RGB: decode_rgb, SEGMENTATION: decode_segmentation}


class ImageEncoder(TopicEncoder):
    """One message for each image; only images of topics with a reader are decoded."""

    # sensors: cameras that have topics; images of others are dropped. None: all have.

    def __init__(self, settings: Settings, definitions: Definitions, report: Report,
                 sensors: Sequence[Sensor] | None = None) -> None:
        super().__init__(settings, definitions, report)
        self._has_all_topics = sensors is None
        # Of all cameras, degrees; 0 leaves that of each image.
        self._fov_deg = settings.of(CarlaParameters).camera_fov
        self.topics = sensor_topics(
            [sensor for sensor in sensors or () if sensor.kind != POINTS])
        # The pixels are the last field, so the head is laid out once and the pixels are appended.
        self.image = self.message(IMAGE, {
            'header': given_header(Given('frame')),
            **{name: Given(name) for name in ('height', 'width', 'encoding', 'step')}})
        # Without a field of view the matrices are zero, which means that they are unknown.
        focus, x, y, one = (Given(name) for name in ('focus', 'x', 'y', 'one'))
        self.info = self.message(CAMERA_INFO, {
            'header': given_header(Given('frame')), 'height': Given('height'),
            'width': Given('width'), 'distortion_model': 'plumb_bob', 'd': [0.0] * 5,
            'k': [focus, 0.0, x, 0.0, focus, y, 0.0, 0.0, one],
            'r': [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            'p': [focus, 0.0, x, 0.0, 0.0, focus, y, 0.0, 0.0, 0.0, one, 0.0]})
        self.classes = self.message(CLASSES_TOPIC.type_name, {
            'header': given_header(Given('frame')),
            'classes': [{'tag': tag, 'name': name,
                         'color': {**dict(zip('rgb', (value / 255.0 for value in color),
                                              strict=True)), 'a': 1.0}}
                        for tag, (name, color) in enumerate(
                            zip(CLASS_NAMES, CLASS_COLORS, strict=True))]})
        self._is_legend_sent = False
        # Messages with the stamp 0, by their givens.
        self._heads: dict[tuple[object, ...], bytes] = {}
        self._stamps: dict[int, int] = {}
        self._reported: set[tuple[str, str]] = set()

    def is_wanted(self, settings: Settings, subscriptions: Subscriptions) -> bool:
        """Return True: stamps of frames are kept for images that are received later."""
        return True

    def messages(self, now: FrameToSend) -> Messages:
        """Return the images of a frame, and before the first segmentation its legend."""
        data = data_of(now.frame)
        if data is None:
            return []
        self._note_frame(data.frame_number, now.stamp_ns)
        if not data.sensor_data or not data.has_player:
            return []
        for error in data.sensor_data.errors:
            self._report('sensor', str(error))
        return list(self._encoded(data.sensor_data.images, now.actor_list.actors[0].frame_id,
                                  now.stamp_ns, now.subscriptions))

    def _note_frame(self, frame_number: int, stamp_ns: int) -> None:
        """Keep the stamp of a frame for images of it that are received later."""
        # stamp_ns: ns since the epoch of the messages' clock.
        if self._stamps and stamp_ns < next(reversed(self._stamps.values())):
            self._stamps.clear()
        self._stamps[frame_number] = stamp_ns
        if len(self._stamps) > _MAX_STAMPS:
            del self._stamps[next(iter(self._stamps))]

    def _encoded(self, images: tuple[EncodedImage, ...], player_frame: str, stamp_ns: int,
                 subscriptions: Subscriptions) -> Iterator[tuple[Topic, bytes]]:
        """Encode the images with subscriptions, and before the first segmentation its legend."""
        # stamp_ns: stamp of that frame, ns since the epoch of the messages' clock; an image of an
        # earlier frame gets the stamp of that one.
        described: dict[tuple[str, int], tuple[int, int]] = {}
        for image in images:
            if not self._has_topic(image):
                continue
            own_ns = stamp_ns if image.frame_number is None else \
                self._stamps.get(image.frame_number, stamp_ns)
            stamp = _STAMP.pack(*given_stamp(own_ns).values())
            frame_id = optical_frame(player_frame, image.camera)
            if image.kind == SEGMENTATION and not self._is_legend_sent:
                self._is_legend_sent = True
                yield CLASSES_TOPIC, self._message(self.classes, {'frame': frame_id}, stamp)
            try:
                for topic, encoding, decoded in _decoded_images(image, subscriptions):
                    yield topic, self._image(frame_id, encoding, decoded, stamp)
                topic = info_topic(image.camera)
                if subscriptions.has(topic):
                    size, key = image_size(image), (image.camera, own_ns)
                    first = described.get(key)
                    if first is None:
                        described[key] = size
                        yield topic, self._info(frame_id, size, image.fov_deg, stamp)
                    elif first != size:
                        self._report_once(image, f'{size[0]} x {size[1]} pixels',
                                          f'{first[0]} x {first[1]}, as in the camera_info of the '
                                          'other images of this camera')
            except DecodeError as error:
                self._report('image', str(error))

    def _has_topic(self, image: EncodedImage) -> bool:
        if self._has_all_topics or image_topic(image.camera, image.kind) in self.topics:
            return True
        self._report_once(image, 'no topic', 'a sensor of config_file; its images are dropped')
        return False

    def _report_once(self, image: EncodedImage, found: str, expected: str) -> None:
        key = image.camera, image.kind
        if key not in self._reported:
            self._reported.add(key)
            self._report('image', f'{image.camera} {image.kind} image: found {found}; expected '
                         f'{expected} (reported once)')

    def _image(self, frame_id: str, encoding: str, decoded: DecodedImage,
               stamp: bytes) -> bytes:
        head = self._message(self.image, {
            'frame': frame_id, 'height': decoded.height, 'width': decoded.width,
            'encoding': encoding, 'step': decoded.width * _BYTES_A_PIXEL[encoding]}, stamp)
        # The count of the pixels is the last word of the head.
        return b''.join((head[:-_COUNT.size], _COUNT.pack(len(decoded.data)), decoded.data))

    def _info(self, frame_id: str, size: tuple[int, int], fov_deg: float,
              stamp: bytes) -> bytes:
        (width, height), fov_deg = size, self._fov_deg or fov_deg
        focus = x = y = one = 0.0
        if 0.0 < fov_deg < _FULL_CIRCLE_HALF_DEG:
            focus = width / (2.0 * math.tan(math.radians(fov_deg) / 2.0))
            x, y, one = width / 2.0, height / 2.0, 1.0
        return self._message(self.info, {
            'frame': frame_id, 'height': height, 'width': width, 'focus': focus, 'x': x, 'y': y,
            'one': one}, stamp)

    def _message(self, template: Template, givens: dict[str, str | int | float],
                 stamp: bytes) -> bytes:
        """Return a message, laid out at the first time only, with a stamp."""
        key = template, *givens.values()
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= _MAX_HEADS:
                self._heads.clear()
            head = self._heads[key] = bytes(template.lay_out(
                {**givens, 'sec': 0, 'nanosec': 0}, MESSAGE_PHASE).data)
        # The stamp is the first field of the header, which is the first field.
        begin = len(ENCAPSULATION)
        return b''.join((head[:begin], stamp, head[begin + _STAMP.size:]))


def _decoded_images(image: EncodedImage,
                    subscriptions: Subscriptions) -> Iterator[tuple[Topic, str, DecodedImage]]:
    topic, (encoding, _) = image_topic(image.camera, image.kind), ENCODINGS[image.kind]
    in_colors = colored_topic(image.camera)
    is_colored = image.kind == SEGMENTATION and subscriptions.has(in_colors)
    if not is_colored and not subscriptions.has(topic):
        return
    decoded = _DECODERS.get(image.kind, decode_depth)(image)
    if subscriptions.has(topic):
        yield topic, encoding, decoded
    if is_colored:
        yield in_colors, ENCODINGS[RGB][0], colored(decoded)


_FLOAT32 = 7
_FLOAT_BYTES = 4
# What follows the count of the points: none of them, and whether all are finite.
_END = struct.Struct('<I?')
_N_POINTS = struct.Struct('<I')


class PointEncoder(TopicEncoder):
    """One message for the points of each lidar that has a reader."""

    # sensors: lidars that have topics; points of others are dropped. None: all have.

    def __init__(self, settings: Settings, definitions: Definitions, report: Report,
                 sensors: Sequence[Sensor] | None = None) -> None:
        super().__init__(settings, definitions, report)
        self._has_all_topics = sensors is None
        self.topics = sensor_topics(
            [sensor for sensor in sensors or () if sensor.kind == POINTS])
        self.points = self.message(POINT_CLOUD, {
            'header': given_header(Given('frame')), 'height': 1, 'width': Given('width'),
            'fields': [{'name': name, 'offset': _FLOAT_BYTES * i, 'datatype': _FLOAT32, 'count': 1}
                       for i, name in enumerate('xyz')],
            'point_step': POINT_BYTES, 'row_step': Given('row_step'), 'is_dense': True})

    def is_wanted(self, settings: Settings, subscriptions: Subscriptions) -> bool:
        return self._has_all_topics or super().is_wanted(settings, subscriptions)

    def messages(self, now: FrameToSend) -> Messages:
        data, messages = data_of(now.frame), Messages()
        if data is None or not data.has_player:
            return messages
        player_frame = now.actor_list.actors[0].frame_id
        for points in data.sensor_data.points:
            topic = points_topic(points.lidar)
            if not now.subscriptions.has(topic) or not (
                    self._has_all_topics or topic in self.topics):
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
                head[:-_END.size], _N_POINTS.pack(len(rows)), rows,
                head[_N_POINTS.size - _END.size:]))))
        return messages
