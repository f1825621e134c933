# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Measurements and files of the dataset to frames, against independently computed values."""

import contextlib
import json
import math

from budgets import tries
from carla_example import EXAMPLE
import carla_wire as wire
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest
from raw_actors import matrix_of

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import KIND_OBJECT, KIND_VEHICLE
from state_sensor_ros.simulators.carla.dataset import FileReader
from state_sensor_ros.simulators.carla.frames import FrameMaker, NO_LIGHT
from state_sensor_ros.simulators.carla.stream import parsed
from state_sensor_ros.source import Faults


def file_frame(text):
    """Return the frame of a file of a dataset, and its faults."""
    faults = Faults()
    frame = FileReader(faults).frame(text, ())
    return frame, faults.take()


def dataset(document):
    return file_frame(json.dumps(document, indent=4).encode())


def live(message):
    """Return the frame of a message of a server, and its faults."""
    faults = Faults()
    return FrameMaker(faults).frame(parsed(message)), faults.take()


def changed(path, value):
    """Return the example with one member replaced, or omitted where ``value`` is ``...``."""
    document = json.loads(json.dumps(EXAMPLE))
    *owners, last = path
    at = document
    for key in owners:
        at = at[key]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return document


def check_example(frame):
    assert frame.generation == 'carla'
    assert frame.game_time == 12.3
    assert frame.time == 0
    assert frame.sample_count == 5  # of 4294967301, modulo 2^32
    assert frame.names == ('player', 'vehicle_30', 'pedestrian_4000000000', 'traffic_light_31',
                           'traffic_light_32', 'speed_limit_sign_33')
    assert frame.tags == (('ego', 'vehicle'), ('vehicle',), ('pedestrian',), ('traffic_light',),
                          ('traffic_light',), ('speed_limit_sign',))
    assert frame.kinds.tolist() == [KIND_VEHICLE] * 2 + [KIND_OBJECT] * 4
    np.testing.assert_array_equal(frame.position_xyz, [
        (80, -12, 38), (100, -20, 38), (90, 20, 39), (88, -12.5, 0), (90, 0, 0), (0, 0, 3)])
    # An inverted 0 is 0.0, not -0.0.
    for numbers in (frame.position_xyz, frame.orientation_xyzw[2:], frame.boxes.position_xyz):
        assert not np.signbit(numbers[numbers == 0]).any()
    half = math.sqrt(0.5)
    np.testing.assert_allclose(frame.orientation_xyzw, [
        (0, 0, -1, 0), (0, 0, -half, half), *[(0, 0, 0, 1)] * 4], atol=1e-15)
    assert np.isnan(frame.kinematics[:, 7:]).all()
    np.testing.assert_array_equal(frame.forward_speed, [6.5, -3.5, 0.0, *[math.nan] * 3])
    check_boxes(frame.boxes)
    check_extension(frame.extension)


def check_boxes(boxes):
    assert boxes.actor.tolist() == [0, 1, 2]
    np.testing.assert_allclose(boxes.position_xyz, [
        (80, -12, 38.5), (100, -20.5, 38.75), (90, 20, 39)], atol=1e-13)
    np.testing.assert_array_equal(boxes.size_xyz, [(4.5, 2, 1.5), (5, 2, 1.5), (0.5, 0.5, 2)])
    np.testing.assert_array_equal(boxes.scale_xyz, np.ones((3, 3)))


def check_extension(extension):
    assert extension.frame_number == 4294967301
    assert (extension.game_timestamp, extension.platform_timestamp) == (12300, 987654)
    assert extension.ids.tolist() == [0, 30, 4000000000, 31, 32, 33]
    assert extension.lights.tolist() == [NO_LIGHT] * 3 + [0, 2, NO_LIGHT]
    np.testing.assert_array_equal(extension.speed_limits, [*[math.nan] * 5, 12.5])
    player = extension.player
    assert player.numbers[:8].tolist() == [0.5, 0.25, 0.0, 100.0, 5.0, 7.5, 0.25, 0.125]
    assert player.controls[0].tolist() == [0.0, 0.5, 0.0]
    assert player.switches[0].tolist() == [True, False]


