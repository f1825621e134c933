# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Wheel entries to wheels: the three conventions of doc/protocol/frames.md#wheels."""

from __future__ import annotations

import json
import math

from monodrive_frames import frame_of, sample, written
import numpy as np
import pytest

from state_sensor_ros.frame import FRONT_LEFT, FRONT_RIGHT, REAR_LEFT, REAR_RIGHT

SPUN = [0.0, 0.6, 0.0, 0.8]
TURNED = [0.0, 0.0, 0.6, 0.8]


def v1(*actors):
    return {'frame': [{'name': f'car_{i}', 'position': [0, 0, 0], 'orientation': [0, 0, 0, 1],
                       'tags': ['vehicle'], **actor} for i, actor in enumerate(actors)]}


def v2(*wheels_of_vehicles):
    value = sample('minimal_v2')
    [vehicle] = value['frame']['vehicles']
    vehicles = []
    for i, wheels in enumerate(wheels_of_vehicles):
        vehicles.append({**vehicle, 'state': {**vehicle['state'], 'name': f'car_{i}'},
                         'wheels': wheels})
    value['frame'] = {'objects': [], 'vehicles': vehicles}
    return value


def entry(wheel_id, orientation=None, position=None, speed=1.0):
    pose = {}
    if orientation is not None:
        pose['orientation'] = dict(zip('xyzw', orientation, strict=True))
    if position is not None:
        pose['position'] = dict(zip('xyz', position, strict=True))
    return {'id': wheel_id, 'pose': pose, 'speed': speed}


def orientations(wheels):
    """Return which of the test's rotations each wheel has."""
    known = {tuple(SPUN): 'spun', (0.0, 0.0, -0.6, 0.8): 'turned', (0.0, 0.0, 0.0, 1.0): 'still'}
    return [known[tuple(row)] for row in wheels.orientation_xyzw + 0.0]


def test_v2_recordings_use_ids_unchanged():
    wheels = frame_of(sample('minimal_v2')).wheels
    assert wheels.actor.tolist() == [1, 1, 1, 1]
    assert wheels.wheel.tolist() == [FRONT_LEFT, FRONT_RIGHT, REAR_LEFT, REAR_RIGHT]
    assert wheels.source_id.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(wheels.position_xyz, [
        [1.4, 0.78, 0.34], [1.4, -0.78, 0.34], [-1.4, 0.78, 0.34], [-1.4, -0.78, 0.34]])
    assert wheels.position_known.all()
    assert wheels.orientation_known.all()
    assert wheels.speed.tolist() == [29.5, 29.3, 29.5, 29.3]


def test_v1_recordings_have_the_front_wheels_as_1_and_2():
    wheels = frame_of(v1({'wheel_speed': [1.0, 2.0, 3.0, 4.0], 'wheels': [
        {'id': 1, 'orientation': SPUN}, {'id': 2, 'orientation': TURNED}]})).wheels
    assert wheels.wheel.tolist() == [0, 1, 2, 3]
    assert wheels.source_id.tolist() == [1, 2, -1, -1]
    assert wheels.speed.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert orientations(wheels) == ['spun', 'turned', 'still', 'still']
    assert wheels.orientation_known.tolist() == [True, True, False, False]
    assert not wheels.position_known.any()
    np.testing.assert_array_equal(wheels.position_xyz, np.zeros((4, 3)))


@pytest.mark.parametrize(('name', 'i_actor'), [('sample_v1', 0), ('sample_v1', 1),
                                               ('sample_v2', 1)])
def test_printed_samples_are_shifted_by_one(name, i_actor):
    value = sample(name)
    if name == 'sample_v1':
        actor = value['frame'][i_actor]
        speeds = actor['wheel_speed']
        poses = [wheel['orientation'] for wheel in actor['wheels']]
    else:
        entries = value['frame']['vehicles'][0]['wheels']
        speeds = [wheel['speed'] for wheel in entries]
        poses = [[wheel['pose']['orientation'][k] for k in 'xyzw'] for wheel in entries]
    wheels = frame_of(value).wheels
    mine = wheels.actor == i_actor
    assert wheels.wheel[mine].tolist() == [0, 1, 2, 3]
    assert wheels.source_id[mine].tolist() == [1, 2, 3, -1]
    assert wheels.speed[mine].tolist() == speeds
    assert wheels.orientation_known[mine].tolist() == [True, True, True, False]
    assert not wheels.position_known[mine].any()
    mirrored = np.array(poses) * (-1, 1, -1, 1)
    np.testing.assert_array_equal(wheels.orientation_xyzw[mine], mirrored[[1, 2, 3, 0]])


