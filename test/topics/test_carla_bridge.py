# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The topics of CARLA's bridge, with values worked by hand, and the commands that it takes."""

from dataclasses import replace
import math
from types import SimpleNamespace

from encode_world import box_at, boxes_of, definitions, HALF, make_frame
from message_store import read
import numpy as np
from paths import SAMPLE
import pytest
from rosbags.rosbag2 import Reader

from state_sensor_ros.commands.cli import main
from state_sensor_ros.control.command_inputs import INPUTS
from state_sensor_ros.control.ego_commands import ControlParameters
from state_sensor_ros.errors import StateError
from state_sensor_ros.frame import LIGHT_GREEN, LIGHT_RED, LIGHT_YELLOW, TrafficLights, Wheels
from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import ROS_BRIDGE, Settings
from state_sensor_ros.simulators import checked_settings
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.encoding import LastCommand
from state_sensor_ros.topics.topic import EVERYTHING

EGO = '/carla/ego_vehicle/'
# The ego looks along y, drives ahead at 4 m/s, slides to its left at 1 m/s and turns left. The
# center of its box is 1 m ahead of its origin.
KINEMATICS = [(10.0, 5.0, 0.0, 0.0, 0.0, HALF, HALF, -1.0, 4.0, 0.0, 0.0, 0.0, 0.5),
              (20.0, 5.0, 0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0)]
MAP = '<OpenDRIVE><header revMajor="1" name="Town01" date="today"/></OpenDRIVE>'


def bridge_frame(**parts):
    return make_frame(('me', 'car'), KINEMATICS, (1, 1), (('vehicle', 'ego'), ('vehicle',)), **{
        'boxes': boxes_of(
            box_at(0, (10.0, 6.0, 0.75), (0.0, 0.0, HALF, HALF), (4.5, 1.8, 1.5)),
            box_at(1, (20.5, 5.0, 0.75), (0.0, 0.0, 0.0, 1.0), (4.0, 2.0, 1.5))),
        'inputs': np.array([(0.5, 0.25, 0.125, math.nan), (math.nan,) * 4]),
        'accelerations': np.array([(0.0, 2.0, 0.0), (math.nan,) * 3]),
        'ids': np.array([24, 31]), 'open_drive': MAP, **parts})


def lights(*ids_and_states):
    ids, states = zip(*ids_and_states, strict=True)
    return TrafficLights(np.array(ids, np.int64), tuple(map(str, ids)),
                         np.array(states, np.uint8), np.array([
                             (float(each), 2.0, 5.0, 0.0, 0.0, HALF, HALF) for each in ids]))


class Bridge:
    """What is published of frames; ``command`` is the last one that was sent."""

    def __init__(self, settings=None):
        self.command = None
        self.encoder = Encoder(settings or Settings(outputs=(ROS_BRIDGE,)), definitions(),
                               last_command=lambda: self.command)
        self.registry = Registry()

    def of(self, frame):
        self.encoder.new_topics(frame)
        return {topic.name: read(data, topic.type_name) for topic, data in self.encoder.encode(
            frame, self.registry.update(frame), 1_500_000_000, EVERYTHING)
            if topic.name.startswith('/carla/')}


def xyz(vector):
    return vector.x, vector.y, vector.z


def test_twists_are_in_the_child_frame_and_objects_at_the_centers_of_their_boxes():
    messages = Bridge().of(bridge_frame())
    odometry = messages[EGO + 'odometry']
    assert (odometry.header.frame_id, odometry.child_frame_id) == ('map', 'me')
    assert xyz(odometry.pose.pose.position) == (10.0, 5.0, 0.0)
    assert xyz(odometry.twist.twist.linear) == pytest.approx((4.0, 1.0, 0.0))
    assert xyz(odometry.twist.twist.angular) == pytest.approx((0.0, 0.0, 0.5))
    me, car = messages['/carla/objects'].objects
    assert [each.id for each in messages[EGO + 'objects'].objects] == [car.id] == [31]
    assert (me.id, me.classification, me.header.frame_id) == (24, 6, 'map')
    assert xyz(me.pose.position) == pytest.approx((10.0, 6.0, 0.75))
    assert list(me.shape.dimensions) == pytest.approx((4.5, 1.8, 1.5))
    # Where the box is, the turn adds 0.5 m/s to the left: along -x.
    assert xyz(me.twist.linear) == pytest.approx((-1.5, 4.0, 0.0))
    assert xyz(car.pose.position) == pytest.approx((20.5, 5.0, 0.75))


