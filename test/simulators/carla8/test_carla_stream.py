# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""A server of CARLA 0.8 on its ports: measurements, episodes, and what goes wrong."""

from contextlib import contextmanager
import random
import re
import socket
import struct
import threading

from budgets import AWAIT_S, tries
from carla_late_server import LateServer
import carla_wire as wire
from carla_wire import framed, join_messages
from ports import free_ports
import pytest
from source_errors import error_of
from stopwatch import Stopwatch

from state_sensor_ros.control.ego_commands import EgoCommand
from state_sensor_ros.errors import ConfigError, FramingError
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import checked_settings
from state_sensor_ros.simulators.carla.frames import SERVER
from state_sensor_ros.simulators.carla.stream import (
    CarlaSource,
    CONTROL_AFTER_WORLD,
    EpisodeClient,
    MeasurementFramer,
    parsed,
)

FRAMES = [[b'one measurement'], [b'm', b'image 1', b'image 22'], [b'x' * 300],
          [b'\0' * 4, b'\0' * 70_000, b'\0'], []]


@pytest.mark.parametrize('cut', [lambda n: n, lambda n: 1, random.Random(7).randrange],
                         ids=['whole', 'bytewise', 'random'])
def test_carla_framing_gives_the_same_measurements_in_any_pieces(cut):
    framer, data, found = MeasurementFramer(100_000), b''.join(map(join_messages, FRAMES)), []
    while data:
        n_bytes = max(cut(len(data)), 1)
        found += framer.fed(memoryview(data[:n_bytes]))
        data = data[n_bytes:]
    assert found == [messages[0] if messages else b'' for messages in FRAMES]
    framer.end()


def test_carla_framing_refuses_lengths_above_the_limit():
    framer = MeasurementFramer(100, 'here')
    list(framer.fed(memoryview(join_messages(FRAMES[0]))))
    with pytest.raises(FramingError, match=r'message length 93 at byte 27; .*100'):
        list(framer.fed(memoryview(struct.pack('<I', 93))))
    whole = memoryview(join_messages([b'a' * 40, b'b' * 40]))
    assert len(list(MeasurementFramer(92).fed(whole))) == 1
    with pytest.raises(FramingError):
        list(MeasurementFramer(91).fed(whole))


def drive(x, game_timestamp, frame_number, *, speed=10.0):
    return wire.measurements(
        frame_number, game_timestamp, 0, wire.player(wire.transform((x, 0.0, 0.0)), speed=speed),
        wire.traffic_light(7, wire.transform((50.0, 5.0, 0.0)), 2))


@contextmanager
def serving(*connections, parameter='port'):
    """Answer each connection to a port with its bytes and hang up; the last one stays open."""
    held = []
    with socket.create_server(('127.0.0.1', 0)) as listener:
        def serve():
            for i, data in enumerate(connections):
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                connection.sendall(data)
                if i + 1 < len(connections):
                    connection.close()
                else:
                    held.append(connection)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        source = CarlaSource(
            Settings(source='carla', reconnect_min=0.01, reconnect_max=0.02,
                     max_frame_bytes=100_000, **{parameter: listener.getsockname()[1]}))
        try:
            yield source
        finally:
            source.close()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(AWAIT_S)
            for connection in held:
                connection.close()


GOOD = join_messages([drive(0.0, 100, 1)])


@pytest.mark.parametrize(('fault', 'n_protocol_errors', 'n_cut'), [
    (b'', 0, 0), (GOOD, 0, 0), (GOOD[:3], 0, 1), (GOOD[:40], 0, 1), (GOOD[:-4], 0, 1),
    (struct.pack('<I', 2 ** 32 - 1), 1, 0), (struct.pack('<I', 100_001), 1, 0),
    (struct.pack('>I', 200) + bytes(200), 1, 0), (bytes(range(256)) * 500, 1, 0)])
