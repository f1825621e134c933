# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Datasets: their folders, what is read of them, and the bags that are made of them."""

import io
import json
import math

from carla_example import EXAMPLE
import numpy as np
from paths import CARLA
from PIL import Image
import pytest
from rosbags.rosbag2 import Reader
from rosbags.typesys import get_typestore, Stores

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.simulators.carla.dataset import camera_and_kind
from state_sensor_ros.simulators.carla.topics import carla_encoders

_FILE = io.BytesIO()
Image.fromarray(np.full((4, 4, 3), 9, np.uint8)).save(_FILE, 'PNG')
PNG = _FILE.getvalue()


def convert(source, target, *words):
    assert main(['convert', str(source), str(target), *words]) == 0


def static_transforms(bag):
    store = get_typestore(Stores.ROS2_JAZZY)
    with Reader(bag) as reader:
        return [store.deserialize_cdr(data, connection.msgtype).transforms
                for connection, _, data in reader.messages() if connection.topic == '/tf_static']


@pytest.mark.parametrize(('name', 'parts'), [
    ('CentralRGB', ('central', 'rgb')), ('LeftSemanticSeg', ('left', 'segmentation')),
    ('right_depth', ('right', 'depth')), ('CameraRGB', ('camera', 'rgb')),
    ('Roof/FrontSeg', ('roof_front', 'segmentation')), ('3rdRGB', ('sensor_3rd', 'rgb')),
    ('Lidar32', None), ('RGB', None)])
def test_carla_names_of_sensors(name, parts):
    assert camera_and_kind(name) == parts


def write_episode(path, number, documents, sensors, metadata='{}', period=1):
    """Write an episode of measurements, of which each ``period``-th has images of sensors."""
    episode = path / f'episode_{number:05d}'
    episode.mkdir(parents=True)
    (episode / 'metadata.json').write_text(metadata)
    for i, document in enumerate(documents):
        (episode / f'measurements_{i:05d}.json').write_text(json.dumps(document, indent=4))
        for name in sensors if i % period == 0 else ():
            (episode / f'{name}_{i:05d}.png').write_bytes(PNG)


@pytest.fixture
def folder(tmp_path):
    """Two episodes of three measurements, every second with images, among other files."""
    for number in (10, 9):
        write_episode(tmp_path / 'set', number, [
            {**EXAMPLE, 'gameTimestamp': 100 * i + 1000 * (number == 9), 'frameNumber': str(i + 1)}
            for i in range(3)], ('CentralRGB', 'LeftRGB', 'RightRGB', 'CentralDepth',
                                 'CentralSemanticSeg'), period=2)
    return tmp_path / 'set'


def test_carla_folder_is_read_in_order_with_its_images(folder):
    with sensor.open_recording(folder) as recording:
        frames = list(recording)
        assert recording[4].game_time == 0.1
        assert (len(recording), recording[-1].game_time) == (6, 0.2)
    assert [frame.game_time for frame in frames] == [1.0, 1.1, 1.2, 0.0, 0.1, 0.2]
    for i, frame in enumerate(frames):
        images = [(image.camera, image.kind) for image in frame.extension.images]
        assert images == ([] if i % 3 == 1 else [
            ('central', 'depth'), ('central', 'rgb'), ('central', 'segmentation'),
            ('left', 'rgb'), ('right', 'rgb')])


@pytest.mark.parametrize('text', ['{"gameTimestamp": ', '{"gameTimestamp": -1}'])
def test_carla_unreadable_file_in_a_recording_leaves_the_others(folder, text):
    (folder / 'episode_00010' / 'measurements_00001.json').write_text(text)
    with sensor.open_recording(folder / 'episode_00010') as recording:
        assert [frame.game_time for frame in recording] == [0.0, 0.2]
        assert len(recording.faults) == 1


def test_carla_bag_has_every_topic(tmp_path):
    convert(CARLA, tmp_path / 'bag', '-p', 'debug_drawing:=true', '-p', 'carla.camera_tf:=true',
            '-p', f'carla.camera_poses:={[1.5, 0, 1.25, 0, 0, 0] * 3}')
    with Reader(tmp_path / 'bag') as reader:
        counts = {name.removeprefix('/state_sensor'): info.msgcount
                  for name, info in reader.topics.items()}
    with sensor.open_recording(CARLA) as recording:
        assert recording.sensor_counts == {
            **{(camera, 'rgb'): 6 for camera in ('central', 'left', 'right')},
            ('central', 'depth'): 6, ('central', 'segmentation'): 6}
    own = [topic for each in carla_encoders(())[:3] for topic in each.topics]
    topics = [name for name in counts if name.startswith('/camera/')]
    assert len(topics) == 5 + 3 + 2  # images, intrinsics, colors, legend
    for name in topics:
        assert counts[name] == (1 if name.endswith('classes') else 6), name
    for topic in own:
        assert counts[topic.name.removeprefix('~')] == 12
    assert counts['/frame'] == counts['/ego/odometry'] == counts['/markers'] == 12
    (transforms,) = static_transforms(tmp_path / 'bag')
    assert [(each.header.frame_id, each.child_frame_id) for each in transforms[:2]] == [
        ('player', 'player/camera_central'),
        ('player/camera_central', 'player/camera_central_optical')]
    assert len(transforms) == 6
    camera, optical = transforms[0].transform, transforms[1].transform
    assert (camera.translation.x, camera.translation.z, camera.rotation.w) == (1.5, 1.25, 1.0)
    # The z axis of an image is the x axis of its camera.
    q = optical.rotation
    assert (2 * (q.x * q.z + q.w * q.y), 2 * (q.y * q.z - q.w * q.x)) == pytest.approx((1, 0))