def test_carla_dataset_file():
    frame, faults = dataset(EXAMPLE)
    assert faults == ()
    check_example(frame)
    # The applied command, with the sign of the inputs of all sources: + = left.
    np.testing.assert_allclose(frame.inputs[0], (0.75, 0.25, 0.25, math.radians(70.0 * 0.25)))
    assert np.isnan(frame.inputs[1:]).all()
    player = frame.extension.player
    assert player.controls[1:].tolist() == [[0.125, 0.5, 0.0], [-0.25, 0.75, 0.25]]
    assert player.switches[1:].tolist() == [[False, True]] * 2
    assert player.numbers[8:].tolist() == [4.0, 1.0, 0.0, 0.5]
    assert player.is_dataset
    assert player.has_switches
    assert player.extra_members == '{"waypoints":[[1.5,-2],[3,4]]}'


def test_carla_measurements_message_written_by_hand():
    player = wire.player(
        wire.transform((80.0, 12.0, 38.0), yaw=180.0),
        bounding_box=wire.box((2.25, 1.0, 0.75), (0.0, 0.0, 0.5)), acceleration=(0.5, -0.25, 0.0),
        speed=6.5, collisions=(100.0, 5.0, 7.5), otherlane=0.25, offroad=0.125,
        autopilot=wire.control(throttle=0.5, hand_brake=True))
    message = wire.measurements(
        4294967301, 12300, 987654, player,
        wire.vehicle(30, wire.transform((100.0, 20.0, 38.0), yaw=90.0), -3.5,
                     wire.box((2.5, 1.0, 0.75), (0.5, 0.0, 0.75))),
        wire.pedestrian(4000000000, wire.transform((90.0, -20.0, 39.0)), 0.0,
                        wire.box((0.25, 0.25, 1.0))),
        wire.traffic_light(31, wire.transform((88.0, 12.5, 0.0)), 0),
        wire.traffic_light(32, wire.transform((90.0, 0.0, 0.0)), 2),
        wire.speed_limit_sign(33, wire.transform((0.0, 0.0, 3.0)), 12.5))
    frame, faults = live(message)
    assert faults == ()
    check_example(frame)
    assert np.isnan(frame.inputs).all()
    assert not frame.extension.player.is_dataset


@pytest.mark.parametrize('spelling', ['frame_number', 'player_measurements',
                                      'non_player_agents', 'bounding_box', 'speed_limit_sign'])
def test_carla_dataset_takes_both_spellings(spelling):
    first, *others = spelling.split('_')
    usual = first + ''.join(word.capitalize() for word in others)
    text = json.dumps(EXAMPLE)
    assert f'"{usual}"' in text
    frame, faults = file_frame(text.replace(f'"{usual}"', f'"{spelling}"').encode())
    assert faults == ()
    check_example(frame)


def test_carla_dataset_of_zeros_has_almost_no_members():
    document = {'playerMeasurements': {'transform': {}, 'boundingBox': {}}, 'nonPlayerAgents': [
        {'vehicle': {'transform': {'location': {}, 'rotation': {}}}}]}
    frame, _ = dataset(document)
    assert frame.names == ('player', 'vehicle_0')
    assert frame.game_time == 0.0
    np.testing.assert_array_equal(frame.kinematics[:, :7], [(0, 0, 0, 0, 0, 0, 1)] * 2)
    np.testing.assert_array_equal(frame.forward_speed, (0.0, 0.0))
    assert frame.boxes.actor.tolist() == [0]
    assert np.isnan(frame.extension.player.controls[1]).all()


