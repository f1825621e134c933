# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What is made once for each look of each actor: texts and counts that hold for many frames.

May know: actors and columns of what their look is made of. Must not know: message types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast as cast_to
from typing import Generic, TypeVar

import numpy as np

from state_sensor_ros.frame import Rows
from state_sensor_ros.naming import Actor, Cast, NOBODY, same_actors

# An entry that is cut out of a column for one actor.
Look = int | str | bytes | tuple[str, ...]
Item = TypeVar('Item')


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """
    One aspect of the look of all actors.

    ``entries`` in the order of the actors; ``first`` (N + 1,) where those of each actor begin,
    None for one entry each.
    """

    entries: tuple[str, ...] | tuple[tuple[str, ...], ...] | bytes
    first: Rows | None = None

    def at(self, i: int) -> Look:
        """Return the look of one actor."""
        if self.first is None:
            return self.entries[i]
        return cast_to(Look, self.entries[int(self.first[i]):int(self.first[i + 1])])

    def agrees(self, begin: int, other: Column, other_begin: int, n_rows: int) -> bool:
        """Tell whether ``n_rows`` actors from ``begin`` look as those of ``other``."""
        end, other_end = begin + n_rows, other_begin + n_rows
        if self.first is not None and other.first is not None:
            own, others = self.first[begin:end + 1], other.first[other_begin:other_end + 1]
            if not np.array_equal(own - own[0], others - others[0]):
                return False
            begin, end = int(own[0]), int(own[-1])
            other_begin, other_end = int(others[0]), int(others[-1])
        return self.entries[begin:end] == other.entries[other_begin:other_end]


class PerLook(Generic[Item]):
    """
    Like :class:`PerActor`, made again for an actor whose look has changed.

    :param make: makes it for an actor and its entries of all columns.
    """

    def __init__(self, make: Callable[[Actor, Sequence[Look]], Item]) -> None:
        self._make = make
        self._cast = NOBODY
        self._columns: Sequence[Column] = ()
        self._items: list[Item] = []

    def of(self, cast: Cast, columns: Sequence[Column]) -> list[Item]:
        """Return one item for each actor, whose look the ``columns`` tell."""
        n_old, n_new = len(self._items), len(cast.actors)
        head, tail = same_actors(self._cast, cast)
        head = self._n_agreeing(columns, head, lambda n_rows: (0, 0))
        tail = self._n_agreeing(columns, min(tail, n_old - head, n_new - head),
                                lambda n_rows: (n_new - n_rows, n_old - n_rows))
        old = {self._cast.actors[i]: i for i in range(head, n_old - tail)}
        middle = []
        for i in range(head, n_new - tail):
            actor, look = cast.actors[i], [column.at(i) for column in columns]
            i_old = old.get(actor)
            if i_old is not None and look == [column.at(i_old) for column in self._columns]:
                middle.append(self._items[i_old])
            else:
                middle.append(self._make(actor, look))
        self._items[head:n_old - tail] = middle
        self._cast, self._columns = cast, columns
        return self._items

    def _n_agreeing(self, columns: Sequence[Column], n_most: int,
                    begins: Callable[[int], tuple[int, int]]) -> int:
        """Return how many of ``n_most`` actors look as before; ``begins`` says where they are."""
        n_agreeing, beyond, n_rows = 0, n_most + 1, n_most
        while beyond - n_agreeing > 1:
            begin, old_begin = begins(n_rows)
            if all(column.agrees(begin, old, old_begin, n_rows)
                   for column, old in zip(columns, self._columns, strict=True)):
                n_agreeing = n_rows
            else:
                beyond = n_rows
            n_rows = (n_agreeing + beyond) // 2
        return n_agreeing
