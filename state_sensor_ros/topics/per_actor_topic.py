# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A topic for each actor, and one for the ego whose name does not depend on the actor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import MessageInstance, Table
from state_sensor_ros.common_ends import spliced
from state_sensor_ros.frame import Bools, Rows
from state_sensor_ros.naming import Actor, ActorList, common_actors, EMPTY_ACTOR_LIST
from state_sensor_ros.topics.message_block import MessageBlock, rows_where
from state_sensor_ros.topics.per_actor import Column, PerActor
from state_sensor_ros.topics.topic import own_topic, Topic


class PerActorTopic:
    """
    The messages of one kind of topic.

    :param kind: of the topics, last token of their names.
    :param type_name: of the messages.
    :param ego_topic: None if there is none.
    :param make: returns the message of an actor, as for :class:`PerActor`.
    """

    def __init__(self, kind: str, type_name: str, ego_topic: Topic | None,
                 make: Callable[[Actor, tuple[Any, ...], MessageInstance | None],
                                MessageInstance]) -> None:
        self._ego_topic = ego_topic
        self._instances = PerActor(make)
        self._topics = PerActor(lambda actor, *_: own_topic(actor, kind, type_name))
        # Blank for actors without topics of their own: no subscriber has that name.
        self._names = PerActor(lambda actor, *_: actor.topic_name if actor.has_topics else '')
        self._subscribed: frozenset[str] | None = frozenset()
        self._actor_list = EMPTY_ACTOR_LIST
        self._are_subscribed = b''
        self._buffer = PatchBuffer()

    def are_subscribed(self, actor_list: ActorList, subscribed: frozenset[str] | None) -> Bools:
        """
        Return which actors have a subscriber to their own topic.

        :param subscribed: ``Actor.topic_name`` of the actors with a subscriber, None for all.
        :returns: (N,) bool.
        """
        names = self._names.of(actor_list)
        head, tail = (0, 0) if subscribed != self._subscribed \
            else common_actors(self._actor_list, actor_list)
        is_subscribed = bool if subscribed is None else subscribed.__contains__
        self._are_subscribed = spliced(self._are_subscribed, head, bytes(map(
            is_subscribed, names[head:len(names) - tail])), tail)
        self._actor_list, self._subscribed = actor_list, subscribed
        return np.frombuffer(self._are_subscribed, np.bool_)

    def blocks(self, actor_list: ActorList, own: Bools, tables: Sequence[Table], owners: Rows, *,
               with_ego: bool, columns: tuple[Column, ...] = ()) -> list[MessageBlock]:
        """
        Lay out the messages: one block, or none.

        :param own: (N,) bool, actors whose own topic is sent.
        :param owners: (R,) int64, row of the actor that each row of ``tables`` belongs to.
        :param with_ego: whether the ego's message is also sent to the ego topic.
        :param columns: of the actors' appearance.
        """
        chosen = own
        if with_ego and not own[actor_list.i_ego]:
            chosen = own.copy()
            chosen[actor_list.i_ego] = True
        if not chosen.any():
            return []
        flags = chosen.tobytes()
        self._buffer.update(list(compress(self._instances.of(actor_list, *columns), flags)))
        topics = list(compress(self._topics.of(actor_list), flags))
        also: tuple[tuple[Topic, int], ...] = ()
        if with_ego and self._ego_topic is not None:
            i_message = int(np.count_nonzero(chosen[:actor_list.i_ego]))
            if own[actor_list.i_ego]:
                also = ((self._ego_topic, i_message),)
            else:
                topics[i_message] = self._ego_topic
        return [MessageBlock(self._buffer, rows_where(chosen[owners], *tables), topics, also)]
