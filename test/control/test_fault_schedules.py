# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Random schedules of a stack and of faults, from the callback to the bytes."""

import tempfile

from budgets import tries
from fault_schedules import FAULTS, Plan, plans, Run
from hypothesis import given, settings, strategies
import pytest

from state_sensor_ros.control.drive_mark import DriveMark

CASES = {
    'slower than the ego': Plan('carla', 'ackermann', (
        (0.3, 'speed', (30.0, 8.0, 0.0)), (4.0, 'speed', (0.0, 2.0, 0.0)))),
    'slower, with a limit': Plan('monodrive', 'ackermann', (
        (0.3, 'speed', (30.0, 0.0, 0.0)), (3.5, 'speed', (5.0, 1.0, 0.0)))),
    'late replies, live stack': Plan('monodrive', 'twist', (
        (0.3, 'speed', (15.0, 0.0, 0.0)), (3.0, 'replies', (3.0, 6.0)),
        (4.0, 'speed', (0.0, 0.0, 0.0))), own={'control.max_speed': 10.0, 'sample_rate': 10.0}),
    'silent reconnection': Plan('monodrive', 'twist', (
        (0.3, 'speed', (15.0, 0.0, 0.0)), (3.0, 'cut', 6.0),
        (4.5, 'speed', (0.0, 0.0, 0.0))), own={'sample_rate': 10.0}),
    'measurements stall': Plan('carla', 'vehicle_control', (
        (0.3, 'speed', (5.0, 0.0, 0.0)), (3.0, 'frames', ('stall', 6.0)))),
    'successor in park': Plan('monodrive', 'autoware', (
        (0.3, 'speed', (5.0, 0.0, 0.0)), (3.0, 'successor', 4.0))),
    'slow start uphill': Plan('carla', 'twist', ((0.3, 'speed', (0.5, 0.0, 0.0)),), slope=0.12),
    'stop uphill': Plan('carla', 'twist', (
        (0.3, 'speed', (5.0, 0.0, 0.0)), (5.0, 'speed', (0.0, 0.0, 0.0))), slope=0.3),
    'two egos': Plan('carla', 'twist', (
        (0.3, 'speed', (5.0, 0.0, 0.0)), (3.0, 'frames', ('two egos', 6.0)))),
    'pause that moves': Plan('carla9', 'twist', (
        (0.3, 'speed', (15.0, 0.0, 0.0)), (1.5, 'pause', -8.0)), is_ticking=True,
        own={'control.max_speed': 10.0}),
    'killed node': Plan('monodrive', 'twist', is_held=True),
    'no descriptors': Plan('monodrive', 'vehicle_control', (
        (0.3, 'speed', (5.0, 0.0, 0.0)), (3.0, 'descriptors', 6.0), (4.0, 'silence', 5.0))),
    'frames every 1.8 s': Plan('carla', 'twist', (
        (0.3, 'speed', (30.0, 0.0, 0.0)), (1.5, 'frames', ('slow', 9.0))),
        own={'control.max_speed': 10.0}),
    'pedals without an ego': Plan('sumo', 'vehicle_control', (
        (0.3, 'speed', (30.0, 0.0, 0.0)), (2.0, 'frames', ('no ego', 6.0))),
        own={'control.max_speed': 10.0}),
    'first pedals without an ego': Plan('carla', 'vehicle_control', (
        (0.0, 'frames', ('no ego', 6.0)), (0.3, 'speed', (30.0, 0.0, 0.0)))),
    'pedals without velocities': Plan('monodrive', 'vehicle_control', (
        (0.0, 'frames', ('no speed', 60.0)), (0.3, 'speed', (30.0, 0.0, 0.0))),
        own={'control.max_speed': 10.0}),
    'speeds without velocities': Plan('monodrive', 'twist', (
        (0.0, 'frames', ('no speed', 60.0)), (0.3, 'speed', (5.0, 0.0, 0.0)),
        (5.0, 'speed', (0.0, 0.0, 0.0)))),
    'stop uphill without frames': Plan('carla', 'twist', (
        (0.3, 'speed', (9.5, 0.0, 0.0)), (3.6, 'frames', ('lost', 2.0)),
        (3.6, 'speed', (0.0, 8.0, 0.0))), slope=0.3),
    'slower between two frames': Plan('carla', 'ackermann', (
        (0.3, 'speed', (30.0, 8.0, 0.0)), (1.3, 'frames', ('slow', 6.0)),
        (1.7, 'speed', (8.0, 2.0, 0.0))), slope=-0.3, own={'control.max_speed': 10.0}),
    'state whose callback fails': Plan('sumo', 'autoware', (
        (0.3, 'speed', (15.0, 0.0, 0.0)), (2.1, 'exception', ('graph', 3.0)),
        (2.5, 'successor', 3.0)), own={'control.max_speed': 10.0}),
    'wanted speed between two frames': Plan('carla', 'ackermann', (
        (0.3, 'speed', (9.5, 8.0, 0.0)), (2.1, 'frames', ('lost', 2.0)))),
    'limit of the steering': Plan('carla9', 'ackermann', ((0.3, 'speed', (5.0, 0.0, 0.2)),),
                                  own={'control.max_steering_angle': 0.5}),
    'lock of the steering': Plan('sumo', 'ackermann', ((0.3, 'speed', (5.0, 0.0, 0.2)),),
                                 own={'control.max_steering_angle': 0.5}),
    'commands that stay late': Plan('monodrive', 'twist', (
        (0.3, 'speed', (5.0, 0.0, 0.0)), (2.0, 'late', (2.0, 10.0)))),
    'calls without answers': Plan('carla9', 'twist', (
        (0.3, 'speed', (5.0, 0.0, 0.0)), (2.0, 'rpc', 8.0))),
    'gentle stop': Plan('carla', 'autoware', (
        (0.3, 'speed', (15.0, 2.0, 0.0)), (8.0, 'speed', (0.0, -1.0, 0.0)))),
    'park, then silence': Plan('monodrive', 'autoware', (
        (0.3, 'speed', (30.0, 2.0, 0.0)), (4.7, 'gear', 22), (4.7, 'silence', 0.5)),
        own={'control.max_speed': 10.0, 'sample_rate': 10.0}),
    'start backward without frames': Plan('carla', 'ackermann', (
        (0.3, 'speed', (9.5, 8.0, 0.0)), (0.5, 'speed', (-3.0, 0.0, 0.2)),
        (0.5, 'frames', ('stall', 5.1))), slope=0.3),
    'exception in the thread': Plan('monodrive', 'twist', (
        (0.3, 'speed', (15.0, 0.0, 0.0)), (3.0, 'exception', ('decision', 5.0)))),
}


