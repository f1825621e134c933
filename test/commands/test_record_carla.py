# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""`record` and `inspect` of a live stream of CARLA."""

import itertools
import json

from carla_client import drive
from carla_late_server import LateServer
from ports import free_ports
import pytest
from scripted_simulator import InBackground

import state_sensor_ros as sensor
from state_sensor_ros.commands.command_line import main
from state_sensor_ros.emulator.carla_server.town_server import CarlaOptions, CarlaServer
from state_sensor_ros.emulator.monodrive_server.frame_server import (
    MonodriveOptions,
    MonodriveServer,
)
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
        assert record(tmp_path / 'drive', server.world_port + 1, '--frames', '8', '--control-port',
                      str(server.world_port), '--carla.start-spot', '3') == 0
        assert server.episodes[0].spot == 3
        assert len(server.episodes) == 1
    with sensor.open_recording(str(tmp_path / 'drive')) as recording:
        assert next(iter(recording)).position_xyz[0, 0] == pytest.approx(300.0, abs=1.0)


def test_record_carla_beside_the_client(tmp_path):
    port = free_ports(3)
    with LateServer(free_ports(3)) as server, InBackground(lambda: drive(port, 6)):
        assert record(tmp_path / 'drive', server.world_port + 1, '--once', '--relay-port',
                      str(port)) == 0
    assert len(list((tmp_path / 'drive').iterdir())) >= 6


def test_record_carla_of_nothing(tmp_path, capsys):
    port = free_ports(3)
    assert record(tmp_path / 'drive', port, '--seconds', '0.3') == 1
    assert f'127.0.0.1:{port}: found connection refused' in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(('options', 'words'), [
    (['--protocol', 'carla', '--desired-tags', 'vehicle'], 'none with --protocol carla'),
    (['--relay-port', '3000'], 'it with another --protocol than monodrive'),
    (['--protocol', 'carla', '--relay-port', '3000', '--control-port', '2000'],
     'control_port: found 2000; expected 0 with relay_port')])
def test_record_refuses_options_that_exclude_each_other(tmp_path, capsys, options, words):
    assert main(['record', str(tmp_path / 'out'), *options]) == 1
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def inspected(capsys, *options):
    assert main(['inspect', '--live', '--json', *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_inspect_carla_live(server, capsys):
    found = inspected(capsys, '--protocol', 'carla', '--port', str(server.port), '--frames', '12')
    assert (found['frames'], found['form'], found['replayable']) == (12, 'stream', None)
    assert main(['inspect', '--live', '--protocol', 'carla', '--port', str(server.port),
                 '--seconds', '0.5']) == 0
    assert 'generation  carla' in capsys.readouterr().out


def test_inspect_live_of_the_state_sensor(capsys):
    frames = list(itertools.islice(generate(3, 2, 20.0, 1, 'v2'), 20))
    with MonodriveServer(frames, MonodriveOptions(rate='max')) as server:
        found = inspected(capsys, '--port', str(server.port), '--frames', '5')
    assert found['frames'] == 5


def test_inspect_live_of_nothing(capsys):
    port = free_ports(1)
    assert main(['inspect', '--live', '--port', str(port), '--seconds', '0.3']) == 1
    assert f'127.0.0.1:{port}: found connection refused; expected ' in capsys.readouterr().err


@pytest.mark.parametrize('options', [[], ['--live', 'drive.json']])
def test_inspect_needs_a_recording_or_a_stream(capsys, options):
    with pytest.raises(SystemExit, match='2'):
        main(['inspect', *options])
    assert 'one of FILE and --live is required' in capsys.readouterr().err
