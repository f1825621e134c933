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

import math
import tempfile
import threading
import time

from budgets import AWAIT_S
from driven_ego import DrivenEgo
import pytest
from stopwatch import until

from state_sensor_ros.control import ego_driver
from state_sensor_ros.control.drive_mark import DriveMark
from state_sensor_ros.control.ego_commands import ControlParameters, EgoCommand
from state_sensor_ros.control.ego_driver import DriverState, EgoDriver, EgoMotion
from state_sensor_ros.control.speed_controller import Setpoint, steered
from state_sensor_ros.emulator.bicycle import Bicycle, Pedals
from state_sensor_ros.errors import TransportError


def pedal(throttle):
    return EgoCommand(throttle=throttle, brake=0.0, steer=0.0, steering_angle=0.0)


class Peer:
    """Commands that the test lets through, holds up or refuses."""

    def __init__(self):
        self.sent, self.failures = [], []
        self.is_closed = False
        self.may_pass = threading.Event()
        self.may_pass.set()
        self.entered = threading.Event()

    def send(self, command):
        self.entered.set()
        assert self.may_pass.wait(AWAIT_S)
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append(command)

    def close(self):
        self.is_closed = True


class AnsweredPeer(Peer):
    """A peer whose other way does not work."""

    n_brakes = 0

    def unanswered_s(self):
        return 0.0

    def brake(self):
        self.n_brakes += 1
        raise ZeroDivisionError


