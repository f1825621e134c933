# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""`state_sensor record --topics`: truth and stack in one bag with one clock."""

import json
import os

from budgets import AWAIT_S
from programs import lines_of, PIPES, SCRIPTS, start_node
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rig import NodeProcess
from rosbags.rosbag2 import Reader
from std_msgs.msg import String

from state_sensor_ros.commands.command_line import main

DETECTIONS, NOTE = '/state_sensor/detections', '/perception/note'
SILENT = '/quiet'
# Time enough to discover both nodes.
N_FRAMES = 60
QOS = QoSProfile(depth=3, reliability=ReliabilityPolicy.BEST_EFFORT,
                 durability=DurabilityPolicy.TRANSIENT_LOCAL)


def recorded(domain, listener, bag, *words):
    """Record while a driver and a stack publish; return exit code, output, lines of errors."""
    environment = {**os.environ, 'ROS_DOMAIN_ID': str(domain)}
    note = listener.node.create_publisher(String, NOTE, QOS)
    # It has a publisher, which sends nothing.
    listener.node.create_publisher(String, SILENT, QOS)
    process = start_node([str(SCRIPTS / 'state_sensor'), 'record', str(bag), *words],
                         env=environment, **PIPES)
    while process.poll() is None:
        note.publish(String(data='seen'))
        listener.spin(0.05)
    output, errors = process.communicate(timeout=AWAIT_S)
    return process.returncode, output, lines_of(errors)


@pytest.fixture
def driver(domain, tmp_path):
    drive = tmp_path / 'drive.json'
    assert main(['synth', '-q', str(drive), '--frames', '600']) == 0
    with NodeProcess(domain, source='file', trajectory_file=str(drive),
                     outputs=['vision'], **{'perception.position_std': 0.2}) as node:
        yield node


def test_record_of_topics_is_evaluated_with_one_bag(driver, domain, listener, tmp_path, capsys):
    pytest.importorskip('vision_msgs')
    bag = tmp_path / 'a run'
    code, output, errors = recorded(domain, listener, bag, '--topics', DETECTIONS, NOTE,
                                    '/perception/noet', SILENT, '--frames', str(N_FRAMES))
    # What was received is kept.
    assert code == 0
    assert errors == [
        (f'warning: {bag}: no message on /perception/noet, which has 0 publishers in ROS domain '
         f'{domain}; start one; did you mean {NOTE}?'),
        (f'warning: {bag}: no message on {SILENT}, which has 1 publisher in ROS domain {domain}; '
         f'`state_sensor echo {SILENT}` shows when it sends one')]
    assert output.startswith(f'{bag}: {N_FRAMES} frames, ')
    with Reader(bag) as reader:
        by_topic = {each.topic: each for each in reader.connections}
        assert {DETECTIONS, NOTE, '/state_sensor/frame', '/state_sensor/actors',
                '/state_sensor/label_info'} <= by_topic.keys()
        [profile] = by_topic[NOTE].ext.offered_qos_profiles
        assert (profile.reliability.name, profile.durability.name) == (
            'BEST_EFFORT', 'TRANSIENT_LOCAL')
        stamps = {time for connection, time, _ in reader.messages()
                  if connection.topic == '/state_sensor/frame'}
        assert len(stamps) == N_FRAMES
        assert {time for _, time, _ in reader.messages()} == stamps
    capsys.readouterr()
    assert main(['evaluate', str(bag), str(bag), '--json', '--topic', DETECTIONS]) == 0
    found = json.loads(capsys.readouterr().out)
    # The mean error of noise of 0.2 m.
    assert found['frames'] > 15
    assert found['detection']['classes']['car']['ate'] == pytest.approx(0.25, abs=0.06)


def test_record_of_topics_refuses_what_has_no_effect(tmp_path, refusal):
    bag = str(tmp_path / 'bag')
    assert 'a bag' in refusal('record', f'{bag}.json', '--topics', '/a', code=2)
    assert 'full name, such as /a/b' in refusal('record', bag, '--topics', 'a/b', code=2)
    assert '--port' in refusal('record', bag, '--topics', '/a', '--port', '5', code=2)
