# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The controller on the vehicle of the mock servers, and its properties for any input."""

from collections import deque
from dataclasses import replace
from itertools import pairwise
import math
from typing import NamedTuple

from budgets import tries
from hypothesis import given, settings, strategies
import pytest

from state_sensor_ros.control.ego_commands import ControlParameters, STANDSTILL_SPEED
from state_sensor_ros.control.speed_controller import limited, pedals, Setpoint, SpeedController
from state_sensor_ros.emulator.bicycle import Bicycle, DRAG, Pedals
from state_sensor_ros.errors import StateError

OWN = ControlParameters()
FINITE = strategies.floats(allow_nan=False, allow_infinity=False)
SPEEDS = strategies.floats(-30.0, 30.0)


class Vehicle(NamedTuple):
    mass: float = 1.0  # of the usual one
    delay_s: float = 0.0  # until pedals have an effect
    throttle_lag_s: float = 0.0
    top_speed: float = math.inf


USUAL = Vehicle()


class Drive:
    """The controller and the vehicle, which is measured ``delay`` steps late."""

    def __init__(self, speed=0.0, period=0.05, delay=1, vehicle=USUAL, slope=0.0, own=OWN):
        self.controller = SpeedController(own)
        self.car, self.vehicle, self.throttle = Bicycle(0.0, 0.0, 0.0, speed), vehicle, 0.0
        self.pending = deque([Pedals()] * round(vehicle.delay_s / period))
        self.period, self.measured, self.slope = period, [speed] * (delay + 1), slope

    def step(self, wanted):
        """Return the command of a step."""
        command = self.controller.command(wanted, self.measured.pop(0), self.period, self.slope)
        self.pending.append(Pedals(command.steer, command.throttle, float(
            command.hand_brake or command.brake), reverse=command.reverse))
        self.car.advance(self.effective(self.pending.popleft()), self.period, self.slope)
        self.measured.append(self.car.speed)
        return command

    def effective(self, pedals):
        """Return the pedals of the usual vehicle that have the effect of those of this one."""
        mass, _, lag_s, top_speed = self.vehicle
        throttle = pedals.throttle if abs(self.car.speed) < top_speed else 0.0
        self.throttle += (throttle - self.throttle) * (
            -math.expm1(-self.period / lag_s) if lag_s else 1.0)
        return replace(pedals, throttle=self.throttle / mass, brake=pedals.brake / mass)

    def speeds(self, wanted, seconds):
        """Return the speed after each step."""
        speeds = []
        for _ in range(round(seconds / self.period)):
            self.step(wanted)
            speeds.append(self.car.speed)
        return speeds


def overshoot(speeds, before, target):
    return max(math.copysign(1.0, target - before) * (speed - target) for speed in speeds)


@settings(max_examples=tries(12), deadline=None)
@given(SPEEDS, SPEEDS, strategies.sampled_from([
    (0.05, 0), (0.05, 1), (0.1, 1), (0.1, 2), (0.5, 0), (1.0, 0)]))
def test_step_of_speed_settles_without_overshoot(first, second, timing):
    drive = Drive(0.0, *timing)
    for before, target in ((0.0, first), (first, second)):
        speeds = drive.speeds(Setpoint(speed=target), 40.0)
        assert abs(speeds[-1] - target) < 0.3
        settled = speeds[-round(10.0 / drive.period):]
        assert all(abs(speed - target) < 0.3 for speed in settled)
        if abs(target - before) > 0.5:
            assert overshoot(speeds, before, target) < max(
                0.1 * abs(target - before), 0.02 * abs(target), 0.5)


def test_start_uphill_after_a_short_movement_with_late_pedals():
    """A simulator that drove before, and whose pedals have their effect two steps late."""
    drive, slope = Drive(), 0.1
    late = [Pedals(0.0, 1.0, 0.0), Pedals(0.0, 0.0, 1.0)]
    for _ in range(60):
        command = drive.controller.command(Setpoint(speed=10.0), drive.car.speed, 0.05, slope)
        late.append(Pedals(0.0, command.throttle, command.brake))
        drive.car.advance(late.pop(0), 0.05, slope)
    assert drive.car.speed > 3.0


@pytest.mark.parametrize('second', [0.0, -15.0])
def test_ego_does_not_creep_before_it_stops(second):
    drive = Drive(0.0, 0.1, 2)
    drive.speeds(Setpoint(speed=27.0), 40.0)
    assert drive.speeds(Setpoint(speed=second), 6.0)[-1] <= 0.1


