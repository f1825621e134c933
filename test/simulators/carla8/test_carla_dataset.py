# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Dataset folders: read, converted to messages and back, and written without loss."""

import dataclasses
from functools import cache
import json
import math
import shutil
import struct

from budgets import one_of, tries
from carla_example import EXAMPLE
from carla_sensor_wire import image_message, lidar_message, scene
from carla_wire import join_messages, measurements, player, transform
from framers import fed
from hypothesis import given, settings
from hypothesis import strategies as st
from message_store import typestore
import numpy as np
from paths import CARLA as SAMPLE
from PIL import Image
import pytest
from rosbags.rosbag2 import Reader
from stack_bags import messages_of as messages_of_bag
from test_carla_images import five_images
from test_carla_sensors import PLY

from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.commands.command_line import main
from state_sensor_ros.errors import DecodeError, SinkError, StateError
from state_sensor_ros.frame import Frame
from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.dataset import (
    find_dataset,
    read_frames,
    sensor_file_name,
    sensor_file_parts,
)
from state_sensor_ros.simulators.carla.dataset_writer import DatasetWriter, format_measurement_file
from state_sensor_ros.simulators.carla.decoder import CarlaDecoder, DatasetDecoder
from state_sensor_ros.simulators.carla.frame_payload import decode_points, MeasurementFramer
from state_sensor_ros.simulators.carla.images import decode_rgb
from state_sensor_ros.simulators.carla.recording import (
    _timed_parts,
    DatasetRecording,
    frame_of_messages,
    TOPICS,
)
from state_sensor_ros.simulators.carla.simulator import CarlaSimulator
from state_sensor_ros.simulators.carla.topic_names import sensor_topics
from state_sensor_ros.simulators.carla.topics import carla_encoders, CARLA_TOPICS
from state_sensor_ros.simulators.opening import open_any
from state_sensor_ros.simulators.simulator_list import checked_settings
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING
from state_sensor_ros.topics.transforms import encode_static_frames

STATUS = 'state_sensor_ros/msg/CarlaPlayerStatus'


def same(ours, theirs, path='$'):
    """Compare JSON: numbers as float32, absent members as their default, no directions."""
    if isinstance(theirs, dict) or isinstance(ours, dict):
        for name in {**(ours or {}), **(theirs or {})}:
            if name != 'orientation':
                same((ours or {}).get(name), (theirs or {}).get(name), f'{path}.{name}')
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), path
        for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            same(one, other, f'{path}[{i}]')
    elif isinstance(theirs, bool) or isinstance(ours, (bool, str)):
        assert (ours or False) == (theirs or False), path
    else:
        assert np.float32(ours or 0.0) == np.float32(theirs or 0.0), path


@cache
def definitions():
    return load_definitions()


def frames_of_messages(messages):
    """Return the frames of a bag with a status, given names and data of its messages."""
    for timed in _timed_parts((name, 0, data) for name, data in messages):
        parts = {name: data for name, (_, data) in timed.items()}
        if 'player/status' in parts:
            yield frame_of_messages(parts)


def through_messages(documents):
    """Convert files to the messages of a bag and back."""
    decoder, registry = DatasetDecoder(), Registry()
    encoder = Encoder(Settings(), definitions(), further=carla_encoders())
    messages = []
    for i, document in enumerate(documents):
        frame = decoder.decode_dataset(json.dumps(document).encode()).frame
        actor_list = registry.update(frame)
        messages += [(topic.name.removeprefix('~/'), data) for topic, data
                     in encoder.encode(frame, actor_list, i * 10 ** 8, EVERYTHING)]
    chosen = [(name, data) for name, data in messages if name in TOPICS]
    return [json.loads(format_measurement_file(frame)) for frame in frames_of_messages(chosen)]


def test_carla_file_is_recovered_from_its_frame():
    frame = DatasetDecoder().decode_dataset(json.dumps(EXAMPLE).encode()).frame
    text = format_measurement_file(frame)
    same(json.loads(text), EXAMPLE)
    again = json.loads(text)
    # The members that do not equal their default.
    assert 'brake' not in again['playerMeasurements']['autopilotControl']
    assert 'state' not in again['nonPlayerAgents'][2]['trafficLight']
    assert again['nonPlayerAgents'][3]['trafficLight']['state'] == 'RED'
    assert again['frameNumber'] == '4294967301'
    assert list(again) == sorted(again)
    assert text.startswith(b'{\n    "brake": 0.0,\n    "brake_noise": 0.25,')
    assert again['playerMeasurements']['transform']['orientation'] == {'x': -1.0}


