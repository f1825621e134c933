# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What the layout of a frame's messages depends on, and the parts that families lay out for it.

May know: who is in a frame and who was in the last one. Must not know: message types, numbers.
A scene holds until somebody comes or goes, or another actor has a pose, a lane or a box.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.patch_buffer import Strand
from state_sensor_ros.cdr.templates import Segment, Table
from state_sensor_ros.common_ends import spliced
from state_sensor_ros.encode.topics import Demand, own_topic, Topic
from state_sensor_ros.frame import Bools, Frame, Rows
from state_sensor_ros.naming import Actor, Cast, NOBODY, same_actors
from state_sensor_ros.settings import Settings

Messages = list[tuple[Topic, bytes]]


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """
    Who can be published in which way.

    ``frame`` of which only that counts which is no number; ``demand`` without what settings
    switch off; ``usable`` (N,) bool, actors with a pose; ``drawable_boxes`` (M,) bool, boxes with
    a pose and a size, ``usable_wheels`` (W,) bool, wheels with a pose, (0,) where not demanded.
    """

    settings: Settings
    frame: Frame
    cast: Cast
    demand: Demand
    usable: Bools
    drawable_boxes: Bools
    usable_wheels: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """
    Messages in a row.

    ``rows`` of tables that the ``strand`` takes, in its order, all of a table not named;
    ``topics`` of each message; ``also`` further topics of a message of that index.
    """

    strand: Strand
    rows: Mapping[Table, Rows]
    topics: list[Topic]
    also: tuple[tuple[Topic, int], ...] = ()


class Batch:
    """A part as it is used for each frame, until the layout changes."""

    __slots__ = ('_also', '_begin', '_begins', '_end', '_ends', '_rows', '_strand', '_topics')

    def __init__(self, part: Part) -> None:
        self._strand, self._topics, self._also = part.strand, part.topics, part.also
        self._rows = [(table, part.rows.get(table)) for table in part.strand.tables]
        begins, ends = part.strand.messages()
        self._begin, self._end = int(begins[0]), int(ends[-1])
        self._begins, self._ends = (begins - begins[0]).tolist(), (ends - begins[0]).tolist()

    def messages(self, numbers: Mapping[Table, npt.NDArray[Any]]) -> Messages:
        """
        Return the messages of one frame.

        :param numbers: of all tables that the strand needs, (rows, table.width) each.
        """
        for table, rows in self._rows:
            own = numbers[table]
            self._strand.patch(table, own if rows is None else own[rows])
        # One copy of all and slices of that are cheaper than a copy of each.
        data = self._strand.tobytes(self._begin, self._end)
        if len(self._topics) == 1:
            messages = [(self._topics[0], data)]
        else:
            messages = [(topic, data[begin:end]) for topic, begin, end
                        in zip(self._topics, self._begins, self._ends, strict=True)]
        for topic, i in self._also:
            messages.append((topic, messages[i][1]))
        return messages


def rows_where(are_chosen: Bools, *tables: Table) -> dict[Table, Rows]:
    """Return ``rows`` of a :class:`Part`; taking all of a table costs less than naming them."""
    return {} if are_chosen.all() else dict.fromkeys(tables, np.flatnonzero(are_chosen))


class Family(Protocol):
    """Topics that are laid out in the same way."""

    def parts(self, scene: Scene) -> list[Part]:
        """Lay out what ``scene`` demands."""


Item = TypeVar('Item')


