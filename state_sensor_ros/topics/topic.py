# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Names, types and quality of service of the topics, and which of them have subscribers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from state_sensor_ros.frame import Needs
from state_sensor_ros.naming import Actor
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.base_link import is_measured


@dataclass(frozen=True, slots=True)
class Qos:
    """Quality of service of a publisher, keep last; ``latched`` is transient local."""

    reliable: bool = True
    latched: bool = False
    depth: int = 10


_LATCHED = Qos(latched=True, depth=1)
# By kind, where it differs from _ORDINARY; the depth of /tf is that of tf2_ros.
# A stack uses the newest state only.
_QOS = {'tf': Qos(depth=100), 'actors': _LATCHED, 'tf_static': _LATCHED, 'latched': _LATCHED,
        'stack': Qos(depth=1)}
_ORDINARY = Qos()


@dataclass(frozen=True, slots=True)
class Topic:
    """
    A topic.

    ``name`` absolute or with ``~`` for the node's own; ``type_name`` ``package/msg/Name``;
    ``kind`` field of :class:`Demand`; ``actor`` the ``Actor.topic_name`` of a topic that belongs
    to one actor.
    """

    name: str
    type_name: str
    kind: str
    actor: str = ''

    @property
    def qos(self) -> Qos:
        """Return the quality of service of its publisher, unless it is overridden."""
        return _QOS.get(self.kind, _ORDINARY)


ODOMETRY = 'nav_msgs/msg/Odometry'
CONTROL_STATE = 'state_sensor_ros/msg/ControlStateStamped'
JOINT_STATES = 'sensor_msgs/msg/JointState'

CLOCK_TOPIC = Topic('/clock', 'rosgraph_msgs/msg/Clock', 'clock')
TF_TOPIC = Topic('/tf', 'tf2_msgs/msg/TFMessage', 'tf')
STATIC_TF_TOPIC = Topic('/tf_static', 'tf2_msgs/msg/TFMessage', 'tf_static')
EGO_ODOMETRY_TOPIC = Topic('~/ego/odometry', ODOMETRY, 'ego_odometry')
EGO_CONTROL_STATE_TOPIC = Topic('~/ego/control_state', CONTROL_STATE, 'ego_control_state')
CONTROL_STATES_TOPIC = Topic('~/control_states', 'state_sensor_ros/msg/ControlStateArray',
                             'control_states')
FRAME_TOPIC = Topic('~/frame', 'state_sensor_ros/msg/StateFrame', 'frame')
ACTORS_TOPIC = Topic('~/actors', 'state_sensor_ros/msg/ActorArray', 'actors')
MARKERS_TOPIC = Topic('~/markers', 'visualization_msgs/msg/MarkerArray', 'markers')

_FIXED = ('clock', 'tf', 'ego_odometry', 'ego_control_state', 'control_states', 'frame', 'actors',
          'markers')
_OWN = ('odometry', 'control_state', 'joint_states')


@dataclass(frozen=True, slots=True)
class Demand:
    """
    The topics that have subscribers: all that has to be decoded and encoded.

    ``odometry``, ``control_state``, ``joint_states``: ``Actor.topic_name`` of the actors whose own
    topic has a subscriber, None for all; ``others`` names of topics of any other kind, None for
    all.
    """

    clock: bool = True
    tf: bool = True
    ego_odometry: bool = True
    ego_control_state: bool = True
    control_states: bool = True
    frame: bool = True
    actors: bool = True
    markers: bool = True
    odometry: frozenset[str] | None = None
    control_state: frozenset[str] | None = None
    joint_states: frozenset[str] | None = None
    others: frozenset[str] | None = None

    def __eq__(self, other: object) -> bool:
        """Compare all fields; for one object at once, which saves 2 us in each frame."""
        return self is other or (isinstance(other, Demand) and all(
            getattr(self, field.name) == getattr(other, field.name) for field in fields(self)))

    @classmethod
    def of(cls, topics: Iterable[Topic]) -> Demand:
        """
        Return the demand for exactly these topics.

        :param topics: the topics that have a subscriber, of any kind.
        """
        fixed = set()
        own: dict[str, set[str]] = {kind: set() for kind in (*_OWN, 'others')}
        for topic in topics:
            if topic.kind in _OWN:
                own[topic.kind].add(topic.actor)
            elif topic.kind in _FIXED:
                fixed.add(topic.kind)
            else:
                own['others'].add(topic.name)
        fields: dict[str, Any] = {kind: kind in fixed for kind in _FIXED}
        fields |= {kind: frozenset(members) for kind, members in own.items()}
        return cls(**fields)

    def has_other(self, topic: Topic) -> bool:
        """Return whether ``topic``, of another kind than the fields above, has a subscriber."""
        return self.others is None or topic.name in self.others

    @classmethod
    def nothing(cls) -> Demand:
        """Return the demand for no topic."""
        return cls.of(())


