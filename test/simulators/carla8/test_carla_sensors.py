# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Names, fields of view and poses of sensors, and what their messages contain."""

from dataclasses import replace
import json
import math
import re
import struct

from carla_sensor_wire import image_message, lidar_message, scene
from carla_wire import join_messages, measurements, player, transform
from message_store import read
import numpy as np
import pytest
from test_carla_images import (
    carla_encoder,
    dataset_payload,
    encoded,
    five_images,
    image,
    packed,
    png_16_bits,
    VALUES,
)

from state_sensor_ros.errors import ConfigError, DecodeError
from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.carla_data import EncodedImage
from state_sensor_ros.simulators.carla.dataset import metadata_of, sensor_file_parts
from state_sensor_ros.simulators.carla.decoder import CarlaDecoder, DatasetDecoder
from state_sensor_ros.simulators.carla.frame_payload import SensorFile
from state_sensor_ros.simulators.carla.parameters import CarlaParameters
from state_sensor_ros.simulators.carla.sensors import (
    mounts,
    read_ini,
    Sensor,
    sensors_of_ini,
    with_parameters,
)
from state_sensor_ros.simulators.carla.topic_names import sensor_topics
from state_sensor_ros.source import ignore
from state_sensor_ros.topics.topic import EVERYTHING, Subscriptions

PLAYER = b'{"playerMeasurements": {"transform": {}}}'
CAMERAS = frozenset(('central', 'left', 'right', 'camera', 'rear'))


@pytest.mark.parametrize(('name', 'parts'), [
    ('CentralRGB_00042.png', ('central', 'rgb', 42)),
    ('LeftRGB_00000.png', ('left', 'rgb', 0)),
    ('RightRGB_123456.png', ('right', 'rgb', 123456)),
    ('CentralDepth_00100.png', ('central', 'depth', 100)),
    ('LeftDepth_00042.png', ('left', 'depth', 42)),
    ('CentralSemanticSeg_00042.png', ('central', 'segmentation', 42)),
    ('RightSemanticSeg_00042.png', ('right', 'segmentation', 42)),
    ('CameraRGB_00007.png', ('camera', 'rgb', 7)),
    ('CameraSemSeg_00007.png', ('camera', 'segmentation', 7)),
    ('RearDepth_00001.png', ('rear', 'depth', 1)),
    ('central_rgb_7.PNG', ('central', 'rgb', 7)),
    ('Lidar32_00042.ply', ('lidar32', 'points', 42)),
    ('RoofRGB_00001.png', None), ('measurements_00042.json', None), ('Rear_00001.png', None),
    ('CentralRGB_00042.jpg', None), ('CentralRGB_.png', None), ('CentralRGB_1/../x.png', None),
    ('Lidar32_00042.png', None), ('points_00042.ply', None)])
def test_carla_sensor_file_names(name, parts):
    assert sensor_file_parts(name, CAMERAS) == parts


INI = """
[CARLA/Server]
SynchronousMode=true
[CARLA/Sensor]
Sensors=CentralRGB,CentralRGB/Depth,Front,Lidar32
SensorType=CAMERA
FOV=60
; a remark
[CARLA/Sensor/CentralRGB]
ImageSizeX=80
PositionX=0.5
PositionY=0.25
PositionZ=1.25
RotationPitch=-15
RotationYaw=30
FOV=100
[CARLA/Sensor/CentralRGB/Depth]
PostProcessing=Depth
[CARLA/Sensor/Lidar32]
SensorType=LIDAR_RAY_CAST
PositionX=0
PositionZ=2.5
"""


def test_carla_settings_file_describes_sensors():
    rgb, depth, front, lidar = sensors_of_ini(INI, 'a.ini')
    pose = (0.5, -0.25, 1.25, 0.0, math.radians(15.0), -math.radians(30.0))
    assert rgb == Sensor('central', 'rgb', 100.0, pose)
    # A subsection has the values of the section above it.
    assert depth == Sensor('centralrgb', 'depth', 100.0, pose)
    # What the server uses where a key is absent.
    assert front == Sensor('front', 'rgb', 60.0, (1.7, 0.0, 1.5, 0.0, 0.0, 0.0))
    assert (lidar.name, lidar.kind) == ('lidar32', 'points')
    assert lidar.pose == (0.0, 0.0, 2.5, 0.0, 0.0, 0.0)
    assert math.isnan(lidar.fov_deg)


