# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What stops the ego on each simulator: stopped processes, clocks, rivals, floods, resets."""

from contextlib import suppress
import json
import math
import os
from pathlib import Path
import re
import signal
import socket
import threading
import time

from budgets import one_of, tries
from builtin_interfaces.msg import Time
from commands_rig import (
    controls,
    driven,
    FAST,
    is_brake,
    obeyed,
    pedals,
    Stack,
    twist,
)
from ports import free_ports
from process_state import children
from programs import start, start_mock
import pytest
from rig import END_S, listening, Managed, NodeProcess
from rosgraph_msgs.msg import Clock
from scripted_simulator import complete
from stopwatch import Stopwatch

from state_sensor_ros.ros.report import UNDISCOVERED  # noqa: I100

TIMEOUT_S, LONG_TIMEOUT_S = 0.5, 3.0
DRIVE = pedals(throttle=0.5)
each_simulator = pytest.mark.parametrize('kind', one_of([
    'monodrive', 'carla', 'carla9', 'sumo']))
each_controller = pytest.mark.parametrize('kind', one_of([
    'monodrive', 'carla', 'carla9', 'carla9 ackermann', 'sumo']))


@pytest.mark.parametrize('kind', one_of([
    'monodrive', 'carla9 ackermann', 'carla', 'carla9', 'sumo']))
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
        # The server decided the pedals.
        assert driven.obeying.follows_speed is any(map(math.isnan, driven.throttles))
        if driven.pedals is not None:
            listener.until(lambda: driven.pedals[-1] is not None and len(driven.pedals) > n_before
                           and (driven.pedals[-1].throttle, driven.pedals[-1].brake) == (0.0, 1.0),
                           what='the last brake')


def follow_a_speed(driven):
    """Have the controller of the server drive; it begins with a standing ego."""
    driven.stack.publish_until(twist(0), lambda: abs(driven.speed) < 0.05
                               and driven.stack.sent[-1].brake == 1.0, what='a stand')
    driven.drive()


@pytest.mark.thorough
@pytest.mark.parametrize('fault', ['killed', 'stopped', 'both killed'])
def test_followed_speed_ends_without_the_helper(domain, listener, fault):
    """The server would follow the last speed for ever: it ends when the helper cannot end it."""
    with obeyed('carla9 ackermann', domain, listener) as driven:
        server = driven.obeying.server
        ego = server.ego
        follow_a_speed(driven)
        driven.stack.publish_until(driven.command, lambda: ego.follows)
        [helper] = children(driven.node.process.pid, b'carla_process')
        if fault == 'both killed':
            driven.node.process.send_signal(signal.SIGSTOP)
            os.kill(helper, signal.SIGKILL)
            driven.node.process.kill()
            driven.node.process.wait()
            with NodeProcess(domain, source='carla9', control_input='twist', **FAST,
                             **{'carla9.port': server.port, 'carla9.ackermann': True}) as node:
                listener.until(lambda: 'before the first command' in node.log, what='the line')
                listener.until(driven.stack.publisher.get_subscription_count, what='the node')
                driven.stack.publish_until(twist(0), lambda: not ego.follows, what='pedals')
            return
        os.kill(helper, signal.SIGKILL if fault == 'killed' else signal.SIGSTOP)
        try:
            listener.until(lambda: not ego.follows and ego.pedals.brake == 1.0, what='the brake')
        finally:
            if fault == 'stopped':
                # Killed if it has not ended within a second.
                with suppress(ProcessLookupError):
                    os.kill(helper, signal.SIGCONT)
        driven.stands()
        assert ego.pedals.brake == 1.0
        driven.drive()
        driven.stack.publish_until(driven.command, lambda: ego.follows)


def test_ego_that_a_killed_node_has_left_is_braked_by_the_next(domain, listener):
    # It is killed while it drives, also if the test waits for a core before.
    with obeyed('monodrive', domain, listener, **{
            'control.timeout': 60.0, 'stale_after': 60.0}) as driven:
        server = driven.obeying.server
        driven.drive()
        driven.node.process.kill()
        driven.node.process.wait()
        assert driven.pedals[-1].throttle
        with NodeProcess(domain, control_input='vehicle_control', host='localhost',
                         port=server.port, control_port=server.control_port,
                         desired_tags=['vehicle'], **FAST) as node:
            listener.until(lambda: driven.pedals[-1].brake == 1.0, what='the brake')
            listener.until(lambda: 'a killed node has left it moving' in node.log, what='the line')


