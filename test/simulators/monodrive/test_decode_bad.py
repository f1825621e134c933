# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Payloads with faults: errors, actors that are dropped, and memory."""

from __future__ import annotations

import contextlib
import json
import sys

from budgets import each_once
from monodrive_frames import frame_of, sample, with_faults
import numpy as np
from paths import DATA
import pytest

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.source import DROPPED, DUPLICATE, IGNORED, MEMBER

BAD = DATA / 'bad'

NO_FRAME = {
    'not_json': ('line 1 column 1', "'hello'", 'JSON'),
    'empty': ('payload', 'nothing', 'a frame'),
    'truncated': ('line 1 column 259', 'the end', 'JSON'),
    # Python 3.13 and newer name the comma, older ones what follows it.
    'trailing_comma': ('line 1 column 26', "',", 'JSON') if sys.version_info >= (3, 13)
    else ('line 1 column 27', "'}", 'JSON'),
    'two_objects': ('line 1 column 15', "'{\"frame", 'JSON'),
    'not_utf8': ('byte 60', '0xf6', 'UTF-8'),
    'number': ('payload', '42', 'an object'),
    'null': ('payload', 'null', 'an object'),
    'empty_object': ('payload', 'an object', 'a member "frame"'),
    'empty_array': ('payload', 'an empty array', 'a frame'),
    'frame_is_text': ('frame', "'x'", 'an object (v2) or an array (v1)'),
    'frame_is_null': ('frame', 'null', 'an object (v2) or an array (v1)'),
    'vehicles_is_text': ('frame.vehicles', "'none'", 'an array'),
    'frame_is_empty': ('frame', 'an object', '"objects" or "vehicles" in it'),
    'only_a_head': ('payload', 'an object', 'a member "frame"'),
    'scenario': ('payload', 'an object', 'a member "frame"'),
    'second_of_array_is_text': ('[1]', "'x'", 'an object'),
    'string_is_no_json': ('line 1 column 2', 'the end', 'JSON'),
}

SECOND = 'frame.vehicles[1]'
POSE = f'{SECOND}.state.odometry.pose'
ONE_DROPPED = {
    'actor_is_number': (SECOND, '7', 'an object'),
    'actor_is_null': (SECOND, 'null', 'an object'),
    'state_missing': (f'{SECOND}.state', 'nothing', 'a value'),
    'name_missing': (f'{SECOND}.state.name', 'nothing', 'a value'),
    'name_is_number': (f'{SECOND}.state.name', '5', 'a string'),
    'odometry_missing': (f'{SECOND}.state.odometry', 'nothing', 'a value'),
    'pose_missing': (POSE, 'nothing', 'a value'),
    'position_missing': (f'{POSE}.position', 'nothing', '{x, y, z} or [x, y, z]'),
    'orientation_missing': (f'{POSE}.orientation', 'nothing', '{w, x, y, z} or [x, y, z, w]'),
    'position_z_missing': (f'{POSE}.position.z', 'nothing', 'a value'),
    'position_x_is_text': (f'{POSE}.position.x', "'1'", 'a number'),
    'position_is_true': (f'{POSE}.position', 'true', '{x, y, z} or [x, y, z]'),
    'position_has_two': (f'{POSE}.position', 'an array of 2', '{x, y, z} or [x, y, z]'),
    'orientation_has_three': (f'{POSE}.orientation', 'an array of 3', '{w, x, y, z} or'),
    'velocity_is_text': (f'{SECOND}.state.odometry.linear_velocity', "'fast'", '{x, y, z}'),
    'tag_is_number': (f'{SECOND}.state.tags[1]', '1', 'a string'),
    'color_is_number': (f'{SECOND}.state.color', '3', 'a string'),
    'box_is_number': (f'{SECOND}.state.oriented_bounding_box[0]', '1', 'an object'),
    'box_center_missing': (f'{SECOND}.state.oriented_bounding_box[0].center', 'nothing',
                           '{x, y, z} or'),
    'lane_flag_is_number': (f'{SECOND}.control_state.lane_change_left', '0', 'true or false'),
    'lane_id_beyond_int32': (f'{SECOND}.control_state.lane_id', '3000000000', 'an integer <= 21'),
    'lane_id_is_fraction': (f'{SECOND}.control_state.lane_id', '1.5', 'an integer'),
    'lane_id_is_null': (f'{SECOND}.control_state.lane_id', 'nothing', 'a value'),
    'lane_state_is_array': (f'{SECOND}.control_state', 'an array of 0', 'an object'),
    'lane_road_missing': (f'{SECOND}.control_state.road_id', 'nothing', 'a value'),
    'flat_name_missing': ('frame[1].name', 'nothing', 'a value'),
    'flat_position_missing': ('frame[1].position', 'nothing', '{x, y, z} or [x, y, z]'),
    'flat_position_has_four': ('frame[1].position', 'an array of 4', '{x, y, z} or [x, y, z]'),
    'flat_velocity_y_is_text': ('frame[1].velocity[1]', "'2'", 'a number'),
    'flat_wheel_orientation_is_text': ('frame[1].wheels[0].orientation', "'level'", '{w, x'),
    'flat_wheel_id_twice': ('frame[1].wheels', 'an array of 2', 'each wheel id once'),
    'flat_throttle_is_text': ('frame[1].throttle_input', "'full'", 'a number'),
    'keyed_position_missing': ('bad.position', 'nothing', '{x, y, z} or [x, y, z]'),
}

