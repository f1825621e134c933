# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Payloads in the usual format of each generation, compared with values of other code."""

from __future__ import annotations

import json
import math
import pickle

from monodrive_frames import frame_of, sample, SAMPLES, with_faults
import numpy as np
import pytest
from raw_actors import actors_of
from real_recordings import FILES, path_of

from state_sensor_ros.frame import KIND_OBJECT, KIND_VEHICLE
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.monodrive.frames import Decoder
from state_sensor_ros.source import MEMBER


def assert_actors(frame, value):
    actors = actors_of(value).values()
    assert frame.names == tuple(actor.name for actor in actors)
    assert frame.tags == tuple(actor.tags for actor in actors)
    assert frame.kinds.tolist() == [
        KIND_VEHICLE if actor.is_vehicle else KIND_OBJECT for actor in actors]
    for found, name in ((frame.position_xyz, 'position'), (frame.velocity_xyz, 'velocity'),
                        (frame.angular_velocity_xyz, 'rate')):
        np.testing.assert_allclose(
            np.nan_to_num(found), [getattr(actor, name) for actor in actors], rtol=1e-15, atol=0)
    np.testing.assert_allclose(
        frame.orientation_xyzw, [actor.orientation for actor in actors], atol=1e-6)


@pytest.mark.parametrize('details', [True, False])
@pytest.mark.parametrize('name', SAMPLES)
def test_actors_of_samples(name, details):
    decoder = Decoder()
    decoder.details = details
    frame = frame_of(sample(name), decoder=decoder)
    assert frame.generation == name.split('_')[1]
    assert_actors(frame, sample(name))
    for part in (frame.boxes, frame.wheels, frame.inputs):
        assert (part is None) is not details


@pytest.mark.parametrize('file', FILES)
def test_actors_of_recordings(file):
    decoder = Decoder()
    for value in json.loads(path_of(file).read_bytes()):
        frame = frame_of(value, decoder=decoder)
        assert frame.generation == file.split('.')[1]
        assert_actors(frame, value)
        assert (frame.game_time, frame.time, frame.sample_count) == (
            value['game_time'], value['time'], value.get('sample_count', 0))


def test_v2_by_hand():
    frame = frame_of(sample('minimal_v2'))
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
    assert np.isnan(frame.inputs).all()
    assert frame.colors == ('', '')


def test_boxes_by_hand():
    boxes = frame_of(sample('minimal_v2')).boxes
    assert boxes.actor.tolist() == [0, 1]
    assert boxes.names == ('None', 'Body')
    np.testing.assert_array_equal(boxes.position_xyz, [[42, 3.1, 0.35], [25, 3, 0.84]])
    np.testing.assert_array_equal(boxes.size_xyz, [[0.3, 0.3, 0.6], [1.8, 1.3, 4.5]])
    np.testing.assert_array_equal(boxes.orientation_xyzw, [[0, 0, 0, 1], [-0.5, -0.5, 0.5, 0.5]])
    np.testing.assert_array_equal(boxes.scale_xyz, np.ones((2, 3)))


def test_units_change_extents_and_s():
    units = Settings(obb_extents='half', road_s_unit='m')
    frame = frame_of(sample('minimal_v2'), units=units)
    np.testing.assert_array_equal(frame.boxes.size_xyz, [[0.6, 0.6, 1.2], [3.6, 2.6, 9]])
    assert frame.lanes.s.tolist() == [1250.0]


def test_inputs_by_hand():
    inputs = frame_of(sample('minimal_v1')).inputs
    np.testing.assert_array_equal(inputs, [[0.4, 0.0, -0.02, math.nan]])
    inputs = frame_of(sample('minimal_v0')).inputs
    assert inputs[0, 3] == pytest.approx(math.radians(1.5), rel=1e-15)
    assert np.isnan(inputs[0, :3]).all()


def test_recorded_brake_sign_is_turned():
    value = sample('minimal_v1')
    value['frame'][0]['brake_input'] = -0.31
    assert frame_of(value).inputs[0, 1] == 0.31


def test_v1t_frame_has_the_time_of_the_ego():
    value = sample('minimal_v1t')
    other = {**value['frame'][0], 'name': 'first', 'tags': ['vehicle'], 'game_time': 7.0,
             'time': 1600000007}
    value['frame'].insert(0, other)
    frame = frame_of(value, (0.0, 0, 3))
    assert (frame.generation, frame.game_time, frame.time) == ('v1t', 3.25, 1550000000)
    assert frame.sample_count == 3
    value['frame'][1]['tags'] = ['vehicle']
    frame = frame_of(value)
    assert (frame.game_time, frame.time) == (7.0, 1600000007)


@pytest.mark.parametrize('name', ['minimal_v0', 'minimal_v1', 'minimal_v2'])
def test_packet_header_replaces_missing_members(name):
    value, head = sample(name), (1.0, 1600000002, 3)
    frame = frame_of(value, head)
    assert (frame.game_time, frame.time) == (value['game_time'], value['time'])
    for key in ('game_time', 'time', 'sample_count'):
        value.pop(key, None)
    for payload in (value, {**value, 'game_time': None, 'time': None}):
        frame = frame_of(payload, head)
        assert (frame.game_time, frame.time, frame.sample_count) == head
        frame = frame_of(payload)
        assert math.isnan(frame.game_time)
        assert (frame.time, frame.sample_count) == (0, 0)


def unknown(decoder, value):
    _, faults = with_faults(value, decoder=decoder)
    return {fault.error.where for fault in faults if fault.kind == MEMBER}


def test_unknown_members_are_named_once_in_usual_and_other_forms():
    decoder = Decoder()
    value = sample('minimal_v2')
    value['frame']['vehicles'][0]['state']['foo'] = [{'bar': 1e3}]
    value['frame']['vehicles'][0]['wheels'][1]['pose']['tilt'] = 3
    value['weather'] = {'rain': 'heavy'}
    value['frame']['pedestrians'] = []
    expected = {'weather', 'frame.pedestrians', 'frame.vehicles[].state.foo',
                'frame.vehicles[].wheels[].pose.tilt'}
    assert unknown(decoder, value) == expected
    assert unknown(decoder, value) == set()
    # Of a frame with a bad actor, too.
    value['frame']['objects'][0].update(name=7, mood=1)
    assert unknown(decoder, [{**value, 'late': 1}]) == {'late', 'frame.objects[].mood'}
    flat = sample('minimal_v0')
    flat['demo_1']['mood'] = 'good'
    flat['comment'] = 'none'
    assert unknown(Decoder(), flat) == {'<actor>.mood', 'comment'}


def test_wheels_are_decoded_when_they_are_used():
    expected = frame_of(sample('sample_v2')).wheels
    [frame] = Decoder().frames(json.dumps(sample('sample_v2')).encode())
    late = frame.select([1]).wheels
    assert late._read is not None
    for wheels in (late, pickle.loads(pickle.dumps(frame.wheels))):
        np.testing.assert_array_equal(wheels.speed, expected.speed)
    with pytest.raises(AttributeError, match='radius'):
        assert late.radius
