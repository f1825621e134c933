# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Recorder logs of CARLA 0.9 as recordings."""

from contextlib import suppress
import json
import math
from pathlib import Path
import random
import struct

from budgets import is_large, tries
import carla9_logs as logs
import numpy as np
import pytest
from raw_actors import matrix_of

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.frame import INDICATORS_BOTH, INDICATORS_LEFT, INDICATORS_UNKNOWN
from state_sensor_ros.rotations import rpy_from_quaternion
from state_sensor_ros.simulators.carla9.frames import from_rep103, to_rep103

MODEL = 'vehicle.tesla.model3'


@pytest.fixture(autouse=True)
def _in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(data, name='drive.log'):
    Path(name).write_bytes(data)
    return name


def read(data, **parameters):
    """Return the frames of a log, and the errors and dropped actors."""
    with sensor.open_recording(write(data), parameters=parameters) as recording:
        return list(recording), [str(fault.error) for fault in recording.faults]


def frames_of(name):
    with sensor.open_recording(name) as recording:
        return list(recording)


def spawned(number=8, **attributes):
    return logs.counted(2, [logs.added(number, MODEL, **attributes)])


def placed(*actors):
    """Return positions of ids at x in m."""
    return logs.counted(6, [logs.vectors(number, 100.0 * x, 0, 0, 0, 0, 0)
                            for number, x in actors])


def test_recorder_log_has_the_numbers_of_each_actor_in_meters_and_rep_103():
    """Against those that the log is written of; the spectator is no actor."""
    frames, faults = read(logs.drive())
    assert faults == []
    for i, frame in enumerate(frames):
        t, hero = 0.05 * i, frame.ego
        truck, walker, cone = (frame.row(name) for name in (
            'vehicle.carlamotors.firetruck_9', 'walker.pedestrian.0001_5',
            'static.prop.trafficcone01_3'))
        assert frame.game_time == pytest.approx(t)
        assert len(frame) == 6
        assert frame.position_xyz[[hero, truck, walker, cone]] == pytest.approx(np.array([
            (1 + 9 * t, -2 - 3 * t, 0.4 + 0.5 * t), (20 + 5 * t, 3.0, 0.3),
            (3.0, -4 + 1.5 * t, 0.95), (0.1, -0.2, 0.03)]), abs=1e-5)
        assert np.degrees(rpy_from_quaternion(frame.orientation_xyzw[hero])) == pytest.approx(
            (3.0, -5.0, -30 - 20 * t), abs=1e-4)
        assert frame.velocity_xyz[[hero, truck, walker]].tolist() == [
            [9, -3, 0.5], [5, 0, 0], [0, 1.5, 0]]
        assert np.degrees(frame.angular_velocity_xyz[hero]) == pytest.approx((-1, -2, -20))
        boxes = dict(zip(frame.boxes.actor.tolist(), zip(
            frame.boxes.position_xyz, frame.boxes.size_xyz, strict=True), strict=True))
        assert {row: size.round(6).tolist() for row, (_, size) in boxes.items()} == {
            hero: [4.8, 2.0, 1.5], truck: [8.0, 2.6, 3.2], walker: [0.36, 0.36, 1.86]}
        axes = matrix_of(frame.orientation_xyzw[hero])
        assert boxes[hero][0] == pytest.approx(
            frame.position_xyz[hero] + axes @ (0.04, -0.01, 0.7), abs=1e-5)
        assert frame.inputs[truck, :3].tolist() == [0.0, 1.0, 0.5]


