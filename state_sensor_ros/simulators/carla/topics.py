# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The list of CARLA's own topics: a new one is a class and a line here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from state_sensor_ros.simulators.carla.player_topics import (
    AppliedControlEncoder,
    AutopilotControlEncoder,
    ExpertControlEncoder,
    PlayerStatusEncoder,
)
from state_sensor_ros.simulators.carla.sensor_topics import ImageEncoder, PointEncoder
from state_sensor_ros.simulators.carla.sensors import Sensor
from state_sensor_ros.simulators.carla.signs import (
    CarlaMarkerEncoder,
    SpeedLimitsEncoder,
    TrafficLightsEncoder,
)
from state_sensor_ros.simulators.own_topics import NewTopicEncoder, TopicEncoder

# In the order in which their messages are sent.
CARLA_TOPICS: tuple[type[TopicEncoder], ...] = (
    CarlaMarkerEncoder,
    PlayerStatusEncoder,
    AutopilotControlEncoder,
    ExpertControlEncoder,
    AppliedControlEncoder,
    TrafficLightsEncoder,
    SpeedLimitsEncoder,
    ImageEncoder,
    PointEncoder,
)
# What the collector of a dataset adds.
_OF_DATASETS = (ExpertControlEncoder, AppliedControlEncoder)


def carla_encoders(sensors: Sequence[Sensor] | None = None, *,
                   is_dataset: bool = True) -> tuple[NewTopicEncoder, ...]:
    """
    Return the topics of a stream or a recording.

    :param sensors: those that have topics, None for all that send.
    :param is_dataset: whether the frames may have what the collector of a dataset adds.
    """
    return tuple([
        partial(encoder, sensors=sensors) if encoder in (ImageEncoder, PointEncoder) else encoder
        for encoder in CARLA_TOPICS if is_dataset or encoder not in _OF_DATASETS])
