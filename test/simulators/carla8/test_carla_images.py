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
import itertools
import json
import math
import struct

from carla_example import EXAMPLE
from hypothesis import given
from hypothesis import strategies as st
from message_store import read
import numpy as np
from paths import CARLA
from PIL import Image
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import checked_settings
from state_sensor_ros.simulators.carla.dataset import (
    Camera,
    CameraImage,
    CAMERAS,
    CLASS_COLORS,
    CLASS_NAMES,
    colored,
    decode,
    FileReader,
    image_views,
)
from state_sensor_ros.simulators.carla.topics import (
    camera_topic,
    camera_transforms,
    carla_encoders,
    INFO,
)
from state_sensor_ros.source import Faults
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING, Subscriptions

NUMBERS = itertools.count()


def png(pixels, **options):
    file = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(file, 'PNG', **options)
    return file.getvalue()


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """Return a function that makes an image of the content of a file."""
    folder = tmp_path_factory.mktemp('images')

    def make(data, camera='central', kind='rgb', fov_deg=math.nan):
        file = folder / f'{next(NUMBERS)}.png'
        file.write_bytes(data)
        return CameraImage(camera, kind, file, fov_deg)

    return make


@given(pixels=st.lists(st.tuples(*[st.integers(0, 255)] * 3), min_size=6, max_size=6))
def test_carla_depth_counts_from_red_to_blue(made, pixels):
    depth = decode(made(png(np.array(pixels).reshape(2, 3, 3)), kind='depth'))
    expected = [np.float32(1000.0 * (r + 256 * g + 65536 * b) / 16777215) for r, g, b in pixels]
    assert (depth.shape, depth.ravel().tolist()) == ((2, 3), expected)


def test_carla_segmentation_has_the_thirteen_classes(made):
    red = np.arange(14).reshape(2, 7)
    pixels = np.stack((red, np.full((2, 7), 200), np.full((2, 7), 9)), axis=-1)
    tags = decode(made(png(pixels), kind='segmentation'))
    assert tags.ravel().tolist() == list(range(14))
    assert list(map(tuple, colored(tags).reshape(14, 3).tolist())) == [
        *CLASS_COLORS, (255, 255, 255)]
    assert len(set(CLASS_COLORS)) == len(CLASS_NAMES) == 13
    assert CLASS_NAMES[10] == 'Vehicles'


def test_carla_rgb_drops_an_alpha_channel(made):
    assert decode(made(png([[(1, 2, 3, 4), (5, 6, 7, 8)]]))).ravel().tolist() == [1, 2, 3, 5, 6, 7]


def test_carla_image_of_16_bits_is_an_error(made):
    file = io.BytesIO()
    Image.fromarray(np.full((1, 2), 300, np.uint16)).save(file, 'PNG')
    with pytest.raises(DecodeError, match='found a 16-bit PNG; expected one of 8 bits'):
        decode(made(file.getvalue(), kind='depth'))


GOOD = png(np.random.default_rng(1).integers(0, 255, (20, 30, 3)))


@pytest.mark.parametrize('data', [
    b'', b'no image', GOOD[:100], GOOD[:60] + b'\0\0\0\0' + GOOD[64:],
    # A header of 8000 x 8000 pixels.
    GOOD[:16] + struct.pack('>II', 8000, 8000) + GOOD[24:]])
def test_carla_bad_image_is_refused(made, data):
    with pytest.raises(DecodeError, match=r'^left rgb image: found .+; expected .+'):
        decode(made(data, 'left'))


@given(place=st.integers(0, len(GOOD) - 1), value=st.integers(0, 255))
def test_carla_damaged_image_raises_nothing_else(made, place, value):
    data = bytearray(GOOD)
    data[place] = value
    try:
        pixels = decode(made(bytes(data)))
    except DecodeError:
        return
    assert pixels.shape[2] == 3


@pytest.fixture(scope='module')
def five_images(made):
    """Return the images of a frame of the dataset, 8 x 8 pixels of noise."""
    chance = np.random.default_rng(0)
    return [made(png(chance.integers(0, 13, (8, 8, 3))), camera, kind, 90.0) for camera, kind in (
        *((camera, 'rgb') for camera in CAMERAS), ('central', 'depth'),
        ('central', 'segmentation'))]


def encoder(report=lambda kind, text: None):
    cameras = (Camera('central', ('rgb', 'depth', 'segmentation')), Camera('left', ('rgb',)),
               Camera('right', ('rgb',)))
    return Encoder(Settings(), load_definitions(), report, carla_encoders(cameras))