def test_recorder_log_signs_are_those_of_the_client_library():
    carla = pytest.importorskip('carla')
    chance = random.Random(7)
    for _ in range(50):
        roll, pitch, yaw = (chance.uniform(-180, 180), chance.uniform(-89, 89),
                            chance.uniform(-180, 180))
        place = [chance.uniform(-100, 100) for _ in range(3)]
        transform = carla.Transform(carla.Location(*place),
                                    carla.Rotation(pitch=pitch, yaw=yaw, roll=roll))
        moving = [chance.uniform(-9, 9) for _ in range(6)]
        [row] = to_rep103(np.array([[*place, roll, pitch, yaw, *moving]]))
        assert from_rep103(tuple(row)) == pytest.approx([*place, roll, pitch, yaw, *moving])
        # A point of the body in both axes is the same point of the world in both axes.
        point = np.array([1.0, 2.0, 3.0, 1.0])
        world = np.array(transform.get_matrix()) @ point
        mine = matrix_of(row[3:7]) @ (logs.MIRROR @ point[:3]) + row[:3]
        assert np.allclose(mine, logs.MIRROR @ world[:3], atol=1e-3)
        forward = transform.get_forward_vector()
        assert np.allclose(matrix_of(row[3:7])[:, 0], (forward.x, -forward.y, forward.z),
                           atol=1e-5)


def test_recorder_log_has_names_tags_inputs_times_and_displays():
    frames, faults = read(logs.drive())
    frame = frames[2]
    assert faults == []
    assert dict(zip(frame.names, frame.tags, strict=True)) == {
        'static.prop.trafficcone01_3': ('prop',), 'walker.pedestrian.0001_5': ('pedestrian',),
        'traffic.traffic_light_6': ('traffic_light',),
        'traffic.speed_limit.30_7': ('traffic_sign', 'speed_limit_sign'),
        'hero': ('vehicle', 'car', 'ego'),
        'vehicle.carlamotors.firetruck_9': ('vehicle', 'truck')}
    assert (frame.game_time, frame.sample_count, frame.time) == (0.1, 3, 1637671165)
    assert frame.inputs[frame.ego] == pytest.approx(
        (0.5, 0.0, -0.25, -math.radians(10.5)), abs=1e-6)
    assert frame.traffic_lights.names == ('traffic.traffic_light_6',)
    assert [shown.extension.displays()[2] for shown in frames] == [
        'red', 'yellow', 'green', '', '', 'red']
    assert frame.extension.displays()[3] == '30'
    assert frame.ids.tolist() == [3, 5, 6, 7, 8, 9]
    assert frame.indicators[frame.ego] == INDICATORS_LEFT
    assert dict(zip(frame.names, frame.indicators.tolist(), strict=True)) == {
        **dict.fromkeys(frame.names, INDICATORS_UNKNOWN), 'hero': INDICATORS_LEFT,
        'vehicle.carlamotors.firetruck_9': INDICATORS_BOTH}
    assert len(frames[0].select(np.array([3, 4])).extension.displays()) == 2
    assert 'static.prop.mesh_4' in read(logs.drive(), **{'carla9.static': True})[0][0]


def test_recorder_log_without_velocities_has_those_of_the_movement():
    for frame in read(logs.drive(has_more=False))[0]:
        assert frame.velocity_xyz[frame.ego] == pytest.approx((9.0, -3.0, 0.5), abs=1e-3)
        # The axis of the yaw is that of the world.
        assert frame.angular_velocity_xyz[frame.ego] == pytest.approx(
            (0.0, 0.0, -math.radians(20.0)), abs=1e-4)
        walker = frame.row('walker.pedestrian.0001_5')
        assert frame.velocity_xyz[walker] == pytest.approx((0.0, 1.5, 0.0), abs=1e-3)


def test_recorder_log_does_not_take_a_jump_for_a_velocity():
    frames, _ = read(logs.header() + b''.join(
        logs.frame(i + 1, 0.1 * i, spawned() if i == 0 else b'', placed((8, x)))
        for i, x in enumerate((0.0, 1.0, 500.0, 502.0))))
    assert [frame.velocity_xyz[0, 0] for frame in frames] == pytest.approx([10, 10, 20, 20])
    frames, _ = read(logs.header() + logs.frame(1, 0.0, spawned(), placed((8, 0.0)))
                     + logs.frame(2, 5.0, placed((8, 1.0))))
    assert all(np.isnan(frame.velocity_xyz).all() for frame in frames)


