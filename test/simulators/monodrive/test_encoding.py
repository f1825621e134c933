# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames written as JSON again: equal in v1 and v2, with named losses in the other one."""

from __future__ import annotations

from dataclasses import replace
import json

from monodrive_frames import frame_of, sample, SAMPLES, written
import numpy as np
import pytest
from real_recordings import FILES, path_of

from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.monodrive.encoding import losses
from state_sensor_ros.simulators.monodrive.frames import Decoder

WRITTEN = ['minimal_v1', 'minimal_v2', 'sample_v1', 'sample_v2']


def assert_equal_as_float32(was, is_now, path=''):
    """Compare JSON: numbers as float32, brakes by amount, everything else exactly."""
    if isinstance(was, dict):
        assert is_now.keys() == was.keys(), path
        for key in was:
            assert_equal_as_float32(was[key], is_now[key], f'{path}.{key}')
    elif isinstance(was, list):
        assert len(is_now) == len(was), path
        for i, (a, b) in enumerate(zip(was, is_now, strict=True)):
            assert_equal_as_float32(a, b, f'{path}[{i}]')
    elif isinstance(was, bool | str) or was is None:
        assert is_now == was, path
        assert type(is_now) is type(was), path
    elif path.endswith('.brake_input'):
        assert np.float32(is_now) == np.float32(abs(was)), path
    else:
        assert np.float32(is_now) == np.float32(was), path


@pytest.mark.parametrize('name', WRITTEN)
def test_samples_there_and_back(name):
    value = sample(name)
    frame = frame_of(value)
    assert_equal_as_float32(value, written(frame))
    assert losses(frame, frame.generation) == []


@pytest.mark.parametrize('file', FILES)
def test_recordings_there_and_back(file):
    decoder, generation = Decoder(), file.split('.')[1]
    for value in json.loads(path_of(file).read_bytes()):
        frame = frame_of(value, decoder=decoder)
        found = written(frame)
        if generation == 'v0':
            assert losses(frame, 'v1') == []
            found = {actor.pop('name'): actor for actor in found.pop('frame')} | found
        assert_equal_as_float32(value, found)
        # The simulator's own numbers are float32 written as float64: they come back to the digit.
        if 'brake_input' not in str(value) and file == 'car_to_car_rear_stationary.v2.json':
            assert found == value


@pytest.mark.parametrize('name', ['minimal_v0', 'minimal_v1t'])
def test_the_oldest_generations_are_written_as_v1(name):
    frame = frame_of(sample(name))
    assert losses(frame, 'v1') == []
    back = frame_of(written(frame))
    assert back.generation == 'v1'
    assert (back.game_time, back.time, back.names) == (frame.game_time, frame.time, frame.names)
    np.testing.assert_array_equal(back.kinematics, frame.kinematics)
    np.testing.assert_allclose(back.inputs, frame.inputs, rtol=1e-7)


def test_units_are_undone():
    value = sample('sample_v2')
    for units in (
            Settings(obb_extents=extents, road_s_unit=unit)
            for extents, unit in (('half', 'm'), ('full', 'm'), ('half', 'cm'))):
        assert_equal_as_float32(value, written(frame_of(value, units=units), '', units))


def test_nulls_come_back():
    value = sample('minimal_v2')
    [vehicle] = value['frame']['vehicles']
    vehicle['state']['odometry']['pose']['position']['y'] = None
    vehicle['state']['odometry']['linear_velocity'] = dict.fromkeys('xyz')
    vehicle['state']['oriented_bounding_box'][0]['extents']['z'] = None
    vehicle['control_state']['s'] = None
    vehicle['wheels'][2]['speed'] = None
    vehicle['wheels'][3]['pose']['orientation']['w'] = None
    assert_equal_as_float32(value, written(frame_of(value)))
    flat = sample('minimal_v1')
    flat['frame'][0].update(position=[None, 1, 2], velocity=[1, None, None])
    assert_equal_as_float32(flat, written(frame_of(flat)))


def test_flags_ids_looks_and_order_of_v2():
    value = sample('minimal_v2')
    [cone], [vehicle] = value['frame'].values()
    vehicle['control_state'].update(lane_change_left=True, lane_id=-3, road_id=2 ** 31 - 1,
                                    section_id=-2 ** 31)
    vehicle['state'].update(color='Carpaint_Red', replay_class='/Game/Ünïcode.x_C')
    plain = json.loads(json.dumps(vehicle))
    plain['state']['name'] = 'b'
    del plain['control_state'], plain['state']['color'], plain['state']['replay_class']
    value['frame'] = {'objects': [cone, {**cone, 'name': 'z', 'oriented_bounding_box': [],
                                         'tags': []}], 'vehicles': [plain, vehicle]}
    assert_equal_as_float32(value, written(frame_of(value)))


def parts_equal(one, other):
    return all(np.array_equal(np.asarray(getattr(one, name)), np.asarray(getattr(other, name)),
                              equal_nan=np.asarray(getattr(one, name)).dtype.kind == 'f')
               for name in type(one).__slots__)


@pytest.mark.parametrize('target', ['v1', 'v2'])
@pytest.mark.parametrize('name', SAMPLES)
def test_other_generations_keep_the_motion_and_own_up_to_the_rest(name, target):
    # With every number rounded, in the simulator's units.
    frame = frame_of(written(frame_of(sample(name))))
    lost = losses(frame, target)
    back = frame_of(written(frame, target))
    assert back.generation == target
    assert (back.names, back.tags) == (frame.names, frame.tags)
    np.testing.assert_array_equal(back.kinematics, frame.kinematics)
    assert (back.game_time, back.time) == (frame.game_time, frame.time)
    assert back.sample_count == frame.sample_count
    is_lost = {
        'lane states': not parts_equal(back.lanes, frame.lanes),
        'boxes': not parts_equal(back.boxes, frame.boxes),
        'pedals and steering': not np.array_equal(back.inputs, frame.inputs, True),
        'wheels': len(back.wheels.actor) < len(frame.wheels.actor),
        'wheel positions': back.wheels.position_known.sum() < frame.wheels.position_known.sum(),
        'orientations of rear wheels':
            back.wheels.orientation_known.sum() < frame.wheels.orientation_known.sum()}
    if is_lost['wheels']:
        is_lost['wheel positions'] = is_lost['orientations of rear wheels'] = False
    assert sorted(lost) == sorted(what for what, is_so in is_lost.items() if is_so)


def test_frames_of_other_simulators_are_written_as_v2():
    frame = replace(frame_of(sample('minimal_v2')), generation='sumo')
    assert_equal_as_float32(sample('minimal_v2'), written(frame))


@pytest.mark.parametrize('generation', ['v1', 'v2'])
def test_keys_are_in_alphabetical_order_as_the_simulator_writes_them(generation):
    def check(value):
        if isinstance(value, dict):
            assert list(value) == sorted(value)
        for item in value.values() if isinstance(value, dict) else \
                value if isinstance(value, list) else ():
            check(item)
    check(written(frame_of(sample('sample_v2')), generation))
