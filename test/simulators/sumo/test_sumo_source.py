# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A SUMO that fails, ends, is killed or waits costs no more than its frames, and is named."""

from contextlib import closing, suppress
from dataclasses import replace
import math
import socket
import subprocess
import sys
import threading
import time

from equal_frames import assert_equal
import numpy as np
from ports import free_port
from process_state import has_ended
import pytest
from stopwatch import Stopwatch, until
from sumo_runs import Collector, GRID, write_hill

from state_sensor_ros.control.ego_commands import EgoCommand  # noqa: I100
from state_sensor_ros.emulator.bicycle import FULL_LOCK_DEG
from state_sensor_ros.errors import TransportError, UnreachableError
from state_sensor_ros.frame import speed_along  # noqa: I100
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.child_process import Order
from state_sensor_ros.simulators.sumo import SumoParameters
from state_sensor_ros.simulators.sumo.sumo_process import StartedSumo, SumoSource
from state_sensor_ros.source import SourceState

# It runs the real SUMO; test_sumo_commands.py runs with `make test`, too.
pytestmark = pytest.mark.thorough

FAST = Settings(rate=0.0, reconnect_min=0.01, reconnect_max=0.05)


def source_of(own, *, reconnect=False, settings=FAST):
    return closing(SumoSource(own, settings, lambda kind, text: None, reconnect=reconnect))


def take(packets, n_frames):
    return [next(packets) for _ in range(n_frames)]


def test_sumo_port_of_another_program_is_named_and_one_that_is_closed_is_waited_for():
    port = free_port()
    with socket.create_server(('127.0.0.1', port)) as server:
        def answer():
            with suppress(OSError), server.accept()[0] as client:
                client.recv(100)
                client.sendall(b'\0\0\0\x10HTTP/1.1 400')

        threading.Thread(target=answer, daemon=True).start()
        with source_of(SumoParameters(host='127.0.0.1', port=port)) as source, \
                pytest.raises(TransportError, match=f'127.0.0.1:{port}: ') as error:
            next(source.frames())
    # Commands end after three of these, and wait for a simulator that is not there yet.
    assert not isinstance(error.value, UnreachableError)
    with source_of(SumoParameters(host='127.0.0.1', port=port)) as source, \
            pytest.raises(UnreachableError, match=f'127.0.0.1:{port}'):
        next(source.frames())


def test_sumo_ends_with_a_driver_that_is_killed(tmp_path):
    program = """
import sys
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.sumo import SumoParameters
from state_sensor_ros.simulators.sumo.sumo_process import SumoSource
source = SumoSource(SumoParameters(sys.argv[1]), Settings(rate=0.0), print)
for packet in source.frames():
    print(source.process_id, flush=True)
"""
    with subprocess.Popen([sys.executable, '-c', program, str(GRID)],
                          stdout=subprocess.PIPE) as driver:
        sumo = int(driver.stdout.readline())
        driver.kill()
    until(lambda: has_ended(sumo))


def test_sumo_first_vehicle_is_the_ego_and_the_next_one_after_it(tmp_path):
    config = write_hill(tmp_path)
    with source_of(SumoParameters(str(config), ego='first')) as source:
        egos = [frame.names[frame.ego] for packet in source.frames()
                if (frame := packet).ego is not None]
    changes = [name for name, before in zip(egos, [None, *egos], strict=False) if name != before]
    assert changes[:2] == ['car.0', 'car.1'] or len(changes) > 2
    assert len(set(changes)) == len(changes)


@pytest.fixture
def held():
    """Return a started SUMO that is paused, and what it sends."""
    source = StartedSumo(SumoParameters(str(GRID), step=0.1), FAST, lambda kind, text: None)
    source.pause()
    with closing(Collector(source)) as collector:
        until(lambda: source.health.state is SourceState.PAUSED)
        yield source, collector


