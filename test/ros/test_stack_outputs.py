# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The outputs for autonomy stacks, true and perceived, where their messages are built."""

from types import SimpleNamespace

import pytest
from rig import frame, NodeProcess, packet, Remote, state

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.ros.parameters import check_packages
from state_sensor_ros.ros.report import GraphWatch
from state_sensor_ros.settings import parse_settings

ALL = ['autoware', 'derived_objects', 'vision', 'carla_ros_bridge']
PREDICTED = '/perception/object_recognition/objects'
TRACKED = '/perception/object_recognition/ground_truth/objects'
PERCEIVED = '/perception/object_recognition/tracking/objects'
TOPICS = {
    TRACKED: 'autoware_perception_msgs/TrackedObjects',
    PERCEIVED: 'autoware_perception_msgs/TrackedObjects',
    '/perception/object_recognition/detection/objects':
        'autoware_perception_msgs/DetectedObjects',
    PREDICTED: 'autoware_perception_msgs/PredictedObjects',
    '/localization/kinematic_state': 'nav_msgs/Odometry',
    '/localization/acceleration': 'geometry_msgs/AccelWithCovarianceStamped',
    '/vehicle/status/velocity_status': 'autoware_vehicle_msgs/VelocityReport',
    '/vehicle/status/gear_status': 'autoware_vehicle_msgs/GearReport',
    '/vehicle/status/control_mode': 'autoware_vehicle_msgs/ControlModeReport',
    '/state_sensor/objects': 'derived_object_msgs/ObjectArray',
    '/state_sensor/detections': 'vision_msgs/Detection3DArray',
    '/carla/objects': 'derived_object_msgs/ObjectArray',
    '/carla/ego_vehicle/odometry': 'nav_msgs/Odometry',
    '/carla/ego_vehicle/vehicle_status': 'carla_msgs/CarlaEgoVehicleStatus'}


def content(number):
    """Return a frame of an ego that drives ahead and of a car that reverses."""
    ego = state('ego_car', position=(100.0 * number, 0.0, 0.0), velocity=(1000.0, 0.0, 0.0),
                tags=('vehicle', 'ego'))
    car = state('other', position=(2000.0 - 25.0 * number, 300.0, 0.0),
                velocity=(-500.0, 0.0, 0.0))
    return frame(number, ego, car)


def sent(simulator, listener, received):
    """Send frames until each topic has a message."""
    numbers = iter(range(10_000))

    def all_received():
        number = next(numbers)
        simulator.send(packet(content(number), game_time=1.0 + number * 0.05,
                              sample_count=number + 1))
        listener.spin(0.05)
        return all(received.values())
    listener.until(all_received, what='a message of each topic')


def test_outputs_are_on_topics(domain, listener, simulator):
    received = {topic: listener.subscribe(topic, type_) for topic, type_ in TOPICS.items()}
    with NodeProcess(domain, port=simulator.port, outputs=ALL, ego_frame='base_link',
                     autoware_objects=['ground_truth', 'tracking', 'detection', 'predicted']
                     ) as node:
        simulator.accept()
        sent(simulator, listener, received)
        # A late subscriber receives the names of the classes.
        labels = listener.subscribe('/state_sensor/label_info', 'vision_msgs/LabelInfo',
                                    latched=True)
        ego = listener.subscribe('/carla/ego_vehicle/vehicle_info',
                                 'carla_msgs/CarlaEgoVehicleInfo', latched=True)
        listener.until(lambda: labels and ego, what='the latched label_info and vehicle_info')
        assert node.is_alive
    assert {'car', 'person'} < {each.class_name for each in labels[0].class_map}
    tracked, = received[TRACKED][-1].objects
    assert tracked.kinematics.twist_with_covariance.twist.linear.x == pytest.approx(-5.0)
    assert tracked.kinematics.orientation_availability == 2
    assert (tracked.shape.dimensions.x, tracked.shape.dimensions.y) == pytest.approx((4.5, 1.8))
    predicted, = received[PREDICTED][-1].objects
    path, = predicted.kinematics.predicted_paths
    assert len(path.path) == 31
    assert path.path[2].position.x == pytest.approx(path.path[0].position.x - 5.0)
    assert received['/localization/kinematic_state'][-1].twist.twist.linear.x == 10.0
    assert received['/vehicle/status/velocity_status'][-1].longitudinal_velocity == 10.0
    # Without commands.
    assert (received['/vehicle/status/gear_status'][-1].report,
            received['/vehicle/status/control_mode'][-1].mode) == (0, 4)
    assert received['/state_sensor/objects'][-1].objects[0].twist.linear.x == -5.0
    assert received['/state_sensor/detections'][-1].detections[0].id == 'other'
    assert len(received['/carla/objects'][-1].objects) == 2
    assert received['/carla/ego_vehicle/odometry'][-1].twist.twist.linear.x == 10.0
    assert received['/carla/ego_vehicle/vehicle_status'][-1].velocity == 10.0
    assert ego[0].rolename == 'ego_vehicle'


