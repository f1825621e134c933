# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What a user of the library types to look into a recording, and that its numbers are right."""

from importlib.util import find_spec
import itertools
import json
import math
import re
import subprocess
import sys

from budgets import AWAIT_S
from mock_simulator import served
import numpy as np
from paths import ROOT, SAMPLE
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames


@pytest.fixture(scope='module')
def drive(tmp_path_factory):
    path = tmp_path_factory.mktemp('drive') / 'drive.json'
    assert main(['synth', str(path), '--vehicles', '6', '--objects', '3', '--frames', '120',
                 '-q']) == 0
    return path


def assert_same(frame, other):
    assert (frame.names, frame.tags, frame.generation, frame.game_time) == (
        other.names, other.tags, other.generation, other.game_time)
    np.testing.assert_array_equal(frame.kinematics, other.kinematics)


def test_recording_is_a_sequence_of_its_frames(drive):
    with sensor.open_recording(drive) as recording:
        frames = list(recording)
        assert len(recording) == len(frames) == 120
        for i in (0, 77, 3, 119, -1, -120):
            assert_same(recording[i], frames[i])
        assert [frame.game_time for frame in recording[10:40:10]] == [
            frames[i].game_time for i in (10, 20, 30)]
        assert recording[5:5] == []
        for i in (120, -121):
            with pytest.raises(IndexError, match=rf'frame -?\d+: .* has {len(recording)} frames'):
                recording[i]
        middle = frames[60].game_time
        assert recording.at(middle + 0.01).game_time == middle
        assert recording.at(-1e9).game_time == recording.start == frames[0].game_time
        assert recording.at(1e9).game_time == recording.end == frames[-1].game_time
        assert recording.duration == pytest.approx(recording.end - recording.start)


def test_recording_is_read_beside_a_loop(drive):
    with sensor.open_recording(drive) as recording:
        seen = 0
        for i, frame in enumerate(recording):
            if i % 20 == 0:
                assert_same(recording[-1 - i], recording[len(recording) - 1 - i])
                assert_same(recording[i], frame)
            seen += recording.duration > 0
        assert seen == 120
        assert not recording.faults


def test_recording_says_what_it_is(drive, tmp_path):
    with sensor.open_recording(drive) as recording:
        assert repr(recording) == f"Recording('{drive}')"
        len(recording)
        assert repr(recording) == f"Recording('{drive}', v2, 120 frames, 5.95 s)"
        [frame] = recording[:1]
        assert repr(frame) == (f'Frame(v2, t={frame.game_time:.2f} s, 9 actors, '
                               f'ego={frame.names[frame.ego]!r})')
        assert repr(frame.boxes) == 'Boxes(9 of 9 actors)'
        assert repr(frame.wheels) == 'Wheels(24 of 6 actors)'
        assert repr(frame.lanes).startswith('Lanes(6 actors in ')
        track = recording.ego_track()
        assert repr(track) == (f'Track({track.name!r}, 120 frames, {recording.start:.2f} to '
                               f'{recording.end:.2f} s)')
    assert main(['convert', str(drive), str(tmp_path / 'drive_bag'), '-q']) == 0
    with sensor.open_recording(tmp_path / 'drive_bag') as recording:
        assert repr(recording).endswith("drive_bag', 120 frames)")


def test_frame_answers_by_name(drive):
    with sensor.open_recording(drive) as recording:
        frame = recording[0]
    assert len(frame) == 9
    assert frame.names[3] in frame
    assert 'nobody' not in frame
    assert frame.row(frame.names[3]) == 3
    assert frame.ego_row == frame.ego
    nobody = frame.select(np.flatnonzero(np.arange(9) != frame.ego))
    assert nobody.ego is None
    with pytest.raises(sensor.StateError, match='found no ego'):
        nobody.position_xyz[nobody.ego_row]
    with pytest.raises(sensor.StateError, match="found no actor 'nobody'"):
        frame.row('nobody')
    with pytest.raises(sensor.StateError, match=f'did you mean {frame.names[3]!r}'):
        frame.row(f'{frame.names[3]}x')
    assert bool(frame.select(np.zeros(0, np.int64)))
    assert {sensor.Kind(kind) for kind in frame.kinds} == {sensor.Kind.VEHICLE, sensor.Kind.OBJECT}


def test_frame_as_a_table_has_the_columns_of_the_interface(drive):
    with sensor.open_recording(drive) as recording:
        frame = recording[7]
    table = frame.to_pandas()
    assert list(table.columns) == sensor.read_table(drive, n_frames=1).column_names
    np.testing.assert_array_equal(table[['x', 'y', 'z']], frame.position_xyz)
    assert table.loc[table.is_ego, 'name'].tolist() == [frame.names[frame.ego]]


def test_actors_have_kind_class_and_times(drive):
    frames = json.loads(drive.read_text())
    with sensor.open_recording(drive) as recording:
        actors = recording.actors
        first = recording[0]
        assert list(actors) == list(first.names)
        ego = actors[first.names[first.ego]]
        assert (ego.kind, ego.first, ego.last) == (
            sensor.Kind.VEHICLE, recording.start, recording.end)
    assert len(frames) == 120
    table = sensor.read_table(drive, columns=['name', 'class']).to_pylist()
    assert {(row['name'], row['class']) for row in table} == {
        (actor.name, actor.class_name) for actor in actors.values()}


