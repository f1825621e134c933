# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Live frames of CARLA 0.9 through CARLA's own client library, of the mock server."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
import itertools
import math
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from types import SimpleNamespace

from budgets import AWAIT_S, first_of, one_of
import carla9_logs as logs
from carla9_rig import Rig
from carla9_server.bodies import BLUEPRINTS
from carla9_server.world import EpisodeOptions
import numpy as np
from ports import free_ports
import programs
from programs import lines_of
import pytest
from raw_actors import matrix_of
from stopwatch import until

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.control.ego_commands import EgoCommand
from state_sensor_ros.emulator.bicycle import Pedals
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.rotations import global_from_unit
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import checked_settings, child_process
from state_sensor_ros.simulators.carla9 import Carla9Simulator
from state_sensor_ros.simulators.carla9.actors import box_of, WorldActors
from state_sensor_ros.simulators.carla9.frames import (
    StepActors,
    TownMap,
    WorldFrames,
    WorldStep,
)
from state_sensor_ros.simulators.carla9.source import Carla9Source
from state_sensor_ros.source import DELETE, EntityEdit, SET, SourceState, SPAWN

# Not found by its failure: without the library, a driver that is started here does not end.
pytestmark = [pytest.mark.skipif(find_spec('carla') is None, reason='needs carla'),
              pytest.mark.usefixtures('forked_clients')]

OURS = EpisodeOptions(is_synchronous=True, fixed_delta_s=0.05)
# Drives with full throttle until it is killed; its last argument sets carla9.tick.
DRIVER = """
import sys
from state_sensor_ros.control.ego_commands import EgoCommand
from state_sensor_ros.simulators.carla9 import Carla9Simulator
from state_sensor_ros.simulators import checked_settings
settings = checked_settings({'source': 'carla9', 'carla9.port': int(sys.argv[1]),
                             'carla9.tick': sys.argv[2] == 'tick'})
simulator = Carla9Simulator()
source = simulator.open_source(settings, print)
commands = simulator.open_commands(settings, source, print)
for i, _ in enumerate(source.frames()):
    commands.write(EgoCommand(throttle=1.0, brake=0.0, steer=0.0, steering_angle=0.0))
    if i == 9:
        print('driving', source.process_id, flush=True)
"""


def settings_of(server, **parameters):
    return checked_settings({
        'source': 'carla9', 'carla9.port': server.port, 'reconnect_min': 0.05,
        'reconnect_max': 0.2, **{f'carla9.{name}': value for name, value in parameters.items()
                                 if name != 'rate'},
        # Faster than real time, but no busier than the tests need.
        'rate': parameters.get('rate', 4.0 if parameters.get('tick') else 1.0)})


@contextmanager
def opened(server, *, reconnect=False, **parameters):
    """Yield a source, its frames, and what it has reported."""
    said = []
    settings = settings_of(server, **parameters)
    source = Carla9Simulator().open_source(settings, lambda kind, text: said.append(text),
                                           reconnect=reconnect)
    with closing(source):
        frames = source.frames()
        try:
            yield source, frames, said
        finally:
            source.close()
            # Ends the process.
            for _ in frames:
                pass


@contextmanager
def commanded(server, **parameters):
    """Yield a source, its frames, and commands to its ego."""
    with opened(server, **parameters) as (source, frames, _):
        commands = Carla9Simulator().open_commands(Settings(), source, print)
        frame_of(frames)
        yield source, frames, commands


def command(throttle=0.0, brake=0.0, steer=0.0, **others):
    return EgoCommand(throttle=throttle, brake=brake, steer=steer, steering_angle=steer, **others)


def frame_of(frames, wanted=lambda frame: True):
    """Return the next frame that is wanted."""
    until_s = time.monotonic() + AWAIT_S
    for frame in frames:
        if wanted(frame):
            return frame
        assert time.monotonic() < until_s
    raise AssertionError('the stream has ended')


