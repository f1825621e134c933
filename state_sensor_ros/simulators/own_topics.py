# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Topics of a simulator: their base, the layout of messages, tables of numbers, markers."""

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import (
    ENCAPSULATION,
    Given,
    MESSAGE_PHASE,
    MessageInstance,
    Slot,
    Table,
    Template,
)
from state_sensor_ros.naming import Actor, registry_of
from state_sensor_ros.topics.markers import MarkerEncoder, NewMarker
from state_sensor_ros.topics.per_actor import Column
from state_sensor_ros.topics.state_frame import FRAME_TOPIC
from state_sensor_ros.topics.tables import Fields, given_header, given_stamp, header, pose, xyz
from state_sensor_ros.topics.topic import LATCHED, STATIC_TF_TOPIC, Subscriptions, Topic
from state_sensor_ros.topics.topic_encoder import (
    FrameToSend,
    message_blocks,
    MessageBlock,
    Messages,
    NewTopicEncoder,
    Numbers,
    TopicEncoder,
)
from state_sensor_ros.topics.traffic_lights import LIGHTS_NS, STATE_COLORS
from state_sensor_ros.topics.transforms import StaticTransform

__all__ = [
    'ENCAPSULATION', 'FRAME_TOPIC', 'LATCHED', 'LIGHTS_NS', 'MESSAGE_PHASE', 'STATE_COLORS',
    'STATIC_TF_TOPIC', 'Actor', 'Column', 'Definitions', 'Fields', 'FrameToSend',
    'Given', 'MarkerEncoder', 'MessageBlock', 'MessageInstance', 'Messages', 'NewMarker',
    'NewTopicEncoder', 'Numbers', 'Slot', 'StaticTransform', 'Subscriptions', 'Table', 'Template',
    'Topic', 'TopicEncoder', 'given_header', 'given_stamp', 'header', 'message_blocks', 'pose',
    'registry_of', 'xyz'
]