def test_carla_file_is_recovered_from_the_messages():
    document = json.loads(json.dumps(EXAMPLE))
    document['frameNumber'] = '4294967302'
    document['gameTimestamp'] = 12400
    back = through_messages([EXAMPLE, document])
    same(back[0], EXAMPLE)
    same(back[1], document)


def test_carla_absent_members_stay_absent():
    document = {name: EXAMPLE[name] for name in (
        'frameNumber', 'gameTimestamp', 'platformTimestamp', 'playerMeasurements', 'steer_noise',
        'throttle_noise')}
    (back,) = through_messages([document])
    assert set(back) == set(document)
    same(back, document)


def test_carla_old_box_is_recovered():
    document = json.loads(json.dumps(EXAMPLE))
    del document['playerMeasurements']['boundingBox']
    document['playerMeasurements']['boxExtent'] = {'x': 2.25, 'z': 0.75}
    for agent in document['nonPlayerAgents']:
        for mover in agent.keys() & {'vehicle', 'pedestrian'}:
            del agent[mover]['boundingBox']
            agent[mover]['boxExtent'] = {'x': 0.5, 'y': 0.25, 'z': 0.75}
    (back,) = through_messages([document])
    same(back, document)
    assert 'boundingBox' not in json.dumps(back)
    assert json.dumps(back).count('boxExtent') == 3


SIZES = st.floats(-1000.0, 1000.0, width=32).filter(lambda x: x == 0 or abs(x) > 1e-4)
# The sign of a box's half turn is not recovered.
ANGLES = st.floats(-179.875, 179.875, width=32).filter(lambda x: x == 0 or abs(x) > 1e-4)
PITCHES = st.floats(-89.75, 89.75, width=32).filter(lambda x: x == 0 or abs(x) > 1e-4)
ROTATIONS = st.fixed_dictionaries({'roll': ANGLES, 'pitch': PITCHES, 'yaw': ANGLES})
VECTORS = st.fixed_dictionaries({'x': SIZES, 'y': SIZES, 'z': SIZES})
TRANSFORMS = st.fixed_dictionaries({'location': VECTORS, 'rotation': ROTATIONS})
BODIES = st.fixed_dictionaries({
    'transform': TRANSFORMS, 'forwardSpeed': SIZES,
    'boundingBox': st.fixed_dictionaries({'transform': TRANSFORMS, 'extent': VECTORS})})


@settings(max_examples=tries(12))
@given(BODIES, BODIES, VECTORS, st.floats(-1.0, 1.0))
def test_carla_any_numbers_are_recovered(player, vehicle, acceleration, steer):
    document = {
        'frameNumber': '1', 'gameTimestamp': 50, 'steer': steer, 'steer_noise': -steer,
        'playerMeasurements': {**player, 'acceleration': acceleration, 'autopilotControl': {}},
        'nonPlayerAgents': [{'id': 3, 'vehicle': vehicle}, {'id': 3, 'pedestrian': vehicle}]}
    (back,) = through_messages([document])
    same(back, document)
    assert back['steer'] == steer


def test_carla_direction_is_that_of_the_rotation():
    document = {'playerMeasurements': {'transform': {'rotation': {'yaw': 30.0, 'pitch': 20.0}}}}
    frame = DatasetDecoder().decode_dataset(json.dumps(document).encode()).frame
    at = json.loads(format_measurement_file(frame))['playerMeasurements']['transform']
    p, y = math.radians(20.0), math.radians(30.0)
    assert [at['orientation'][axis] for axis in 'xyz'] == pytest.approx(
        [math.cos(p) * math.cos(y), math.cos(p) * math.sin(y), math.sin(p)], abs=1e-7)


def test_carla_frames_of_others_are_refused():
    frame = DatasetDecoder().decode_dataset(json.dumps(EXAMPLE).encode()).frame
    other = Frame('v2', 0.0, 0, 0, frame.names, frame.kinds, frame.tags, frame.kinematics,
                  frame.lanes)
    with pytest.raises(StateError, match='found v2; expected a frame of CARLA'):
        format_measurement_file(other)