def check(frame, server):
    """Compare a frame with the numbers of the server by name; return how many were compared."""
    n_found = 0
    for number, wanted in server.history[frame.sample_count].items():
        body = server.world.actors[number].body
        [*rows] = [row for row, name in enumerate(frame.names)
                   if name in (body.attribute('role_name'), f'{body.type_id}_{number}')]
        if body.type_id == 'spectator':
            assert rows == []
            continue
        [row], n_found = rows, n_found + 1
        pitch, yaw, roll = wanted[3:6]
        assert frame.position_xyz[row] == pytest.approx(logs.MIRROR @ wanted[:3], abs=1e-3)
        assert matrix_of(frame.orientation_xyzw[row]) == pytest.approx(
            logs.MIRROR @ logs.matrix(roll, pitch, yaw) @ logs.MIRROR, abs=1e-5)
        assert frame.velocity_xyz[row] == pytest.approx(logs.MIRROR @ wanted[6:9], abs=1e-4)
        assert frame.angular_velocity_xyz[row] == pytest.approx(
            -logs.MIRROR @ np.radians(wanted[9:12]), abs=1e-5)
        assert frame.acceleration_xyz[row] == pytest.approx(
            logs.MIRROR @ wanted[12:15], abs=1e-4)
    return n_found


@pytest.mark.parametrize('tick', [True, False])
def test_frames_have_the_numbers_of_the_server_and_its_settings_stay(tick):
    with Rig(n_vehicles=20, n_objects=6, rate=100.0) as server, opened(server, tick=tick) as (
            source, frames, said):
        seen = [frame_of(frames) for _ in range(5)]
        assert server.world.settings.as_array()[:3] == (
            OURS if tick else EpisodeOptions()).as_array()[:3]
        steps = np.diff([frame.game_time for frame in seen])
        numbers = np.diff([frame.sample_count for frame in seen])
        # A guest is not waited for.
        assert set(numbers) == {1} if tick else min(numbers) >= 1
        assert steps == pytest.approx(0.05 * numbers)
        frame = seen[-1]
        assert check(frame, server) == len(frame) > 20
        assert (frame.generation, frame.names[frame.ego]) == ('carla9', 'hero')
        assert len(frame.boxes) == sum(
            not {'traffic_light', 'traffic_sign'} & set(tags) for tags in frame.tags)
        ego = server.ego.body
        [box] = np.flatnonzero(frame.boxes.actor == frame.ego)
        assert frame.boxes.size_xyz[box] == pytest.approx(2 * np.array(ego.extent), abs=1e-5)
        assert len(frame.lanes) > 15
        assert np.isfinite(frame.lanes.s).all()
        assert np.isfinite(frame.inputs[frame.ego, :3]).all()
        assert len(frame.traffic_lights.ids) == len(server.world.lights) > 0
        # The ids of the signals in the map.
        lights = frame.traffic_lights
        assert lights.open_drive_ids == tuple(
            server.world.actors[number].body.sign_id for number in lights.ids.tolist())
        assert all(f'id="{signal}"' in frame.open_drive for signal in lights.open_drive_ids)
        assert {'red', 'green'} & set(frame.extension.displays())
        assert frame.map_lines is seen[0].map_lines
        assert len(frame.map_lines) > 3
        assert '<OpenDRIVE>' in frame.open_drive
        # The lanes of the map are below the vehicles.
        points = np.concatenate([line.points_xyz for line in frame.map_lines
                                 if line.kind == 'driving'])
        near = np.linalg.norm(points[:, None, :2] - frame.position_xyz[
            frame.kinds == sensor.Kind.VEHICLE][None, :, :2], axis=2).min(axis=0)
        assert np.median(near) < 2.5
        assert source.health.n_connects == 1
    assert said == []
    assert server.world.settings.as_array()[:3] == EpisodeOptions().as_array()[:3]


