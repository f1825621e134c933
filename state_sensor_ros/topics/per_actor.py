# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Items and messages that are kept for each actor until it leaves or its appearance changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Generic, TypeVar

import numpy as np

from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import MessageInstance, Table
from state_sensor_ros.common_ends import spliced
from state_sensor_ros.frame import Bools, Rows
from state_sensor_ros.naming import Actor, ActorList, common_actors, EMPTY_ACTOR_LIST
from state_sensor_ros.topics.topic import NO_ACTORS, Topic
from state_sensor_ros.topics.topic_encoder import (
    FrameToSend,
    MessageBlock,
    rows_where,
    TopicEncoder,
)

Item = TypeVar('Item')


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One property of N actors."""

    entries: tuple[Any, ...] | bytes  # in the order of the actors
    # (N + 1,) int64, index of the first entry of each actor, None if each actor has exactly one.
    first: Rows | None = None

    def at(self, i: int) -> object:
        """Return the entry of actor ``i``, or its entries if there is a ``first``."""
        if self.first is None:
            return self.entries[i]
        return self.entries[int(self.first[i]):int(self.first[i + 1])]

    def equals(self, begin: int, other: Column, other_begin: int, n_actors: int) -> bool:
        """
        Return whether a range of actors has the same entries here and in another column.

        :param begin: first actor here.
        :param other: column of the same property.
        :param other_begin: first actor in ``other``.
        :param n_actors: length of the range, in both.
        """
        end, other_end = begin + n_actors, other_begin + n_actors
        if self.first is not None and other.first is not None:
            first, other_first = self.first[begin:end + 1], other.first[other_begin:other_end + 1]
            if not np.array_equal(first - first[0], other_first - other_first[0]):
                return False
            begin, end = int(first[0]), int(first[-1])
            other_begin, other_end = int(other_first[0]), int(other_first[-1])
        return self.entries[begin:end] == other.entries[other_begin:other_end]


class PerActor(Generic[Item]):
    """One item for each actor."""

    # make: returns the item of an actor from its appearance, a tuple with its entry of each
    # column, and from its previous item, None for a new actor.

    def __init__(self, make: Callable[[Actor, tuple[Any, ...], Item | None], Item]) -> None:
        self._make = make
        self._actor_list = EMPTY_ACTOR_LIST
        self._columns: tuple[Column, ...] = ()
        self._items: list[Item] = []

    def of(self, actor_list: ActorList, *columns: Column) -> list[Item]:
        n_old, n_new = len(self._items), len(actor_list.actors)
        head, tail = common_actors(self._actor_list, actor_list)
        if columns:
            if head == n_old == n_new:
                tail = n_new
            head = self._n_equal(columns, head, lambda n_actors: (0, 0))
            tail = self._n_equal(columns, min(tail, n_old - head, n_new - head),
                                 lambda n_actors: (n_new - n_actors, n_old - n_actors))
        left = {self._actor_list.actors[i]: i for i in range(head, n_old - tail)}
        items, changed = [], []
        for i in range(head, n_new - tail):
            actor, appearance = actor_list.actors[i], tuple([column.at(i) for column in columns])
            i_old = left.pop(actor, None)
            if i_old is None:
                items.append(self._make(actor, appearance, None))
                continue
            items.append(self._items[i_old])
            if appearance != tuple([column.at(i_old) for column in self._columns]):
                changed.append((i, appearance))
        self._items[head:n_old - tail] = items
        for i, appearance in changed:
            self._items[i] = self._make(actor_list.actors[i], appearance, self._items[i])
        self._actor_list, self._columns = actor_list, columns
        return self._items

    def _n_equal(self, columns: tuple[Column, ...], n_most: int,
                 begins: Callable[[int], tuple[int, int]]) -> int:
        """Return how many of ``n_most`` actors look as in the last call, by bisection."""
        n_equal, beyond, n_actors = 0, n_most + 1, n_most
        while beyond - n_equal > 1:
            begin, old_begin = begins(n_actors)
            if all(column.equals(begin, old, old_begin, n_actors)
                   for column, old in zip(columns, self._columns, strict=True)):
                n_equal = n_actors
            else:
                beyond = n_actors
            n_actors = (n_equal + beyond) // 2
        return n_equal


def own_topic(actor: Actor, kind: str, type_name: str) -> Topic:
    """Return the topic of a kind for a single actor."""
    # type_name: type of its messages, ``package/msg/Name``.
    return Topic(f'~/actors/{actor.topic_name}/{kind}', type_name, actor=actor.topic_name)


class PerActorTopic:
    """The messages of one kind of topic."""

    # encoder: encoder with ``kind`` and ``type_name`` of the topics; its ``topics`` are that of
    # the ego, or none.

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
        """Lay out the messages: one block, or none."""
        # present: (N,) bool, actors that can have a message.
        # owners: (R,) int64, row of the actor that each row of ``tables`` belongs to.
        actor_list, ego_topics = now.actor_list, self._encoder.topics
        i_ego = actor_list.i_ego
        with_ego = i_ego >= 0 and bool(present[i_ego]) and any(
            map(now.subscriptions.has, ego_topics))
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
        read = now.subscriptions.actors_of(encoder.kind) \
            if encoder.is_on_for_actors(now.settings) else NO_ACTORS
        names = self._names.of(actor_list)
        head, tail = (0, 0) if read != self._read else common_actors(self._actor_list, actor_list)
        is_read = bool if read is None else read.__contains__
        self._are_read = spliced(self._are_read, head, bytes(map(
            is_read, names[head:len(names) - tail])), tail)
        self._actor_list, self._read = actor_list, read
        return np.frombuffer(self._are_read, np.bool_)