def stop_and_continue(driven):
    """Check that a command received before the stop is not sent after it."""
    for _ in range(min(tries(1), 3)):
        driven.drive()
        driven.node.process.send_signal(signal.SIGSTOP)
        # What arrives now waits in the middleware.
        until_s = time.monotonic() + TIMEOUT_S / 2
        while time.monotonic() < until_s:
            driven.stack.publisher.publish(driven.command)
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
    not_a_number, out_of_range, error = driven.wrong
    n_refused = int(driven.stack.status().get('commands refused', 0))
    # Where the test waited for a core, a brake of before may come, and then a command.
    driven.stack.publish_until(not_a_number, lambda: int(
        driven.stack.status().get('commands refused', 0)) > n_refused)
    n_before = len(driven.stack.sent)
    driven.stack.publish_until(not_a_number, lambda: 0.0 in driven.throttles[n_before:]
                               and driven.stack.sent[-1].brake == 1.0)
    assert not any(driven.throttles_since(n_before))
    driven.stack.publish_until(out_of_range, lambda: error in driven.node.log)
    driven.stands()


def second_publisher(driven, domain):
    """While there are two, each is named and no command drives."""
    with listening(domain, 'rival') as other:
        rival = Stack(other, driven.topic, driven.command).matched()
        driven.stack.publish_until(driven.command, lambda: 'has 2 publishers, /listener, /rival'
                                   in driven.stack.status().get('message', ''))
        n_before = len(driven.stack.sent)
        driven.stack.publish_until(driven.command, lambda: abs(driven.speed) < 0.1
                                   and 0.0 in driven.throttles[n_before:], what='a stand')
        assert not any(driven.throttles_since(n_before))
        assert driven.stack.status()['level'] == 1
        line = f'{driven.topic} has 2 publishers, /listener, /rival; expected one'
        driven.listener.until(lambda: line in driven.node.log, what='the line of the log')
        # Once by name; the node does not wait for a name for ever.
        assert [names for names in re.findall('has 2 publishers, ([^;]*);', driven.node.log)
                if UNDISCOVERED not in names] == ['/listener, /rival']
        rival.close()


def flood(driven):
    """Ten thousand commands a second delay neither diagnostics nor the brake after their end."""
    is_over = threading.Event()

    def publish():
        due_s = time.monotonic()
        while not is_over.is_set():
            driven.stack.publisher.publish(driven.command)
            due_s = max(due_s + 1e-4, time.monotonic() - 0.01)
            is_over.wait(max(due_s - time.monotonic(), 0.0))

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        n_frames, n_reports = len(driven.odometry), len(driven.stack.diagnostics)
        # It brakes where the thread above waits for a core.
        driven.listener.until(lambda: len(driven.odometry) > n_frames + 10
                              and len(driven.stack.diagnostics) > n_reports + 3
                              and driven.speed > 1.0)
    finally:
        is_over.set()
        thread.join()
    watch = Stopwatch(driven.node.process)
    driven.listener.until(lambda: driven.stack.sent[-1].brake == 1.0, what='the brake')
    assert watch.seconds < TIMEOUT_S + 1.0
    driven.stands()


def deactivated(driven):
    """Check that the brake is the last command before the state inactive."""
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
        driven.stack.publisher.publish(driven.command)
        driven.listener.spin(0.02)
    assert len(driven.stack.sent) == n_sent
    assert managed.request('activate')
    driven.stack.matched()


@each_controller
def test_clock_that_jumps_and_a_new_run_do_not_matter(domain, listener, kind):
    # Longer than the test waits for a core between two commands.
    with obeyed(kind, domain, listener, use_sim_time=True,
                **{'control.timeout': LONG_TIMEOUT_S}) as driven:
        clock = listener.node.create_publisher(Clock, '/clock', 1)
        driven.drive()
        for second in (10 ** 6, 0, 5):
            clock.publish(Clock(clock=Time(sec=second)))
            driven.drive()
        listener.until(driven.stack.status, what='the diagnostics')
        assert driven.stack.status()['time-outs'] == '0'
        # The time-out counts while the clock stands.
        listener.until(lambda: driven.stack.sent[-1].brake == 1.0, what='the brake')
        driven.drive()
        # A run that begins again in the middle of commands, and one without.
        n_before = len(driven.odometry)
        driven.obeying.begin_again(listener)
        driven.stack.publish_until(driven.command, lambda: len(driven.odometry) > n_before + 20)
        driven.drive()
        driven.stands()
        assert driven.stack.sent[-1].brake == 1.0
        n_before, n_sent = len(driven.odometry), len(driven.stack.sent)
        driven.obeying.begin_again(listener)
        listener.until(lambda: len(driven.odometry) > n_before + 10, what='frames again')
        driven.stands()
        assert all(each.brake == 1.0 for each in driven.stack.sent[n_sent:])


