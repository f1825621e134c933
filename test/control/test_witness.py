# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""What is measured of the ego against what is ordered: states that are old, and other drivers."""

import math

from driven_ego import DrivenEgo, RIVAL
import pytest

from state_sensor_ros.control.gate import DriverState, EgoMotion
from state_sensor_ros.control.speed_controller import pedals, Setpoint
from state_sensor_ros.control.witness import EgoWatch, HOLD_S

FAULTS = DriverState.FAULT, DriverState.DISOBEYED


def drive(ego, seconds, wanted):
    """Drive for a time; return the states."""
    states = []
    for _ in ego.advance(seconds, lambda: ego.driver.accept(wanted, 1)):
        states.append(ego.driver.state)
    return states


def push(ego, throttle=1.0, reverse=False):
    return pedals(throttle, 0.0, 0.0, math.nan, ego.parameters, reverse=reverse)


@pytest.mark.parametrize(('speed', 'frames'), [
    (5.0, 'frozen'), (5.0, 'frozen pose'), (5.0, 'alternating'), (0.0, 'frozen')])
def test_state_that_does_not_go_on_brakes_and_is_a_fault_until_two_seconds_after_it(speed, frames):
    ego = DrivenEgo()
    drive(ego, 4.0, Setpoint(speed=speed))
    ego.frames = frames
    states = drive(ego, 2.3, push(ego))
    assert states[0] is DriverState.DRIVING
    assert states[-1] in FAULTS
    assert (ego.held.throttle, ego.held.brake) == (0.0, 1.0)
    drive(ego, 4.0, push(ego))
    assert ego.vehicle.speed == 0.0
    ego.frames = 'all'
    states = drive(ego, HOLD_S + 0.5, push(ego))
    assert set(states[:60]) <= set(FAULTS)
    assert states[-1] is DriverState.DRIVING


# As soon as it is a fault, and long after that.
@pytest.mark.parametrize('seconds', [2.05, 10.0])
def test_ego_at_a_wall_brakes_until_it_is_to_go_the_other_way(seconds):
    ego = DrivenEgo()
    advance = ego.vehicle.advance
    ego.vehicle.advance = lambda command: command and command.reverse and advance(command)
    assert DriverState.DISOBEYED not in drive(ego, 1.9, push(ego))
    drive(ego, seconds - 1.9, push(ego))
    assert 'its pose stands for 2 s' in ego.driver.disobedience
    drive(ego, HOLD_S + 1.0, push(ego, reverse=True))
    assert ego.vehicle.speed < -1.0


def test_brakes_in_between_do_not_hide_a_pose_that_stands():
    ego, states = DrivenEgo(), []
    drive(ego, 1.0, Setpoint(speed=0.0))
    ego.frames = 'frozen'
    for _ in range(6):
        drive(ego, 0.5, push(ego))
        states += drive(ego, 0.1, pedals(0.0, 0.2, 0.0, math.nan, ego.parameters))
    assert states[0] is DriverState.DRIVING
    assert states[-1] is DriverState.DISOBEYED


def test_frames_that_are_lost_show_disobedience_once_a_brake_was_ordered_for_long():
    ego, wanted = DrivenEgo(), Setpoint(speed=5.0)
    drive(ego, 4.0, wanted)
    ego.frames = 'lost'
    assert drive(ego, 3.5, wanted)[-1] is DriverState.STALE
    assert not ego.driver.disobedience
    drive(ego, 1.5, wanted)
    assert 'last new frame is 5.0 s old' in ego.driver.disobedience


def test_gap_between_frames_is_no_step_for_which_a_write_may_be_unproven():
    ego, wanted = DrivenEgo(), Setpoint(speed=0.0)
    drive(ego, 0.2, wanted)
    ego.main, ego.frames = 'lost', 'lost'
    assert drive(ego, 0.6, wanted)[-1] is DriverState.UNANSWERED
    ego.frames = 'all'
    assert set(drive(ego, 0.3, wanted)) == {DriverState.UNANSWERED}


@pytest.mark.parametrize('follows', [False, True])
@pytest.mark.parametrize(('rival', 'wanted'), [
    ('always', Setpoint(speed=0.0)), ('always', Setpoint(speed=4.0)),
    ('late', Setpoint(speed=20.0, steering_angle=-0.05))])
def test_another_driver_that_speeds_up_or_turns_the_ego_is_named(rival, wanted, follows):
    ego = DrivenEgo(follows=follows)
    if not follows:
        drive(ego, 4.0, wanted)
    ego.rival = 'always' if follows else rival
    assert RIVAL.steering_angle > 0.0
    assert drive(ego, 4.0, wanted)[-1] is DriverState.DISOBEYED
    assert ego.n_brakes


def test_ordinary_driving_is_no_fault():
    ego, states = DrivenEgo(delay_s=0.2), []
    for i in range(12):
        speed, angle = ((12.0, 0.06), (8.0, -0.1), (0.0, 0.3), (-3.0, 0.4))[i % 4]
        states += drive(ego, 2.0 + i % 3, Setpoint(speed=speed, steering_angle=angle))
    # A hand brake, a slope that the throttle does not climb, and a pause.
    states += drive(ego, 4.0, pedals(1.0, 0.0, 0.0, 0.0, ego.parameters, hand_brake=True))
    assert set(states) == {DriverState.DRIVING}


def test_step_is_that_of_most_frames_and_neither_of_a_gap_nor_of_two_at_once():
    watch = EgoWatch(lambda: 0.0)
    for at_s in (0.0, 1.0, 2.0, 3.95, 4.0):
        watch.see(EgoMotion(0.0, at_s), at_s)
    assert watch.last.step_s == 1.0
