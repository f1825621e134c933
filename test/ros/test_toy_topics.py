# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A simulator of another package on the topics of the node."""

import os

from commands_rig import pedals, Stack
from rig import NodeProcess
from test_toy_simulator import installed_toy, program_with
from toy_server import ToyServer


def environment(site):
    return {'PYTHONPATH': f'{os.environ["PYTHONPATH"]}{os.pathsep}{site}'}


def test_toy_actors_are_on_topics_and_take_commands(domain, listener, tmp_path):
    site = installed_toy(tmp_path / 'site')
    odometry = listener.subscribe('/state_sensor/actors/ball/odometry', 'nav_msgs/Odometry')
    frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')

    def x(i):
        return odometry[i].pose.pose.position.x

    with ToyServer() as server, NodeProcess(
            domain, source='toy', port=server.port, environment=environment(site), ego_tag='globe',
            control_input='vehicle_control', **{'toy.radius': 0.5, 'toy.tag': 'globe'}) as node:
        stack = Stack(listener).matched()
        listener.until(lambda: len(odometry) > 2 and x(-1) > x(0) and frames)
        stack.publish_until(pedals(brake=1.0), lambda: x(-1) == x(-2))
        stack.publish_until(pedals(throttle=1.0), lambda: x(-1) > x(-2))
        assert node.is_alive
    assert odometry[-1].child_frame_id == 'ball'
    assert odometry[-1].pose.pose.position.y == 2.0
    [ball] = frames[-1].actors
    assert list(ball.tags) == ['globe']
    assert ball.oriented_bounding_boxes[0].size.x == 1.0
    assert ball.has_control_state
    assert ball.control_state.road_id == 7


def test_broken_simulator_is_a_warning_of_the_node(domain, listener, tmp_path):
    site = installed_toy(tmp_path / 'site', content='raise RuntimeError("no license")')
    with NodeProcess(domain, port=1, program=program_with(site, 'ros.program')) as node:
        listener.until(lambda: 'is skipped: RuntimeError: no license' in node.log)
