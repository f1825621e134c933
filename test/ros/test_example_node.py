# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The node in examples/, beside the driver."""

import os
import re
import select
import subprocess
import sys

from paths import ROOT
from rig import packet, state


def test_example_node_prints_the_nearest_actor(bench, domain):
    rig = bench()
    environment = os.environ | {'ROS_DOMAIN_ID': str(domain)}
    with subprocess.Popen([sys.executable, '-u', str(ROOT / 'examples' / 'frame_subscriber.py')],
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
