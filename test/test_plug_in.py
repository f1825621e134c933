# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The example of the page for authors of plug-ins, installed and used."""

import json
import re
import shlex
import socket
import sys

from paths import ROOT
import pytest
from scripted_simulator import InBackground

from state_sensor_ros import files, plug_ins, simulators
from state_sensor_ros.commands.cli import main

TEXT = (ROOT / 'doc' / 'design' / 'extending.md').read_text(encoding='utf-8')
BLOCKS = dict(re.findall(r'^```(python|toml|console)\n(.*?)^```$', TEXT, re.DOTALL | re.MULTILINE))
CACHES = plug_ins.plug_ins, files.formats, simulators.find_simulator


def clear():
    for cached in CACHES:
        cached.cache_clear()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install the plug-in of the page, or another module in its place, in a folder of sys.path."""
    def install(text=BLOCKS['python']):
        site = tmp_path / 'site'
        (site / 'ball-1.0.dist-info').mkdir(parents=True)
        (site / 'ball.py').write_text(text)
        (site / 'ball-1.0.dist-info' / 'METADATA').write_text(
            'Metadata-Version: 2.1\nName: ball\nVersion: 1.0\n')
        (site / 'ball-1.0.dist-info' / 'entry_points.txt').write_text(
            BLOCKS['toml'].replace('"', '').replace('project.entry-points.', ''))
        monkeypatch.syspath_prepend(site)
        clear()
    yield install
    sys.modules.pop('ball', None)
    clear()


def test_example_has_at_most_sixty_lines():
    assert len(BLOCKS['python'].splitlines()) <= 60


def test_example_works(installed, tmp_path, monkeypatch):
    installed()
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'drive.ball').write_text('0.0 1 2\n0.1 no\n0.2 2 2\n')
    record, convert = (shlex.split(line.removeprefix('$ state_sensor '))
                       for line in BLOCKS['console'].splitlines())
    with socket.create_server(('127.0.0.1', 0)) as server:
        def serve():
            with server.accept()[0] as client:
                client.sendall(b'0.0 1 2\nfoul\n0.1 3 4\n')

        with InBackground(serve):
            assert main([*record, '--port', str(server.getsockname()[1])]) == 0
    assert [frame['game_time'] for frame in json.loads((tmp_path / 'drive.json').read_text())] \
        == [0.0, 0.1]
    assert main(convert) == 0
    assert main(['convert', 'bag', 'again.json']) == 0
    assert len(json.loads((tmp_path / 'again.json').read_text())) == 2


def test_plug_in_that_cannot_be_loaded_is_one_warning(installed):
    installed('raise OSError("no driver")')
    with pytest.warns(plug_ins.PlugInWarning, match=r'ball \(ball:Ball\) is skipped: OSError'):
        assert 'ball' not in simulators.simulator_names()
