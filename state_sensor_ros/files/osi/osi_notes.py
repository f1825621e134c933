# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Notes about the differences between a trace of ASAM OSI and its recording.

The format requires a class, a size and a host, and no object may be absent between two frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import class_of, CLASSES, UNKNOWN
from state_sensor_ros.files.osi.osi_types import type_of
from state_sensor_ros.frame import KIND_VEHICLE
from state_sensor_ros.naming import ActorList

# The text of each kind of note, and the option that changes it.
_TEXTS = {
    'repeated': ('frames without a new time, dropped', ''),
    'restarts': ('restarts of the simulator, after which the time goes on', ''),
    'hosts': ('traces without an ego, whose host is the first object', ''),
    'empty': ('frames without an object before the first one, dropped', ''),
    'dropped': ('objects without a box whose tags name no class, dropped',
                 '--default-class includes all but traffic lights and signs'),
    'poses': ('objects without a usable pose, dropped from those frames', ''),
    'sizes': ('objects without a box, of the usual size of their class',
              '--default-sizes gives another'),
    'vehicles': ('vehicles whose tags name no class, as cars', '--default-class gives another'),
    'others': ('objects whose tags name no class, as TYPE_OTHER',
               '--default-class gives another'),
    'returned': ('objects that return after a gap, with a new id',
                 '--gaps fill interpolates gaps of up to 1 s'),
    'renumbered': ('objects whose id an object that returned has, with a new id', ''),
    'filled': ('gaps of objects, interpolated', '--gaps split gives new ids instead'),
    'slow': ('steps of more than 0.1 s, where 10 Hz are recommended',
             '--resample interpolates')}
_MAX_NAMED = 3
# Values of the option --default-class, for actors without a class tag.
DEFAULT_CLASSES = (*(known.name for known in CLASSES[:UNKNOWN]), 'other')


@dataclass(slots=True)
class _Note:
    """The number of notes of a kind, and the places of the first ones."""

    count: int = 0
    places: list[str] = field(default_factory=list)


class OsiNotes:
    """
    The notes about one trace.

    :param has_default_class: whether actors whose tags name no class have one by an option.
    """

    def __init__(self, *, has_default_class: bool) -> None:
        self._has_default_class = has_default_class
        self._notes: dict[str, _Note] = {}
        self._names: dict[int, str] = {}
        self._actor_list: ActorList | None = None
        # Kind of note of each actor whose tags name no class, until it is noted.
        self._assumed: dict[int, str] = {}
        # Ids of actors by kind of note.
        self._noted: dict[str, set[int]] = {}

    def name_of(self, actor: int) -> str:
        """
        Return the raw name of an actor.

        :param actor: its id.
        """
        return self._names.get(actor, '')

    def add(self, kind: str, place: str) -> None:
        """
        Add a note.

        :param kind: key of ``_TEXTS``.
        :param place: place in words.
        """
        note = self._notes.setdefault(kind, _Note())
        note.count += 1
        if len(note.places) < _MAX_NAMED:
            note.places.append(place)

    def add_each(self, kind: str, actors: npt.NDArray[np.uint32]) -> None:
        """
        Add a note with the name of each actor, once for each.

        :param kind: kind of note, as for :meth:`add`.
        :param actors: (K,) uint32, their ids.
        """
        noted = self._noted.setdefault(kind, set())
        for actor in actors.tolist():
            if actor not in noted:
                noted.add(actor)
                self.add(kind, self._names[actor])

    def add_actors(self, actor_list: ActorList) -> None:
        """
        Store the names of actors, and whether their tags name a class.

        :param actor_list: the actors of a frame.
        """
        if actor_list is self._actor_list:
            return
        self._actor_list = actor_list
        for actor, kind, tags in zip(actor_list.actors, actor_list.kinds, actor_list.tags,
                                     strict=True):
            if actor.id in self._names:
                continue
            self._names[actor.id] = actor.name
            if not self._has_default_class and type_of(class_of(0, tags), tags) == UNKNOWN:
                self._assumed[actor.id] = 'vehicles' if kind == KIND_VEHICLE else 'others'

    def add_objects(self, actors: npt.NDArray[np.uint32]) -> None:
        """
        Add a note for each object of a message whose class is assumed, once for each.

        :param actors: (K,) uint32, their ids.
        """
        for actor in actors.tolist() if self._assumed else ():
            kind = self._assumed.pop(actor, '')
            if kind:
                self.add(kind, self._names[actor])

    def lines(self) -> Iterator[str]:
        """Return a line for each kind."""
        for kind, note in self._notes.items():
            text, option = _TEXTS[kind]
            more = f' and {note.count - len(note.places)} more' \
                if note.count > len(note.places) else ''
            yield f'{note.count} {text}: {", ".join(note.places)}{more}' + (
                f'; {option}' if option else '')
