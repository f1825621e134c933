# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A log that nobody reads holds up no command, no frame, no diagnostics and no end."""

from contextlib import ExitStack
import signal

from blocked_output import blocked, FullPipe, StoppedTerminal
from budgets import each_once, one_of
from commands_rig import controls, driven, is_brake, Obeying, pedals, Stack
import pytest
from rig import END_S, NodeProcess

DRIVE = pedals(throttle=0.5)


@pytest.mark.parametrize('kind', one_of([FullPipe, StoppedTerminal]))
def test_log_that_is_not_read_holds_up_nothing(domain, listener, kind):
    with blocked(kind) as output, driven(
            domain, output=output.writer, arguments=['--log-level', 'debug']) as (peer, _):
        stack = Stack(listener).matched()
        stack.publish_until(DRIVE, lambda: controls(peer)
                            and not is_brake(controls(peer)[-1]))
        # Refused commands are logged; a stack that ends is, too: after the brake.
        stack.publish_until(pedals(throttle=2.0), lambda: is_brake(controls(peer)[-1]))
        n_reports = len(stack.diagnostics)
        listener.until(lambda: len(stack.diagnostics) > n_reports + 3, what='reports')
        stack.publish_until(DRIVE, lambda: not is_brake(controls(peer)[-1]))
        listener.until(lambda: is_brake(controls(peer)[-1]), what='the brake')
        output.read_until(b'[DEBUG]')


@pytest.mark.parametrize('source', one_of(['monodrive', 'carla9']))
@pytest.mark.parametrize(('kind', 'signum'), each_once(
    (StoppedTerminal, FullPipe), (signal.SIGINT, signal.SIGTERM)))
def test_node_with_a_log_that_is_not_read_brakes_and_ends(domain, listener, kind, signum, source):
    with blocked(kind) as output, ExitStack() as contexts:
        obeying = Obeying(source, domain, contexts, output=output.writer)
        stack = Stack(listener).matched()
        stack.publish_until(DRIVE, lambda: any(each.throttle for each in obeying.pedals))
        code, seconds = obeying.node.end(signum)
        assert (code, seconds < END_S) == (0, True)
        listener.until(lambda: (obeying.pedals[-1].throttle, obeying.pedals[-1].brake)
                       == (0.0, 1.0), what='the last brake')


def test_log_keeps_its_last_lines_and_its_colors(domain):
    with blocked(StoppedTerminal) as output:
        output.go_on()
        with NodeProcess(domain, output=output.writer, is_new=True, port=1) as node:
            text = output.read_until(b'cannot connect')
            node.process.send_signal(signal.SIGTERM)
            node.process.wait()
        assert b'\x1b[' in text
