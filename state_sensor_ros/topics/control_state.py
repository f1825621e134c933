# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Lane states: a topic for each vehicle, one of a fixed name for the ego, one array of all."""

from __future__ import annotations

from itertools import compress

import numpy as np

from state_sensor_ros.cdr.templates import Given, MessageInstance
from state_sensor_ros.frame import Bools
from state_sensor_ros.naming import Actor
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.per_actor import PerActor, PerActorTopic
from state_sensor_ros.topics.tables import Fields, header, lane, LANE_TABLES
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.topic_encoder import (
    FrameToSend,
    MessageBlock,
    rows_where,
    TopicEncoder,
)

CONTROL_STATE = 'state_sensor_ros/msg/ControlStateStamped'
STAMPED_LANE: Fields = {
    'header': header(Given('frame')), 'name': Given('name'), 'control_state': lane()}


class ControlStateEncoder(TopicEncoder):
    """One message for each vehicle whose topic has a reader."""

    topics = (Topic('~/ego/control_state', CONTROL_STATE),)
    kind = 'control_state'
    type_name = CONTROL_STATE
    uses_lanes = True

    def set_up(self, settings: Settings) -> None:
        self._template = self.message(CONTROL_STATE, STAMPED_LANE)
        self._actor_topic = PerActorTopic(self, lambda actor, *_: MessageInstance(
            self._template, names_in_lane(actor)))

    def is_on_for_actors(self, settings: Settings) -> bool:
        """Return ``odometry``, which switches the topics of single actors."""
        return settings.odometry

    def is_of_actor(self, *, has_lanes: bool, has_wheels: bool) -> bool:
        """Return ``has_lanes``."""
        return has_lanes

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the messages of the vehicles in one block."""
        return self._actor_topic.blocks(now, actors_with_lanes(now), LANE_TABLES,
                                        now.frame.lanes.actor)


def names_in_lane(actor: Actor) -> dict[str, str]:
    """Return the given values of STAMPED_LANE for ``actor``."""
    return {'frame': actor.frame_id, 'name': actor.name}


def actors_with_lanes(now: FrameToSend) -> Bools:
    """Return (N,) bool, actors with a lane state and a pose."""
    present = np.zeros(len(now.usable), np.bool_)
    present[now.frame.lanes.actor] = True
    present &= now.usable
    return present


class ControlStatesEncoder(TopicEncoder):
    """One array for each frame that has a lane state."""

    topics = (Topic('~/control_states', 'state_sensor_ros/msg/ControlStateArray'),)
    uses_lanes = True

    def set_up(self, settings: Settings) -> None:
        self._element = self.element(CONTROL_STATE, STAMPED_LANE)
        self._array = self.array({'header': header(settings.global_frame)})
        self._elements = PerActor(lambda actor, *_: MessageInstance(
            self._element, names_in_lane(actor)))

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the array; there is none without lane states."""
        present = actors_with_lanes(now)
        if not present.any():
            return []
        elements = compress(self._elements.of(now.actor_list), present.tobytes())
        return self._array.blocks(elements, rows_where(
            present[now.frame.lanes.actor], *LANE_TABLES), self.topics)
