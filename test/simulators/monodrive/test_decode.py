# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Payloads in the usual format of each generation, compared with values computed here."""

from __future__ import annotations

import contextlib
from dataclasses import replace
import json
import math

from essentials import ESSENTIALS
import numpy as np
from paths import GOOD
import pytest
from real_recordings import FILES, path_of

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Frame, KIND_OBJECT, KIND_VEHICLE
from state_sensor_ros.payloads import EVERYTHING, Needs
from state_sensor_ros.rep103 import Units
from state_sensor_ros.simulators.monodrive.decoder import Decoder


def sample(name):
    return (GOOD / f'{name}.json').read_bytes()


def decoded(payload, **header) -> Frame:
    results = Decoder().decode(payload, **header)
    assert [result.faults for result in results] == [()]
    return results[0].frame


def vector(source):
    """Meters, y to the left; from either format."""
    x, y, z = (source[k] for k in 'xyz') if isinstance(source, dict) else source
    nan = math.nan
    return tuple(nan if c is None else c / 100 for c in (x, None if y is None else -y, z))


def rate(source):
    x, y, z = (source[k] for k in 'xyz') if isinstance(source, dict) else source
    signs = (-1, 1, -1)
    return tuple(math.nan if c is None else s * c
                 for c, s in zip((x, y, z), signs, strict=True))


def quaternion(source):
    x, y, z, w = (source[k] for k in 'xyzw') if isinstance(source, dict) else source
    return (-x, y, -z, w)


def actors_of(value):
    """Name, kind, tags, position, orientation, velocity, rate of each actor, from plain JSON."""
    if 'frame' not in value:
        flat = [{**actor, 'name': name} for name, actor in value.items()
                if isinstance(actor, dict)]
    elif isinstance(value['frame'], list):
        flat = value['frame']
    else:
        found = []
        for kind, states in ((KIND_OBJECT, value['frame']['objects']),
                             (KIND_VEHICLE, [v['state'] for v in value['frame']['vehicles']])):
            for state in states:
                odometry = state['odometry']
                found.append((
                    state['name'], kind, tuple(state['tags']),
                    vector(odometry['pose']['position']),
                    quaternion(odometry['pose']['orientation']),
                    vector(odometry['linear_velocity']), rate(odometry['angular_velocity'])))
        return found
    nothing = (None, None, None)
    return [(a['name'], KIND_VEHICLE if 'vehicle' in a['tags'] else KIND_OBJECT,
             tuple(a['tags']), vector(a['position']), quaternion(a['orientation']),
             vector(a.get('velocity', nothing)), rate(a.get('angular_velocity', nothing)))
            for a in flat]


def assert_actors(frame, value):
    expected = actors_of(value)
    assert frame.n_actors == len(expected)
    for i, (name, kind, tags, *numbers) in enumerate(expected):
        assert (frame.names[i], frame.kinds[i], frame.tags[i]) == (name, kind, tags)
        for got, wanted in zip(
                (frame.position_xyz, frame.orientation_xyzw, frame.velocity_xyz,
                 frame.angular_velocity_xyz), numbers, strict=True):
            np.testing.assert_allclose(got[i], wanted, rtol=1e-15, atol=0)


@pytest.mark.parametrize('needs', [EVERYTHING, ESSENTIALS])
@pytest.mark.parametrize(('name', 'generation'), [
    ('minimal_v0', 'v0'), ('minimal_v1', 'v1'), ('minimal_v1t', 'v1t'), ('minimal_v2', 'v2'),
    ('sample_v1', 'v1'), ('sample_v2', 'v2')])
def test_actors_of_samples(name, generation, needs):
    payload = sample(name)
    [result] = Decoder(needs=needs).decode(payload)
    assert (result.frame.generation, result.faults) == (generation, ())
    assert_actors(result.frame, json.loads(payload))


@pytest.mark.parametrize('file', FILES)
def test_actors_of_recordings(file):
    path = path_of(file)
    decoder = Decoder()
    for value in json.loads(path.read_bytes()):
        [result] = decoder.decode(json.dumps(value).encode())
        assert (result.frame.generation, result.faults) == (file.split('.')[1], ())
        assert_actors(result.frame, value)
        assert result.frame.game_time == value['game_time']
        assert result.frame.time == value['time']
        assert result.frame.sample_count == value.get('sample_count', 0)
    assert decoder.unknown_members == frozenset()


def test_v2_by_hand():
    frame = decoded(sample('minimal_v2'))
    assert (frame.game_time, frame.time, frame.sample_count) == (12.5, 1600000000, 40)
    assert frame.names == ('Cone_A', 'demo_sedan_1')
    assert frame.kinds.tolist() == [KIND_OBJECT, KIND_VEHICLE]
    np.testing.assert_array_equal(frame.position_xyz, [[42, 3.1, 0.05], [25, 3, 0.04]])
    np.testing.assert_array_equal(frame.angular_velocity_xyz, [[math.nan, 0, 0], [0, 0, -0.1]])
    assert frame.has_pose().all()
    lanes = frame.lanes
    assert lanes.actor.tolist() == [1]
    assert (lanes.road_id[0], lanes.section_id[0], lanes.lane_id[0], lanes.s[0]) == (7, 0, 2, 12.5)
    assert (lanes.lane_change_left[0], lanes.lane_change_right[0]) == (False, False)
    assert frame.inputs is not None
    assert np.isnan(frame.inputs).all()
    assert frame.colors == ('', '')


