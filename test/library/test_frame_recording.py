# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Recordings as the library reads them: every number as the file has it, faults apart."""

from dataclasses import replace
import json
import pickle
import re
from types import MappingProxyType

import numpy as np
from paths import CARLA, SAMPLE
import pyarrow.parquet as pq
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.files.table import TableRecording
from state_sensor_ros.library import index


@pytest.fixture
def drive(tmp_path):
    path = tmp_path / 'drive.json'
    assert main(['synth', str(path), '--frames', '12', '--vehicles', '4', '--objects', '2']) == 0
    return path


def test_library_reads_a_frame_of_a_table_by_its_row_group(drive, tmp_path, monkeypatch):
    path = tmp_path / 'drive.parquet'
    assert main(['convert', str(drive), str(path)]) == 0
    # Frames begin in the middle of row groups, and are in several of them.
    pq.write_table(pq.read_table(path), path, row_group_size=7)
    monkeypatch.setattr(index, '_PERIOD', 2)
    with sensor.open_recording(path) as recording:
        frames = list(recording)
        assert len(recording) == len(frames) == 12
        read = []
        batches = TableRecording._batches
        monkeypatch.setattr(TableRecording, '_batches', lambda self, begin: (
            read.append(item.num_rows) or item for item in batches(self, begin)))
        for i in (11, 0, 5, -1):
            assert recording[i].names == frames[i].names
            np.testing.assert_array_equal(recording[i].kinematics, frames[i].kinematics)
    assert len(read) < 8 * 5


def test_library_frames_cannot_be_changed(drive):
    with sensor.open_recording(drive) as recording:
        frame = next(iter(recording))
    for array in (frame.position_xyz, frame.orientation_xyzw, frame.velocity_xyz, frame.kinds,
                  frame.angular_velocity_xyz, frame.boxes.size_xyz, frame.lanes.s, frame.inputs,
                  frame.wheels.speed):
        with pytest.raises(ValueError, match='read-only'):
            array[...] = 0
    for array in (frame.position_xyz, frame.orientation_xyzw, frame.velocity_xyz,
                  frame.angular_velocity_xyz):
        assert array.dtype == np.float64
    assert 'ego' in frame.tags[frame.ego]
    assert frame.select(np.array([0])).names == frame.names[:1]
    assert frame.select(np.flatnonzero(np.arange(len(frame.names)) != frame.ego)).ego is None


@pytest.mark.parametrize('name', ['drive.json', 'drive.mcap', 'drive.parquet', 'drive.osi'])
def test_library_frames_pass_between_processes(drive, tmp_path, name):
    path = tmp_path / name
    assert path == drive or main(['convert', str(drive), str(path), '--quiet']) == 0
    with sensor.open_recording(path) as recording:
        frame = recording[3]
        names = MappingProxyType({7: 'road'})
        frame = replace(frame, lanes=replace(frame.lanes, road_names=names))
    copy = pickle.loads(pickle.dumps(frame))
    assert (copy.names, copy.tags, copy.game_time) == (frame.names, frame.tags, frame.game_time)
    np.testing.assert_array_equal(copy.kinematics, frame.kinematics)
    np.testing.assert_array_equal(copy.boxes.size_xyz, frame.boxes.size_xyz)
    np.testing.assert_array_equal(copy.lanes.ids, frame.lanes.ids)
    assert copy.lanes.road_names == {7: 'road'}


def test_library_reports_what_was_dropped(tmp_path):
    [good] = json.loads(SAMPLE.read_text())[:1]
    bad_actor, twice = (json.loads(json.dumps(good)) for _ in range(2))
    vehicles = bad_actor['frame']['vehicles']
    vehicles.append(json.loads(json.dumps(vehicles[0])))
    vehicles[-1]['state']['name'] = 'broken'
    vehicles[-1]['state']['odometry']['pose']['position'] = 'here'
    twice['frame']['vehicles'] *= 2
    path = tmp_path / 'bad.json'
    path.write_text(json.dumps([good, bad_actor, {'frame': 3}, twice, good]))
    with sensor.open_recording(path) as recording:
        names = [frame.names for frame in recording]
        assert len(names) == 4
        assert len(set(names)) == 1
        kinds = [fault.kind for fault in recording.faults]
        assert kinds[:2] == ['dropped', 'payload']
        assert set(kinds[2:]) == {'duplicate'}
        assert all('line 1 column' in fault.place and '; expected ' in fault.text
                   for fault in recording.faults)
        assert 'vehicles' in str(recording.faults[0])
        assert [fault.index for fault in recording.faults[:3]] == [1, 2, 3]
        for fault in recording.faults:
            assert str(fault.error) == fault.text
            assert fault.error.__traceback__ is None
            assert fault.error.expected


