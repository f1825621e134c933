# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Schedules of a stack and of faults with a real node, real processes and the real SUMO."""

from contextlib import ExitStack
import os
import signal
import threading
import time

from commands_rig import message_of, Obeying, pedals, Stack, twist
from process_state import children
import pytest
from rig import END_S, listening

from state_sensor_ros.emulator.bicycle import DrivenVehicle

pytestmark = pytest.mark.thorough

TOPICS = {'vehicle_control': '/state_sensor/command', 'twist': '/state_sensor/command_velocity',
          'ackermann': '/state_sensor/command_ackermann',
          'autoware': '/control/command/control_cmd'}
GEAR = '/control/command/gear_cmd'
DRIVE, PARK = 2, 22
PERIOD_S = 0.05
TIMEOUT_S = 0.5
# Of the processes and the graph of ROS, on a busy machine.
SLACK_S = 1.5

# Simulator, input, seconds, slope, parameters; acts (time, name, value).
PLANS = {
    'slower than the ego': ('carla', 'ackermann', 9.0, 0.0, {}, (
        (0.0, 'speed', (30.0, 8.0)), (3.5, 'speed', (0.0, 2.0)))),
    'slower, with a limit': ('monodrive', 'ackermann', 8.0, 0.0, {}, (
        (0.0, 'speed', (30.0, 0.0)), (3.5, 'speed', (5.0, 1.0)))),
    'connection lost': ('monodrive', 'twist', 9.0, 0.0, {'control.max_speed': 8.0}, (
        (0.0, 'speed', (15.0, 0.0)), (3.0, 'cut', None), (6.0, 'speed', (0.0, 0.0)))),
    'start and stop uphill': ('carla', 'twist', 14.0, 0.2, {}, (
        (0.0, 'speed', (3.0, 0.0)), (6.0, 'speed', (0.0, 0.0)), (10.0, 'silence', 3.0))),
    'node is stopped': ('carla9', 'twist', 9.0, 0.0, {}, (
        (0.0, 'speed', (5.0, 0.0)), (3.0, 'stop', ('node', 1.5)), (6.0, 'speed', (0.0, 0.0)))),
    'helper is killed': ('carla9', 'vehicle_control', 10.0, 0.0, {}, (
        (0.0, 'speed', (5.0, 0.0)), (3.0, 'kill', b'carla_process'), (6.0, 'silence', 3.0))),
    'successor in park': ('monodrive', 'autoware', 9.0, 0.0, {}, (
        (0.0, 'gear', DRIVE), (0.2, 'speed', (5.0, 0.0)), (3.5, 'successor', PARK))),
    'steering': ('sumo', 'ackermann', 7.0, 0.0, {'control.max_steering_angle': 0.15}, (
        (0.0, 'speed', (5.0, 0.0)), (3.0, 'steer', 0.4))),
    'second publisher': ('sumo', 'twist', 12.0, 0.0, {'control.max_speed': 6.0}, (
        (0.0, 'speed', (15.0, 0.0)), (3.0, 'rival', 3.0), (9.0, 'silence', 2.0))),
    'SUMO is stopped': ('sumo', 'twist', 10.0, 0.0, {}, (
        (0.0, 'speed', (5.0, 0.0)), (3.0, 'stop', (b'sumo_process', 2.0)),
        (7.0, 'speed', (0.0, 0.0)))),
    'new run': ('sumo', 'ackermann', 9.0, 0.0, {}, (
        (0.0, 'speed', (8.0, 0.0)), (3.0, 'reset', None), (6.0, 'speed', (0.0, 3.0)))),
    'flood': ('sumo', 'vehicle_control', 8.0, 0.0, {'control.max_speed': 5.0}, (
        (0.0, 'speed', (10.0, 0.0)), (2.0, 'flood', 1.5), (5.0, 'silence', 2.0))),
}