@pytest.mark.parametrize(('roles', 'ego', 'found'), [
    (('ego_vehicle', 'hero'), '', 1), (('ego_vehicle', 'autopilot'), '', 0),
    (('autopilot', 'autopilot'), '', None), (('a', 'b'), 'b', 1), (('a', 'b'), '10', 0),
    (('hero', 'autopilot'), f'{MODEL}_11', 1),
    (('a', 'hero'), 'c', None), (('hero', 'hero'), '', 0)])
def test_recorder_log_has_the_ego_of_the_parameter(roles, ego, found):
    [frame], faults = read(logs.header() + logs.frame(1, 0.0, *[
        spawned(10 + i, role_name=role) for i, role in enumerate(roles)],
        placed((10, 1.0), (11, 2.0))), **{'carla9.ego': ego})
    assert (frame.ego, faults) == (found, [])
    assert len(set(frame.names)) == 2
    assert not {'autopilot'} & set(frame.names)


def test_recorder_log_with_an_id_that_is_used_again():
    frames, faults = read(logs.header() + logs.frame(1, 0.0, spawned(), placed((8, 0.0)))
                          + logs.frame(2, 0.1, logs.counted(3, [struct.pack('<I', 8)]))
                          + logs.frame(3, 0.2, spawned(), placed((8, 50.0)))
                          # Additions are written before removals.
                          + logs.frame(4, 0.3, spawned(), logs.counted(3, [struct.pack('<I', 8)]),
                                       placed((8, 51.0)))
                          + logs.frame(5, 0.4, placed((8, 52.0), (12, 0.0))))
    assert [frame.names for frame in frames] == [
        (f'{MODEL}_8',), (), (f'{MODEL}_8_2',), (f'{MODEL}_8_3',), (f'{MODEL}_8_3',)]
    # It is another actor: its place is no movement of the first one.
    assert np.isnan(frames[2].velocity_xyz).all()
    assert frames[3].velocity_xyz[0, 0] == pytest.approx(10.0)
    assert faults == ['actor 12: found a position; expected an actor that was added']


def test_recorder_log_cut_at_any_place_gives_its_whole_frames(capsys):
    data = logs.drive(3)
    ends = [len(data) - len(logs.drive(3)) + len(logs.drive(i)) for i in range(4)]
    for end in range(2 + len(logs.text('C')), len(data), 7 if is_large() else 31):
        n_whole = sum(end >= each for each in ends[1:])
        write(data[:end])
        if n_whole:
            assert len(frames_of('drive.log')) == n_whole
        else:
            with pytest.raises(sensor.TrajectoryFormatError, match='the end of the file'):
                frames_of('drive.log')
    write(data[:ends[2] + 9])
    assert main(['inspect', 'drive.log']) == 0
    assert 'repair' in capsys.readouterr().err
    assert main(['repair', 'drive.log', 'whole.log']) == 0
    assert Path('whole.log').read_bytes() == data[:ends[2]]


@pytest.mark.parametrize(('frame', 'words'), [
    (logs.packet(6, struct.pack('<HI', 3, 8)), 'frame 1: packet 6: found 6 bytes; expected 3'),
    (logs.packet(2, b'\1\0' + bytes(30)), 'frame 1: packet 2: found 32 bytes'),
    (logs.packet(22, b'\1\0' + struct.pack('<II', 8, 2 ** 31)), 'frame 1: packet 22: found'),
    (logs.packet(0, bytes(24)), 'frame 1: found another start before its end')])
def test_recorder_log_names_a_frame_that_it_cannot_read(frame, words):
    frames, faults = read(logs.header() + logs.frame(1, 0.0, spawned(), placed((8, 0.0)))
                          + logs.frame(2, 0.1, frame) + logs.frame(3, 0.2, placed((8, 0.5))))
    assert [each.game_time for each in frames if len(each)] == [0.0, 0.2]
    assert len([fault for fault in faults if words in fault]) == 1, faults