def test_turn_signals_of_all_vehicles_follow():
    with Rig(n_objects=6, rate=100.0) as server, opened(server) as (_, frames, _):
        cars = [actor for actor in server.world.actors.values() if actor.body.family == 'vehicle']
        # Low beam and left, hazard lights, low beam and right.
        for car, lights in zip(cars, (0x22, 0x30, 0x12), strict=False):
            car.lights = lights

        def signals(frame):
            return {name.rpartition('_')[2]: signal for name, signal in zip(
                frame.names, frame.indicators.tolist(), strict=True) if signal > 0}

        first, second, third = (str(car.id) if car is not server.ego else 'hero'
                                for car in cars[:3])
        wanted = {first: 1, second: 3, third: 2}
        frame = frame_of(frames, lambda frame: frame.indicators is not None
                         and signals(frame) == wanted)
        assert (frame.indicators < 0).tolist() == [
            kind != sensor.Kind.VEHICLE for kind in frame.kinds]
        cars[1].lights = 0
        del wanted[second]
        frame_of(frames, lambda frame: signals(frame) == wanted)


@pytest.mark.filterwarnings('error')
def test_numbers_that_are_not_finite_spoil_only_their_actor():
    table = WorldActors('', with_level=False)
    for number in (3, 4, 5):
        table.add(number, 'vehicle.tesla.model3', {}, box_of((0.0, 0.0, 0.7), (2.0, 1.0, 0.7)))
    frames = WorldFrames(StepActors(table.rows(np.array([3, 4, 5])), np.zeros(0, np.int64)))
    numbers = np.zeros((3, 15), np.float32)
    numbers[0, 0], numbers[1, 5], numbers[2, :3] = math.nan, math.inf, (1.0, 2.0, 3.0)
    step = WorldStep(1.0, 7, True, numbers.tobytes(), b'', b'', b'')
    frame = frames.frame(step, TownMap())
    assert frame.has_pose().tolist() == [False, False, True]
    assert frame.boxes.actor.tolist() == [2]
    assert frame.boxes.rows[0] == pytest.approx([1, -2, 3.7, 0, 0, 0, 1, 4, 2, 1.4, 1, 1, 1])
    bare = frames.frame(step, TownMap(), details=False)
    assert bare.boxes is None
    assert bare.kinematics == pytest.approx(frame.kinematics, nan_ok=True)
    # A world without actors.
    frames = WorldFrames(StepActors(table.rows(np.zeros(0, np.int64)), np.zeros(0, np.int64)))
    assert len(frames.frame(WorldStep(1.0, 8, False, b'', b'', b'', b''), TownMap())) == 0


@pytest.mark.parametrize('killed', one_of(['driver', 'both', 'process', 'signal'], n_always=2))
def test_settings_are_restored_whoever_is_killed(tmp_path, killed):
    script = tmp_path / 'driver.py'
    script.write_text(DRIVER)
    with Rig() as server:
        driver = programs.start_client([script, str(server.port), 'tick'],
                                       stdout=subprocess.PIPE, text=True)
        with driver:
            word, process_id = driver.stdout.readline().split()
            assert word == 'driving'
            until(lambda: server.ego.pedals.throttle == 1.0)
            assert server.world.settings.is_synchronous
            if killed in ('process', 'both'):
                os.kill(int(process_id), signal.SIGKILL)
            if killed == 'process':
                # A new one knows what the first one has found.
                frame = server.world.frame
                until(lambda: server.world.frame > frame + 20)
            driver.send_signal(signal.SIGTERM if killed == 'signal' else signal.SIGKILL)
        if killed == 'both':
            assert server.world.settings.is_synchronous
            with opened(server, tick=True) as (_, frames, said):
                frame_of(frames)
            assert any('was in synchronous mode, steps of 0.05 s' in text for text in said)
            assert server.world.settings.is_synchronous
        else:
            until(lambda: not server.world.settings.is_synchronous)
            until(lambda: server.ego.pedals.brake == 1.0)


@pytest.mark.parametrize(('where', 'words'), first_of([
    ('carla.World.get_snapshot',
     'internal error: ValueError: a defect'),
    ('multiprocessing.connection.Connection.poll', 'its process ended with exit code 0')]))
