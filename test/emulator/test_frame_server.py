# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The sensor ports of the monoDrive server: packets, rates, readers, end of the stream."""

from concurrent.futures import ThreadPoolExecutor
import contextlib
import functools
import itertools
import json
import socket
import threading
import time

from budgets import AWAIT_S
import pytest
from simulator_peer import Controller, Reader
from stopwatch import until

from state_sensor_ros.emulator import threaded_server
from state_sensor_ros.emulator.monodrive import MonodriveOptions, MonodriveServer
from state_sensor_ros.emulator.monodrive_frames import (
    EmulatedFrame,
    TrafficSource,
    TrajectorySource,
)
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames

FAST = MonodriveOptions(rate='max')


@functools.cache
def traffic(n_frames, generation='v2', rate_hz=20.0):
    return list(itertools.islice(TrafficFrames(3, 3, rate_hz, 1, generation), n_frames))


def long_frames():
    """Return more than the buffers of the sockets of two readers hold."""
    return [{**frame, 'fill': 'x' * 100_000} for frame in traffic(200)]


def endless():
    return TrafficSource(TrafficFrames(3, 3, 20.0, 1, 'v2'))


@contextlib.contextmanager
def played(source=None, options=None):
    """Run a server; yield it and a reader."""
    with MonodriveServer(source, options) as simulator, Reader(simulator.port) as reader:
        yield simulator, reader


@pytest.mark.parametrize(('generation', 'header_size'), [
    ('v1', 16), ('v2', 16), ('v2', 12)])
def test_packets_have_the_frame_and_a_header_that_agrees(generation, header_size):
    frames = traffic(5, generation)
    options = MonodriveOptions(rate='max', header_size=header_size)
    with MonodriveServer(frames, options) as simulator, \
            Reader(simulator.port, header_size) as reader:
        for frame in frames:
            length, when, game_time, sample_count, payload = reader.packet()
            assert length == header_size + len(payload)
            # The older header has no sample count.
            assert (game_time, when, sample_count) == (
                frame['game_time'], frame['time'],
                frame['sample_count'] if header_size == 16 else None)
            assert json.loads(payload) == frame


def test_a_trajectory_is_sent_with_the_text_of_its_file():
    texts = [b'{"frame": [],\n "game_time":1.0 , "odd": 1e0}', b'{"frame":[]}', b'5', b'"\\u00e9"']
    with played(TrajectorySource([EmulatedFrame(text) for text in texts]), FAST) as (_, reader):
        packets = [reader.packet() for _ in range(4)]
    assert [packet[4] for packet in packets] == texts
    assert [packet[2] for packet in packets] == [1.0, 0.0, 0.0, 0.0]
    assert [packet[3] for packet in packets] == [1, 2, 3, 4]


@pytest.mark.parametrize(('source', 'n_most', 'n_frames'), [
    (lambda: traffic(4), None, 4), (list, None, 0),
    (lambda: TrafficSource(TrafficFrames(2, 0, 20.0, 1, 'v2')), 7, 7)])
def test_the_stream_ends_on_a_packet_boundary_when_all_is_sent(source, n_most, n_frames):
    with played(source(), MonodriveOptions(rate='max', n_frames=n_most)) as (simulator, reader):
        frames = reader.frames_until_end()
        assert simulator.wait(AWAIT_S)
    assert [frame['sample_count'] for frame in frames] == list(range(1, n_frames + 1))
    assert simulator.n_sent == n_frames


@pytest.mark.parametrize(('rate', 'times', 'least_s'), [
    ('real', [1.0, 1.1, 1.15, 1.45], 0.44),
    # 50 ms where game time does not increase.
    ('real', [None, 5.0, 5.0, 1.0, 'x'], 0.19), (50.0, [100.0 * i for i in range(11)], 0.19)])
def test_frames_are_paced_by_game_time_or_a_rate(rate, times, least_s):
    frames = [{'frame': []} | ({} if time_s is None else {'game_time': time_s})
              for time_s in times]
    begin_s = time.monotonic()
    with played(frames, MonodriveOptions(rate=rate)) as (_, reader):
        for _ in frames:
            reader.packet()
        assert least_s < time.monotonic() - begin_s < AWAIT_S


def test_a_port_has_a_limit_of_connections(monkeypatch, capsys):
    monkeypatch.setattr(threaded_server, 'MAX_CONNECTIONS', 1)
    with played(endless(), MonodriveOptions(rate=20.0)) as (simulator, reader):
        reader.packet()
        with socket.create_connection(('127.0.0.1', simulator.port), AWAIT_S) as another:
            assert not another.recv(1)
        reader.packet()
    assert capsys.readouterr().err == \
        'warning: a port has 1 connection: further ones are closed\n'


def test_time_advances_only_while_a_reader_is_connected():
    with MonodriveServer(endless(), MonodriveOptions(rate=100.0)) as simulator:
        assert not simulator.wait(0.2)
        assert simulator.n_sent == 0
        with Reader(simulator.port) as reader:
            first = reader.frame()
            reader.frame()
        assert first['sample_count'] == 1
        # Some frames are sent to the closed connection until its end is noticed, then none.
        until(lambda: not simulator.accept_readers(), 'the end of the reader')
        with simulator._send_lock:
            n_sent = simulator.n_sent
        assert not simulator.wait(0.2)
        assert simulator.n_sent == n_sent
        with Reader(simulator.port) as reader:
            assert reader.frame()['sample_count'] == n_sent + 1


def test_every_reader_receives_all_frames_after_it_connects():
    frames = long_frames()

    def packets_until_end(reader):
        packets = []
        while reader.connection.recv(1, socket.MSG_PEEK):
            packets.append(reader.packet())
        return packets
    # The server waits for the early reader, while the late one connects.
    with played(frames, FAST) as (simulator, early):
        first, *_ = [early.packet() for _ in range(5)]
        with Reader(simulator.port) as late, ThreadPoolExecutor() as pool:
            rest, tail = pool.map(packets_until_end, (early, late))
    assert first[3] == 1
    assert [packet[3] for packet in rest] == list(range(6, len(frames) + 1))
    assert tail == rest[-len(tail):]
    assert 0 < len(tail) < len(frames) - 3


def test_samples_of_several_control_connections_never_mix_packets():
    frames = [{**frame, 'fill': 'x' * 5000} for frame in traffic(100)]
    options = MonodriveOptions(control_port=0, on_sample=True)
    with played(frames, options) as (simulator, reader):
        def sample():
            with Controller(simulator.control_port) as control:
                for _ in range(25):
                    assert control.request('SampleSensorsCommand_ID')['success']
        threads = [threading.Thread(target=sample) for _ in range(4)]
        for thread in threads:
            thread.start()
        received = [reader.frame() for _ in frames]
        for thread in threads:
            thread.join()
    assert [frame['sample_count'] for frame in received] == list(range(1, 101))
    assert sorted(frame['game_time'] for frame in received) == [
        frame['game_time'] for frame in frames]