@pytest.mark.parametrize('name', CASES)
def test_schedule_that_once_found_a_fault(name):
    Run(CASES[name]).play()


def test_exception_in_the_thread_is_an_error():
    run = Run(CASES['exception in the thread'])
    run.play()
    levels = {int(status.level) for at_s, status in run.world.statuses
              if 3.0 < at_s - run.begun_s < 8.0}
    assert 2 in levels
    assert run.world.defects


def test_ego_that_does_not_obey_is_an_error_and_braked_on_the_second_connection():
    run = Run(Plan('monodrive', 'twist', (
        (0.3, 'speed', (8.0, 0.0, 0.0)), (3.0, 'deaf', None), (3.5, 'speed', (0.0, 0.0, 0.0)))))
    run.play()
    at_s, status = next((at_s - run.begun_s, status) for at_s, status in run.world.statuses
                        if status.level == 2)
    assert status.message.startswith('the ego does not obey: a brake is ordered at ')
    assert at_s < 6.0
    assert len(set(run.sim.ways)) == 2
    lines = [at_s for at_s, kind, _ in run.world.lines if kind == 'control witness']
    assert len(lines) > 5


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


@settings(max_examples=tries(40))
@given(plans())
def test_no_schedule_breaks_an_invariant(plan):
    Run(plan).play()


@pytest.mark.thorough
@pytest.mark.parametrize('fault', FAULTS)
@settings(max_examples=tries(4))
@given(data=strategies.data())
def test_no_schedule_with_a_fault_breaks_an_invariant(fault, data):
    Run(data.draw(plans(faults=(fault,)))).play()
