# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Formats and topics are added from outside, with the lines that the page for authors names."""

import os
import re

from paths import ROOT, SAMPLE
from programs import ENVIRONMENT, run_python
from rosbags.rosbag2 import Reader
from rosbags.typesys import get_typestore, Stores
from test_toy_simulator import HERE, installed_toy, state_sensor

PACKAGE = ROOT / 'state_sensor_ros'
EXTENDING = (ROOT / 'doc' / 'design' / 'extending.md').read_text(encoding='utf-8')
TOY = (HERE / 'toy_simulator.py').read_text(encoding='utf-8')
SPEED_TOPIC = (HERE / 'toy_topics.py').read_text(encoding='utf-8')
POINTS_FORMAT = (ROOT / 'test' / 'files' / 'points_format.py').read_text(encoding='utf-8')


def test_topic_is_added_by_a_module_and_its_list(tmp_path):
    method = '    def open_commands(self, settings, source, report):\n'
    topics = ('    def topics(self, settings, *, recording):\n'
              '        import toy_topics\n'
              '        return SimulatorTopics((toy_topics.SpeedEncoder,))\n\n')
    site = installed_toy(tmp_path / 'site', content=TOY.replace(method, topics + method).replace(
        '    Simulator,\n', '    Simulator,\n    SimulatorTopics,\n'))
    (site / 'toy_topics.py').write_text(SPEED_TOPIC)
    (tmp_path / 'drive.ball').write_text('0.0 1 2\n0.1 2 2\n')
    ended = state_sensor(site, 'convert', tmp_path / 'drive.ball', tmp_path / 'bag')
    assert (ended.returncode, ended.stderr) == (0, '')
    store = get_typestore(Stores.ROS2_JAZZY)
    with Reader(tmp_path / 'bag') as reader:
        found = [store.deserialize_cdr(data, connection.msgtype).markers
                 for connection, _, data in reader.messages()
                 if connection.topic == '/state_sensor/toy_speeds']
    # The ball rolls at 1 m/s, half of the fastest.
    assert [(marker.pose.position.x, marker.pose.position.y, marker.color.r, marker.color.g,
             marker.color.b, marker.color.a) for [marker] in found] == [
        (1.0, 2.0, 0.5, 0.5, 0.0, 1.0), (2.0, 2.0, 0.5, 0.5, 0.0, 1.0)]


def test_format_of_the_core_is_added_by_a_row_and_a_module(tmp_path):
    files = tmp_path / 'copy' / 'state_sensor_ros' / 'files'
    files.mkdir(parents=True)
    for entry in (*PACKAGE.iterdir(), *(PACKAGE / 'files').iterdir()):
        if entry.name not in ('files', 'formats.py'):
            (tmp_path / 'copy' / entry.relative_to(ROOT)).symlink_to(entry)
    formats = (PACKAGE / 'files' / 'formats.py').read_text(encoding='utf-8')
    table = 'FORMATS = (BAG, '
    assert formats.count(table) == 1
    [row] = re.findall(r'^```python\n(POINTS = .*?)^```$', EXTENDING, re.DOTALL | re.MULTILINE)
    (files / 'formats.py').write_text(
        formats.replace(table, f'{row}\n{table}POINTS, '))
    (files / 'points.py').write_text(POINTS_FORMAT)

    program = ('import sys\nfrom state_sensor_ros.commands.cli import main\n'
               'assert not any(main(["convert", *paths]) for paths in zip(sys.argv, sys.argv[1:]) '
               'if paths[0] != "-c")')
    ended = run_python('-c', program, SAMPLE, 'drive.points', 'again.points', cwd=tmp_path, env={
        **ENVIRONMENT, 'PYTHONPATH': f'{tmp_path / "copy"}{os.pathsep}'
        f'{os.environ.get("PYTHONPATH", "")}'})
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count('points does not carry: ') == 1
    assert (tmp_path / 'drive.points').read_text()
    assert (tmp_path / 'again.points').read_text() == (tmp_path / 'drive.points').read_text()