SHIFTED = [entry(0, [0, 0, 0, 1], [0, 0, 0]), entry(1, SPUN, [0, 0, 0]),
           entry(2, TURNED, [0, 0, 0]), entry(3, SPUN, [0, 0, 0])]


def changed(i, **members):
    return [{**wheel, **(members if j == i else {})} for j, wheel in enumerate(SHIFTED)]


@pytest.mark.parametrize(('wheels', 'is_shifted'), [
    (SHIFTED, True),
    (list(reversed(SHIFTED)), True),
    (changed(0, speed=-1.0), True),
    (changed(0, speed=0.09), False),  # not turning
    (changed(0, speed=None), False),
    (changed(0, pose=entry(0, [0, 2e-6, 0, 1], [0, 0, 0])['pose']), False),  # not at rest
    (changed(3, pose=entry(3, SPUN, [0, 0, 1e-9])['pose']), False),  # placed
    (changed(3, pose=entry(3, SPUN)['pose']), True),  # absent is as good as zero
    (SHIFTED[:3], False),
    (changed(3, id=4), False)])
def test_when_a_sample_is_shifted(wheels, is_shifted):
    found = frame_of(v2(wheels)).wheels
    ids = sorted(wheel['id'] for wheel in wheels)
    assert sorted(found.wheel.tolist()) == ids
    order = np.argsort(found.wheel)
    assert found.source_id[order].tolist() == ([1, 2, 3, -1] if is_shifted else ids)
    if is_shifted:
        assert [orientations(found)[i] for i in order] == ['spun', 'turned', 'spun', 'still']


def test_parts_of_a_wheel_may_be_missing_or_null():
    half = entry(2, SPUN, [None, 1, 2])
    found = frame_of(v2([{'id': 0}, entry(1, SPUN), half])).wheels
    np.testing.assert_array_equal(found.position_xyz[2], [math.nan, -0.01, 0.02])
    np.testing.assert_array_equal(found.position_xyz[:2], np.zeros((2, 3)))
    assert orientations(found) == ['still', 'spun', 'spun']
    assert found.position_known.tolist() == [False, False, False]
    assert found.orientation_known.tolist() == [False, True, True]
    assert math.isnan(found.speed[0])


@pytest.mark.parametrize('value', [
    v2(SHIFTED), v2(list(reversed(SHIFTED))), v2([{'id': 0, 'speed': None}, entry(1, SPUN)]),
    v2([entry(2, SPUN, [None, 1, 2]), entry(1, [None, 0, 0, 1], [0, 0, 0])]),
    v2([entry(1, SPUN), entry(2, TURNED)], [], [entry(7, SPUN, [1, 2, 3], -4.0)])])
def test_v2_wheels_are_written_as_they_were(value):
    vehicles = written(frame_of(value))['frame']['vehicles']
    for was, is_now in zip(value['frame']['vehicles'], vehicles, strict=True):
        for wheel in was['wheels']:
            if not wheel.get('pose'):
                wheel.pop('pose', None)
        # Quaternions of this test are float64, written ones float32.
        assert json.loads(json.dumps(is_now['wheels']), parse_float=lambda t: round(float(t), 6)) \
            == was['wheels']


@pytest.mark.parametrize('actor', [
    {'wheel_speed': [1.0, 2.0, 3.0, 4.0],
     'wheels': [{'id': i, 'orientation': [0, 0.5, 0, 0.5]} for i in (1, 2)]},
    {'wheel_speed': [1.0, 2.0, 3.0, 4.0],
     'wheels': [{'id': i, 'orientation': [0, 0.5 if i else 0, 0, 1]} for i in range(4)]},
    {'wheel_speed': [0.0] * 4, 'wheels': [{'id': i, 'orientation': [0, 0, 0, 1]}
                                          for i in range(4)]},
    {'wheel_speed': [1.0, None, 3.0]}, {'wheels': [{'id': 1}, {'id': 2}]}, {}])
def test_v1_wheels_are_written_as_they_were(actor):
    found = written(frame_of(v1(actor, {})))['frame']
    for key in ('wheel_speed', 'wheels'):
        assert found[0].get(key) == actor.get(key)
        assert key not in found[1]
