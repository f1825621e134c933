# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA's vehicles and pedestrians are objects; what it does not measure has large variances."""

import json
import math

from carla_example import EXAMPLE
from message_store import read
import numpy as np
import pytest

from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.dataset import FileReader
from state_sensor_ros.source import Faults
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING

UNKNOWN = 1e6


@pytest.fixture(scope='module')
def messages():
    frame = FileReader(Faults()).frame(json.dumps(EXAMPLE).encode(), ())
    encoder = Encoder(Settings(outputs=('autoware', 'derived_objects', 'vision')),
                      load_definitions())
    encoded = encoder.encode(frame, Registry().update(frame), 12_300_000_000, EVERYTHING)
    return {topic.name: read(data, topic.type_name) for topic, data in encoded}


def test_lights_signs_and_the_player_are_no_objects(messages):
    assert [(each.id, each.results[0].hypothesis.class_id)
            for each in messages['~/detections'].detections] == [
                ('vehicle_30', 'car'), ('pedestrian_4000000000', 'person')]


def test_objects_have_boxes_and_forward_speeds(messages):
    car, person = messages['/perception/object_recognition/ground_truth/objects'].objects
    assert [each.classification[0].label for each in (car, person)] == [1, 7]
    dimensions = car.shape.dimensions
    assert (dimensions.x, dimensions.y, dimensions.z) == pytest.approx((5.0, 2.0, 1.5))
    # The box is 0.5 m ahead of the origin and 0.75 m above it; yaw 90 turns right.
    center = car.kinematics.pose_with_covariance.pose.position
    assert (center.x, center.y, center.z) == pytest.approx((100.0, -20.5, 38.75))
    twist = car.kinematics.twist_with_covariance
    assert (twist.twist.linear.x, twist.twist.linear.y) == (-3.5, pytest.approx(0.0))
    assert list(twist.covariance[::7]) == [1e-9, *[UNKNOWN] * 5]
    # There is no frame before it.
    assert list(car.kinematics.acceleration_with_covariance.covariance[::7]) == [UNKNOWN] * 6
    derived, _ = messages['~/objects'].objects
    assert (derived.twist.linear.x, derived.twist.linear.y) == pytest.approx((0.0, 3.5))


def test_player_is_at_its_base_link(messages):
    state = messages['/localization/kinematic_state']
    assert (state.twist.twist.linear.x, state.pose.pose.position.x) == (6.5, 80.0)
    assert list(state.twist.covariance[::7]) == [1e-9, *[UNKNOWN] * 5]
    assert messages['/vehicle/status/velocity_status'].longitudinal_velocity == 6.5
    # Steer times 70 degrees, + = right in CARLA.
    angle = messages['/vehicle/status/steering_status'].steering_tire_angle
    assert angle == pytest.approx(-math.radians(70.0 * EXAMPLE['steer_noise']), abs=1e-6)
    assert np.isfinite(angle)
