# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Images of the dataset: depth in meters, classes in tags and colors, and their messages."""

import io
import json
import math
import struct
import zlib

from carla_example import EXAMPLE
from hypothesis import given
from hypothesis import strategies as st
from message_store import read
import numpy as np
from PIL import Image, ImageFile
import pytest

from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla import images
from state_sensor_ros.simulators.carla.carla_data import EncodedImage
from state_sensor_ros.simulators.carla.decoder import DatasetDecoder
from state_sensor_ros.simulators.carla.frame_payload import DatasetPayload, SensorFile
from state_sensor_ros.simulators.carla.images import (
    CLASS_COLORS,
    CLASS_NAMES,
    colored,
    decode_depth,
    decode_rgb,
    decode_segmentation,
)
from state_sensor_ros.simulators.carla.sensors import CAMERAS
from state_sensor_ros.simulators.carla.topic_names import image_topic
from state_sensor_ros.simulators.carla.topics import carla_encoders
from state_sensor_ros.source import ignore
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING, Subscriptions


def png(pixels, **options):
    file = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(file, 'PNG', **options)
    return file.getvalue()


def image(pixels, camera='central', kind='rgb'):
    return EncodedImage(camera, kind, png(pixels))


@given(st.lists(st.tuples(*[st.integers(0, 255)] * 3), min_size=6, max_size=6))
def test_carla_depth_counts_from_red_to_blue(pixels):
    decoded = decode_depth(image(np.array(pixels).reshape(2, 3, 3)))
    assert (decoded.width, decoded.height) == (3, 2)
    expected = [np.float32(1000.0 * (r + 256 * g + 65536 * b) / 16777215) for r, g, b in pixels]
    assert np.frombuffer(decoded.data, '<f4').tolist() == expected


def test_carla_segmentation_has_the_thirteen_classes():
    red = np.arange(14).reshape(2, 7)
    pixels = np.stack((red, np.full((2, 7), 200), np.full((2, 7), 9)), axis=-1)
    tags = decode_segmentation(image(pixels, kind='segmentation'))
    assert list(tags.data) == list(range(14))
    colors = np.frombuffer(colored(tags).data, np.uint8).reshape(14, 3).tolist()
    assert list(map(tuple, colors)) == [*CLASS_COLORS, (255, 255, 255)]
    assert len(set(CLASS_COLORS)) == len(CLASS_NAMES) == 13
    assert CLASS_NAMES[10] == 'Vehicles'


def chunk(name, data):
    return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))


def png_16_bits(values, color_type):
    """Return a PNG file of 16 bits, which Pillow cannot write; ``values`` (H, W, channels)."""
    height, width, _ = values.shape
    rows = b''.join(b'\0' + row.astype('>u2').tobytes() for row in values)
    header = struct.pack('>IIBBBBB', width, height, 16, color_type, 0, 0, 0)
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + chunk(b'IDAT', zlib.compress(rows))
            + chunk(b'IEND', b''))


VALUES = np.array([[(0, 255, 256), (258, 32768, 65535)]])


def png_palette():
    file = io.BytesIO()
    picture = Image.frombytes('P', (3, 1), bytes([2, 0, 1]))
    picture.putpalette(bytes(range(10, 19)))
    picture.save(file, 'PNG')
    return file.getvalue()


@pytest.mark.parametrize(('data', 'expected'), [
    (png([[(1, 2, 3, 4), (5, 6, 7, 8)]]), [1, 2, 3, 5, 6, 7]),
    (png([[9, 8]]), [9, 9, 9, 8, 8, 8]),
    # The high bytes of 16 bits.
    (png_16_bits(VALUES, 2), [0, 0, 1, 1, 128, 255]),
    (png_16_bits(VALUES[..., 1:2], 0), [0, 0, 0, 128, 128, 128]),
    (png_palette(), [16, 17, 18, 10, 11, 12, 13, 14, 15])],
    ids=['alpha', 'gray', 'color of 16 bits', 'gray of 16 bits', 'palette'])