def test_carla_damaged_message_is_refused():
    damaged = b'\0\1\0\0abcdefgh'
    with pytest.raises(DecodeError, match=r'~/frame: found 12 bytes'):
        list(frames_of_messages([('frame', damaged), ('player/status', damaged)]))


@pytest.fixture
def folder(tmp_path):
    """Two episodes of three measurements, every second with images, among other files."""
    for i_episode in (10, 9):
        episode = tmp_path / 'set' / f'episode_{i_episode:05d}'
        episode.mkdir(parents=True)
        for number in range(3):
            document = {**EXAMPLE, 'gameTimestamp': 100 * number + 1000 * (i_episode == 9),
                        'frameNumber': str(number + 1)}
            (episode / f'measurements_{number:05d}.json').write_text(json.dumps(document))
            if number % 2 == 0:
                for camera, image in zip(('CentralRGB', 'LeftRGB', 'RightRGB', 'CentralDepth',
                                          'CentralSemanticSeg'), five_images(4), strict=True):
                    (episode / f'{camera}_{number:05d}.png').write_bytes(image.data)
        (episode / 'metadata.json').write_text('{}')
    return tmp_path / 'set'


def test_carla_folder_is_read_in_order_with_its_images(folder):
    dataset = find_dataset(folder)
    assert [episode.folder.name for episode in dataset.episodes] == [
        'set', 'episode_00009', 'episode_00010']
    frames = list(read_frames(dataset))
    assert [frame.place for frame in frames[2:4]] == ['episode_00009/measurements_00002.json',
                                                     'episode_00010/measurements_00000.json']
    assert [frame.clock_s for frame in frames] == [1.0, 1.1, 1.2, 0.0, 0.1, 0.2]
    decoder = DatasetDecoder()
    for i, frame in enumerate(frames):
        (decoded,) = decoder.decode(frame.packet.payload)
        assert decoded.frame.game_time == frame.clock_s
        images = [(image.camera, image.kind) for image
                  in decoded.frame.extension.sensor_data.images]
        assert images == ([] if i % 3 == 1 else [
            ('central', 'depth'), ('central', 'rgb'), ('central', 'segmentation'),
            ('left', 'rgb'), ('right', 'rgb')])


def test_carla_files_are_read_by_number_not_by_name(tmp_path):
    for number in (2, 10, 1):
        document = {**EXAMPLE, 'gameTimestamp': number}
        (tmp_path / f'measurements_{number}.json').write_text(json.dumps(document))
    frames = read_frames(find_dataset(tmp_path))
    assert [frame.clock_s for frame in frames] == [0.001, 0.002, 0.01]


@pytest.mark.parametrize('text', ['{"gameTimestamp": ', '{"gameTimestamp": -1}',
                                  f'{{"gameTimestamp": {10 ** 400}}}', '{"gameTimestamp": "x"}'])
def test_carla_unreadable_file_in_a_recording_keeps_its_place(folder, text):
    (folder / 'episode_00010' / 'measurements_00001.json').write_text(text)
    recording = DatasetRecording(folder / 'episode_00010')
    entries = list(recording.frames())
    assert (recording.total, recording.unit) == (3, 'frame')
    assert [entry.position for entry in entries] == [1, 2, 3]
    assert math.isnan(entries[1].clock_s)
    assert entries[0].packet.game_time < entries[1].packet.game_time < entries[2].packet.game_time
    with pytest.raises(DecodeError):
        recording.decoder.decode(entries[1].packet.payload)


def test_carla_dataset_is_written_whole(tmp_path):
    decoder = DatasetDecoder()
    out = tmp_path / 'out'
    writer = DatasetWriter(out)
    for game_timestamp in (0, 50, 100, 0, 50):
        document = {**EXAMPLE, 'gameTimestamp': game_timestamp}
        writer.write(decoder.decode_dataset(json.dumps(document).encode()).frame)
    assert not out.exists()
    writer.finish()
    assert [path.name for path in tmp_path.iterdir()] == ['out']
    frames = list(read_frames(find_dataset(out)))
    assert [frame.clock_s for frame in frames] == [0.0, 0.05, 0.1, 0.0, 0.05]
    with pytest.raises(SinkError, match='a folder of that name'):
        DatasetWriter(out)
    again = DatasetWriter(out, overwrite=True)
    again.write(decoder.decode_dataset(json.dumps(EXAMPLE).encode()).frame)
    again.finish()
    assert [path.name for path in out.iterdir()] == ['measurements_00000.json']


