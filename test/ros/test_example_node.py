# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The node in examples/ that prints, beside the driver and at its end."""

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

EXAMPLE = ROOT / 'examples' / 'frame_subscriber.py'


@pytest.mark.parametrize('number', [
    signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
def test_example_node_prints_the_nearest_actor_until_it_is_ended(bench, domain, number):
    rig = bench()
    environment = os.environ | {'ROS_DOMAIN_ID': str(domain)}
    with subprocess.Popen([sys.executable, '-u', str(EXAMPLE)], **PIPES,
                          env=environment) as process:
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
            process.send_signal(number)
            _, errors = process.communicate(timeout=AWAIT_S)
        finally:
            process.kill()
    assert re.fullmatch(r'\d+\.\d\d s: near at 12\.5 m\n', line)
    # It ends quietly, as follow_line.py does in test_follow_line.py.
    assert (process.returncode, errors) == (0, '')
