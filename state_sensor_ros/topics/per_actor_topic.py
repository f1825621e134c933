# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A topic for each actor, and one of a fixed name for the ego."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import MessageInstance, Table
from state_sensor_ros.common_ends import spliced
from state_sensor_ros.frame import Bools, Rows
from state_sensor_ros.naming import Actor, common_actors, EMPTY_ACTOR_LIST
from state_sensor_ros.topics.message_block import MessageBlock, rows_where
from state_sensor_ros.topics.per_actor import Column, PerActor
from state_sensor_ros.topics.topic import NO_ACTORS, Topic
from state_sensor_ros.topics.topic_encoder import FrameToSend, TopicEncoder


def own_topic(actor: Actor, kind: str, type_name: str) -> Topic:
    """
    Return the topic of a kind for a single actor.

    :param actor: owner of the topic.
    :param kind: last part of its name.
    :param type_name: type of its messages, ``package/msg/Name``.
    """
    return Topic(f'~/actors/{actor.topic_name}/{kind}', type_name, actor=actor.topic_name)


class PerActorTopic:
    """
    The messages of one kind of topic.

    :param encoder: encoder with ``kind`` and ``type_name`` of the topics; its ``topics`` are that
        of the ego, or none.
    :param make: returns the message of an actor, as for :class:`PerActor`.
    """

    def __init__(self, encoder: TopicEncoder, make: Callable[
            [Actor, tuple[Any, ...], MessageInstance | None], MessageInstance]) -> None:
        self._encoder = encoder
        self._instances = PerActor(make)
        self._topics = PerActor(lambda actor, *_: own_topic(
            actor, encoder.kind, encoder.type_name))
        # Empty for actors without topics of their own: no reader has that name.
        self._names = PerActor(lambda actor, *_: actor.topic_name if actor.has_topics else '')
        self._read: frozenset[str] | None = frozenset()
        self._actor_list = EMPTY_ACTOR_LIST
        self._are_read = b''
        self._buffer = PatchBuffer()

    def blocks(self, now: FrameToSend, present: Bools, tables: Sequence[Table], owners: Rows,
               columns: tuple[Column, ...] = ()) -> list[MessageBlock]:
        """
        Lay out the messages: one block, or none.

        :param present: (N,) bool, actors that can have a message.
        :param tables: tables in the messages.
        :param owners: (R,) int64, row of the actor that each row of ``tables`` belongs to.
        :param columns: columns of the actors' appearance.
        """
        actor_list, ego_topics = now.actor_list, self._encoder.topics
        i_ego = actor_list.i_ego
        with_ego = i_ego >= 0 and any(map(now.demand.has, ego_topics)) and bool(present[i_ego])
        are_read = self._which_are_read(now) & present
        chosen = are_read
        if with_ego and not are_read[i_ego]:
            chosen = are_read.copy()
            chosen[i_ego] = True
        if not chosen.any():
            return []
        flags = chosen.tobytes()
        self._buffer.update(list(compress(self._instances.of(actor_list, *columns), flags)))
        topics = list(compress(self._topics.of(actor_list), flags))
        also = []
        if with_ego:
            i_message = int(np.count_nonzero(chosen[:i_ego]))
            if are_read[i_ego]:
                also = [(ego_topics[0], i_message)]
            else:
                topics[i_message] = ego_topics[0]
        return [MessageBlock(self._buffer, rows_where(chosen[owners], *tables), topics, also)]

    def _which_are_read(self, now: FrameToSend) -> Bools:
        """Return (N,) bool, actors whose own topic has a reader."""
        actor_list, encoder = now.actor_list, self._encoder
        read = now.demand.actors_of(encoder.kind) if encoder.is_on_for_actors(now.settings) \
            else NO_ACTORS
        names = self._names.of(actor_list)
        head, tail = (0, 0) if read != self._read else common_actors(self._actor_list, actor_list)
        is_read = bool if read is None else read.__contains__
        self._are_read = spliced(self._are_read, head, bytes(map(
            is_read, names[head:len(names) - tail])), tail)
        self._actor_list, self._read = actor_list, read
        return np.frombuffer(self._are_read, np.bool_)