def test_defect_of_the_process_restores_the_settings_and_brakes(
        monkeypatch, tmp_path, where, words):
    """In each of its threads; the driver does not restore them here."""
    module, name, method = where.rsplit('.', 2)
    defect = tmp_path / 'sitecustomize.py'
    defect.write_text(
        'import sys\nif "carla_process" in " ".join(sys.orig_argv):\n'
        f'    from {module} import {name}\n'
        f'    before, calls = {name}.{method}, []\n'
        '    def broken(*args, **options):\n        calls.append(1)\n'
        '        if len(calls) > 40:\n            raise ValueError("a defect")\n'
        '        return before(*args, **options)\n'
        f'    {name}.{method} = broken\n')
    monkeypatch.setenv('PYTHONPATH', os.pathsep.join(
        (str(tmp_path), os.environ.get('PYTHONPATH', ''))))
    monkeypatch.setattr(child_process, 'subprocess', subprocess)
    monkeypatch.setattr(Carla9Source, '_restore', lambda self: None)
    with Rig(rate=100.0) as server, commanded(server, tick=True) as (_, frames, commands):
        def drive():
            for _ in itertools.islice(frames, 5000):
                with suppress(sensor.TransportError):
                    commands.write(command(1.0))

        with pytest.raises(sensor.TransportError, match=words):
            drive()
        assert not server.world.settings.is_synchronous
        assert server.ego.pedals.brake == 1.0


def test_steps_are_outstanding_until_their_last_frame_has_come():
    with Rig(rate=100.0) as server, opened(server, tick=True) as (source, frames, _):
        source.pause()
        collected = []
        thread = threading.Thread(target=lambda: collected.extend(frames))
        thread.start()
        until(lambda: source.health.state is SourceState.PAUSED)
        source.step(5)
        until(lambda: not source.is_stepping)
        assert len(collected) == 5
        assert not source.health.fault
        source.step(10 ** 6)
        until(lambda: len(collected) > 6)
        assert source.is_stepping
        source.pause()
        assert not source.is_stepping
        source.restart()
        until(lambda: not source.is_stepping)
        assert collected[-1].is_behind_gap
        source.close()
        thread.join()


@pytest.mark.parametrize('tick', one_of([True, False]))
def test_commands_drive_the_ego_and_the_last_one_arrives(tick):
    with Rig(rate=100.0) as server, commanded(server, tick=tick) as (source, frames, commands):
        commands.write(command(1.0, steer=0.5))
        until(lambda: server.ego.pedals.throttle == 1.0 or next(frames) is None)
        # A command that the driver does not replace in its time, as while it is stopped.
        commands.write(command(0.5, steer=0.5, until_s=time.monotonic() + 0.3))
        until(lambda: server.ego.pedals.brake == 1.0 or next(frames) is None)
        assert (server.ego.pedals.throttle, server.ego.pedals.steer) == (0.0, -0.5)
        commands.write(command(1.0, steer=0.5))
        until(lambda: server.ego.pedals.throttle == 1.0 or next(frames) is None)
        # CARLA's steer is positive to the right.
        assert server.ego.pedals.steer == -0.5
        frame = frame_of(frames, lambda frame: frame.inputs[frame.ego, 0] == 1.0)
        assert frame.inputs[frame.ego, 2] == 0.5
        # Wheels of 70 degrees at full lock; a guest is told them after the step.
        frame_of(frames, lambda frame: frame.inputs[frame.ego, 3] == pytest.approx(
            math.radians(35.0)))
        commands.write(command(brake=1.0, hand_brake=True, reverse=True))
        commands.close()
        source.close()
        for _ in frames:
            pass
        # A process that does not end in time is killed, and its command sent without it.
        until(lambda: server.ego.pedals.hand_brake and server.ego.pedals.brake == 1.0)


FOLLOW = command(math.nan, math.nan, 0.1, speed=4.0, max_acceleration=3.0)


