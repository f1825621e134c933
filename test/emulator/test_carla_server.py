# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The CARLA server, read by code of this file and by the package's own source."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
import math
import re
import socket
import struct
import threading
import time

from budgets import AWAIT_S
from carla_server.town import CRUISE_SPEED, LIMITS_KMH
from carla_server.town_server import CarlaOptions, CarlaServer
import carla_wire as wire
import numpy as np
from programs import start_mock
import pytest
from source_errors import error_of
from stopwatch import Stopwatch

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.frames import FrameMaker, SERVER
from state_sensor_ros.simulators.carla.stream import CarlaSource
from state_sensor_ros.source import Faults

FAST = CarlaOptions(rate='max')
SYNCHRONOUS_INI = '[CARLA/Server]\nSynchronousMode=true\nSendNonPlayerAgentsInfo=true\n'


def read_frame(connection):
    messages = []
    while message := wire.read_message(connection):
        messages.append(message)
    return messages


def send(connection, body):
    connection.sendall(struct.pack('<I', len(body)) + body)


def is_hung_up(connection):
    """Read to the end of the connection; return whether the peer has closed it."""
    try:
        while read_frame(connection):
            pass
    except (EOFError, ConnectionError):
        return True
    return False


@contextmanager
def connected(port) -> Iterator[socket.socket]:
    """Connect; the ports of an episode refuse for a while after SERVER['EpisodeReady']."""
    until = time.monotonic() + AWAIT_S
    while True:
        try:
            connection = socket.create_connection(('127.0.0.1', port), AWAIT_S)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < until
            time.sleep(0.005)
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


@contextmanager
def episode(server, ini, start=0):
    """Begin an episode as a client does; yield the world connection and the scene."""
    with connected(server.world_port) as world:
        send(world, wire.sub(1, ini.encode()))
        scene = SERVER['SceneDescription'].FromString(wire.read_message(world))
        send(world, wire.integer(1, start))
        assert SERVER['EpisodeReady'].FromString(wire.read_message(world)).ready
        yield world, scene


def test_carla_server_positions_agree_with_speeds_and_accelerations():
    with CarlaServer(FAST) as server, connected(server.port) as reader:
        measurements = [SERVER['Measurements'].FromString(read_frame(reader)[0])
                        for _ in range(60)]
    maker = FrameMaker(Faults())
    frames = [maker.frame(message) for message in measurements]
    assert [m.frame_number for m in measurements] == list(range(60))
    assert [m.game_timestamp for m in measurements] == [100 * i for i in range(60)]
    first, last = frames[-2:]
    assert len(first.names) == 1 + 12 + 6 + 4 + 4
    step = last.position_xyz - first.position_xyz
    # At these radii, chords are shorter than arcs by 1e-4.
    for i, speed in enumerate(first.forward_speed):
        if math.isnan(speed):
            assert not step[i].any()
            continue
        x, y, z, w = (first.orientation_xyzw[i] + last.orientation_xyzw[i]) / 2
        forward = np.array((1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)))
        np.testing.assert_allclose(step[i], 0.1 * speed * forward, atol=0.01)
        assert np.linalg.norm(step[i]) > 0.05
    assert last.forward_speed[0] == pytest.approx(CRUISE_SPEED, abs=1.0)
    assert last.forward_speed.tolist().count(last.forward_speed[0]) == 1
    limits = last.extension.speed_limits[~np.isnan(last.extension.speed_limits)]
    assert {round(3.6 * limit) for limit in limits} == set(LIMITS_KMH)
    assert {0, 2} <= {state for frame in frames for state in frame.extension.lights.tolist()}
    # The ring turns right.
    assert last.extension.player.controls[0, 0] > 0.0
    positions = np.array([frame.position_xyz[0] for frame in frames])
    measured = np.diff(positions, 2, axis=0) / 0.01
    stated = np.array([frame.extension.player.numbers[:3] for frame in frames])[1:-1]
    np.testing.assert_allclose(measured[3:], stated[3:], atol=0.5)
    assert np.linalg.norm(stated[5]) > 1.0


def test_carla_server_begins_an_episode_with_the_settings_of_its_client():
    ini = ('[CARLA/Server]\nSendNonPlayerAgentsInfo=true\n[CARLA/LevelSettings]\n'
           'NumberOfVehicles=3\nNumberOfPedestrians=1\n')
    with CarlaServer(FAST) as server, connected(server.port) as old:
        read_frame(old)
        with episode(server, ini, start=2) as (_, scene), connected(server.port) as reader:
            assert len(scene.player_start_spots) == 8
            [message] = read_frame(reader)
            measurement = SERVER['Measurements'].FromString(message)
            assert measurement.game_timestamp == 0
            assert measurement.frame_number > 0  # episodes do not reset it
            at, spot = (measurement.player_measurements.transform.location,
                        scene.player_start_spots[2].location)
            assert (at.x, at.y, at.z) == (spot.x, spot.y, spot.z)
            kinds = [agent.WhichOneof('agent') for agent in measurement.non_player_agents]
            assert kinds.count('vehicle') == 3
            assert kinds.count('pedestrian') == 1
        assert is_hung_up(old)