def test_carla_settings_file_gives_the_effect_in_the_last_section():
    text = ('[CARLA/Sensor]\nSensors=A,A/B\nSensorType=CAMERA\nPostProcessing=Depth\n'
            '[CARLA/Sensor/A]\nPostProcessing=SemanticSegmentation\n')
    assert [sensor.kind for sensor in sensors_of_ini(text, 'a.ini')] == ['segmentation', 'rgb']


@pytest.mark.parametrize(('text', 'found'), [
    ('no section', 'contains no section headers'),
    ('[CARLA/Sensor]\nSensors=A', "sensor A with SensorType ''"),
    ('[CARLA/Sensor]\nSensors=A\nSensorType=RADAR', "'RADAR'"),
    ('[CARLA/Sensor]\nSensors=A\nSensorType=CAMERA\nFOV=wide', "FOV 'wide'"),
    ('[CARLA/Sensor]\nSensors=A\nSensorType=CAMERA\nFOV=nan', "FOV 'nan'"),
    ('[CARLA/Sensor]\nSensors=A\n[CARLA/Sensor/A]\nSensorType=CAMERA\nPostProcessing=Sepia',
     "'Sepia'"),
    ('[CARLA/Sensor]\nSensors=A,aRGB\nSensorType=CAMERA', 'sensors A and aRGB')])
def test_carla_settings_file_that_describes_no_sensors_is_refused(text, found):
    with pytest.raises(ConfigError, match=r'^config_file: found a\.ini.+; expected ') as refusal:
        sensors_of_ini(text, 'a.ini')
    assert found in str(refusal.value)


def test_carla_settings_file_may_begin_with_a_bom(tmp_path):
    path = tmp_path / 'a.ini'
    path.write_bytes(b'\xef\xbb\xbf' + INI.encode())
    assert read_ini(str(path)) == INI


def test_carla_settings_file_that_is_a_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError) as refusal:
        read_ini(str(tmp_path))
    assert str(refusal.value) == (f'config_file: found {tmp_path} (is a folder); expected a '
                                  'readable CarlaSettings.ini')
    path = tmp_path / 'long.ini'
    path.write_text('#' * 1_000_001)
    with pytest.raises(ConfigError, match=r'long\.ini \(more than 1000000 characters\)'):
        read_ini(str(path))


def test_carla_metadata_gives_yaw_and_field_of_view():
    metadata = metadata_of(json.dumps({
        'CentralRGB': 0, 'LeftRGB': -30.0, 'RearDepth': 180, 'Lidar32': 0, 'fov': 100,
        'width': 800, 'height': 600, 'car range': [30, 60]}).encode())
    assert metadata.cameras() == {'central', 'left', 'rear'}
    left = metadata.sensor('left', 'rgb')
    assert left.fov_deg == 100.0
    # Forward and up as every configuration of the collector has it; left of the player is +.
    assert left.pose == pytest.approx((2.0, 0.0, 1.4, 0.0, math.radians(15), math.radians(30)))
    assert metadata.sensor('left', 'depth') == Sensor('left', 'depth', 100.0, left.pose)
    assert metadata.sensor('right', 'rgb').pose is None
    assert metadata.sensor('lidar32', 'points').pose == (0.0, 0.0, 2.5, 0.0, 0.0, 0.0)
    # That of an episode has no sensors.
    assert not metadata_of(b'{"weather": 3, "seeds_vehicles": NaN}').yaw_deg


@pytest.mark.parametrize(('member', 'number'), [
    ('x', 'NaN'), ('z', '1e999'), ('yaw', '-Infinity')])
def test_carla_metadata_with_a_pose_that_is_not_finite_has_none(member, number):
    text = json.dumps({'sensors': {'LeftRGB': {
        'type': 'CAMERA', 'fov': 60.0, 'position': {'x': 1.0, 'y': 0.0, 'z': 2.0},
        'rotation': {'pitch': 0.0, 'yaw': 3.0, 'roll': 0.0}}}})
    before = metadata_of(text.encode()).sensor('left', 'rgb')
    assert before.pose is not None
    changed = re.sub(f'"{member}": [0-9.]+', f'"{member}": {number}', text)
    assert metadata_of(changed.encode()).sensor('left', 'rgb') == replace(before, pose=None)
    with pytest.raises(DecodeError):
        metadata_of(b'{')


