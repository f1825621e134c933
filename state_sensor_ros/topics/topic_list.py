# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The list of all topics of the package: a new message is a module and a line here."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.actor_array import ActorArrayEncoder
from state_sensor_ros.topics.clock import ClockEncoder
from state_sensor_ros.topics.control_state import ControlStateEncoder
from state_sensor_ros.topics.control_states import ControlStatesEncoder
from state_sensor_ros.topics.joint_states import JointStateEncoder
from state_sensor_ros.topics.markers import MarkerEncoder
from state_sensor_ros.topics.odometry import OdometryEncoder
from state_sensor_ros.topics.state_frame import StateFrameEncoder
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.topic_encoder import NewTopicEncoder, TopicEncoder
from state_sensor_ros.topics.transforms import TransformEncoder

# In the order in which their messages are sent: a transform precedes the data that refers to it.
TOPICS: tuple[type[TopicEncoder], ...] = (
    ClockEncoder,
    TransformEncoder,
    OdometryEncoder,
    ControlStateEncoder,
    ControlStatesEncoder,
    JointStateEncoder,
    MarkerEncoder,
    StateFrameEncoder,
    ActorArrayEncoder,
)

# By member of the parameter ``outputs``: modules of stacks/, imported when they are used.
_OUTPUTS = {
    'autoware': (
        'autoware_objects:GroundTruthEncoder',
        'autoware_objects:TrackingEncoder',
        'autoware_objects:DetectionEncoder',
        'autoware_objects:PredictionEncoder',
        'autoware_ego:AutowareEgoEncoder',
    ),
    'derived_objects': ('derived_objects:DerivedObjectsEncoder',),
    'vision': ('label_info:LabelInfoEncoder', 'vision:DetectionsEncoder'),
}


def output_encoders(output: str) -> list[type[TopicEncoder]]:
    """
    Return the topics of one of ``outputs``.

    :param output: its name.
    """
    found = []
    for line in _OUTPUTS[output]:
        module, _, name = line.partition(':')
        found.append(getattr(import_module(f'{__package__}.stacks.{module}'), name))
    return found


def topic_encoders(settings: Settings,
                   further: Sequence[NewTopicEncoder] = ()) -> list[NewTopicEncoder]:
    """
    Return all topics that can be switched on.

    :param settings: parameters at the start, of which ``outputs`` is used.
    :param further: topics of the simulator.
    """
    return [*TOPICS, *further,
            *[each for output in settings.outputs for each in output_encoders(output)]]


def fixed_topics(settings: Settings) -> tuple[Topic, ...]:
    """
    Return the topics of any simulator that exist from the start.

    :param settings: parameters at the start; dynamic ones have no effect.
    """
    return tuple(topic for each in TOPICS for topic in each.topics_of(settings))


def output_topics(settings: Settings) -> tuple[Topic, ...]:
    """
    Return the topics of the outputs for autonomy stacks that are switched on.

    :param settings: parameters at the start, of which ``outputs`` and what each uses are read.
    """
    return tuple(topic for output in settings.outputs for each in output_encoders(output)
                 for topic in each.topics_of(settings))


def packages_of(output: str) -> list[str]:
    """
    Return the packages of the messages of one of ``outputs``, some of which a ROS may not have.

    :param output: its name.
    """
    return sorted({topic.type_name.partition('/')[0] for each in output_encoders(output)
                   for topic in each.topics})