def test_carla_source_survives_what_a_server_does_wrong(fault, n_protocol_errors, n_cut):
    with serving(fault, GOOD + GOOD) as source:
        frames = source.frames()
        for _ in range(3 if fault == GOOD else 2):
            assert next(frames).names == ('player', 'traffic_light_7')
        assert source.health.n_protocol_errors == n_protocol_errors
        assert source.health.n_cut_packets == n_cut
        assert source.health.n_reconnects == 1
        assert source.health.last_error


@pytest.mark.parametrize('message', [
    b'', b'\xff' * 50, wire.measurements(1, 1, 1), random.Random(1).randbytes(5000)])
def test_carla_bad_measurement_is_skipped(message):
    bad = join_messages([message]) if message else bytes(4)
    with serving(GOOD + bad + GOOD) as source:
        frames = source.frames()
        assert [next(frames).names for _ in range(2)] == [('player', 'traffic_light_7')] * 2
        assert (source.faults.n_lost, source.health.n_protocol_errors) == (1, 0)


SCENE = wire.sub(1, wire.transform())


@pytest.mark.parametrize(('connections', 'error'), [
    # With or without a reset: what the source sent is not read.
    ([b'', b''],
     '(the server closed the connection instead of replying to the|connection reset)'),
    ([framed(b'')], 'found 0 start spots'),
    ([framed(b'\xff\xff')], 'found no message of the world port'),
    ([framed(SCENE, b'')], 'found the reply that the episode is not ready'),
    ([framed(SCENE, b'\x01')], 'found no message of the world port')])
def test_carla_source_reports_invalid_replies_of_a_world_port(connections, error):
    with serving(*connections, parameter='control_port') as source:
        assert re.match(rf'127\.0\.0\.1:\d+: {error}', error_of(source, source.frames()))


@pytest.mark.parametrize(('answer', 'request_name'), [
    (b'', 'RequestNewEpisode'), (framed(SCENE), 'EpisodeStart')])
def test_carla_source_names_a_silent_world_port(answer, request_name):
    with serving(answer, parameter='control_port') as source:
        reader = threading.Thread(target=lambda: list(source.frames()), daemon=True)
        reader.start()
        watch = Stopwatch()
        # A reply that is late on a busy machine is named, too.
        while request_name not in source.health.last_error:
            assert watch.seconds < 3.0
            reader.join(0.01)
        assert source.health.state == 'connecting'
        assert re.fullmatch(rf'127\.0\.0\.1:\d+: no answer to {request_name} for 1 s; waiting up '
                            'to 60 s', source.health.last_error)
        source.close()
        reader.join(AWAIT_S)
        assert not reader.is_alive()


def test_carla_source_refuses_a_missing_settings_file(tmp_path):
    with pytest.raises(ConfigError, match='none: no such file'):
        CarlaSource(Settings(source='carla', control_port=2000,
                             config_file=str(tmp_path / 'none')))


INI = '[CARLA/Server]\nSynchronousMode={}\nSendNonPlayerAgentsInfo=true\n'
N_STARTS = tries(6)


@contextmanager
def frames_of(server, **changes):
    source = CarlaSource(checked_settings({
        'source': 'carla', 'port': server.world_port + 1, 'control_port': server.world_port,
        'reconnect_min': 0.01, 'reconnect_max': 0.05, **changes}))
    try:
        yield source, source.frames()
    finally:
        source.close()


def await_movement(frames):
    """Receive until the player has driven forward."""
    first = next(frames).position_xyz[0]
    while next(frames).position_xyz[0][0] <= first[0]:
        pass


def starts(folder, mode, latest_s, **options):
    """Yield server, source and frames of each of N_STARTS starts with a settings file."""
    ini = folder / 'CarlaSettings.ini'
    ini.write_text(INI.format(mode))
    for i in range(N_STARTS):
        with LateServer(free_ports(3), (0.0, latest_s), rate=200.0, seed=i, **options) as server, \
                frames_of(server, config_file=str(ini)) as (source, frames):
            yield server, source, frames