@settings(max_examples=tries(100), deadline=None)
@given(strategies.sampled_from([OWN, replace(OWN, kp=0.0, ki=0.0)]), FINITE, FINITE,
       strategies.floats(0.0, exclude_min=True), FINITE, strategies.lists(
           strategies.tuples(strategies.floats(), strategies.floats()), max_size=5))
def test_no_input_gives_a_number_out_of_range(
        own, speed, acceleration, limit, angle, measured):
    controller = SpeedController(own)
    wanted = limited(Setpoint(speed=speed, acceleration=acceleration, max_acceleration=limit,
                              steering_angle=angle), OWN)
    for now, elapsed_s in [*measured, (0.0, 0.05), (5.0, 0.05)]:
        command = controller.command(wanted, now, elapsed_s)
        assert 0.0 <= command.throttle <= 1.0
        assert 0.0 <= command.brake <= 1.0
        # Both hold an ego that starts uphill.
        assert not (command.throttle and command.brake) or abs(now) < STANDSTILL_SPEED
        assert -1.0 <= command.steer <= 1.0
        assert abs(command.steering_angle) <= OWN.max_steering_angle


def test_standing_ego_is_held():
    drive = Drive(8.0)
    assert drive.speeds(Setpoint(speed=0.0), 6.0)[-1] == 0.0
    command = drive.step(Setpoint(speed=0.0))
    assert (command.throttle, command.hand_brake) == (0.0, False)
    assert command.brake > 0.2
    assert drive.step(Setpoint(speed=0.0, hand_brake=True)).hand_brake


def test_reverse_begins_at_standstill():
    drive = Drive(6.0)
    for _ in range(400):
        before = drive.measured[0]
        command = drive.step(Setpoint(speed=-3.0))
        assert not command.reverse or before < 0.1
    assert command.reverse
    assert drive.car.speed == pytest.approx(-3.0, abs=0.3)
    # And forward again.
    assert drive.speeds(Setpoint(speed=2.0), 20.0)[-1] == pytest.approx(2.0, abs=0.3)


def test_blocked_ego_does_not_wind_up():
    controller = SpeedController(OWN)
    for _ in range(2000):
        controller.command(Setpoint(speed=20.0), 0.0, 0.05)
    drive = Drive()
    drive.controller = controller
    assert overshoot(drive.speeds(Setpoint(speed=20.0), 60.0), 0.0, 20.0) < 2.0


def test_standing_clock_does_not_integrate():
    controller = SpeedController(OWN)
    commands = {controller.command(Setpoint(speed=5.0), 4.0, 0.0) for _ in range(100)}
    assert len(commands) == 1


def test_acceleration_is_fed_forward_towards_the_wanted_speed():
    def asked(speed, acceleration, own=OWN, **more):
        """Return the acceleration of the pedals for 5 m/s, m/s2."""
        command = SpeedController(own).command(
            Setpoint(speed=5.0, acceleration=acceleration, **more), speed, 0.0)
        return command.throttle * own.full_throttle - command.brake * own.full_brake

    assert asked(4.0, 0.0) == OWN.kp
    assert asked(4.0, 1.0) == OWN.kp + 1.0
    # Toward a lower speed it is the limit, also to a stop.
    assert asked(6.0, -1.0) == asked(20.0, -1.0) == -1.0
    assert asked(20.0, 0.0, max_acceleration=2.0) == -2.0
    # Not beyond it, nor away from it.
    assert asked(5.0, 50.0) == asked(5.0, -50.0) == 0.0
    assert asked(4.0, -50.0) == OWN.kp
    assert asked(6.0, 50.0) == -OWN.kp
    bounded = ControlParameters(max_acceleration=1.0, max_deceleration=2.0)
    assert asked(0.0, 50.0, bounded) == pytest.approx(1.0)
    assert asked(20.0, -50.0, bounded) == pytest.approx(-2.0)


# Measured two frames of 0.1 s late, it is 0.5 m/s too fast at most; one frame late, 0.2 m/s.
@pytest.mark.parametrize(('timing', 'most'), [
    ((0.05, 1), 0.2), ((0.1, 1), 0.2), ((0.1, 2), 0.5)])
@settings(max_examples=tries(15), deadline=None)
@given(strategies.floats(1.0, 29.0), strategies.sampled_from([-1.0, 1.0]),
       strategies.floats(-1e3, 1e3))
def test_no_acceleration_takes_the_ego_beyond_the_wanted_speed(timing, most, speed, sign, wanted):
    for limits in ({'acceleration': wanted}, {'max_acceleration': abs(wanted) + 0.1}):
        speeds = Drive(0.0, *timing).speeds(Setpoint(speed=sign * speed, **limits), 20.0)
        assert overshoot(speeds, 0.0, sign * speed) < most


