# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The outputs for autonomy stacks on topics, where their messages are built."""

from autoware_perception_msgs.msg import PredictedObjects
import pytest
from rig import frame, NodeProcess, packet, state

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.ros.graph_checks import check_packages
from state_sensor_ros.settings import parse_settings

ALL = ['autoware', 'derived_objects', 'vision']
PREDICTED = '/perception/object_recognition/objects'
TRACKED = '/perception/object_recognition/ground_truth/objects'
TOPICS = {
    TRACKED: 'autoware_perception_msgs/TrackedObjects',
    '/perception/object_recognition/tracking/objects': 'autoware_perception_msgs/TrackedObjects',
    '/perception/object_recognition/detection/objects':
        'autoware_perception_msgs/DetectedObjects',
    PREDICTED: 'autoware_perception_msgs/PredictedObjects',
    '/localization/kinematic_state': 'nav_msgs/Odometry',
    '/localization/acceleration': 'geometry_msgs/AccelWithCovarianceStamped',
    '/vehicle/status/velocity_status': 'autoware_vehicle_msgs/VelocityReport',
    '/state_sensor/objects': 'derived_object_msgs/ObjectArray',
    '/state_sensor/detections': 'vision_msgs/Detection3DArray'}


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
        listener.until(lambda: labels, what='the latched label_info')
        assert node.is_alive
    assert {'car', 'person'} < {each.class_name for each in labels[0].class_map}
    tracked, = received[TRACKED][-1].objects
    twist = tracked.kinematics.twist_with_covariance.twist
    assert twist.linear.x == pytest.approx(-5.0)
    assert tracked.kinematics.orientation_availability == 2
    assert (tracked.shape.dimensions.x, tracked.shape.dimensions.y) == pytest.approx((4.5, 1.8))
    predicted, = received[PREDICTED][-1].objects
    path, = predicted.kinematics.predicted_paths
    assert len(path.path) == 31
    assert path.path[2].position.x == pytest.approx(path.path[0].position.x - 5.0)
    assert received['/localization/kinematic_state'][-1].twist.twist.linear.x == 10.0
    assert received['/vehicle/status/velocity_status'][-1].longitudinal_velocity == 10.0
    assert received['/state_sensor/objects'][-1].objects[0].twist.linear.x == -5.0
    assert received['/state_sensor/detections'][-1].detections[0].id == 'other'


def test_second_publisher_is_named(domain, listener, simulator):
    other = listener.node.create_publisher(PredictedObjects, PREDICTED, 1)
    with NodeProcess(domain, port=simulator.port, outputs=['autoware']) as node:
        listener.until(lambda: 'another publisher' in node.log or listener.spin(0.1),
                       what='a warning')
        line = next(line for line in node.log.splitlines() if 'another publisher' in line)
    assert PREDICTED in line
    assert '/listener' in line
    listener.node.destroy_publisher(other)


@pytest.mark.parametrize(('output', 'package'), [
    ('autoware', 'autoware_perception_msgs'), ('derived_objects', 'derived_object_msgs'),
    ('vision', 'vision_msgs')])
def test_output_without_its_package_is_refused(monkeypatch, output, package):
    monkeypatch.setattr('state_sensor_ros.ros.graph_checks.find_spec', lambda name: None)
    with pytest.raises(ConfigError, match=f'outputs: {output} needs the package '
                       f'{package}: apt install ros-'):
        check_packages(parse_settings({'outputs': [output]}))