@pytest.mark.parametrize(('first', 'words'), [
    (logs.frame(1, math.nan, spawned()), 'frame 0: elapsed: found nan'),
    (logs.frame(1, -1.0), 'frame 0: elapsed: found -1'),
    (logs.packet(0, bytes(3)) + logs.packet(1), 'frame 0: start: found 3 bytes; expected 24')])
def test_recorder_log_names_a_frame_without_a_time(first, words):
    frames, [fault] = read(logs.header() + first + logs.frame(2, 0.1))
    assert [frame.game_time for frame in frames] == [0.1]
    assert words in fault


def test_recorder_log_with_numbers_that_are_none_and_unknown_packets(capsys):
    nan = (math.nan,) * 6
    data = logs.header(town='Tówn \xff', date=-5) + logs.frame(
        2 ** 40, 0.0, spawned(), logs.packet(200, bytes(100)), logs.packet(4, b'\0\0'),
        logs.counted(6, [logs.vectors(8, *nan)]), logs.counted(13, [logs.vectors(8, *nan)]),
        logs.counted(12, [logs.vectors(8, *nan)]),
        logs.counted(8, [struct.pack('<IfffBi', 8, 9.0, -1.0, math.nan, 0, 0)])) + logs.frame(
            2, 1e8, placed((8, 3e36)))
    frames, faults = read(data)
    assert faults == ['packet 200: found an unknown member, which is ignored; expected none']
    assert (frames[0].time, frames[0].sample_count) == (0, 0)
    assert np.isnan(frames[0].kinematics).all()
    assert frames[0].inputs[0, :2].tolist() == pytest.approx([0.0, math.nan], nan_ok=True)
    assert frames[0].inputs[0, 2] == -1.0
    assert main(['convert', 'drive.log', 'bag', '--quiet']) == 0
    capsys.readouterr()
    # As the weather in logs of a newer CARLA.
    assert main(['inspect', 'drive.log']) == 0
    assert 'unknown members: 1' in capsys.readouterr().out


def test_recorder_log_with_random_damage_is_an_error_or_a_recording():
    chance, data, n_read = random.Random(3), logs.drive(4), 0
    for _ in range(tries(40)):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 8)):
            at = chance.randrange(18, len(damaged))
            damaged[at] = chance.randrange(256)
        # Any other error is a defect.
        with suppress(sensor.StateSensorError):
            n_read += len(frames_of(write(bytes(damaged))))
    assert n_read > tries(40)


def test_recorder_log_says_what_is_derived_and_assumed(capsys):
    """Without records of velocities and boxes, as before 0.9.13, and in a table of it."""
    name = write(logs.drive(20, has_more=False))
    assert main(['inspect', name, '--safety']) == 0
    report = capsys.readouterr().out
    assert 'derived velocities' in report
    assert 'nothing compared: with a velocity derived from positions' in report
    assert 'sizes of 3 actors (car 1, person 1, truck 1) are assumed by class' in report
    assert 'velocities of 3 actors (car 1, person 1, truck 1) are derived from positions' in report
    assert main(['convert', name, 'drive.parquet']) == 0
    frames = frames_of(name)
    back = frames_of('drive.parquet')
    assert [frame.is_derived(1).tolist() for frame in back] == [
        frame.is_derived(1).tolist() for frame in frames]
    assert sensor.read_table('drive.parquet')['derived'].to_pylist()[-2:] == ['velocity;size'] * 2


@pytest.mark.parametrize('halves', [(90.0, 0.0, 70.0), (90.0, 40.0, 25000.0)])
def test_recorder_log_with_the_boxes_of_two_wheelers_that_cannot_be(halves):
    """Of CARLA 0.9.11 to 0.9.14, in cm."""
    [frame], faults = read(logs.header() + logs.frame(
        1, 0.0, spawned(), placed((8, 0.0)),
        logs.counted(13, [logs.vectors(8, 0.0, 0.0, 0.0, *halves)])))
    assert faults == []
    assert len(frame.boxes.actor) == 0


