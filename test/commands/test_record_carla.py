# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`record` and `inspect` of a live stream of CARLA."""

import itertools
import json
import socket

from carla_client import drive
from carla_late_server import LateServer
from carla_server.town_server import CarlaOptions, CarlaServer
from mock_simulator import served
from ports import free_ports
import pytest
from scripted_simulator import InBackground

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames


@pytest.fixture
def server():
    with CarlaServer(CarlaOptions(rate='max')) as found:
        yield found


def record(out, port, *options):
    return main(['record', str(out), '--source', 'carla', '--port', str(port), *options])


def test_record_carla_is_a_bag(tmp_path, server):
    out = tmp_path / 'drive'
    assert record(out, server.port, '--frames', '10') == 0
    with sensor.open_recording(out) as recording:
        frames = list(recording)
    assert [round(frame.game_time, 3) for frame in frames] == [round(0.1 * i, 3)
                                                               for i in range(10)]
    assert len(frames[0].names) == 1 + 12 + 6 + 4 + 4


def test_record_carla_as_the_client_of_the_episode(tmp_path):
    with LateServer(free_ports(3), (0.0, 0.2)) as server:
        assert record(tmp_path / 'drive', server.world_port + 1, '--frames', '8', '-p',
                      f'control_port:={server.world_port}', '-p', 'carla.start_spot:=3') == 0
        assert server.episodes[0].spot == 3
        assert len(server.episodes) == 1
    with sensor.open_recording(str(tmp_path / 'drive')) as recording:
        assert next(iter(recording)).position_xyz[0, 0] == pytest.approx(300.0, abs=1.0)


def test_record_carla_beside_a_client_of_several_episodes(tmp_path, capsys):
    """The recorder ends with the client, which no episode of its own cuts off."""
    port = free_ports(3)
    with LateServer(free_ports(3)) as server, InBackground(lambda: drive(port, 6, 3)):
        assert record(tmp_path / 'drive', server.world_port + 1, '--once', '-p',
                      f'carla.relay_port:={port}') == 0
        assert len(server.episodes) == 3
    with sensor.open_recording(tmp_path / 'drive') as recording:
        assert [frame.game_time for frame in recording].count(0.0) == 3
    assert 'interrupted' not in capsys.readouterr().err


def test_record_carla_ends_if_the_ports_of_its_relay_are_taken(tmp_path, capsys):
    port = free_ports(6)
    with socket.create_server(('127.0.0.1', port + 3)):
        assert record(tmp_path / 'drive', port, '-p', f'carla.relay_port:={port + 3}') == 1
    assert f'error: 127.0.0.1:{port + 3}: found address already in use; expected a free port' \
        in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def inspected(capsys, *options):
    assert main(['inspect', '--live', '--json', *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_inspect_carla_live(server, capsys):
    for words in ((), ('-p', f'control_port:={server.world_port}')):
        found = inspected(capsys, '--source', 'carla', '--port', str(server.port), '--frames',
                          '12', *words)
        assert (found['frames'], found['form'], found['replayable']) == (12, 'stream', None)
        assert found['generations'] == {'carla': 12}
        # The client of the episode asks for all actors.
        assert found['actors_per_frame']['most'] == 1 + 12 + 6 + 4 + 4


def test_inspect_live_of_the_state_sensor(capsys):
    frames = list(itertools.islice(TrafficFrames(3, 2, 20.0, 1, 'v2'), 20))
    with served(frames, rate='max') as server:
        found = inspected(capsys, '--port', str(server.port), '--frames', '5')
    assert found['frames'] == 5
