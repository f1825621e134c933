# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The ego that a client drives, in synthetic traffic: poses, pedals, other vehicles."""

import math

import numpy as np
import pytest

from state_sensor_ros.emulator.bicycle import Bicycle, DRAG, FULL_THROTTLE, Pedals
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames

RATE_HZ = 20.0


def drive(pedals, *, n_vehicles=1, generation='v2', rate_hz=RATE_HZ):
    """Return the frames of a drive with the pedals of each period."""
    frames = TrafficFrames(n_vehicles, 0, rate_hz, 3, generation)
    found = [next(frames)]
    for each in pedals:
        if each is not None:
            frames.drive(each)
        found.append(next(frames))
    return found


def ego_of(frame):
    [ego] = [each for each in frame['frame']['vehicles'] if 'ego' in each['state']['tags']]
    return ego


def vector(members):
    return np.array([members[key] for key in 'xyz'])


def track(frames):
    """Return position, velocity (m) and rates of the ego, (T, 3) each."""
    odometry = [ego_of(frame)['state']['odometry'] for frame in frames]
    return (np.array([vector(each['pose']['position']) for each in odometry]) / 100,
            np.array([vector(each['linear_velocity']) for each in odometry]) / 100,
            np.array([vector(each['angular_velocity']) for each in odometry]))


def test_bicycle_drives_circles():
    car = Bicycle(0.0, 0.0, 0.0, 5.0)
    for _ in range(1000):
        car.advance(Pedals(0.3, DRAG * 5.0 / FULL_THROTTLE), 0.05)
    radius = 1 / car.curvature
    assert math.hypot(car.x, car.y - radius) == pytest.approx(radius, abs=1e-9)
    assert car.speed == pytest.approx(5.0)


def test_brake_does_not_reverse_and_pedals_are_clamped():
    car = Bicycle(0.0, 0.0, 0.0, 3.0)
    for _ in range(100):
        car.advance(Pedals(0.0, 0.0, 9.0), 0.05)
    assert car.speed == 0.0
    car.advance(Pedals(-7.0, 5.0), 1.0)
    assert car.speed == FULL_THROTTLE
    assert car.steering_angle == -math.radians(70.0)
    before = car.speed
    car.advance(Pedals(0.0, 1.0, hand_brake=True), 0.1)
    assert car.speed < before


@pytest.mark.parametrize('slope', [0.3, -0.3])
def test_brake_holds_the_ego_on_a_hill_and_gravity_moves_it(slope):
    car = Bicycle(0.0, 0.0, 0.0, 0.0)
    car.advance(Pedals(brake=1.0), 5.0, slope)
    assert car.speed == 0.0
    car.advance(Pedals(), 1.0, slope)
    assert car.speed == pytest.approx(-9.81 * math.sin(slope))


def test_velocity_is_the_derivative_of_the_pose():
    rate_hz = 10.0
    frames = drive([Pedals(0.05 * math.sin(i / 12.5), 0.5 + 0.4 * math.sin(i / 20))
                    for i in range(130)], rate_hz=rate_hz)
    position, velocity, rate = track(frames)
    moved = np.diff(position, axis=0) * rate_hz
    mean = (velocity[1:] + velocity[:-1]) / 2
    # The steering changes at once with the command, and with it the velocity of the origin.
    assert np.abs(moved - mean)[10:].max() < 0.08
    assert np.abs((moved - mean)[10:].mean(axis=0)).max() < 0.02
    x = np.array([[ego_of(frame)['state']['odometry']['pose']['orientation'][key]
                   for key in 'xyzw'] for frame in frames])
    yaw = np.unwrap(np.arctan2(2 * (x[:, 3] * x[:, 2] + x[:, 0] * x[:, 1]),
                               1 - 2 * (x[:, 1] ** 2 + x[:, 2] ** 2)))
    # A turn of a step is that of the command in effect, which the frame after it shows.
    assert np.abs(np.diff(yaw) * rate_hz - rate[1:, 2])[10:].max() < 0.02


def test_driven_ego_stays_on_the_ground_and_begins_where_it_was():
    undriven = drive([None] * 2)
    frames = drive([None, *[Pedals(0.0, 0.3)] * 2])
    before, after = track(undriven[:2])[0], track(frames[:2])[0]
    assert np.array_equal(before, after)
    assert np.abs(track(frames)[0][2] - track(undriven)[0][2]).max() < 0.02


def test_other_vehicles_do_not_drive_through_the_ego():
    frames = drive([Pedals(0.0, 0.0, 1.0)] * 20, n_vehicles=40, rate_hz=2.0)
    for frame in frames[4::2]:
        ego = vector(ego_of(frame)['state']['odometry']['pose']['position'])
        others = [vector(each['state']['odometry']['pose']['position'])
                  for each in frame['frame']['vehicles'] if 'ego' not in each['state']['tags']]
        assert min(np.linalg.norm(each - ego) for each in others) > 250.0
    assert np.abs(track(frames)[1][-1]).max() < 1e-6


def test_reverse_and_pedals_are_in_the_frames():
    frames = drive([Pedals(0.0, 0.0, 1.0)] * 25 + [Pedals(0.25, 0.5, reverse=True)] * 10,
                   generation='v1', rate_hz=5.0)
    [ego] = frames[-1]['frame']
    assert (ego['throttle_input'], ego['brake_input'], ego['wheel_input']) == (0.5, 0, 0.25)
    assert max(ego['wheel_speed']) < 0.0
    assert ego['wheels'][0]['id'] == 1
    before, after = (frame['frame'][0] for frame in frames[-2:])
    moved = np.subtract(after['position'], before['position'])
    assert moved @ np.array(after['velocity']) > 0.0