def test_carla_parameters_win():
    pose = (1.5, 0.0, 1.25, 0.0, 0.0, 0.5)
    sensors = (Sensor('central', 'rgb', 100.0, (1.0,) * 6),
               Sensor('left', 'rgb', 100.0, (2.0,) * 6),
               Sensor('lidar32', 'points', pose=(3.0,) * 6))
    settings = Settings(own=(CarlaParameters(
        camera_fov=70.0, camera_poses=pose + (0.0,) * 12),))
    central, left, lidar = with_parameters(sensors, settings)
    assert (central.fov_deg, central.pose) == (70.0, pose)
    assert (left.fov_deg, left.pose) == (70.0, (2.0,) * 6)
    assert lidar == sensors[2]
    assert {name: sensor.pose for name, sensor in mounts(sensors, settings).items()} == {
        'camera_central': pose, 'camera_left': (2.0,) * 6, 'lidar32': (3.0,) * 6}
    # Without a file that names them, there are the three cameras of the parameter.
    assert [sensor.pose for sensor in mounts((), settings).values()] == [pose, None, None]


def test_carla_camera_info_is_a_pinhole():
    sent = five_images(8)
    (decoded,) = DatasetDecoder().decode(dataset_payload(
        PLAYER, [packed(one, 100.0) for one in sent]))
    messages = [(topic.name, read(data, topic.type_name))
                for topic, data in carla_encoder().encode(
                    decoded.frame, Registry().update(decoded.frame), 7_000_000_009, EVERYTHING)]
    infos = {name: message for name, message in messages if name.endswith('camera_info')}
    assert len(infos) == sum(name.endswith('camera_info') for name, _ in messages) == 3
    info = infos['~/camera/left/camera_info']
    assert (info.header.stamp.sec, info.header.stamp.nanosec) == (7, 9)
    assert info.header.frame_id == 'player/camera_left_optical'
    assert (info.width, info.height, info.distortion_model) == (8, 8, 'plumb_bob')
    f = 4.0 / math.tan(math.radians(50.0))
    assert info.k.tolist() == pytest.approx([f, 0, 4, 0, f, 4, 0, 0, 1])
    assert info.p.tolist() == pytest.approx([f, 0, 4, 0, 0, f, 4, 0, 0, 0, 1, 0])
    assert info.r.tolist() == [1, 0, 0, 0, 1, 0, 0, 0, 1]
    assert info.d.tolist() == [0.0] * 5


def test_carla_camera_info_without_a_field_of_view_is_unknown():
    info = encoded(five_images(4)[:1])['~/camera/central/camera_info']
    assert (info.width, info.height) == (4, 4)
    assert not info.k.any()
    assert not info.p.any()


def test_carla_camera_info_alone_needs_no_pixels():
    (topic,) = [each for each in sensor_topics([Sensor('central', 'rgb')])
                if each.name.endswith('info')]
    whole = five_images(4)[0]
    cut = EncodedImage('central', 'rgb', whole.data[:40])
    assert list(encoded([cut], Subscriptions.of([topic]))) == ['~/camera/central/camera_info']


def test_carla_images_of_one_camera_that_differ_in_size_are_reported():
    reports = []
    sent = [image(np.zeros((2, 3, 3))), image(np.zeros((4, 3, 3)), kind='depth')]
    messages = encoded(sent, report=lambda kind, text: reports.append(text))
    assert messages['~/camera/central/camera_info'].height == 2
    (report,) = reports
    assert report == ('central depth image: found 3 x 4 pixels; expected 3 x 2, as in the '
                      'camera_info of the other images of this camera (reported once)')


@pytest.mark.parametrize(('color_type', 'channels', 'name'), [
    (0, slice(1, 2), 'gray'), (2, slice(0, 3), 'color')])
def test_carla_depth_of_16_bits_is_an_error(color_type, channels, name):
    reports = []
    data = png_16_bits(VALUES[..., channels], color_type)
    encoded([EncodedImage('central', 'depth', data)],
            report=lambda kind, text: reports.append(text))
    (report,) = reports
    assert report == (f'central depth image: found a 16-bit {name} PNG; expected one of 8 bits '
                      'for each of red, green and blue')


PLY = b"""ply
format ascii 1.0
element vertex 2
property float32 x
property float32 y
property float32 z
end_header
1.50 -2.00 0.25
0.00 0.00 -3.00"""


