# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Topics, their quality of service, and the subscriptions to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# If no actor has a topic with a reader.
NO_ACTORS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Qos:
    """Quality of service of a publisher, keep last."""

    reliable: bool = True
    latched: bool = False  # transient local
    depth: int = 10


ORDINARY = Qos()
LATCHED = Qos(latched=True, depth=1)


@dataclass(frozen=True, slots=True)
class Topic:
    """Name, type and QoS of a topic, and the actor that owns it."""

    name: str  # absolute or with ``~`` for the node's own
    type_name: str  # ``package/msg/Name``
    qos: Qos = ORDINARY  # of its publisher, unless it is overridden
    # The ``Actor.topic_name`` of the owner, '' for a topic that is not of a single actor.
    actor: str = ''
    is_exclusive: bool = False  # whether a second publisher is an error
    # Whether it has the objects that a sensor would report, not the ground truth.
    is_perceived: bool = False

    @property
    def kind(self) -> str:
        """Return the last part of the name, the same for all actors."""
        return self.name.rpartition('/')[2]


def stack_topic(name: str, type_name: str, *, latched: bool = False,
                is_perceived: bool = False) -> Topic:
    """Return a topic of Autoware, which uses the newest message only, from one publisher."""
    return Topic(name, type_name, Qos(latched=latched, depth=1), is_exclusive=True,
                 is_perceived=is_perceived)


# The depth of tf2_ros.
TF_TOPIC = Topic('/tf', 'tf2_msgs/msg/TFMessage', Qos(depth=100))
STATIC_TF_TOPIC = Topic('/tf_static', 'tf2_msgs/msg/TFMessage', LATCHED)


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The topics that have a reader: only they have to be decoded and encoded."""

    names: frozenset[str] | None = None  # topics that are not of single actors, None for all
    # By kind of topic the ``Actor.topic_name`` of the actors whose topic has a reader, None for
    # all.
    actors: Mapping[str, frozenset[str]] | None = None

    @classmethod
    def of(cls, topics: Iterable[Topic]) -> Subscriptions:
        """
        Return the subscriptions to exactly these topics.

        :param topics: topics that have a reader.
        """
        names: set[str] = set()
        actors: dict[str, set[str]] = {}
        for topic in topics:
            if topic.actor:
                actors.setdefault(topic.kind, set()).add(topic.actor)
            else:
                names.add(topic.name)
        return cls(frozenset(names), {kind: frozenset(of_kind)
                                      for kind, of_kind in actors.items()})

    def has(self, topic: Topic) -> bool:
        """Return whether ``topic``, which is not of a single actor, has a reader."""
        return self.names is None or topic.name in self.names

    def actors_of(self, kind: str) -> frozenset[str] | None:
        """Return the actors whose topic of a kind has a reader, None for all."""
        return None if self.actors is None else self.actors.get(kind, NO_ACTORS)


EVERYTHING = Subscriptions()
NOTHING = Subscriptions.of(())
