# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Odometry of each actor, and of the ego on a topic whose name does not depend on the actor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Given, MessageInstance, Slot, Template
from state_sensor_ros.frame import Rows
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.layout_key import LayoutRequest
from state_sensor_ros.topics.message_block import MessageBlock
from state_sensor_ros.topics.per_actor_topic import PerActorTopic
from state_sensor_ros.topics.tables import (
    diagonal,
    FORWARD_VARIANCE,
    header,
    POSE,
    pose,
    TWIST,
    twist,
    UNKNOWN_VARIANCE,
)
from state_sensor_ros.topics.topic import EGO_ODOMETRY_TOPIC, ODOMETRY


class OdometryEncoder:
    """
    One message for each actor whose topic has a subscriber.

    ``moving`` (K,) int64, rows of the actors whose twist is laid out, None for all.

    :param settings: parameters of the node.
    :param definitions: of the messages.
    """

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        self.template = _template(settings, definitions, settings.twist_covariance_diagonal)
        self.forward_only = _template(
            settings, definitions, (Slot(FORWARD_VARIANCE, 0), *[UNKNOWN_VARIANCE] * 5))
        self._topic = _topic(self.template)
        self._forward_only_topic = _topic(self.forward_only)
        self.moving: Rows | None = None

    def blocks(self, request: LayoutRequest) -> list[MessageBlock]:
        """
        Lay out the messages of all actors in one block.

        :param request: of which ``demand.odometry`` and ``demand.ego_odometry`` select the actors.
        :returns: one block or none; ``moving`` then has the rows of its actors.
        """
        demand, actor_list, usable = request.demand, request.actor_list, request.usable
        topic = self._topic if request.frame.forward_speed is None else self._forward_only_topic
        with_ego = demand.ego_odometry and actor_list.i_ego >= 0 and bool(usable[actor_list.i_ego])
        blocks = topic.blocks(
            actor_list, topic.are_subscribed(actor_list, demand.odometry) & usable, (POSE,),
            np.arange(len(usable)), with_ego=with_ego)
        self.moving = blocks[0].rows.get(POSE) if blocks else None
        return blocks


def _topic(template: Template) -> PerActorTopic:
    return PerActorTopic(
        'odometry', ODOMETRY, EGO_ODOMETRY_TOPIC,
        lambda actor, *_: MessageInstance(template, {'child': actor.frame_id}))


def _template(settings: Settings, definitions: Definitions,
              twist_variances: Sequence[float | Slot]) -> Template:
    return Template(definitions, ODOMETRY, {
        'header': header(settings.global_frame), 'child_frame_id': Given('child'),
        'pose': {'pose': pose(POSE), 'covariance': diagonal(settings.pose_covariance_diagonal)},
        'twist': {'twist': twist(TWIST, 0), 'covariance': diagonal(twist_variances)},
    }, is_message=True)