def test_sumo_that_is_reset_begins_again_with_the_same_frames(held):
    source, collector = held
    source.step(20)
    until(lambda: not source.is_stepping)
    assert len(collector.times) == 20
    source.restart()
    # The first frame shows that it has begun again.
    until(lambda: not source.is_stepping)
    assert len(collector.times) == 21
    assert (collector.times[-1], source.is_paused, source.position) == (0.0, True, 0.0)
    assert collector.packets[20].is_behind_gap
    source.step(19)
    until(lambda: not source.is_stepping)
    for before, now in zip(collector.packets[:20], collector.packets[20:], strict=True):
        assert_equal(replace(now, is_behind_gap=before.is_behind_gap), before)
    assert source.health.n_reconnects == 0


def test_sumo_lights_without_a_color_are_dropped_and_counted():
    lines = []
    own = SumoParameters(str(GRID), args=('--tls.all-off', 'true'))
    with closing(SumoSource(own, FAST, lambda *line: lines.append(line))) as source:
        lights = take(source.frames(), 3)[-1].traffic_lights
    assert lights.names == ()
    [text] = [text for kind, text in lines if kind == 'lights']
    with source_of(SumoParameters(str(GRID))) as source:
        n_lights = len(take(source.frames(), 1)[0].traffic_lights.names)
    assert text == f'{n_lights} traffic lights without a color, off or blinking: dropped'
    assert n_lights > 10


def test_sumo_closes_its_files_when_the_source_is_closed(tmp_path):
    own = SumoParameters(str(GRID), args=('--fcd-output', str(tmp_path / 'fcd.xml')))
    with source_of(own) as source:
        packets = source.frames()
        take(packets, 50)
        watch = Stopwatch(source.process_id)
        source.close()
        assert not [packet for packet in packets if packet.game_time > 100]
        assert watch.seconds < 2.0
    assert (tmp_path / 'fcd.xml').read_text().rstrip().endswith('</fcd-export>')


def test_sumo_ego_has_the_inputs_of_the_bicycle_that_moves_it():
    own = SumoParameters(str(GRID), ego='first')
    with source_of(own, settings=Settings(rate=0.0, control_input='autoware')) as source:
        packets = source.frames()
        # SUMO itself has no wheels.
        assert np.isnan(take(packets, 20)[-1].inputs).all()
        source.send(Order(1, EgoCommand(throttle=0.5, brake=0.0, steer=0.2, steering_angle=0.2)))
        while (frame := take(packets, 1)[0]).inputs[frame.ego, 0] != 0.5:
            pass
        _, brake, steer, angle = frame.inputs[frame.ego]
        assert (brake, angle) == (0.0, 0.2)
        assert steer == pytest.approx(0.2 / math.radians(FULL_LOCK_DEG))
        assert frame.kinematics[frame.ego, 12] == pytest.approx(
            speed_along(frame, frame.ego) * math.tan(angle) / 2.9)
        assert np.isnan(np.delete(frame.inputs, frame.ego, axis=0)).all()


def test_sumo_ego_brakes_when_the_driver_sends_no_more():
    """A driver that is stopped cannot brake: the last command counts for its time only."""
    own = SumoParameters(str(GRID), ego='first')
    with source_of(own, settings=Settings(rate=1.0, control_input='autoware')) as source:
        packets = source.frames()
        take(packets, 20)

        def is_driven():
            [frame] = take(packets, 1)
            return frame.inputs[frame.ego, 0] == 1.0

        def send():
            source.send(Order(1, EgoCommand(throttle=1.0, brake=0.0, steer=0.0, steering_angle=0.0,
                                            until_s=time.monotonic() + 1.0)))

        # A command that arrives after its time has no effect.
        until(is_driven, step=send)
        speeds = [float(np.linalg.norm(frame.kinematics[frame.ego, 7:10]))
                  for frame in take(packets, 100)]
        assert max(speeds[:30]) > 2.0
        assert speeds[-1] < 0.1
