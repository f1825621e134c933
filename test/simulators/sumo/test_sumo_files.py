# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Networks and types of vehicles beside FCD output, damaged or in another encoding."""

import gzip
from pathlib import Path

import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main

SHAPE = 'shape="0.00,-1.60 100.00,-1.60"'
NET = ('<?xml version="1.0" encoding="UTF-8"?>\n<net version="1.20">\n'
       '<location netOffset="0.00,0.00" convBoundary="0.00,0.00,100.00,0.00" '
       'origBoundary="0,0,0,0" projParameter="!"/>\n'
       '<edge id="e" from="A" to="B" priority="-1">'
       f'<lane id="e_0" index="0" speed="13.89" length="100.00" {SHAPE}/></edge>\n'
       '<junction id="A" type="dead_end" x="0.00" y="0.00" incLanes="" intLanes="" '
       'shape="0.00,0.00 0.00,-3.20"/>\n'
       '<junction id="B" type="dead_end" x="100.00" y="0.00" incLanes="e_0" intLanes="" '
       'shape="100.00,-3.20 100.00,0.00"/>\n'
       '<tlLogic id="B" type="static" programID="0" offset="0"><phase duration="3" state="G"/>'
       '</tlLogic><connection from="e" to="e" fromLane="0" toLane="0" tl="B" linkIndex="0" '
       'dir="s" state="O"/>\n</net>')
FCD = ('<fcd-export><timestep time="0"><vehicle id="a" x="50" y="-1.6" angle="90" speed="20" '
       'type="car" lane="e_0" pos="50"/></timestep></fcd-export>')

NAMING = '<!-- <route-files value="a.rou.xml"/> -->'


