# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Each format names what it drops of a recording, in one line; bags keep the widths of lanes."""

from contextlib import closing
from pathlib import Path
import sqlite3

import numpy as np
from paths import ROOT
import pytest

import state_sensor_ros as sensor  # noqa: I100
from state_sensor_ros.commands.cli import main
from state_sensor_ros.files.bag import Bag

FCD = """<fcd-export><timestep time="0"><vehicle id="a" x="300" y="150" angle="90" speed="20"
 lane="bc_1" pos="20"/></timestep><timestep time="1"><vehicle id="a" x="320" y="150" angle="90"
 speed="20" lane="bc_1" pos="40"/></timestep></fcd-export>"""
# The type of the vehicles is not declared.
DERIVED = 'which velocities and sizes are derived'
NETWORK = ROOT / 'test' / 'data' / 'sumo' / 'bend_left.net.xml.gz'


@pytest.fixture(autouse=True)
def _fcd(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'drive.xml').write_text(FCD)
    (tmp_path / 'drive.net.xml.gz').write_bytes(NETWORK.read_bytes())


@pytest.mark.parametrize(('out', 'lost'), [
    ('drive.json', f'v2 does not carry: names of roads, {DERIVED}, the map'),
    ('drive.parquet', 'a table does not carry: the map'),
    ('drive.csv', 'a table does not carry: the map'),
    ('drive.osi',
     f'a trace of ASAM OSI does not carry: lane states, names of roads, {DERIVED}, the map'),
    ('drive.mcap', f'a bag does not carry: {DERIVED}'),
    ('bag', f'a bag does not carry: {DERIVED}')])
def test_formats_name_what_they_drop(out, lost, capsys):
    if out.endswith('.osi'):
        pytest.importorskip('osi3')
    assert main(['convert', 'drive.xml', out, '--quiet', '-p', 'sumo.ego:=a']) == 0
    warned = [line for line in capsys.readouterr().err.splitlines() if 'not carry' in line]
    assert [line.split(': ', 2)[2] for line in warned] == [lost]


def test_bags_keep_the_widths_of_lanes():
    assert main(['convert', 'drive.xml', 'drive.mcap', '--quiet']) == 0
    with sensor.open_recording('drive.xml') as first, sensor.open_recording('drive.mcap') as bag:
        expected, lines = first[0].map_lines, bag[0].map_lines
    assert {line.width for line in lines} == {line.width for line in expected} >= {2.0, 3.2}
    # The lines of each kind and width come together, those that meet as one.
    assert _length(lines) == pytest.approx(_length(expected))


def test_a_later_file_of_a_split_bag_says_what_is_in_the_first(capsys):
    assert main(['convert', 'drive.xml', 'later.db3', '-q']) == 0
    with closing(sqlite3.connect('later.db3')) as database:
        database.execute('DELETE FROM messages WHERE topic_id IN (SELECT id FROM topics '
                         "WHERE name LIKE '%/roads' OR name LIKE '%/map')")
        database.commit()
    assert main(['convert', 'later.db3', 'later.json', '-q']) == 0
    assert '~/roads, ~/map: found topics without a message; expected' in capsys.readouterr().err


def test_a_bag_has_topics_of_so_many_actors_in_all(capsys):
    # An actor has left for longer than its time-out when the next one comes; the first comes back.
    steps = ''.join(f'<timestep time="{9 * k}"><vehicle id="{name}" x="{k}" y="0" angle="90" '
                    'speed="1"/></timestep>' for k, name in enumerate('abcda'))
    Path('many.xml').write_text(f'<fcd-export>{steps}</fcd-export>')
    assert main(['convert', 'many.xml', 'many.mcap', '-q', '-p', 'max_actor_topics:=2']) == 0
    assert '2 actors without topics of their own; ~/frame has' in capsys.readouterr().err
    with closing(Bag(Path('many.mcap'))) as bag:
        assert {key[0].split('/')[3]: bag.count(key) for key in bag.with_messages()
                if '/actors/' in key[0]} == {'a': 2, 'b': 1}
    with sensor.open_recording('many.mcap') as recording:
        assert [frame.names for frame in recording] == [(name,) for name in 'abcda']


def _length(lines):
    """Return the length of the lines of each kind and width, m."""
    lengths = {}
    for line in lines:
        step = np.linalg.norm(np.diff(line.points_xyz, axis=0), axis=1).sum()
        key = line.kind, line.width
        lengths[key] = lengths.get(key, 0.0) + step
    return lengths


def test_losses_of_many_files_are_one_line(tmp_path, capsys):
    (tmp_path / 'in').mkdir()
    for name in 'abc':
        assert main(['synth', '-q', str(tmp_path / 'in' / f'{name}.json'), '--frames', '2']) == 0
    capsys.readouterr()
    assert main(['convert', '-q', str(tmp_path / 'in'), str(tmp_path / 'out'), '--to', 'csv',
                 '--jobs', '1']) == 0
    [line] = capsys.readouterr().err.splitlines()
    text = line.removeprefix(f'warning: {tmp_path}/out/').partition(': ')[2]
    assert text.startswith('a table does not carry: ')


@pytest.mark.thorough
def test_every_command_says_that_every_message_is_there_twice(capsys):
    assert main(['synth', 'drive.json', '--vehicles', '2', '--frames', '12', '-q']) == 0
    assert main(['convert', 'drive.json', 'bag.db3', '--outputs', 'autoware', '-q']) == 0
    with closing(sqlite3.connect('bag.db3')) as bag, bag:
        bag.execute('INSERT INTO messages (topic_id, timestamp, data) '
                    'SELECT topic_id, timestamp, data FROM messages')
    capsys.readouterr()
    said = 'repeated frame: message 1 of /state_sensor/frame: game_time is 8 again'
    for command in (['convert', 'bag.db3', 'out.json'], ['render', 'bag.db3', 'out.svg'],
                    ['view', 'bag.db3', '--save', 'out.rrd'],
                    ['evaluate', 'bag.db3', 'bag.db3'],
                    ['convert', 'bag.db3', 'many', '--to', 'csv', '--jobs', '1']):
        assert main([*command, '-q']) == 0, command
        err = capsys.readouterr().err
        assert f'warning: bag.db3: {said} (and 11 more of this kind)\n' in err, command
        assert command[0] != 'evaluate' or '12 messages with the time of another one' in err
    assert main(['convert', 'bag.db3', 'out.mcap', '-q']) == 0
    assert f'{said} (and 11 more of this kind)' in capsys.readouterr().err
    with sensor.open_recording('out.mcap') as recording:
        assert len(recording) == 24
