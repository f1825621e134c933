# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Tables: each value equals one computed from the text of the recording, and the way back."""

import gzip
import json
import math

from budgets import first_of, one_of
import numpy as np
from paths import CARLA, SAMPLE
from programs import run_python
import pyarrow as pa
from pyarrow import csv
import pyarrow.parquet as pq
import pytest
from raw_actors import actors_of, CAR, turned
from real_recordings import FILES, path_of
from rosbags.rosbag2 import Reader

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.files.columns import NAMES
from state_sensor_ros.topics.autoware_ego import AutowareEgoEncoder, STEERING_TOPIC

INTERFACE = (  # noqa: SIM905
    'stamp_ns frame game_time actor_id name kind class tags is_ego x y z qx qy qz qw roll pitch '
    'yaw vx vy vz wx wy wz ax ay az speed center_x center_y center_z length width height road_id '
    'section_id lane_id s lane_change_left lane_change_right road derived').split()


@pytest.fixture(scope='module')
def drive(tmp_path_factory):
    """Make a trajectory and a Parquet file of it."""
    folder = tmp_path_factory.mktemp('tables')
    assert main(['synth', str(folder / 'drive.json'), '--frames', '20', '--vehicles', '5',
                 '--objects', '3']) == 0
    assert main(['convert', str(folder / 'drive.json'), str(folder / 'drive.parquet')]) == 0
    return folder


def test_table_has_the_columns_of_the_interface(drive):
    table = pq.read_table(drive / 'drive.parquet')
    assert table.column_names == list(NAMES) == INTERFACE
    types = {field.name: str(field.type) for field in table.schema}
    assert types['name'].startswith('dictionary<values=string')
    assert (types['tags'], types['kind'], types['class']) == (
        'list<element: string>', 'string', 'string')
    assert (types['stamp_ns'], types['frame'], types['actor_id'], types['road_id']) == (
        'int64', 'int64', 'uint32', 'int32')
    assert {types[name] for name in ('game_time', 'x', 'qw', 'yaw', 's', 'ax', 'speed')} == {
        'double'}
    units = json.loads(table.schema.metadata[b'units'])
    assert (units['x'], units['ax'], units['yaw']) == ('m', 'm/s2', 'rad')
    assert table.schema.metadata[b'source'] == str(drive / 'drive.json').encode()
    assert b'state_sensor_ros 0.' in table.schema.metadata[b'version']


@pytest.mark.parametrize('file', one_of(
    sorted(FILES, key=lambda file: 'ncap' in file), n_always=3))
def test_table_has_independent_values_of_real_recordings(file):
    path = path_of(file)
    frames = json.loads(path.read_text())
    rows = iter(sensor.read_table(path).to_pylist())
    known = {}
    actors = [actors_of(frame) for frame in frames]
    for index, frame in enumerate(frames):
        for name, actor in actors[index].items():
            row = next(rows)
            assert (row['frame'], row['name'], tuple(row['tags'])) == (index, name, actor.tags)
            assert row['game_time'] == frame['game_time']
            assert row['stamp_ns'] == pytest.approx(frame['game_time'] * 1e9, abs=1e3)
            assert known.setdefault(name, row['actor_id']) == row['actor_id']
            assert row['is_ego'] == ('ego' in actor.tags)
            assert [row[key] for key in 'xyz'] == pytest.approx(actor.position, abs=1e-9)
            assert [row[key] for key in ('vx', 'vy', 'vz')] == pytest.approx(
                actor.velocity, abs=1e-9)
            found = [row[key] for key in ('qx', 'qy', 'qz', 'qw')]
            assert abs(np.dot(found, actor.orientation)) == pytest.approx(1, abs=1e-6)
            forward = turned(actor.orientation, (1.0, 0.0, 0.0))
            assert (math.cos(row['yaw']), math.sin(row['yaw'])) == pytest.approx(
                forward[:2] / np.hypot(*forward[:2]), abs=1e-9)
            assert row['speed'] == pytest.approx(np.dot(actor.velocity, forward), abs=1e-5)
            assert (row['kind'], row['class']) == ('vehicle', 'car')
            assert [row[key] for key in ('length', 'width', 'height')] == pytest.approx(CAR)
            check_acceleration(row, frames, actors, index, name)
            assert row['road_id'] is row['lane_change_left'] is None
    assert next(rows, None) is None
    assert len(set(known.values())) == len(known)