@pytest.mark.parametrize('mode', ['false', 'true'], ids=['asynchronous', 'synchronous'])
@pytest.mark.parametrize('closing', [0.0, 0.5])
def test_carla_starts_drive_in_the_first_episode(tmp_path, mode, closing):
    """It is kept if the measurements port closes its first connection."""
    n_refused = 0
    for server, source, frames in starts(tmp_path, mode, 0.2, refuses=(0.0, closing, 0.0)):
        await_movement(frames)
        assert (source.health.n_connects, len(server.episodes), server.n_loads) == (1, 1, 1)
        assert set(server.episodes[0].commands) == {0.5}
        assert server.episodes[0].is_synchronous is (mode == 'true')
        n_refused += server.n_refused
    assert n_refused >= closing * N_STARTS / 2


@pytest.mark.parametrize('mode', ['false', 'true'], ids=['asynchronous', 'synchronous'])
def test_carla_starts_drive_where_every_port_closes_again(tmp_path, mode):
    """A control connection that is lost ends the episode; the next one drives."""
    for server, _, frames in starts(tmp_path, mode, 0.1, refuses=(0.3, 0.3, 0.3)):
        while not any(episode.distance > 0.0 for episode in server.episodes):
            next(frames)


def test_carla_start_at_a_spot_that_the_map_does_not_have():
    with LateServer(free_ports(3)) as server, frames_of(
            server, **{'carla.start_spot': 4}) as (source, frames):
        assert error_of(source, frames) == (
            f'127.0.0.1:{server.world_port}: found 4 start spots; expected more than '
            'carla.start_spot, 4')
        assert server.episodes == []


@pytest.mark.parametrize('lose', [LateServer.cut, lambda server: server.drop(1)],
                         ids=['all connections', 'that of the measurements'])
def test_carla_start_of_a_new_episode_loads_the_level_once(lose):
    with LateServer(free_ports(3), (0.0, 0.2)) as server, frames_of(server) as (source, frames):
        next(frames)
        lose(server)
        while source.health.n_connects == 1:
            next(frames)
        assert len(server.episodes) == server.n_loads == 2


def test_carla_start_gives_up_a_port_that_stays_closed(monkeypatch):
    monkeypatch.setattr('state_sensor_ros.simulators.carla.stream.LATE_PORT_S', 0.2)
    with LateServer(free_ports(3), (AWAIT_S, AWAIT_S)) as server, \
            frames_of(server) as (source, frames):
        assert error_of(source, frames) == (
            f'cannot connect to 127.0.0.1:{server.world_port + 1}: connection refused; is the '
            'simulator running?')


@pytest.mark.parametrize(('mode', 'expected'), [
    ('true', [(0, 0), (0, 1), (0, 1), (0.5, 0), (0.25, 0.5)]),
    # The first one and the brake before a frame; then less throttle, and another angle.
    ('false', [(0, 0), (0.5, 0), (0, 1), (0, 1), (0.5, 0), (0.25, 0), (0.25, 0.5)])])
def test_carla_commands_of_a_stall_leave_no_queue(tmp_path, mode, expected):
    ini, port = tmp_path / 'CarlaSettings.ini', free_ports(3)
    ini.write_text(INI.format(mode))
    client = EpisodeClient(Settings(source='carla', control_port=port, config_file=str(ini)),
                           pytest.fail, pytest.fail)
    with socket.create_server(('127.0.0.1', port + CONTROL_AFTER_WORLD)) as listener:
        client.take_control()
        peer, _ = listener.accept()

    def send(throttle, steer=0.0, brake=0.0):
        client.write(EgoCommand(throttle=throttle, brake=brake, steer=steer, steering_angle=0.0))

    def answer():
        client.answer(parsed(wire.measurements(1, 1, 1)))

    with peer:
        answer()
        for i in range(29):
            send(0.5, i / 100)
        send(0.0, brake=1.0)
        for _ in range(2 + (mode == 'false')):
            answer()
        send(0.5)
        answer()
        send(0.25)
        send(0.25, 0.5)
        answer()
        client.shut_down()
        sent = [SERVER['Control'].FromString(wire.read_message(peer)) for _ in expected]
        assert [(each.throttle, each.brake or -each.steer) for each in sent] == expected
        assert not peer.recv(1)
