# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""The stand-in simulator's sensor ports: packets, pace, readers, ends."""

import contextlib
import functools
import itertools
import json
import socket
import threading
import time

import pytest
from simulator_peer import Reader

from state_sensor_ros.emulator.options import Options
from state_sensor_ros.emulator.playback import Cycle, Endless, parse_trajectory, Trajectory
from state_sensor_ros.emulator.server import Simulator
from state_sensor_ros.emulator.traffic import generate
from state_sensor_ros.errors import ConfigError, TransportError

V1T = {'frame': [{'name': 'a', 'position': [0, 0, 0], 'orientation': [0, 0, 0, 1],
                  'velocity': [0, 0, 0], 'tags': ['vehicle', 'ego'], 'game_time': 3.25,
                  'time': 1_550_000_000}]}


@functools.cache
def prepared(n_frames, generation, rate_hz):
    return tuple(itertools.islice(generate(3, 3, rate_hz, 1, generation), n_frames))


def traffic(n_frames, generation='v2', rate_hz=20.0):
    return list(prepared(n_frames, generation, rate_hz))


@contextlib.contextmanager
def played(source=None, options=None):
    """Give a simulator and its reader."""
    with Simulator(source, options) as simulator, Reader(simulator.port) as reader:
        yield simulator, reader


@pytest.mark.parametrize('generation', ['v0', 'v1', 'v2'])
def test_packets_carry_the_frame_and_a_header_that_agrees(generation):
    frames = traffic(5, generation)
    with played(frames, Options(rate='max')) as (_, reader):
        for frame in frames:
            length, when, game_time, sample_count, payload = reader.packet()
            assert length == 16 + len(payload)
            assert (game_time, when, sample_count) == (
                frame['game_time'], frame['time'], frame['sample_count'])
            assert json.loads(payload) == frame


def test_older_header_has_no_sample_count():
    frames = traffic(3)
    options = Options(rate='max', header_size=12)
    with Simulator(frames, options) as simulator, Reader(simulator.port, 12) as reader:
        for frame in frames:
            length, when, game_time, sample_count, payload = reader.packet()
            assert length == 12 + len(payload)
            assert (when, game_time, sample_count) == (frame['time'], frame['game_time'], None)
            assert json.loads(payload) == frame


def test_clock_hidden_in_an_actor_is_in_the_header():
    with played([V1T], Options(rate='max')) as (_, reader):
        _, when, game_time, sample_count, payload = reader.packet()
        assert (when, game_time, sample_count) == (1_550_000_000, 3.25, 1)
        assert json.loads(payload) == V1T


def test_a_trajectory_goes_out_as_the_very_text_of_its_file():
    text = b'[ {"frame": [],\n "game_time":1.0 , "odd": 1e0},\n{"frame":[]}, 5, "\\u00e9" ]'
    source = Trajectory(parse_trajectory(text))
    with played(source, Options(rate='max')) as (_, reader):
        packets = [reader.packet() for _ in range(4)]
    assert [packet[4] for packet in packets] == [
        b'{"frame": [],\n "game_time":1.0 , "odd": 1e0}', b'{"frame":[]}', b'5', b'"\\u00e9"']
    assert [packet[2] for packet in packets] == [1.0, 0.0, 0.0, 0.0]
    assert [packet[3] for packet in packets] == [1, 2, 3, 4]


def test_values_that_no_header_can_hold_do_no_harm():
    frames = [{'frame': [], 'game_time': 1e300, 'time': -1, 'sample_count': 2**40},
              {'frame': [], 'game_time': 'late', 'time': 1.5, 'sample_count': None}]
    with played(frames, Options(rate='max')) as (_, reader):
        assert reader.packet()[1:4] == (2**32 - 1, 0.0, 0)
        assert reader.packet()[4] == json.dumps(frames[1], separators=(',', ':')).encode()


def test_the_stream_ends_on_a_packet_boundary_when_all_is_sent():
    with played(traffic(4), Options(rate='max')) as (simulator, reader):
        assert len(reader.frames_until_end()) == 4
        assert simulator.wait(5.0)