def points_of(data, report=None):
    (decoded,) = DatasetDecoder().decode(dataset_payload(
        PLAYER, [SensorFile('lidar32', 'points', math.nan, memoryview(data))]))
    encoder = carla_encoder(report or ignore, frame_prefix='a/')
    return [read(data, topic.type_name) for topic, data in encoder.encode(
        decoded.frame, Registry(frame_prefix='a/').update(decoded.frame), 7_000_000_009,
        EVERYTHING)
        if topic.name == '~/lidar/lidar32/points']


def test_carla_points_of_a_file():
    (cloud,) = points_of(PLY)
    assert (cloud.header.stamp.sec, cloud.header.stamp.nanosec) == (7, 9)
    assert cloud.header.frame_id == 'a/player/lidar32'
    assert (cloud.height, cloud.width, cloud.point_step, cloud.row_step) == (1, 2, 12, 24)
    assert (cloud.is_bigendian, cloud.is_dense) == (False, True)
    assert [(field.name, field.offset, field.datatype, field.count) for field in cloud.fields] \
        == [('x', 0, 7, 1), ('y', 4, 7, 1), ('z', 8, 7, 1)]
    # The server has x right, y backward, z down; no zero becomes -0.0.
    assert struct.unpack('<6f', cloud.data.tobytes()) == (2.0, -1.5, -0.25, 0.0, 0.0, 3.0)
    assert not np.signbit(np.frombuffer(cloud.data.tobytes(), '<f4')[3:5]).any()


def test_carla_points_of_an_empty_file_and_of_one_with_colors():
    empty = PLY[:PLY.index(b'end_header')].replace(b'vertex 2', b'vertex 0') + b'end_header\n'
    assert points_of(empty)[0].width == 0
    names = b''.join(b'property uchar diffuse_%s\n' % name for name in (b'red', b'green', b'blue'))
    colored = PLY.replace(b'end_header', names + b'end_header').replace(
        b'0.25', b'0.25 1 2 3').replace(b'-3.00', b'-3.00 4 5 6')
    assert points_of(colored)[0].data.tobytes() == points_of(PLY)[0].data.tobytes()


@pytest.mark.parametrize('data', [
    b'', b'no points', PLY[:-10], PLY.replace(b'1.50', b'a'), PLY.replace(b'ascii', b'binary'),
    PLY.replace(b'element vertex 2', b''), PLY.replace(b'float32 z', b'float32 q'),
    PLY.replace(b'vertex 2', b'vertex 3')])
def test_carla_bad_points_are_refused(data):
    reports = []
    assert points_of(data, lambda kind, text: reports.append((kind, text))) == []
    ((kind, text),) = reports
    assert kind == 'points'
    assert text.startswith('lidar32 points: found ')
    assert '; expected ' in text


def frames(*sent, names=None, number=9, report=None, encoder=None, subscriptions=None, stamp_ns=0):
    """Return the messages of a server's frame with the sensor messages ``sent``."""
    at = measurements(number, 100 * number, 0, player(transform()))
    payload = join_messages([at, *sent]) + scene(names or {
        1: ('CentralRGB', 1), 2: ('CentralDepth', 1), 3: ('CentralSemanticSeg', 1),
        2 ** 32 - 5: ('Lidar32', 2), 5: ('Front', 1)})
    (decoded,) = CarlaDecoder().decode(payload)
    encoder = encoder or carla_encoder(report or ignore)
    return {topic.name: read(data, topic.type_name) for topic, data in encoder.encode(
        decoded.frame, Registry().update(decoded.frame), stamp_ns, subscriptions or EVERYTHING)
        if topic.name.startswith(('~/camera', '~/lidar'))}