def test_carla_rgb_of_every_kind_of_png(data, expected):
    assert list(decode_rgb(EncodedImage('left', 'rgb', data)).data) == expected


@pytest.mark.parametrize('mode', ['RGB', 'RGBA'])
def test_carla_images_are_equal_without_the_fast_library(mode, monkeypatch):
    pixels = np.random.default_rng(2).integers(0, 256, (7, 5, len(mode)))
    encoded_image = image(pixels)
    fast = [decode_rgb(encoded_image), decode_depth(encoded_image),
            decode_segmentation(encoded_image)]
    monkeypatch.setattr(images, 'decode_image_png_u8', None)
    assert fast == [decode_rgb(encoded_image), decode_depth(encoded_image),
                    decode_segmentation(encoded_image)]
    assert fast[0].data == pixels[..., :3].astype(np.uint8).tobytes()


GOOD = png(np.random.default_rng(1).integers(0, 255, (20, 30, 3)))


@pytest.mark.parametrize('data', [
    b'', b'no image', GOOD[:100], GOOD[:-60], GOOD[:60] + b'\0\0\0\0' + GOOD[64:],
    # A header of 100000 x 100000 pixels.
    GOOD[:16] + struct.pack('>II', 100000, 100000) + GOOD[24:],
    GOOD[:16] + struct.pack('>II', 8000, 8000) + GOOD[24:],
    GOOD[:16] + struct.pack('>II', 0, 20) + GOOD[24:],
    # A second header, which Pillow follows: 10 x 10 pixels, and the pixels of 30 x 20.
    png(np.zeros((10, 10, 3)))[:33] + GOOD[8:]])
def test_carla_bad_image_is_refused(data):
    with pytest.raises(DecodeError, match=r'^left rgb image: found .+; expected .+') as error:
        decode_rgb(EncodedImage('left', 'rgb', data))
    assert ' object at 0x' not in str(error.value)


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_carla_damaged_image_raises_nothing_else(place, value):
    data = bytearray(GOOD)
    data[place] = value
    try:
        decoded = decode_rgb(EncodedImage('left', 'rgb', bytes(data)))
    except DecodeError:
        return
    assert len(decoded.data) == 3 * decoded.width * decoded.height