def test_number_of_frames_is_limited():
    source = Endless(generate(2, 0, 20.0, 1, 'v2'))
    with played(source, Options(rate='max', n_frames=7)) as (simulator, reader):
        frames = reader.frames_until_end()
    assert [frame['sample_count'] for frame in frames] == list(range(1, 8))
    assert simulator.n_sent == 7


def test_loop_begins_the_file_again_with_the_same_bytes():
    frames = traffic(3)
    source = Trajectory(parse_trajectory(json.dumps(frames).encode()), loop=True)
    with played(source, Options(rate='max', n_frames=8)) as (_, reader):
        received = reader.frames_until_end()
    assert received == (frames * 3)[:8]


def test_cycle_repeats_bodies_under_a_clock_that_runs_on():
    source = Cycle(generate(3, 3, 40.0, 1, 'v2'), 4, 1 / 40)
    with played(source, Options(rate='max', n_frames=10)) as (_, reader):
        packets = [reader.packet() for _ in range(10)]
    frames = [json.loads(packet[4]) for packet in packets]
    assert [frame['frame'] for frame in frames[:4]] == [
        frame['frame'] for frame in traffic(4, rate_hz=40.0)]
    assert frames[0]['frame'] == frames[4]['frame'] == frames[8]['frame']
    times = [frame['game_time'] for frame in frames]
    assert times == pytest.approx([times[0] + i / 40 for i in range(10)], abs=1e-5)
    assert [frame['sample_count'] for frame in frames] == list(range(1, 11))
    assert [packet[2] for packet in packets] == times
    assert [packet[1] for packet in packets] == [frame['time'] for frame in frames]


def timed(source, options, n_frames):
    with played(source, options) as (_, reader):
        reader.packet()
        begin_s = time.monotonic()
        for _ in range(n_frames - 1):
            reader.packet()
        return time.monotonic() - begin_s


def test_pace_real_follows_game_time():
    frames = [{'frame': [], 'game_time': game_time} for game_time in (1.0, 1.1, 1.15, 1.45)]
    assert 0.44 < timed(frames, Options(), 4) < 5.0


def test_pace_real_takes_frames_without_progress_for_a_twentieth_of_a_second():
    frames = [{'frame': []}, {'frame': [], 'game_time': 5.0}, {'frame': [], 'game_time': 5.0},
              {'frame': [], 'game_time': 1.0}, {'frame': [], 'game_time': 'x'}]
    assert 0.19 < timed(frames, Options(), 5) < 5.0


def test_pace_in_hertz_ignores_game_time():
    frames = [{'frame': [], 'game_time': 100.0 * i} for i in range(11)]
    assert 0.19 < timed(frames, Options(rate=50.0), 11) < 5.0


def test_time_begins_with_the_first_reader_and_stands_still_without_any():
    with Simulator(traffic(200), Options(rate=100.0)) as simulator:
        assert not simulator.wait(0.2)
        assert simulator.n_sent == 0
        with Reader(simulator.port) as reader:
            first = reader.frame()
            reader.frame()
        assert first['sample_count'] == 1
        with Reader(simulator.port) as reader:
            # What went into the closing connection is gone; the clock is common, and runs on.
            assert 3 <= reader.frame()['sample_count'] <= 20


def test_every_reader_gets_the_stream_from_when_it_connects():
    with played(traffic(60), Options(rate=50.0)) as (simulator, early):
        first, *_ = [early.frame() for _ in range(5)]
        with Reader(simulator.port) as late:
            assert simulator.wait_for_readers(2)
            rest, tail = early.frames_until_end(), late.frames_until_end()
    assert first['sample_count'] == 1
    assert [frame['sample_count'] for frame in rest] == list(range(6, 61))
    assert tail == rest[-len(tail):]
    assert 0 < len(tail) < 57


def test_a_slow_reader_holds_the_simulator_back_and_misses_nothing():
    n_frames = 400
    source = Cycle(generate(40, 0, 20.0, 1, 'v2'), 4, 0.05)
    with played(source, Options(rate='max', n_frames=n_frames)) as (simulator, reader):
        reader.packet()
        assert not simulator.wait(0.5)
        held = simulator.n_sent
        assert held < n_frames
        counts = [reader.packet()[3] for _ in range(n_frames - 1)]
    assert counts == list(range(2, n_frames + 1))


