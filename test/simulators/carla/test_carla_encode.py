# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA's frames as messages, read back by another implementation."""

import json
import math

from carla_example import EXAMPLE
from encode_world import writable
from message_store import read
import numpy as np
import pytest

from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.carla_decoder import DatasetDecoder
from state_sensor_ros.simulators.carla.carla_encoder import CarlaEncoder
from state_sensor_ros.simulators.carla.carla_topics import DATASET_TOPICS, STATUS_TOPIC
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import Demand

STAMP_NS = 12_300_000_001
EVERYTHING = Demand()


def changed(**members):
    return {**json.loads(json.dumps(EXAMPLE)), **members}


class Rig:
    """Decoder, registry and encoders, as in the pipeline."""

    def __init__(self, **settings):
        self.settings = Settings(**settings)
        definitions = load_definitions()
        self.decoder, self.registry = DatasetDecoder(), Registry(frame_prefix='sim/')
        self.common = Encoder(self.settings, definitions)
        self.carla = CarlaEncoder(self.settings, definitions)

    def frame(self, document):
        (decoded,) = [self.decoder.decode_dataset(json.dumps(document).encode())]
        return decoded.frame

    def messages(self, document=EXAMPLE, demand=EVERYTHING, *, rows=None):
        """Return the messages by topic; the markers of both encoders as a list."""
        frame = self.frame(document)
        if rows is not None:
            frame = frame.select(np.array(rows))
        actor_list = self.registry.update(frame)
        found = {}
        for encoder in (self.common, self.carla):
            for topic, data in encoder.encode(frame, actor_list, STAMP_NS, demand):
                message = read(data, topic.type_name)
                if topic.name == '~/markers':
                    found.setdefault(topic.name, []).append(message)
                else:
                    assert topic.name not in found
                    found[topic.name] = message
        return found


@pytest.fixture(scope='module')
def messages():
    return Rig(debug_drawing=True).messages()


def check_header(header, frame_id):
    assert (header.stamp.sec, header.stamp.nanosec) == (12, 300_000_001)
    assert header.frame_id == frame_id


def test_carla_status_has_the_measurements(messages):
    status = messages['~/player/status']
    check_header(status.header, 'map')
    assert (status.frame_number, status.game_timestamp, status.platform_timestamp) == (
        4294967301, 12300, 987654)
    acceleration = status.acceleration
    assert (acceleration.x, acceleration.y, acceleration.z) == (0.5, 0.25, 0.0)
    assert status.forward_speed == 6.5
    assert (status.collision_vehicles, status.collision_pedestrians, status.collision_other) == (
        100.0, 5.0, 7.5)
    assert (status.intersection_otherlane, status.intersection_offroad) == (0.25, 0.125)
    assert status.is_dataset
    assert status.directions == status.TURN_RIGHT
    assert (status.stop_pedestrian, status.stop_vehicle, status.stop_traffic_lights) == (
        1.0, 0.0, 0.5)
    assert json.loads(status.extra_members) == {'waypoints': [[1.5, -2], [3, 4]]}
    check_header(status.autopilot_control.header, 'sim/player')
    assert status.autopilot_control.throttle == 0.5


@pytest.mark.parametrize(('topic', 'origin', 'raw_steer', 'throttle', 'brake', 'switches'), [
    ('~/player/autopilot_control', 'ORIGIN_AUTOPILOT', 0.0, 0.5, 0.0, (True, False)),
    ('~/player/expert_control', 'ORIGIN_EXPERT', 0.125, 0.5, 0.0, (False, True)),
    ('~/player/control', 'ORIGIN_APPLIED', -0.25, 0.75, 0.25, (False, True))])
def test_carla_commands_are_distinguished(messages, topic, origin, raw_steer, throttle, brake,
                                          switches):
    control = messages[topic]
    check_header(control.header, 'sim/player')
    assert control.origin == getattr(control, origin)
    assert (control.raw_steer, control.steer) == (raw_steer, -raw_steer)
    assert control.steering_angle == pytest.approx(-math.radians(70.0 * raw_steer), abs=1e-15)
    assert (control.throttle, control.brake) == (throttle, brake)
    assert (control.hand_brake, control.reverse) == switches


