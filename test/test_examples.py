# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The scripts in examples/, as a user runs them; that with ROS is in ros/test_example_node.py."""

import ast
from base64 import b64decode
from html import escape, unescape
from io import BytesIO
import itertools
import json
import re

from budgets import AWAIT_S
from carla9_server.road_map import open_drive
from mock_simulator import served
import numpy as np
from paths import ROOT
from programs import ENVIRONMENT, PIPES, start_script
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.emulator.traffic.frame_generator import Traffic, TrafficFrames
from state_sensor_ros.simulators.opening import read_map

EXAMPLES = ROOT / 'examples'


def run(name, *words):
    """Run an example; return its exit code, its output and its errors."""
    with start_script([str(EXAMPLES / name), *map(str, words)], env=ENVIRONMENT,
                      **PIPES) as process:
        output, errors = process.communicate(timeout=AWAIT_S)
    return process.returncode, output, errors


def test_map_of_the_demo_is_the_road_of_its_traffic():
    """The file beside its line, by which ~/map and pictures have lanes."""
    road = Traffic(12, 9, 20.0, 1).road
    assert (ROOT / 'resource' / 'lines' / 'monodrive.xodr').read_text() == open_drive(road, [])
    xy = np.concatenate([line.points_xyz[:, :2] for line in read_map(
        str(ROOT / 'resource' / 'lines' / 'monodrive.xodr'))])
    for frame in itertools.islice(TrafficFrames(12, 9, 20.0, 1, 'v2'), 0, 200, 40):
        for name, (x, y, _) in places(frame):
            if name in {each['name'] for each in states(frame, ['vehicles'])}:
                assert np.hypot(*(xy - (x / 100.0, -y / 100.0)).T).min() < 10.0


def test_lines_to_follow_can_be_driven():
    """A car moves along its heading: one line moved sideways, by a lane change at a standstill."""
    lines = sorted((ROOT / 'resource' / 'lines').glob('*.json.gz'))
    assert len(lines) == 2
    for line in lines:
        with sensor.open_recording(line) as recording:
            track = recording.ego_track()
        way = np.diff(track.position_xyz[:, :2], axis=0)
        length = np.hypot(way[:, 0], way[:, 1])
        # A chord of the tightest turn differs from the heading at its begin by 25 degrees.
        sideways = np.abs(np.sin(np.arctan2(way[:, 1], way[:, 0]) - track.yaw[:-1]))
        assert sideways[length > 0.05].max() < np.sin(np.radians(30.0)), line.name


def test_example_plots_a_recording(tmp_path):
    assert main(['synth', str(tmp_path / 'drive.json'), '--frames', '10']) == 0
    done = run('plot_recording.py', tmp_path / 'drive.json', tmp_path / 'paths.png')
    assert done == (0, '', '')
    assert (tmp_path / 'paths.png').read_bytes().startswith(b'\x89PNG')


@pytest.mark.thorough
def test_example_of_analysis_answers(tmp_path):
    drive = tmp_path / 'drive.json'
    assert main(['synth', str(drive), '--frames', '10']) == 0
    frames = list(itertools.islice(TrafficFrames(3, 2, 20.0, 1, 'v2'), 60))
    with served(frames, rate='max') as simulator:
        code, output, errors = run('analysis.py', drive, '127.0.0.1', simulator.port)
    assert (code, errors) == (0, '')
    shown, nearest, apart, changes, n_rows = output.splitlines()
    assert shown.endswith("drive.json', v2, 10 frames, 0.45 s)")
    actors = [{name: np.array(list(xyz)) for name, xyz in places(frame)}
              for frame in json.loads(drive.read_text())]
    ego = ego_name(drive)
    expected = [min(np.linalg.norm(xyz - each[ego]) for name, xyz in each.items()
                    if name != ego and name in vehicles(drive)) / 100.0 for each in actors]
    np.testing.assert_allclose(json.loads(nearest), expected, atol=2e-3)
    assert changes == '[]'
    last = list(actors[0])[-1]
    np.testing.assert_allclose(json.loads(apart), [
        np.linalg.norm(each[last] - each[ego]) / 100.0 for each in actors], atol=2e-3)
    assert int(n_rows) == 21 * 5


def states(frame, kinds=('objects', 'vehicles')):
    return [each.get('state', each) for kind in kinds for each in frame['frame'][kind]]


def places(frame):
    """Yield name and position, cm, of each actor of a v2 frame, from its text."""
    for state in states(frame):
        yield state['name'], state['odometry']['pose']['position'].values()


def vehicles(path):
    """Return the names of the vehicles of the first frame."""
    return {state['name'] for state in states(json.loads(path.read_text())[0], ['vehicles'])}


def ego_name(path):
    return next(state['name'] for state in states(json.loads(path.read_text())[0])
                if 'ego' in state['tags'])


@pytest.mark.thorough
def test_example_notebook_shows_a_recording(tmp_path, monkeypatch):
    """Each cell, and what a notebook asks of its last expression."""
    image = pytest.importorskip('PIL.Image')
    pytest.importorskip('matplotlib')
    pytest.importorskip('pandas')
    monkeypatch.chdir(tmp_path)
    assert main(['synth', 'drive.json', '--frames', '30']) == 0
    names, shown = {}, []
    for cell in json.loads((EXAMPLES / 'recording.ipynb').read_text())['cells']:
        if cell['cell_type'] == 'code':
            assert not cell['outputs']
            *lines, last = ast.parse(''.join(cell['source'])).body
            exec(compile(ast.Module(lines, []), 'cell', 'exec'), names)
            shown.append(eval(compile(ast.Expression(last.value), 'cell', 'eval'), names))
    recording, actors, frame, track, safety, figure, animation = shown
    assert len(actors) == len(recording.actors) == 21
    for value in (recording, frame, track, safety):
        html = value._repr_html_()
        assert html.count('<tr>') < 15, value
        [png] = re.findall('"data:image/png;base64,([^"]*)"', html)
        assert image.open(BytesIO(b64decode(png))).width < 900
    assert frame.names[frame.ego] in frame._repr_html_()
    assert figure._repr_png_().startswith(b'\x89PNG')
    assert unescape(re.search('srcdoc="([^"]*)"', animation._repr_html_())[1]) == animation.html
    recording.close()
    assert recording._repr_html_() == f'<p><code>{escape(repr(recording))}</code></p>'


def test_example_makes_a_table_of_a_stream():
    frames = list(itertools.islice(TrafficFrames(3, 2, 20.0, 1, 'v2'), 60))
    with served(frames, rate='max') as simulator:
        code, output, errors = run('stream_to_pandas.py', '127.0.0.1', simulator.port)
    assert (code, errors) == (0, '')
    assert output.count(' 40.0 ') == 5