def test_carla_dataset_numbers_that_json_has_not():
    frame, _ = dataset(changed(('playerMeasurements', 'forwardSpeed'), 'NaN'))
    assert math.isnan(frame.forward_speed[0])
    frame, _ = dataset(changed(('playerMeasurements', 'collisionOther'), 'Infinity'))
    assert frame.extension.player.numbers[5] == math.inf
    for value in ('-Infinity', math.nan, None):
        frame, _ = dataset(changed(
            ('nonPlayerAgents', 0, 'vehicle', 'transform', 'location', 'x'), value))
        assert frame.has_pose().tolist() == [True, False, True, True, True, True]
    frame, _ = dataset(changed(('nonPlayerAgents', 4, 'speedLimitSign', 'speedLimit'), None))
    assert math.isnan(frame.extension.speed_limits[5])


def test_carla_dataset_names_unknown_members_once():
    document = changed(('playerMeasurements', 'wheelFLOmega'), 12.0)
    document['weather'] = {'id': 3}
    text, faults = json.dumps(document).encode(), Faults()
    reader = FileReader(faults)
    for _ in range(2):
        frame = reader.frame(text, ())
        check_example(frame)
    [fault] = faults.take()
    assert fault.error.where == 'PlayerMeasurements.wheelFLOmega'
    assert json.loads(frame.extension.player.extra_members) == {
        'weather': {'id': 3}, 'waypoints': EXAMPLE['waypoints']}


@pytest.mark.parametrize(('path', 'value', 'where'), [
    (('nonPlayerAgents', 0, 'vehicle', 'transform', 'location', 'x'), 'here',
     r'\$\.nonPlayerAgents\[0\]: found .*x.*here'),
    (('nonPlayerAgents', 0, 'vehicle', 'transform'), ...,
     r'nonPlayerAgents\[0\]\.vehicle\.transform: found nothing'),
    (('nonPlayerAgents', 0, 'vehicle'), ..., r'nonPlayerAgents\[0\]: found nothing'),
    (('nonPlayerAgents', 0, 'id'), 2 ** 32, r'\$\.nonPlayerAgents\[0\]: found .*id'),
    (('nonPlayerAgents', 0), 'nobody', r"\$\.nonPlayerAgents\[0\]: found 'nobody'")])
def test_carla_dataset_bad_agent_leaves_the_others(path, value, where):
    frame, [fault] = dataset(changed(path, value))
    assert frame.names == ('player', 'pedestrian_4000000000', 'traffic_light_31',
                           'traffic_light_32', 'speed_limit_sign_33')
    assert fault.kind == 'dropped'
    with pytest.raises(DecodeError, match=where):
        raise fault.error


def test_carla_unknown_state_of_a_light_is_a_fault():
    frame, [fault] = dataset(changed(('nonPlayerAgents', 3, 'trafficLight', 'state'), 'BLUE'))
    assert 'traffic_light_32' not in frame.names
    assert 'BLUE' in str(fault.error)
    frame, [fault] = live(wire.measurements(1, 1, 1, wire.traffic_light(5, wire.transform(), 7)))
    assert frame.names == ()
    assert 'found 7' in str(fault.error)


def test_carla_agent_twice_keeps_the_first():
    agents = [wire.vehicle(7, wire.transform((x, 0.0, 0.0)), 0.0, wire.box((1.0, 1.0, 1.0)))
              for x in (1.0, 2.0)]
    walker = wire.pedestrian(7, wire.transform(), 0.0, wire.box((1.0, 1.0, 1.0)))
    frame, faults = live(wire.measurements(1, 1, 1, *agents, walker))
    assert frame.names == ('vehicle_7', 'pedestrian_7')
    assert frame.position_xyz[0, 0] == 1.0
    assert [fault.kind for fault in faults] == ['duplicate']


def test_carla_message_without_pose_differs_from_one_at_the_origin():
    there = wire.sub(4, wire.fixed32(1, 1) + wire.sub(2, wire.sub(1, b'')))
    nowhere = wire.sub(4, wire.fixed32(1, 2) + wire.sub(2, wire.real(3, 5.0)))
    frame, faults = live(wire.measurements(1, 1, 1, there, nowhere))
    assert frame.names == ('vehicle_1',)
    assert frame.boxes.actor.tolist() == []
    assert len(faults) == 1