@pytest.fixture(autouse=True)
def _fcd(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path('fcd.xml').write_text(FCD)


@pytest.mark.parametrize('encoding', ['UTF-8', 'UTF-16', 'ISO-8859-1'])
def test_network_with_one_edge(encoding):
    Path('a.net.xml').write_bytes(NET.replace('UTF-8', encoding).encode(encoding))
    with sensor.open_recording('fcd.xml') as recording:
        [frame] = recording
    assert frame.lanes.ids.tolist() == [[0, 0, -1]]
    assert dict(frame.lanes.road_names) == {0: 'e'}
    assert [line.points_xyz.tolist() for line in frame.map_lines] == [
        [[0.0, -1.6, 0.0], [100.0, -1.6, 0.0]]]


@pytest.mark.parametrize(('old', 'new'), [
    (NET[300:], ''), (NET, ''), ('UTF-8', 'none'), (SHAPE, 'shape="0.00,-1.60"'),
    ('to="e"', 'to="q"'), ('<net version="1.20">\n', '<a><net>')])
def test_network_that_is_damaged_is_one_line(old, new, capsys):
    Path('a.net.xml').write_text(NET.replace(old, new))
    assert main(['convert', 'fcd.xml', 'bag', '-p', 'sumo.net:=a.net.xml']) == 1
    error = capsys.readouterr().err.strip()
    # One that nothing names does not stop the reading.
    assert main(['convert', 'fcd.xml', 'beside', '-q']) == 0
    assert 'network: found a.net.xml (' in capsys.readouterr().err
    assert error.startswith('error: network: found a.net.xml (')
    assert error.endswith('); expected a network of SUMO')
    assert '\n' not in error
    assert not Path('bag').exists()


@pytest.mark.parametrize('types', [
    '<routes><vTy', '<?xml version="1.0" encoding="none"?><routes/>',
    *(f'<routes><vType id="car" length="{length}"/></routes>'
      for length in ('long', '-5', 'nan'))])
def test_types_of_vehicles_that_are_damaged_are_one_line(types, capsys):
    Path('a.rou.xml').write_text(types)
    assert main(['convert', 'fcd.xml', 'beside', '-q']) == 0
    assert 'a.rou.xml: found ' in capsys.readouterr().err
    Path('fcd.xml').write_text(NAMING + FCD)
    assert main(['convert', 'fcd.xml', 'bag']) == 1
    error = capsys.readouterr().err.strip()
    assert error.startswith('error: a.rou.xml: found ')
    assert error.endswith('; expected types of vehicles')
    assert not Path('bag').exists()


def test_network_of_the_same_name_is_that_of_a_recording(capsys):
    Path('run.1.fcd.xml').write_text(FCD)
    Path('run.1.net.xml').write_text(NET)
    Path('run.net.xml').write_text(NET.replace('"e"', '"short"'))
    Path('other.net.xml').write_text(NET.replace('"e"', '"other"'))
    with sensor.open_recording('run.1.fcd.xml') as recording:
        assert dict(recording[0].lanes.road_names) == {0: 'e'}
    assert main(['inspect', 'fcd.xml']) == 1
    assert capsys.readouterr().err == (
        'error: fcd.xml: network: found 3 beside it: other.net.xml, run.1.net.xml, '
        'run.net.xml; expected one, or fcd.net.xml, or -p sumo.net:=FILE\n')
    assert main(['inspect', 'fcd.xml', '-p', 'sumo.net:=run.1.net.xml']) == 0
    Path('fcd.net.xml').write_text(NET)
    with sensor.open_recording('fcd.xml') as recording:
        assert recording[0].lanes.ids.tolist() == [[0, 0, -1]]


@pytest.mark.parametrize('place', ['/home/they/scenario/', 'C:\\\\scenario\\\\', 'other/'])
def test_files_that_the_header_names_may_lie_beside_the_recording(place):
    Path('own.xml').write_text('<routes><vType id="big" vClass="bus"/></routes>')
    Path('other.rou.xml').write_text('<routes><vType id="big" length="3"/></routes>')
    Path('z.rou.xml').write_text('<routes><vType id="big" length="4"/></routes>')
    for name in ('roads.xml', 'x.net.xml', 'y.net.xml'):
        Path(name).write_text(NET.replace('"e', f'"{name[0]}'))
    head = (f'<net-file value="{place}roads.xml"/><route-files value="none.xml"/>'
            f'<additional-files value="{place}own.xml"/>')
    Path('fcd.xml').write_text(f'<!-- {head} -->' + FCD.replace('"car"', '"big"'))
    with sensor.open_recording('fcd.xml') as recording:
        frame = next(iter(recording))
    assert frame.boxes.size_xyz[0].tolist() == [12.0, 2.5, 3.4]
    assert set(frame.lanes.road_names.values()) == {'r'}
    with sensor.open_recording('fcd.xml', parameters={'sumo.net': 'x.net.xml'}) as recording:
        assert set(next(iter(recording)).lanes.road_names.values()) == {'x'}


def test_paths_in_the_header_are_relative_to_the_folder_in_which_sumo_ran(tmp_path, capsys):
    Path('own.xml').write_text('<routes><vType id="big" vClass="bus"/></routes>')
    Path('roads.xml').write_text(NET)
    head = ('<net-file value="roads.xml"/><route-files value="own.xml"/>'
            '<fcd-output value="runs/./1/fcd.xml"/>')
    Path('runs/1').mkdir(parents=True)
    Path('runs/1/fcd.xml').write_text(f'<!-- {head} -->' + FCD.replace('"car"', '"big"'))
    with sensor.open_recording(tmp_path / 'runs/1/fcd.xml') as recording:
        frame = recording[0]
    assert frame.boxes.size_xyz[0].tolist() == [12.0, 2.5, 3.4]
    assert frame.lanes.road_names == {0: 'e'}


def test_types_of_two_scenarios_are_not_mixed(capsys):
    types = '<routes><vType id="car" length="{}"/></routes>'
    Path('a.rou.xml').write_text(types.format(4))
    Path('b.rou.xml.gz').write_bytes(gzip.compress(types.format(5).encode()))
    assert main(['inspect', 'fcd.xml']) == 1
    assert "types of vehicles: found two of 'car', one in a.rou.xml" in capsys.readouterr().err
    Path('fcd.rou.xml').write_text(types.format(6))
    with sensor.open_recording('fcd.xml') as recording:
        assert recording[0].boxes.size_xyz[0, 0] == 6
