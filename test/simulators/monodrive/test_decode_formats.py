# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Other formats of the same payload: each gives the same frame as the usual one."""

from __future__ import annotations

from dataclasses import replace
import json
import math

from monodrive_frames import frame_of, sample, SAMPLES, with_faults
import numpy as np
from paths import GOOD
import pytest

from state_sensor_ros.frame import Frame
from state_sensor_ros.rotations import rpy_from_quaternion
from state_sensor_ros.source import DROPPED, IGNORED


def assert_same(one, other):
    """Compare two frames, arrays of parts included; NaN equals NaN."""
    for name in Frame.__slots__:
        if name.startswith('_'):
            # Computed from the others.
            continue
        a, b = getattr(one, name), getattr(other, name)
        if name in ('lanes', 'boxes', 'wheels', 'appearance'):
            for part in type(a).__slots__:
                np.testing.assert_array_equal(getattr(a, part), getattr(b, part), err_msg=part)
        elif isinstance(a, tuple):
            assert a == b
        else:
            np.testing.assert_array_equal(a, b, err_msg=name)


def mapped(value, change):
    """Rebuild JSON with ``change`` applied to every value, innermost first."""
    if isinstance(value, dict):
        value = {key: mapped(item, change) for key, item in value.items()}
    elif isinstance(value, list):
        value = [mapped(item, change) for item in value]
    return change(value)


def as_arrays(value):
    if isinstance(value, dict) and value.keys() == set('xyz'):
        return [value[k] for k in 'xyz']
    if isinstance(value, dict) and value.keys() == set('xyzw'):
        return [value[k] for k in 'xyzw']
    return value


def as_objects(value):
    if isinstance(value, list) and len(value) in (3, 4) \
            and all(isinstance(item, float) for item in value):
        return dict(zip('xyzw', value, strict=False))
    return value


def integers_as_floats(value):
    return float(value) if type(value) is int else value


def floats_as_integers(value):
    return int(value) if isinstance(value, float) and value.is_integer() else value


@pytest.mark.parametrize('name', SAMPLES)
@pytest.mark.parametrize('change', [as_arrays, integers_as_floats, floats_as_integers])
def test_formats_of_numbers_and_vectors(name, change):
    assert_same(frame_of(mapped(sample(name), change)), frame_of(sample(name)))


@pytest.mark.parametrize('name', ['minimal_v0', 'minimal_v1', 'minimal_v1t'])
def test_vectors_as_objects_in_the_flat_generations(name):
    value = sample(name)
    actors = [value['demo_1']] if name == 'minimal_v0' else value['frame']
    for actor in actors:
        speeds = actor.pop('wheel_speed', None)
        actor.update(mapped(actor, as_objects))
        if speeds:
            actor['wheel_speed'] = speeds
    assert_same(frame_of(value), frame_of(sample(name)))


@pytest.mark.parametrize('name', SAMPLES)
@pytest.mark.parametrize('change', [
    lambda text: b'\xef\xbb\xbf' + text, lambda text: b' \r\n' + text + b'\n ',
    lambda text: b'[' + text + b']', lambda text: text.replace(b'"', b"'"),
    lambda text: json.dumps({'state_data_as_string': text.decode()}).encode(),
    lambda text: json.dumps(json.loads(text), separators=(',', ':'), sort_keys=True).encode()])
def test_formats_of_text(name, change):
    text = (GOOD / f'{name}.json').read_bytes()
    assert_same(frame_of(change(text)), frame_of(text))


