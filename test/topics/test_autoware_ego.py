# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What planning and control of Autoware wait for: status of the vehicle, and free space."""

import math

from encode_world import definitions, make_frame
from message_store import read
import numpy as np
import pytest

from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import parse_settings
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.encoding import LastCommand
from state_sensor_ros.topics.topic import EVERYTHING, LATCHED

INITIALIZATION = '/localization/initialization_state'
CLOUD, GRID = '/perception/obstacle_segmentation/pointcloud', '/perception/occupancy_grid_map/map'
COMMAND = LastCommand(False, False, 0.1)


class Drive:
    """The messages of frames of an ego, by topic."""

    def __init__(self, command=None, **given):
        self._settings = parse_settings(
            {'outputs': ['autoware'], 'base_link_xyz': [-1, 0, 0.5], **given})
        self._registry = Registry(self._settings)
        self.encoder = Encoder(self._settings, definitions(), last_command=lambda: command)

    def sent(self, tag='ego', x=0.0, speed=0.0, rate=0.0, steering=math.nan, **parts):
        frame = make_frame(('a',), [[x, 20.0, 3.0, 0, 0, 0, 1.0, speed, 0, 0, 0, 0, rate]],
                           tags=(('vehicle', tag),), **parts,
                           inputs=np.array([[math.nan, math.nan, math.nan, steering]]))
        return {topic.name: read(data, topic.type_name) for topic, data in self.encoder.encode(
            frame, self._registry.update(frame), 10**9, EVERYTHING)}


@pytest.mark.parametrize(('command', 'indicators', 'reports'), [
    (None, None, (0, 4, 0, 0)), ((False, False), [1], (2, 1, 2, 1)),
    ((True, False), [2], (20, 1, 3, 1)), ((False, True), [3], (22, 1, 1, 2)),
    (None, [0], (0, 4, 1, 1)), (None, [-1], (0, 4, 0, 0))])
def test_vehicle_status_is_that_of_the_last_command_and_the_source(command, indicators, reports):
    sent = Drive(command and LastCommand(*command, 0.0)).sent(
        indicators=indicators and np.array(indicators, np.int8))
    assert tuple(getattr(sent[f'/vehicle/status/{name}'], field) for name, field in (
        ('gear_status', 'report'), ('control_mode', 'mode'), ('turn_indicators_status', 'report'),
        ('hazard_lights_status', 'report'))) == reports


@pytest.mark.parametrize(('command', 'motion', 'angle'), [
    (COMMAND, {'steering': 0.2, 'speed': 10.0}, 0.2), (COMMAND, {'speed': 10.0, 'rate': 0.5}, 0.1),
    (COMMAND, {}, 0.1), (None, {'speed': 10.0, 'rate': 0.5}, math.atan(2.9 * 0.05)),
    (None, {}, None)], ids=['measured', 'commanded', 'commanded at rest', 'yaw rate', 'unknown'])
def test_steering_is_measured_or_commanded_or_follows_from_the_yaw_rate(command, motion, angle):
    found = Drive(command).sent(**motion).get('/vehicle/status/steering_status')
    assert (found and found.steering_tire_angle) == (angle and pytest.approx(angle))


def test_steering_of_a_first_command_begins_straight_on():
    sent = Drive(control_input='autoware').sent()
    assert sent['/vehicle/status/steering_status'].steering_tire_angle == 0.0


def test_space_around_base_link_is_free():
    sent = Drive().sent(x=5.0)
    cloud, grid = sent[CLOUD], sent[GRID]
    assert [(each.name, each.offset, each.datatype, each.count) for each in cloud.fields] == [
        ('x', 0, 7, 1), ('y', 4, 7, 1), ('z', 8, 7, 1)]
    assert (cloud.header.frame_id, cloud.header.stamp.sec, cloud.height, cloud.width,
            cloud.point_step, len(cloud.data)) == ('base_link', 1, 1, 0, 12, 0)
    info, corner = grid.info, grid.info.origin.position
    assert (grid.header.frame_id, grid.header.stamp.sec, info.width, info.height, info.resolution,
            bytes(grid.data)) == ('map', 1, 200, 200, 0.5, bytes(40_000))
    assert (corner.x, corner.y, corner.z, info.origin.orientation.w) == (-46.0, -30.0, 3.5, 1.0)


def test_localization_is_initialized_while_there_is_an_ego():
    drive = Drive()
    assert {topic.name: topic.qos for topic in drive.encoder.topics}[INITIALIZATION] == LATCHED
    states = [drive.sent(tag).get(INITIALIZATION) for tag in ('ego', 'ego', 'other', 'ego')]
    assert [each and each.state for each in states] == [3, None, 1, 3]
