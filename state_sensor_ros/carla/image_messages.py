# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Images of a dataset, and the legend of its segmentation, as messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import struct

from state_sensor_ros.carla.carla_data import EncodedImage
from state_sensor_ros.carla.carla_topics import (
    CLASSES_TOPIC,
    COLORED_TOPIC,
    ENCODINGS,
    IMAGE,
    IMAGE_TOPICS,
)
from state_sensor_ros.carla.images import (
    CLASS_COLORS,
    CLASS_NAMES,
    decode_depth,
    decode_rgb,
    decode_segmentation,
    DecodedImage,
    DEPTH,
    RGB,
    SEGMENTATION,
)
from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import Given, MESSAGE_PHASE, MessageInstance, Template
from state_sensor_ros.encode.numbers import stamp_numbers
from state_sensor_ros.encode.static_frame import optical_frame
from state_sensor_ros.encode.tables import given_header, header, STAMP
from state_sensor_ros.encode.topics import Demand, Topic
from state_sensor_ros.errors import DecodeError, EncodeError

_BYTES_A_PIXEL = dict(ENCODINGS.values())
_COUNT = struct.Struct('<I')
# Bounds the memory when the size of the images changes often.
_MAX_HEADS = 64


class ImageMessages:
    """
    One message for each image; only images of topics with a subscriber are decoded.

    :param report: called with a kind and a line about an image that cannot be decoded.
    """

    def __init__(self, definitions: Definitions, report: Callable[[str, str], None]) -> None:
        self._report = report
        if definitions[IMAGE][-1].name != 'data':
            raise EncodeError(IMAGE, f'{definitions[IMAGE][-1].name} as the last field', 'data')
        # The pixels are the last field, so the head is laid out once and the pixels are appended.
        self.image = Template(definitions, IMAGE, {
            'header': header(Given('frame')),
            **{name: Given(name) for name in ('height', 'width', 'encoding', 'step')}},
            is_message=True)
        self.classes = Template(definitions, CLASSES_TOPIC.type_name, {
            'header': given_header(Given('frame')),
            'classes': [{'tag': tag, 'name': name,
                         'color': {**dict(zip('rgb', (value / 255.0 for value in color),
                                              strict=True)), 'a': 1.0}}
                        for tag, (name, color) in enumerate(
                            zip(CLASS_NAMES, CLASS_COLORS, strict=True))]}, is_message=True)
        self._is_legend_sent = False
        # Heads of messages by frame, encoding, width and height.
        self._heads: dict[tuple[str, str, int, int], PatchBuffer] = {}

    def encode(self, images: tuple[EncodedImage, ...], player_frame: str, stamp_ns: int,
               demand: Demand) -> Iterator[tuple[Topic, bytes]]:
        """
        Encode the images that ``demand`` names, and before the first segmentation its legend.

        :param player_frame: frame of the player, which carries the cameras.
        :param stamp_ns: ns since the epoch of the messages' clock.
        """
        stamp = stamp_numbers(stamp_ns)
        for image in images:
            frame_id = optical_frame(player_frame, image.camera)
            if image.kind == SEGMENTATION and not self._is_legend_sent:
                self._is_legend_sent = True
                sec, nanosec = stamp.tolist()
                yield CLASSES_TOPIC, self.classes.lay_out(
                    {'frame': frame_id, 'sec': sec, 'nanosec': nanosec}, MESSAGE_PHASE).data
            try:
                for topic, encoding, decoded in _decoded_images(image, demand):
                    head = self._head(frame_id, encoding, decoded.width, decoded.height)
                    head.patch(STAMP, stamp)
                    (begin,), (end,) = head.message_bounds()
                    # The count of the pixels is the last word of the head.
                    yield topic, b''.join((head.tobytes(begin, end - _COUNT.size),
                                           _COUNT.pack(len(decoded.data)), decoded.data))
            except DecodeError as error:
                self._report('image', str(error))

    def _head(self, frame_id: str, encoding: str, width: int, height: int) -> PatchBuffer:
        key = frame_id, encoding, width, height
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= _MAX_HEADS:
                self._heads.clear()
            head = self._heads[key] = PatchBuffer()
            head.update([MessageInstance(self.image, {
                'frame': frame_id, 'height': height, 'width': width, 'encoding': encoding,
                'step': width * _BYTES_A_PIXEL[encoding]})])
        return head


def _decoded_images(image: EncodedImage,
                    demand: Demand) -> Iterator[tuple[Topic, str, DecodedImage]]:
    topic, (encoding, _) = IMAGE_TOPICS[image.camera, image.kind], ENCODINGS[image.kind]
    if image.kind == RGB and demand.has_other(topic):
        yield topic, encoding, decode_rgb(image)
    elif image.kind == DEPTH and demand.has_other(topic):
        yield topic, encoding, decode_depth(image)
    elif image.kind == SEGMENTATION and any(map(demand.has_other, (topic, COLORED_TOPIC))):
        tags, colored = decode_segmentation(image)
        if demand.has_other(topic):
            yield topic, encoding, tags
        if demand.has_other(COLORED_TOPIC):
            yield COLORED_TOPIC, ENCODINGS[RGB][0], colored