def test_closing_frees_a_simulator_that_waits_for_a_reader():
    simulator = Simulator(Cycle(generate(40, 0, 20.0, 1, 'v2'), 2, 0.05), Options(rate='max'))
    simulator.start()
    with Reader(simulator.port) as reader:
        reader.packet()
        assert not simulator.wait(0.3)
        begin_s = time.monotonic()
        simulator.close()
        assert time.monotonic() - begin_s < 1.5
    simulator.close()


def test_a_reader_that_resets_its_connection_does_not_disturb_others():
    with played(traffic(100), Options(rate=100.0)) as (simulator, good):
        for _ in range(3):
            bad = Reader(simulator.port)
            bad.packet()
            bad.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                      b'\1\0\0\0\0\0\0\0')
            bad.connection.close()
        counts = [frame['sample_count'] for frame in good.frames_until_end()]
    assert counts == list(range(counts[0], 101))


def test_push_sends_a_frame_at_once_to_whoever_is_connected():
    with played() as (simulator, reader):
        simulator.push(V1T)
        assert reader.frame() == V1T
        simulator.push({'frame': [], 'game_time': 4.0, 'sample_count': 9, 'time': 7})
        assert reader.packet()[1:4] == (7, 4.0, 9)
        simulator.disconnect()
        with pytest.raises(EOFError, match='0 of 16'):
            reader.packet()
        with Reader(simulator.port) as again:
            simulator.push(V1T)
            assert again.frame() == V1T


def test_pushing_from_several_threads_never_mixes_packets():
    with played() as (simulator, reader):
        def push(i):
            for _ in range(50):
                simulator.push({'frame': [], 'game_time': float(i), 'fill': 'x' * 5000})
        threads = [threading.Thread(target=push, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        times = [reader.frame()['game_time'] for _ in range(200)]
        for thread in threads:
            thread.join()
    assert sorted(times) == [0.0] * 50 + [1.0] * 50 + [2.0] * 50 + [3.0] * 50


def test_a_port_in_use_is_an_error_that_names_it():
    with Simulator() as simulator:
        for options in (Options(port=simulator.port), Options(control_port=simulator.port)):
            with pytest.raises(TransportError, match=f'{simulator.port}: found a port in use'):
                Simulator(None, options)


def test_an_address_of_somebody_else_is_an_error():
    with pytest.raises(TransportError, match=r'192\.0\.2\.1:0: found'):
        Simulator(None, Options(bind='192.0.2.1'))
    with pytest.raises(TransportError, match='no-such-host'):
        Simulator(None, Options(bind='no-such-host.invalid'))


def test_closing_without_starting_and_twice_is_quiet():
    simulator = Simulator(None, Options(control_port=0))
    assert simulator.control_port > 0
    simulator.close()
    simulator.close()
    with Simulator(None, Options(port=simulator.port)):
        assert simulator.wait(0)


@pytest.mark.parametrize(('values', 'message'), [
    ({'header_size': 20}, 'header: found 20; expected 16 or 12'),
    ({'reply_magic': 'middle'}, "reply-magic: found 'middle'"),
    ({'rate': 0.0}, 'rate: found 0.0'),
    ({'rate': 'fast'}, 'rate: found fast'),
    ({'n_frames': 0}, 'frames: found 0'),
])
def test_impossible_options_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        Options(**values)


def test_text_that_is_hard_to_write_is_sent_all_the_same():
    frames = [{'frame': [], 'large': 10**30}, {'frame': [], 'half': '\ud800'}]
    with played(frames, Options(rate='max')) as (_, reader):
        assert reader.frames_until_end() == frames


def test_an_empty_trajectory_ends_at_once():
    with played([], Options(rate='max')) as (simulator, reader):
        assert reader.frames_until_end() == []
        assert simulator.wait(5.0)


def test_frames_of_an_iterator_end_with_it():
    with played(Endless(iter(traffic(3))), Options(rate='max')) as (_, reader):
        assert len(reader.frames_until_end()) == 3