class PerActor(Generic[Item]):
    """
    What is made once for each actor, in a list in the order of the cast.

    When the cast changes, only those who came are made, and those who went are dropped.

    :param make: makes it for an actor and a code, which is 0 unless :meth:`of` is given codes, out
        of what there was for another code.
    :param drop: is told what is not needed any more.
    """

    def __init__(self, make: Callable[[Actor, int, Item | None], Item],
                 drop: Callable[[Item], object] | None = None) -> None:
        self._make, self._drop = make, drop
        self._cast = NOBODY
        self._codes: Rows | None = None
        self._items: list[Item] = []

    def of(self, cast: Cast, codes: Rows | None = None) -> list[Item]:
        """
        Return one item for each actor.

        :param codes: (N,) int64; what was made for another code is made again.
        """
        if cast is not self._cast:
            self._follow(cast, codes)
        if codes is not None and self._codes is not None:
            for i in np.flatnonzero(codes != self._codes).tolist():
                self._items[i] = self._make(cast.actors[i], int(codes[i]), self._items[i])
        self._codes = codes
        return self._items

    def _follow(self, cast: Cast, codes: Rows | None) -> None:
        """Make what those who came need, and drop what those who went needed."""
        begin, tail = same_actors(self._cast, cast)
        end, new_end = len(self._items) - tail, len(cast.actors) - tail
        left = {self._cast.actors[i]: i for i in range(begin, end)}
        items = []
        # What is kept was made for its old code, what is new for its new one.
        old_codes = [] if codes is None else codes[begin:new_end].tolist()
        for i in range(begin, new_end):
            i_old = left.pop(cast.actors[i], None)
            if i_old is None:
                code = 0 if codes is None else int(codes[i])
                items.append(self._make(cast.actors[i], code, None))
            else:
                items.append(self._items[i_old])
                if codes is not None and self._codes is not None:
                    old_codes[i - begin] = int(self._codes[i_old])
        if self._drop is not None:
            for i_old in left.values():
                self._drop(self._items[i_old])
        if self._codes is not None:
            self._codes = np.concatenate((
                self._codes[:begin], np.array(old_codes, np.int64), self._codes[end:]))
        self._items[begin:end] = items
        self._cast = cast


class OwnTopics:
    """
    A topic of its own for each actor, and one for the ego under a name that never changes.

    :param kind: of the topics.
    :param ego_topic: the ego's.
    :param make: makes the message of an actor.
    """

    def __init__(self, kind: str, type_name: str, ego_topic: Topic | None,
                 make: Callable[[Actor, int, Segment | None], Segment]) -> None:
        self._ego_topic = ego_topic
        self._segments = PerActor(make)
        self._topics = PerActor(lambda actor, *_: own_topic(actor, kind, type_name))
        # Blank for those who have no topic of their own, which nobody can want.
        self._names = PerActor(lambda actor, *_: actor.topic_name if actor.has_topics else '')
        self._wanted: frozenset[str] | None = frozenset()
        self._cast = NOBODY
        self._are_wanted = b''
        self._strand = Strand()

    def wanted(self, cast: Cast, wanted: frozenset[str] | None) -> Bools:
        """
        Tell whose own topic somebody listens to.

        :param wanted: ``Actor.topic_name`` of those, None for all.
        :returns: (N,) bool.
        """
        names = self._names.of(cast)
        head, tail = same_actors(self._cast, cast) if wanted is self._wanted else (0, 0)
        is_wanted = bool if wanted is None else wanted.__contains__
        self._are_wanted = spliced(self._are_wanted, head, bytes(map(
            is_wanted, names[head:len(names) - tail])), tail)
        self._cast, self._wanted = cast, wanted
        return np.frombuffer(self._are_wanted, np.bool_)

    def parts(self, cast: Cast, own: Bools, tables: Sequence[Table], owners: Rows, *,
              with_ego: bool, codes: Rows | None = None) -> list[Part]:
        """
        Lay out the messages.

        :param own: (N,) bool, whose own topic is wanted.
        :param owners: row of the actor that has each row of ``tables``.
        :param with_ego: whether the ego's own message is wanted under the ego's name.
        :param codes: (N,) int64 for :class:`PerActor`.
        """
        chosen = own
        if with_ego and not own[cast.i_ego]:
            chosen = own.copy()
            chosen[cast.i_ego] = True
        if not chosen.any():
            return []
        flags = chosen.tobytes()
        self._strand.update(list(compress(self._segments.of(cast, codes), flags)))
        topics = list(compress(self._topics.of(cast), flags))
        also: tuple[tuple[Topic, int], ...] = ()
        if with_ego and self._ego_topic is not None:
            i_message = int(np.count_nonzero(chosen[:cast.i_ego]))
            if own[cast.i_ego]:
                also = ((self._ego_topic, i_message),)
            else:
                topics[i_message] = self._ego_topic
        return [Part(self._strand, rows_where(chosen[owners], *tables), topics, also)]
