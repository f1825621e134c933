# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The mock server of CARLA behaves like its server: ports, sensors, steering, refusals."""

from contextlib import contextmanager
from itertools import pairwise
import logging
import math
import socket
import struct
import threading

from budgets import AWAIT_S
from carla_client import CarlaClient
from carla_server.town import CRUISE_SPEED, N_START_SPOTS, RADIUS_M
from carla_server.town_server import CarlaOptions, CarlaServer
import numpy as np
import pytest
from stopwatch import until

from state_sensor_ros.simulators.carla.carla_schema import Measurements, SceneDescription

FAST = CarlaOptions(rate='max')
SENSORS = """\
[CARLA/Server]
SynchronousMode=true
SendNonPlayerAgentsInfo=true
[CARLA/Sensor]
Sensors=Front,Front/Depth,Tags,Top
SensorType=CAMERA
ImageSizeX=8
[CARLA/Sensor/Front]
ImageSizeY=6
FOV=60
PositionZ=2.0
[CARLA/Sensor/Front/Depth]
PostProcessing=Depth
[CARLA/Sensor/Tags]
SensorType=CAMERA
PostProcessing=SemanticSegmentation
ImageSizeX=4
ImageSizeY=4
[CARLA/Sensor/Top]
SensorType=LIDAR_RAY_CAST
Channels=4
Range=30
PointsPerSecond=1600
RotationFrequency=10
UpperFOVLimit=10
LowerFOVLimit=-30
PositionZ=2.5
"""


def number_of(message):
    """Return the number of the frame of measurements; 0, of the first one, is not sent."""
    return Measurements.FromString(message).frame_number