def test_boxes_by_hand():
    boxes = decoded(sample('minimal_v2')).boxes
    assert boxes is not None
    assert boxes.actor.tolist() == [0, 1]
    assert boxes.names == ('None', 'Body')
    np.testing.assert_array_equal(boxes.position_xyz, [[42, 3.1, 0.35], [25, 3, 0.84]])
    np.testing.assert_array_equal(boxes.size_xyz, [[0.3, 0.3, 0.6], [1.8, 1.3, 4.5]])
    np.testing.assert_array_equal(boxes.orientation_xyzw, [[0, 0, 0, 1], [-0.5, -0.5, 0.5, 0.5]])
    np.testing.assert_array_equal(boxes.scale_xyz, np.ones((2, 3)))


def test_units_change_extents_and_s():
    units = Units(obb_extents='half', road_s_unit='m')
    [result] = Decoder(units).decode(sample('minimal_v2'))
    assert result.frame.boxes is not None
    np.testing.assert_array_equal(result.frame.boxes.size_xyz, [[0.6, 0.6, 1.2], [3.6, 2.6, 9]])
    assert result.frame.lanes.s.tolist() == [1250.0]


def test_inputs_by_hand():
    inputs = decoded(sample('minimal_v1')).inputs
    assert inputs is not None
    np.testing.assert_array_equal(inputs, [[0.4, 0.0, -0.02, math.nan]])
    inputs = decoded(sample('minimal_v0')).inputs
    assert inputs is not None
    assert inputs[0, 3] == pytest.approx(math.radians(1.5), rel=1e-15)
    assert np.isnan(inputs[0, :3]).all()


def test_recorded_brake_sign_is_turned():
    value = json.loads(sample('minimal_v1'))
    value['frame'][0]['brake_input'] = -0.31
    inputs = decoded(json.dumps(value).encode()).inputs
    assert inputs is not None
    assert inputs[0, 1] == 0.31


def test_v1t_frame_has_the_time_of_the_ego():
    value = json.loads(sample('minimal_v1t'))
    other = {**value['frame'][0], 'name': 'first', 'tags': ['vehicle'], 'game_time': 7.0,
             'time': 1600000007}
    value['frame'].insert(0, other)
    frame = decoded(json.dumps(value).encode(), sample_count=3)
    assert (frame.generation, frame.game_time, frame.time) == ('v1t', 3.25, 1550000000)
    assert frame.sample_count == 3
    value['frame'][1]['tags'] = ['vehicle']
    frame = decoded(json.dumps(value).encode())
    assert (frame.game_time, frame.time) == (7.0, 1600000007)


@pytest.mark.parametrize('name', ['minimal_v0', 'minimal_v1', 'minimal_v2'])
def test_packet_header_replaces_missing_members(name):
    value = json.loads(sample(name))
    frame = decoded(json.dumps(value).encode(), game_time=1.0, time=1600000002, sample_count=3)
    assert (frame.game_time, frame.time) == (value['game_time'], value['time'])
    for key in ('game_time', 'time', 'sample_count'):
        value.pop(key, None)
    for payload in (json.dumps(value), json.dumps({**value, 'game_time': None, 'time': None})):
        frame = decoded(payload.encode(), game_time=1.0, time=1600000002, sample_count=3)
        assert (frame.game_time, frame.time, frame.sample_count) == (1.0, 1600000002, 3)
        frame = decoded(payload.encode())
        assert math.isnan(frame.game_time)
        assert (frame.time, frame.sample_count) == (0, 0)


def test_needs_select_parts_and_can_change():
    decoder = Decoder(needs=ESSENTIALS)
    for name in ('minimal_v2', 'minimal_v1'):
        decoder.needs = ESSENTIALS
        [lean] = decoder.decode(sample(name))
        for part in ('boxes', 'wheels', 'inputs'):
            assert getattr(lean.frame, part) is None
            decoder.needs = Needs(**{**dict.fromkeys(('boxes', 'wheels', 'inputs', 'appearance'),
                                                     False), part: True})
            [more] = decoder.decode(sample(name))
            assert getattr(more.frame, part) is not None
            np.testing.assert_array_equal(more.frame.kinematics, lean.frame.kinematics)