class LateReplies:
    """A simulator that does not reply to samples until it is released; its socket is read."""

    def __init__(self, peer):
        self._peer, self._released = peer, threading.Event()
        peer.answer = self._answer

    def _answer(self, request):
        if request['type'] == 'SampleSensorsCommand_ID':
            self._released.wait(30.0)
        return complete(request)

    def waiting(self):
        """Return the commands that have arrived and that the simulator has not read."""
        try:
            data = self._peer._controls[0].recv(10 ** 6, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        return [json.loads(part[4:])['message'] for part in data.split(b'mono')[1:]]

    def brakes(self):
        return [each for each in self.waiting()[-1:] if is_brake(each)]

    def release(self):
        self._released.set()


@pytest.mark.parametrize('end', ['signal', 'deactivate', 'time-out', 'rival'])
def test_brake_does_not_wait_for_a_late_reply(domain, listener, end):
    # A node that stands for a moment brakes, and drives by the commands that waited.
    own = {} if end == 'time-out' else {'control.timeout': 60.0, 'stale_after': 60.0}
    with driven(domain, **own) as (peer, node), listening(domain, 'rival') as other:
        stack, managed = Stack(listener).matched(), Managed(listener)
        stack.publish_until(DRIVE, lambda: controls(peer)
                            and not is_brake(controls(peer)[-1]))
        late, n_connections = LateReplies(peer), peer.events.count('control opened')
        n_read = len(controls(peer))
        # A command may wait before the brake. A simulator whose reply to it fails, as the client
        # has left, reads no further: it has the brake from the second connection, before that.
        stack.publish_until(DRIVE, lambda: peer.n_outstanding
                            and peer.types()[-1] == 'SampleSensorsCommand_ID'
                            and late.waiting())
        watch = Stopwatch(node.process)
        if end == 'signal':
            assert node.end(signal.SIGTERM)[0] == 0
        elif end == 'deactivate':
            assert managed.request('deactivate')
        elif end == 'rival':
            rival = Stack(other)
            stack.publish_until(DRIVE, late.brakes, what='the brake')
            rival.close()
        listener.until(late.brakes, what='the brake')
        assert watch.seconds < END_S
        # A command of before may be waiting before it, none after it.
        waiting = [is_brake(each) for each in late.waiting()]
        assert not own or waiting == sorted(waiting)
        late.release()
        listener.until(lambda: any(map(is_brake, controls(peer)[n_read:])), what='its reading')
        if end in ('time-out', 'rival'):
            # The replies are matched: the stream goes on, on the same connection.
            stack.publish_until(DRIVE, lambda: not is_brake(controls(peer)[-1]), what='commands')
            assert peer.events.count('control opened') == n_connections


@each_simulator
def test_stopped_simulator_holds_up_no_end(domain, listener, kind):
    first = free_ports(3)
    second = first + 1
    server, own = None, {'sumo.ego': 'first'}
    if kind == 'carla':
        server = start_mock('carla', '--port', second)
        own = {'port': second, 'control_port': first}
    elif kind == 'carla9':
        pytest.importorskip('carla')
        server = start_mock('carla9', '--port', first)
        own = {'carla9.port': first}
    elif kind == 'monodrive':
        server = start('simulate', '--port', first, '--control-port', second)
        own = {'port': first, 'control_port': second, 'desired_tags': ['vehicle']}
    with NodeProcess(domain, source=kind, control_input='vehicle_control', stale_after=0.5,
                     **FAST, **own) as node:
        stack = Stack(listener).matched()
        stack.publish_until(DRIVE, lambda: any(each.throttle for each in stack.sent[-1:]))
        pid = server.pid if server else next(children(node.process.pid, b'sumo_process'))
        os.kill(pid, signal.SIGSTOP)
        try:
            stack.publish_until(DRIVE, lambda: stack.status().get('state') == 'stale')
            code, seconds = node.end(signal.SIGTERM)
            assert (code, seconds < END_S) == (0, True)
            assert 'Traceback' not in node.log
        finally:
            if server is not None:
                os.kill(pid, signal.SIGCONT)
                server.terminate()
                server.communicate()
        if server is None:
            listener.until(lambda: not Path(f'/proc/{pid}').exists(), what='the end of SUMO')
