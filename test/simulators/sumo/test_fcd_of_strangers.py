# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""FCD output as SUMO writes it by default: riders, types from routes, missing attributes."""

from pathlib import Path

import numpy as np
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main

CAR = '<vehicle id="car" x="{x}" y="0" angle="90" type="{type}" speed="10" pos="{x}"/>'
RIDER = '<person id="driver" x="{x}" y="0" angle="90" type="DEFAULT_PEDTYPE" speed="10"/>'
BOX = '<container id="box" x="{x}" y="5" angle="90" speed="1"/>'
WALKER = '<person id="walker" x="{x}" y="3" angle="90" type="DEFAULT_PEDTYPE" speed="1"/>'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def fcd(*actors, head='', kind='c'):
    steps = ''.join(f'<timestep time="{i / 2}">' + ''.join(
        actor.format(x=10 + 5 * i, type=kind) for actor in actors) + '</timestep>'
        for i in range(3))
    return f'<!-- {head} --><fcd-export>{steps}</fcd-export>'


def test_riders_and_containers_are_dropped_and_counted_once(capsys):
    Path('a.fcd.xml').write_text(fcd(CAR, RIDER, WALKER, BOX, kind='DEFAULT_VEHTYPE'))
    with sensor.open_recording('a.fcd.xml') as recording:
        assert {frame.names for frame in recording} == {('car', 'walker')}
        assert recording.faults.counts == {'rider': 1, 'dropped': 1}
    assert main(['convert', '-q', 'a.fcd.xml', 'a.csv']) == 0
    assert 'rider: frame 0: driver: found a person in vehicle car' in capsys.readouterr().err


def test_undeclared_type_is_named_with_the_number_of_its_vehicles(capsys):
    other = CAR.replace('"car"', '"other"').replace('y="0"', 'y="9"')
    Path('a.fcd.xml').write_text(fcd(CAR, other, kind='my_type'))
    assert main(['convert', '-q', 'a.fcd.xml', 'a.csv']) == 0
    [line] = [line for line in capsys.readouterr().err.splitlines() if 'undeclared' in line]
    assert 'undeclared type my_type: frame 0: car: ' in line
    assert '(and 1 more of this kind)' in line
    Path('a.rou.xml').write_text('<additional><vType id="my_type" vClass="truck"/></additional>')
    assert main(['convert', '-q', 'a.fcd.xml', 'b.csv']) == 0
    assert 'undeclared' not in capsys.readouterr().err
    assert Path('b.csv').read_text().count('"truck"') == 6


@pytest.mark.parametrize(('text', 'error'), [
    ('<configuration><input/></configuration>',
     'the XML element <configuration>; expected FCD output of SUMO (`--fcd-output`)'),
    # Every output of SUMO has the configuration in a comment.
    ('<!--\n<sumoConfiguration><output/></sumoConfiguration>\n-->\n<emission-export>',
     'the XML element <emission-export>; expected FCD output of SUMO (`--fcd-output`)'),
    ('', 'no XML element at the beginning; expected FCD output of SUMO (`--fcd-output`)')])
def test_another_file_of_sumo_is_refused_with_what_it_is(text, error, capsys):
    Path('osm.sumocfg').write_text('<?xml version="1.0"?>\n' + text)
    assert main(['inspect', 'osm.sumocfg']) == 1
    assert capsys.readouterr().err == f'error: osm.sumocfg: found {error}\n'


def test_numbers_that_sumo_does_not_say_are_unknown():
    """Without speed and angle nothing is guessed from the positions."""
    bare = CAR.replace(' speed="10"', '')
    Path('a.fcd.xml').write_text(fcd(bare, WALKER.replace(' angle="90"', '')))
    with sensor.open_recording('a.fcd.xml') as recording:
        for frame in recording:
            assert np.isnan(frame.velocity_xyz).all()
            assert frame.has_pose().tolist() == [True, False]


def test_yaw_rate_is_that_of_the_headings_and_unknown_at_a_kink():
    """A heading that snaps at a kink of a lane is no turn of the vehicle."""
    steps = ''.join(f'<timestep time="{i}"><vehicle id="car" x="0" y="0" angle="{angle}" '
                    'speed="10"/></timestep>' for i, angle in enumerate((90, 60, 60, -60)))
    Path('a.fcd.xml').write_text(f'<fcd-export>{steps}</fcd-export>')
    with sensor.open_recording('a.fcd.xml') as recording:
        rates = [frame.angular_velocity_xyz[0, 2] for frame in recording]
    assert rates == pytest.approx([np.nan, np.pi / 6, 0.0, np.nan], nan_ok=True)
