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

from collections import defaultdict
import json
import os
import signal
import subprocess
import time

import numpy as np
from process_state import children
import pytest
from rosbags.rosbag2 import StoragePlugin
from stack_bags import messages_of, write_bag
from stopwatch import Stopwatch
from sumo_runs import GRID, HILL, write_hill

from state_sensor_ros import open_recording
from state_sensor_ros.commands.cli import main
from state_sensor_ros.drawing.style import ROADS
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import child_process
from state_sensor_ros.simulators.sumo.map import read_network
from state_sensor_ros.simulators.sumo.parameters import SumoParameters
from state_sensor_ros.simulators.sumo.source import SumoSource

pytestmark = pytest.mark.usefixtures('forked_clients')

UNPACED = ('--source', 'sumo', '-p', 'rate:=0')


def ended(folder, end):
    """Write a scenario that is over at a time, s; return the options for it."""
    config = write_hill(folder)
    config.write_text(config.read_text().replace(
        '<processing>', f'<time><end value="{end}"/></time><processing>'))
    return (*UNPACED, '-p', f'sumo.config:={config}')


def record(out):
    assert main(['record', str(out), *UNPACED, '--seconds', '1', '-p', 'sumo.ego:=ego', '-q', '-p',
                 f'sumo.args:=[--fcd-output, {out.with_name("fcd.xml")}]']) == 0


@pytest.fixture(scope='module')
def recorded(tmp_path_factory):
    """Return a bag of a second of the shipped scenario; beside it, SUMO's own output."""
    out = tmp_path_factory.mktemp('recorded') / 'a.mcap'
    record(out)
    return out


@pytest.fixture(scope='module')
def messages(recorded):
    """Return all messages of the topics of that bag."""
    whole = recorded.with_name('whole')
    assert main(['convert', str(recorded), str(whole), '-q']) == 0
    return list(messages_of(whole))


@pytest.mark.parametrize('name', [
    '', *(pytest.param(name, marks=pytest.mark.thorough)
          for name in ('sumo.json', 'sumo.parquet', 'sumo_bag'))])
def test_sumo_is_recorded_for_simulated_seconds(recorded, tmp_path, name):
    out = tmp_path / name if name else recorded
    if name:
        record(out)
    with open_recording(out) as recording:
        frames = list(recording)
        assert len(frames) == 20
        assert frames[-1].game_time == pytest.approx(0.95)
        assert all('car' in frame.tags[frame.ego] for frame in frames)
        assert len(frames[-1]) > 20


def test_sumo_roads_are_in_tables(recorded, tmp_path):
    import pyarrow.parquet
    import sumolib.net
    out = tmp_path / 'a.parquet'
    assert main(['convert', str(recorded), str(out), '-q']) == 0
    table = pyarrow.parquet.read_table(out)
    network = sumolib.net.readNet(str(GRID.with_name('grid.net.xml.gz')), withInternal=True)
    edges = [edge.getID() for edge in network.getEdges()]
    rows = table.select(['road_id', 'road', 'kind']).to_pylist()
    assert len(rows) > 200
    for row in rows:
        assert row['road'] == (None if row['road_id'] is None else edges[row['road_id']])
    with open_recording(out) as recording:
        lanes = recording[-1].lanes
        assert {lanes.road_names[road] for road in lanes.road_id.tolist()} <= set(edges)
    assert main(['convert', str(out), str(tmp_path / 'b.csv'), '--columns', 'name,road',
                 '-q']) == 0
    assert any(edge in (tmp_path / 'b.csv').read_text() for edge in edges)


def test_sumo_roads_and_map_come_back_from_a_bag(recorded, tmp_path):
    first, second = recorded, tmp_path / 'b'
    assert main(['convert', str(first), str(second), '-q']) == 0
    expected = read_network(GRID.with_name('grid.net.xml.gz'))
    for path in (first, second):
        with open_recording(path) as recording:
            frame = recording[-1]
        assert dict(frame.lanes.road_names) == expected.road_names
        lines_at = defaultdict(set)
        for number, line in enumerate(frame.map_lines):
            for point in line.points_xyz:
                lines_at[(line.kind, *point)].add(number)
        for line in expected.lines:
            # Lanes that end where the next one in the file begins are one line.
            assert set.intersection(*(lines_at[(line.kind, *point)] for point in line.points_xyz))
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


def test_sumo_network_and_ego_of_fcd_output_are_parameters(recorded, tmp_path, capsys):
    fcd = recorded.with_name('fcd.xml')
    moved = tmp_path / 'fcd.xml'
    moved.write_text(fcd.read_text().replace('grid.net.xml.gz', 'none.net.xml'))
    with open_recording(moved) as recording:
        assert (len(recording[-1].lanes), recording[-1].ego) == (0, None)
    network = str(GRID.with_name('grid.net.xml.gz'))
    with open_recording(fcd, parameters={'sumo.net': network, 'sumo.ego': 'ego'}) as recording:
        frame = recording[-1]
    assert frame.names[frame.ego] == 'ego'
    assert len(frame.lanes) > 20
    capsys.readouterr()
    assert main(['convert', str(fcd), str(tmp_path / 'bag'), '-q', '-p',
                 f'sumo.net:={tmp_path / "none.net.xml"}']) == 1
    error = capsys.readouterr().err
    assert error.count('\n') == 1
    assert 'none.net.xml (no such file or directory); expected a network of SUMO' in error


