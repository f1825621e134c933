# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Images and points of a CARLA server on topics: of an episode of the node, and relayed."""

from contextlib import ExitStack, suppress
import socket
import threading

from carla_client import CarlaClient
from carla_late_server import LateServer
from carla_sensor_frames import (
    check_clouds,
    check_images,
    check_transforms,
    INI,
    sensor_messages,
    SENSORS,
    stamp_of,
)
from carla_sensor_wire import scene
from ports import free_ports
import pytest
from rig import NodeProcess


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
    check_clouds(clouds, numbers)


def is_open(port):
    with suppress(OSError), socket.create_connection(('127.0.0.1', port)):
        return True
    return False
