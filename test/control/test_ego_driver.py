# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The thread that sends commands, without ROS: newest wins, failures, defects, end."""

from dataclasses import replace
import math
import tempfile
import threading

from budgets import AWAIT_S
from driven_ego import DrivenEgo
import pytest
from stopwatch import until

from state_sensor_ros.control import ego_driver
from state_sensor_ros.control.drive_mark import DriveMark
from state_sensor_ros.control.ego_commands import ControlParameters, EgoCommand
from state_sensor_ros.control.ego_driver import EgoDriver, EgoMotion, LateCalls
from state_sensor_ros.control.gate import DriverState, Gate
from state_sensor_ros.control.speed_controller import Setpoint, steered
from state_sensor_ros.emulator.bicycle import Bicycle, Pedals


def pedal(throttle):
    return EgoCommand(throttle=throttle, brake=0.0, steer=0.0, steering_angle=0.0)


class Peer:
    """Commands that the test lets through, holds up or refuses."""

    def __init__(self):
        self.sent, self.failures = [], []
        self.may_pass = threading.Event()
        self.may_pass.set()
        self.entered = threading.Event()

    def write(self, command):
        self.entered.set()
        assert self.may_pass.wait(AWAIT_S)
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append(command)
        return lambda: True

    def brake(self):
        """Brake in no other way."""

    def close(self):
        """End: nothing is kept."""


class Rig:

    def __init__(self, **own):
        self.peer, self.lines, self.defects, self.shown = Peer(), [], [], []
        self.motion = EgoMotion(3.0, 1.0, 0.0)
        self.reports, self.on_sent = LateCalls(self.defects.append), self.shown.append
        self.driver = EgoDriver(
            ControlParameters(**own), self.peer, lambda: self.motion, stale_after=2.0,
            on_sent=self.reports.late(lambda command: self.on_sent(command)),
            report=lambda kind, text: self.lines.append(text), on_defect=self.defects.append)
        self.driver.start()


@pytest.fixture
def rig():
    """Provide a function that makes a driver; each is closed at the end."""
    made = []

    def make(**own):
        made.append(Rig(**own))
        return made[-1]
    yield make
    for each in made:
        each.peer.may_pass.set()
        each.driver.close()
        each.reports.close(AWAIT_S)


@pytest.fixture
def patient(monkeypatch):
    """Have an end wait for the threads as long as a busy machine takes, not for 0.1 s."""
    for name in ('_PROMPT_S', '_END_S'):
        monkeypatch.setattr(ego_driver, name, AWAIT_S)


def is_full_brake(command):
    return (command.throttle, command.brake) == (0.0, 1.0)


@pytest.mark.parametrize(('speed', 'rate', 'measured', 'angle'), [
    (0.0, 0.01, 15.0, math.atan(2.9 * 0.01 / 15.0)), (-0.0, 0.01, 15.0, math.atan(0.029 / 15.0)),
    (0.0, 1e-310, 15.0, 0.0), (-3.0, 0.1, 5.0, math.atan(0.29 / 5.0)),
    (-3.0, 0.1, -5.0, -math.atan(0.29 / 5.0)),
    # Standing, by the wanted speed; without any the angle stays.
    (5.0, 0.1, 0.0, math.atan(0.29 / 5.0)), (0.0, 1.0, 0.0, 0.3)])
def test_yaw_rate_acts_through_the_measured_speed(speed, rate, measured, angle):
    found = steered(Setpoint(speed=speed, yaw_rate=rate), measured, 0.3, 2.9)
    assert found.steering_angle == pytest.approx(angle)


def test_newest_command_wins_and_none_queues(rig):
    rig = rig(timeout=60.0)
    rig.peer.may_pass.clear()
    rig.driver.accept(pedal(0.0), 1)
    assert rig.peer.entered.wait(AWAIT_S)
    for i in range(1, 100):
        rig.driver.accept(pedal(i / 100), 1)
    rig.peer.may_pass.set()
    until(lambda: len(rig.shown) > 1)
    assert [each.throttle for each in rig.peer.sent[:2]] == [0.0, 0.99]
    assert rig.shown[:2] == rig.peer.sent[:2]
    assert rig.driver.counters.n_received == 100


