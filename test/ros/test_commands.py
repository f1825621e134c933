# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Commands to the ego: what the simulator gets, and every rule that makes them safe."""

from itertools import count
import math
import re
import time

from budgets import AWAIT_S, first_of
from commands_rig import (
    CONTROL_EGO,
    controls,
    driven,
    is_brake,
    pedals,
    Stack,
)
import pytest
from rig import Managed, NodeProcess, statuses
from scripted_simulator import complete, frame, reply

TIMEOUT_S = 0.5
DRIVE = pedals(throttle=0.5, steer=0.25)
# A simulator in a test that waits for a core is late, not stale.
LATE = {'stale_after': 60.0}


def test_pedals_reach_the_simulator_and_the_status(domain, listener):
    with driven(domain) as (peer, _):
        stack = Stack(listener).matched()
        listener.until(lambda: len(peer.requests) > 5, what='samples')
        # Before the first command the simulator drives the ego, also after a deactivation.
        managed = Managed(listener)
        assert managed.request('deactivate')
        assert not controls(peer)
        assert managed.request('activate')
        stack.matched()
        # It brakes until two positions give a speed, and again if no command comes in time.
        drive = {'forward_amount': 0.5, 'right_amount': -0.25, 'brake_amount': 0.0,
                 'drive_mode': 1}
        # The angle changes by a step of each frame.
        sent = stack.publish_until(DRIVE, lambda: drive in controls(peer) and next(
            (each for each in stack.sent if each.steer == 0.25), None))
        assert (sent.origin, sent.throttle, sent.brake, sent.raw_steer) == (3, 0.5, 0.0, -0.25)
        assert sent.steering_angle == pytest.approx(0.25 * 1.2217)
        assert sent.header.frame_id == 'EgoVehicle_0'
        assert peer.most_outstanding == 1
        # Where steer is NaN the angle counts; it is clamped to the full lock.
        turn = pedals(steer=math.nan, steering_angle=9.0, brake=0.25, hand_brake=True)
        stack.publish_until(turn, lambda: controls(peer)[-1]['right_amount'] == -1.0)
        assert controls(peer)[-1]['brake_amount'] == 1.0
        stack.publish_until(pedals(throttle=1.0, reverse=True), lambda: any(
            (each['drive_mode'], each['forward_amount']) == (-1, -1.0)
            for each in controls(peer)))


def test_silence_brakes_to_a_stop_and_is_named(domain, listener):
    line = 'the ego brakes: no command arrives within control.timeout'
    with driven(domain, **LATE) as (peer, node):
        stack = Stack(listener).matched()
        for n_stops in (1, 2):
            stack.publish_until(DRIVE, lambda: controls(peer)
                                and controls(peer)[-1]['forward_amount'] == 0.5)
            listener.until(lambda: is_brake(controls(peer)[-1]), what='the brake')
            # The wheel stays where it was.
            driving = [each for each in controls(peer) if not is_brake(each)]
            assert controls(peer)[-1]['right_amount'] == driving[-1]['right_amount'] < 0.0
            # The first report may be one of before.
            n_reports, n_brakes = len(stack.diagnostics), len(controls(peer))
            listener.until(lambda n=n_reports: len(stack.diagnostics) > n + 1
                           and stack.status()['state'] == 'timed_out', what='the state')
            assert stack.status()['level'] == 1
            assert 'no command arrives' in stack.status()['message']
            # Where the test waits for a core, commands pause in between, too.
            assert int(stack.status()['time-outs']) >= n_stops
            # A brake is repeated: the simulator may have been started again.
            listener.until(lambda n=n_brakes: len(controls(peer)) > n + 2, what='further brakes')
            assert is_brake(controls(peer)[-1])
            assert n_stops <= node.log.count(line) <= int(stack.status()['time-outs'])
        assert stack.sent[-1].brake == 1.0


