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
from typing import cast

from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.encoding import NewTopicEncoder, TopicEncoder

# Module and class of each, in the order in which messages are sent: a transform precedes the data
# that refers to it.
_TOPICS = (
    'transforms:ClockEncoder',
    'transforms:TransformEncoder',
    'actors:OdometryEncoder',
    'actors:ControlStateEncoder',
    'actors:ControlStatesEncoder',
    'actors:JointStateEncoder',
    'markers:MarkerEncoder',
    'state_frame:StateFrameEncoder',
    'map_topics:RoadsEncoder',
    'map_topics:LightsEncoder',
    'map_topics:MapEncoder',
    'map_topics:OpenDriveEncoder',
    'actors:ActorArrayEncoder',
)

# By value of the parameter ``outputs``: topics in stacks/, which are imported when they are used.
_OUTPUTS = {
    'autoware': (
        'objects:GroundTruthEncoder',
        'objects:TrackingEncoder',
        'objects:DetectionEncoder',
        'objects:PredictionEncoder',
        'autoware_ego:AutowareEgoEncoder',
        'autoware_ego:AutowareStatusEncoder',
        'autoware_signals:TrafficSignalsEncoder',
    ),
    'derived_objects': ('objects:DerivedObjectsEncoder',),
    'vision': ('objects:LabelInfoEncoder', 'objects:DetectionsEncoder'),
}


def _encoder(line: str, package: str) -> type[TopicEncoder]:
    module, _, name = line.partition(':')
    return cast(type[TopicEncoder], getattr(import_module(f'{package}.{module}'), name))


TOPICS = tuple([_encoder(line, str(__package__)) for line in _TOPICS])


def output_encoders(output: str) -> list[type[TopicEncoder]]:
    """Return the topics of an output; ``output``: value of the parameter ``outputs``."""
    return [_encoder(line, f'{__package__}.stacks') for line in _OUTPUTS[output]]


def topic_encoders(settings: Settings,
                   further: Sequence[NewTopicEncoder] = ()) -> list[NewTopicEncoder]:
    return [*TOPICS, *further,
            *[encoder for output in settings.outputs for encoder in output_encoders(output)]]


def perception_used(settings: Settings) -> frozenset[str]:
    """Return the names of the parameters ``perception.*`` that the outputs use."""
    return frozenset(name for output in settings.outputs for encoder in output_encoders(output)
                     if encoder.topics_of(settings) for name in encoder.uses_perception)
