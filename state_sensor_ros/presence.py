# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Which actors have topics of their own: from their first frame until they have been away too long.

May know: who is in the frame, stream time. Must not know: publishers, what the topics carry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol

from state_sensor_ros.encode import Topic
from state_sensor_ros.frame import KIND_VEHICLE, Rows
from state_sensor_ros.naming import Actor, Cast, Registry, same_actors
from state_sensor_ros.stamps import NS_PER_S


class TopicsOfActors(Protocol):
    """Says which topics an actor has; the encoder does."""

    def actor_topics(self, actor: Actor, *, has_lanes: bool,
                     has_wheels: bool) -> tuple[Topic, ...]:
        """Return the topics that ``actor`` has of its own."""


class TopicSwitch(Protocol):
    """Makes topics exist; a sink does."""

    def open(self, topics: Iterable[Topic]) -> None:
        """Make these topics exist; those that do are left alone."""

    def shut(self, topics: Iterable[Topic]) -> None:
        """Remove these topics."""


@dataclass(frozen=True, slots=True)
class _Own:
    """The topics of one actor, and what they depend on."""

    actor: Actor
    has_lanes: bool
    has_wheels: bool
    topics: tuple[Topic, ...]


class Presence:
    """
    Open and shut the topics of actors as these come and go.

    :param encoder: says which topics an actor has.
    :param sink: makes them exist.
    :param registry: forgets who has been away for ``actor_timeout`` s of stream time.
    """

    def __init__(self, encoder: TopicsOfActors, sink: TopicSwitch, registry: Registry,
                 actor_timeout: float) -> None:
        self._encoder, self._sink, self._registry = encoder, sink, registry
        self._timeout_ns = round(actor_timeout * NS_PER_S)
        # By topic name, so that a new actor of the same name takes over after a restart.
        self._own: dict[str, _Own] = {}
        # The longest absent come first.
        self._absent_since_ns: dict[str, int] = {}
        self._with_lanes: set[Actor] = set()

    def follow(self, cast: Cast, before: Cast, lane_rows: Rows, stamp_ns: int) -> None:
        """
        Take note of who is there now and who was before.

        :param lane_rows: (L,) int64 rows of those whose frame carries a lane state.
        """
        head, tail = same_actors(before, cast)
        came = cast.actors[head:len(cast.actors) - tail]
        present = set(came)
        for actor in before.actors[head:len(before.actors) - tail]:
            if actor not in present:
                self._absent_since_ns.setdefault(actor.topic_name, stamp_ns)
        with_lanes = {cast.actors[i] for i in lane_rows.tolist()}
        for i, actor in enumerate(came, head):
            self._absent_since_ns.pop(actor.topic_name, None)
            if actor.topic_name not in self._own:
                self._open(actor, actor in with_lanes, cast.kinds[i] == KIND_VEHICLE)
        for actor in sorted(with_lanes - self._with_lanes, key=attrgetter('id')):
            own = self._own[actor.topic_name]
            if not own.has_lanes:
                self._open(actor, True, own.has_wheels)
        self._with_lanes = with_lanes

    def shut_absent(self, stamp_ns: int) -> None:
        """Shut the topics of those who have been away for too long."""
        while self._absent_since_ns:
            topic_name, since_ns = next(iter(self._absent_since_ns.items()))
            if stamp_ns - since_ns < self._timeout_ns:
                return
            del self._absent_since_ns[topic_name]
            self._sink.shut(self._own.pop(topic_name).topics)
            self._registry.forget(topic_name)

    def restart(self, stamp_ns: int) -> None:
        """Have everybody be away; actors of the same names take their topics over."""
        self._absent_since_ns = dict.fromkeys(self._own, stamp_ns)

    def reconfigure(self) -> None:
        """Open and shut what the encoder's new settings add and take; the rest stays open."""
        for own in list(self._own.values()):
            self._open(own.actor, own.has_lanes, own.has_wheels)
            kept = {topic.name for topic in self._own[own.actor.topic_name].topics}
            self._sink.shut([topic for topic in own.topics if topic.name not in kept])

    def _open(self, actor: Actor, has_lanes: bool, has_wheels: bool) -> None:
        topics = self._encoder.actor_topics(actor, has_lanes=has_lanes, has_wheels=has_wheels)
        self._sink.open(topics)
        self._own[actor.topic_name] = _Own(actor, has_lanes, has_wheels, topics)
