# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Live streams as the library reads them: frames, faults, ends of the connection."""

from contextlib import closing
import itertools
import json
import socket
import struct

from budgets import AWAIT_S
from mock_simulator import served
from ports import free_port
import pytest
from scripted_simulator import InBackground

import state_sensor_ros as sensor
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames


def traffic(n_frames=6):
    return list(itertools.islice(TrafficFrames(3, 2, 20.0, 1, 'v2'), n_frames))


def packet(content, game_time=1.5):
    payload = content if isinstance(content, bytes) else json.dumps(content).encode()
    return struct.pack('>IIfI', len(payload) + 16, 1600000000, game_time, 7) + payload


@pytest.fixture
def server():
    """Return a function that sends bytes to one connection after the other, on one port."""
    with closing(socket.create_server(('127.0.0.1', free_port()))) as listener:
        listener.settimeout(AWAIT_S)

        def serve(*contents):
            def work():
                for content in contents:
                    connection, _ = listener.accept()
                    with connection:
                        connection.sendall(content)

            return listener.getsockname()[1], InBackground(work)

        yield serve


def test_stream_ends_with_the_connection():
    frames = traffic()
    with served(frames, rate='max') as simulator, \
            sensor.open_stream('127.0.0.1', simulator.port) as stream:
        received = list(stream)
    assert [frame.game_time for frame in received] == [frame['game_time'] for frame in frames]
    assert [frame.sample_count for frame in received] == [1, 2, 3, 4, 5, 6]
    assert stream.faults == []


def test_stream_connects_again(server):
    first, second = traffic(2)
    port, serving = server(packet(first), packet(second))
    with serving, sensor.open_stream('127.0.0.1', port, reconnect=True) as stream:
        received = list(itertools.islice(stream, 2))
    assert [frame.game_time for frame in received] == [first['game_time'], second['game_time']]
    [fault] = stream.faults
    assert (fault.kind, fault.text) == ('connection', 'the peer closed the connection')


def test_stream_leaves_out_what_is_wrong(server):
    [good] = traffic(1)
    bad = json.loads(json.dumps(good))
    bad['frame']['vehicles'][1]['state']['odometry']['pose']['position'] = 'here'
    port, serving = server(b''.join(map(packet, (good, b'no JSON', bad, good))))
    with serving, sensor.open_stream('127.0.0.1', port) as stream:
        counts = [len(frame.names) for frame in stream]
    assert counts == [5, 4, 5]
    assert [(fault.kind, fault.place) for fault in stream.faults] == [
        ('payload', 'packet 2'), ('dropped', 'packet 3')]


def test_stream_takes_times_of_the_header(server):
    [frame] = traffic(1)
    del frame['game_time'], frame['sample_count'], frame['time']
    port, serving = server(packet(frame, game_time=2.25))
    with serving, sensor.open_stream('127.0.0.1', port) as stream:
        [received] = stream
    assert (received.game_time, received.time, received.sample_count) == (2.25, 1600000000, 7)


def test_stream_that_ends_inside_a_packet_has_a_fault(server):
    [frame] = traffic(1)
    port, serving = server(packet(frame) + packet(frame)[:-5])
    with serving, sensor.open_stream('127.0.0.1', port) as stream:
        assert len(list(stream)) == 1
    [fault] = stream.faults
    assert fault.kind == 'connection'
    assert '; expected ' in fault.text


def test_stream_raises_errors_of_the_package(server):
    with sensor.open_stream('127.0.0.1', free_port()) as stream, \
            pytest.raises(sensor.TransportError, match='refused'):
        list(stream)
    with pytest.raises(sensor.StateError, match='a second loop'):
        list(stream)
    port, serving = server(b'GET / HTTP/1.1 no packets')
    with serving, sensor.open_stream('127.0.0.1', port) as stream, \
            pytest.raises(sensor.FramingError):
        list(stream)
    with pytest.raises(sensor.ConfigError, match='port'):
        sensor.open_stream(port=70000)


def test_stream_takes_the_port_of_the_configuration_of_the_simulator(tmp_path):
    path = tmp_path / 'sensors.json'
    with served(traffic(), rate='max') as simulator:
        path.write_text(json.dumps({'type': 'State', 'listen_port': simulator.port}))
        with sensor.open_stream(parameters={'config_file': str(path)}) as stream:
            assert len(list(stream)) == 6
    with pytest.raises(sensor.ConfigError, match='no such file'):
        sensor.open_stream(parameters={'config_file': str(tmp_path / 'none.json')})
