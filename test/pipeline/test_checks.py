# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The check passes consistent streams and names each wrong unit or axis."""

from dataclasses import replace
import json
import math

import numpy as np
import pytest
from real_recordings import each_recording

from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames
from state_sensor_ros.files.frame_builder import build_frame
from state_sensor_ros.pipeline.checks import CHECKS, Checks, Figures, SAMPLED
from state_sensor_ros.simulators.monodrive.frames import Decoder

N_FRAMES = 60


@pytest.fixture(scope='module')
def traffic():
    frames = TrafficFrames(12, 3, 20.0, 5, 'v2')
    return [json.dumps(next(frames)) for _ in range(N_FRAMES)]


def complaints(frames, change=lambda frame: None):
    """Return all complaints about ``frames`` after a change of each."""
    decoder, check, found, last = Decoder(), Checks(), set(), -1.0
    for frame in frames:
        change(frame)
        decoded = next(decoder.frames(json.dumps(frame).encode()))
        if decoded.game_time > last:
            check.add(decoded)
            found.update(check.complaints)
        last = decoded.game_time
    return found


def states(frame):
    body = frame['frame']
    return body['objects'] + [vehicle['state'] for vehicle in body['vehicles']]


def times(vector, factors):
    for axis, factor in factors.items():
        if vector[axis] is not None:
            vector[axis] *= factor


def meters(frame):
    """Send lengths and velocities in meters, which is consistent but a hundred times too small."""
    hundredth = dict.fromkeys('xyz', 0.01)
    for state in states(frame):
        times(state['odometry']['pose']['position'], hundredth)
        times(state['odometry']['linear_velocity'], hundredth)
        for box in state['oriented_bounding_box']:
            times(box['center'], hundredth)
            times(box['extents'], hundredth)


def velocity_in_meters(frame):
    for state in states(frame):
        times(state['odometry']['linear_velocity'], dict.fromkeys('xyz', 0.01))


def y_left(frame):
    """Send positions and velocities with y to the left."""
    for state in states(frame):
        times(state['odometry']['pose']['position'], {'y': -1})
        times(state['odometry']['linear_velocity'], {'y': -1})


def all_right_handed(frame):
    """Send a whole right-handed world: consistent, but the left wheels are on the right."""
    y_left(frame)
    for state in states(frame):
        times(state['odometry']['pose']['orientation'], {'x': -1, 'z': -1})
        times(state['odometry']['angular_velocity'], {'x': -1, 'z': -1})
    for vehicle in frame['frame']['vehicles']:
        for wheel in vehicle['wheels']:
            times(wheel['pose']['position'], {'y': -1})


def degrees(frame):
    for state in states(frame):
        times(state['odometry']['angular_velocity'], dict.fromkeys('xyz', 57.29577951308232))


def test_consistency_of_synthetic_traffic(traffic):
    assert complaints(map(json.loads, traffic)) == set()


@each_recording
def test_consistency_of_real_recordings(path):
    assert complaints(json.loads(path.read_text())) == set()


@pytest.mark.parametrize(('change', 'words'), [
    (meters, 'lengths are not in the expected unit'),
    (velocity_in_meters, 'not in the same units'),
    (y_left, 'y is not mirrored'),
    (all_right_handed, 'y is not mirrored'),
    (degrees, 'degrees/s'),
])
def test_consistency_names_the_error(traffic, change, words):
    # 3 s of 20 Hz, after which the warning is due.
    found = complaints(map(json.loads, traffic), change)
    assert any(words in complaint for complaint in found), found


@pytest.mark.filterwarnings('error::RuntimeWarning')
def test_consistency_leaves_out_a_frame_of_extreme_values(traffic):
    frames = list(map(json.loads, traffic))
    for state in states(frames[20]):
        state['odometry']['pose']['position']['x'] = 1e300
        state['odometry']['linear_velocity']['y'] = -1e300
    decoder, check = Decoder(), Checks()
    for frame in frames:
        check.add(next(decoder.frames(json.dumps(frame).encode())))
    assert check.complaints == ()
    assert check.figures().displacement == pytest.approx(1.0, abs=0.01)