def live_frame(number, game_ms, *messages, names=None):
    at = measurements(number, game_ms, 0, player(transform()))
    payload = join_messages([at, *messages]) + scene(names or {1: ('FrontRGB', 1), 2: ('Top', 2)})
    return CarlaDecoder().decode(payload)[0].frame


def test_carla_dataset_of_a_stream_has_its_sensors(tmp_path):
    """A late image is in the file of its own frame, and each episode has its own cameras."""
    rng = np.random.default_rng(3)
    bgra = rng.integers(0, 256, (3, 2, 3, 4), np.uint8)
    points = np.array([[0.1, -1e-20, 3e20]], '<f4')
    writer = DatasetWriter(tmp_path / 'out')
    writer.write(live_frame(7, 100, lidar_message(2, 7, 0.0, points, [1])))
    writer.write(live_frame(8, 200, image_message(1, 7, bgra[0], 1, 99.9),
                            image_message(9, 8, bgra[0], 1, 90.0)))
    writer.write(live_frame(9, 0, image_message(1, 9, bgra[1], 1, 60.0),
                            image_message(5, 9, bgra[2], 1, 60.0),
                            names={1: ('FrontRGB', 1), 5: ('front_rgb', 1)}))
    writer.finish()
    assert (writer.n_dropped, writer.last_dropped) == (
        2, 'sensor FrontRGB: found two sensors with this name in the dataset; expected one')
    found = []
    for entry in DatasetRecording(tmp_path / 'out').frames():
        data = DatasetDecoder().decode(entry.packet.payload)[0].frame.extension.sensor_data
        found.append([(image.camera, image.fov_deg, decode_rgb(image).data)
                      for image in data.images] + [decode_points(each) for each in data.points])
    assert found == [
        [('front', float(np.float32(99.9)), bgra[0, ..., 2::-1].tobytes()),
         np.array([[1e-20, -0.1, -3e20]], '<f4').tobytes()],
        [], [('front', 60.0, bgra[1, ..., 2::-1].tobytes())]]


@pytest.mark.parametrize('name', ['Roof', 'lidar_2', 'Lidar32', '3rd', 'top/front'])
def test_carla_lidar_of_any_name_is_read_back(tmp_path, name):
    writer = DatasetWriter(tmp_path / 'out')
    frame = live_frame(1, 0, lidar_message(1, 1, 0.0, np.ones((1, 3), '<f4'), [1]),
                       names={1: (name, 2)})
    writer.write(frame)
    writer.finish()
    recording = DatasetRecording(tmp_path / 'out')
    (points,) = frame.extension.sensor_data.points
    assert [(sensor.name, sensor.kind) for sensor in recording.sensors] == [
        (points.lidar, 'points')]
    assert recording.ignored == ()


def test_carla_lidar_with_the_longest_name_of_a_file_is_read(folder):
    # In topics the name does not begin with a digit: it is longer than that of the file.
    name = f'9lidar{"a" * 243}'
    (folder / 'episode_00009' / f'{name}_0.ply').write_bytes(b'no points')
    decoded = [frame for data in read_frames(find_dataset(folder))
               for frame in DatasetDecoder().decode(data.packet.payload)]
    (points,) = decoded[0].frame.extension.sensor_data.points
    assert points.lidar == f'sensor_{name}'


@pytest.mark.parametrize('camera', ['central', 'roof_front', 'seg', 'my_rgb', 'semantic', 'x_2'])
@pytest.mark.parametrize('kind', ['rgb', 'depth', 'segmentation'])
def test_carla_name_of_a_camera_is_read_back(camera, kind):
    name = sensor_file_name(camera, kind, 3)
    assert sensor_file_parts(name, frozenset([camera])) == (camera, kind, 3)


def static_transforms(bag):
    """Return the transforms of each message on /tf_static."""
    return [message.transforms for *_, message in messages_of_bag(bag, ['/tf_static'])]


def convert(*words):
    assert main(['convert', *map(str, words)]) == 0


@pytest.mark.parametrize('options', one_of([
    {'frame_prefix': 'a/', 'ego_frame': 'base_link', 'base_link_xyz': [1.0, 0.0, 0.5]}, {}]))