def test_carla_lights_and_limits(messages):
    array = messages['~/traffic_lights']
    check_header(array.header, 'map')
    green, red = array.traffic_lights
    assert (green.name, green.frame_id, green.id, green.state) == (
        'traffic_light_31', 'sim/traffic_light_31', 31, green.GREEN)
    assert (red.name, red.id, red.state) == ('traffic_light_32', 32, red.RED)
    assert (green.pose.position.x, green.pose.position.y) == (88.0, -12.5)
    assert green.pose.orientation.w == 1.0
    array = messages['~/speed_limits']
    check_header(array.header, 'map')
    (sign,) = array.speed_limits
    assert (sign.name, sign.id, sign.speed_limit) == ('speed_limit_sign_33', 33, 12.5)
    assert sign.pose.position.z == 3.0


def test_carla_frame_without_lights_sends_empty_arrays():
    messages = Rig().messages(changed(nonPlayerAgents=[]))
    assert messages['~/traffic_lights'].traffic_lights == []
    assert messages['~/speed_limits'].speed_limits == []


def test_carla_state_frame_has_nan_where_carla_measures_nothing(messages):
    frame = messages['~/frame']
    assert frame.generation == 'carla'
    assert frame.game_time == 12.3
    player, car, walker, light, _, sign = frame.actors
    assert list(player.tags) == ['ego', 'vehicle']
    for actor, speed in ((player, 6.5), (car, -3.5), (walker, 0.0)):
        assert actor.twist.linear.x == speed
    assert math.isnan(light.twist.linear.x)
    for actor in (player, car, walker, light, sign):
        unknown = (actor.twist.linear.y, actor.twist.linear.z, actor.twist.angular.x,
                   actor.twist.angular.y, actor.twist.angular.z)
        assert all(map(math.isnan, unknown))
    (box,) = car.oriented_bounding_boxes
    assert box.name == 'bounding_box'
    assert (box.size.x, box.size.y, box.size.z) == (5.0, 2.0, 1.5)
    assert (player.inputs.throttle, player.inputs.brake, player.inputs.steering) == (
        0.75, 0.25, 0.25)
    assert math.isnan(car.inputs.throttle)


def test_carla_odometry_has_large_variances_where_carla_measures_nothing(messages):
    odometry = messages['~/actors/vehicle_30/odometry'].twist
    assert (odometry.twist.linear.x, odometry.twist.linear.y) == (-3.5, 0.0)
    assert odometry.covariance[::7].tolist() == [1e-9] + [1e6] * 5
    assert np.count_nonzero(odometry.covariance) == 6
    light = messages['~/actors/traffic_light_31/odometry'].twist
    assert light.twist.linear.x == 0.0
    assert light.covariance[::7].tolist() == [1e6] * 6
    ego = messages['~/ego/odometry']
    assert ego.child_frame_id == 'sim/player'
    assert ego.twist.twist.linear.x == 6.5


def test_carla_odometry_in_global_axes():
    messages = Rig(twist_frame='global').messages()
    car = messages['~/actors/vehicle_30/odometry'].twist  # faces -y, drives backwards
    assert car.twist.linear.x == pytest.approx(0.0, abs=1e-12)
    assert car.twist.linear.y == pytest.approx(3.5)
    assert car.covariance[::7].tolist() == [1e6] * 6


def test_carla_markers_show_colours_and_numbers(messages):
    _, signs = messages['~/markers']
    green, red, sign, number = signs.markers
    assert [(m.ns, m.id, m.action) for m in signs.markers] == [
        ('traffic_lights', 31, 0), ('traffic_lights', 32, 0), ('speed_limits', 33, 0),
        ('speed_limit_numbers', 33, 0)]
    assert green.color.g > 0.7 > green.color.r
    assert red.color.r > 0.7 > red.color.g
    assert (red.pose.position.x, red.pose.orientation.w, red.scale.x) == (90.0, 1.0, 1.0)
    assert number.text == '45'  # 12.5 m/s
    assert number.pose.position.z > sign.pose.position.z == 3.0
    for marker in signs.markers:
        check_header(marker.header, 'map')
        assert marker.color.a == 1.0


def test_carla_markers_of_the_gone_are_deleted_once():
    rig = Rig(debug_drawing=True)
    rig.messages()
    second = rig.messages(rows=(0, 3))['~/markers'][-1].markers
    assert [(m.ns, m.id, m.action) for m in second] == [
        ('traffic_lights', 31, 0), ('speed_limit_numbers', 33, 2), ('speed_limits', 33, 2),
        ('traffic_lights', 32, 2)]
    third = rig.messages(rows=(0, 3))['~/markers'][-1].markers
    assert [(m.ns, m.id, m.action) for m in third] == [('traffic_lights', 31, 0)]