def test_ego_has_carlas_signs_and_what_is_unknown_is_no_number():
    bridge = Bridge()
    messages = bridge.of(bridge_frame())
    status, info = messages[EGO + 'vehicle_status'], messages[EGO + 'vehicle_info']
    assert status.velocity == pytest.approx(math.sqrt(17.0))
    assert (status.orientation.z, status.orientation.w) == pytest.approx((HALF, HALF))
    assert xyz(status.acceleration.linear) == (0.0, 2.0, 0.0)
    assert np.isnan(xyz(status.acceleration.angular)).all()
    # To the right is positive.
    control = status.control
    assert (control.throttle, control.brake, control.steer) == (0.5, 0.25, -0.125)
    assert (control.reverse, control.hand_brake, control.gear) == (False, False, 0)
    assert (info.id, info.rolename, info.type, info.wheels) == (24, 'ego_vehicle', 'vehicle.car',
                                                                [])
    assert np.isnan((info.mass, info.max_rpm, info.center_of_mass.x)).all()
    assert [(each.id, each.type, each.rolename) for each in messages[
        '/carla/actor_list'].actors] == [(24, 'vehicle.car', 'ego_vehicle'),
                                         (31, 'vehicle.car', 'car')]
    assert messages['/carla/status'].frame == 40
    # Once; and the gear is that of the last command.
    bridge.command = LastCommand(is_reverse=True, is_parked=True, steering_angle=0.0)
    messages = bridge.of(bridge_frame(inputs=np.full((2, 4), math.nan)))
    control = messages[EGO + 'vehicle_status'].control
    assert (control.reverse, control.hand_brake) == (True, True)
    assert np.isnan((control.throttle, control.steer, control.brake)).all()
    assert EGO + 'vehicle_info' not in messages


def test_wheels_are_those_with_a_position_front_left_first():
    wheels = Wheels(np.array([0, 0, 0]), np.array([3, 0, 1], np.uint8), np.zeros(3, np.int32),
                    np.array([(-1.0, -0.75, 0.25), (1.5, 0.75, 0.25), (math.nan,) * 3]),
                    np.full((3, 4), math.nan), np.array([True, True, False]), np.zeros(3, bool),
                    np.zeros(3))
    found = Bridge().of(bridge_frame(wheels=wheels))[EGO + 'vehicle_info'].wheels
    assert [xyz(each.position) for each in found] == [(1.5, 0.75, 0.25), (-1.0, -0.75, 0.25)]
    assert math.isnan(found[0].radius)


def test_frame_without_an_ego_a_number_and_a_map_has_no_message_of_them():
    frame = replace(bridge_frame().select([1]), sample_count=0, open_drive='')
    assert Bridge().of(frame).keys() == {'/carla/objects', EGO + 'objects', '/carla/actor_list'}


def test_lights_are_sent_when_they_change_and_unknown_when_they_show_nothing():
    bridge = Bridge()
    shown = bridge.of(bridge_frame(traffic_lights=lights(
        (9, LIGHT_GREEN), (4, LIGHT_YELLOW), (5, LIGHT_RED))))
    status, info = '/carla/traffic_lights/status', '/carla/traffic_lights/info'
    assert {each.id: each.state for each in shown[status].traffic_lights} == {9: 2, 4: 1, 5: 0}
    place = shown[info].traffic_lights[1].transform
    assert (*xyz(place.position), place.orientation.z) == (4.0, 2.0, 5.0, HALF)
    assert math.isnan(shown[info].traffic_lights[1].trigger_volume.size.x)
    # Without the red one.
    for is_sent in (True, False):
        shown = bridge.of(bridge_frame(traffic_lights=lights((9, LIGHT_RED), (4, LIGHT_RED))))
        assert info not in shown
        assert (status in shown) is is_sent
        if is_sent:
            assert {each.id: each.state for each in shown[status].traffic_lights} == {
                9: 0, 4: 0, 5: 4}


