# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""SUMO through the commands and the library, and the shipped scenario."""

from contextlib import closing

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin
from stack_bags import messages_of, write_bag
from sumo_runs import GRID, HILL, write_hill

from state_sensor_ros import open_recording
from state_sensor_ros.commands.cli import main
from state_sensor_ros.drawing.style import ROADS
from state_sensor_ros.simulators.sumo.commands import _Found, SumoEgo
from state_sensor_ros.simulators.sumo.map import read_network

pytestmark = pytest.mark.usefixtures('forked_clients')

UNPACED = ('--source', 'sumo', '-p', 'rate:=0')


def ended(folder, end):
    """Write a scenario that is over at a time, s; return the options for it."""
    config = write_hill(folder)
    config.write_text(config.read_text().replace(
        '<processing>', f'<time><end value="{end}"/></time><processing>'))
    return (*UNPACED, '-p', f'sumo.config:={config}')


@pytest.fixture(scope='module')
def recorded(tmp_path_factory):
    """Return a bag of a second of the shipped scenario; beside it, SUMO's own output."""
    out = tmp_path_factory.mktemp('recorded') / 'a.mcap'
    assert main(['record', str(out), *UNPACED, '--seconds', '1', '-p', 'sumo.ego:=ego', '-q', '-p',
                 f'sumo.args:=[--fcd-output, {out.with_name("fcd.xml")}]']) == 0
    return out


@pytest.fixture(scope='module')
def messages(recorded):
    """Return all messages of the topics of that bag."""
    whole = recorded.with_name('whole')
    assert main(['convert', str(recorded), str(whole), '-q']) == 0
    return list(messages_of(whole))


def test_sumo_is_recorded_for_simulated_seconds(recorded):
    with open_recording(recorded) as recording:
        frames = list(recording)
        assert len(frames) == 20
        assert frames[-1].game_time == pytest.approx(0.95)
        assert all('car' in frame.tags[frame.ego] for frame in frames)
        assert len(frames[-1]) > 20


@pytest.mark.thorough
def test_sumo_roads_and_map_come_back_from_a_bag(recorded, tmp_path):
    first, second = recorded, tmp_path / 'b'
    assert main(['convert', str(first), str(second), '-q']) == 0
    expected = read_network(GRID.with_name('grid.net.xml.gz'))
    for path in (first, second):
        with open_recording(path) as recording:
            frame = recording[-1]
        assert dict(frame.lanes.road_names) == expected.road_names
        points = {(line.kind, *point) for line in frame.map_lines for point in line.points_xyz}
        # Lanes that end where the next one in the file begins are one line.
        assert points == {(line.kind, *point) for line in expected.lines
                          for point in line.points_xyz}
    assert main(['render', str(first), str(tmp_path / 'a.svg'), '-q']) == 0
    # Bands, not lines: the widths of the lanes are in the bag.
    text = (tmp_path / 'a.svg').read_text()
    assert f'fill: {ROADS[0]}' in text
    assert f'fill: {ROADS[2]}' not in text


def test_sumo_scenario_that_is_over_ends_the_recording_and_fcd_output_is_one(tmp_path):
    options = ended(tmp_path, 5)
    (tmp_path / 'hill.net.xml').write_bytes(HILL.read_bytes())
    assert main(['record', str(tmp_path / 'live.json'), *options, '-q', '-p',
                 f'sumo.args:=[--fcd-output, {tmp_path / "fcd.xml"}]']) == 0
    with open_recording(tmp_path / 'live.json') as recording:
        assert len(recording) == 100
    assert main(['convert', str(tmp_path / 'fcd.xml'), str(tmp_path / 'bag'), '-q']) == 0
    with open_recording(tmp_path / 'bag') as recording:
        frame = recording[-1]
    assert {'up', 'down', 'turn'} <= set(frame.lanes.road_names.values())
    assert len(frame.map_lines) > 3


@pytest.mark.parametrize('later_ns', [0, -40_000_000])
def test_frame_of_a_bag_with_traffic_lights_is_read_alone(messages, tmp_path, later_ns):
    """A recorder receives the traffic lights of a frame at another time."""
    bag = write_bag(tmp_path / 'bag', sorted((
        (name, type_name, 10**9 + log_ns + later_ns * name.endswith('/traffic_lights'), message)
        for name, type_name, log_ns, message in messages),
        key=lambda row: row[2]), StoragePlugin.MCAP)
    with open_recording(bag) as recording:
        frames = list(recording)
        assert len(recording) == len(frames)
        for i in (-1, 0, 7):
            np.testing.assert_array_equal(recording[i].kinematics, frames[i].kinematics)
            assert len(frames[i].traffic_lights.ids) > 20
            np.testing.assert_array_equal(recording[i].traffic_lights.states,
                                          frames[i].traffic_lights.states)


@pytest.mark.thorough
def test_sumo_that_fails_for_good_ends_a_command_with_its_reason(tmp_path, capsys):
    config, routes = write_hill(tmp_path), tmp_path / 'hill.rou.xml'
    routes.write_text(routes.read_text().replace(
        '</routes>', '<vehicle id="z" type="car" depart="2"><route edges="turn up"/></vehicle>'
        '</routes>'))
    out, options = tmp_path / 'a.mcap', (*UNPACED, '-p', f'sumo.config:={config}')
    assert main(['record', str(out), *options, '-q']) == 1
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {config}: Vehicle 'z' has no valid route")
    with open_recording(out) as recording:
        # Thrice the same run, up to the failure.
        assert [frame.game_time for frame in recording].count(1.95) == 3
    config.write_text(config.read_text().replace(str(HILL), 'none.net.xml'))
    assert main(['inspect', '--live', *options, '-q']) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f'error: {config}: File ')
    assert 'none.net.xml' in line


def test_route_is_given_back_on_a_junction_that_leads_elsewhere():
    libsumo = pytest.importorskip('libsumo')
    libsumo.start(['sumo', '-c', str(GRID), '--no-step-log'])
    with closing(libsumo):
        ego, vehicle = SumoEgo(libsumo, is_lent=True), libsumo.vehicle
        libsumo.simulationStep()
        ego._name, route = 'ego', vehicle.getRoute('ego')
        vehicle.moveToXY('ego', '', -1, *libsumo.lane.getShape(':F3_5_0')[1], 0.0, 2)
        libsumo.simulationStep()
        assert (vehicle.getRoadID('ego')[0], vehicle.getRoute('ego')[0] in route) == (':', False)
        ego._restore_route(_Found('ego', 0, 0, 1.0, 'car', route))
        assert vehicle.getRoute('ego')[-1] == route[-1]
