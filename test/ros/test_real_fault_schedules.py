# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A schedule of a stack and of faults with a real node, real processes and the real SUMO."""

from contextlib import ExitStack
import os
import signal
import threading
import time

from commands_rig import Obeying, Stack, twist, VELOCITY
from process_state import children
import pytest
from rig import END_S, listening
from stopwatch import Stopwatch

from state_sensor_ros.emulator.bicycle import Pedals  # noqa: I100

pytestmark = pytest.mark.thorough

PERIOD_S = 0.05
TIMEOUT_S = 0.5
# Of the processes and the graph of ROS, on a busy machine.
SLACK_S = 1.5

MAX_SPEED, SECONDS = 6.0, 26.0
# Time, name, value.
ACTS = {
    'sumo': (
        (0.0, 'speed', 15.0), (3.0, 'rival', 3.0), (9.0, 'stop', (b'sumo_process', 2.0)),
        (13.0, 'stop', ('node', 1.5)), (16.5, 'flood', 1.5), (19.5, 'reset', None),
        (22.5, 'silence', 3.0)),
    # CARLA's own client; another one presses full throttle before each step.
    'carla9': (
        (0.0, 'speed', 15.0), (4.0, 'stop', (b'carla_process', 0.8)), (8.0, 'driver', 4.0),
        (15.0, 'stop', ('node', 1.5)), (22.5, 'silence', 3.0))}


class Schedule:
    """Plays the acts, and checks after each period what may not happen."""

    def __init__(self, kind, domain, listener, stack):
        self.domain, self.listener = domain, listener
        self.kind, self.has_rival, self.named = kind, False, False
        self.obeying = Obeying(kind, domain, stack, control_input='twist',
                               **{'control.max_speed': MAX_SPEED})
        self.odometry = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
        self.speed = 0.0
        self.stack = Stack(listener, VELOCITY, self.message()).matched()
        listener.until(lambda: self.odometry, what='the ego')
        # What is due is judged by a time in which no process waits for a core.
        self.watch = Stopwatch(self.obeying.node.process)
        self.changed_s = self.fault_until_s = self.watch.seconds
        self.is_speaking, self.is_within, self.later = True, False, []

    def message(self):
        return twist(self.speed)

    # What happens.

    def act(self, name, value):
        self.changed_s = self.watch.seconds
        if name != 'speed':
            self.fault_until_s = self.changed_s + SLACK_S
        getattr(self, f'do_{name}')(value)

    def after(self, seconds, call):
        self.later.append((time.monotonic() + seconds, call))
        self.fault_until_s = self.watch.seconds + seconds + SLACK_S

    def do_speed(self, speed):
        self.speed = speed

    def do_silence(self, seconds):
        self.is_speaking = False
        self.after(seconds, lambda: setattr(self, 'is_speaking', True))

    def do_reset(self, _):
        self.obeying.begin_again(self.listener)

    def do_rival(self, seconds):
        other = self.stack_of_tests.enter_context(listening(self.domain, 'rival'))
        rival = Stack(other, VELOCITY, self.message()).matched()
        self.after(seconds, rival.close)

    def do_stop(self, value):
        name, seconds = value
        pid = self.obeying.node.process.pid
        if name != 'node':
            [pid] = children(pid, name)
        os.kill(pid, signal.SIGSTOP)
        self.after(seconds, lambda: os.kill(pid, signal.SIGCONT))

    def do_driver(self, seconds):
        server = self.obeying.server
        ego, step = server.ego, server.world.step

        def pressed():
            server.world.drive(ego, Pedals(throttle=1.0))
            step()

        server.world.step, self.has_rival = pressed, True
        self.after(seconds, lambda: setattr(server.world, 'step', step))
        # It stops within some seconds after it.
        self.fault_until_s = self.watch.seconds + seconds + 4.0

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
        now_s = self.watch.seconds
        sent = self.stack.sent
        speed, last = self.odometry[-1].twist.twist.linear.x, sent[-1] if sent else None
        # Before the first command the simulator drives, as fast as it likes.
        self.is_within = self.is_within or (last is not None and abs(speed) < MAX_SPEED)
        # Another driver drives as fast as it likes, too.
        assert not self.is_within or abs(speed) < MAX_SPEED + 1.0 or (
            self.kind == 'carla9' and now_s < self.fault_until_s)
        self.fastest = max(self.fastest, speed)
        if last is None:
            return
        assert 0.0 <= last.throttle <= 1.0
        assert 0.0 <= last.brake <= 1.0
        settled = now_s - self.changed_s > SLACK_S and now_s > self.fault_until_s
        if settled and min(self.speed, MAX_SPEED) < speed - 0.7:
            assert not last.throttle, f'throttle at {speed:.1f} m/s'
        if not self.is_speaking and now_s - self.changed_s > TIMEOUT_S + SLACK_S:
            assert (last.throttle, last.brake) == (0.0, 1.0)
        assert speed > -0.3 or now_s < self.fault_until_s, f'rolls back at {speed:.2f} m/s'

    def play(self, stack):
        self.stack_of_tests, self.fastest = stack, 0.0
        begun_s, acts = time.monotonic(), list(ACTS[self.kind])
        while (elapsed_s := time.monotonic() - begun_s) < SECONDS or self.later:
            while acts and acts[0][0] <= elapsed_s:
                self.act(*acts.pop(0)[1:])
            for due in [each for each in self.later if each[0] <= time.monotonic()]:
                self.later.remove(due)
                due[1]()
            if self.is_speaking:
                self.stack.publisher.publish(self.message())
            self.listener.spin_for(PERIOD_S)
            self.check()
            if self.has_rival:
                self.named = self.named or self.stack.status().get('level') == 2


@pytest.mark.parametrize('kind', list(ACTS))
def test_real_processes_break_no_invariant(domain, listener, kind):
    with ExitStack() as stack:
        schedule = Schedule(kind, domain, listener, stack)
        node = schedule.obeying.node
        schedule.play(stack)
        # It has driven; now nobody commands, and it stands by the brake.
        assert schedule.fastest > 2.0
        assert schedule.named is (kind == 'carla9')
        listener.until(lambda: abs(schedule.odometry[-1].twist.twist.linear.x) < 0.1
                       and schedule.stack.sent[-1].brake == 1.0, what='a stand')
        code, seconds = node.end(signal.SIGTERM)
        assert (code, seconds < END_S) == (0, True)
        assert 'Traceback' not in node.log, node.log
