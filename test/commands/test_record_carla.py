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
import carla_sensor_frames as sent
from carla_sensor_wire import scene
from carla_server.town_server import CarlaOptions, CarlaServer
from held_clock import begin_with_the_first_packet
from message_store import typestore
from mock_simulator import served
import numpy as np
from PIL import Image
from ports import free_ports
import pytest
from rosbags.rosbag2 import Reader
from scripted_simulator import InBackground

import state_sensor_ros as sensor
from state_sensor_ros.commands.command_line import main
from state_sensor_ros.emulator.traffic.frame_generator import generate


@pytest.fixture
def server():
    with CarlaServer(CarlaOptions(rate='max')) as found:
        yield found


def record(out, port, *options):
    return main(['record', str(out), '--protocol', 'carla', '--port', str(port), *options])


def test_record_carla_is_a_dataset(tmp_path, server, capsys):
    out = tmp_path / 'drive'
    assert record(out, server.port, '--frames', '10') == 0
    assert len(list(out.glob('measurements_*.json'))) == 10
    with sensor.open_recording(str(out)) as recording:
        frames = list(recording)
    assert [round(frame.game_time, 3) for frame in frames] == [round(0.1 * i, 3)
                                                               for i in range(10)]
    assert len(frames[0].names) == 1 + 12 + 6 + 4 + 4
    capsys.readouterr()
    assert main(['inspect', str(out), '--json']) == 0
    assert json.loads(capsys.readouterr().out)['frames'] == 10


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
    for i in range(3):
        assert len(list((tmp_path / 'drive' / f'episode_{i:05d}').iterdir())) >= 6
    assert 'interrupted' not in capsys.readouterr().err


def messages_of(folder, bag):
    """Convert a folder to a bag and return its messages by topic below the node's."""
    assert main(['convert', str(folder), str(bag), '-p', 'carla.camera_tf:=true']) == 0
    found = {}
    with Reader(bag) as reader:
        for connection, _, data in reader.messages():
            name = connection.topic.removeprefix('/state_sensor/').removeprefix('camera/')
            found.setdefault(name, []).append(typestore().deserialize_cdr(
                data, connection.msgtype))
    return found


def with_sensors(**options):
    return LateServer(free_ports(3), rate=100.0, sensors=scene(sent.SENSORS),
                      sensor_messages=sent.sensor_messages, **options)


def test_record_carla_with_cameras_and_a_lidar(tmp_path, capsys):
    ini, out = tmp_path / 'CarlaSettings.ini', tmp_path / 'drive'
    ini.write_text(sent.INI)
    with with_sensors() as server:
        assert record(out, server.world_port + 1, '--frames', '12', '-p',
                      f'control_port:={server.world_port}', '-p', f'config_file:={ini}') == 0
    # As another program reads them.
    for i in range(12):
        document = json.loads((out / f'measurements_{i:05d}.json').read_text())
        number = int(document['frameNumber'])
        for name, id_ in (('CentralRGB', sent.RGB), ('CentralDepth', sent.DEPTH),
                          ('FrontSemanticSeg', sent.SEGMENTATION)):
            with Image.open(out / f'{name}_{i:05d}.png') as image:
                assert image.mode == 'RGB'
                assert (np.asarray(image) == sent.pixels(id_, number)[..., 2::-1]).all()
        lines = (out / f'Lidar32_{i:05d}.ply').read_text().splitlines()
        rows = [line.split() for line in lines[lines.index('end_header') + 1:]]
        assert np.array(rows, np.float32).reshape(-1, 3).tolist() == sent.points(number).tolist()
        assert f'element vertex {len(rows)}' in lines
    metadata = json.loads((out / 'metadata.json').read_text())
    assert (metadata['fov'], metadata['width'], metadata['height']) == (
        sent.FOV_DEG, sent.WIDTH, sent.HEIGHT)
    assert (metadata['CentralRGB'], metadata['FrontSemanticSeg']) == (0.0, 90.0)
    assert metadata['sensors']['FrontSemanticSeg'] == {
        'type': 'CAMERA', 'fov': sent.FOV_DEG, 'width': sent.WIDTH, 'height': sent.HEIGHT,
        'position': {'x': 0.5, 'y': 0.0, 'z': 1.25},
        'rotation': {'pitch': 0.0, 'yaw': 90.0, 'roll': 0.0}}
    assert len(list(out.iterdir())) == 12 * 5 + 1
    # Read back, the folder gives the topics of the stream.
    found = messages_of(out, tmp_path / 'bag')
    numbers = {sent.stamp_of(each): each.frame_number for each in found['player/status']}
    sent.check_images(found, numbers)
    sent.check_clouds(found['lidar/lidar32/points'], numbers)
    sent.check_transforms(found['/tf_static'][0].transforms)
    capsys.readouterr()
    assert main(['inspect', str(out)]) == 0
    shown = capsys.readouterr().out
    assert 'central: depth 12, rgb 12' in shown
    assert 'ignored' not in shown


