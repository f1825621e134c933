# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
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
