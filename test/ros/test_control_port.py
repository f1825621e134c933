# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The node configures the simulator and requests samples, again after a reconnect."""

from itertools import count
import threading
import time

from budgets import one_of
import pytest
from rig import END_S, NodeProcess, Remote, statuses
from scripted_simulator import complete, frame, OLD_MAGIC, reply, ScriptedSimulator
from stopwatch import Stopwatch

CONFIGURE = 'REPLAY_ConfigureSensorsCommand_ID'
RECONFIGURE = 'REPLAY_ReConfigureSensorCommand_ID'
SAMPLE = 'SampleSensorsCommand_ID'
# A silence is named within this time.
NAMED_S = 3.0
PARAMETERS = {'sample_rate': 50.0, 'desired_tags': ['vehicle'], 'reconnect_min': 0.05,
              'reconnect_max': 0.2}


@pytest.mark.parametrize('answer', one_of([
    complete, lambda request: reply(request, magic=OLD_MAGIC)]))
def test_node_configures_samples_and_configures_again(domain, listener, answer):
    frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
    with ScriptedSimulator(answer, (frame(i / 20) for i in count())) as peer, NodeProcess(
            domain, port=peer.port, control_port=peer.control_port, **PARAMETERS) as node:
        listener.until(lambda: len(frames) > 10, what='samples')
        assert peer.types()[0] == CONFIGURE
        (sensor,) = peer.messages(CONFIGURE)
        assert (sensor['type'], sensor['listen_port'], sensor['desired_tags']) == (
            'State', peer.port, ['vehicle'])
        assert set(peer.types()[1:]) == {SAMPLE}
        assert peer.most_outstanding == 1
        assert Remote(listener).set('desired_tags', ['ego']).successful
        listener.until(lambda: RECONFIGURE in peer.types(), what='the change')
        assert peer.messages(RECONFIGURE)[-1]['desired_tags'] == ['ego']
        peer.drop_sensor()
        peer.drop_control()
        listener.until(lambda: len(peer.messages(CONFIGURE)) > 1, what='the sensor once more')
        assert peer.messages(CONFIGURE)[-1]['desired_tags'] == ['ego']
        n_frames = len(frames)
        listener.until(lambda: len(frames) > n_frames + 10, what='samples again')
        assert node.end()[0] == 0
        assert 'Traceback' not in node.log


def test_node_names_a_silent_control_port(domain, listener):
    diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
    frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
    silent = threading.Event()
    silent.set()

    def answer(request):
        while silent.is_set():
            time.sleep(0.01)
        return complete(request)

    with ScriptedSimulator(answer, (frame(i / 20) for i in count())) as peer, NodeProcess(
            domain, port=peer.port, control_port=peer.control_port, **PARAMETERS) as node:
        try:
            peer.wait_for_requests(1)
            listener.matched('/diagnostics')
            line = (f'127.0.0.1:{peer.control_port}: no reply to {CONFIGURE} for 1 s; '
                    'waiting up to 25 s')
            watch = Stopwatch(node.process)
            listener.until(lambda: [values for values in statuses(diagnostics)
                                    if values['message'] == f'not connected: {line}'
                                    and values['connection state'] == 'connecting'
                                    and values['level'] == 2], what='the silent port by name')
            assert watch.seconds < NAMED_S
            assert node.log.count(line) <= 1
        finally:
            silent.clear()
        listener.until(lambda: len(frames) > 10, what='samples')
        listener.until(lambda: statuses(diagnostics)[-1]['level'] == 0, what='an OK report')
        assert node.log.count(line) == peer.types().count(CONFIGURE) == 1
        code, seconds = node.end()
        assert (code, 'Traceback' in node.log) == (0, False)
        assert seconds < END_S


def test_node_logs_the_refusal_of_the_simulator(domain, listener):
    diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')

    def refuse(request):
        return reply(request, 'no such sensor', success=False)

    with ScriptedSimulator(refuse) as peer, NodeProcess(
            domain, port=peer.port, control_port=peer.control_port, **PARAMETERS) as node:
        listener.until(lambda: [values for values in statuses(diagnostics) if values['level'] == 2
                                and "found 'no such sensor' in reply" in values['message']],
                       what='an error with the words of the simulator')
        assert node.end()[0] == 0