class Client(CarlaClient):
    """A client that tries a refused port again, as the official one does."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.refused = threading.Event()

    def _connect(self, number):
        def connected():
            try:
                return super(Client, self)._connect(number)
            except ConnectionRefusedError:
                self.refused.set()
                return None
        return until(connected)


@contextmanager
def town(**changes):
    with CarlaServer(FAST if not changes else CarlaOptions(**changes)) as server:
        yield server


def refuses(port):
    try:
        socket.create_connection(('127.0.0.1', port), AWAIT_S).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass  # the port was closed between the handshake and the return of connect()
    return False


def measured(frame):
    return Measurements.FromString(frame[0])


def test_mock_server_opens_its_ports_late_for_one_client_each(monkeypatch):
    late_s = AWAIT_S / 2
    monkeypatch.setattr(f'{CarlaServer.__module__}.LATE_PORT_S', late_s)
    server = CarlaServer(FAST)
    client, wait = Client(server.world_port), server._closing.wait

    def wait_for_a_refusal(timeout_s=None):
        """Wait as long as the server does, but no longer than until the client is refused."""
        if timeout_s != late_s:
            return wait(timeout_s)
        return client.refused.wait(timeout_s) and server._closing.is_set()

    monkeypatch.setattr(server._closing, 'wait', wait_for_a_refusal)
    with server, client:
        assert client.refused.is_set()
        client.frame()
        for port in (server.world_port, server.port, server.control_port):
            with socket.create_connection(('127.0.0.1', port), AWAIT_S) as second:
                second.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    second.recv(1)
        assert len(client.frame()) == 1


def test_mock_server_ends_the_episode_with_its_world_connection():
    with town() as server:
        with Client(server.world_port) as client:
            client.frame()
            client.world.close()
            assert client.is_cut()
        until(lambda: refuses(server.port))
        with Client(server.world_port) as client:
            assert measured(client.frame()).game_timestamp == 0


def test_mock_server_images():
    with town() as server, Client(server.world_port, ini=SENSORS) as client:
        scene = SceneDescription.FromString(client.scene)
        assert [(each.id, each.name, each.type) for each in scene.sensors] == [
            (1, 'Front', 1), (2, 'Front/Depth', 1), (3, 'Tags', 1), (4, 'Top', 2)]
        client.frame()
        client.command()
        message, color, depth, tags, _ = client.frame()
        number = number_of(message)
        heads = [struct.unpack('<IQIIIf', each[:28]) for each in (color, depth, tags)]
        assert heads == [(1, number, 8, 6, 1, 60.0), (2, number, 8, 6, 2, 60.0),
                         (3, number, 4, 4, 3, 90.0)]
        assert [len(each) - 28 for each in (color, depth, tags)] == [192, 192, 64]
        pixels = np.frombuffer(depth[28:], np.uint8).reshape(6, 8, 4).astype(int)
        depth_m = 1000.0 * (pixels @ (65536, 256, 1, 0)) / (2 ** 24 - 1)
        assert (depth_m[:3] == 1000.0).all()
        # Of the lowest row, whose center is 2.5 pixels below the axis, the camera 2 m up.
        focal = 4.0 / math.tan(math.radians(30.0))
        assert depth_m[5, 0] == pytest.approx(2.0 * focal / 2.5, abs=1e-3)
        pixels = np.frombuffer(tags[28:], np.uint8).reshape(4, 4, 4)
        assert pixels[:, :, 2].tolist() == [[0] * 4] * 2 + [[7] * 4] * 2
        client.command()
        assert client.frame()[1] != color


def test_mock_server_lidar():
    with town() as server, Client(server.world_port, ini=SENSORS) as client:
        client.frame()
        client.command()
        angles = []
        for _ in range(3):
            message, *_, lidar = client.frame()
            client.command()
            id_, number, angle, channels = struct.unpack('<IQfI', lidar[:20])
            assert (id_, number, channels) == (4, number_of(message), 4)
            angles.append(angle)
            counts = np.frombuffer(lidar[20:36], '<u4')
            points = np.frombuffer(lidar[36:], '<f4').reshape(-1, 3)
            # 1600 points a second, ten frames a second, four lasers.
            assert counts.tolist() == [40, 40, 40, 40]
            assert len(points) == counts.sum()
            right, backward, down = points.T
            assert np.hypot(right, backward).max() == pytest.approx(20.0, abs=1e-3)
            # The lowest laser, 30 degrees down from 2.5 m, meets the road.
            assert down[-40:] == pytest.approx(2.5, abs=1e-3)
            assert np.hypot(right, backward)[-40:] == pytest.approx(
                2.5 / math.tan(math.radians(30.0)), abs=1e-3)
        # A whole turn in each frame; the first point is straight ahead.
        assert angles == [0.0, 0.0, 0.0]
        assert (right[0], backward[0] < -1.0) == (pytest.approx(0.0, abs=1e-5), True)


@pytest.mark.parametrize(('setting', 'line'), [
    ('SensorType=RADAR', 'sensor Front: found SensorType=RADAR; expected CAMERA or'),
    ('PostProcessing=Normals', 'sensor Front: found PostProcessing=Normals; expected one of None'),
    ('[CARLA/LevelSettings]\nPlayerVehicle=/Game/Mini', 'PlayerVehicle: found /Game/Mini')])
def test_mock_server_names_what_it_cannot_do(caplog, setting, line):
    ini = '[CARLA/Sensor]\nSensors=Front,Back\n[CARLA/Sensor/Front]\nImageSizeX=4\n' + setting \
        + '\n[CARLA/Sensor/Back]\nImageSizeX=4\nImageSizeY=4\n'
    with caplog.at_level(logging.WARNING), town() as server, \
            Client(server.world_port, ini=ini) as client:
        names = [each.name for each in SceneDescription.FromString(client.scene).sensors]
        assert names == (['Front', 'Back'] if 'Player' in setting else ['Back'])
        client.frame()
    assert [record.message for record in caplog.records if record.message.startswith(line)]


@pytest.mark.parametrize('ini', [
    'no section', '[CARLA/Server]\nSynchronousMode=perhaps\n',
    '[CARLA/LevelSettings]\nNumberOfVehicles=many\n',
    '[CARLA/Sensor]\nSensors=A\nSensorType=LIDAR_RAY_CAST\nRange=far\n'])
def test_mock_server_refuses_settings_that_it_cannot_read(caplog, ini):
    with caplog.at_level(logging.WARNING), town() as server:
        with socket.create_connection(('127.0.0.1', server.world_port), AWAIT_S) as world:
            body = b'\x0a' + bytes([len(ini)]) + ini.encode()
            world.sendall(struct.pack('<I', len(body)) + body)
            assert world.recv(1) == b''
        with Client(server.world_port) as client:
            assert client.frame()
    assert 'refused an episode: RequestNewEpisode: found' in caplog.text


def test_mock_server_begins_at_the_first_spot_where_there_is_no_such(caplog):
    with caplog.at_level(logging.WARNING), town() as server, \
            Client(server.world_port, spot=N_START_SPOTS) as client:
        at = measured(client.frame()).player_measurements.transform.location
        assert (at.x, at.y) == (RADIUS_M, 0.0)
    assert f'no start spot {N_START_SPOTS}, only 0 to' in caplog.text


@pytest.mark.parametrize('side', [-1.0, 1.0], ids=['left', 'right'])
def test_mock_server_steers(side):
    with town() as server, Client(server.world_port, is_synchronous=True) as client:
        yaws, places = [], []
        for _ in range(15):
            player = measured(client.frame()).player_measurements
            yaws.append(player.transform.rotation.yaw)
            places.append((player.transform.location.x, player.transform.location.y))
            # Uphill.
            client.command(throttle=0.7, steer=0.5 * side)
    # The car begins along CARLA's y axis; right is toward lower x, as yaw grows to the right.
    turned = math.remainder(yaws[-1] - yaws[0], 360.0)
    assert side * turned > 20.0
    assert side * (places[-1][0] - places[0][0]) < -0.3
    steps = np.diff(places, axis=0)
    directions = np.degrees(np.arctan2(steps[3:, 1], steps[3:, 0]))
    middles = [yaw + math.remainder(after - yaw, 360.0) / 2 for yaw, after in pairwise(yaws[3:])]
    assert np.abs([math.remainder(direction - middle, 360.0) for direction, middle in
                   zip(directions, middles, strict=True)]).max() < 1.0


def test_mock_server_drives_by_commands_alone():
    with town() as server, Client(server.world_port) as client:
        speeds = [measured(client.frame()).player_measurements.forward_speed for _ in range(10)]
    assert speeds == [0.0] * 10


def test_mock_server_autopilot_returns_to_its_lane():
    with town() as server, Client(server.world_port, is_synchronous=True) as client:
        for i in range(250):
            player = measured(client.frame()).player_measurements
            command = player.autopilot_control
            client.command(throttle=command.throttle, brake=command.brake,
                           steer=0.5 if 30 <= i < 40 else command.steer)
            at = player.transform.location
            if i == 40:
                assert abs(math.hypot(at.x, at.y) - RADIUS_M) > 1.0
    assert math.hypot(at.x, at.y) == pytest.approx(RADIUS_M, abs=0.1)
    assert player.forward_speed == pytest.approx(CRUISE_SPEED, abs=1.0)


def test_mock_server_keeps_the_newest_frame_for_a_slow_client():
    ini = SENSORS.replace('SynchronousMode=true', 'SynchronousMode=false').replace(
        'ImageSizeX=8', 'ImageSizeX=1024').replace('ImageSizeY=6', 'ImageSizeY=1024')
    with town(rate=50.0) as server, Client(server.world_port, ini=ini) as client:
        numbers = [number_of(client.frame()[0])]
        until(lambda: server.n_sent >= 75)
        n_made = server.n_sent
        while numbers[-1] < n_made:
            numbers.append(number_of(client.frame()[0]))
    # Some frames wait in the buffers of the system; all but the newest of the others are lost.
    assert len(numbers) < n_made / 2
    assert numbers == sorted(set(numbers))