def test_carla_bag_is_read_as_a_recording_of_frames(tmp_path):
    convert(CARLA, tmp_path / 'bag')
    with sensor.open_recording(CARLA) as one, sensor.open_recording(tmp_path / 'bag') as other:
        for ours, theirs in zip(one, other, strict=True):
            assert ours.names == theirs.names
            np.testing.assert_array_equal(ours.position_xyz, theirs.position_xyz)
            np.testing.assert_array_equal(ours.boxes.rows, theirs.boxes.rows)
            np.testing.assert_allclose(ours.forward_speed, theirs.forward_speed, atol=1e-12)
            lights = theirs.traffic_lights
            assert lights.ids.tolist() == [
                int(name.rpartition('_')[2]) for name in ours.names if 'light' in name]
            assert lights.states.tolist() == [
                state for state in ours.extension.lights.tolist() if state < 3]


def test_carla_dataset_is_inspected(capsys):
    assert main(['inspect', '--json', str(CARLA)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found['form'], found['frames'], found['generations']) == (
        'dataset of CARLA', 12, {'carla': 12})
    assert found['rate_hz'] == pytest.approx(10.0)
    assert (found['replayable'], found['refusal']) == (None, None)
    assert main(['inspect', str(CARLA / 'episode_00000')]) == 0
    output = capsys.readouterr().out
    assert 'dataset of CARLA' in output
    assert output.endswith('replayable  does not apply: the simulator has no Replay Mode\n')


@pytest.fixture
def collected(tmp_path):
    """Two episodes as the data collector writes them, with files of other programs."""
    path = tmp_path / 'set'
    for number, speed in ((0, 500.0), (1, 5.0)):
        write_episode(path, number, [{
            'gameTimestamp': 3000 + 100 * i, 'frameNumber': str(i + 60 * number),
            'stop_vehicle': math.nan, 'playerMeasurements': {
                'forwardSpeed': speed, 'transform': {'location': {'x': 0.5 * i}}}}
            for i in range(12)], ('RearRGB', 'LeftDepth', 'LeftSemanticSeg'), '{"weather": 3}')
    (path / 'episode_00000' / 'RoofRGB_00003.png').write_bytes(b'')
    (path / 'episode_00001' / 'RearRGB_00099.png').write_bytes(b'')
    (path / 'episode_00001' / 'processed2').write_text('')
    (path / 'metadata.json').write_text(json.dumps({
        'RearRGB': 180, 'LeftDepth': -30.0, 'fov': 100, 'car range': [30, 60]}))
    return path


def test_carla_inspect_counts_sensors(collected, capsys):
    assert main(['inspect', '--json', str(collected)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['sensors'] == {
        'left': {'depth': 24, 'segmentation': 24}, 'rear': {'rgb': 24}}
    # Every episode is compared.
    (complaint,) = found['truth']['complaints']
    assert 'displacement is 0.01 times velocity x time' in complaint['text']
    assert complaint['place'].startswith('episode_00000/')
    assert found['truth']['pairs'] == 22
    # An episode alone has the cameras that the file of its dataset declares.
    assert main(['inspect', str(collected / 'episode_00001')]) == 0
    output = capsys.readouterr().out
    assert 'sensors     left: depth 12, segmentation 12\n' in output
    assert '            rear: rgb 12\n' in output


def test_carla_sensors_of_a_dataset_have_their_poses(collected, tmp_path):
    convert(collected, tmp_path / 'bag', '-p', 'carla.camera_tf:=true')
    (transforms,) = static_transforms(tmp_path / 'bag')
    found = {each.child_frame_id: each.transform for each in transforms}
    assert set(found) == {
        'player/camera_left', 'player/camera_left_optical', 'player/camera_rear',
        'player/camera_rear_optical'}
    rear = found['player/camera_rear'].rotation
    assert 2 * (rear.x * rear.z - rear.w * rear.y) == pytest.approx(math.sin(math.radians(-15)))
    assert 1 - 2 * (rear.y ** 2 + rear.z ** 2) == pytest.approx(-math.cos(math.radians(15)))
    place = found['player/camera_left'].translation
    assert (place.x, place.y, place.z) == (2.0, 0.0, 1.4)


def test_carla_damaged_metadata_is_an_error(collected, capsys):
    (collected / 'metadata.json').write_text('{"fov": ')
    assert main(['inspect', str(collected)]) == 1
    assert 'set/metadata.json: line 1' in capsys.readouterr().err
    (collected / 'metadata.json').write_text('{"weather": ' + '[' * 2000 + ']' * 2000 + '}')
    assert main(['convert', str(collected), str(collected.parent / 'bag')]) in (0, 1)
    assert 'Traceback' not in capsys.readouterr().err


def test_carla_episodes_of_one_frame_stay_apart(tmp_path):
    """All frames have the same game time; recordings of them are told apart by their number."""
    for i in range(6):
        write_episode(tmp_path / 'dataset', i, [
            {**EXAMPLE, 'gameTimestamp': 0, 'frameNumber': str(40 + i)}], ('CentralRGB',))
    convert(tmp_path / 'dataset', tmp_path / 'bag')
    with Reader(tmp_path / 'bag') as reader:
        counts = {topic: info.msgcount for topic, info in reader.topics.items()}
    for topic in ('frame', 'player/status', 'camera/central/image', 'ego/odometry'):
        assert counts[f'/state_sensor/{topic}'] == 6, topic