@pytest.mark.parametrize('unit', [1.0, 100.0], ids=['0.8.1', '0.8.0'])
def test_carla_agents_of_the_oldest_versions_have_boxes(unit):
    """In 0.8.0 their half sizes are in cm, and those of the player in m."""
    def agent(number, id_, x, extent):
        return wire.sub(4, wire.fixed32(1, id_) + wire.sub(number, (
            wire.sub(1, wire.transform((x, 2.0, 1.0))) + wire.real(3, 1.5)
            + wire.sub(2, wire.vector(*(unit * each for each in extent))))))
    player = wire.sub(3, wire.sub(1, wire.transform()) + wire.sub(11, wire.vector(2.5, 1.0, 0.75)))
    frame, _ = live(wire.measurements(
        0, 1, 1, player, agent(2, 5, 10.0, (4.5, 1.25, 1.75)), agent(3, 6, 20.0, (0.25, 0.5, 0.5)),
        agent(2, 7, 30.0, (0.0, 0.0, 0.0))))
    boxes = frame.boxes
    assert boxes.names == ('box_extent',) * 4
    assert boxes.actor.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(boxes.size_xyz, [
        (5.0, 2.0, 1.5), (9.0, 2.5, 3.5), (0.5, 1.0, 1.0), (0.0, 0.0, 0.0)])
    np.testing.assert_array_equal(boxes.position_xyz[1:], frame.position_xyz[1:])


@pytest.mark.parametrize(('version', 'limits'), [
    ('0.8.0', (40.0, 120.0, 130.0)), ('0.8.1', (100 / 3.6, 120 / 3.6, 130 / 3.6)),
    ('0.8.4', (40.0, 40.0, 40.0))])
def test_carla_speed_limits_are_in_meters_per_second(version, limits):
    """In 0.8.0 they are sent in km/h; a later version, with greater ones too, in m/s."""
    extent = wire.sub(11, wire.vector(2.5, 1.0, 0.75))
    if version == '0.8.4':
        extent = wire.sub(12, wire.box((2.5, 1.0, 0.75)))
    signs = [wire.speed_limit_sign(i, wire.transform((i, 0.0, 0.0)), limit)
             for i, limit in enumerate(limits, 1)]
    frame, _ = live(wire.measurements(
        0, 1, 1, wire.sub(3, wire.sub(1, wire.transform()) + extent), *signs))
    expected = np.array(limits) / (3.6 if version == '0.8.0' else 1.0)
    np.testing.assert_allclose(frame.extension.speed_limits[1:], expected, rtol=1e-6)


@pytest.mark.parametrize('text', [
    b'', b'[1]', b'{}', b'{"steer": 0.5}', b'{"frameNumber": -1}',
    b'{"gameTimestamp": 4294967296, "playerMeasurements": {}}',
    b'{"frameNumber": 1' + b'0' * 400 + b', "playerMeasurements": {}}',
    b'{"steer": "x", "playerMeasurements": {}}', b'{"nonPlayerAgents": 3}', b'{"a":' * 100000,
    b'\xff\xfe'])
def test_carla_dataset_refuses_what_is_no_measurement(text):
    with pytest.raises(DecodeError, match=r'.+: found .+; expected .+'):
        file_frame(text)


@given(st.binary(max_size=200))
def test_carla_message_of_random_bytes_raises_nothing_else(data):
    for decode in (live, file_frame):
        with contextlib.suppress(DecodeError):
            decode(data)


