# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The page for authors of simulators: its classes and its blocks."""

import inspect
import re
import shlex

from paths import ROOT
import pytest
from test_toy_simulator import installed_toy, state_sensor
from toy_server import ToyServer

from state_sensor_ros.connections.live_source import LiveSource
from state_sensor_ros.files import Format
from state_sensor_ros.simulators import Simulator
from state_sensor_ros.topics.topic_encoder import TopicEncoder

TEXT = (ROOT / 'doc' / 'design' / 'extending.md').read_text(encoding='utf-8')
BLOCKS = re.findall(r'^```(\S+)[^\n]*\n(.*?)^```$', TEXT, re.DOTALL | re.MULTILINE)


def blocks(language):
    return [text for found, text in BLOCKS if found == language]


@pytest.mark.parametrize('described', [Simulator, LiveSource, TopicEncoder])
def test_extending_shows_classes_whose_members_are_described(described):
    assert re.search(rf'autoclass:: \S+\.{described.__name__}(?:\(\))?\n   :members:', TEXT)
    for name in (name for name in dir(described) if not name.startswith('_')):
        member = inspect.getattr_static(described, name)
        of_member = inspect.getdoc(member) if inspect.isroutine(member) or isinstance(
            member, property) else None
        assert of_member or re.search(rf'\b{name}\b', described.__doc__), name


def test_extending_runs():
    names = {'Format': Format}
    for text in blocks('python'):
        exec(compile(text, 'extending.md', 'exec'), names)
    assert names['source'].health.n_packets == 5


def test_extending_installs_the_simulator(tmp_path):
    [text] = blocks('toml')
    site = installed_toy(tmp_path / 'site')
    [written] = site.glob('*.dist-info/entry_points.txt')
    assert text.replace('"', '').replace('project.entry-points.', '') == written.read_text()


def test_extending_shows_commands_that_work(tmp_path):
    site = installed_toy(tmp_path / 'site')
    (tmp_path / 'drive.ball').write_text('0.0 1 2\n0.1 2 2\n')
    [text] = blocks('console')
    lines = [shlex.split(line.removeprefix('$ state_sensor')) for line in text.splitlines()]
    for words in lines:
        words = [str(tmp_path / word) if word in ('drive.json', 'drive.ball', 'bag') else word
                 for word in words]
        if words[0] == 'convert':
            ended = state_sensor(site, *words)
        else:
            with ToyServer() as server:
                ended = state_sensor(site, *words, '--port', server.port)
        assert ended.returncode == 0, ended.stderr
    assert {path.name for path in tmp_path.iterdir()} >= {'drive.json', 'bag'}