def test_without_needs_lane_states_have_actors_only():
    value = json.loads(sample('minimal_v2'))
    vehicle = value['frame']['vehicles'][0]
    without = {**vehicle, 'state': {**vehicle['state'], 'name': 'without'}, 'control_state': None}
    again = {**vehicle, 'state': {**vehicle['state'], 'name': 'again'}}
    for vehicles in ([vehicle, again], [without, vehicle], [without]):
        value['frame']['vehicles'] = vehicles
        payload = json.dumps(value).encode()
        read, unread = (Decoder(needs=needs).decode(payload)[0].frame.lanes
                        for needs in (replace(ESSENTIALS, lanes=True), ESSENTIALS))
        assert unread.actor.tolist() == read.actor.tolist()
        assert len(read.actor) == len(vehicles) - (without in vehicles)
        for column in ('lane_change_left', 'road_id', 'lane_id', 's'):
            assert getattr(unread, column).shape == getattr(read, column).shape
            assert getattr(unread, column).dtype == getattr(read, column).dtype
        assert read.road_id.tolist() == [7] * len(read.actor)
        assert not unread.road_id.any()


@pytest.mark.parametrize('of', [bytes, bytearray, memoryview])
def test_payload_may_be_any_buffer(of):
    for payload in (sample('minimal_v2'), b'[' + sample('minimal_v2') + b']'):
        [result] = Decoder().decode(of(payload))
        assert result.frame.n_actors == 2


def test_empty_frames_have_no_actors():
    for payload, generation in ((b'{"frame": {"vehicles": null}}', 'v2'),
                                (b'{"frame": []}', 'v1'),
                                (b'{"frame": {"objects": [], "vehicles": []}}', 'v2')):
        frame = decoded(payload)
        assert (frame.generation, frame.n_actors) == (generation, 0)
        assert frame.kinematics.shape == (0, 13)


def test_unknown_members_are_collected_whenever_they_appear():
    decoder = Decoder()
    value = json.loads(sample('minimal_v2'))
    value['frame']['vehicles'][0]['state']['foo'] = [{'bar': 1e3}]
    value['frame']['vehicles'][0]['wheels'][1]['pose']['tilt'] = 3
    value['weather'] = {'rain': 'heavy'}
    value['frame']['pedestrians'] = []
    decoder.decode(json.dumps(value).encode())
    expected = {'weather', 'frame.pedestrians', 'frame.vehicles[].state.foo',
                'frame.vehicles[].wheels[].pose.tilt'}
    assert decoder.unknown_members == expected
    value['late'] = value['frame']['objects'][0]['"odd"'] = 1
    decoder.decode(json.dumps(value).encode())
    expected |= {'late', 'frame.objects[]."odd"'}
    assert decoder.unknown_members == expected
    flat = json.loads(sample('minimal_v0'))
    flat['demo_1']['mood'] = 'good'
    flat['comment'] = 'none'
    decoder.decode(json.dumps(flat).encode())
    assert decoder.unknown_members == expected | {'<actor>.mood', 'comment'}


@pytest.mark.parametrize('last', [
    {}, {'state': None}, {'wheels': [[{'odd': 1}]]}, {'state': {'odometry': {'pose': 'none'}}},
    {'state': {'name': float('nan')}}])
def test_unknown_members_of_one_actor_are_found_among_others(last):
    # Whatever the other actors are: that of the second one is found, and no other.
    decoder = Decoder()
    value = json.loads(sample('minimal_v2'))
    vehicle = value['frame']['vehicles'][0]
    odd = {**vehicle, 'state': {**vehicle['state'], 'name': 'odd', 'odometry': {
        **vehicle['state']['odometry'], 'since': 3}}}
    value['frame']['vehicles'] = [vehicle, odd, last]
    with contextlib.suppress(DecodeError):
        decoder.decode(json.dumps(value).encode())
    assert decoder.unknown_members == {'frame.vehicles[].state.odometry.since'}


def test_unknown_members_are_collected_in_unusual_payloads_too():
    decoder = Decoder()
    value = json.loads(sample('minimal_v2'))
    value['frame']['vehicles'][0]['mood'] = 'good'
    value['frame']['objects'][0]['name'] = 7
    decoder.decode(json.dumps(value).encode())
    assert decoder.unknown_members == {'frame.vehicles[].mood'}
    decoder.decode(json.dumps([{**value, 'late': 1}]).encode())
    assert decoder.unknown_members == {'frame.vehicles[].mood', 'late'}


def test_unknown_members_are_collected_up_to_a_limit():
    decoder = Decoder()
    value = json.loads(sample('minimal_v1'))
    value['frame'][0].update({f'{i}' * 100: i for i in range(10, 1000)})
    decoder.decode(json.dumps(value).encode())
    assert len(decoder.unknown_members) == 64
    assert all(len(path) < 60 for path in decoder.unknown_members)


def test_unknown_members_nested_too_deep_are_skipped():
    # At some of these depths the typed decoders skip text that the parser cannot parse. The limit
    # is 1000 before Python 3.14, then the stack, of 8 MB as a rule.
    depths = [*range(900, 1000), *(int(1000 * 1.1 ** i) for i in range(75))]
    n_decoded = 0
    for depth in depths:
        decoder = Decoder()
        with contextlib.suppress(DecodeError):
            decoder.decode(b'{"frame": [], "x": ' + b'[' * depth + b']' * depth + b'}')
            n_decoded += 1
            assert decoder.unknown_members <= {'x'}
    assert 0 < n_decoded < len(depths)