def test_publisher_that_starts_long_after_the_node_is_named_once():
    names = ['driver']
    node = SimpleNamespace(
        count_publishers=lambda topic: len(names), get_fully_qualified_name=lambda: '/driver',
        get_publishers_info_by_topic=lambda topic: [
            SimpleNamespace(node_namespace='/', node_name=name) for name in names])
    lines = []
    watch = GraphWatch(node, lines.append)
    watch.exclusive = {'/objects'}
    for more in ([], ['_NODE_NAME_UNKNOWN_'], ['stack'], ['stack']):
        names[1:] = more
        for _ in range(100 if not more else 1):
            watch.find_others()
    assert lines == ['/objects has another publisher, /stack']


@pytest.mark.parametrize(('parameter', 'value', 'package'), [
    ('outputs', 'autoware', 'autoware_perception_msgs'),
    ('outputs', 'derived_objects', 'derived_object_msgs'), ('outputs', 'vision', 'vision_msgs'),
    ('control_input', 'ackermann', 'ackermann_msgs'),
    ('outputs', 'carla_ros_bridge', 'carla_msgs'),
    ('control_input', 'autoware', 'autoware_control_msgs')])
def test_output_or_input_without_its_package_is_refused(monkeypatch, parameter, value, package):
    monkeypatch.setattr('state_sensor_ros.ros.parameters.find_spec', lambda name: None)
    with pytest.raises(ConfigError, match=f'{parameter}: {value} needs the package '
                       f'{package}: apt install ros-'):
        check_packages(parse_settings({
            parameter: [value] if parameter == 'outputs' else value}))


def stamp_of(message):
    return message.header.stamp.sec * 10 ** 9 + message.header.stamp.nanosec


class Drive:
    """Frames of a car, and the messages of both topics."""

    def __init__(self, simulator, listener):
        self._simulator, self._listener, self._number = simulator, listener, 0
        self.true, self.tracked = (
            listener.subscribe(topic, TOPICS[topic]) for topic in (TRACKED, PERCEIVED))

    def until(self, holds, what):
        """Send frames until the last message of each topic is as expected."""
        def sent():
            self._simulator.send(packet(content(self._number), sample_count=self._number + 1,
                                        game_time=1.0 + self._number * 0.05))
            self._number += 1
            self._listener.spin_for(0.03)
            return self.true and self.tracked and holds(self.true[-1], self.tracked[-1])
        self._listener.until(sent, what=what)


def positions(message):
    return [(place.x, place.y) for place in (
        each.kinematics.pose_with_covariance.pose.position for each in message.objects)]


def covariances(message):
    return [each.kinematics.pose_with_covariance.covariance[0] for each in message.objects]


def test_perception_changes_while_the_node_runs(domain, listener, simulator):
    drive = Drive(simulator, listener)
    with NodeProcess(domain, port=simulator.port, outputs=['autoware'],
                     autoware_objects=['ground_truth', 'tracking'],
                     **{'perception.missing': 1.0, 'perception.seed': 4}) as node:
        simulator.accept()
        remote = Remote(listener)
        drive.until(lambda true, found: len(true.objects) == 1 and not found.objects,
                    'a missed object')
        assert remote.set('perception.missing', 0.0).successful
        drive.until(lambda true, found: stamp_of(true) == stamp_of(found)
                    and positions(true) == positions(found), 'the object as it is')
        assert remote.set('perception.position_std', 0.5).successful
        drive.until(lambda true, found: covariances(found) == [0.25]
                    and stamp_of(true) == stamp_of(found) and positions(true) != positions(found)
                    and covariances(true) == [1e-9], 'noise with its variance')
        # Of five frames.
        assert remote.set('perception.position_std', 0.0).successful
        assert remote.set('perception.delay', 0.25).successful
        drive.until(lambda true, found: stamp_of(true) - stamp_of(found) == 250_000_000
                    and len(found.objects) == 1, 'an object of five frames ago')
        assert remote.set('perception.delay', 0.0).successful
        drive.until(lambda true, found: stamp_of(true) == stamp_of(found), 'no delay')
        stamps = [stamp_of(message) for message in drive.tracked]
        assert stamps == sorted(set(stamps))
        refused = remote.set('perception.missing', 1.5)
        assert not refused.successful
        assert 'perception.missing' in refused.reason
        assert node.is_alive