EVERYTHING = Demand()
NO_ACTORS: frozenset[str] = frozenset()


def fixed_topics(settings: Settings) -> tuple[Topic, ...]:
    """
    Return the topics that exist with any actors and any values of dynamic parameters.

    :param settings: of which ``publish_clock`` is used.
    """
    clock = (CLOCK_TOPIC,) if settings.publish_clock else ()
    return (*clock, TF_TOPIC, EGO_ODOMETRY_TOPIC, EGO_CONTROL_STATE_TOPIC, CONTROL_STATES_TOPIC,
            FRAME_TOPIC, ACTORS_TOPIC, MARKERS_TOPIC)


def actor_topics(settings: Settings, actor: Actor, *, has_lanes: bool,
                 has_wheels: bool) -> tuple[Topic, ...]:
    """
    Return the topics that an actor has of its own.

    :param settings: of which ``odometry`` and ``joint_states`` are used.
    :param actor: whose ``topic_name`` is a part of their names.
    :param has_lanes: whether a frame had a lane state of the actor.
    :param has_wheels: whether the actor is a vehicle.
    :returns: none for an actor without ``has_topics``.
    """
    if not actor.has_topics:
        return ()
    topics = []
    if settings.odometry:
        topics.append(own_topic(actor, 'odometry', ODOMETRY))
    if settings.odometry and has_lanes:
        topics.append(own_topic(actor, 'control_state', CONTROL_STATE))
    if settings.joint_states and has_wheels:
        topics.append(own_topic(actor, 'joint_states', JOINT_STATES))
    return tuple(topics)


def own_topic(actor: Actor, kind: str, type_name: str) -> Topic:
    """
    Return the topic of one kind that belongs to one actor alone.

    :param actor: the owner.
    :param kind: field of :class:`Demand`, and last token of the name.
    :param type_name: ``package/msg/Name``.
    """
    return Topic(f'~/actors/{actor.topic_name}/{kind}', type_name, kind, actor.topic_name)


def enabled(settings: Settings, demand: Demand) -> Demand:
    """Return ``demand`` without the topics that ``settings`` switch off."""
    return replace(
        demand,
        clock=demand.clock and settings.publish_clock,
        tf=demand.tf and settings.tf != 'none',
        frame=demand.frame and settings.frame,
        markers=demand.markers and settings.debug_drawing and settings.include_obb,
        odometry=demand.odometry if settings.odometry else NO_ACTORS,
        control_state=demand.control_state if settings.odometry else NO_ACTORS,
        joint_states=demand.joint_states if settings.joint_states else NO_ACTORS)


def needs_of(settings: Settings, demand: Demand) -> Needs:
    """
    Return which parts of a frame have to be decoded.

    :param settings: of which those that switch topics on and off, ``wheel_tf`` and the place of
        base_link are used.
    :param demand: the topics that have subscribers.
    """
    topics = enabled(settings, demand)
    wheel_tf = topics.tf and settings.wheel_tf
    # Their topics are in ``others``, which may have those of the simulator, too.
    outputs = bool(settings.outputs) and topics.others != NO_ACTORS
    base_link = bool(settings.ego_frame) and is_measured(settings) and (
        topics.tf or topics.ego_odometry or topics.odometry != NO_ACTORS)
    return Needs(boxes=topics.frame or topics.markers or outputs,
                 wheels=topics.frame or wheel_tf or topics.joint_states != NO_ACTORS or outputs
                 or base_link,
                 inputs=topics.frame or outputs, appearance=topics.frame,
                 lanes=topics.frame or topics.ego_control_state or topics.control_states
                 or topics.control_state != NO_ACTORS)