def test_map_is_sent_once_with_its_name():
    bridge = Bridge()
    messages = bridge.of(bridge_frame())
    assert messages['/carla/map'].data == MAP
    world = messages['/carla/world_info']
    assert (world.map_name, world.opendrive) == ('Town01', MAP)
    assert '/carla/map' not in bridge.of(bridge_frame())


@pytest.mark.parametrize(('ego', 'role'), [
    ('hero', 'hero'), ('', 'ego_vehicle'), ('24', 'ego_vehicle'), ('a.b', 'ego_vehicle')])
def test_role_is_that_of_the_ego_in_carla(ego, role):
    settings = checked_settings({'source': 'carla9', 'carla9.ego': ego,
                                 'outputs': [ROS_BRIDGE]}, is_live=False)
    assert f'/carla/{role}/odometry' in Bridge(settings).of(bridge_frame())
    assert [topic.name for topic in INPUTS[ROS_BRIDGE](
        ControlParameters(), settings.role).topics] == [
            f'/carla/{role}/vehicle_control_cmd', f'/carla/{role}/ackermann_cmd']


def control(**fields):
    return SimpleNamespace(**{'throttle': 0.5, 'brake': 0.0, 'steer': 0.25, 'hand_brake': False,
                              'reverse': False, 'gear': 0, 'manual_gear_shift': False, **fields})


def test_commands_have_carlas_signs_and_gears():
    taken = INPUTS[ROS_BRIDGE](ControlParameters())
    assert taken.wanted(None, control()).steer == -0.25
    for fields, throttle, reverse in (
            ({'reverse': True}, 0.5, True), ({'gear': -1}, 0.5, False),
            ({'gear': -1, 'manual_gear_shift': True}, 0.5, True),
            ({'manual_gear_shift': True}, 0.0, False)):
        command = taken.wanted(None, control(**fields))
        assert (command.throttle, command.reverse) == (throttle, reverse)
    for fields in ({'steer': math.nan}, {'steer': 1.5}, {'throttle': -0.1}):
        with pytest.raises(StateError):
            taken.wanted(None, control(**fields))
    followed = taken.wanted(None, SimpleNamespace(
        speed=-3.0, acceleration=2.0, steering_angle=0.1))
    assert (followed.speed, followed.max_acceleration, followed.steering_angle) == (
        -3.0, 2.0, pytest.approx(0.1))


def test_bag_has_the_topics_as_the_bridge_offers_them(tmp_path):
    bag = tmp_path / 'bag'
    assert main(['convert', str(SAMPLE), str(bag), '--outputs', ROS_BRIDGE]) == 0
    with Reader(bag) as reader:
        found = {each.topic: (each.msgtype.rpartition('/')[2], each.ext.offered_qos_profiles[0])
                 for each in reader.connections if each.topic.startswith('/carla/')}
        n_info = sum(connection.topic == EGO + 'vehicle_info'
                     for connection, *_ in reader.messages())
    latched = {EGO + 'vehicle_info', '/carla/traffic_lights/info', '/carla/traffic_lights/status'}
    assert {topic: kind for topic, (kind, _) in found.items()} == {
        '/carla/objects': 'ObjectArray', EGO + 'objects': 'ObjectArray',
        EGO + 'odometry': 'Odometry', EGO + 'vehicle_status': 'CarlaEgoVehicleStatus',
        EGO + 'vehicle_info': 'CarlaEgoVehicleInfo', '/carla/actor_list': 'CarlaActorList',
        '/carla/traffic_lights/info': 'CarlaTrafficLightInfoList',
        '/carla/traffic_lights/status': 'CarlaTrafficLightStatusList',
        '/carla/status': 'CarlaStatus'}
    assert {topic for topic, (_, qos) in found.items()
            if qos.durability.name == 'TRANSIENT_LOCAL'} == latched
    assert {qos.depth for _, qos in found.values()} == {10}
    assert n_info == 1
