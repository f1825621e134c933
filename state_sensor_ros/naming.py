# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Raw actor names to legal, unique and stable ROS names and ids (INTERFACE 3.4).

May know: the rules for names, who is in the frame now, who left lately. Must not know: ROS, how
anything is published.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
import re

from state_sensor_ros.ends import same_ends, spliced
from state_sensor_ros.frame import Frame

_ILLEGAL = re.compile(r'[^A-Za-z0-9_]')
# A whole topic name may have 247 characters; namespace, node and kind need their share.
_MAX_LENGTH = 128


@dataclass(frozen=True, slots=True, eq=False)
class Actor:
    """
    The names of one actor for as long as it is known.

    ``name`` raw; ``topic_name`` legal in a topic; ``frame_id`` its TF frame; ``id`` unique in a
    run; ``has_topics`` False for those above ``max_actor_topics``.
    """

    name: str
    topic_name: str
    frame_id: str
    id: int
    has_topics: bool


@dataclass(frozen=True, slots=True, eq=False)
class Cast:
    """
    Who is in a frame, row by row; the same object is returned as long as nobody changes.

    ``actors`` N entries; ``kinds`` N integers; ``tags`` N tuples; ``i_ego`` row of the ego, -1
    without one; ``n_egos`` how many carry the ego tag.
    """

    actors: tuple[Actor, ...]
    names: tuple[str, ...]
    kinds: bytes
    tags: tuple[tuple[str, ...], ...]
    i_ego: int
    n_egos: int


NOBODY = Cast((), (), b'', (), -1, 0)


@lru_cache(maxsize=4)
def same_actors(old: Cast, new: Cast) -> tuple[int, int]:
    """Return how many actors two casts share at either end, for all that is kept by actor."""
    return same_ends(old.actors, new.actors)


def legal_topic_name(raw: str) -> str:
    """
    Make a raw name legal as a token of a ROS topic.

    >>> legal_topic_name('Misc.Cone-2'), legal_topic_name('3rd'), legal_topic_name('')
    ('Misc_Cone_2', 'actor_3rd', 'actor')
    """
    if not raw:
        return 'actor'
    legal = _ILLEGAL.sub('_', raw[:_MAX_LENGTH])
    return f'actor_{legal}' if legal[0].isdigit() else legal


class Registry:
    """
    Give each raw name its ROS names once and keep them until it is forgotten.

    :param frame_prefix: put before the actor's name to make its frame.
    :param ego_tag: the tag, lower case, that marks the ego.
    :param ego_frame: frame of the ego, ``''`` for the ordinary rule.
    :param max_actor_topics: how many known actors may have topics of their own.
    :param reserved_frames: that no actor may have, because they mean something else.
    """

    def __init__(self, *, frame_prefix: str = '', ego_tag: str = 'ego', ego_frame: str = '',
                 max_actor_topics: int = 1024,
                 reserved_frames: Collection[str] = ()) -> None:
        self._frame_prefix = frame_prefix
        self._ego_tag = ego_tag.lower()
        self._ego_frame = ego_frame
        self._max_actor_topics = max_actor_topics
        self._reserved = frozenset((*reserved_frames, ego_frame))
        self._next_id = 1
        self.restart()

    def restart(self) -> None:
        """Forget everybody, as after a restart of the simulator; ids are not used again."""
        self._known: dict[str, Actor] = {}
        self._owner: dict[str, str] = {}  # topic name to raw name
        self._n_with_topics = 0
        self._are_egos = b''
        self.cast = NOBODY

    def update(self, frame: Frame) -> Cast:
        """
        Name everybody in ``frame``.

        :returns: the previous object itself where nobody came, went, moved or changed tags.
        """
        kinds = frame.kinds.tobytes()
        last = self.cast
        if frame.names == last.names and frame.tags == last.tags and kinds == last.kinds:
            return last
        egos = self._egos(frame.tags)
        i_ego = egos.find(1)
        if self._ego_frame:
            actors = tuple([self._actor(name, i == i_ego) for i, name in enumerate(frame.names)])
        else:
            # One who comes among a thousand must not cost what a thousand do.
            head, tail = same_ends(last.names, frame.names)
            actors = spliced(last.actors, head, tuple([
                self._known.get(name) or self._actor(name, False)
                for name in frame.names[head:frame.n_actors - tail]]), tail)
        self.cast = Cast(actors, frame.names, kinds, frame.tags, i_ego, egos.count(1))
        return self.cast

    def _egos(self, tags: tuple[tuple[str, ...], ...]) -> bytes:
        """Return a byte for each actor, 1 for an ego; only changed tags are looked into."""
        last = self.cast.tags
        head, tail = same_ends(last, tags)
        middle = bytes(any(tag.lower() == self._ego_tag for tag in own)
                       for own in tags[head:len(tags) - tail])
        self._are_egos = spliced(self._are_egos, head, middle, tail)
        return self._are_egos

    def forget(self, topic_name: str) -> None:
        """Free the names of an actor that has been away for too long, if it is known at all."""
        name = self._owner.pop(topic_name, None)
        if name is not None:
            self._n_with_topics -= self._known.pop(name).has_topics

    def _actor(self, name: str, is_ego: bool) -> Actor:
        known = self._known.get(name)
        frame_id = self._ego_frame if is_ego and self._ego_frame else ''
        if known is not None and (frame_id or f'{self._frame_prefix}{known.topic_name}') \
                == known.frame_id:
            return known
        if known is None:
            topic_name = self._unique(name)
            id_, has_topics = self._next_id, self._n_with_topics < self._max_actor_topics
            self._next_id += 1
            self._n_with_topics += has_topics
        else:
            topic_name, id_, has_topics = known.topic_name, known.id, known.has_topics
        actor = Actor(name, topic_name, frame_id or f'{self._frame_prefix}{topic_name}', id_,
                      has_topics)
        self._known[name] = actor
        return actor

    def _unique(self, name: str) -> str:
        legal = candidate = legal_topic_name(name)
        n = 1
        while candidate in self._owner or f'{self._frame_prefix}{candidate}' in self._reserved:
            n += 1
            candidate = f'{legal}_{n}'
        self._owner[candidate] = name
        return candidate
