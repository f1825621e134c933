# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""
Raw actor names to legal, unique and stable ROS names and ids.

Characters other than letters, digits and ``_`` are replaced by ``_``; names that become equal are
numbered: ``a.b`` is ``a_b``, a later ``a-b`` is ``a_b_2``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
import re

import numpy as np

from state_sensor_ros.classes import EGO_TAG, has_ego_tag
from state_sensor_ros.common_ends import common_ends, spliced
from state_sensor_ros.frame import Frame, Rows
from state_sensor_ros.settings import Settings

_ILLEGAL = re.compile(r'[^A-Za-z0-9_]')
# A whole topic name may have 247 characters: namespace, node, actor and kind.
_MAX_LENGTH = 128
# First id of actors without one of their own in a source that has ids: these are seldom as great.
_FIRST_OTHER_ID = 2**31
_NO_ID = -1


@dataclass(frozen=True, slots=True, eq=False)
class Actor:
    """The names of one actor, from its first frame until it is forgotten."""

    name: str  # raw
    topic_name: str  # legal in a topic
    frame_id: str  # its TF frame
    id: int  # unique in a run, that of the source if it has one
    has_topics: bool  # whether it has topics of its own, which ``max_actor_topics`` limits


@dataclass(frozen=True, slots=True, eq=False)
class ActorList:
    """The actors of a frame, row by row."""

    actors: tuple[Actor, ...]  # N entries
    names: tuple[str, ...]
    kinds: bytes  # N integers
    tags: tuple[tuple[str, ...], ...]  # N tuples
    i_ego: int  # row of the ego, -1 without one
    n_egos: int  # number of actors with the ego tag
    # Equal for consecutive frames of equal actors, and different from that of every other list of
    # the same registry.
    version: int = 0


EMPTY_ACTOR_LIST = ActorList((), (), b'', (), -1, 0)


@lru_cache(maxsize=4)
def common_actors(old: ActorList, new: ActorList) -> tuple[int, int]:
    """Return the length of the common prefix and suffix of two lists of actors."""
    # old: the list before a change; its ``actors`` are compared, not kinds or tags.
    # Returns lengths, as from :func:`common_ends`; the results of four pairs are kept.
    return common_ends(old.actors, new.actors)


def legal_topic_name(raw: str) -> str:
    """
    Make a raw name legal as a token of a ROS topic.

    >>> legal_topic_name('Misc.Cone-2'), legal_topic_name('3rd'), legal_topic_name('')
    ('Misc_Cone_2', 'actor_3rd', 'actor')

    :param raw: any text; characters after the first 128 are cut off.
    :returns: letters, digits and ``_``, not beginning with a digit; may be equal for two names.
    """
    if not raw:
        return 'actor'
    legal = _ILLEGAL.sub('_', raw[:_MAX_LENGTH])
    return f'actor_{legal}' if legal[0].isdigit() else legal


def actor_frame(prefix: str, topic_name: str) -> str:
    """Return the frame of an actor; ``ego_frame`` replaces the ego's."""
    return prefix + topic_name


def wheel_frame(prefix: str, actor: Actor, wheel: int) -> str:
    """Return the frame of a wheel, which is the name of its joint as well."""
    return f'{actor_frame(prefix, actor.topic_name)}/wheel_{wheel}'


def registry_of(settings: Settings) -> Registry:
    """
    Return a registry that names actors as those of all outputs are named.

    :param settings: prefix, ego and limit; frames of the settings are not names of actors.
    """
    return Registry(
        frame_prefix=settings.frame_prefix, ego_tag=settings.ego_tag,
        ego_frame=settings.ego_frame, max_actor_topics=settings.max_actor_topics,
        reserved_frames=(settings.global_frame, settings.parent_frame, settings.odom_frame))


class _TopicNames:

    def __init__(self, reserved: Callable[[str], bool],
                 taken: Mapping[str, str] | None = None) -> None:
        self._is_reserved = reserved
        self._taken = {} if taken is None else taken
        self.owners: dict[str, str] = {}
        # For each legal name that several raw names share: the number to try next, and how many
        # numbered names are in use. Without the former, N such names would cost N * N look-ups.
        self._next_number: dict[str, int] = {}
        self._n_numbered: Counter[str] = Counter()

    def take(self, name: str) -> str:
        """Return a free topic name for the raw name ``name``."""
        legal = candidate = legal_topic_name(name)
        while not self.is_free(candidate):
            number = self._next_number.get(legal, 2)
            self._next_number[legal] = number + 1
            candidate = f'{legal}_{number}'
        self.enter(candidate, name)
        return candidate

    def is_free(self, topic_name: str) -> bool:
        return topic_name not in self.owners and topic_name not in self._taken \
            and not self._is_reserved(topic_name)

    def enter(self, topic_name: str, name: str) -> None:
        """Enter the topic name of the raw name ``name``."""
        self.owners[topic_name] = name
        legal = legal_topic_name(name)
        if topic_name != legal:
            self._n_numbered[legal] += 1

    def free(self, topic_name: str) -> str | None:
        """Free a topic name; return its raw name, None for a topic name that is not in use."""
        name = self.owners.pop(topic_name, None)
        if name is not None and topic_name != (legal := legal_topic_name(name)):
            self._n_numbered[legal] -= 1
            if not self._n_numbered[legal]:
                del self._n_numbered[legal]
                self._next_number.pop(legal, None)
        return name


