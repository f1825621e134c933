# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Ground truth of OSI on the topics of the node: live over UDP, and of a trace."""

import osi_traces
from ports import free_udp_port
from rig import NodeProcess, statuses

OWN = 'state_sensor_ros'


def test_osi_live_is_on_topics_and_losses_are_counted(domain, listener):
    port = free_udp_port()
    frames = listener.subscribe('/state_sensor/frame', f'{OWN}/StateFrame', depth=1)
    ego = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
    diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
    with NodeProcess(domain, source='osi', max_actor_topics=1, **{'osi.port': port}) as node, \
            osi_traces.esmini(port, osi_traces.large_drive(20),
                              loses=lambda i, part: i % 10 == 9 and part == 1):
        listener.until(lambda: len(frames) > 20 and ego)
        listener.until(lambda: any(int(each.get('cut packets', 0)) > 0
                                   for each in statuses(diagnostics)))
        listener.until(lambda: 'lost, of which a part was missing or out of order' in node.log,
                       what='the line of the log')
        assert node.end()[0] == 0
    assert frames[-1].generation == 'osi'
    assert len(frames[-1].actors) == 100
    assert ego[-1].pose.pose.position.y == 3.5


def test_osi_live_without_a_program_says_so(domain, listener):
    port = free_udp_port()
    with NodeProcess(domain, source='osi', port=port) as node:
        listener.until(lambda: 'simulator send there?' in node.log)
        assert node.end()[0] == 0