@pytest.mark.parametrize('later_ns', [0, 1_500_000, -40_000_000])
@pytest.mark.parametrize('storage', StoragePlugin)
def test_frame_of_a_bag_with_traffic_lights_is_read_alone(messages, tmp_path, monkeypatch,
                                                          later_ns, storage):
    """A recorder receives the traffic lights of a frame at another time."""
    bag = write_bag(tmp_path / 'bag', sorted((
        (name, type_name, 10**9 + log_ns + later_ns * name.endswith('/traffic_lights'), message)
        for name, type_name, log_ns, message in messages),
        key=lambda row: row[2]), storage)
    with open_recording(bag) as recording:
        frames = list(recording)
        assert len(recording) == len(frames)
        for i in (-1, 0, 7):
            np.testing.assert_array_equal(recording[i].kinematics, frames[i].kinematics)
            assert len(frames[i].traffic_lights.ids) > 20
            np.testing.assert_array_equal(recording[i].traffic_lights.states,
                                          frames[i].traffic_lights.states)


def test_sumo_seconds_are_those_of_the_clock_with_a_pace(tmp_path):
    begun, watch = time.monotonic(), Stopwatch()
    assert main(['record', str(tmp_path / 'a.json'), '--source', 'sumo', '-p', 'rate:=2', '-p',
                 f'sumo.config:={write_hill(tmp_path)}', '--seconds', '4', '-q']) == 0
    assert time.monotonic() - begun > 4
    delay_s = watch.delay_s
    with open_recording(tmp_path / 'a.json') as recording:
        # SUMO goes on while this process waits for a core to end it.
        assert 0 < recording.duration < 8.5 + 2 * delay_s


@pytest.mark.thorough
def test_sumo_that_is_killed_does_not_end_a_recording(tmp_path, monkeypatch, capsys):
    # A new process, which is found by its command line.
    monkeypatch.setattr(child_process, 'subprocess', subprocess)
    taken, take = [], SumoSource.take

    def kill(self, message):
        taken.append(message)
        # The pipe does not hold the rest of the frames.
        if len(taken) == 100:
            [child] = children(os.getpid(), b'sumo_process')
            os.kill(child, signal.SIGKILL)
        return take(self, message)

    monkeypatch.setattr(SumoSource, 'take', kill)
    assert main(['record', str(tmp_path / 'a.json'), *UNPACED, '--frames', '600', '-q']) == 0
    assert 'the stream was interrupted 1 time' in capsys.readouterr().err
    with open_recording(tmp_path / 'a.json') as recording:
        times = [frame.game_time for frame in recording]
    assert len(times) == 600
    assert times.count(0.0) == 2


def test_sumo_is_inspected(tmp_path, capsys):
    assert main(['inspect', '--live', *UNPACED, '--frames', '10', '--json', '-p',
                 f'sumo.config:={write_hill(tmp_path)}']) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found['frames'], found['generations']) == (10, {'sumo': 10})


def test_sumo_without_frames_is_one_line(tmp_path, capsys):
    options = ended(tmp_path, 0)
    assert main(['record', str(tmp_path / 'a.json'), *options, '-q']) == 1
    assert capsys.readouterr().err.count('\n') == 1


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


@pytest.mark.thorough
def test_sumo_ego_of_the_shipped_scenario_never_leaves():
    own = SumoParameters(str(GRID), ego='ego', step=1.0)
    source = SumoSource(own, Settings(rate=0.0), lambda kind, text: None, reconnect=False)
    roads, times = set(), []
    for packet in source.frames():
        frame = packet
        assert frame.ego is not None
        lanes = frame.lanes
        roads |= set(lanes.road_id[lanes.actor == frame.ego].tolist())
        times.append(frame.game_time)
        if frame.game_time >= 900:
            break
    source.close()
    source.disconnect()
    # Several rounds: it has been on each road of the loop, and stays as long as there is traffic.
    names = {lanes.road_names[road] for road in roads}
    assert {'B1B2', 'C4D4', 'E2E1', 'C1B1'} <= names
    text = GRID.with_name('grid.rou.xml').read_text()
    assert 'repeat="3000"' in text


@pytest.mark.parametrize(('words', 'text'), [
    (['sumo.port:=99', 'sumo.seed:=4'], 'sumo.seed: found 4; expected its default with sumo.port'),
    (['sumo.port:=99', 'sumo.step:=0.1'], 'sumo.step: found 0.1; expected'),
    (['sumo.port:=99', 'sumo.args:=[--no-warnings]'], 'sumo.args: found'),
    (['sumo.order:=2'], 'sumo.order: found 2; expected its default without sumo.port'),
    (['sumo.host:=there'], 'sumo.host: found there; expected'),
    (['sumo.release:=stop'], 'sumo.release: found stop; expected'),
    (['sumo.step_it:=true'], 'sumo.step_it: found True; expected'),
    (['sumo.port:=99', 'rate:=2.0'],
     'rate: found 2.0; expected its default with sumo.port without sumo.step_it')])
@pytest.mark.parametrize('command', [['record', 'x.json'], ['inspect', '--live']])
def test_sumo_parameters_without_effect_are_refused(
        command, words, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = [word for each in words for word in ('-p', each)]
    assert main([*command, '--source', 'sumo', '--seconds', '1', *given]) != 0
    [line] = capsys.readouterr().err.splitlines()
    assert text in line
    assert list(tmp_path.iterdir()) == []