class Rig:

    def __init__(self, *, follows_speed=False, peer=Peer, **own):
        self.peer, self.lines, self.defects, self.shown = peer(), [], [], []
        self.motion = EgoMotion(3.0, 1.0, 0.0)
        self.driver = EgoDriver(
            ControlParameters(**own), self.peer, lambda: self.motion, stale_after=2.0,
            on_sent=self.shown.append, follows_speed=follows_speed,
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


@pytest.fixture
def patient(monkeypatch):
    """Have an end wait for the threads as long as a busy machine takes, not for 0.1 s."""
    for name in ('_PROMPT_S', '_END_S', '_REPORTS_S'):
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
    until(lambda: len(rig.shown) == 2)
    assert [each.throttle for each in rig.peer.sent] == [0.0, 0.99]
    assert rig.shown == rig.peer.sent
    assert rig.driver.counters.n_received == 100


def test_command_that_failed_is_sent_again_while_it_is_fresh(rig):
    rig = rig(timeout=60.0)
    rig.peer.failures = [TransportError('peer', 'nothing', 'a reply') for _ in range(3)]
    rig.driver.accept(pedal(0.5), 1)
    until(lambda: rig.peer.sent)
    assert rig.peer.sent == [pedal(0.5)]
    assert rig.driver.counters.n_unsent == 3
    until(lambda: rig.lines)
    assert rig.lines[0] == 'a command was not sent: peer: found nothing; expected a reply'


def test_command_that_failed_for_too_long_becomes_a_brake(rig):
    # Longer than a busy machine takes to attempt the command.
    rig = rig(timeout=2.0)
    rig.peer.failures = [TransportError('peer', 'nothing', 'a reply') for _ in range(1000)]
    rig.driver.accept(pedal(0.5), 1)
    until(lambda: rig.driver.state is DriverState.TIMED_OUT)
    rig.peer.failures = []
    until(lambda: rig.peer.sent)
    assert is_full_brake(rig.peer.sent[0])
    assert rig.driver.state is DriverState.TIMED_OUT


def test_defect_of_the_simulator_does_not_end_the_thread(rig):
    rig = rig(timeout=0.2)
    rig.peer.failures = [ValueError('a defect')]
    rig.driver.accept(pedal(0.5), 1)
    until(lambda: any(map(is_full_brake, rig.peer.sent)))
    assert [str(each) for each in rig.defects] == ['a defect']


def test_blocked_driver_brakes_until_the_next_command(rig):
    rig = rig(timeout=60.0)
    rig.driver.refuse('two publishers')
    rig.driver.block()
    until(lambda: rig.peer.sent)
    assert is_full_brake(rig.peer.sent[0])
    assert (rig.driver.state, rig.driver.counters.n_refused) == (DriverState.BLOCKED, 1)
    rig.driver.accept(pedal(0.25), 1)
    until(lambda: rig.peer.sent[-1] == pedal(0.25))


def test_new_run_is_driven_from_its_stand_again(rig):
    """Its ego may move: a controller of the simulator would begin with a wrong acceleration."""
    rig = rig(follows_speed=True, timeout=60.0)
    rig.motion = EgoMotion(0.0, 10.0, 0.0)
    rig.driver.accept(Setpoint(speed=5.0), 1)
    until(lambda: rig.peer.sent)
    assert rig.peer.sent[-1].speed == 5.0
    rig.motion = EgoMotion(20.0, 0.0, 0.0)
    rig.driver.frame_arrived()
    # A command is also renewed after a time.
    until(lambda: rig.peer.sent[-1].speed != 5.0)
    assert math.isnan(rig.peer.sent[-1].speed)
    assert rig.peer.sent[-1].brake > 0.0


def test_frame_evaluates_a_speed_again_and_no_pedals(rig):
    rig = rig(timeout=60.0)
    rig.driver.accept(Setpoint(speed=5.0), 1)
    until(lambda: rig.peer.sent)
    assert rig.peer.sent[0].throttle == 0.75
    rig.motion = EgoMotion(5.0, 1.05, 0.0)
    rig.driver.frame_arrived()
    # The time alone also evaluates a speed again, before its throttle could lead beyond it.
    until(lambda: rig.peer.sent[-1].throttle < 0.1)
    rig.driver.accept(pedal(0.5), 1)
    until(lambda: rig.peer.sent[-1] == pedal(0.5))
    n_sent = len(rig.peer.sent)
    rig.driver.frame_arrived()
    until(lambda: not rig.driver._is_due)
    until(lambda: rig.driver.counters.n_sent == n_sent)
    assert len(rig.peer.sent) == n_sent


def test_command_that_is_kept_elsewhere_is_renewed_before_it_ends_also_without_frames(rig):
    """A pause may begin after any frame; the next step in it uses what was written last."""
    rig = rig(timeout=60.0)
    rig.motion = EgoMotion(3.0, 1.0, 1.0)
    rig.driver.accept(pedal(0.5), 1)
    until(lambda: rig.peer.sent)
    rig.motion = EgoMotion(3.0, 1.05, 0.0)
    # The second one is looked at when the first one has been dealt with.
    for _ in range(2):
        rig.driver.frame_arrived()
        until(lambda: not rig.driver._is_due)
    assert rig.driver._look_s < rig.peer.sent[-1].until_s


@pytest.mark.parametrize('wanted', [pedal(0.5), Setpoint(speed=9.0)])
def test_ego_that_is_not_in_new_frames_brakes(rig, wanted):
    rig = rig(timeout=60.0)
    rig.driver.accept(wanted, 1)
    until(lambda: rig.peer.sent and rig.peer.sent[-1].throttle)
    # Nothing happens but the time: no command, no frame.
    seen_s = time.monotonic()
    rig.driver._motion = lambda: EgoMotion(3.0, 1.0, time.monotonic() - seen_s)
    rig.driver.accept(wanted, 1)
    until(lambda: is_full_brake(rig.peer.sent[-1]))
    assert time.monotonic() - seen_s > 2.0
    assert rig.driver.state is DriverState.STALE
    # Reported after the brake, by another thread.
    until(lambda: rig.lines)
    [line] = rig.lines
    assert line.startswith('no new frame with the ego and its speed for 2 s (stale_after)')
    # Commands do not end it, frames do.
    rig.driver.accept(wanted, 1)
    n_before = len(rig.peer.sent)
    until(lambda: len(rig.peer.sent) > n_before)
    assert all(map(is_full_brake, rig.peer.sent[n_before:]))
    rig.driver._motion = lambda: EgoMotion(3.0, 2.0, 0.0)
    rig.driver.frame_arrived()
    until(lambda: rig.peer.sent[-1].throttle)
    assert rig.driver.state is DriverState.DRIVING


def test_end_brakes_only_after_a_command(rig, patient):
    idle, driven = rig(), rig(timeout=60.0)
    driven.driver.accept(pedal(1.0), 1)
    until(lambda: driven.peer.sent)
    for each in (idle, driven):
        each.driver.close()
        assert each.peer.is_closed
        each.driver.accept(pedal(1.0), 1)
    assert idle.peer.sent == []
    assert is_full_brake(driven.peer.sent[-1])


def test_end_waits_for_the_simulator_only_for_a_while(rig):
    rig = rig()
    may_end, has_ended = threading.Event(), threading.Event()

    def close():
        assert may_end.wait(AWAIT_S)
        has_ended.set()

    rig.peer.close = close
    rig.driver.close()
    assert not has_ended.is_set()
    may_end.set()
    assert has_ended.wait(AWAIT_S)


def test_defects_are_reported_and_the_last_command_is_the_brake(rig, patient):
    rig = rig(timeout=60.0)
    rig.driver._on_sent = lambda command: 1 / 0
    rig.peer.close = lambda: 1 / 0
    rig.driver.accept(pedal(1.0), 1)
    until(lambda: rig.defects)
    rig.driver.close()
    assert is_full_brake(rig.peer.sent[-1])
    assert [type(each) for each in rig.defects] == 3 * [ZeroDivisionError]


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
            world.vehicle.speed = car.speed
            world.game_time += step_s
            world.deliver()
            speeds.append(car.speed)
        world.decide()
    assert max(speeds) < target + 0.1
    assert speeds[-10:] == pytest.approx([target] * 10, abs=0.1)


def test_last_brake_is_sent_each_way_and_a_defect_of_one_is_reported(rig, patient):
    driven = rig(peer=AnsweredPeer)
    driven.driver.accept(pedal(0.5), 0)
    until(lambda: driven.peer.sent)
    driven.driver.close()
    assert is_full_brake(driven.peer.sent[-1])
    assert driven.peer.n_brakes == 1
    assert driven.peer.is_closed
    assert [type(defect) for defect in driven.defects] == [ZeroDivisionError]


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