def test_track_has_the_numbers_of_the_table(drive):
    rows = sensor.read_table(drive).to_pylist()
    with sensor.open_recording(drive) as recording:
        for track in (recording.ego_track(), recording.track(recording[0].names[-1])):
            own = [row for row in rows if row['name'] == track.name]
            assert len(track) == len(own) == 120

            def column(*names, rows=own):
                return np.array([[math.nan if row[name] is None else row[name] for name in names]
                                 for row in rows], np.float64)

            for values, names in (
                    (track.position_xyz, 'x y z'), (track.orientation_xyzw, 'qx qy qz qw'),
                    (track.velocity_xyz, 'vx vy vz'), (track.acceleration_xyz, 'ax ay az'),
                    (track.angular_velocity_xyz, 'wx wy wz'), (track.speed[:, None], 'speed'),
                    (track.yaw[:, None], 'yaw'), (track.game_time[:, None], 'game_time'),
                    (track.road_id[:, None], 'road_id'), (track.lane_id[:, None], 'lane_id'),
                    (track.section_id[:, None], 'section_id'), (track.s[:, None], 's')):
                np.testing.assert_allclose(values, column(*names.split()), atol=1e-6)


def test_track_is_interpolated_between_frames_only(drive):
    with sensor.open_recording(drive) as recording:
        track = recording.ego_track()
    times = track.game_time
    between = track.at([times[0] - 1, times[0], 0.25 * times[3] + 0.75 * times[4], times[-1],
                        times[-1] + 1])
    assert np.isnan(between.position_xyz).any(axis=1).tolist() == [True, False, False, False, True]
    np.testing.assert_array_equal(between.position_xyz[[1, 3]], track.position_xyz[[0, -1]])
    np.testing.assert_allclose(between.position_xyz[2], 0.25 * track.position_xyz[3]
                               + 0.75 * track.position_xyz[4], atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(between.orientation_xyzw[1:4], axis=1), 1.0)
    assert between.lane_id[2] == track.lane_id[3]
    assert track.at(times[5]).speed.shape == (1,)
    with pytest.raises(ValueError, match='read-only'):
        track.speed[0] = 1.0


def trajectory(path, frames):
    path.write_text(json.dumps(frames))
    return path


def test_track_has_gaps_where_the_actor_is_absent(tmp_path):
    frames = json.loads(json.dumps(list(itertools.islice(TrafficFrames(3, 0, 10.0, 1, 'v2'), 8))))
    name = next(each['state']['name'] for each in frames[0]['frame']['vehicles']
                if 'ego' not in each['state']['tags'])
    for frame in frames[3:5]:
        frame['frame']['vehicles'] = [each for each in frame['frame']['vehicles']
                                      if each['state']['name'] != name]
    # A repeated frame is no absence.
    frames.insert(7, frames[6])
    with sensor.open_recording(trajectory(tmp_path / 'gap.json', frames)) as recording:
        track = recording.track(name)
        assert len(track) == 6
        middle = track.at((track.game_time[1:] + track.game_time[:-1]) / 2)
        assert np.isnan(middle.speed).tolist() == [False, False, True, False, False]
        assert np.isnan(track.acceleration_xyz[2]).all()
        with pytest.raises(sensor.StateError, match="no actor 'nobody'"):
            recording.track('nobody')
        near = re.escape(f'did you mean {name!r}')
        with pytest.raises(sensor.StateError, match=near):
            recording.track(name + 'x')
        with pytest.raises(KeyError, match=near):
            recording.actors[name + 'x']
        assert recording.actors.get(name + 'x') is None


def test_lane_changes_are_those_of_the_lane_ids():
    with sensor.open_recording(SAMPLE) as recording:
        changes = recording.lane_changes()
        lanes, expected = {}, []
        for frame in recording:
            for row, (road, section, lane) in zip(
                    frame.lanes.actor.tolist(), frame.lanes.ids.tolist(), strict=True):
                name = frame.names[row]
                last = lanes.get(name)
                if last is not None and last[:2] == (road, section) and last[2] != lane:
                    expected.append((name, frame.game_time, last[2], lane))
                lanes[name] = road, section, lane
    assert expected
    assert [(each.name, each.game_time, each.from_lane, each.to_lane)
            for each in changes] == expected
    for each in changes:
        # The lanes of the sample are on the right of the middle.
        assert each.direction == ('left' if each.to_lane > each.from_lane else 'right')


def test_selection_is_a_recording(drive):
    with sensor.open_recording(drive) as recording:
        ego = recording[0].names[recording[0].ego]
        with recording.select(names=[ego], start=1.0, end=3.0, rate=10.0) as part:
            assert len(part) == len(list(part)) == 21
            assert {name for frame in part for name in frame.names} == {ego}
            assert part.start == pytest.approx(recording.start + 1.0)
            assert part[-1].names == (ego,)
            with part.select(end=1.0) as less:
                assert len(less) == 11
        with recording.select(tags=['vehicle']) as vehicles:
            assert set(vehicles.actors) == {name for name, actor in recording.actors.items()
                                            if actor.kind == sensor.Kind.VEHICLE}
        assert len(recording) == 120