def drive(speeds, *, said=None, n_frames=30, jump=None):
    """
    Return the check after frames of actors that drive along x.

    :param speeds: m/s by name; a name that begins with ``w`` is that of a walker.
    :param said: by name, velocities that the source sends in place of the speeds.
    :param jump: name, frame and distance of an actor that is put somewhere else.
    """
    check, names = Checks(), tuple(speeds)
    said = speeds | (said or {})
    for i in range(n_frames):
        positions = [(speed * 0.1 * i, 5.0 * row, 0.0) for row, speed in enumerate(
            speeds.values())]
        if jump is not None and i >= jump[1]:
            row = names.index(jump[0])
            positions[row] = (positions[row][0], positions[row][1], jump[2])
        check.add(build_frame(
            'toy', 0.1 * i, names, positions,
            velocity_xyz=[(said[name], 0.0, 0.0) for name in names],
            is_vehicle=[name[0] != 'w' for name in names],
            tags=[('pedestrian' if name[0] == 'w' else 'car',) for name in names]),
            f'frame {i}')
    return check


def test_velocities_of_0_are_found_by_class_and_actor():
    cars = {f'c{i}': 10.0 for i in range(20)}
    check = drive(cars | {'w1': 1.5, 'w2': 1.5}, said={'w1': 0.0, 'w2': 0.0})
    assert check.complaints == (
        'person: velocities of 2 actors are 0 while they move',)
    assert [len(check.new_complaints()) for _ in range(2)] == [1, 0]
    assert check.figures().displacement == pytest.approx(1.0)
    # Cars far from the ego, of which CARLA's hybrid physics gives no velocity.
    assert drive(cars, said={'c3': 0.0, 'c4': 0.0}).complaints == (
        'car: velocities of 2 actors are 0 while they move',)


@pytest.mark.parametrize('said', [{}, {'c1': math.nan}])
def test_a_jump_is_counted_and_no_result(said):
    check = drive({'c1': 10.0, 'c2': 0.0}, said=said, jump=('c1', 21, -200.0))
    assert check.complaints == ()
    assert check.jumps.lines == [
        '1 jump of the position, the greatest 200 m (c1, frame 21)']
    assert not said or check.not_compared['without a velocity'] == 29


@pytest.mark.parametrize(('name', 'wrong', 'words'), [
    ('displacement', 0.01, 'not in the same units'), ('rotation', -1.0, 'rotation is -1 times'),
    ('rotation', math.inf, 'rotation is inf'), ('rotation', 1 / 57.3, 'is 0.0175 times'),
    ('rotation', 5.0, 'not in rad/s'), ('slip', 0.9, 'along their own x axis'),
    ('left_m', -1.6, 'left wheels'), ('length_m', 0.045, '0.045 m long')])
def test_each_figure_that_is_wrong_has_one_complaint(name, wrong, words):
    [complaint] = [check for check in CHECKS if check.is_wrong(Figures(**{name: wrong}))]
    assert words in complaint.text.format(of=Figures(**{name: wrong}))
    assert not any(check.is_wrong(Figures()) for check in CHECKS)


def test_one_frame_alone_is_not_compared():
    assert drive({'c1': 10.0}, n_frames=1).reason == 'nothing compared: 1 frame'
    assert drive({'c1': 0.0}).reason == 'nothing moves'


@pytest.mark.parametrize(('n_actors', 'period_s'), [(10, 5.0), (1000, 5.0), (10000, 50.0)])
def test_wheels_and_boxes_are_due_more_seldom_with_many_actors(n_actors, period_s):
    check = Checks(periods_s=SAMPLED)
    names = tuple(map(str, range(n_actors)))
    frame = build_frame('v2', 100.0, names, np.zeros((n_actors, 3)))
    check.add(replace(frame, wheels=None))
    assert check.next_details_s < 100.0
    check.add(frame)
    assert check.next_details_s == 100.0 + period_s


@pytest.mark.parametrize(('rate', 'complaints'), [
    (1.0, 0), (math.degrees(1.0), 1), (-1.0, 1), (0.0, 1)])
def test_people_who_turn_in_one_step_have_the_rates_since_the_last_one(rate, complaints):
    """People in SUMO turn at once: the mean of the rates of two such frames is no rotation."""
    check, before = Checks(), 0.0
    for i in range(30):
        yaw = 1.5 * (i % 2)
        check.add(build_frame(
            'toy', 0.05 * i, ('w',), [(0.1 * i, 0.0, 0.0)], velocity_xyz=[(2.0, 0.0, 0.0)],
            orientation_xyzw=[(0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2))],
            angular_velocity_xyz=[(0.0, 0.0, rate * (yaw - before) / 0.05)],
            is_vehicle=[False], tags=[('pedestrian',)]))
        before = yaw
    assert len(check.complaints) == complaints
