# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What stops the ego on each simulator: stopped processes, clocks, rivals, floods, resets."""

import math
import signal
import threading
import time

from commands_rig import obeyed, pedals, Stack
import pytest
from rig import END_S, listening, Managed
from stopwatch import Stopwatch

TIMEOUT_S = 0.5
DRIVE = pedals(throttle=0.5)
each_simulator = pytest.mark.parametrize('kind', ['monodrive', 'carla', 'sumo'])


@each_simulator
def test_ego_stops_after_everything_that_goes_wrong(domain, listener, kind):
    with obeyed(kind, domain, listener) as driven:
        driven.drive()
        stop_and_continue(driven)
        driven.drive()
        wrong_numbers(driven)
        driven.drive()
        second_publisher(driven, domain)
        driven.drive()
        flood(driven)
        driven.drive()
        deactivated(driven)
        driven.drive()
        n_before = len(driven.pedals or ())
        code, seconds = driven.node.end(signal.SIGTERM)
        assert (code, seconds < END_S) == (0, True)
        if driven.pedals is not None:
            listener.until(lambda: driven.pedals[-1] is not None and len(driven.pedals) > n_before
                           and (driven.pedals[-1].throttle, driven.pedals[-1].brake) == (0.0, 1.0),
                           what='the last brake')


def stop_and_continue(driven):
    """A command that was received before the stop is not sent after it."""
    for _ in range(3):
        driven.drive()
        driven.node.process.send_signal(signal.SIGSTOP)
        # What arrives now waits in the middleware.
        until_s = time.monotonic() + TIMEOUT_S / 2
        while time.monotonic() < until_s:
            driven.stack.publisher.publish(DRIVE)
            driven.listener.spin(0.02)
        until_s += 2 * TIMEOUT_S
        driven.listener.until(lambda end_s=until_s: time.monotonic() > end_s)
        driven.listener.receive_all(driven.stack.sent)
        n_sent, n_pedals = len(driven.stack.sent), len(driven.pedals or ())
        driven.node.process.send_signal(signal.SIGCONT)
        driven.listener.until(lambda n=n_sent: len(driven.stack.sent) > n, what='the brake')
        driven.stands()
        # The status of the command before the stop may arrive after it.
        assert not any(driven.throttles[n_sent + 1:])
        assert not any(each.throttle for each in (driven.pedals or ())[n_pedals:] if each)
    driven.named('no command arrives')


def wrong_numbers(driven):
    """Commands that are not numbers are refused: the ego brakes as without commands."""
    n_before = len(driven.stack.sent)
    driven.stack.publish_until(pedals(throttle=math.nan), lambda: driven.stack.sent[-1].brake)
    assert not any(driven.throttles[n_before + 1:])
    driven.stack.publish_until(pedals(brake=-1.0), lambda: 'brake: found -1' in driven.node.log)
    driven.stands()


def second_publisher(driven, domain):
    """While there are two, each is named and no command drives."""
    with listening(domain, 'rival') as other:
        rival = Stack(other).matched()
        driven.stack.publish_until(DRIVE, lambda: 'has 2 publishers, /listener, /rival'
                                   in driven.stack.status().get('message', ''))
        n_before = len(driven.stack.sent)
        driven.stack.publish_until(DRIVE, lambda: abs(driven.speed) < 0.1, what='a stand')
        assert not any(driven.throttles[n_before:])
        rival.close()


def flood(driven):
    """Ten thousand commands a second delay neither diagnostics nor the brake after their end."""
    is_over = threading.Event()

    def publish():
        due_s = time.monotonic()
        while not is_over.is_set():
            driven.stack.publisher.publish(DRIVE)
            due_s = max(due_s + 1e-4, time.monotonic() - 0.01)
            is_over.wait(max(due_s - time.monotonic(), 0.0))

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        n_frames, n_reports = len(driven.odometry), len(driven.stack.diagnostics)
        driven.listener.until(lambda: len(driven.odometry) > n_frames + 20
                              and len(driven.stack.diagnostics) > n_reports + 3)
        assert driven.speed > 1.0
    finally:
        is_over.set()
        thread.join()
    watch = Stopwatch(driven.node.process)
    driven.listener.until(lambda: driven.stack.sent[-1].brake == 1.0, what='the brake')
    assert watch.seconds < TIMEOUT_S + 1.0
    driven.stands()


def deactivated(driven):
    """The last command before the state inactive is the brake, and none follows."""
    managed = Managed(driven.listener)
    driven.drive()
    assert managed.request('deactivate')
    if driven.pedals is not None:
        driven.listener.until(lambda: driven.pedals[-1] is not None
                              and driven.pedals[-1].brake == 1.0, what='the brake')
    driven.listener.receive_all(driven.stack.sent)
    assert driven.stack.sent[-1].brake == 1.0
    n_sent = len(driven.stack.sent)
    for _ in range(10):
        driven.stack.publisher.publish(DRIVE)
        driven.listener.spin(0.02)
    assert len(driven.stack.sent) == n_sent
    assert managed.request('activate')
    driven.stack.matched()