def test_followed_speed_ends_with_its_time_and_with_the_process():
    with Rig(rate=100.0) as server, commanded(server) as (source, frames, commands):
        # Levers that the controller of the server would leave as they are.
        commands.write(command(brake=1.0, hand_brake=True, reverse=True))
        until(lambda: server.ego.pedals.hand_brake or next(frames) is None)
        commands.write(FOLLOW)
        until(lambda: server.ego.follows or next(frames) is None)
        target = server.ego.follows
        assert (target.speed, target.acceleration) == (4.0, 3.0)
        assert target.steering_angle == pytest.approx(-0.1)
        until(lambda: server.ego.pedals.throttle > 0.0 or next(frames) is None)
        assert (server.ego.pedals.hand_brake, server.ego.pedals.reverse) == (False, False)
        commands.write(replace(FOLLOW, until_s=time.monotonic() + 1.0))
        until(lambda: server.ego.pedals.brake == 1.0 or next(frames) is None)
        assert server.ego.follows is None
        commands.write(FOLLOW)
        until(lambda: server.ego.follows or next(frames) is None)
        # Pedals end it even if they are those from before it.
        commands.write(command(steer=0.1))
        until(lambda: not server.ego.follows or next(frames) is None)
        commands.write(FOLLOW)
        until(lambda: server.ego.follows or next(frames) is None)
        source.close()
        for _ in frames:
            pass
        until(lambda: is_braked(server))


def is_braked(server):
    return server.ego.follows is None and server.ego.pedals.brake == 1.0


@pytest.mark.parametrize(('tick', 'is_cut'), first_of([
    (True, True), (True, False), (False, False)]))
def test_process_that_is_killed_leaves_no_ego_driving(tick, is_cut):
    """Nobody sends a command after it, and no other process is started."""
    with Rig(rate=100.0) as server, commanded(server, tick=tick) as (source, frames, commands):
        commands.write(FOLLOW)
        until(lambda: server.ego.follows or next(frames) is None)
        os.kill(source.process_id, signal.SIGKILL)
        if is_cut:
            # The connection that brakes beside the process is lost, too.
            source._probe.interrupt()
        with pytest.raises(sensor.TransportError, match=r'ended by signal 9|closed'):
            for _ in frames:
                pass
        until(lambda: is_braked(server))


def test_ego_is_woken_once_to_move_from_rest_and_a_heavy_one_gets_first_gear():
    """As CARLA 0.10 does with a body that stands, and with a throttle that is too small."""
    def speed(frame):
        return np.linalg.norm(frame.kinematics[frame.ego, 7:10])

    with Rig(rate=100.0, version='0.10.0') as server, commanded(
            server, min_throttle=0.6) as (_, frames, commands):
        commands.write(command(0.0, 1.0))
        frame = frame_of(frames, lambda frame: speed(frame) < 0.01)
        commands.write(command(0.3, 0.5))
        until(lambda: server.ego.pedals.brake == 0.5 or next(frames) is None)
        assert server.world.wakes == []
        # The first ones do not move it, however late the last one is.
        for throttle, server.world.least_throttle in ((0.3, 1.0), (0.2, 1.0), (0.1, 0.5)):
            commands.write(command(throttle, steer=throttle))
            steer = pytest.approx(-throttle)
            until(lambda steer=steer: server.ego.pedals.steer == steer or next(frames) is None)
        frame_of(frames, lambda frame: speed(frame) > 0.5)
        forward = global_from_unit(frame.orientation_xyzw[frame.ego][None])[0][:, 0]
        # CARLA's y axis points to the right.
        assert [list(each) for each in server.world.wakes] == [
            pytest.approx(0.1 * forward * (1, -1, 1), abs=1e-3)]
        assert (server.ego.pedals.throttle, server.ego.first_gear) == (pytest.approx(0.6), True)
        commands.write(command(0.2))
        until(lambda: not server.ego.first_gear or next(frames) is None)
        assert server.ego.pedals.throttle == pytest.approx(0.2)