WITHOUT_WHEELS = {
    'wheel_id_missing': (f'{SECOND}.wheels[0].id', 'nothing', 'a value'),
    'wheel_id_negative': (f'{SECOND}.wheels[0].id', '-1', 'an integer >= 0'),
    'wheel_id_twice': (f'{SECOND}.wheels', 'an array of 2', 'each wheel id once'),
    'wheel_speed_is_text': (f'{SECOND}.wheels[0].speed', "'1'", 'a number'),
}

# A member beside the actors costs neither the frame nor an actor.
IGNORED_MEMBERS = {
    'game_time_is_text': ('game_time', "'1.0'", 'a number'),
    'time_beyond_int64': ('time', '1000000000000000000', 'whole seconds'),
    'sample_count_negative': ('sample_count', '-1', 'an integer in 0 .. 4294967295'),
}

DUPLICATES = {
    'duplicate_v2': 'frame.vehicles[1]',
    'duplicate_object_and_vehicle': 'frame.vehicles[0]',
    'duplicate_v1': 'frame[1]',
}


def payload(name):
    return (BAD / f'{name}.json').read_bytes()


def assert_says(error, where, found, expected):
    assert error.where.startswith(where)
    assert error.found.startswith(found)
    assert expected in error.expected


def test_every_file_has_a_test():
    tried = NO_FRAME.keys() | ONE_DROPPED.keys() | WITHOUT_WHEELS.keys() | DUPLICATES.keys() \
        | IGNORED_MEMBERS.keys()
    assert {path.stem for path in BAD.glob('*.json')} == tried


@pytest.mark.parametrize('name', NO_FRAME)
def test_payload_without_a_frame_is_an_error(name):
    with pytest.raises(DecodeError) as caught:
        with_faults(payload(name))
    assert_says(caught.value, *NO_FRAME[name])


@pytest.mark.parametrize('name', ONE_DROPPED)
def test_a_bad_actor_is_dropped_and_the_good_ones_stay(name):
    [frame], [fault] = with_faults(payload(name))
    assert frame.names == ('good', 'also good')
    np.testing.assert_array_equal(frame.position_xyz, [[1, -2, 3], [1, -2, 3]])
    assert fault.kind == DROPPED
    where, found, expected = ONE_DROPPED[name]
    assert fault.error.where == where
    assert_says(fault.error, where, found, expected)


@pytest.mark.parametrize('name', WITHOUT_WHEELS)
def test_a_bad_wheel_costs_the_wheels_of_its_vehicle(name):
    [frame], [fault] = with_faults(payload(name))
    assert frame.n_actors == 3
    assert 1 not in frame.wheels.actor
    assert fault.kind == IGNORED
    where, found, expected = WITHOUT_WHEELS[name]
    assert fault.error.where == where
    assert_says(fault.error, where, found, expected)


@pytest.mark.parametrize('name', IGNORED_MEMBERS)
def test_a_bad_member_beside_the_actors_is_unknown(name):
    [frame], [fault] = with_faults(payload(name), (4.5, 0, 0))
    assert frame.n_actors == 1
    assert (name == 'game_time_is_text') == (frame.game_time == 4.5)
    assert fault.kind == IGNORED
    assert_says(fault.error, *IGNORED_MEMBERS[name])


@pytest.mark.parametrize('name', DUPLICATES)
def test_of_two_actors_with_one_name_the_first_is_kept(name):
    [frame], [fault] = with_faults(payload(name))
    assert frame.names == ('good', 'also good')
    np.testing.assert_array_equal(frame.position_xyz, [[1, -2, 3], [1, -2, 3]])
    assert fault.kind == DUPLICATE
    assert_says(fault.error, DUPLICATES[name], "'good'", 'no other actor')


def leaves(value, path=''):
    """Yield owner, key and key path of every value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) \
        if isinstance(value, list) else ()
    for key, item in items:
        at = f'{path}[{key}]' if isinstance(value, list) else f'{path}.{key}' if path else key
        yield value, key, at
        yield from leaves(item, at)


WHOLE = {'frame', 'frame.objects', 'frame.vehicles', 'game_time', 'time', 'sample_count', 'demo_1'}


@pytest.mark.parametrize(('wrong', 'name'), each_once(
    [True, 'x', 1.5, -7, None, [], {}, [[]], {'a': 1}, 10 ** 40],
    ['sample_v1', 'minimal_v0', 'minimal_v1t', 'sample_v2']))
def test_any_wrong_value_anywhere_costs_at_most_its_own_actor(name, wrong):
    value = sample(name)
    n_actors = frame_of(value).n_actors
    for owner, key, path in list(leaves(value)):
        right, owner[key] = owner[key], wrong
        changed = json.dumps(value).encode()
        owner[key] = right
        if path in WHOLE:
            # No other error may be raised.
            with contextlib.suppress(DecodeError):
                with_faults(changed)
            continue
        [frame], faults = with_faults(changed)
        assert frame.n_actors >= n_actors - 1
        for fault in faults:
            # The error names this place, or a missing member of it.
            assert fault.kind in (IGNORED, MEMBER) or fault.error.where.startswith(path), (
                path, wrong, str(fault.error))