def check_acceleration(row, frames, actors, index, name):
    found, times = [row[key] for key in ('ax', 'ay', 'az')], [
        frame['game_time'] for frame in frames[max(index - 1, 0):index + 2]]
    if len(times) == 2:
        assert all(math.isnan(each) for each in found)
    elif times[0] < times[1] < times[2]:
        assert found == pytest.approx(np.subtract(
            actors[index + 1][name].velocity, actors[index - 1][name].velocity)
            / (times[2] - times[0]), abs=1e-6)


def test_table_has_boxes_and_lanes(drive):
    frames = json.loads((drive / 'drive.json').read_text())
    rows = pq.read_table(drive / 'drive.parquet').to_pylist()
    states = [each for frame in frames for each in (
        *frame['frame']['objects'], *frame['frame']['vehicles'])]
    actors = [actor for frame in frames for actor in actors_of(frame).values()]
    for row, each, actor in zip(rows, states, actors, strict=True):
        [(center, _, edges), *_] = actor.boxes
        assert [row['center_x'], row['center_y'], row['center_z']] == pytest.approx(
            center, abs=1e-9)
        assert sorted([row['length'], row['width'], row['height']]) == pytest.approx(
            sorted(edges), rel=1e-4)
        lane = each.get('control_state')
        if lane is None:
            assert row['lane_id'] is row['lane_change_left'] is None
            assert math.isnan(row['s'])
        else:
            assert row['length'] > row['width'] > row['height'] / 2
            assert {key: row[key] for key in lane if key != 's'} == {
                key: value for key, value in lane.items() if key != 's'}
            assert row['s'] == pytest.approx(lane['s'] / 100)


def test_table_of_a_bag_and_of_a_dataset(drive, tmp_path):
    assert main(['convert', str(drive / 'drive.json'), str(tmp_path / 'bag')]) == 0
    table, other = (sensor.read_table(path) for path in (drive / 'drive.json', tmp_path / 'bag'))
    for name in NAMES:
        if pa.types.is_floating(table.schema.field(name).type):
            assert table[name].to_pylist() == pytest.approx(
                other[name].to_pylist(), abs=1e-9, nan_ok=True)
        else:
            assert table[name].to_pylist() == other[name].to_pylist()
    carla = sensor.read_table(CARLA / 'episode_00000')
    assert {r['name'] for r in carla.to_pylist() if r['actor_id'] == 100} == {'vehicle_100'}
    assert set(carla['class'].to_pylist()) >= {'car'}
    assert any(abs(speed) > 0 for speed in carla['speed'].to_pylist() if not math.isnan(speed))


def test_frames_without_actors_are_rows_of_time_alone(drive, tmp_path, capsys):
    frames = json.loads((drive / 'drive.json').read_text())
    for i in (3, *range(12, 20)):
        frames[i]['frame'] = {'objects': [], 'vehicles': []}
    path = tmp_path / 'e.parquet'
    (tmp_path / 'e.json').write_text(json.dumps(frames[12:]))
    assert main(['convert', str(tmp_path / 'e.json'), str(path), '-q']) == 0
    assert pq.read_table(path)['game_time'].to_pylist() == [
        frame['game_time'] for frame in frames[12:]]
    path.unlink()
    (tmp_path / 'e.json').write_text(json.dumps(frames))
    assert main(['convert', str(tmp_path / 'e.json'), str(path), '-q']) == 0
    rows = pq.read_table(path).to_pylist()
    times = {row['frame']: row['game_time'] for row in rows}
    assert times == {i: frame['game_time'] for i, frame in enumerate(frames)}
    [blank] = [row for row in rows if row['frame'] == 3]
    assert {key for key, value in blank.items() if value is not None} == {
        'stamp_ns', 'frame', 'game_time'}
    with sensor.open_recording(path) as found, \
            sensor.open_recording(tmp_path / 'e.json') as expected:
        assert [frame.names for frame in found] == [frame.names for frame in expected]
        assert [frame.game_time for frame in found] == list(times.values())
        assert (len(found), len(found[3]), len(found[19])) == (20, 0, 0)
    # Every row of CSV has an actor: what is left out is named.
    assert main(['convert', str(path), str(tmp_path / 'e.csv'), '-q']) == 0
    assert 'CSV does not carry 9 frames without actors' in capsys.readouterr().err
    assert all(row['name'] for row in csv.read_csv(tmp_path / 'e.csv').to_pylist())