def test_carla_server_waits_for_commands_in_synchronous_mode():
    with CarlaServer(FAST) as server, episode(server, SYNCHRONOUS_INI), \
            connected(server.port) as reader, connected(server.control_port) as control:
        speeds = []
        for i in range(5):
            speeds.append(SERVER['Measurements'].FromString(
                read_frame(reader)[0]).player_measurements.forward_speed)
            reader.settimeout(0.2)
            with pytest.raises(TimeoutError):
                reader.recv(1)
            reader.settimeout(AWAIT_S)
            send(control, wire.control(throttle=1.0) if i < 2 else wire.control(brake=1.0))
        assert server.n_sent <= 6
    assert 0.0 == speeds[0] < speeds[1] < speeds[2] > speeds[3] == speeds[4] == 0.0


@contextmanager
def source_of(settings):
    source = CarlaSource(settings)
    try:
        yield source, source.frames()
    finally:
        source.close()


@pytest.mark.parametrize(('answers', 'error'), [
    # With or without a reset: what the source sent is not read.
    ([], '(the server closed the connection instead of replying to the|connection reset)'),
    ([b''], 'found 0 start spots'), ([b'\xff\xff'], 'found no message of the world port'),
    ([wire.sub(1, wire.transform()), b''], 'found the reply that the episode is not ready'),
    ([wire.sub(1, wire.transform()), b'\x01'], 'found no message of the world port')])
def test_carla_source_reports_invalid_replies_of_a_world_port(answers, error):
    with socket.create_server(('127.0.0.1', 0)) as listener:
        def answer():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                # The source closes a connection whose reply is invalid.
                with connection, suppress(EOFError, OSError):
                    for body in answers:
                        wire.read_message(connection)
                        send(connection, body)
        threading.Thread(target=answer, daemon=True).start()
        settings = Settings(source='carla', port=1, control_port=listener.getsockname()[1],
                            desired_tags=('x',), reconnect_min=0.01, reconnect_max=0.01)
        with source_of(settings) as (source, packets):
            found = error_of(source, packets)
        assert re.search(f'127.0.0.1:{settings.control_port}: {error}', found)
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(('answers', 'request_name'), [
    ([], 'RequestNewEpisode'), ([wire.sub(1, wire.transform())], 'EpisodeStart')])
def test_carla_source_names_a_silent_world_port(answers, request_name):
    with socket.create_server(('127.0.0.1', 0)) as listener:
        connections = []

        def answer():
            connection, _ = listener.accept()
            connections.append(connection)
            for body in answers:
                wire.read_message(connection)
                send(connection, body)
        threading.Thread(target=answer, daemon=True).start()
        settings = Settings(source='carla', port=1, control_port=listener.getsockname()[1],
                            desired_tags=('x',))
        with source_of(settings) as (source, packets):
            reader = threading.Thread(target=lambda: list(packets), daemon=True)
            reader.start()
            watch = Stopwatch()
            # A reply that is late on a busy machine is named, too.
            while request_name not in source.health.last_error:
                assert watch.seconds < 3.0
                reader.join(0.01)
            assert source.health.state == 'connecting'
            assert source.health.last_error == (
                f'127.0.0.1:{settings.control_port}: no answer to {request_name} for 1 s; '
                'waiting up to 60 s')
            source.close()
            reader.join(AWAIT_S)
            assert not reader.is_alive()
        for connection in connections:
            connection.close()


def test_carla_source_refuses_a_missing_settings_file(tmp_path):
    settings = Settings(source='carla', control_port=2000, config_file=str(tmp_path / 'none'))
    with pytest.raises(ConfigError, match='none: no such file'):
        CarlaSource(settings)


def test_mock_program_serves_episodes():
    words = ['carla', '--port', '0', '--rate', 'max', '--vehicles', '2',
             '--objects', '0', '--frames', '4', '--episode', '2']
    with start_mock(*words) as process:
        lines = [process.stdout.readline() for _ in range(3)]
        assert [line.split(' on ')[0] for line in lines] == ['world', 'control', 'listening']
        with connected(int(lines[2].rsplit(':', 1)[1])) as reader:
            messages = [SERVER['Measurements'].FromString(read_frame(reader)[0]) for _ in range(4)]
            assert reader.recv(1) == b''
        assert process.wait(AWAIT_S) == 0
    assert [message.game_timestamp for message in messages] == [0, 100, 0, 100]
