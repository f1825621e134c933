# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Topics of single actors and of all: odometry, lane states, joints, and who is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from operator import attrgetter

import numpy as np

from state_sensor_ros.cdr.templates import Each, Given, MessageInstance, Slot, Table
from state_sensor_ros.frame import Bools, Floats, Rows
from state_sensor_ros.naming import Actor, wheel_frame
from state_sensor_ros.rotations import body_from_unit, global_from_unit, motion_in_axes
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics import encoding, tables
from state_sensor_ros.topics.tables import Fields, header, LANE_TABLES, POSE
from state_sensor_ros.topics.topic import LATCHED, NO_ACTORS, Topic
from state_sensor_ros.topics.transforms import is_on_wheels

ODOMETRY = 'nav_msgs/msg/Odometry'
# Of actors with a message: linear xyz, angular xyz, in the axes of ``twist_frame``.
TWIST = Table('twist', np.float64, 6)
# Of actors with a message, if a number of the frame is unknown.
TWIST_VARIANCE = Table('twist variance', np.float64, 6)
# Of wheels with a known orientation: spin angle (rad, -pi..pi), speed.
JOINT = Table('joint', np.float64, 2)

CONTROL_STATE = 'state_sensor_ros/msg/ControlStateStamped'
STAMPED_LANE: Fields = {
    'header': header(Given('frame')), 'name': Given('name'), 'control_state': tables.lane()}


def own_topic(actor: Actor, kind: str, type_name: str) -> Topic:
    """Return the topic of a kind for a single actor."""
    # type_name: type of its messages, ``package/msg/Name``.
    return Topic(f'~/actors/{actor.topic_name}/{kind}', type_name, actor=actor.topic_name)


class PerActorTopic:
    """The messages of one kind of topic."""

    # encoder: encoder with ``kind`` and ``type_name`` of the topics; its ``topics`` are that of
    # the ego, or none.

    def __init__(self, encoder: encoding.TopicEncoder,
                 make: Callable[..., MessageInstance]) -> None:
        self._encoder = encoder
        self._instances = encoding.PerActor(make)
        self._topics = encoding.PerActor(
            lambda actor: own_topic(actor, encoder.kind, encoder.type_name))

    def layout(self, now: encoding.FrameToSend, present: Bools, of_rows: Sequence[Table],
               owners: Rows, *columns: Sequence[object]) -> encoding.MessageBlock | None:
        """Lay out the messages."""
        # present: (N,) bool, actors that can have a message.
        # owners: (R,) int64, row of the actor that each row of the tables belongs to.
        actors, i_ego, ego_topics = now.actor_list.actors, now.actor_list.i_ego, \
            self._encoder.topics
        with_ego = i_ego >= 0 and bool(present[i_ego]) and any(
            map(now.subscriptions.has, ego_topics))
        read = now.subscriptions.actors_of(self._encoder.kind) \
            if self._encoder.kind and self._encoder.is_on_for_actors(now.settings) else NO_ACTORS
        are_read = present & np.array([
            actor.has_topics and (read is None or actor.topic_name in read) for actor in actors],
            np.bool_)
        chosen = are_read.copy()
        if with_ego:
            chosen[i_ego] = True
        if not chosen.any():
            return None
        flags, also = chosen.tobytes(), []
        topics = list(compress(self._topics.of(actors), flags))
        if with_ego:
            i_message = int(np.count_nonzero(chosen[:i_ego]))
            if are_read[i_ego]:
                also = [(ego_topics[0], i_message)]
            else:
                topics[i_message] = ego_topics[0]
        return encoding.MessageBlock(
            list(compress(self._instances.of(actors, *columns), flags)),
            encoding.rows_where(chosen[owners], *of_rows), topics, also)


