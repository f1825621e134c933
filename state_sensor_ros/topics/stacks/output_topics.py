# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Topics of the outputs for autonomy stacks, and the message packages that they need."""

from __future__ import annotations

from typing import Final

from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.topic import ODOMETRY, Topic

_PERCEPTION: Final = '/perception/object_recognition'
_TRACKED: Final = 'autoware_perception_msgs/msg/TrackedObjects'

# By member of ``autoware_objects``.
OBJECT_TOPICS: Final = {
    'ground_truth': Topic(f'{_PERCEPTION}/ground_truth/objects', _TRACKED, 'stack'),
    'tracking': Topic(f'{_PERCEPTION}/tracking/objects', _TRACKED, 'stack'),
    'detection': Topic(f'{_PERCEPTION}/detection/objects',
                       'autoware_perception_msgs/msg/DetectedObjects', 'stack'),
    'predicted': Topic(f'{_PERCEPTION}/objects', 'autoware_perception_msgs/msg/PredictedObjects',
                       'stack')}
KINEMATIC_STATE_TOPIC: Final = Topic('/localization/kinematic_state', ODOMETRY, 'stack')
ACCELERATION_TOPIC: Final = Topic(
    '/localization/acceleration', 'geometry_msgs/msg/AccelWithCovarianceStamped', 'stack')
VELOCITY_TOPIC: Final = Topic(
    '/vehicle/status/velocity_status', 'autoware_vehicle_msgs/msg/VelocityReport', 'stack')
STEERING_TOPIC: Final = Topic(
    '/vehicle/status/steering_status', 'autoware_vehicle_msgs/msg/SteeringReport', 'stack')
EGO_TOPICS: Final = (KINEMATIC_STATE_TOPIC, ACCELERATION_TOPIC, VELOCITY_TOPIC, STEERING_TOPIC)

OBJECT_ARRAY_TOPIC: Final = Topic('~/objects', 'derived_object_msgs/msg/ObjectArray', 'other')
DETECTIONS_TOPIC: Final = Topic('~/detections', 'vision_msgs/msg/Detection3DArray', 'other')
LABELS_TOPIC: Final = Topic('~/label_info', 'vision_msgs/msg/LabelInfo', 'latched')


def output_topics(settings: Settings) -> tuple[Topic, ...]:
    """
    Return the topics of the outputs that are switched on.

    :param settings: of which ``outputs`` and ``autoware_objects`` are used.
    """
    topics: list[Topic] = []
    if 'autoware' in settings.outputs:
        topics += [topic for name, topic in OBJECT_TOPICS.items()
                   if name in settings.autoware_objects]
        topics += EGO_TOPICS
    if 'derived_objects' in settings.outputs:
        topics.append(OBJECT_ARRAY_TOPIC)
    if 'vision' in settings.outputs:
        topics += (DETECTIONS_TOPIC, LABELS_TOPIC)
    return tuple(topics)


def is_of_stack(topic: Topic) -> bool:
    """
    Return whether a topic is one of the stack's own, where a second publisher is an error.

    :param topic: of the node.
    """
    return topic.kind == 'stack'


def packages_of(output: str) -> tuple[str, ...]:
    """
    Return the packages of messages that one of ``outputs`` needs and a ROS may not have.

    :param output: its name.
    """
    return {'autoware': ('autoware_perception_msgs', 'autoware_vehicle_msgs'),
            'derived_objects': ('derived_object_msgs',), 'vision': ('vision_msgs',)}[output]