class Schedule:
    """Plays a plan, and checks after each period what may not happen."""

    def __init__(self, domain, listener, plan, stack):
        kind, self.control_input, self.seconds, slope, own, self.acts = plan
        self.domain, self.listener = domain, listener
        self.obeying = Obeying(kind, domain, stack, control_input=self.control_input,
                               vehicle=DrivenVehicle(grade=slope), **own)
        self.max_speed = own.get('control.max_speed', 30.0)
        self.max_angle = own.get('control.max_steering_angle', 1.2217)
        self.odometry = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
        self.speed = self.acceleration = self.angle = 0.0
        self.stack = Stack(listener, TOPICS[self.control_input], self.message()).matched()
        self.gears = None
        listener.until(lambda: self.odometry, what='the ego')
        self.changed_s = self.fault_until_s = time.monotonic()
        self.is_speaking, self.is_within, self.later = True, False, []

    def message(self):
        if self.control_input == 'vehicle_control':
            return pedals(throttle=min(self.speed / 10.0, 1.0), brake=float(not self.speed))
        if self.control_input == 'twist':
            return twist(self.speed)
        if self.control_input == 'ackermann':
            return message_of('ackermann_msgs/AckermannDriveStamped', drive__speed=self.speed,
                              drive__acceleration=self.acceleration,
                              drive__steering_angle=self.angle)
        return message_of('autoware_control_msgs/Control', longitudinal__velocity=self.speed,
                          longitudinal__acceleration=self.acceleration,
                          longitudinal__is_defined_acceleration=True,
                          lateral__steering_tire_angle=self.angle)

    # What happens.

    def act(self, name, value):
        self.changed_s = time.monotonic()
        if name not in ('speed', 'steer', 'gear'):
            self.fault_until_s = self.changed_s + SLACK_S
        getattr(self, f'do_{name}')(value)

    def after(self, seconds, call):
        self.later.append((time.monotonic() + seconds, call))
        self.fault_until_s = time.monotonic() + seconds + SLACK_S

    def do_speed(self, value):
        self.speed, self.acceleration = value

    def do_steer(self, angle):
        self.angle = angle

    def do_silence(self, seconds):
        self.is_speaking = False
        self.after(seconds, lambda: setattr(self, 'is_speaking', True))

    def do_cut(self, _):
        self.obeying.begin_again(self.listener)

    def do_reset(self, _):
        self.obeying.begin_again(self.listener)

    def do_gear(self, gear):
        self.gears = Stack(self.listener, GEAR,
                           message_of('autoware_vehicle_msgs/GearCommand', command=gear))
        self.listener.until(self.gears.publisher.get_subscription_count, what='the node')
        self.gears.publisher.publish(
            message_of('autoware_vehicle_msgs/GearCommand', command=gear))

    def do_successor(self, gear):
        self.gears.close()
        self.stack.close()
        self.stack = Stack(self.listener, TOPICS[self.control_input], self.message()).matched()
        self.do_gear(gear)

    def do_rival(self, seconds):
        other = self.stack_of_tests.enter_context(listening(self.domain, 'rival'))
        rival = Stack(other, TOPICS[self.control_input], self.message()).matched()
        self.after(seconds, rival.close)

    def do_stop(self, value):
        name, seconds = value
        pid = self.obeying.node.process.pid
        if name != 'node':
            [pid] = children(pid, name)
        os.kill(pid, signal.SIGSTOP)
        self.after(seconds, lambda: os.kill(pid, signal.SIGCONT))

    def do_kill(self, name):
        [helper] = children(self.obeying.node.process.pid, name)
        os.kill(helper, signal.SIGKILL)

    def do_flood(self, seconds):
        end_s = time.monotonic() + seconds
        message = self.message()

        def publish():
            while time.monotonic() < end_s:
                self.stack.publisher.publish(message)

        thread = threading.Thread(target=publish)
        thread.start()
        self.after(seconds, thread.join)

    # What may not happen.

    def check(self):
        now_s = time.monotonic()
        sent = self.stack.sent
        speed, last = self.odometry[-1].twist.twist.linear.x, sent[-1] if sent else None
        # Before the first command the simulator drives, as fast as it likes.
        self.is_within = self.is_within or (last is not None and abs(speed) < self.max_speed)
        assert not self.is_within or abs(speed) < self.max_speed + 1.0
        self.fastest = max(self.fastest, speed)
        if last is None:
            return
        assert abs(last.steering_angle) <= self.max_angle + 1e-6
        assert 0.0 <= last.throttle <= 1.0
        assert 0.0 <= last.brake <= 1.0
        settled = now_s - self.changed_s > SLACK_S and now_s > self.fault_until_s
        is_speed = self.control_input != 'vehicle_control'
        if settled and is_speed and self.speed < speed - 0.7:
            assert not last.throttle, f'throttle at {speed:.1f} m/s, wanted {self.speed}'
        if not self.is_speaking and now_s - self.changed_s > TIMEOUT_S + SLACK_S:
            assert (last.throttle, last.brake) == (0.0, 1.0)
        assert speed > -0.3 or now_s < self.fault_until_s, f'rolls back at {speed:.2f} m/s'

    def play(self, stack):
        self.stack_of_tests, self.fastest = stack, 0.0
        begun_s, acts = time.monotonic(), list(self.acts)
        while (elapsed_s := time.monotonic() - begun_s) < self.seconds or self.later:
            while acts and acts[0][0] <= elapsed_s:
                self.act(*acts.pop(0)[1:])
            for due in [each for each in self.later if each[0] <= time.monotonic()]:
                self.later.remove(due)
                due[1]()
            if self.is_speaking:
                self.stack.publisher.publish(self.message())
            self.listener.spin_for(PERIOD_S)
            self.check()


@pytest.mark.parametrize('name', PLANS)
def test_real_processes_break_no_invariant(domain, listener, name):
    with ExitStack() as stack:
        schedule = Schedule(domain, listener, PLANS[name], stack)
        node = schedule.obeying.node
        schedule.play(stack)
        # It has driven; now nobody commands, and it stands by the brake.
        assert schedule.fastest > 2.0
        listener.until(lambda: abs(schedule.odometry[-1].twist.twist.linear.x) < 0.1
                       and schedule.stack.sent[-1].brake == 1.0, what='a stand')
        code, seconds = node.end(signal.SIGTERM)
        assert (code, seconds < END_S) == (0, True)
        if schedule.obeying.pedals is not None:
            listener.until(lambda: schedule.obeying.pedals[-1].brake == 1.0, what='the brake')
        assert 'Traceback' not in node.log, node.log
