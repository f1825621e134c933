# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The actors of CARLA 0.9 by id: names, tags, boxes, and which one is the ego.

A type is CARLA's blueprint, such as ``vehicle.tesla.model3`` (doc/protocol/carla9.md#actors).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import EGO_TAG, Kind
from state_sensor_ros.frame import Bools, DERIVED_SIZE, Floats, Kinds, Rows

GENERATION: Final = 'carla9'
_VEHICLE, _LIGHT, _SIGN = 'vehicle', 'traffic_light', 'traffic_sign'
_LIMIT = 'traffic.speed_limit.'
# Objects of the level that can be pushed, such as chairs; props that a client spawns have
# another type.
_OF_THE_LEVEL = 'static.prop.mesh'
# Role names of the ego in the order of precedence.
_EGO_ROLES = ('hero', 'ego_vehicle')
# Role names that many actors share: blueprints, the traffic manager and scenario_runner set them.
SHARED_ROLES = frozenset(('', 'autopilot', 'scenario', 'background', 'default', 'front', 'prop',
                          'pedestrian', 'walker', 'vehicle'))
# By the attribute base_type, which blueprints have since 0.9.13; a van is a car here.
_TAGS_OF_BASE_TYPES: Mapping[str, str] = {
    'car': 'car', 'van': 'car', 'truck': 'truck', 'bus': 'bus', 'motorcycle': 'motorcycle',
    'bicycle': 'bicycle'}
# Parts of the types without that attribute.
_TAGS_OF_TYPES = (
    ('bicycle', ('.bh.crossbike', '.diamondback.century', '.gazelle.omafiets')),
    ('truck', ('.carlacola', '.firetruck', 'hgv')), ('bus', ('.fuso',)))
# Ids of parked vehicles begin above those of actors.
FIRST_PARKED: Final = 1 << 40
NO_BOX: Final = (math.nan,) * 6
# No actor is as long as twice this, m.
_LONGEST_HALF_M = 100.0
# Half edge lengths and center of a person without a box, whose origin is in its middle.
_PERSON_BOX = (0.3, 0.3, 0.875, 0.0, 0.0, 0.0)


class WorldActor(NamedTuple):
    """The constant properties of an actor."""

    number: int  # its id in CARLA
    serial: int  # a number that no other actor has, also one with the same id later
    name: str  # in frames
    role: str  # its role name
    tags: tuple[str, ...]  # without that of the ego
    # Half edge lengths xyz and center xyz from the origin of the actor, m, REP-103 axes, NaN for
    # none.
    box: tuple[float, ...] = NO_BOX
    display: str = ''  # what a sign shows
    has_assumed_box: bool = False  # whether the box is that of its class

    @property
    def is_vehicle(self) -> bool:
        return self.tags[0] == _VEHICLE

    @property
    def is_light(self) -> bool:
        return self.tags[0] == _LIGHT

    @property
    def is_fixed(self) -> bool:
        """Whether it is a light or a sign, which never moves."""
        return self.tags[0] in (_LIGHT, _SIGN)


class ActorRows(NamedTuple):
    """Constant properties of the N actors of a frame."""

    numbers: Rows  # (N,) ids in CARLA
    ids: Rows  # (N,) as of :class:`Frame`: parked vehicles have none
    serials: Rows  # (N,)
    names: tuple[str, ...]  # names, tags, displays: N each
    tags: tuple[tuple[str, ...], ...]
    displays: tuple[str, ...]
    kinds: Kinds  # (N,)
    are_fixed: Bools  # (N,)
    derived: npt.NDArray[np.uint8] | None  # as of :class:`Frame`
    boxed: Rows  # (M,) rows of the actors with a box
    center_xyz: Floats  # (M, 3) its middle from the origin of the actor, m, axes of the actor
    # (N + M, 13) with the edge lengths of the boxes as in :attr:`Boxes.rows`, and poses to be
    # filled in.
    block: Floats


def tags_of(type_id: str, attributes: Mapping[str, str], *, with_level: bool) -> tuple[str, ...]:
    """Return the tags of an actor, without that of the ego; none for a sensor or a controller."""
    group = type_id.partition('.')[0]
    if group == _VEHICLE:
        return _VEHICLE, _vehicle_tag(type_id, attributes)
    if group == 'walker':
        return ('pedestrian',)
    if type_id.startswith('traffic.traffic_light'):
        return (_LIGHT,)
    if group == 'traffic':
        return (_SIGN, 'speed_limit_sign') if type_id.startswith(_LIMIT) else (_SIGN,)
    return ('prop',) if group == 'static' and (with_level or type_id != _OF_THE_LEVEL) else ()


def _vehicle_tag(type_id: str, attributes: Mapping[str, str]) -> str:
    tag = _TAGS_OF_BASE_TYPES.get(attributes.get('base_type', '').lower())
    return tag or next(
        (tag for tag, parts in _TAGS_OF_TYPES if any(part in type_id for part in parts)),
        'motorcycle' if attributes.get('number_of_wheels') == '2' else 'car')


def box_of(center_xyz: Iterable[float], extent_xyz: Iterable[float]) -> tuple[float, ...]:
    """
    Return a box as :attr:`WorldActor.box` has it.

    :param center_xyz: m from the origin of the actor, CARLA's axes.
    :param extent_xyz: half edge lengths, m. Sensors have infinite ones, and no box. CARLA 0.9.14
        has motorcycles with 0, 0.9.11 bicycles with a half height of 250 m.
    """
    values = (*extent_xyz, *center_xyz)
    if not all(map(math.isfinite, values)) \
            or not 0.0 < min(values[:3]) <= max(values[:3]) < _LONGEST_HALF_M:
        return NO_BOX
    return (*values[:4], -values[4], values[5])