def encoded(images, subscriptions=EVERYTHING, by=None):
    """Return the messages of a frame of the dataset with images."""
    frame = FileReader(Faults()).frame(json.dumps(EXAMPLE).encode(), tuple(images))
    return {topic.name.removeprefix('~/camera/'): read(data, topic.type_name)
            for topic, data in (by or encoder()).encode(
                frame, Registry().update(frame), 7_000_000_009, subscriptions)
            if topic.name.startswith('~/camera')}


def test_carla_images_as_messages(five_images):
    messages = encoded(five_images)
    assert sorted(messages) == [
        'central/camera_info', 'central/depth', 'central/image', 'central/segmentation',
        'central/segmentation_color', 'left/camera_info', 'left/image', 'right/camera_info',
        'right/image', 'segmentation_classes']
    central, left, _, depth, tags = map(decode, five_images)
    for topic, encoding, pixels in (('left/image', 'rgb8', left),
                                    ('central/depth', '32FC1', depth),
                                    ('central/image', 'rgb8', central),
                                    ('central/segmentation', 'mono8', tags),
                                    ('central/segmentation_color', 'rgb8', colored(tags))):
        message = messages[topic]
        assert (message.header.stamp.sec, message.header.stamp.nanosec) == (7, 9)
        assert message.header.frame_id == f'player/camera_{topic.split("/")[0]}_optical'
        assert (message.height, message.width, message.encoding) == (8, 8, encoding)
        assert (message.step, message.is_bigendian) == (pixels.nbytes // 8, 0)
        assert message.data.tobytes() == pixels.tobytes()
    info = messages['left/camera_info']
    assert (info.width, info.height, info.distortion_model) == (8, 8, 'plumb_bob')
    # 90 degrees: the focal length is half of the width.
    assert info.k.tolist() == pytest.approx([4, 0, 4, 0, 4, 4, 0, 0, 1])
    assert info.p.tolist() == pytest.approx([4, 0, 4, 0, 0, 4, 4, 0, 0, 0, 1, 0])


def test_carla_camera_info_without_a_field_of_view_is_unknown(made):
    [info] = encoded(
        [made(GOOD)], Subscriptions.of([camera_topic('central', INFO)])).values()
    assert (info.width, info.k.tolist(), info.p.tolist()) == (30, [0.0] * 9, [0.0] * 12)


def test_carla_legend_names_the_thirteen_classes_once(five_images):
    by = encoder()
    legend = encoded(five_images, by=by)['segmentation_classes'].classes
    assert [(entry.tag, entry.name) for entry in legend] == list(enumerate(CLASS_NAMES))
    assert legend[4].color.r == pytest.approx(230 / 255)
    assert all(entry.color.a == 1.0 for entry in legend)
    assert 'segmentation_classes' not in encoded(five_images, by=by)


def test_carla_images_without_a_subscriber_are_not_decoded(made, five_images):
    only_left = Subscriptions.of([camera_topic('left', 'image')])
    broken = made(b'broken', kind='depth')
    assert list(encoded([*five_images[:3], broken], only_left)) == ['left/image']


def test_carla_broken_image_leaves_the_others(made, five_images):
    reports = []
    messages = encoded([made(b'broken', 'right'), *five_images[:2]],
                       by=encoder(lambda kind, text: reports.append((kind, text))))
    assert sorted(messages) == ['central/camera_info', 'central/image', 'left/camera_info',
                                'left/image']
    [(kind, text)] = reports
    assert (kind, text[:17]) == ('image', 'right rgb image: ')


@pytest.mark.parametrize('cameras', [(), (Camera('left', ('rgb',), (2.0,) * 6),)])
def test_carla_poses_of_parameters_win(cameras):
    settings = checked_settings({
        'source': 'carla', 'carla.camera_tf': True, 'ego_frame': 'base_link',
        'base_link_xyz': (-1.0, 0.0, 0.5),
        'carla.camera_poses': (0.0,) * 6 + (1.0, 2.0, 3.0, 0.0, 0.0, 0.5) + (0.0,) * 6})
    placed = {each.child: each for each in camera_transforms(cameras, settings)}
    assert len(placed) == (2 if cameras else 6)
    left = placed['base_link/camera_left']
    assert (left.parent, *left.pose) == ('base_link', 2.0, 2.0, 2.5, 0.0, 0.0, 0.5)


def test_carla_views_of_the_sample():
    with sensor.open_recording(CARLA) as recording:
        frame = next(iter(recording))
    errors = []
    views = {view.name: view for view in image_views(lambda *text: errors.append(text))(frame)}
    assert sorted(views) == ['central/depth', 'central/rgb', 'central/segmentation', 'left/rgb',
                             'right/rgb']
    assert views['left/rgb'].png.startswith(b'\x89PNG')
    assert views['central/depth'].pixels.shape == (40, 40)
    assert views['central/segmentation'].pixels.shape == (40, 40, 3)
    assert errors == []