@pytest.mark.parametrize(('packets', 'words'), [
    ([logs.packet(2, struct.pack('<H', 0) + logs.added(6, 'traffic.traffic_light'))],
     '1 records; expected 0'),
    ([logs.packet(22, struct.pack('<H', 0) + struct.pack('<II', 8, 0))], '1 records; expected 0'),
    ([logs.packet(7, struct.pack('<H', 0) + struct.pack('<IBfB', 6, 0, 0.0, 0))],
     '1 records; expected 0'),
    ([logs.counted(13, [logs.vectors(77, 0, 0, 0, 1, 1, 1)])], 'actor 77: found a box'),
    ([logs.counted(12, [logs.vectors(77, 0, 0, 0, 1, 1, 1)])], 'actor 77: found a velocity'),
    ([placed((77, 0.0))], 'actor 77: found a position'),
    ([logs.counted(3, [struct.pack('<I', i) for i in range(1000, 1200)])],
     'actor 1000: found a removal; expected an actor that was added (and 199 more of this kind)'),
    ([logs.packet(1), placed((8, 0.0)), logs.packet(1)], 'packet 6 before its start'),
])
def test_recorder_log_what_is_lost_is_named_by_convert(packets, words, capsys):
    name = write(logs.header() + logs.frame(1, 0.0, spawned(), placed((8, 0.0)))
                 + logs.frame(2, 0.05, *packets, placed((8, 0.0)))
                 + logs.frame(3, 0.1, placed((8, 0.0))))
    assert main(['convert', name, 'drive.csv']) == 0
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(('content', 'found'), [
    (b'', 'the end of the file in the header'), (b'INFO hello', 'another beginning')])
def test_file_named_as_a_log_is_no_trajectory(tmp_path, capsys, content, found):
    path = tmp_path / 'drive.log'
    path.write_bytes(content)
    assert main(['inspect', str(path)]) == 1
    assert f'{path}: found {found}; expected' in capsys.readouterr().err


def test_recorder_log_is_a_recording_of_the_commands(capsys):
    write(logs.drive(12))
    # Known by its content, whatever its name; and a trajectory may still have the suffix.
    write(logs.drive(12), 'plain')
    for name in ('drive.log', 'plain'):
        assert main(['inspect', name, '--json']) == 0
        assert json.loads(capsys.readouterr().out)['frames'] == 12
    assert main(['convert', 'plain', 'bag', '--quiet']) == 0
    assert main(['convert', 'drive.log', 'trace.json', '--quiet']) == 0
    Path('trace.json').rename('other.log')
    first, second = frames_of('other.log'), frames_of('bag')
    assert len(first) == len(second) == 12
    assert np.allclose(first[3].position_xyz, second[3].position_xyz, atol=1e-5)
    assert second[3].names[second[3].ego] == 'hero'
    assert second[3].ids.tolist() == [3, 5, 6, 7, 8, 9]
    assert main(['convert', 'plain', 'new.log']) == 2


def test_recorder_log_walker_without_a_box_stands_on_the_ground():
    """The origin of a walker is in its middle; before 0.9.12 it has no box."""
    [frame], _ = read(logs.header() + logs.frame(1, 0.0, logs.counted(2, [
        logs.added(5, 'walker.pedestrian.0001', kind=2)]), logs.counted(6, [
            logs.vectors(5, 0.0, 0.0, 93.0, 0.0, 0.0, 0.0)])))
    assert frame.position_xyz[0, 2] == frame.boxes.position_xyz[0, 2] == pytest.approx(0.93)
    assert frame.boxes.size_xyz[0, 2] == 1.75
    assert frame.is_derived(sensor.frame.DERIVED_SIZE).tolist() == [True]
