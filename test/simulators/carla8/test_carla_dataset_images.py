# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Images and points of a dataset, in a bag and in the dataset that is made of the bag."""

import json

from message_store import typestore
import numpy as np
from PIL import Image
import pytest
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from test_carla_dataset import same

from state_sensor_ros.commands.cli import main

N_FRAMES, STEP, SIZE = 5, 2, (6, 64)
DEPTH_MAX = 2 ** 24 - 1
KINDS = {'image': 'RGB', 'depth': 'Depth', 'segmentation': 'SemanticSeg'}
SENSORS = {
    f'{camera}{kind}': {
        'type': 'CAMERA', 'fov': 99.5, 'width': SIZE[1], 'height': SIZE[0],
        'position': {'x': 1.25, 'y': place, 'z': 1.5},
        'rotation': {'pitch': -15.0, 'yaw': yaw, 'roll': 2.0}}
    for camera, place, yaw in (('Central', 0.0, 0.0), ('Roof', -0.5, 30.0))
    for kind in KINDS.values()}
SENSORS['Lidar32'] = {'type': 'LIDAR_RAY_CAST', 'position': {'x': 0.0, 'y': 0.0, 'z': 2.5},
                      'rotation': {'pitch': 0.0, 'yaw': -10.0, 'roll': 0.0}}
METADATA = {'fov': 99.5, 'width': SIZE[1], 'height': SIZE[0], 'sensors': SENSORS,
            **{name: one['rotation']['yaw'] for name, one in SENSORS.items()}}


def pixels_of(name, rng):
    """Return random red, green and blue as a server sends them for a kind, (H, W, 3)."""
    if name.endswith('RGB'):
        return rng.integers(0, 256, (*SIZE, 3), np.uint8)
    if name.endswith('Seg'):
        tags = np.zeros((*SIZE, 3), np.uint8)
        tags[..., 0] = rng.integers(0, 256, SIZE)
        return tags
    counts = rng.integers(0, DEPTH_MAX, SIZE, endpoint=True)
    counts[0, :4] = 0, 1, DEPTH_MAX - 1, DEPTH_MAX
    return np.stack([counts >> shift & 255 for shift in (0, 8, 16)], axis=-1).astype(np.uint8)


def read_pixels(path):
    with Image.open(path) as image:
        assert image.mode == 'RGB'
        return np.asarray(image)


def counts_of(pixels):
    return pixels.astype(np.int64) @ [1, 256, 65536]


def meters_of(counts):
    return (counts * 1000.0 / DEPTH_MAX).astype(np.float32)


@pytest.fixture(scope='module')
def dataset(tmp_path_factory):
    """Two episodes with images and points of every second step, as random as they can be."""
    rng, path = np.random.default_rng(7), tmp_path_factory.mktemp('dataset') / 'set'
    for i_episode in range(2):
        episode = path / f'episode_{i_episode:05d}'
        episode.mkdir(parents=True)
        (episode / 'metadata.json').write_text(json.dumps(METADATA))
        for number in range(N_FRAMES):
            place = rng.normal(0.0, 50.0, 3).astype(np.float32).tolist()
            (episode / f'measurements_{number:05d}.json').write_text(json.dumps({
                'gameTimestamp': 100 + 100 * number, 'frameNumber': str(9 + number),
                'playerMeasurements': {'forwardSpeed': 2.5, 'transform': {
                    'location': dict(zip('xyz', place, strict=True)), 'rotation': {'yaw': 30.0}}},
                'nonPlayerAgents': [{'id': 5, 'vehicle': {'forwardSpeed': 1.5, 'transform': {
                    'location': {'x': place[1]}, 'rotation': {'yaw': -90.0}}}}]}))
            for name in SENSORS if number % STEP == 0 else ():
                file = episode / f'{name}_{number:05d}'
                if name == 'Lidar32':
                    rows = rng.normal(0.0, 20.0, (9, 3)).astype(np.float32)
                    file.with_suffix('.ply').write_text(
                        'ply\nformat ascii 1.0\nelement vertex 9\nproperty float32 x\n'
                        'property float32 y\nproperty float32 z\nend_header\n'
                        + ''.join(f'{x} {y} {z}\n' for x, y, z in rows))
                else:
                    Image.fromarray(pixels_of(name, rng)).save(file.with_suffix('.png'))
    return path


@pytest.fixture(scope='module')
def bag(dataset, tmp_path_factory):
    """The first episode as a bag."""
    path = tmp_path_factory.mktemp('bag') / 'bag'
    convert(dataset / 'episode_00000', path)
    return path


def convert(*words):
    assert main(['convert', '--quiet', *map(str, words)]) == 0