class OdometryEncoder(encoding.TopicEncoder):
    """One message for each actor whose topic has a reader; the ego's has a fixed name, too."""

    topics = (Topic('~/ego/odometry', ODOMETRY),)
    kind = actor_switch = 'odometry'
    type_name = ODOMETRY
    uses_rows = True

    def set_up(self, settings: Settings) -> None:
        # By whether a number of the frame is unknown.
        self._actor_topics = [self._topic(settings, settings.twist_covariance_diagonal),
                              self._topic(settings, tables.slots(TWIST_VARIANCE))]

    def needs(self, settings: Settings) -> bool:
        """Return the wheels if the place of base_link follows from them."""
        return is_on_wheels(settings)

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock | None:
        """Lay out the messages of all actors."""
        topic = self._actor_topics[now.is_partial]
        block = topic.layout(now, now.usable, (POSE,), np.arange(len(now.usable)))
        # Rows of the actors that have a message, None for all.
        self._moving = None if block is None else block.rows.get(POSE)
        return block

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        """Compute the twists of the actors that have a message."""
        actors, forward_speed = now.rows[:len(now.usable)], now.frame.forward_speed
        moving = self._moving
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
            twists = np.full((len(forward), TWIST.width), np.nan)
            if in_body:
                twists[:, 0] = forward
            else:
                twists[:, :3] = forward[:, None] * global_from_unit(actors[:, 3:7])[:, :, 0]
                # Each component depends on the unknown lateral speed.
                variances = (tables.UNKNOWN_VARIANCE,) * 6
        numbers[TWIST], numbers[TWIST_VARIANCE] = tables.with_variances(twists, variances)

    def _topic(self, settings: Settings, twist_variances: Sequence[float | Slot]) -> PerActorTopic:
        template = self.message(ODOMETRY, {
            'header': header(settings.global_frame), 'child_frame_id': Given('child'),
            'pose': {'pose': tables.pose(POSE),
                     'covariance': tables.diagonal(settings.pose_covariance_diagonal)},
            'twist': {'twist': tables.twist(TWIST, 0),
                      'covariance': tables.diagonal(twist_variances)}})
        return PerActorTopic(self, lambda actor: MessageInstance(
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


class ControlStateEncoder(encoding.TopicEncoder):
    """The lane state of each vehicle whose topic has a reader."""

    topics = (Topic('~/ego/control_state', CONTROL_STATE),)
    kind, only_with, actor_switch = 'control_state', 'lanes', 'odometry'
    type_name, uses_lanes = CONTROL_STATE, True

    def set_up(self, settings: Settings) -> None:
        template = self.message(CONTROL_STATE, STAMPED_LANE)
        self._actor_topic = PerActorTopic(self, lambda actor: MessageInstance(
            template, {'frame': actor.frame_id, 'name': actor.name}))

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock | None:
        """Lay out the messages of the vehicles."""
        owners = now.frame.lanes.actor
        return self._actor_topic.layout(now, _owning(now, owners), LANE_TABLES, owners)


def _owning(now: encoding.FrameToSend, owners: Rows) -> Bools:
    """Return (N,) bool, actors with a pose that own a part; ``owners``: row of each part."""
    owning: Bools = now.usable & (np.bincount(owners, minlength=len(now.usable)) > 0)
    return owning


class ControlStatesEncoder(encoding.TopicEncoder):
    """One array for each frame that has a lane state."""

    topics = (Topic('~/control_states', 'state_sensor_ros/msg/ControlStateArray'),)
    opens_with, uses_lanes = attrgetter('lanes.actor.size'), True

    def set_up(self, settings: Settings) -> None:
        element = self.element(CONTROL_STATE, STAMPED_LANE)
        self._head = MessageInstance(self.message(
            self.topics[0].type_name, {'header': header(settings.global_frame)}), {})
        self._elements = encoding.PerActor(lambda actor: MessageInstance(
            element, {'frame': actor.frame_id, 'name': actor.name}))

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock | None:
        """Lay out the array; there is none without lane states."""
        present = _owning(now, now.frame.lanes.actor)
        if not present.any():
            return None
        elements = compress(self._elements.of(now.actor_list.actors), present.tobytes())
        return encoding.MessageBlock([self._head, *elements], encoding.rows_where(
            present[now.frame.lanes.actor], *LANE_TABLES), self.topics, is_array=True)


class JointStateEncoder(encoding.TopicEncoder):
    """Spin angles (rad) and speeds (rad/s) of the wheels whose orientation is known."""

    kind = actor_switch = 'joint_states'
    only_with = 'wheels'
    type_name = 'sensor_msgs/msg/JointState'
    has_details = True

    def set_up(self, settings: Settings) -> None:
        template = self.message(self.type_name, {
            'header': header(''), 'name': Given('names'),
            'position': Each('wheels', Slot(JOINT, 0)),
            'velocity': Each('wheels', Slot(JOINT, 1))})
        self._actor_topic = PerActorTopic(self, lambda actor, wheels: MessageInstance(template, {
            'names': [wheel_frame(settings.frame_prefix, actor, wheel) for wheel in wheels],
            'wheels': [{}] * len(wheels)}))

    def key(self, now: encoding.FrameToSend) -> object:
        """Return the wheels of each actor."""
        wheels = now.frame.wheels
        return None if wheels is None else (
            wheels.actor.tobytes(), wheels.wheel.tobytes(), wheels.orientation_known.tobytes())

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock | None:
        """Lay out the messages of all vehicles."""
        wheels = now.frame.wheels
        if wheels is None:
            return None
        owners = wheels.actor[wheels.orientation_known]
        return self._actor_topic.layout(
            now, _owning(now, owners), (JOINT,), owners, encoding.split(
                wheels.wheel[wheels.orientation_known].tobytes(), owners, len(now.usable)))

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        wheels = now.frame.wheels
        assert wheels is not None
        # Steering about z, then spin about y (doc/protocol/units.md#wheel-rotation); q equals -q.
        orientation_xyzw = wheels.orientation_xyzw[wheels.orientation_known]
        w = orientation_xyzw[:, 3]
        spin = 2.0 * np.arctan2(orientation_xyzw[:, 1] * np.copysign(1.0, w), np.abs(w))
        numbers[JOINT] = np.column_stack((spin, wheels.speed[wheels.orientation_known]))


class ActorArrayEncoder(encoding.ChangeEncoder):
    """One ActorArray for each change of the actors: their names in ROS, ids, kinds and tags."""

    topics = (Topic('~/actors', 'state_sensor_ros/msg/ActorArray', LATCHED),)

    def set_up(self, settings: Settings) -> None:
        super().set_up(settings)
        names = 'name', 'topic_name', 'frame_id', 'id'
        element = self.element('state_sensor_ros/msg/Actor', {
            name: Given(name) for name in (*names, 'kind', 'tags')})
        self._elements = encoding.PerActor(lambda actor, kind, tags: MessageInstance(element, {
            **{name: getattr(actor, name) for name in names}, 'kind': kind, 'tags': tags}))

    def prototype(self, settings: Settings) -> Fields:
        return {'header': header(settings.global_frame)}

    def state(self, now: encoding.FrameToSend) -> int:
        """Return the version of the actor list."""
        return now.actor_list.version

    def instances(self, now: encoding.FrameToSend) -> list[MessageInstance]:
        actor_list = now.actor_list
        return [*super().instances(now), *self._elements.of(
            actor_list.actors, actor_list.kinds, actor_list.tags)]
