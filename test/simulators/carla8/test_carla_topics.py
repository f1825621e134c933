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
from message_store import read
import numpy as np
import pytest

from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.dataset import FileReader
from state_sensor_ros.simulators.carla.topics import carla_encoders
from state_sensor_ros.source import Faults
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING, NOTHING, Subscriptions

STAMP_NS = 12_300_000_001


def changed(**members):
    return {**json.loads(json.dumps(EXAMPLE)), **members}


class Rig:
    """Decoder, registry and encoders, as in the pipeline."""

    def __init__(self, **settings):
        self.settings = Settings(**settings)
        definitions = load_definitions()
        self.reader, self.registry = FileReader(Faults()), Registry(Settings(frame_prefix='sim/'))
        self.encoder = Encoder(self.settings, definitions, further=carla_encoders(()))
        self.stamp_ns = STAMP_NS

    def frame(self, document):
        return self.reader.frame(json.dumps(document).encode(), ())

    def messages(self, document=EXAMPLE, subscriptions=EVERYTHING):
        """Return the messages by topic."""
        frame = self.frame(document)
        actor_list = self.registry.update(frame)
        self.encoder.new_topics(frame)
        found = {}
        for topic, data in self.encoder.encode(frame, actor_list, self.stamp_ns, subscriptions):
            assert topic.name not in found
            found[topic.name] = read(data, topic.type_name)
        self.stamp_ns += 100_000_000
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
        'traffic_light_31', 'map', 31, green.GREEN)
    assert (red.name, red.id, red.state) == ('traffic_light_32', 32, red.RED)
    assert (green.pose.position.x, green.pose.position.y) == (88.0, -12.5)
    assert green.pose.orientation.w == 1.0
    array = messages['~/speed_limits']
    check_header(array.header, 'map')
    (sign,) = array.speed_limits
    assert (sign.name, sign.id, sign.speed_limit) == ('speed_limit_sign_33', 33, 12.5)
    assert sign.pose.position.z == 3.0


def test_carla_state_frame_has_nan_where_carla_measures_nothing(messages):
    frame = messages['~/frame']
    assert frame.generation == 'carla'
    assert frame.game_time == 12.3
    player, car, walker, light, _, sign = frame.actors
    assert list(player.tags) == ['ego', 'vehicle']
    # Global axes: the player faces -x, the car -y, and drives backward.
    for actor, velocity in ((player, (-6.5, 0.0, 0.0)), (car, (0.0, 3.5, 0.0)),
                            (walker, (0.0, 0.0, 0.0))):
        linear = actor.twist.linear
        assert (linear.x, linear.y, linear.z) == pytest.approx(velocity, abs=1e-12)
    for actor in (player, car, walker, light, sign):
        angular = actor.twist.angular
        assert all(map(math.isnan, (angular.x, angular.y, angular.z)))
    for actor in (light, sign):
        assert math.isnan(actor.twist.linear.x)
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


def test_carla_markers_show_the_colors_of_lights(messages):
    [lights] = [each for each in messages['~/markers'].markers if each.ns == 'traffic_lights']
    green, red = lights.colors
    assert green.g > 0.7 > green.r
    assert red.r > 0.7 > red.g
    assert (lights.points[1].x, lights.pose.orientation.w) == (90.0, 1.0)


def test_carla_encodes_no_more_than_is_subscribed():
    rig = Rig(debug_drawing=True)
    assert set(rig.messages(subscriptions=NOTHING)) == {'~/actors'}
    for encoder in carla_encoders(())[:3]:
        found = rig.messages(subscriptions=Subscriptions.of(encoder.topics[:1]))
        assert set(found) == {topic.name for topic in encoder.topics}


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