def test_defects_are_reported_and_end_neither_the_thread_nor_the_last_brake(rig, patient):
    rig = rig(timeout=0.2)
    rig.peer.failures = [ValueError('a defect')]
    rig.on_sent, rig.peer.brake, rig.peer.close = (
        lambda command: 1 / 0, lambda: [].pop(), lambda: {}['end'])
    rig.driver.accept(pedal(1.0), 1)
    until(lambda: any(map(is_full_brake, rig.peer.sent)))
    rig.driver.close()
    rig.reports.close(AWAIT_S)
    assert is_full_brake(rig.peer.sent[-1])
    assert {type(each) for each in rig.defects} == {
        ValueError, ZeroDivisionError, IndexError, KeyError}


@pytest.mark.parametrize('step_s', [0.05, 1.0])
@pytest.mark.parametrize('target', [2.0, ControlParameters().max_speed])
def test_speed_is_driven_exactly_at_any_step(step_s, target):
    world, car = DrivenEgo(), Bicycle(0.0, 0.0, 0.0, 0.0)
    speeds, wanted = [], Setpoint(speed=target)
    for i in range(1, 1200):
        world.driver.accept(wanted, 0)
        world.decide()
        world.now_s += 0.05
        if i % round(step_s / 0.05) == 0:
            command = world.last.now(world.now_s)
            car.advance(Pedals(throttle=command.throttle, brake=command.brake), step_s)
            world.vehicle.speed, world.vehicle.place = car.speed, (car.x, 0.0, 0.0)
            world.game_time += step_s
            world.deliver()
            speeds.append(car.speed)
        world.decide()
    assert max(speeds) < target + 0.1
    assert speeds[-10:] == pytest.approx([target] * 10, abs=0.1)


def test_proofs_that_come_a_second_late_are_proofs_of_a_fast_stack():
    ego = DrivenEgo(timeout=2.0)
    ego.write = lambda command: (
        lambda until_s: lambda: ego.now_s >= until_s)(ego.now_s + 1.0)
    for i in range(500):
        ego.driver.accept(pedal(i % 2 / 10), 0)
        ego.decide()
        ego.now_s += 0.01
        ego.game_time += 0.01
        ego.deliver()
        assert ego.driver.state is DriverState.DRIVING


def test_speed_after_pedals_of_the_stack_is_followed_from_a_stand_only():
    ego = DrivenEgo(follows=True)
    for wanted, speed, is_followed in ((Setpoint(speed=5.0), 0.0, True), (
            pedal(1.0), 5.0, False), (Setpoint(speed=8.0), 5.0, False)):
        ego.vehicle.speed = speed
        ego.game_time += 0.05
        ego.deliver()
        ego.driver.accept(wanted, 0)
        ego.decide()
        assert math.isfinite(ego.last.speed) is is_followed


def test_frames_without_the_ego_or_its_speed_neither_free_the_pedals_nor_lock_the_wheels():
    gate = Gate(ControlParameters(max_speed=10.0), 2.0)
    for i in range(4):
        for motion in (EgoMotion(), EgoMotion(math.nan, i / 20), EgoMotion(20.0, i / 20, 0.0)):
            gate.see(motion, i / 20)
    command = gate.steered(replace(gate.passed(pedal(1.0), 0.0), steering_angle=0.3), 0.0)
    assert command.throttle == 0.0
    assert command.steering_angle > 0.0


def test_mark_of_a_node_is_left_if_its_last_brake_is_not_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    first, second = DriveMark('host:1'), DriveMark('host:1')
    assert not first.was_left
    first.set()
    second.set()
    # While the first drives, it has not left anything.
    assert not DriveMark('host:1').was_left
    second.close(is_kept=False)
    first.close(is_kept=True)
    third = DriveMark('host:1')
    assert third.was_left
    third.close(is_kept=False)
    assert not DriveMark('host:1').was_left