def test_carla_markers_of_huge_ids_and_unusable_poses():
    agents = [
        {'id': 2 ** 32 - 1, 'trafficLight': {'state': 'YELLOW', 'transform': {}}},
        {'id': 5, 'trafficLight': {'transform': {'location': {'x': 'NaN'}}}},
        {'id': 6, 'speedLimitSign': {'speedLimit': 'NaN', 'transform': {}}}]
    messages = Rig(debug_drawing=True, labels=False).messages(changed(nonPlayerAgents=agents))
    assert [(m.id, m.text) for m in messages['~/markers'][-1].markers] == [
        (2 ** 31 - 1, ''), (6, ''), (6, '?')]
    lights = messages['~/traffic_lights'].traffic_lights
    assert [light.id for light in lights] == [2 ** 32 - 1, 5]
    assert math.isnan(lights[1].pose.position.x)


def test_carla_marker_ids_are_unique_and_stay():
    def markers(rig, *ids):
        agents = [{'id': id_, 'trafficLight': {'transform': {}}} for id_ in ids]
        array = rig.messages(changed(nonPlayerAgents=agents))['~/markers'][-1]
        return [(marker.id, marker.action) for marker in array.markers]

    rig = Rig(debug_drawing=True, labels=False)
    assert markers(rig, 5, 2 ** 31 + 5, 2 ** 31 + 6) == [(5, 0), (6, 0), (7, 0)]
    assert markers(rig, 2 ** 31 + 6, 6) == [(7, 0), (6, 0), (5, 2)]
    assert markers(rig, 2 ** 31 + 6, 6, 5) == [(7, 0), (6, 0), (5, 0)]


def test_carla_markers_have_unit_quaternions():
    rig = Rig(debug_drawing=True)
    frame = rig.frame(EXAMPLE)
    writable(frame.kinematics)[:, 3:7] *= 0.95
    actor_list = rig.registry.update(frame)
    arrays = [read(data, topic.type_name) for encoder in (rig.common, rig.carla)
              for topic, data in encoder.encode(frame, actor_list, STAMP_NS, EVERYTHING)
              if topic.name == '~/markers']
    norms = [math.hypot(q.x, q.y, q.z, q.w) for array in arrays
             for q in (marker.pose.orientation for marker in array.markers)]
    assert len(norms) > 8
    assert norms == pytest.approx([1.0] * len(norms))


def test_carla_encodes_no_more_than_is_demanded():
    rig = Rig(debug_drawing=True)
    assert rig.messages(demand=Demand.nothing()) == {}
    assert set(rig.messages(demand=Demand.of([STATUS_TOPIC]))) == {'~/player/status'}
    for topic in DATASET_TOPICS[:6]:
        assert set(rig.messages(demand=Demand.of([topic]))) == {topic.name}


def test_carla_repeated_frame_is_not_encoded_again():
    rig = Rig()
    frame = rig.frame(EXAMPLE)
    actor_list = rig.registry.update(frame)
    assert rig.carla.encode(frame, actor_list, STAMP_NS, EVERYTHING, advanced=False) == []


def test_carla_status_requires_the_player():
    messages = Rig(debug_drawing=True).messages(rows=(1, 3))
    assert '~/player/status' not in messages
    assert len(messages['~/traffic_lights'].traffic_lights) == 1


def test_carla_numbers_follow_the_frames():
    rig = Rig()
    rig.messages()
    document = changed(frameNumber=str(2 ** 64 - 1), steer=-0.5, throttle_noise='NaN',
                       gameTimestamp=2 ** 32 - 1, hand_brake=True)
    document['nonPlayerAgents'][2]['trafficLight']['state'] = 'YELLOW'
    document['playerMeasurements']['acceleration'] = {'y': 'Infinity', 'z': None}
    messages = rig.messages(document)
    status = messages['~/player/status']
    assert (status.frame_number, status.game_timestamp) == (2 ** 64 - 1, 2 ** 32 - 1)
    assert (status.acceleration.x, status.acceleration.y) == (0.0, -math.inf)
    assert math.isnan(status.acceleration.z)
    assert messages['~/player/expert_control'].steer == 0.5
    assert messages['~/player/expert_control'].hand_brake
    assert math.isnan(messages['~/player/control'].throttle)
    assert messages['~/traffic_lights'].traffic_lights[0].state == 1