@pytest.mark.thorough
def test_library_keeps_a_limited_number_of_faults(tmp_path):
    path = tmp_path / 'many.json'
    path.write_text(json.dumps([{'frame': 3}] * 1500))
    with sensor.open_recording(path) as recording:
        assert list(recording) == []
        assert len(recording.faults) == 1000
        assert recording.faults.counts['payload'] == 1500


def test_library_raises_errors_of_the_package(drive, tmp_path):
    with pytest.raises(sensor.TrajectoryFormatError, match='no such file'):
        sensor.open_recording(tmp_path / 'none.json')
    with pytest.raises(sensor.ConfigError, match='obb_extents'):
        sensor.open_recording(drive, parameters={'obb_extents': 'hlaf'})
    (tmp_path / 'not.json').write_text('[{"frame": x}]')
    with sensor.open_recording(tmp_path / 'not.json') as recording, \
            pytest.raises(sensor.StateSensorError, match='line 1'):
        list(recording)
    with pytest.raises(sensor.StateError, match='the recording is closed'):
        list(recording)
    with sensor.open_recording(drive) as recording, \
            pytest.raises(sensor.StateError, match='a second loop was begun'):
        list(zip(recording, recording, strict=True))


def test_library_gives_frames_without_a_time_one(tmp_path):
    """A frame without a time gets that with which it is published; a converted one gets none."""
    actor = {'position': [1, 2, 3], 'orientation': [0, 0, 0, 1], 'velocity': [0, 0, 0],
             'tags': ['vehicle', 'ego'], 'name': 'a'}
    path = tmp_path / 'timeless.json'
    path.write_text(json.dumps([{'frame': [actor]}] * 3))
    with sensor.open_recording(path) as recording:
        assert [frame.game_time for frame in recording] == pytest.approx([0.0, 0.05, 0.1])
    with sensor.open_recording(path, is_timed=False) as recording:
        assert [np.isnan(frame.game_time) for frame in recording] == [True] * 3


def test_library_has_the_payload_of_each_frame(drive, tmp_path):
    """A member that no frame has can be read from it; also those of no frame are counted."""
    frames = json.loads(drive.read_text())
    for i, frame in enumerate(frames):
        frame['weather'] = i
    texts = [json.dumps(frame) for frame in frames]
    texts.insert(2, '{"frame": 3}')
    drive.write_text(f'[{",".join(texts)}]')
    with sensor.open_recording(drive) as recording:
        for _ in range(2):
            found = [(recording.index, json.loads(recording.payload)['weather'])
                     for _ in recording]
            assert found == [(i + (i >= 2), i) for i in range(12)]
            assert recording.n_bytes == sum(map(len, texts))
        assert recording.sensor_counts is None


def test_library_counts_the_files_of_sensors():
    with sensor.open_recording(CARLA / 'episode_00000') as recording:
        frames = list(recording)
    assert recording.sensor_counts
    assert set(recording.sensor_counts.values()) <= {*range(1, len(frames) + 1)}


@pytest.mark.parametrize(('method', 'values', 'error'), [
    ('plot', {'at': 500.0}, 'at: found 500 s; expected 0 to '),
    ('plot', {'at': -3.0}, 'at: found -3 s; expected 0 to '),
    ('animate', {'at': 500.0}, 'at: found 500 s; expected 0 to '),
    ('plot', {'color': 'sped'}, 'color: found sped; expected speed or actor'),
    ('animate', {'color': 'sped'}, 'color: found sped; expected speed or actor'),
    ('plot', {'size': (1.0, None)}, 'size: found (1.0, None); expected (2.8, 2) to (200, 200)')])
def test_pictures_refuse_values_out_of_their_range(method, values, error):
    pytest.importorskip({'plot': 'matplotlib', 'animate': 'plotly'}[method])
    with sensor.open_recording(SAMPLE) as recording, pytest.raises(sensor.ConfigError) as raised:
        getattr(recording, method)(**values)
    assert str(raised.value).startswith(error)


def test_html_of_measures_has_their_names_and_units():
    with sensor.open_recording(SAMPLE) as recording:
        html = recording.safety()._repr_html_()
    assert re.search(r'<td>time to collision</td><td>[\d.]+ s</td><td>[\d.]+ s</td>', html)
    assert 'time_' not in html