def sensor_messages_of(bag):
    with Reader(bag) as reader:
        return [(connection.topic, stamp, bytes(data)) for connection, stamp, data
                in reader.messages() if connection.msgtype.startswith('sensor_msgs/')
                or connection.topic == '/tf_static']


def test_carla_dataset_comes_back_from_a_bag_with_its_images(dataset, tmp_path, capsys):
    again = tmp_path / 'again'
    convert(dataset, tmp_path / 'bag', '-p', 'carla.camera_tf:=true')
    capsys.readouterr()
    convert(tmp_path / 'bag', again)
    assert capsys.readouterr().err == ''
    names = {str(path.relative_to(dataset)) for path in dataset.rglob('*')}
    assert names == {str(path.relative_to(again)) for path in again.rglob('*')}
    assert len(names) == 2 * (2 + N_FRAMES + 3 * len(SENSORS))
    for name in names:
        one, other = dataset / name, again / name
        if 'Depth' in name:
            sent, found = counts_of(read_pixels(one)), counts_of(read_pixels(other))
            assert (meters_of(sent) == meters_of(found)).all()
            assert abs(sent - found).max() <= 1
            assert (sent == found)[meters_of(sent) < 512.0].all()
            assert found[0, :4].tolist() == sent[0, :4].tolist()
        elif one.suffix == '.png':
            assert (read_pixels(one) == read_pixels(other)).all(), name
        elif one.suffix == '.ply':
            rows = [np.loadtxt(path, np.float32, skiprows=7) for path in (one, other)]
            assert rows[0].tolist() == rows[1].tolist()
        elif one.name == 'metadata.json':
            assert json.loads(other.read_text()) == METADATA
        elif one.name.startswith('measurements'):
            same(json.loads(other.read_text()), json.loads(one.read_text()))
    convert(again, tmp_path / 'bag_2', '-p', 'carla.camera_tf:=true')
    messages = sensor_messages_of(tmp_path / 'bag')
    assert len(messages) == 1 + 2 * 3 * (2 * 5 + 1)
    assert sensor_messages_of(tmp_path / 'bag_2') == messages


def test_carla_bag_without_poses_becomes_a_dataset_without_them(bag, tmp_path):
    convert(bag, tmp_path / 'again')
    found = json.loads((tmp_path / 'again' / 'metadata.json').read_text())
    assert found['sensors']['RoofDepth'] == {
        'type': 'CAMERA', 'fov': 99.5, 'width': SIZE[1], 'height': SIZE[0]}
    assert 'RoofDepth' not in found
    # Given by parameters.
    convert(bag, tmp_path / 'again', '--force',
            '-p', f'carla.camera_poses:={[1, 2, 3, *[0] * 15]}')
    found = json.loads((tmp_path / 'again' / 'metadata.json').read_text())
    assert found['sensors']['CentralRGB']['position'] == {'x': 1.0, 'y': -2.0, 'z': 3.0}


@pytest.mark.parametrize(('topic', 'changes', 'found'), [
    ('depth', {'data': np.full(SIZE, np.nan, '<f4').view(np.uint8).ravel()}, 'found nan m; exp'),
    ('depth', {'data': np.full(SIZE, -1, '<f4').view(np.uint8).ravel()}, 'found -1.0 m; expected'),
    ('image', {'encoding': 'bgr8'}, '~/camera/roof/image: found bgr8, 64 x 6 pixels'),
    ('image', {'width': 63}, 'found rgb8, 63 x 6 pixels in 1152 bytes')],
    ids=['nan', 'negative', 'encoding', 'size'])
def test_carla_image_that_has_no_file_leaves_the_others(dataset, bag, tmp_path, capsys, topic,
                                                        changes, found):
    changed = f'/state_sensor/camera/roof/{topic}'
    with Reader(bag) as reader, Writer(
            tmp_path / 'other', version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topics = {each.id: writer.add_connection(each.topic, each.msgtype, typestore=typestore())
                  for each in reader.connections}
        is_first = True
        for connection, stamp, data in reader.messages():
            if connection.topic == changed and is_first:
                is_first = False
                message = typestore().deserialize_cdr(data, connection.msgtype)
                for name, value in changes.items():
                    setattr(message, name, value)
                data = typestore().serialize_cdr(message, connection.msgtype)
            writer.write(topics[connection.id], stamp, data)
    convert(tmp_path / 'other', tmp_path / 'again')
    error = capsys.readouterr().err
    assert 'warning: ' in error
    assert 'dropped 1 message of sensors; the last: ' in error
    assert found in error
    dropped = f'Roof{KINDS[topic]}_00000.png'
    assert {path.name for path in (dataset / 'episode_00000').iterdir()} == {
        dropped, *(path.name for path in (tmp_path / 'again').iterdir())}
    assert not (tmp_path / 'again' / dropped).exists()
