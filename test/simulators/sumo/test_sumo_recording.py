# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""FCD output as a recording of the commands."""

import gzip
from pathlib import Path

from paths import ROOT
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main

FCD = ('<fcd-export><timestep time="0"><vehicle id="a" x="1" y="2" angle="90" speed="20"/>'
       '<vehicle id="b" x="9" y="2" angle="90" speed="20"/></timestep></fcd-export>')


@pytest.fixture(autouse=True)
def _fcd(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path('fcd.xml').write_text(FCD)


def test_fcd_recording_has_the_ego_of_the_parameter(capsys):
    assert main(['convert', 'fcd.xml', 'drive.mcap', '-p', 'sumo.ego:=b', '--quiet']) == 0
    with sensor.open_recording('drive.mcap') as recording:
        [frame] = recording
    assert frame.names[frame.ego] == 'b'
    with sensor.open_recording('fcd.xml', parameters={'sumo.ego': 'first'}) as recording:
        assert recording[0].names[recording[0].ego] == 'a'


def test_fcd_recording_is_one_of_a_folder_with_other_files(capsys):
    Path('none.rou.xml').write_text('<routes/>')
    Path('zipped.xml.gz').write_bytes(gzip.compress(FCD.encode()))
    Path('cut.xml.gz').write_bytes(gzip.compress(FCD.encode())[:20])
    Path('package.xml').write_text('<package/>')
    assert main(['convert', '--to', 'mcap', '.', 'out', '--quiet']) == 0
    assert sorted(path.name for path in Path('out').iterdir() if path.is_dir()) \
        == ['fcd', 'zipped']


@pytest.mark.parametrize(('vehicle', 'words'), [
    ('<vehicle x="1" y="2" angle="90" speed="20"/>', 'vehicle: found no id; expected an id'),
    ('<person id="" x="1" y="2" angle="90" speed="2"/>', 'person: found no id; expected an id'),
    ('<vehicle id="c" x="nan" y="2" angle="90"/>', "vehicle c: found x 'nan'; expected numbers"),
    ('<vehicle id="c" x="1" y="-inf" angle="90"/>',
     "vehicle c: found y '-inf'; expected numbers"),
    ('<vehicle id="c" x="1"/>', 'vehicle c: found no y; expected numbers')])
def test_fcd_recording_names_the_actors_that_it_leaves_out(vehicle, words):
    Path('some.xml').write_text(FCD.replace('</timestep>', f'{vehicle}</timestep>'))
    with sensor.open_recording('some.xml') as recording:
        [frame] = recording
        assert frame.names == ('a', 'b')
        assert frame.ego is None
        [fault] = recording.faults
    assert words in str(fault.error)


@pytest.mark.parametrize(('side', 'y', 'direction'), [
    ('left', -3.2, 'right'), ('right', 3.2, 'left')])
def test_fcd_recording_of_either_traffic_has_lane_changes_as_the_driver_sees_them(
        side, y, direction):
    network = ROOT / 'test' / 'data' / 'sumo' / f'bend_{side}.net.xml.gz'
    Path('fcd.xml').write_text('<fcd-export>' + ''.join(
        f'<timestep time="{i}"><vehicle id="a" x="{20 + 10 * i}" y="{150 + y * (i // 2)}" '
        f'angle="90" speed="10" pos="{20 + 10 * i}" lane="ab_{1 + i // 2}"/></timestep>'
        for i in range(4)) + '</fcd-export>')
    assert main(['convert', 'fcd.xml', 'drive.mcap', '-p', f'sumo.net:={network}', '--quiet']) == 0
    with sensor.open_recording('drive.mcap') as recording:
        assert [each.direction for each in recording.lane_changes()] == [direction]
