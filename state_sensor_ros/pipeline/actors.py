# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The topics of single actors: when they open and close."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from state_sensor_ros.frame import KIND_VEHICLE, NS_PER_S, Rows
from state_sensor_ros.naming import Actor, ActorList, Registry
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import Subscriptions, Topic

# Above this number the longest absent actors are removed before their time-out. Otherwise a stream
# of ever new names whose clock hardly advances would fill the memory.
_MAX_ABSENT = 16_384


class Sink(Protocol):
    """The destination of messages. Used by one thread."""

    def open(self, topics: Iterable[Topic]) -> None:  # noqa: A003
        """Open ``topics``; those that are open stay open."""

    def shut(self, topics: Iterable[Topic]) -> None:
        """Close ``topics``."""

    def subscriptions(self) -> Subscriptions:
        """Return which topics have subscribers."""

    def publish(self, messages: Sequence[tuple[Topic, bytes]], stamp_ns: int) -> None:
        """Send messages in their order."""
        # stamp_ns: stamp of their frame, ns since the epoch of the messages' clock.


@dataclass(frozen=True, slots=True)
class _OpenTopics:
    actor: Actor
    has_lanes: bool
    has_wheels: bool
    topics: tuple[Topic, ...]


class ActorTopics:
    """Open and close the topics of actors."""

    # actor_timeout: stream time from an actor's last frame to the end of its topics, s. If the
    # limit is reached, topics of absent actors end earlier, in favor of those in the frame.

    def __init__(self, encoder: Encoder, sink: Sink, registry: Registry,
                 actor_timeout: float) -> None:
        self.encoder = encoder
        self._sink, self._registry = sink, registry
        self._timeout_ns = round(actor_timeout * NS_PER_S)
        # By topic name: after a restart, a new actor of the same name takes over the topics.
        self._opened: dict[str, _OpenTopics] = {}
        self.absent_since_ns: OrderedDict[str, int] = OrderedDict()
        self._stamp_ns = 0

    def follow(self, actor_list: ActorList, before: ActorList, lane_rows: Rows,
               stamp_ns: int) -> None:
        """
        Open the topics of actors that are new in a frame, and note which ones are absent now.

        :param lane_rows: (L,) int64, rows of the actors with a lane state.
        """
        present, with_lanes = set(actor_list.actors), set(lane_rows.tolist())
        for actor in before.actors:
            if actor not in present:
                self.absent_since_ns.setdefault(actor.topic_name, stamp_ns)
        for row, actor in enumerate(actor_list.actors):
            self.absent_since_ns.pop(actor.topic_name, None)
            opened, has_lanes = self._opened.get(actor.topic_name), row in with_lanes
            if opened is None:
                self._open(actor, has_lanes, actor_list.kinds[row] == KIND_VEHICLE)
            elif opened.actor.has_topics != actor.has_topics or has_lanes > opened.has_lanes:
                self._open(actor, has_lanes or opened.has_lanes, opened.has_wheels)

    def close_absent(self, stamp_ns: int) -> None:
        """Close the topics of actors that have been absent for ``actor_timeout``."""
        self._stamp_ns = stamp_ns
        while self.absent_since_ns:
            topic_name, since_ns = next(iter(self.absent_since_ns.items()))
            if stamp_ns - since_ns < self._timeout_ns and len(self.absent_since_ns) <= _MAX_ABSENT:
                return
            self._close(topic_name)

    def make_room(self, n_places: int) -> None:
        """
        Close topics of absent actors before their time-out, those of the longest absent first.

        :param n_places: number of actors in the frame without topics because of the limit.
        """
        for topic_name in list(self.absent_since_ns):
            if self._registry.n_free_places >= n_places or self._registry.keeps_places:
                return
            if self._opened[topic_name].actor.has_topics:
                self._close(topic_name)

    def restart(self, stamp_ns: int) -> list[str]:
        """Count all actors as absent; new actors of the same names take over their topics."""
        # stamp_ns: stamp of the first frame after the restart, ns; may be less than before.
        self._opened = {name: opened for name, opened in self._opened.items()
                        if opened.actor.has_topics}
        since_ns = {name: at_ns + stamp_ns - self._stamp_ns
                    for name, at_ns in self.absent_since_ns.items() if name in self._opened}
        self.absent_since_ns = OrderedDict({**since_ns, **{
            name: stamp_ns for name in self._opened if name not in since_ns}})
        self._stamp_ns = stamp_ns
        return list(self._opened)

    def reconfigure(self) -> None:
        """Open and close the topics that the encoder's new settings add and remove."""
        for opened in list(self._opened.values()):
            kept = {topic.name for topic in self._open(
                opened.actor, opened.has_lanes, opened.has_wheels)}
            self._sink.shut([topic for topic in opened.topics if topic.name not in kept])

    def _open(self, actor: Actor, has_lanes: bool, has_wheels: bool) -> tuple[Topic, ...]:
        topics = self.encoder.actor_topics(actor, has_lanes=has_lanes, has_wheels=has_wheels)
        self._sink.open(topics)
        self._opened[actor.topic_name] = _OpenTopics(actor, has_lanes, has_wheels, topics)
        return topics

    def _close(self, topic_name: str) -> None:
        del self.absent_since_ns[topic_name]
        self._sink.shut(self._opened.pop(topic_name).topics)
        self._registry.remove(topic_name)