def test_carla_poses_of_cameras_come_back_from_a_bag(tmp_path, options):
    # Also straight down, where roll and yaw are one angle.
    poses = [1.5, 0.25, 1.25, 0.1, -0.2, 0.3, 0.5, 1.0, 1.5, 0.0, math.pi / 2, 0.0,
             0.0, -1.0, 2.0, 0.0, 0.0, -math.pi / 2]
    words = [word for name, value in options.items() for word in ('-p', f'{name}:={value}')]
    convert(SAMPLE, tmp_path / 'bag', '-p', 'camera_tf:=true', '-p', f'camera_poses:={poses}',
            *words)
    (recorded,) = static_transforms(tmp_path / 'bag')
    checked = checked_settings({'source': 'carla', 'camera_tf': True, **options})
    recording = open_any(str(tmp_path / 'bag'))
    topics = CarlaSimulator().topics(checked, recording=recording)
    recording.close()
    _, data = encode_static_frames(checked, definitions(), topics.transforms)
    again = typestore().deserialize_cdr(data, 'tf2_msgs/msg/TFMessage').transforms
    assert len(recorded) == 6
    for one, other in zip(again, recorded, strict=True):
        assert (one.header.frame_id, one.child_frame_id) == (
            other.header.frame_id, other.child_frame_id)
        for part, names in (('translation', 'xyz'), ('rotation', 'xyzw')):
            ours, theirs = (np.array([getattr(getattr(each.transform, part), name)
                                      for name in names]) for each in (one, other))
            assert abs(ours - theirs).max() < 1e-15


@pytest.fixture(scope='module')
def sample_bag(tmp_path_factory):
    path = tmp_path_factory.mktemp('sample') / 'bag'
    convert(SAMPLE, path, '-p', 'debug_drawing:=true', '-p', 'carla.camera_tf:=true', '-p',
            f'camera_poses:={[1.5, 0, 1.25, 0, 0, 0] * 3}')
    return path


def test_carla_sample_is_recovered_from_a_bag_exactly(sample_bag, tmp_path):
    convert(sample_bag, tmp_path / 'again')
    files = sorted((SAMPLE / 'episode_00000').iterdir())
    assert sorted(path.name for path in (tmp_path / 'again').iterdir()) == sorted([
        *(path.name for path in files), 'metadata.json'])
    for file in files:
        again = tmp_path / 'again' / file.name
        if file.suffix == '.json':
            assert again.read_text() == file.read_text()
        else:
            with Image.open(file) as one, Image.open(again) as other:
                assert np.asarray(one.convert('RGB')).tolist() == np.asarray(other).tolist()


def test_carla_bag_has_every_topic(sample_bag):
    with Reader(sample_bag) as reader:
        counts = {name.removeprefix('/state_sensor'): info.msgcount
                  for name, info in reader.topics.items()}
    topics = (*(topic for each in CARLA_TOPICS[1:] for topic in each.topics),
              *sensor_topics(DatasetRecording(SAMPLE).sensors))
    assert len(topics) == 6 + 5 + 3 + 2  # images, intrinsics, colors, legend
    for topic in topics:
        with_images = 6 if topic.name.startswith('~/camera') else 12
        expected = 1 if topic.name.endswith('classes') else with_images
        assert counts[topic.name.removeprefix('~')] == expected, topic.name
    assert counts['/frame'] == counts['/ego/odometry'] == counts['/markers'] == 12
    (transforms,) = static_transforms(sample_bag)
    assert [(each.header.frame_id, each.child_frame_id) for each in transforms[:2]] == [
        ('player', 'player/camera_central'),
        ('player/camera_central', 'player/camera_central_optical')]
    assert len(transforms) == 6
    camera, optical = transforms[0].transform, transforms[1].transform
    assert (camera.translation.x, camera.translation.z, camera.rotation.w) == (1.5, 1.25, 1.0)
    # The z axis of an image is the x axis of its camera.
    q = optical.rotation
    assert (2 * (q.x * q.z + q.w * q.y), 2 * (q.y * q.z - q.w * q.x)) == pytest.approx((1, 0))


def test_carla_dataset_as_a_trajectory_reports_losses(tmp_path, capsys):
    convert(SAMPLE, tmp_path / 'a.json')
    assert capsys.readouterr().err.count('v2 does not carry:') == 1
    frames = json.loads((tmp_path / 'a.json').read_text())
    assert len(frames) == 12
    assert len(frames[0]['frame']['vehicles']) == 5