def test_record_carla_replaces_its_own_images_only(tmp_path, capsys):
    out = tmp_path / 'drive'
    with with_sensors() as server:
        as_client = ['--frames', '2', '-p', f'control_port:={server.world_port}']
        assert record(out, server.world_port + 1, *as_client) == 0
        assert record(out, server.world_port + 1, *as_client, '--force') == 0
        # Images without a metadata.json of this program are those of a collector.
        (out / 'metadata.json').write_text('{"CentralRGB": 0, "fov": 100}')
        assert record(out, server.world_port + 1, *as_client, '--force') == 1
    assert 'which is not part of a dataset that this program writes' in capsys.readouterr().err
    assert (out / 'CentralRGB_00001.png').exists()


def test_record_carla_with_the_cameras_of_the_client(tmp_path):
    """Beside a client of its own; the poses of the cameras are in the settings of that."""
    port, out = free_ports(3), tmp_path / 'drive'
    with with_sensors() as server, InBackground(lambda: drive(port, 8)):
        assert record(out, server.world_port + 1, '--once', '-p', f'carla.relay_port:={port}') == 0
    found = messages_of(out, tmp_path / 'bag')
    numbers = {sent.stamp_of(each): each.frame_number for each in found['player/status']}
    sent.check_images(found, numbers)
    sent.check_clouds(found['lidar/lidar32/points'], numbers)
    described = json.loads((out / 'metadata.json').read_text())['sensors']
    assert set(described) == {'CentralRGB', 'CentralDepth', 'FrontSemanticSeg', 'Lidar32'}
    assert 'position' not in described['CentralRGB']


def test_record_carla_names_sensors_that_it_leaves_out(tmp_path, capsys):
    broken = lambda number: [*sent.sensor_messages(number), b'\1\2\3\4five']  # noqa: E731
    with LateServer(free_ports(3), sensors=scene(sent.SENSORS), sensor_messages=broken) as server:
        assert record(tmp_path / 'drive', server.world_port + 1, '--frames', '3',
                      '-p', f'control_port:={server.world_port}') == 0
    assert ('dropped 3 messages of sensors; the last: sensor: found the id 67305985; expected '
            'one of a sensor of the scene') in capsys.readouterr().err


def test_record_carla_ends_if_the_ports_of_its_relay_are_taken(tmp_path, capsys):
    port = free_ports(6)
    with socket.create_server(('127.0.0.1', port + 3)):
        assert record(tmp_path / 'drive', port, '-p', f'carla.relay_port:={port + 3}') == 1
    assert capsys.readouterr().err.endswith(
        f'error: 127.0.0.1:{port + 3}: the port of the relay is in use\n')
    assert list(tmp_path.iterdir()) == []


def inspected(capsys, *options):
    assert main(['inspect', '--live', '--json', *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_inspect_carla_live(server, monkeypatch, capsys):
    begin_with_the_first_packet(monkeypatch)
    found = inspected(capsys, '--protocol', 'carla', '--port', str(server.port), '--frames', '12')
    assert (found['frames'], found['form'], found['replayable']) == (12, 'stream', None)
    # The control port of another simulator would need tags.
    assert main(['inspect', '--live', '--protocol', 'carla', '--port', str(server.port),
                 '-p', f'control_port:={server.world_port}', '--seconds', '0.5']) == 0
    assert 'generation  carla' in capsys.readouterr().out


def test_inspect_live_of_the_state_sensor(capsys):
    frames = list(itertools.islice(generate(3, 2, 20.0, 1, 'v2'), 20))
    with served(frames, rate='max') as server:
        found = inspected(capsys, '--port', str(server.port), '--frames', '5')
    assert found['frames'] == 5


@pytest.mark.parametrize(('options', 'text'), [
    ([], 'expected FILE, or --live for a running simulator'),
    (['--live', 'drive.json'], '--live reads a simulator, FILE drive.json a recording')])
def test_inspect_needs_a_recording_or_a_stream(capsys, options, text):
    with pytest.raises(SystemExit, match='2'):
        main(['inspect', *options])
    assert text in capsys.readouterr().err