@pytest.mark.parametrize('suffix', ['.csv', '.csv.gz'])
def test_table_as_text(drive, tmp_path, suffix):
    out = tmp_path / f'out{suffix}'
    assert main(['convert', str(drive / 'drive.json'), str(out)]) == 0
    text = (gzip.decompress(out.read_bytes()) if suffix == '.csv.gz' else out.read_bytes())
    assert text.splitlines()[0].decode() == ','.join(f'"{name}"' for name in NAMES)
    table = csv.read_csv(pa.BufferReader(text))
    expected = pq.read_table(drive / 'drive.parquet')
    assert table['x'].to_pylist() == expected['x'].to_pylist()
    assert table['name'].to_pylist() == expected['name'].to_pylist()
    assert [tags.split(';') for tags in table['tags'].to_pylist()] == \
        expected['tags'].to_pylist()


@pytest.mark.parametrize('suffix', ['csv', 'parquet'])
def test_table_is_written_without_pandas(drive, tmp_path, suffix):
    """Loading it takes longer than converting a short recording."""
    words = ['convert', str(drive / 'drive.json'), str(tmp_path / f'drive.{suffix}'), '-q']
    assert run_python('-c', 'import sys; from state_sensor_ros.commands.cli import main; '
                      f'print(main({words}), "pandas" in sys.modules)').stdout == '0 False\n'


def test_table_of_some_columns(drive, tmp_path, refusal):
    out = tmp_path / 'some.parquet'
    assert main(['convert', str(drive / 'drive.json'), str(out), '--columns', 'speed,name']) == 0
    assert pq.read_table(out).column_names == ['name', 'speed']
    line = refusal('convert', drive / 'drive.json', tmp_path / 'no.parquet', '--columns', 'sped')
    assert line == "error: --columns: unknown column 'sped'; did you mean 'speed'?"
    line = refusal('convert', drive / 'drive.json', tmp_path / 'no.parquet', '--columns', 'ttc')
    assert line.startswith("error: --columns: found unknown column 'ttc'; expected some of stamp")
    line = refusal('convert', out, tmp_path / 'bag')
    assert line.startswith(f'error: {out}: found a table without frame, game_time, kind, tags, x')
    assert sorted(path.name for path in tmp_path.iterdir()) == ['some.parquet']


BACK = ['-p', 'debug_drawing:=true', '--outputs', 'autoware,derived_objects,vision']


def messages_of(path):
    """Return the messages of each topic of a bag, with their times."""
    messages = {}
    with Reader(path) as reader:
        for connection in reader.connections:
            messages[connection.topic] = []
        for connection, stamp, data in reader.messages():
            messages[connection.topic].append((stamp, bytes(data)))
    return messages


def there_and_back(path, folder, *words):
    """Convert a recording to a bag, directly and by a table; return the messages of both."""
    assert main(['convert', str(path), str(folder / 'a.parquet')]) == 0
    for source, bag in ((path, 'bag'), (folder / 'a.parquet', 'back')):
        assert main(['convert', str(source), str(folder / bag), *words]) == 0
    return messages_of(folder / 'bag'), messages_of(folder / 'back')


@pytest.mark.parametrize(('recording', 'place'), first_of(
    [('drive', ['-p', 'base_link_xyz:=[-1.3, 0.0, 0.0]']),
     *((each, []) for each in ('carla', FILES[0], 'sample', *FILES[1:]))], n_always=2))
def test_table_goes_back_into_the_same_bag(drive, tmp_path, recording, place):
    """Every topic is the same, message by message, but those of parts without a column."""
    path = {'drive': drive / 'drive.json', 'sample': SAMPLE,
            'carla': CARLA / 'episode_00000'}.get(recording) or path_of(recording)
    expected, found = there_and_back(path, tmp_path, *BACK, *place)
    # base_link is where the wheels say.
    others = {'/state_sensor/frame', '/state_sensor/markers', STEERING_TOPIC.name,
              *(() if place else (topic.name for topic in AutowareEgoEncoder.topics))}
    same = [topic for topic in expected if topic not in others]
    if recording == 'carla':
        same = [topic for topic in same if topic in found]
    for topic in same:
        assert found[topic] == expected[topic], topic
    kinds = {topic.rpartition('/')[2] for topic in same if expected[topic]}
    assert {'tf', 'actors', 'odometry', 'objects', 'detections', 'label_info'} <= kinds
    assert ('kinematic_state' in kinds) == (place != [])
    assert ('control_state' in kinds) == (recording in ('drive', 'sample'))
    assert found.keys() <= expected.keys()