def test_carla_dataset_is_inspected(capsys):
    assert main(['inspect', '--json', str(SAMPLE)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found['form'], found['frames'], found['generations']) == (
        'dataset of CARLA', 12, {'carla': 12})
    assert found['rate_hz'] == pytest.approx(10.0)
    assert (found['replayable'], found['refusal']) == (None, None)
    assert main(['inspect', str(SAMPLE / 'episode_00000')]) == 0
    output = capsys.readouterr().out
    assert 'dataset of CARLA' in output
    assert output.endswith('replayable  does not apply: the simulator has no Replay Mode\n')


def test_carla_inspect_checks_replay_of_neither_bags_nor_frames_without_a_player(
        sample_bag, tmp_path, capsys):
    folder = tmp_path / 'without_player'
    folder.mkdir()
    agents = {'nonPlayerAgents': EXAMPLE['nonPlayerAgents'], 'gameTimestamp': 100}
    (folder / 'measurements_00000.json').write_text(json.dumps(agents))
    for path in (sample_bag, folder):
        capsys.readouterr()
        assert main(['inspect', '--json', str(path)]) == 0
        assert json.loads(capsys.readouterr().out)['replayable'] is None


def test_carla_inspect_still_refuses_a_damaged_dataset(tmp_path, capsys):
    shutil.copytree(SAMPLE / 'episode_00000', tmp_path / 'episode')
    (tmp_path / 'episode' / 'measurements_00005.json').write_text('{"playerMeasurements": 3}')
    assert main(['inspect', '--json', str(tmp_path / 'episode')]) == 1
    output = capsys.readouterr()
    assert json.loads(output.out)['replayable'] is False
    assert 'measurements_00005.json' in output.err


@pytest.fixture
def collected(tmp_path):
    """Two episodes as the data collector writes them, with files of other programs."""
    path = tmp_path / 'set'
    for i_episode, speed in ((0, 500.0), (1, 5.0)):
        episode = path / f'episode_{i_episode:05d}'
        episode.mkdir(parents=True)
        for number in range(12):
            document = {
                'gameTimestamp': 3000 + 100 * number, 'frameNumber': str(number + 60 * i_episode),
                'stop_vehicle': math.nan, 'playerMeasurements': {
                    'forwardSpeed': speed, 'transform': {'location': {'x': 0.5 * number}}}}
            (episode / f'measurements_{number:05d}.json').write_text(
                json.dumps(document, sort_keys=True, indent=4))
            for name in ('RearRGB', 'LeftDepth', 'LeftSemanticSeg'):
                (episode / f'{name}_{number:05d}.png').write_bytes(five_images(4)[3].data)
            (episode / f'Lidar32_{number:05d}.ply').write_bytes(PLY)
        (episode / 'metadata.json').write_text('{"weather": 3}')
    (path / 'episode_00000' / 'RoofRGB_00003.png').write_bytes(b'')
    (path / 'episode_00001' / 'RearRGB_00099.png').write_bytes(b'')
    (path / 'episode_00001' / 'processed2').write_text('')
    (path / 'metadata.json').write_text(json.dumps({
        'RearRGB': 180, 'LeftDepth': -30.0, 'Lidar32': 0, 'fov': 100, 'car range': [30, 60]}))
    return path


def test_carla_inspect_counts_sensors_and_names_other_files(collected, capsys):
    assert main(['inspect', '--json', str(collected)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['sensors'] == {
        'left': {'depth': 24, 'segmentation': 24}, 'lidar32': {'points': 24}, 'rear': {'rgb': 24}}
    assert found['ignored_files'] == [
        'episode_00000/RoofRGB_00003.png', 'episode_00001/RearRGB_00099.png',
        'episode_00001/processed2']
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
    assert 'ignored     2 files: RearRGB_00099.png, processed2\n' in output


def test_carla_bare_nan_is_read_without_a_warning(collected, tmp_path, capsys):
    convert(collected / 'episode_00001', tmp_path / 'bag')
    assert capsys.readouterr().err == ''
    (*_, status) = next(messages_of_bag(tmp_path / 'bag', ['/state_sensor/player/status']))
    assert math.isnan(status.stop_vehicle)
    assert status.game_timestamp == 3000


def test_carla_sensors_of_a_dataset_have_their_poses(collected, tmp_path):
    convert(collected, tmp_path / 'bag', '-p', 'carla.camera_tf:=true')
    (transforms,) = static_transforms(tmp_path / 'bag')
    found = {each.child_frame_id: each.transform for each in transforms}
    assert set(found) == {
        'player/camera_left', 'player/camera_left_optical', 'player/camera_rear',
        'player/camera_rear_optical', 'player/lidar32'}
    rear = found['player/camera_rear'].rotation
    assert 2 * (rear.x * rear.z - rear.w * rear.y) == pytest.approx(math.sin(math.radians(-15)))
    assert 1 - 2 * (rear.y ** 2 + rear.z ** 2) == pytest.approx(-math.cos(math.radians(15)))
    place = found['player/lidar32'].translation
    assert (place.x, place.y, place.z) == (0.0, 0.0, 2.5)


def test_carla_damaged_metadata_is_an_error(collected, capsys):
    (collected / 'metadata.json').write_text('{"fov": ')
    assert main(['inspect', str(collected)]) == 1
    assert 'set/metadata.json: line 1' in capsys.readouterr().err
    (collected / 'metadata.json').write_text('{"weather": ' + '[' * 2000 + ']' * 2000 + '}')
    assert main(['convert', str(collected), str(collected.parent / 'bag')]) in (0, 1)
    assert 'Traceback' not in capsys.readouterr().err


def test_carla_live_capture_of_the_sample_is_two_episodes():
    framer, decoder = MeasurementFramer(100_000), CarlaDecoder()
    frames = [decoder.decode(packet.payload)[0].frame
              for packet in fed(framer, (SAMPLE / 'live.bin').read_bytes())]
    framer.end()
    assert [round(frame.game_time, 3) for frame in frames] == [
        *(i / 10 for i in range(30)), *(i / 10 for i in range(10))]
    assert [frame.sample_count for frame in frames] == list(range(100, 140))
    assert len(frames[0].names) == 1 + 6 + 3 + 4 + 4


def messages_of(document, **changes):
    """Return the messages of one frame in a bag."""
    frame = DatasetDecoder().decode_dataset(json.dumps(document).encode()).frame
    frame = dataclasses.replace(frame, **changes)
    actor_list = Registry().update(frame)
    encoder = Encoder(Settings(), definitions(), further=carla_encoders())
    return {topic.name.removeprefix('~/'): data
            for topic, data in encoder.encode(frame, actor_list, 0, EVERYTHING)}


def stamped(data, seconds):
    """Return a serialized message with another stamp."""
    return data[:4] + struct.pack('<iI', seconds, 0) + data[12:]


def test_carla_messages_with_strange_names_are_no_dataset():
    messages = {name: data for name, data in messages_of(EXAMPLE).items() if name in TOPICS}
    assert frame_of_messages(messages).names[0] == 'player'
    n_actors = 1 + len(EXAMPLE['nonPlayerAgents'])
    for name in ('car', 'vehicle_4294967296', 'vehicle_x', 'vehicle_1\n'):
        strange = messages_of(EXAMPLE, names=(*map(str, range(n_actors - 1)), name))
        with pytest.raises(DecodeError, match='names as those of CARLA'):
            frame_of_messages({**messages, 'frame': strange['frame']})
    with pytest.raises(DecodeError, match=r'~/traffic_lights: found 5 bytes'):
        frame_of_messages({**messages, 'traffic_lights': b'\0\1\0\0x'})


def test_carla_messages_with_other_members_than_an_object_are_refused():
    messages = {name: data for name, data in messages_of(EXAMPLE).items() if name in TOPICS}
    status = typestore().deserialize_cdr(messages['player/status'], STATUS)
    for text in ('[1]', '3', '{', '{"metadata.json": 3}'):
        status.extra_members = text
        messages['player/status'] = bytes(typestore().serialize_cdr(status, STATUS))
        with pytest.raises(DecodeError, match=r'~/player/status extra_members.*: found .+; exp'):
            frame_of_messages(messages)


def test_carla_messages_find_their_frame_if_they_are_not_too_late():
    late = {name: i for i, name in enumerate(TOPICS)}
    parts = []
    for i in range(20):
        own = messages_of({**EXAMPLE, 'gameTimestamp': 1000 * i, 'frameNumber': str(i + 1)})
        parts += [(i + late[name], name, stamped(own[name], i)) for name in TOPICS]
    parts.sort(key=lambda part: part[0])
    messages = [(name, data) for _, name, data in parts]
    # Messages without a frame, a frame without other messages, and a repeated frame.
    messages.insert(0, ('player/status', stamped(messages[0][1], 99)))
    messages.insert(10, ('frame', stamped(messages_of(EXAMPLE)['frame'], 77)))
    frames = list(frames_of_messages(messages))
    assert [frame.extension.frame_number for frame in frames] == list(range(1, 21))
    assert all(frame.extension.speed_limits[-1] == 12.5 for frame in frames)


def test_carla_bag_without_a_status_is_refused_and_leaves_nothing(tmp_path, capsys):
    convert(SAMPLE, tmp_path / 'bag', '--undesired-tags', 'ego')
    assert main(['convert', str(tmp_path / 'bag'), str(tmp_path / 'out')]) == 1
    assert 'found no frames; expected' in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ['bag']


@pytest.mark.parametrize('storage', one_of(['sqlite3', 'mcap']))
def test_carla_episodes_of_one_frame_stay_apart(tmp_path, storage):
    """All frames have the same game time; recordings of them are told apart by their number."""
    dataset, bag, out = (tmp_path / name for name in ('dataset', 'bag', 'out'))
    pixels = [np.full((4, 6, 3), 10 * i, np.uint8) for i in range(6)]
    for i in range(6):
        folder = dataset / f'episode_{i:05d}'
        folder.mkdir(parents=True)
        (folder / 'measurements_00000.json').write_text(json.dumps(
            {**EXAMPLE, 'gameTimestamp': 0, 'frameNumber': str(40 + i)}))
        Image.fromarray(pixels[i]).save(folder / 'CentralRGB_00000.png')
    convert(dataset, bag, '--storage', storage)
    with Reader(bag) as reader:
        counts = {topic: info.msgcount for topic, info in reader.topics.items()}
    for topic in ('frame', 'player/status', 'camera/central/image', 'ego/odometry'):
        assert counts[f'/state_sensor/{topic}'] == 6, topic
    convert(bag, out)
    for i in range(6):
        folder = out / f'episode_{i:05d}'
        document = json.loads((folder / 'measurements_00000.json').read_text())
        assert document['frameNumber'] == str(40 + i)
        with Image.open(folder / 'CentralRGB_00000.png') as image:
            assert (np.asarray(image) == pixels[i]).all()


WEATHER = {
    'number_of_pedestrians': 30, 'number_of_vehicles': 20, 'playground': [1.5, None, {'a': 'ü'}],
    'seeds_pedestrians': 123456789, 'seeds_vehicles': 987654321, 'weather': 6, 'fov': 100}


@pytest.mark.parametrize('storage', one_of(['mcap', 'sqlite3']))
def test_carla_weather_and_seeds_come_back_from_a_bag(tmp_path, storage):
    """Of each episode its own, also where its first file is damaged or has no player."""
    dataset, bag, out = (tmp_path / name for name in ('dataset', 'bag', 'out'))
    own = [WEATHER, {'weather': 1}, {}, {**WEATHER, 'weather': 3, 'n': -0.1}]
    for i, metadata in enumerate(own):
        folder = dataset / f'episode_{i:05d}'
        folder.mkdir(parents=True)
        if metadata:
            (folder / 'metadata.json').write_text(json.dumps(metadata))
        for number in range(4):
            (folder / f'measurements_{number:05d}.json').write_text(json.dumps(
                {**EXAMPLE, 'gameTimestamp': 100 * number, 'frameNumber': str(1000 * i + number)}))
    (dataset / 'episode_00001' / 'measurements_00000.json').write_text('{')
    lone = {name: value for name, value in EXAMPLE.items() if name != 'playerMeasurements'}
    (dataset / 'episode_00003' / 'measurements_00000.json').write_text(json.dumps(
        {**lone, 'gameTimestamp': 0, 'frameNumber': '3000'}))
    convert(dataset, bag, '--storage', storage)
    convert(bag, out)
    for i, metadata in enumerate(own):
        found = out / f'episode_{i:05d}' / 'metadata.json'
        if metadata:
            assert json.loads(found.read_text()) == {**metadata, 'sensors': {}}
        else:
            assert not found.exists()
        document = json.loads((found.parent / 'measurements_00001.json').read_text())
        assert document['waypoints'] == EXAMPLE['waypoints']
        assert 'metadata.json' not in document
    # What was written is replaced, and comes back once more.
    convert(out, tmp_path / 'bag_2')
    convert(tmp_path / 'bag_2', out, '--force')
    assert json.loads((out / 'episode_00000' / 'metadata.json').read_text())['weather'] == 6