def test_control_that_is_repeated_is_sent_again():
    """The library of CARLA keeps back one that is equal to its last one, whatever drove since."""
    brake, coast = command(brake=1.0), command()
    with Rig(rate=100.0) as server, commanded(server) as (_, frames, commands):
        # The first one is that of a vehicle which nothing has driven.
        for sent in (coast, brake, brake, coast):
            server.do(lambda: server.world.drive(server.ego, Pedals(throttle=1.0)))
            until(lambda: server.ego.pedals.throttle == 1.0 or next(frames) is None)
            commands.write(sent)
            until(lambda: server.ego.pedals.throttle == 0.0 or next(frames) is None)
            assert server.ego.pedals.brake == sent.brake


def test_ackermann_is_refused_with_pedals_and_by_old_releases(monkeypatch):
    own = {'source': 'carla9', 'carla9.ackermann': True}
    assert checked_settings({**own, 'control_input': 'twist'}).control_input == 'twist'
    with pytest.raises(ConfigError, match=r'carla9\.ackermann: found true; expected a '
                       'control_input with a speed: ackermann, autoware or twist'):
        checked_settings({**own, 'control_input': 'vehicle_control'})
    with monkeypatch.context() as patch:
        patch.setattr('state_sensor_ros.simulators.carla9.client_release',
                      lambda _: '0.9.13')
        with pytest.raises(ConfigError, match=r'library 0\.9\.13; expected version 0\.9\.14'):
            checked_settings({**own, 'control_input': 'twist'})
    with Rig(version='0.9.13') as server, \
            opened(server, ackermann=True) as (_, frames, _), pytest.raises(
            sensor.TransportError,
            match=r'server is CARLA 0\.9\.13: carla9\.ackermann needs 0\.9\.14'):
        next(frames)


@pytest.mark.parametrize('release', ['0.9.13', '0.9.15-dirty', '0.10.0'])
def test_another_release_of_the_server_is_reported_and_read(release):
    with Rig(version=release) as server, opened(server) as (_, frames, said):
        frame_of(frames)
        assert [text for text in said if release in text and 'the client library 0.9.16' in text]


@pytest.mark.parametrize('answer', [None, b'', b'HTTP/1.0 400 Bad request\r\n', bytes(300)])
def test_server_of_another_kind_is_named(answer):
    with socket.create_server(('127.0.0.1', 0)) as server:
        def serve():
            client, _ = server.accept()
            with client:
                client.recv(64)
                if answer is not None:
                    client.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        stream = sensor.open_stream('127.0.0.1', server.getsockname()[1], source='carla9')
        with stream, pytest.raises(sensor.TransportError, match=r'may be CARLA 0\.8'):
            next(iter(stream))


@pytest.mark.parametrize('tick', one_of([True, False]))
def test_actors_come_and_go_and_episodes_change(tick):
    """Between two steps; ids of CARLA are used again, names are not."""
    with Rig(rate=100.0) as server, opened(server, tick=tick) as (source, frames, said):
        world, first = server.world, frame_of(frames)
        car = BLUEPRINTS['vehicle.tesla.model3']
        spawned = []

        def spawn():
            spawned.append(world.spawn(car, (10.0, 20.0, 0.5), (0.0, 90.0, 0.0)).id)

        def names_of(frame):
            return {name for name in frame.names if name.startswith(car.type_id)}

        server.do(spawn)
        frame = frame_of(frames, lambda frame: len(frame) == len(first) + 1)
        [name] = names_of(frame) - names_of(first)
        assert name == f'{car.type_id}_{spawned[0]}'
        assert frame.position_xyz[frame.names.index(name)] == pytest.approx([10, -20, 0.5])
        # One goes and another one with its id comes in the same step.
        server.do(lambda: (world.destroy(world.actors[spawned[0]]),
                           setattr(world, '_ids', itertools.count(spawned[0])), spawn()))
        until(lambda: len(spawned) == 2 or next(frames) is None)
        assert spawned[1] == spawned[0]
        server.do(lambda: world.destroy(world.actors[spawned[0]]))
        frame = frame_of(frames, lambda frame: len(frame) == len(first))
        assert names_of(frame) == names_of(first)
        # An actor that is gone before the driver could ask for it.
        server.do(lambda: (spawn(), world.destroy(world.actors[spawned[-1]])))
        n_episodes = world.episode
        server.do(lambda: world.begin_episode(settings=world.settings))
        frame = next(frame for frame in frames if frame.is_behind_gap)
        assert world.episode == n_episodes + 1
        assert frame.names == first.names or len(frame) == len(first)
        assert source.health.n_connects == 1
        # Settings that a new episode resets are set again.
        server.do(lambda: world.begin_episode(settings=EpisodeOptions()))
        until(lambda: world.episode == n_episodes + 2 or next(frames) is None)
        for _ in range(20):
            frame = frame_of(frames)
        until(lambda: world.settings.is_synchronous is tick or next(frames) is None)
        assert frame.names[frame.ego] == 'hero'
    assert said == []