def five_images(size=200):
    """Return the images of a frame, with noise that compresses like that of the dataset."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:size, :size]
    views = [np.stack([127 + 60 * np.sin(x / 20 + i) + 50 * np.cos(y / 15)
                       + rng.normal(0, 3, (size, size)) for i in range(3)], -1).clip(0, 255)
             for _ in range(3)]
    counts = ((1000 * np.exp(-y / 40) + x * 0.01) / 1000 * (2 ** 24 - 1)).astype(np.uint32)
    depth = np.stack((counts & 255, (counts >> 8) & 255, (counts >> 16) & 255), -1)
    classes = np.zeros((size, size, 3))
    classes[..., 0] = (x // 20 + y // 30) % 13
    return (*[image(view, camera) for camera, view in zip(CAMERAS, views, strict=True)],
            image(depth, kind='depth'), image(classes, kind='segmentation'))


def packed(one, fov_deg=math.nan):
    return SensorFile(one.camera, one.kind, fov_deg, memoryview(one.data))


def dataset_payload(measurement, sensors):
    return DatasetPayload(memoryview(measurement), list(sensors)).pack()


def carla_encoder(report=ignore, sensors=None, **settings):
    return Encoder(Settings(**settings), load_definitions(), report, carla_encoders(sensors))


def encoded(sent, subscriptions=EVERYTHING, report=None, encoder=None):
    """Return the messages of a frame of the dataset with the images ``sent``."""
    (decoded,) = DatasetDecoder().decode(dataset_payload(
        json.dumps(EXAMPLE).encode(), map(packed, sent)))
    encoder = encoder or carla_encoder(report or ignore)
    actor_list = Registry().update(decoded.frame)
    return {topic.name: read(data, topic.type_name)
            for topic, data in encoder.encode(
                decoded.frame, actor_list, 7_000_000_009, subscriptions)
            if topic.name.startswith('~/camera')}


def test_carla_images_as_messages():
    sent = five_images(8)
    messages = encoded(sent)
    assert sorted(messages) == [
        '~/camera/central/camera_info', '~/camera/central/depth', '~/camera/central/image',
        '~/camera/central/segmentation', '~/camera/central/segmentation_color',
        '~/camera/left/camera_info', '~/camera/left/image', '~/camera/right/camera_info',
        '~/camera/right/image', '~/camera/segmentation_classes']
    for topic, encoding, step in (('left/image', 'rgb8', 24), ('central/depth', '32FC1', 32),
                                  ('central/segmentation', 'mono8', 8),
                                  ('central/segmentation_color', 'rgb8', 24)):
        message = messages[f'~/camera/{topic}']
        assert (message.header.stamp.sec, message.header.stamp.nanosec) == (7, 9)
        assert message.header.frame_id == f'player/camera_{topic.split("/")[0]}_optical'
        assert (message.height, message.width, message.encoding) == (8, 8, encoding)
        assert (message.step, message.is_bigendian, len(message.data)) == (step, 0, 8 * step)
    assert messages['~/camera/left/image'].data.tobytes() == decode_rgb(sent[1]).data
    assert messages['~/camera/central/depth'].data.tobytes() == decode_depth(sent[3]).data
    assert messages['~/camera/central/segmentation'].data.tobytes() == decode_segmentation(
        sent[4]).data


def test_carla_legend_names_the_thirteen_classes_once():
    encoder = carla_encoder()
    sent = five_images(8)
    legend = encoded(sent, encoder=encoder)['~/camera/segmentation_classes'].classes
    assert [(entry.tag, entry.name) for entry in legend] == list(enumerate(CLASS_NAMES))
    assert legend[4].color.r == pytest.approx(230 / 255)
    assert all(entry.color.a == 1.0 for entry in legend)
    assert '~/camera/segmentation_classes' not in encoded(sent, encoder=encoder)


def test_carla_images_without_a_subscriber_are_not_decoded():
    only_left = Subscriptions.of([image_topic('left', 'rgb')])
    broken = EncodedImage('central', 'depth', b'broken')
    assert list(encoded([*five_images(4)[:3], broken], only_left)) == ['~/camera/left/image']


def test_carla_broken_image_leaves_the_others():
    reports = []
    messages = encoded([EncodedImage('right', 'rgb', b'broken'), *five_images(4)[:2]],
                       report=lambda kind, text: reports.append((kind, text)))
    assert sorted(messages) == [
        '~/camera/central/camera_info', '~/camera/central/image', '~/camera/left/camera_info',
        '~/camera/left/image']
    assert [kind for kind, _ in reports] == ['image']
    assert 'right rgb image: found 6 bytes' in reports[0][1]


def test_carla_usual_images_are_decoded_without_pillow(monkeypatch):
    """Pillow takes more than twice as long; the benchmark has the budget of five images."""

    def load(self):
        raise AssertionError('decoded by Pillow')

    sent = five_images()
    payload = dataset_payload(json.dumps(EXAMPLE).encode(), map(packed, sent))
    monkeypatch.setattr(ImageFile.ImageFile, 'load', load)
    (decoded,) = DatasetDecoder().decode(payload)
    messages = carla_encoder().encode(
        decoded.frame, Registry().update(decoded.frame), 0, EVERYTHING)
    assert sum(len(data) for _, data in messages) > 200 * 200 * (3 * 3 + 4 + 1 + 3)
    with pytest.raises(AssertionError, match='Pillow'):
        Image.open(io.BytesIO(sent[0].data)).load()
