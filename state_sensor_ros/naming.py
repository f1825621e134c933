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

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
import re

import numpy as np

from state_sensor_ros.classes import GHOST_TAG, has_ego_tag
from state_sensor_ros.frame import Bools, Frame, Rows
from state_sensor_ros.settings import DEFAULTS, Settings

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
def are_real(actor_list: ActorList) -> Bools:
    """Return (N,) bool, which actors are not copies of others; computed once for a list."""
    return np.array([GHOST_TAG not in tags for tags in actor_list.tags], np.bool_)


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


def wheel_frame(prefix: str, actor: Actor, wheel: int) -> str:
    """Return the frame of a wheel, which is the name of its joint as well."""
    return f'{prefix}{actor.topic_name}/wheel_{wheel}'


_is_ego = lru_cache(maxsize=1024)(has_ego_tag)


class Registry:
    """
    Assign ROS names to each raw name once and keep them until the actor is forgotten.

    The work for a frame is linear in its actors, for any names. ``actor_list``: of the last frame.
    ``n_refused``: number of times that a new actor got no topics of its own;
    ``n_without_topics``: number of actors of the last frame without.

    :param settings: prefix, ego and limit; frames of the settings are not names of actors.
    :param keeps_places: whether the topics of actors that have left keep their places, as those in
        a bag.
    """

    def __init__(self, settings: Settings = DEFAULTS, *, keeps_places: bool = False) -> None:
        self._settings, self.keeps_places = settings, keeps_places
        self._with_topics: set[str] = set()
        self.n_refused = 0
        self._reserved = {settings.global_frame, settings.parent_frame, settings.odom_frame,
                          settings.ego_frame}
        self._next_id, self._versions = 1, count(1)
        self._has_source_ids = False
        self.restart()

    def restart(self, with_topics: Iterable[str] = ()) -> None:
        """
        Remove all names, as after a restart of the simulator.

        Ids are not used again, except those of the source.

        :param with_topics: topic names whose topics stay open, and count until :meth:`remove`.
        """
        self._with_topics = {*with_topics, *(self._with_topics if self.keeps_places else ())}
        self._known: dict[str, Actor] = {}
        # Raw names by the topic names in use, and the ids in use.
        self._by_topic: dict[str, str] = {}
        self._used_ids: set[int] = set()
        self._ids: Rows | None = None
        # For each legal name that several raw names share, the number to try next: without it, N
        # such names would cost N * N look-ups.
        self._next_number: dict[str, int] = {}
        self.n_without_topics = 0
        # A version of its own: a frame without actors differs from the frames before the restart.
        self.actor_list = replace(EMPTY_ACTOR_LIST, version=next(self._versions))

    @property
    def n_free_places(self) -> int:
        """Return the number of further actors that may have topics of their own."""
        return self._settings.max_actor_topics - len(self._with_topics)

    def update(self, frame: Frame) -> ActorList:
        """Name all actors of a frame; return the last list if nothing changed."""
        last, ids = self.actor_list, frame.ids
        may_grant = self.n_without_topics > 0 and self.n_free_places > 0
        if frame.names == last.names and frame.tags == last.tags and not may_grant \
                and frame.kinds.tobytes() == last.kinds \
                and (ids is self._ids or np.array_equal(ids, self._ids)):  # type: ignore[arg-type]
            return last
        self._ids = ids
        egos = bytes([_is_ego(tags, self._settings.ego_tag) for tags in frame.tags])
        i_ego = egos.find(1)
        if self._settings.ego_frame or ids is not None or self.n_without_topics:
            self._has_source_ids |= ids is not None
            source_ids = [_NO_ID] * frame.n_actors if ids is None else ids.tolist()
            actors = [self._actor(name, i == i_ego, id_) for i, (name, id_) in
                      enumerate(zip(frame.names, source_ids, strict=True))]
        else:
            actors = [self._known.get(name) or self._actor(name, False) for name in frame.names]
        self.actor_list = ActorList(tuple(actors), frame.names, frame.kinds.tobytes(), frame.tags,
                                    i_ego, egos.count(1), next(self._versions))
        self.n_without_topics = sum(not actor.has_topics for actor in actors)
        return self.actor_list

    def first_frame_id(self, name: str) -> str:
        """Return the TF frame of an actor, not the ego, whose name no other actor resembles."""
        return self._settings.frame_prefix + self._free_name(name)

    def remove(self, topic_name: str) -> None:
        """Free the names and the place of an actor that has left."""
        # topic_name: ``Actor.topic_name`` of the actor; no effect if it is not in use.
        if not self.keeps_places:
            self._with_topics.discard(topic_name)
        name = self._by_topic.pop(topic_name, None)
        if name is not None:
            self._used_ids.remove(self._known.pop(name).id)

    def _actor(self, name: str, is_ego: bool, source_id: int = _NO_ID) -> Actor:
        """Return the names of an actor of the frame; enter a new one; give it a free place."""
        known, is_taken = self._known.get(name), source_id in self._used_ids
        is_new = known is None
        if known is None:
            id_ = self._new_id() if source_id == _NO_ID or is_taken else source_id
            known = Actor(name, self._free_name(name), '', id_, False)
            self._by_topic[known.topic_name] = name
            self._used_ids.add(id_)
        elif source_id != _NO_ID and not is_taken:
            self._used_ids.remove(known.id)
            self._used_ids.add(source_id)
            known = replace(known, id=source_id)
        if not known.has_topics and (
                self.n_free_places > 0 or known.topic_name in self._with_topics):
            self._with_topics.add(known.topic_name)
            known = replace(known, has_topics=True)
        self.n_refused += is_new and not known.has_topics
        frame_id = (is_ego and self._settings.ego_frame) \
            or self._settings.frame_prefix + known.topic_name
        if frame_id != known.frame_id:
            known = replace(known, frame_id=frame_id)
        self._known[name] = known
        return known

    def _free_name(self, name: str) -> str:
        """Return a topic name for a raw name that is neither in use nor reserved."""
        legal = candidate = legal_topic_name(name)
        prefix = self._settings.frame_prefix
        while candidate in self._by_topic or prefix + candidate in self._reserved:
            number = self._next_number.get(legal, 2)
            self._next_number[legal] = number + 1
            candidate = f'{legal}_{number}'
        return candidate

    def _new_id(self) -> int:
        if self._has_source_ids:
            self._next_id = max(self._next_id, _FIRST_OTHER_ID)
        while self._next_id in self._used_ids:
            self._next_id += 1
        self._next_id += 1
        return self._next_id - 1