def edited(source, frames, kind, name, place=None, **fields):
    """Have a change made, with a pose without a rotation."""
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(source.edit, EntityEdit(
            kind, name, place and (*place, 0.0, 0.0, 0.0, 1.0), **fields))
        until(lambda: made.done() or next(frames) is None)
        made.result()


CAR, FREE = 'vehicle.tesla.model3', (10.0, -20.0, 1.0)


@pytest.mark.parametrize('tick', one_of([True, False]))
def test_ego_is_added_moved_and_removed(tick):
    """In the axes of frames."""
    with Rig(rate=100.0) as server, opened(server, tick=tick, ego='mine') as (
            source, frames, said):
        assert frame_of(frames).ego is None
        # On a hill and in a valley.
        (x, y, z), (to_x, to_y, to_z) = (server.world.scene.spawn_points[i][0] for i in (0, 30))
        edited(source, frames, SPAWN, 'mine', (x, -y, z), resource=CAR)
        frame = frame_of(frames, lambda frame: frame.ego is not None)
        # It is to fall to the ground.
        assert frame.position_xyz[frame.ego] == pytest.approx((x, -y, z + 0.2))
        edited(source, frames, SET, 'mine', twist=(1.0, 2.0, 0.0, 0.0, 0.0, 0.5))
        edited(source, frames, SET, 'mine', (to_x, -to_y, math.nan))
        frame = frame_of(frames, lambda frame: abs(frame.position_xyz[frame.ego, 0] - to_x) < 1.0)
        assert frame.is_behind_gap
        # As high above the road, whose cross slope the map lacks, and a little more.
        assert frame.position_xyz[frame.ego, 2] == pytest.approx(to_z + 0.4, abs=0.2)
        # A move leaves the velocity.
        assert frame.kinematics[frame.ego, 7:] == pytest.approx((1.0, 2.0, 0.0, 0.0, 0.0, 0.5))
        frame_of(frames, lambda frame: not frame.is_behind_gap)
        commands = Carla9Simulator().open_commands(Settings(), source, print)
        commands.write(command(1.0, until_s=time.monotonic() + 0.3))
        edited(source, frames, DELETE, 'mine')
        frame_of(frames, lambda frame: frame.ego is None)
        # The brake that ends the command is lost, which is said once.
        until(lambda: said or next(frames) is None)
        for _ in range(20):
            frame_of(frames)
        assert said == ['a command is lost: there is no ego']


def test_changes_that_carla_does_not_make_are_refused(monkeypatch):
    """With its words; and after a while if the client is stuck, whose late answer is not used."""
    with Rig(rate=100.0) as server, opened(server, static=True, timeout=AWAIT_S) as (
            source, frames, _):
        frame_of(frames)
        edited(source, frames, SPAWN, 'mine', FREE, resource=CAR)
        for words, kind, name, resource in (
                ('Spawn failed because of collision at spawn position', SPAWN, 'more', CAR),
                ("'vehicle.none' not found", SPAWN, 'more', 'vehicle.none'),
                ('expected a vehicle, person or prop', SPAWN, 'more', 'sensor.camera.rgb'),
                ('expected another name', SPAWN, 'autopilot', CAR),
                ('CARLA does not remove hero', DELETE, 'hero', ''),
                ('a part of the level, or gone', SET, 'ParkedCar_1', '')):
            with pytest.raises(sensor.StateSensorError, match=words):
                edited(source, frames, kind, name, FREE, resource=resource)
        release = threading.Event()
        server.do(lambda: release.wait(AWAIT_S))
        until(lambda: not server.todo)
        with monkeypatch.context() as patch:
            patch.setattr(child_process, '_EDIT_S', 0.3)
            with pytest.raises(sensor.TransportError, match=r'no answer within 0\.3 s'):
                source.edit(EntityEdit(DELETE, 'hero'))
        release.set()
        edited(source, frames, DELETE, 'mine')