@pytest.mark.parametrize('version', ['0.8.4', '0.8.0'])
def test_carla_server_sends_what_a_dataset_has(version):
    number = None if version == '0.8.0' else 9
    rng = np.random.default_rng(4)
    bgra = rng.integers(0, 256, (3, 4, 4), dtype=np.uint8)
    points = rng.normal(0.0, 10.0, (5, 3)).astype('<f4')
    messages = frames(
        image_message(1, number, bgra, 1, 100.0), image_message(2, number, bgra, 2, 100.0),
        image_message(3, number, bgra, 3, 100.0), image_message(5, number, bgra, 0, 60.0),
        lidar_message(2 ** 32 - 5, number, 12.5, points, [2, 3]))
    rgb = bgra[..., 2::-1]
    filed = encoded([image(rgb), image(rgb, kind='depth'), image(rgb, kind='segmentation')])
    for name in ('image', 'depth', 'segmentation', 'segmentation_color'):
        one, other = (each[f'~/camera/central/{name}'] for each in (messages, filed))
        assert (one.width, one.height, one.step, one.encoding, one.header.frame_id) == (
            other.width, other.height, other.step, other.encoding, other.header.frame_id)
        assert one.data.tobytes() == other.data.tobytes(), name
    assert messages['~/camera/front/image'].data.tobytes() == rgb.tobytes()
    assert messages['~/camera/front/camera_info'].k[0] == pytest.approx(
        2.0 / math.tan(math.radians(30.0)))
    cloud = np.frombuffer(messages['~/lidar/lidar32/points'].data.tobytes(), '<f4').reshape(-1, 3)
    assert cloud.tolist() == (-points[:, [1, 0, 2]]).tolist()
    assert '~/camera/segmentation_classes' in messages


def test_carla_sensor_messages_of_no_known_format_are_dropped():
    reports = []
    bgra = np.zeros((2, 2, 4), np.uint8)
    good = image_message(1, 9, bgra, 1, 90.0)
    lidar = lidar_message(2 ** 32 - 5, 9, 0.0, np.zeros((2, 3), '<f4'), [2])
    wrong = [b'\1\0', good[:-1], good + b'\0', good[:4], image_message(77, 9, bgra, 1, 90.0),
             image_message(1, 9, bgra, 4, 90.0), image_message(1, 9, bgra[:0], 1, 90.0),
             lidar[:-4], lidar[:10], lidar + bytes(12)]
    messages = frames(*wrong, good, report=lambda kind, text: reports.append((kind, text)))
    assert messages['~/camera/central/image'].width == 2
    assert len(reports) == len(wrong)
    assert {kind for kind, _ in reports} == {'sensor'}
    assert all('found ' in text and '; expected ' in text for _, text in reports)


def test_carla_image_of_an_earlier_frame_has_the_stamp_of_that_frame():
    encoder = carla_encoder()
    bgra = np.zeros((2, 2, 4), np.uint8)
    frames(number=8, encoder=encoder, stamp_ns=8_000_000_000)
    late = frames(image_message(1, 8, bgra, 1, 90.0), image_message(5, 9, bgra, 1, 90.0),
                  encoder=encoder, stamp_ns=9_000_000_000)
    for camera, sec in (('central', 8), ('front', 9)):
        assert late[f'~/camera/{camera}/image'].header.stamp.sec == sec
        assert late[f'~/camera/{camera}/camera_info'].header.stamp.sec == sec
    # A frame that was not received has no stamp.
    unknown = frames(image_message(1, 3, bgra, 1, 90.0), number=10, encoder=encoder,
                     stamp_ns=10_000_000_000)
    assert unknown['~/camera/central/image'].header.stamp.sec == 10


def test_carla_sensor_without_a_topic_is_reported_once():
    reports = []
    encoder = carla_encoder(lambda kind, text: reports.append(text),
                            [Sensor('central', 'rgb')])
    bgra = np.zeros((2, 2, 4), np.uint8)
    for _ in range(2):
        messages = frames(image_message(1, 9, bgra, 1, 90.0), image_message(5, 9, bgra, 1, 90.0),
                          encoder=encoder)
        assert sorted(messages) == ['~/camera/central/camera_info', '~/camera/central/image']
    (report,) = reports
    assert report == ('front rgb image: found no topic; expected a sensor of config_file; its '
                      'images are dropped (reported once)')


def test_carla_unknown_sensors_are_dropped():
    bgra = np.zeros((2, 2, 4), np.uint8)
    at = measurements(9, 100, 0, player(transform()))
    payload = join_messages([at, image_message(1, 9, bgra, 1, 90.0)])
    (decoded,) = CarlaDecoder().decode(payload)
    sensor_data = decoded.frame.extension.sensor_data
    assert sensor_data.images == ()
    assert str(sensor_data.errors[0]) == (
        'sensors: found 1 message in a frame, whose sensors have no names; expected the scene of '
        'the episode, which control_port or relay_port receives')
    with pytest.raises(DecodeError, match='scene: found 3 bytes'):
        CarlaDecoder().decode(payload + b'\xff\xff\xff')