@settings(max_examples=tries(15), deadline=None)
@given(strategies.floats(-1e3, 1e3), strategies.floats(0.5, 15.0), strategies.floats(-10.0, 10.0))
def test_accelerations_stay_within_their_bounds(wanted, speed, start):
    own = ControlParameters(max_acceleration=1.5, max_deceleration=2.0)
    drive = Drive(start)
    drive.controller = SpeedController(own)
    speeds = [start, *drive.speeds(Setpoint(speed=speed, acceleration=wanted), 20.0)]
    for before, after in pairwise(speeds):
        # Drag of the vehicle comes on top of the brake; its compensation is a step late.
        gained = (abs(after) - abs(before)) / drive.period
        assert -2.0 - 1.01 * DRAG * abs(before) - 1e-9 <= gained <= 1.05 * 1.5


def test_speed_and_angle_are_clamped():
    wanted = limited(Setpoint(speed=-1e30, steering_angle=9.0), OWN)
    assert (wanted.speed, wanted.steering_angle) == (-OWN.max_speed, OWN.max_steering_angle)


@pytest.mark.parametrize(('name', 'value'), [
    *((name, value) for name in ('speed', 'acceleration', 'steering_angle')
      for value in (math.nan, math.inf, -math.inf)),
    *(('max_acceleration', value) for value in (math.nan, -1.0, 0.0))])
def test_setpoint_that_is_not_finite_or_has_no_limit_is_refused(name, value):
    with pytest.raises(StateError, match=f'{name.removeprefix("max_")}: found .*; expected '):
        limited(Setpoint(**{'speed': 1.0, name: value}), OWN)


@pytest.mark.parametrize(('numbers', 'place'), [
    ((-0.1, 0.0, 0.0, 0.0), 'throttle'), ((1.1, 0.0, 0.0, 0.0), 'throttle'),
    ((math.nan, 0.0, 0.0, 0.0), 'throttle'), ((0.0, math.inf, 0.0, 0.0), 'brake'),
    ((0.0, 0.0, 1.5, 0.0), 'steer'), ((0.0, 0.0, -math.inf, 0.0), 'steer'),
    ((0.0, 0.0, math.nan, math.nan), 'steering_angle'),
    ((0.0, 0.0, math.nan, math.inf), 'steering_angle')])
def test_pedals_out_of_range_are_refused(numbers, place):
    with pytest.raises(StateError, match=f'{place}: found'):
        pedals(*numbers, OWN)


def test_steer_counts_before_the_angle():
    own = ControlParameters(full_steering_angle=0.6)
    assert pedals(0.5, 0.0, 0.25, math.nan, own).steering_angle == 0.25 * 0.6
    command = pedals(0.5, 0.0, math.nan, 5.0, own)
    assert (command.steer, command.steering_angle) == (1.0, 0.6)


@pytest.mark.parametrize('wanted', [(1.0, math.nan), (-1.0, math.nan), (math.nan, 0.5)])
def test_largest_steering_angle_is_a_limit_and_no_scale(wanted):
    own = ControlParameters(full_steering_angle=0.8, max_steering_angle=0.2)
    command = pedals(0.5, 0.0, *wanted, own)
    assert (abs(command.steer), abs(command.steering_angle)) == (0.25, 0.2)
    driven = SpeedController(own).command(Setpoint(speed=5.0, steering_angle=0.1), 5.0, 0.05)
    assert (driven.steer, driven.steering_angle) == (0.125, 0.1)


def test_followed_speed_is_bounded_and_pedals_do_what_is_left():
    own = ControlParameters(max_speed=10.0, max_acceleration=2.0, max_deceleration=3.0)
    controller = SpeedController(own, follows_speed=True)

    def command(speed, wanted, **more):
        given = controller.command(limited(Setpoint(speed=wanted, **more), own), speed, 0.05)
        assert math.isnan(given.speed) is not math.isnan(given.throttle + given.brake)
        return given

    # A moving ego is driven by pedals until it stands.
    assert command(5.0, 8.0).throttle > 0.0
    assert command(0.0, 0.0).brake > 0.0
    follows = command(0.0, 50.0, steering_angle=0.3)
    assert (follows.speed, follows.max_acceleration, follows.steering_angle) == (10.0, 2.0, 0.3)
    assert command(8.0, 4.0).max_acceleration == 3.0
    assert command(8.0, 9.0, max_acceleration=0.5).max_acceleration == 0.5
    # 0 would be no limit.
    assert command(8.0, 9.0, max_acceleration=1e-9).max_acceleration == 0.01
    assert not command(8.0, 9.0).reverse
    # Too fast, the other direction, an unknown speed: pedals, and then until it stands.
    for speed, wanted in ((11.5, 10.0), (5.0, -5.0), (5.0, 0.0), (math.nan, 5.0)):
        command(0.0, 5.0)
        assert command(speed, wanted).brake > 0.0
        assert math.isnan(command(5.0, 8.0).speed)
    back = command(0.05, -50.0)
    assert (back.speed, back.max_acceleration, back.reverse) == (-10.0, 2.0, True)
    assert back.full_brake() == command(math.nan, -50.0)
    command(0.0, 5.0)
    controller.reset()
    assert math.isnan(command(5.0, 8.0).speed)


