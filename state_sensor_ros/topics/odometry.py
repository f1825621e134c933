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
from state_sensor_ros.frame import Floats, Needs
from state_sensor_ros.rotations import body_from_unit, global_from_unit
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.base_link import is_on_wheels
from state_sensor_ros.topics.per_actor import PerActorTopic
from state_sensor_ros.topics.tables import diagonal, header, POSE, pose, twist, UNKNOWN_VARIANCE
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.topic_encoder import FrameToSend, MessageBlock, Numbers, TopicEncoder

ODOMETRY = 'nav_msgs/msg/Odometry'
# Of actors with a message: linear xyz, angular xyz, in the axes of ``twist_frame``.
TWIST = Table('twist', np.float64, 6)
# Of actors with a message: variance of linear x, for a source that measures only this component.
FORWARD_VARIANCE = Table('forward variance', np.float64, 1)


class OdometryEncoder(TopicEncoder):
    """One message for each actor whose topic has a reader."""

    topics = (Topic('~/ego/odometry', ODOMETRY),)
    kind = 'odometry'
    type_name = ODOMETRY
    uses_rows = True

    def set_up(self, settings: Settings) -> None:
        # Index 1 if only the forward speed is measured.
        self._actor_topics = [
            self._topic(settings, settings.twist_covariance_diagonal),
            self._topic(settings, (Slot(FORWARD_VARIANCE, 0), *[UNKNOWN_VARIANCE] * 5))]

    def is_on_for_actors(self, settings: Settings) -> bool:
        """Return ``odometry``."""
        return settings.odometry

    def needs(self, settings: Settings) -> Needs:
        """Return the wheels if the place of base_link follows from them."""
        return Needs.of(wheels=is_on_wheels(settings))

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the messages of all actors in one block."""
        topic = self._actor_topics[now.frame.forward_speed is not None]
        return topic.blocks(now, now.usable, (POSE,), np.arange(len(now.usable)))

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        """Compute the twists of the actors that have a message."""
        actors, forward_speed = now.rows[:len(now.usable)], now.frame.forward_speed
        moving = now.blocks[0].rows.get(POSE)
        if moving is not None:
            actors = actors[moving]
        in_body = now.settings.twist_frame == 'child'
        if forward_speed is None:
            numbers[TWIST] = _twists(actors, now.frame.bodies().is_finite, in_body)
            return
        forward = forward_speed if moving is None else forward_speed[moving]
        numbers[TWIST] = _forward_twists(forward, actors[:, 3:7], in_body)
        # In global axes every component depends on the unknown lateral speed.
        numbers[FORWARD_VARIANCE] = np.where(
            np.isnan(forward) | (not in_body), UNKNOWN_VARIANCE,
            now.settings.twist_covariance_diagonal[0])[:, None]

    def _topic(self, settings: Settings, twist_variances: Sequence[float | Slot]) -> PerActorTopic:
        template = self.message(ODOMETRY, {
            'header': header(settings.global_frame), 'child_frame_id': Given('child'),
            'pose': {'pose': pose(POSE),
                     'covariance': diagonal(settings.pose_covariance_diagonal)},
            'twist': {'twist': twist(TWIST, 0), 'covariance': diagonal(twist_variances)}})
        return PerActorTopic(self, lambda actor, *_: MessageInstance(
            template, {'child': actor.frame_id}))


def _twists(actors: Floats, is_finite: bool, in_body: bool) -> Floats:
    """Return (K, 6) twists; 0 for unknown components (doc/interface.md#missing-numbers)."""
    if in_body and is_finite and len(actors) == 1:
        # The ego alone, as for displays: numpy's calls would take three times as long.
        numbers = actors[0].tolist()
        return np.array((body_from_unit(numbers[3:7], numbers[7:10])
                         + body_from_unit(numbers[3:7], numbers[10:]),))
    known = actors[:, 7:]
    if not is_finite:
        # Only NaN differs from itself.
        known = np.where(known == known, known, 0.0)
    if in_body:
        # A row vector times the matrix is the column vector times its inverse.
        known = (known.reshape(-1, 2, 3) @ global_from_unit(actors[:, 3:7])).reshape(-1, 6)
    return known


def _forward_twists(forward_speed: Floats, orientation_xyzw: Floats, in_body: bool) -> Floats:
    """Return (K, 6) twists of actors whose speed along their own x axis alone is known."""
    forward = np.where(np.isnan(forward_speed), 0.0, forward_speed)
    twists = np.zeros((len(forward), TWIST.width))
    if in_body:
        twists[:, 0] = forward
    else:
        twists[:, :3] = forward[:, None] * global_from_unit(orientation_xyzw)[:, :, 0]
    return twists