@settings(max_examples=tries(15))
@given(st.data())
def test_carla_dataset_with_anything_anywhere_raises_nothing_else(data):
    document = json.loads(json.dumps(EXAMPLE))
    leaf = st.one_of(st.none(), st.booleans(), st.integers(-2 ** 70, 2 ** 70), st.text(max_size=5),
                     st.floats(), st.just({}), st.just([]), st.just(10 ** 400), st.just('\ud800'))
    at = document
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not at[key] or not isinstance(at[key], (dict, list)) or data.draw(st.booleans()):
            at[key] = data.draw(leaf)
            break
        at = at[key]
    with contextlib.suppress(DecodeError):
        dataset(document)


ANGLES = st.floats(-180.0, 180.0, width=32)
PITCHES = st.floats(-89.75, 89.75, width=32)


def carla_axes(roll, pitch, yaw):
    """Return the actor's axes (rows: forward, right, up) in CARLA's world."""
    r, p, y = map(math.radians, (roll, pitch, yaw))
    forward = (math.cos(p) * math.cos(y), math.cos(p) * math.sin(y), math.sin(p))
    level_right = (-math.sin(y), math.cos(y), 0.0)
    level_up = np.cross(forward, level_right)
    right = math.cos(r) * np.array(level_right) - math.sin(r) * level_up
    assert right[2] == pytest.approx(-math.cos(p) * math.sin(r), abs=1e-12)
    return np.array((forward, right, np.cross(forward, right)))


@given(ANGLES, PITCHES, ANGLES, ANGLES, PITCHES, ANGLES)
def test_carla_axes_and_box_corners_are_the_mirrored_ones(roll, pitch, yaw, b_roll, b_pitch,
                                                          b_yaw):
    extent, offset, place = (2.5, 1.0, 0.75), (0.5, -0.25, 0.75), (100.0, -20.0, 38.0)
    message = wire.measurements(1, 1, 1, wire.vehicle(
        1, wire.transform(place, roll, pitch, yaw), 0.0,
        wire.box(extent, offset, roll=b_roll, pitch=b_pitch, yaw=b_yaw)))
    frame, _ = live(message)
    mirror = np.diag((1.0, -1.0, 1.0))
    axes = carla_axes(roll, pitch, yaw)
    forward, left, up = matrix_of(frame.orientation_xyzw[0]).T
    np.testing.assert_allclose((forward, left, up),
                               (mirror @ axes[0], -mirror @ axes[1], mirror @ axes[2]), atol=1e-9)
    signs = np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, -1).T
    corners = (np.array(place) + (offset + (signs * extent) @ carla_axes(b_roll, b_pitch, b_yaw))
               @ axes) @ mirror
    boxes = frame.boxes
    # The mirror swaps left and right corners, so the sign of y changes.
    ours = boxes.position_xyz[0] + (signs * (1, -1, 1) * boxes.size_xyz[0] / 2) \
        @ matrix_of(boxes.orientation_xyzw[0]).T
    np.testing.assert_allclose(ours, corners, atol=1e-9)


def test_carla_selection_keeps_what_belongs_together():
    frame, _ = dataset(EXAMPLE)
    chosen = frame.select(np.array((1, 4, 5)))
    assert chosen.names == ('vehicle_30', 'traffic_light_32', 'speed_limit_sign_33')
    assert chosen.forward_speed[0] == -3.5
    assert chosen.boxes.actor.tolist() == [0]
    assert chosen.extension.ids.tolist() == [30, 32, 33]
    assert chosen.extension.lights.tolist() == [NO_LIGHT, 2, NO_LIGHT]
    assert chosen.extension.speed_limits[2] == 12.5
    assert chosen.extension.player is None
    assert frame.select(np.array((0, 1))).extension.player is frame.extension.player


def test_carla_decodes_no_more_than_is_needed_and_keeps_names():
    reader = FileReader(Faults())
    reader.maker.details = False
    text = json.dumps(EXAMPLE).encode()
    first, second = reader.frame(text, ()), reader.frame(text, ())
    assert first.boxes is None
    assert first.inputs is None
    assert first.names is second.names
    assert first.tags is second.tags