def test_single_text_is_not_taken_as_its_characters(drive):
    """``select(tags='vehicle')`` selected no actor at all, without a word."""
    with sensor.open_recording(drive) as recording:
        name = recording[0].names[1]
        assert recording.select(names=name)[0].names == (name,)
        assert recording.select(tags='ego')[0].names == recording.select(tags=['ego'])[0].names
    if find_spec('pyarrow'):
        assert sensor.read_table(drive, columns='speed').column_names == ['speed']


@pytest.mark.parametrize(('words', 'warning'), [
    ({'tags': ['vehicel']}, "passes desired_tags vehicel; did you mean 'vehicle'"),
    ({'names': 'nobody'}, 'has the actor nobody'), ({'end': 60.0}, 'end, 60 s, is after the end')])
def test_selection_that_matches_nothing_is_a_warning(drive, words, warning):
    for use in (list, len, lambda part: part.plot() if find_spec('matplotlib') else list(part)):
        with sensor.open_recording(drive) as recording, recording.select(**words) as part, \
                pytest.warns(UserWarning, match=warning):
            use(part)


@pytest.mark.parametrize(('numbers', 'name'), [
    ({'rate': 0.0}, 'rate'), ({'rate': -1.0}, 'rate'), ({'rate': math.nan}, 'rate'),
    ({'rate': math.inf}, 'rate'), ({'start': math.nan}, 'start'), ({'end': math.nan}, 'end')])
def test_selection_by_an_impossible_number_is_refused(drive, numbers, name):
    with sensor.open_recording(drive) as recording, \
            pytest.raises(sensor.ConfigError, match=f'^{name}: found '):
        recording.select(**numbers)


def test_part_outlives_the_recording(drive):
    """It did only if the recording had an index when it was closed."""
    with sensor.open_recording(drive) as recording:
        part = recording.select(start=0.1)
    with part:
        assert len(part) == len(list(part)) > 0
    with pytest.raises(sensor.StateError, match='the recording is closed'):
        recording.select(start=0.1)


def test_parameters_have_an_effect_and_unknown_ones_are_refused(drive):
    with sensor.open_recording(drive) as recording:
        expected = 2.0 * recording[0].boxes.size_xyz
    with sensor.open_recording(drive, parameters={'obb_extents': 'half'}) as recording:
        np.testing.assert_array_equal(recording[0].boxes.size_xyz, expected)
    for opened in (lambda **values: sensor.open_recording(drive, **values), sensor.open_stream):
        with pytest.raises(sensor.ConfigError, match=r"obb_extent.*did you mean 'obb_extents'"):
            opened(parameters={'obb_extent': 'half'})


@pytest.mark.parametrize('limit', [{'n_frames': 0}, {'n_frames': -1}, {'seconds': -1.0},
                                   {'seconds': math.nan}])
def test_limit_of_a_table_is_in_its_range(drive, limit):
    with pytest.raises(sensor.ConfigError, match=f'^{next(iter(limit))}: found '):
        sensor.read_table(drive, **limit)


def test_recording_that_is_missing_is_a_file_not_found(tmp_path):
    for name in ('none.json', 'none_bag', 'none.parquet'):
        with pytest.raises(FileNotFoundError) as caught:
            sensor.open_recording(tmp_path / name)
        assert isinstance(caught.value, sensor.TrajectoryFormatError)
    if 'pyarrow' in sys.modules:
        with pytest.raises(FileNotFoundError):
            sensor.read_table(tmp_path / 'none.parquet')


def test_standard_input_is_read_once():
    program = ('import state_sensor_ros as sensor\n'
               'recording = sensor.open_recording("-")\n'
               'print(sum(1 for frame in recording))\n'
               'try:\n    len(recording)\nexcept sensor.StateError as error:\n    print(error)')
    found = subprocess.run([sys.executable, '-c', program], cwd=ROOT, stdin=SAMPLE.open('rb'),
                           capture_output=True, text=True, timeout=AWAIT_S, check=True)
    n_frames, refusal = found.stdout.splitlines()
    assert int(n_frames) > 10
    assert refusal.startswith('-: can be read only once')


def test_table_of_a_stream():
    frames = list(itertools.islice(TrafficFrames(4, 1, 20.0, 1, 'v2'), 30))
    for limits, n_frames in (({'n_frames': 7}, 7), ({'seconds': 0.5}, 11), ({}, 30)):
        with served(frames, rate='max') as simulator, \
                sensor.open_stream('127.0.0.1', simulator.port) as stream:
            assert repr(stream).endswith(', 0 frames)')
            table = sensor.read_table(stream, columns=['frame', 'speed'], **limits)
        assert table.num_rows == 5 * n_frames
        assert table.column_names == ['frame', 'speed']
        assert f'{n_frames} frame' in repr(stream) or stream.n_frames > n_frames