@pytest.mark.parametrize('tick', one_of([True, False]))
def test_server_that_stalls_dies_and_returns(tick):
    """A server in a process of its own; what happens is said once, in one line each."""
    port = free_ports(2)
    words = ('carla9', '--vehicles', 3, '--rate', 20, '--port', port)
    server = programs.start_mock(*words)
    servers = [server]
    try:
        assert server.stdout.readline() == f'streams on 127.0.0.1:{port + 1}\n'
        assert server.stdout.readline() == f'listening on 127.0.0.1:{port}\n'
        with opened(SimpleNamespace(port=port), reconnect=True, tick=tick, rate=1.0,
                    timeout=0.5) as (
                source, frames, _):
            n_actors = len(frame_of(frames))
            received = []
            reader = threading.Thread(target=lambda: received.extend(frames), daemon=True)
            reader.start()
            until(lambda: len(received) > 5)
            server.send_signal(signal.SIGSTOP)
            until(lambda: source.health.n_losses)
            assert 'time-out of 500ms' in source.health.loss
            server.send_signal(signal.SIGCONT)
            n_received = len(received)
            until(lambda: len(received) > n_received + 5)
            # On a loaded machine a time-out may have passed more than once.
            n_losses = source.health.n_losses
            server.kill()
            server.communicate()
            until(lambda: source.health.n_losses > n_losses)
            until(lambda: 'connection refused' in source.health.last_error.lower())
            servers.append(programs.start_mock(*words))
            n_received = len(received)
            until(lambda: len(received) > n_received + 5)
            assert len(received[-1]) == n_actors
            source.close()
            reader.join(AWAIT_S)
            assert not reader.is_alive()
    finally:
        for server in servers:
            server.kill()
            server.communicate()


def test_source_of_carla_0_8_names_the_one_of_carla_0_9(capfd, hold_end):
    """On both ports of a server of 0.9, in one line; the server goes on."""
    hold_end(lambda recording: recording.source.health.reason)
    with Rig() as server:
        for port, words in itertools.product((server.port, server.stream_port), (
                ['inspect', '--live'], ['record', '-'])):
            assert main([*words, '--source', 'carla', '--port', str(port), '--seconds',
                         '0.1']) == 1
            output, errors = capfd.readouterr()
            assert output == ''
            [line] = lines_of(errors)
            assert line.endswith('for CARLA 0.9, use source carla9)')
            assert line.count('127.0.0.1') == 1
        with opened(server) as (_, frames, _):
            assert frame_of(frames)


def test_end_does_not_wait_for_a_library_that_holds_the_interpreter_lock():
    """``get_world`` waits with it for a first step: no thread of the process can end it."""
    with Rig(rate=1e-6) as server, socket.create_connection(
            ('127.0.0.1', server.stream_port)) as stream:
        # Takes the step that is made at once; the next one is due after days.
        stream.sendall(struct.pack('<I', 1))
        stream.makefile('rb').read(4)
        with opened(server, timeout=600.0) as (source, frames, _):
            reader = threading.Thread(target=lambda: list(frames), daemon=True)
            reader.start()
            until(lambda: len(server._streams) == 2)
            process_id = source.process_id
            source.close()
            reader.join(AWAIT_S)
            if is_stuck := reader.is_alive():
                os.kill(process_id, signal.SIGKILL)
                reader.join()
            assert not is_stuck
