# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Images and points of a CARLA server on topics: of an episode of the node, and relayed."""

from contextlib import ExitStack, suppress
import math
import socket
import threading

from carla_client import CarlaClient
from carla_late_server import LateServer
from carla_sensor_wire import image_message, lidar_message, scene
import numpy as np
from ports import free_ports
import pytest
from rig import NodeProcess

WIDTH, HEIGHT, FOV_DEG = 6, 4, 75.5
# Ids of the server are hashes of pointers.
RGB, DEPTH, SEGMENTATION, LIDAR = 4_000_000_000, 17, 2 ** 31, 5
SENSORS = {RGB: ('CentralRGB', 1), DEPTH: ('CentralDepth', 1),
           SEGMENTATION: ('FrontSemanticSeg', 1), LIDAR: ('Lidar32', 2)}
INI = """[CARLA/Server]
SynchronousMode=false
[CARLA/Sensor]
Sensors=CentralRGB,CentralDepth,FrontSemanticSeg,Lidar32
SensorType=CAMERA
PositionX=0.5
PositionZ=1.25
FOV=75.5
[CARLA/Sensor/CentralDepth]
PostProcessing=Depth
[CARLA/Sensor/FrontSemanticSeg]
PostProcessing=SemanticSegmentation
RotationYaw=90
[CARLA/Sensor/Lidar32]
SensorType=LIDAR_RAY_CAST
"""


def pixels(id_, number):
    """Return the pixels of a camera in a frame, BGRA."""
    bgra = np.random.default_rng((id_, number)).integers(0, 256, (HEIGHT, WIDTH, 4), np.uint8)
    if id_ == SEGMENTATION:
        bgra[..., 2] %= 13
    return bgra


def points(number):
    return np.random.default_rng(number).normal(0.0, 10.0, (number % 5, 3)).astype('<f4')


def sensor_messages(number):
    return [*(image_message(id_, number, pixels(id_, number), type_, FOV_DEG)
              for type_, id_ in enumerate((RGB, DEPTH, SEGMENTATION), 1)),
            lidar_message(LIDAR, number % 2 ** 16, 3.0, points(number), [number % 5])]


def stamp_of(message):
    return message.header.stamp.sec, message.header.stamp.nanosec


@pytest.mark.parametrize('way', ['episode', 'relay'])
def test_carla_sensors_on_the_topics(domain, listener, tmp_path, way):
    ini = tmp_path / 'CarlaSettings.ini'
    ini.write_text(INI)
    types = {'central/image': 'Image', 'central/depth': 'Image', 'front/segmentation': 'Image',
             'central/camera_info': 'CameraInfo', 'front/camera_info': 'CameraInfo'}
    received = {name: listener.subscribe(f'/state_sensor/camera/{name}', f'sensor_msgs/{type_}')
                for name, type_ in types.items()}
    clouds = listener.subscribe('/state_sensor/lidar/lidar32/points', 'sensor_msgs/PointCloud2')
    statuses = listener.subscribe('/state_sensor/player/status',
                                  'state_sensor_ros/CarlaPlayerStatus')
    static = listener.subscribe('/tf_static', 'tf2_msgs/TFMessage', latched=True)
    relay_port = free_ports(3)
    with ExitStack() as stack:
        server = stack.enter_context(LateServer(
            free_ports(3), rate=30.0, sensors=scene(SENSORS), sensor_messages=sensor_messages))
        own = {'control_port': server.world_port} if way == 'episode' \
            else {'relay_port': relay_port}
        node = stack.enter_context(NodeProcess(
            domain, source='carla', port=server.world_port + 1, config_file=str(ini),
            camera_tf=True, **own))
        if way == 'relay':
            listener.until(lambda: is_open(relay_port + 2), what='the ports of the relay')
            client = stack.enter_context(CarlaClient(relay_port, ini=INI))
            threading.Thread(target=client.is_cut, daemon=True).start()
        listener.until(lambda: static and min(map(
            len, (*received.values(), clouds, statuses))) > 9)
        assert node.end()[0] == 0
    check_transforms(static[0].transforms)
    numbers = {stamp_of(each): each.frame_number for each in statuses}
    check_images(received, numbers)
    n_clouds = 0
    for cloud in clouds:
        number = numbers.get(stamp_of(cloud))
        if number is not None:
            n_clouds += 1
            found = np.frombuffer(bytes(cloud.data), '<f4').reshape(-1, 3)
            assert cloud.header.frame_id == 'player/lidar32'
            assert found.tolist() == (-points(number)[:, [1, 0, 2]]).tolist()
    assert n_clouds > 5


def is_open(port):
    with suppress(OSError), socket.create_connection(('127.0.0.1', port)):
        return True
    return False


def check_transforms(transforms):
    found = {each.child_frame_id: each.transform for each in transforms}
    assert set(found) == {
        'player/camera_central', 'player/camera_central_optical', 'player/camera_front',
        'player/camera_front_optical', 'player/lidar32'}
    front = found['player/camera_front']
    assert (front.translation.x, front.translation.z) == (0.5, 1.25)
    # To the right.
    assert front.rotation.z == pytest.approx(-math.sqrt(0.5))


def check_images(received, numbers):
    """Compare images with what the server sent in the frame of their stamp."""
    for name, id_ in (('central/image', RGB), ('central/depth', DEPTH),
                      ('front/segmentation', SEGMENTATION)):
        matched = [(each, pixels(id_, numbers[stamp_of(each)])) for each in received[name]
                   if stamp_of(each) in numbers]
        assert len(matched) > 5
        for message, bgra in matched:
            b, g, r, _ = np.moveaxis(bgra.astype(float), -1, 0)
            expected = bgra[..., 2::-1].tobytes() if id_ == RGB else bgra[..., 2].tobytes() \
                if id_ == SEGMENTATION else (
                    1000.0 * (r + 256.0 * g + 65536.0 * b) / 16777215.0).astype('<f4').tobytes()
            assert bytes(message.data) == expected, name
            camera = name.partition('/')[0]
            assert message.header.frame_id == f'player/camera_{camera}_optical'
    for info in (*received['central/camera_info'], *received['front/camera_info']):
        assert (info.width, info.height) == (WIDTH, HEIGHT)
        assert info.k[0] == pytest.approx(3.0 / math.tan(math.radians(FOV_DEG / 2.0)))
    central = {stamp_of(info) for info in received['central/camera_info']}
    # One for each stamp, though there are two images.
    assert len(central) == len(received['central/camera_info'])
