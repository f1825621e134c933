# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The nodes in examples/, beside the driver and at their ends."""

import os
import re
import select
import signal
import subprocess
import sys

from budgets import AWAIT_S
from paths import ROOT
from programs import PIPES
import pytest
from rig import packet, state

EXAMPLES, LINES = ROOT / 'examples', ROOT / 'resource' / 'lines'


def test_example_node_prints_the_nearest_actor(bench, domain):
    rig = bench()
    environment = os.environ | {'ROS_DOMAIN_ID': str(domain)}
    with subprocess.Popen([sys.executable, '-u', str(EXAMPLES / 'frame_subscriber.py')],
                          stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            rig.simulator.accept()
            ego = state('ego_car', tags=('vehicle', 'ego'))
            far, near = state('far', position=(9000, 0, 0)), state('near', position=(0, 1250, 0))
            # Of the example; the other one is that of the test.
            rig.listener.until(lambda: rig.listener.node.count_subscribers(
                '/state_sensor/frame') > 1)
            # A publisher may match a subscriber later than this node does.
            rig.listener.until(lambda: (
                rig.send_packet(packet(rig.content(ego, far, near))),
                select.select([process.stdout], [], [], 0.05)[0])[-1])
            line = process.stdout.readline()
        finally:
            process.kill()
    assert re.fullmatch(r'\d+\.\d\d s: near at 12\.5 m\n', line)


@pytest.mark.parametrize(('words', 'topic'), [
    (['frame_subscriber.py'], '/state_sensor/frame'),
    (['follow_line.py', str(LINES / 'carla.json.gz')], '/state_sensor/ego/odometry'),
])
def test_example_nodes_end_quietly_at_ctrl_c(listener, domain, words, topic):
    environment = os.environ | {'ROS_DOMAIN_ID': str(domain)}
    with subprocess.Popen([sys.executable, str(EXAMPLES / words[0]), *words[1:]], **PIPES,
                          env=environment) as process:
        try:
            listener.until(lambda: listener.node.count_subscribers(topic))
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=AWAIT_S)
        finally:
            process.kill()
    assert (process.returncode, output, errors) == (0, '', '')