class WorldActors:
    """
    The actors that exist.

    :param ego: role name, id or name of the ego; empty for the usual role names.
    :param with_level: whether loose objects of the level are actors of frames.
    """

    def __init__(self, ego: str, *, with_level: bool) -> None:
        self._ego, self._with_level = ego, with_level
        self._actors: dict[int, WorldActor] = {}
        # Actors that are not part of frames, such as sensors.
        self._others: set[int] = set()
        self._names: set[str] = set()
        # Number of the actors that have had an id and a name of their own.
        self._n_lives: dict[int, int] = {}
        self._serial = 0
        self._rows: ActorRows | None = None

    def __contains__(self, number: object) -> bool:
        """Return whether an id is known, also that of a sensor."""
        return number in self._actors or number in self._others

    def get(self, number: int) -> WorldActor | None:
        """Return the actor of frames with an id, None if there is none."""
        return self._actors.get(number)

    def add(self, number: int, type_id: str, attributes: Mapping[str, str],
            box: tuple[float, ...] = NO_BOX) -> WorldActor | None:
        """Add an actor, replacing one with the same id; return None if it is in no frame."""
        self.remove(number)
        tags = tags_of(type_id, attributes, with_level=self._with_level)
        if not tags:
            self._others.add(number)
            return None
        role = attributes.get('role_name', '')
        name = role
        if role in SHARED_ROLES or role in self._names:
            n_lives = self._n_lives.get(number, 0)
            name = f'{type_id}_{number}' + (f'_{n_lives + 1}' if n_lives else '')
        is_assumed = box is NO_BOX and tags == ('pedestrian',)
        return self._put(WorldActor(
            number, self._serial + 1, name, role, tags,
            NO_BOX if tags[0] in (_LIGHT, _SIGN) else _PERSON_BOX if is_assumed else box,
            type_id.removeprefix(_LIMIT) if type_id.startswith(_LIMIT) else '', is_assumed))

    def add_parked(self, number: int, name: str, tag: str, box: tuple[float, ...]) -> None:
        """Add a parked vehicle of the level."""
        if name in self._names or not name:
            name = f'{name}_{number - FIRST_PARKED}'
        self._put(WorldActor(number, self._serial + 1, name, '', (_VEHICLE, tag, 'parked'), box))

    def _put(self, actor: WorldActor) -> WorldActor:
        self._actors[actor.number] = actor
        self._names.add(actor.name)
        self._serial, self._rows = actor.serial, None
        return actor

    def remove(self, number: int) -> None:
        self._others.discard(number)
        if (actor := self._actors.pop(number, None)) is not None:
            self._names.discard(actor.name)
            self._n_lives[number] = self._n_lives.get(number, 0) + 1
            self._rows = None

    def set_box(self, number: int, box: tuple[float, ...]) -> None:
        actor = self._actors.get(number)
        if actor is not None and not actor.is_fixed and not (
                actor.has_assumed_box and box is NO_BOX):
            self._actors[number] = actor._replace(box=box, has_assumed_box=False)
            self._rows = None

    def ego_of(self, numbers: Iterable[int]) -> int | None:
        """Return the first vehicle that has the role of the ego."""
        vehicles = [self._actors[number] for number in numbers if self._actors[number].is_vehicle]
        return next((vehicle.number for role in ((self._ego,) if self._ego else _EGO_ROLES)
                     for vehicle in vehicles if role == vehicle.role
                     or (self._ego and role in (str(vehicle.number), vehicle.name))), None)

    def rows(self, numbers: Rows) -> ActorRows:
        """
        Return the properties of the actors of a frame; computed again if these change.

        :param numbers: (N,) ids, all known.
        """
        if self._rows is None or not np.array_equal(numbers, self._rows.numbers):
            self._rows = self._collected(numbers)
        return self._rows

    def _collected(self, numbers: Rows) -> ActorRows:
        actors = [self._actors[number] for number in numbers.tolist()]
        ego = self.ego_of(numbers.tolist())
        boxes = np.array([actor.box for actor in actors], float).reshape(-1, 6)
        boxed = np.flatnonzero(np.isfinite(boxes[:, 0]))
        block = np.ones((len(actors) + len(boxed), 13))
        block[len(actors):, 7:10] = 2.0 * boxes[boxed, :3]
        return ActorRows(
            numbers, np.where(numbers < FIRST_PARKED, numbers, -1),
            np.array([actor.serial for actor in actors], np.int64),
            tuple(actor.name for actor in actors),
            tuple((*actor.tags, EGO_TAG) if actor.number == ego else actor.tags
                  for actor in actors),
            tuple(actor.display for actor in actors),
            np.array([Kind.VEHICLE if actor.is_vehicle else Kind.OBJECT for actor in actors],
                     np.uint8),
            np.array([actor.is_fixed for actor in actors], bool),
            np.array([DERIVED_SIZE * actor.has_assumed_box for actor in actors], np.uint8)
            if any(actor.has_assumed_box for actor in actors) else None,
            boxed, boxes[boxed, 3:], block)
