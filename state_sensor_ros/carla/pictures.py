# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Images of a dataset, and what the values of its segmentation mean, as messages.

May know: sensor_msgs, SegmentationClassArray. Must not know: how an image
is coded (carla/images.py), who listens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import struct

from state_sensor_ros.carla.extension import EncodedImage
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
from state_sensor_ros.carla.topics import (
    CLASSES_TOPIC,
    COLORED_TOPIC,
    ENCODINGS,
    IMAGE,
    IMAGE_TOPICS,
)
from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import Given, MESSAGE_PHASE, MessageInstance, Template
from state_sensor_ros.encode.numbers import stamp_numbers
from state_sensor_ros.encode.static_frame import optical_frame
from state_sensor_ros.encode.tables import given_header, header, STAMP
from state_sensor_ros.encode.topics import Topic
from state_sensor_ros.errors import DecodeError, EncodeError

_BYTES_A_PIXEL = dict(ENCODINGS.values())
_COUNT = struct.Struct('<I')
# Images of a camera that changed its size all the time must not fill the memory.
_MAX_HEADS = 64


class Pictures:
    """
    One message for each image, decoded only where somebody looks.

    :param report: called with a kind and a line about an image that cannot be decoded.
    """

    def __init__(self, definitions: Definitions, report: Callable[[str, str], None]) -> None:
        self._report = report
        if definitions[IMAGE][-1].name != 'data':
            raise EncodeError(IMAGE, f'{definitions[IMAGE][-1].name} as the last field', 'data')
        # The pixels are the last field, so they can be put behind what is laid out.
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
        # Heads of messages by frame, encoding and size, which is that of all images of a camera.
        self._heads: dict[tuple[str, str, int, int], PatchBuffer] = {}

    def encode(self, images: tuple[EncodedImage, ...], player_frame: str, stamp_ns: int,
               is_wanted: Callable[[Topic], bool]) -> Iterator[tuple[Topic, bytes]]:
        """Encode the images that are wanted, and before the first segmentation its legend."""
        stamp = stamp_numbers(stamp_ns)
        for image in images:
            frame_id = optical_frame(player_frame, image.camera)
            if image.kind == SEGMENTATION and not self._is_legend_sent:
                self._is_legend_sent = True
                sec, nanosec = stamp.tolist()
                yield CLASSES_TOPIC, self.classes.lay_out(
                    {'frame': frame_id, 'sec': sec, 'nanosec': nanosec}, MESSAGE_PHASE).data
            try:
                for topic, encoding, decoded in _decoded(image, is_wanted):
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


def _decoded(image: EncodedImage, is_wanted: Callable[[Topic], bool],
             ) -> Iterator[tuple[Topic, str, DecodedImage]]:
    topic, (encoding, _) = IMAGE_TOPICS[image.camera, image.kind], ENCODINGS[image.kind]
    if image.kind == RGB and is_wanted(topic):
        yield topic, encoding, decode_rgb(image)
    elif image.kind == DEPTH and is_wanted(topic):
        yield topic, encoding, decode_depth(image)
    elif image.kind == SEGMENTATION and (is_wanted(topic) or is_wanted(COLORED_TOPIC)):
        tags, colored = decode_segmentation(image)
        if is_wanted(topic):
            yield topic, encoding, tags
        if is_wanted(COLORED_TOPIC):
            yield COLORED_TOPIC, ENCODINGS[RGB][0], colored
