# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Odometry of each actor; that of the ego also has a topic of a fixed name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from state_sensor_ros.cdr.templates import Given, MessageInstance, Slot, Table
from state_sensor_ros.frame import Floats
from state_sensor_ros.rotations import body_from_unit, global_from_unit, motion_in_axes
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.base_link import is_on_wheels
from state_sensor_ros.topics.per_actor import PerActorTopic
from state_sensor_ros.topics.tables import (
    diagonal,
    header,
    POSE,
    pose,
    slots,
    twist,
    UNKNOWN_VARIANCE,
    with_variances,
)
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.topic_encoder import FrameToSend, MessageBlock, Numbers, TopicEncoder

ODOMETRY = 'nav_msgs/msg/Odometry'
# Of actors with a message: linear xyz, angular xyz, in the axes of ``twist_frame``.
TWIST = Table('twist', np.float64, 6)
# Of actors with a message, if a number of the frame is unknown.
TWIST_VARIANCE = Table('twist variance', np.float64, 6)


class OdometryEncoder(TopicEncoder):
    """One message for each actor whose topic has a reader."""

    topics = (Topic('~/ego/odometry', ODOMETRY),)
    kind = 'odometry'
    type_name = ODOMETRY
    uses_rows = True

    def set_up(self, settings: Settings) -> None:
        # By whether a number of the frame is unknown.
        self._actor_topics = [self._topic(settings, settings.twist_covariance_diagonal),
                              self._topic(settings, slots(TWIST_VARIANCE))]

    def is_on_for_actors(self, settings: Settings) -> bool:
        """Return ``odometry``."""
        return settings.odometry

    def needs(self, settings: Settings) -> bool:
        """Return the wheels if the place of base_link follows from them."""
        return is_on_wheels(settings)

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the messages of all actors in one block."""
        topic = self._actor_topics[now.is_partial]
        return topic.blocks(now, now.usable, (POSE,), np.arange(len(now.usable)))

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        """Compute the twists of the actors that have a message."""
        actors, forward_speed = now.rows[:len(now.usable)], now.frame.forward_speed
        moving = now.blocks[0].rows.get(POSE)
        if moving is not None:
            actors = actors[moving]
        in_body = now.settings.twist_frame == 'child'
        if not now.is_partial:
            numbers[TWIST] = _twists(actors, in_body, is_known=True)
            return
        variances = now.settings.twist_covariance_diagonal
        if forward_speed is None:
            twists = _twists(actors, in_body, is_known=False)
        else:
            forward = forward_speed if moving is None else forward_speed[moving]
            twists = _forward_twists(forward, actors[:, 3:7], in_body)
            if not in_body:
                # Each component depends on the unknown lateral speed.
                variances = (UNKNOWN_VARIANCE,) * 6
        numbers[TWIST], numbers[TWIST_VARIANCE] = with_variances(twists, variances)

    def _topic(self, settings: Settings, twist_variances: Sequence[float | Slot]) -> PerActorTopic:
        template = self.message(ODOMETRY, {
            'header': header(settings.global_frame), 'child_frame_id': Given('child'),
            'pose': {'pose': pose(POSE),
                     'covariance': diagonal(settings.pose_covariance_diagonal)},
            'twist': {'twist': twist(TWIST, 0), 'covariance': diagonal(twist_variances)}})
        return PerActorTopic(self, lambda actor, *_: MessageInstance(
            template, {'child': actor.frame_id}))


def _twists(actors: Floats, in_body: bool, *, is_known: bool) -> Floats:
    """Return (K, 6) twists, NaN if unknown."""
    if in_body and is_known and len(actors) == 1:
        # The ego alone, as for displays: numpy's calls would take three times as long.
        numbers = actors[0].tolist()
        return np.array((body_from_unit(numbers[3:7], numbers[7:10])
                         + body_from_unit(numbers[3:7], numbers[10:]),))
    twists = actors[:, 7:]
    return motion_in_axes(twists, global_from_unit(actors[:, 3:7])) if in_body else twists


def _forward_twists(forward_speed: Floats, orientation_xyzw: Floats, in_body: bool) -> Floats:
    """Return (K, 6) twists of actors whose speed along their own x axis alone is known."""
    twists = np.full((len(forward_speed), TWIST.width), np.nan)
    if in_body:
        twists[:, 0] = forward_speed
    else:
        twists[:, :3] = forward_speed[:, None] * global_from_unit(orientation_xyzw)[:, :, 0]
    return twists