def collapsed(value):
    """Replace arrays of one by what is in them, as MATLAB's jsonencode does."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


@pytest.mark.parametrize('name', SAMPLES)
def test_arrays_of_one_may_be_their_item(name):
    value = sample(name)
    if name == 'sample_v2':
        value['frame']['vehicles'][0]['state']['tags'] = ['ego']
        value['frame']['vehicles'][0]['wheels'] = value['frame']['vehicles'][0]['wheels'][:1]
    elif 'frame' in value and name != 'minimal_v2':
        value['frame'] = [{**value['frame'][0], 'tags': ['ego'], 'wheel_speed': [3.0]}]
    changed = mapped(value, collapsed)
    assert changed != value or name == 'minimal_v0'
    assert_same(frame_of(changed), frame_of(value))


@pytest.mark.parametrize(('time', 'expected', 'kept'), [
    (1600000000123, 'in ms it would be 2020-09-13 12:26:40', 0), (-5, '1990 and 2100', 0),
    (12, 'between 1990 and 2100', 12), (1600000000.75, None, 1600000000), (0, None, 0)])
@pytest.mark.parametrize('name', ['minimal_v1', 'minimal_v2'])
def test_a_time_of_another_unit_is_named_and_costs_no_frame(name, time, expected, kept):
    [frame], faults = with_faults({**sample(name), 'time': time})
    assert_same(frame, replace(frame_of(sample(name)), time=kept))
    assert [fault.kind for fault in faults] == [IGNORED] * (expected is not None)
    assert all(expected in fault.error.expected for fault in faults)


@pytest.mark.parametrize('sent', [
    lambda text: text.encode(),
    lambda text: json.dumps({'state_data_as_string': text}).encode()], ids=['array', 'text'])
def test_array_on_the_wire_is_several_frames(sent):
    payload = sent(json.dumps([sample(name) for name in SAMPLES]))
    frames, faults = with_faults(payload)
    assert faults == ()
    for frame, name in zip(frames, SAMPLES, strict=True):
        assert_same(frame, frame_of(sample(name)))


@pytest.mark.parametrize(('roll', 'pitch', 'yaw'), [
    (0.0, 0.0, 90.0), (10.0, -20.0, 30.0), (-170.0, 5.0, -179.0)])
def test_rotators_in_degrees(roll, pitch, yaw):
    rotator = {'yaw': yaw, 'pitch': pitch, 'roll': roll}
    v1, v2 = sample('minimal_v1'), sample('minimal_v2')
    v1['frame'][0]['orientation'] = rotator
    v2['frame']['vehicles'][0]['state']['odometry']['pose']['orientation'] = rotator
    for value in (v1, v2):
        frame = frame_of(value)
        angles = np.degrees(rpy_from_quaternion(frame.orientation_xyzw[-1]))
        np.testing.assert_allclose(angles, (roll, -pitch, -yaw), atol=1e-12)
        assert frame.has_pose().all()


@pytest.mark.parametrize('bad', ['NaN', 'Infinity', '-Infinity', 'null'])
def test_numbers_that_are_not_finite_are_nan(bad):
    for name in ('minimal_v1', 'minimal_v2'):
        text = (GOOD / f'{name}.json').read_text()
        # Position and box center.
        frame = frame_of(text.replace('2500.0', bad, 1).encode())
        assert np.isnan(frame.position_xyz[-1, 0])
        assert frame.position_xyz[-1, 1] == 3.0
        assert frame.has_pose().tolist() == [True] * (frame.n_actors - 1) + [False]
        frame = frame_of(text.replace('1000.0', bad, 1).encode())
        assert np.isnan(frame.velocity_xyz[-1, 0])
        assert frame.velocity_xyz[-1, 1] == 0.0
        assert frame.has_pose().all()


@pytest.mark.parametrize('bad', ['1e999', '-1e999', '9' * 400, '9' * 5000])
@pytest.mark.parametrize(('name', 'where'), [
    ('minimal_v1', 'frame[0].position'),
    ('minimal_v2', 'frame.vehicles[0].state.odometry.pose.position.x')])
def test_numbers_beyond_a_double_are_refused_with_their_key(name, where, bad):
    text = (GOOD / f'{name}.json').read_text()
    [frame], [fault] = with_faults(text.replace('2500.0', bad, 1).encode())
    assert frame.n_actors == frame_of(sample(name)).n_actors - 1
    assert fault.kind == DROPPED
    assert fault.error.where.startswith(where)
    [frame], [fault] = with_faults(text.replace('12.5', bad, 1).encode())
    assert (fault.kind, fault.error.where) == (IGNORED, 'game_time')
    assert math.isnan(frame.game_time)


@pytest.mark.parametrize('value', [None, {'x': None, 'y': None, 'z': None}, [None] * 3])
def test_null_pose_keeps_the_actor_without_a_pose(value):
    for name in ('minimal_v1', 'minimal_v2'):
        payload = sample(name)
        actor = payload['frame'][0] if name == 'minimal_v1' \
            else payload['frame']['vehicles'][0]['state']['odometry']['pose']
        actor['position'] = value
        frame = frame_of(payload)
        assert np.isnan(frame.position_xyz[-1]).all()
        assert not frame.has_pose()[-1]


@pytest.mark.parametrize('quaternion', [[0, 0, 0, 0], [0, 0, 0, 2], [0, 0, 0, 0.89], [1e200] * 4])
def test_a_quaternion_that_is_no_rotation_is_no_pose(quaternion):
    payload = sample('minimal_v1')
    payload['frame'][0]['orientation'] = quaternion
    frame = frame_of(payload)
    assert frame.has_pose().tolist() == [False]
    np.testing.assert_array_equal(np.abs(frame.orientation_xyzw[0]), quaternion)


def test_missing_optional_members():
    pose = {'position': {'x': 0, 'y': 0, 'z': 0}, 'orientation': {'w': 1, 'x': 0, 'y': 0, 'z': 0}}
    value = {'frame': {'vehicles': [{'state': {'name': 'a', 'odometry': {'pose': pose}}}]}}
    frame = frame_of(value)
    assert (frame.names, frame.tags, frame.kinds.tolist()) == (('a',), ((),), [1])
    assert frame.boxes is not None
    assert frame.wheels is not None
    assert len(frame.boxes.actor) == len(frame.wheels.actor) == len(frame.lanes.actor) == 0
    nulls = {'tags': None, 'oriented_bounding_box': None, 'color': None, 'replay_class': None}
    value['frame']['vehicles'][0]['state'].update(nulls)
    value['frame']['vehicles'][0].update(wheels=None, control_state=None)
    value['frame']['objects'] = None
    assert_same(frame_of(value), frame)


def test_actors_without_the_vehicle_tag_are_objects_in_flat_generations():
    value = sample('minimal_v0')
    value['light'] = {**value['demo_1'], 'tags': ['stop_light']}
    value['loud'] = {**value['demo_1'], 'tags': ['VEHICLE']}
    frame = frame_of(value)
    assert dict(zip(frame.names, frame.kinds.tolist(), strict=True)) \
        == {'demo_1': 1, 'light': 0, 'loud': 1}