class Registry:
    """
    Assign ROS names to each raw name once and keep them until the actor is forgotten.

    The work for a frame is linear in its actors, for any names.

    :param ego_frame: frame of the ego, ``''`` for the ordinary rule.
    """

    def __init__(self, *, frame_prefix: str = '', ego_tag: str = EGO_TAG, ego_frame: str = '',
                 max_actor_topics: int = 1024,
                 reserved_frames: Collection[str] = ()) -> None:
        self._frame_prefix = frame_prefix
        self._ego_tag = ego_tag
        self._ego_frame = ego_frame
        self._max_actor_topics = max_actor_topics
        self._reserved = frozenset((*reserved_frames, ego_frame))
        self._next_id = self._next_version = 1
        self._has_source_ids = False
        self.restart()

    def restart(self, with_topics: Iterable[str] = ()) -> None:
        """
        Remove all names, as after a restart of the simulator.

        Ids are not used again, except those of the source.

        :param with_topics: topic names whose topics stay open, and count until :meth:`remove`.
        """
        self._with_topics = set(with_topics)
        self._known: dict[str, Actor] = {}
        # Raw names by the ids in use.
        self._owners: dict[int, str] = {}
        self._source_ids: Rows | None = None
        self._names = _TopicNames(self._is_reserved)
        # Raw names that have no topics because of the limit, in the order of their first frames.
        self._without_topics: dict[str, None] = {}
        # Actors that were in repeated frames only, by raw name.
        self._repeated: dict[str, Actor] = {}
        self._are_egos = b''
        # A version of its own: a frame without actors differs from the frames before the restart.
        self.actor_list = replace(EMPTY_ACTOR_LIST, version=self._new_version())

    @property
    def n_free_places(self) -> int:
        """Return the number of further actors that may have topics of their own."""
        return self._max_actor_topics - len(self._with_topics)

    def update(self, frame: Frame) -> ActorList:
        """Name all actors of a frame whose clock advanced; the last object if nothing changed."""
        kinds = frame.kinds.tobytes()
        last = self.actor_list
        id_head, id_tail = self._common_ids(frame)
        if frame.names == last.names and frame.tags == last.tags and kinds == last.kinds \
                and id_head == frame.n_actors:
            return last
        ids = None if frame.ids is None else frame.ids.tolist()
        egos = self._egos(frame.tags)
        i_ego = egos.find(1)
        if self._ego_frame:
            actors = tuple([self._actor(name, i == i_ego, _NO_ID if ids is None else ids[i])
                            for i, name in enumerate(frame.names)])
        else:
            # Only changed rows are looked up: one new actor among 1000 costs as much as one of 10.
            head, tail = common_ends(last.names, frame.names)
            head, tail = min(head, id_head), min(tail, id_tail)
            middle = slice(head, frame.n_actors - tail)
            actors = spliced(last.actors, head, tuple(
                [self._known.get(name) or self._actor(name, False) for name in frame.names[middle]]
                if ids is None else
                [self._actor(name, False, id_) for name, id_ in zip(
                    frame.names[middle], ids[middle], strict=True)]), tail)
        self._repeated.clear()
        self.actor_list = ActorList(actors, frame.names, kinds, frame.tags, i_ego, egos.count(1),
                                    self._new_version())
        return self.actor_list

    def name_repeated(self, frame: Frame) -> ActorList:
        """
        Name all actors of a frame whose clock did not advance.

        A new actor gets names, but no topics, and is forgotten with the next frame: repeated
        frames use neither memory nor places for topics.
        """
        known, before = self._known, self._repeated
        names = _TopicNames(self._is_reserved, self._names.owners)
        self._repeated = {name: before[name] for name in frame.names
                          if name in before and name not in known}
        self._has_source_ids |= frame.ids is not None
        ids = {actor.id for actor in self._repeated.values()}
        for actor in self._repeated.values():
            names.enter(actor.topic_name, actor.name)
        for i, name in enumerate(frame.names):
            if name not in known and name not in self._repeated:
                topic_name = names.take(name)
                id_ = _NO_ID if frame.ids is None else int(frame.ids[i])
                if id_ == _NO_ID or id_ in self._owners or id_ in ids:
                    id_ = self._new_id()
                ids.add(id_)
                self._repeated[name] = Actor(
                    name, topic_name, self._frame_of(topic_name), id_, False)
        actors = tuple([known.get(name) or self._repeated[name] for name in frame.names])
        egos = bytes(self._is_ego(tags) for tags in frame.tags)
        return ActorList(actors, frame.names, frame.kinds.tobytes(), frame.tags, egos.find(1),
                         egos.count(1), self._new_version())

    def grant_topics(self) -> ActorList:
        """Give free places to actors of the last frame that have no topics of their own."""
        n_free = self.n_free_places
        if n_free <= 0 or not self._without_topics:
            return self.actor_list
        present = set(self.actor_list.names)
        granted = [name for name in self._without_topics if name in present][:n_free]
        if not granted:
            return self.actor_list
        for name in granted:
            del self._without_topics[name]
            actor = self._known[name] = replace(self._known[name], has_topics=True)
            self._with_topics.add(actor.topic_name)
        self.actor_list = replace(self.actor_list, version=self._new_version(), actors=tuple(
            [self._known[name] for name in self.actor_list.names]))
        return self.actor_list

    def first_frame_id(self, name: str) -> str:
        """Return the TF frame of an actor, not the ego, whose name no other actor resembles."""
        return self._frame_of(_TopicNames(self._is_reserved).take(name))

    def remove(self, topic_name: str) -> None:
        """Free the names and the place of an actor that has left."""
        # topic_name: ``Actor.topic_name`` of the actor; no effect if it is not in use.
        self._with_topics.discard(topic_name)
        name = self._names.free(topic_name)
        if name is not None:
            del self._owners[self._known.pop(name).id]
            self._without_topics.pop(name, None)

    def _is_reserved(self, topic_name: str) -> bool:
        return self._frame_of(topic_name) in self._reserved

    def _frame_of(self, topic_name: str) -> str:
        return actor_frame(self._frame_prefix, topic_name)

    def _is_ego(self, tags: tuple[str, ...]) -> bool:
        return has_ego_tag(tags, self._ego_tag)

    def _egos(self, tags: tuple[tuple[str, ...], ...]) -> bytes:
        """Return a byte for each actor, 1 for an ego; only changed tags are compared."""
        last = self.actor_list.tags
        head, tail = common_ends(last, tags)
        middle = bytes(map(self._is_ego, tags[head:len(tags) - tail]))
        self._are_egos = spliced(self._are_egos, head, middle, tail)
        return self._are_egos

    def _common_ids(self, frame: Frame) -> tuple[int, int]:
        """Return the length of the common prefix and suffix of the ids of the last two frames."""
        last, ids = self._source_ids, frame.ids
        self._source_ids = ids
        self._has_source_ids |= ids is not None
        if last is None or ids is None or last is ids:
            return (frame.n_actors, frame.n_actors) if last is ids else (0, 0)
        n_common = min(len(last), len(ids))
        ends = [np.flatnonzero(ids[order][:n_common] != last[order][:n_common])
                for order in (slice(None), slice(None, None, -1))]
        head, tail = (int(end[0]) if len(end) else n_common for end in ends)
        return head, tail

    def _actor(self, name: str, is_ego: bool, source_id: int = _NO_ID) -> Actor:
        """Return the names of an actor of the frame; enter a new one."""
        known = self._known.get(name)
        frame_id = self._ego_frame if is_ego and self._ego_frame else ''
        is_renumbered = source_id != _NO_ID and source_id not in self._owners
        if known is not None and not is_renumbered and (
                frame_id or self._frame_of(known.topic_name)) == known.frame_id:
            return known
        if known is None:
            topic_name, id_ = self._new_names(name, source_id)
            has_topics = topic_name in self._with_topics or self.n_free_places > 0
            if has_topics:
                self._with_topics.add(topic_name)
            else:
                self._without_topics[name] = None
        else:
            topic_name, id_, has_topics = known.topic_name, known.id, known.has_topics
            if is_renumbered:
                del self._owners[id_]
                id_ = source_id
        self._owners[id_] = name
        actor = Actor(name, topic_name, frame_id or self._frame_of(topic_name), id_, has_topics)
        self._known[name] = actor
        return actor

    def _new_names(self, name: str, source_id: int) -> tuple[str, int]:
        """Return topic name and id of a new actor: those of a repeated frame if they are free."""
        shown = self._repeated.get(name)
        if source_id != _NO_ID and source_id not in self._owners:
            id_ = source_id
        elif shown is not None and shown.id not in self._owners:
            id_ = shown.id
        else:
            id_ = self._new_id()
        if shown is not None and self._names.is_free(shown.topic_name):
            self._names.enter(shown.topic_name, name)
            return shown.topic_name, id_
        return self._names.take(name), id_

    def _new_version(self) -> int:
        version = self._next_version
        self._next_version += 1
        return version

    def _new_id(self) -> int:
        if self._has_source_ids and self._next_id < _FIRST_OTHER_ID:
            self._next_id = _FIRST_OTHER_ID
        while self._next_id in self._owners:
            self._next_id += 1
        id_ = self._next_id
        self._next_id += 1
        return id_