VEHICLES = [USUAL, Vehicle(mass=1.3), Vehicle(mass=1.2, delay_s=0.2),
            Vehicle(throttle_lag_s=0.4, delay_s=0.1), Vehicle(top_speed=9.0)]


@pytest.mark.parametrize('wanted', [
    Setpoint(speed=0.0, max_acceleration=2.0), Setpoint(speed=5.0, max_acceleration=1.0),
    Setpoint(speed=9.0), Setpoint(speed=0.0, acceleration=-1.0)], ids=str)
@pytest.mark.parametrize('slope', [0.0, 0.2, -0.2])
@pytest.mark.parametrize('limit', [1.0, 4.0])
@pytest.mark.parametrize('vehicle', VEHICLES, ids=str)
def test_slower_setpoint_ends_the_throttle_in_the_same_call(wanted, slope, limit, vehicle):
    own = ControlParameters(max_acceleration=limit)
    drive = Drive(10.8, vehicle=vehicle, slope=slope, own=own)
    for _ in range(20):
        drive.step(Setpoint(speed=30.0, max_acceleration=8.0))
    first = drive.car.speed
    while drive.measured[0] > wanted.speed + 0.2:
        assert drive.step(wanted).throttle == 0.0
        # Downhill the speed grows during the delay of the brake.
        assert drive.car.speed < first + 2.0 * vehicle.delay_s + 0.35


@pytest.mark.parametrize('slope', [0.0, 0.1, -0.1])
@pytest.mark.parametrize('mass', [1.0, 1.3])
def test_low_limit_of_the_acceleration_does_not_limit_the_speed(slope, mass):
    drive = Drive(vehicle=Vehicle(mass=mass), slope=slope,
                  own=ControlParameters(max_acceleration=1.0))
    speeds = [0.0, *drive.speeds(Setpoint(speed=15.0), 60.0)]
    assert speeds[-1] == pytest.approx(15.0, rel=0.02)
    assert max(speeds) < 15.7
    gained = [b - a for a, b in zip(speeds, speeds[20:], strict=False)]
    assert max(gained) < 1.3


@pytest.mark.parametrize('slope', [0.0, 0.1])
def test_lower_speed_is_reached_within_three_seconds(slope):
    drive = Drive(15.0, slope=slope)
    drive.speeds(Setpoint(speed=15.0), 10.0)
    after = drive.speeds(Setpoint(speed=8.0), 10.0)[round(3.0 / drive.period):]
    assert all(speed == pytest.approx(8.0, rel=0.02) for speed in after)


@pytest.mark.parametrize('slope', [0.3, -0.3])
@pytest.mark.parametrize('direction', [1.0, -1.0])
@pytest.mark.parametrize('vehicle', [*VEHICLES[:4], Vehicle(mass=1.6)], ids=str)
def test_ego_does_not_roll_on_a_hill(slope, direction, vehicle):
    """Also one that is too weak for the hill, with the hand brake released."""
    drive = Drive(vehicle=vehicle, slope=slope)
    for _ in range(20):
        drive.step(Setpoint(speed=0.0))
    place = farthest = 0.0
    for wanted in (2.0, 0.0, 3.0):
        speeds = drive.speeds(Setpoint(speed=direction * wanted), 12.0)
        places = [place + drive.period * sum(speeds[:i]) for i in range(len(speeds) + 1)]
        farthest = max(farthest, max(direction * (max(
            places[:i + 1], key=lambda x: direction * x) - x) for i, x in enumerate(places)))
        place = places[-1]
        if not wanted:
            assert speeds[-1] == 0.0
            assert abs(places[-1] - places[-100]) < 0.01
    assert farthest < 0.3
    if vehicle.mass < 1.25 or slope * direction < 0.0:
        assert drive.car.speed == pytest.approx(direction * 3.0, abs=0.3)


def test_ego_that_is_too_weak_for_a_hill_stays_on_it():
    drive = Drive(vehicle=Vehicle(mass=1.6, delay_s=0.1), slope=0.3)
    assert not any(drive.speeds(Setpoint(speed=3.0), 30.0)[-200:])