def test_wrong_command_is_refused_and_counted(domain, listener):
    with driven(domain) as (peer, node):
        stack = Stack(listener).matched()
        for wrong, text in (
                ({'throttle': math.nan}, 'throttle: found nan; expected 0 to 1'),
                ({'steer': math.nan}, 'steering_angle: found nan; expected a finite number')):
            stack.publish_until(DRIVE, lambda: controls(peer) and not is_brake(controls(peer)[-1])
                                and stack.status())
            n_refused = int(stack.status()['commands refused'])
            n_reports = len(stack.diagnostics)
            # For the time-out it has not arrived.
            stack.publish_until(pedals(**wrong), lambda: is_brake(controls(peer)[-1]))
            assert all(each['forward_amount'] in (0.5, 0.0) for each in controls(peer))
            stack.publish_until(pedals(**wrong), lambda n=n_refused, text=text: int(
                stack.status()['commands refused']) > n + 5
                and stack.status()['last refusal'] == text, what='count and text')
            # The first report with it: where the test waits for a core, the next one has none.
            first = next(each for each in statuses(stack.diagnostics[n_reports:], 'control')
                         if each['last refusal'] == text)
            assert first['level'] == 1
        # Lines of one kind are throttled.
        line = 'a command on ~/command is refused: throttle: found nan; expected 0 to 1'
        listener.until(lambda: line in node.log, what='the line of the log')


def test_command_that_was_lost_with_the_connection_is_not_sent_later(domain, listener):
    with driven(domain) as (peer, _):
        stack = Stack(listener).matched()
        stack.publish_until(DRIVE, lambda: len(controls(peer)) > 5)
        peer.answer = lambda request: b''
        stack.publish_until(DRIVE, lambda: int(
            stack.status().get('commands not sent', 0)) > 0)
        until_s = time.monotonic() + 2 * TIMEOUT_S
        listener.until(lambda: time.monotonic() > until_s)
        n_before = len(controls(peer))
        peer.answer = complete
        listener.until(lambda: len(controls(peer)) > n_before + 2, what='the brake')
        assert all(map(is_brake, controls(peer)[n_before + 1:]))


def test_refusing_simulator_is_reported(domain, listener):
    def answer(request):
        return reply(request, 'no ego vehicle found', success=False) \
            if request['type'] == CONTROL_EGO else complete(request)

    with driven(domain) as (peer, node):
        peer.answer = answer
        stack = Stack(listener).matched()
        stack.publish_until(DRIVE, lambda: int(stack.status().get('commands not sent', 0)) > 1)
        # The report of a time without commands, as where the test waits for a core, names none.
        reports = stack.publish_until(DRIVE, lambda: [
            each for each in statuses(stack.diagnostics, 'control')
            if 'commands not sent' in each['message']])
        assert reports[0]['level'] == 1
        listener.until(lambda: re.search('a command was not sent: .*no ego vehicle found',
                                         node.log), what='the line of the log')
        peer.answer = complete
        stack.publish_until(DRIVE, lambda: stack.sent)


def test_ego_without_velocities_is_limited_by_its_positions(domain, listener):
    # 40 m/s, in cm.
    payloads = (frame(i / 20).replace(b'[100.0', b'[%d.0' % (200 * i)) for i in count())
    with driven(domain, payloads) as (peer, _):
        stack = Stack(listener).matched()
        stack.publish_until(pedals(throttle=1.0), lambda: 'does not obey'
                            in stack.status().get('message', ''))
        assert 'a brake is ordered at 40.0 m/s' in stack.status()['message']
        assert all(map(is_brake, controls(peer)))


@pytest.mark.parametrize(('parameters', 'text'), first_of(n_always=4, cases=[
    ({'source': 'monodrive'}, 'control_port: found 0; expected the port that takes commands'),
    ({'source': 'carla'}, "control_port: found 0; expected the server's world port"),
    ({'source': 'carla', 'carla.relay_port': 9000}, 'control_input: found twist; expected'),
    ({'source': 'sumo'}, "sumo.ego: found ''; expected `first` or the id of a vehicle"),
    ({'source': 'file', 'trajectory_file': 'drive.json'},
     "control_input: found twist; expected '' if source is file: it takes no commands"),
    ({'control_input': 'joystick'}, "control_input: found 'joystick'; expected one of"),
    ({'control.kp': -1.0}, 'control.kp: found -1.0; expected 0 to 100')]))
def test_input_that_cannot_be_used_is_refused_at_start(domain, parameters, text):
    with NodeProcess(domain, **{'control_input': 'twist', **parameters}) as node:
        assert node.process.wait(AWAIT_S) == 1
        assert f'error: {text}' in node.log
        assert node.log.count('\n') == 1
