# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The markers that displays show: their ids, and the deletion of those that are no longer sent.

A display identifies a marker by (namespace, id) and shows it until it is deleted:
doc/interface.md#markers.
"""

from __future__ import annotations

from collections.abc import Callable
import math
from typing import Any, NamedTuple

from state_sensor_ros.cdr.templates import MessageInstance, Template
from state_sensor_ros.common_ends import common_ends
from state_sensor_ros.frame import NS_PER_S
from state_sensor_ros.naming import Actor, ActorList, EMPTY_ACTOR_LIST
from state_sensor_ros.topics.per_actor import Column, PerActor

# A display that is slower than the frames takes only some of the arrays: a deletion is repeated in
# the frames of this time, ns.
DELETION_NS = NS_PER_S
# Above this number the oldest deletions are repeated for a shorter time, as a stream of ever new
# names would fill the arrays.
_MAX_DELETIONS = 4096


class NewMarker(NamedTuple):
    """A marker to make for an actor; ``text`` its text, if it has one."""

    namespace: str
    template: Template
    text: str = ''


class Marker(MessageInstance):
    """A marker; its id is reserved while it is needed or a display may show it."""

    __slots__ = ('actor', 'id', 'is_needed', 'is_shown', 'made_of')

    def __init__(self, actor: Actor, made_of: NewMarker, id_: int) -> None:
        super().__init__(made_of.template, {'id': id_, 'text': made_of.text})
        self.actor, self.made_of, self.id = actor, made_of, id_
        self.is_needed, self.is_shown = True, False


class _Deletion(MessageInstance):
    """The deletion of a marker; ``expires_ns`` stamp of the last frame with which it is sent."""

    __slots__ = ('expires_ns',)

    def __init__(self, template: Template, marker: Marker, expires_ns: int) -> None:
        super().__init__(template, {'ns': marker.made_of.namespace, 'id': marker.id})
        self.expires_ns = expires_ns


class _Ids:
    """Allocator of marker ids."""

    def __init__(self) -> None:
        self._n_taken = 0
        self._free: list[int] = []

    def take(self) -> int:
        """Return an unused id."""
        if self._free:
            return self._free.pop()
        self._n_taken += 1
        return self._n_taken - 1

    def release(self, id_: int) -> None:
        """Make ``id_`` available again."""
        self._free.append(id_)


class ShownMarkers:
    """
    The markers of all actors, and the deletions of markers that are no longer sent.

    :param deletion: template of a deletion, with the givens ``ns`` and ``id``.
    :param new_markers: returns the markers to make for an actor with an appearance.
    """

    def __init__(self, deletion: Template,
                 new_markers: Callable[[Actor, tuple[Any, ...]], list[NewMarker]]) -> None:
        self._deletion, self._new_markers = deletion, new_markers
        self._ids = _Ids()
        self._of_actors = PerActor(self._make, self._drop)
        self._shown: list[Marker] = []
        # In the order in which they expire.
        self._deletions: dict[Marker, _Deletion] = {}

    @property
    def deletions(self) -> list[_Deletion]:
        """Return the deletions to send."""
        return list(self._deletions.values())

    @property
    def expires_ns(self) -> float:
        """Return the stamp of the last frame with these deletions, infinity without any."""
        return next((deletion.expires_ns for deletion in self._deletions.values()), math.inf)

    def of(self, actor_list: ActorList, *columns: Column) -> list[tuple[Marker, ...]]:
        """
        Return the markers of each actor.

        :param actor_list: actors of the frame.
        :param columns: columns of their appearance.
        """
        return self._of_actors.of(actor_list, *columns)

    def clear(self) -> None:
        """Delete all markers."""
        self._of_actors.of(EMPTY_ACTOR_LIST)
        self.show([], 0)

    def show(self, markers: list[Marker], stamp_ns: int, *, is_first: bool = False) -> None:
        """
        Set the markers that displays show from now on; the others of the last call are deleted.

        :param markers: markers of a frame.
        :param stamp_ns: stamp of the frame, ns.
        :param is_first: whether it is the first frame after a restart.
        """
        if is_first:
            # The stamps before a restart may be greater.
            for deletion in self._deletions.values():
                deletion.expires_ns = stamp_ns + DELETION_NS
        for marker, deletion in list(self._deletions.items()):
            if deletion.expires_ns >= stamp_ns and len(self._deletions) <= _MAX_DELETIONS:
                break
            del self._deletions[marker]
            marker.is_shown = False
            if not marker.is_needed:
                self._ids.release(marker.id)
        head, tail = common_ends(self._shown, markers)
        new = markers[head:len(markers) - tail]
        kept = set(new)
        for marker in self._shown[head:len(self._shown) - tail]:
            if marker not in kept:
                self._deletions[marker] = _Deletion(self._deletion, marker,
                                                    stamp_ns + DELETION_NS)
        for marker in new:
            marker.is_shown = True
            self._deletions.pop(marker, None)
        self._shown = markers

    def _make(self, actor: Actor, appearance: tuple[Any, ...],
              before: tuple[Marker, ...] | None) -> tuple[Marker, ...]:
        """Return the markers of an actor; those of ``before`` are used again if possible."""
        # Markers of an actor that returns are no longer deleted.
        left = [marker for marker in self._deletions if marker.actor == actor] \
            if before is None else list(before)
        markers = []
        for new in self._new_markers(actor, appearance):
            same = next((marker for marker in left if marker.made_of == new), None)
            if same is None:
                same = Marker(actor, new, self._ids.take())
            else:
                left.remove(same)
                same.is_needed = True
            markers.append(same)
        if before is not None:
            self._drop(tuple(left))
        return tuple(markers)

    def _drop(self, markers: tuple[Marker, ...]) -> None:
        for marker in markers:
            marker.is_needed = False
            if not marker.is_shown:
                self._ids.release(marker.id)
