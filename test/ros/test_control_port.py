# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""The node configures the simulator itself, asks for samples, and does so again when it must."""

from itertools import count

import pytest
from rig import NodeProcess, Remote, statuses
from scripted_simulator import complete, frame, OLD_MAGIC, reply, ScriptedSimulator

CONFIGURE = 'REPLAY_ConfigureSensorsCommand_ID'
RECONFIGURE = 'REPLAY_ReConfigureSensorCommand_ID'
SAMPLE = 'SampleSensorsCommand_ID'
PARAMETERS = {'sample_rate': 50.0, 'desired_tags': ['vehicle'], 'reconnect_min': 0.05,
              'reconnect_max': 0.2}


@pytest.mark.parametrize('answer', [complete, lambda request: reply(request, magic=OLD_MAGIC)],
                         ids=['new', 'old'])
def test_node_configures_samples_and_configures_again(domain, listener, answer):
    frames = listener.hear('/state_sensor/frame', 'state_sensor_ros/StateFrame')
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


def test_node_says_what_the_simulator_refused(domain, listener):
    diagnostics = listener.hear('/diagnostics', 'diagnostic_msgs/DiagnosticArray')

    def refuse(request):
        return reply(request, 'no such sensor', success=False)

    with ScriptedSimulator(refuse) as peer, NodeProcess(
            domain, port=peer.port, control_port=peer.control_port, **PARAMETERS) as node:
        listener.until(lambda: [values for values in statuses(diagnostics) if values['level'] == 2
                                and "found 'no such sensor' in reply" in values['message']],
                       what='an error with the words of the simulator')
        assert node.end()[0] == 0
