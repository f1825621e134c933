# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The objects of a frame in the terms of ASAM OSI, also between two frames, and notes.

A vehicle without a tag of a class counts as a car: vans, trams, aircraft and vehicles of an
unknown type. The numbers are those of osi_object.proto, OSI 3.8.

The format requires a class, a size and a host, and no object may be absent between two frames.

Vectors change along lines, angles the shorter way. Across more than 1 s nothing is interpolated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from state_sensor_ros.bodies import Floats
from state_sensor_ros.classes import class_of, CLASSES, UNKNOWN
from state_sensor_ros.files.tables.table_rows import FLOAT_NAMES, FrameRows
from state_sensor_ros.frame import KIND_VEHICLE, Kinds
from state_sensor_ros.naming import ActorList
from state_sensor_ros.objects.object_maker import transported
from state_sensor_ros.pipeline.stamps import Step
from state_sensor_ros.rotations import global_from_unit, quaternion_from_rpy
from state_sensor_ros.texts import counted, listed

# Tag of all stationary objects of a trace.
STATIONARY = 'stationary'
# Type of the ExternalReference whose only identifier is the name of an actor.
NAME_REFERENCE = 'state_sensor_ros'
# MovingObject.Type. An unknown one is a vehicle.
_OTHER, _VEHICLE, _PEDESTRIAN, _ANIMAL = 1, 2, 3, 4
_NO_VEHICLES: Mapping[int, tuple[str, ...]] = {
    _OTHER: (), _PEDESTRIAN: ('pedestrian',), _ANIMAL: ('animal',)}
# MovingObject.VehicleClassification.Type, of ROLE_CIVIL.
_VEHICLES: Mapping[int, str] = {
    2: 'car', 3: 'car', 4: 'car', 5: 'car', 6: 'van', 7: 'truck', 8: 'trailer', 9: 'trailer',
    10: 'motorcycle', 11: 'bicycle', 12: 'bus', 13: 'tram', 14: 'train', 15: 'wheelchair',
    16: 'truck', 17: 'scooter', 18: 'micromobility', 19: 'work_machine', 20: 'watercraft',
    21: 'aircraft', 22: 'land_vehicle'}
# StationaryObject.Classification.Type.
_STATIONARY: Mapping[int, str] = {
    1: 'other_structure', 2: 'bridge', 3: 'building', 4: 'pole', 5: 'pylon', 6: 'delineator',
    7: 'tree', 8: 'barrier', 9: 'vegetation', 10: 'curbstone', 11: 'wall',
    12: 'vertical_structure', 13: 'rectangular_structure', 14: 'overhead_structure',
    15: 'reflective_structure', 16: 'construction_site_element', 17: 'speed_bump',
    18: 'emitting_structure'}
# The text of each kind of note, and the option that changes it.
_TEXTS = {
    'repeated': ('frames without a new time, dropped', ''),
    'restarts': ('restarts of the simulator, after which the time continues', ''),
    'hosts': ('traces without an ego, with the first object as the host', ''),
    'empty': ('frames without an object before the first one, dropped', ''),
    'dropped': ('objects without a box whose tags name no class, dropped',
                '--default-class keeps those that are not traffic lights or signs'),
    'poses': ('objects without a usable pose, dropped from those frames', ''),
    'sizes': ('objects without a box, written with the usual size of a class',
              '-p default_sizes:=[…] gives others'),
    'vehicles': ('vehicles whose tags name no class, written as cars',
                 '--default-class gives another'),
    'others': ('objects whose tags name no class, written as TYPE_OTHER',
               '--default-class gives another'),
    'returned': ('objects back after a gap, given a new id', ''),
    'renumbered': ('objects whose id a returned object has, given a new id', ''),
    'slow': ('steps of more than 0.1 s, although 10 Hz is recommended', '')}
_MAX_NAMED = 3
# Columns of OsiFrame.values with angles.
ANGLES = slice(6, 9)


def is_vehicle(moving_type: int) -> bool:
    return moving_type not in _NO_VEHICLES


def moving_tags(moving_type: int, vehicle_type: int) -> tuple[str, ...]:
    """Return the tags of a moving object, the most specific last."""
    if not is_vehicle(moving_type):
        return _NO_VEHICLES[moving_type]
    tag = _VEHICLES.get(vehicle_type, '')
    return ('vehicle', tag) if tag else ('vehicle',)


def stationary_tags(stationary_type: int) -> tuple[str, ...]:
    """Return the tags of a stationary object, the most specific last."""
    tag = _STATIONARY.get(stationary_type, '')
    return (STATIONARY, tag) if tag else (STATIONARY,)


@dataclass(frozen=True, slots=True)
class OsiType:
    # Of MovingObject.Type, or of StationaryObject.Classification.Type if ``is_stationary``.
    number: int
    vehicle: int = 0  # number of VehicleClassification.Type, 0 for no vehicle
    is_stationary: bool = False


# First those of CLASSES, in their order; then those of tags.
_OF_CLASSES = {
    'person': OsiType(_PEDESTRIAN), 'unknown': OsiType(_OTHER),
    **{name: OsiType(_VEHICLE, number) for name, number in (
        ('cyclist', 11), ('motorcycle', 10), ('bus', 12), ('truck', 7), ('trailer', 9),
        ('car', 4))}}
_OF_TAGS = {
    'animal': OsiType(_ANIMAL),
    **{tag: OsiType(_VEHICLE, number) for number, tag in _VEHICLES.items() if number == 6
       or number in range(13, 16) or number > 16}, 'rail': OsiType(_VEHICLE, 14)}
_OF_STATIONARY = {tag: OsiType(number, is_stationary=True)
                  for number, tag in _STATIONARY.items()}
OSI_TYPES: tuple[OsiType, ...] = (
    *(_OF_CLASSES[known.name] for known in CLASSES), *_OF_TAGS.values(),
    *_OF_STATIONARY.values())


def type_of(class_index: int, tags: Iterable[str]) -> int:
    """Return the type of an actor in a trace."""
    lower = [tag.lower() for tag in tags]
    if STATIONARY in lower:
        stationary = next((_OF_STATIONARY[tag] for tag in lower if tag in _OF_STATIONARY),
                          _OF_STATIONARY['other_structure'])
        return OSI_TYPES.index(stationary)
    if CLASSES[class_index].name in ('car', 'unknown'):
        special = next((_OF_TAGS[tag] for tag in lower if tag in _OF_TAGS), None)
        if special is not None:
            return OSI_TYPES.index(special)
    return class_index


class OsiNotes:

    def __init__(self, *, has_default_class: bool) -> None:
        self._has_default_class = has_default_class
        # Numbers of notes by kind, and the places of the first ones.
        self._counts: Counter[str] = Counter()
        self._places: dict[str, list[str]] = {}
        self._names: dict[int, str] = {}
        self._actor_list: ActorList | None = None
        # Kind of note of each actor whose tags name no class, until it is noted.
        self._assumed: dict[int, str] = {}
        # Ids of actors by kind of note.
        self._noted: dict[str, set[int]] = {}

    def name_of(self, actor: int) -> str:
        return self._names.get(actor, '')

    def add(self, kind: str, place: str) -> None:
        """Add a note; ``kind``: key of ``_TEXTS``."""
        self._counts[kind] += 1
        places = self._places.setdefault(kind, [])
        if len(places) < _MAX_NAMED:
            places.append(place)

    def add_each(self, kind: str, actors: npt.NDArray[np.uint32]) -> None:
        """Add a note with the name of each actor, once for each."""
        # actors: (K,) uint32, their ids.
        noted = self._noted.setdefault(kind, set())
        for actor in actors.tolist():
            if actor not in noted:
                noted.add(actor)
                self.add(kind, self._names[actor])

    def add_actors(self, actor_list: ActorList) -> None:
        """Store the names of actors, and whether their tags name a class."""
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
        """Add a note for each object of a message whose class is assumed, once for each."""
        # actors: (K,) uint32, their ids.
        for actor in actors.tolist() if self._assumed else ():
            kind = self._assumed.pop(actor, '')
            if kind:
                self.add(kind, self._names[actor])

    def lines(self) -> Iterator[str]:
        for kind, places in self._places.items():
            text, option = _TEXTS[kind]
            noun, _, rest = text.partition('s ')
            yield (f'{counted(self._counts[kind], noun)} {rest}: '
                   + listed(places, n_items=self._counts[kind])
                   + (f'; {option}' if option else ''))


def _columns(*names: str) -> list[int]:
    return [FLOAT_NAMES.index(name) for name in names]


_ORIGIN, _CENTER = _columns('x', 'y', 'z'), _columns('center_x', 'center_y', 'center_z')
_VELOCITY, _TURNING = _columns('vx', 'vy', 'vz'), _columns('wx', 'wy', 'wz')
_SPEED, _ANGLES = FLOAT_NAMES.index('speed'), _columns('roll', 'pitch', 'yaw')
_VALUES = _columns('length', 'width', 'height', 'center_x', 'center_y', 'center_z', 'roll',
                   'pitch', 'yaw', 'vx', 'vy', 'vz', 'ax', 'ay', 'az', 'wx', 'wy', 'wz')


@dataclass(frozen=True, slots=True, eq=False)
class OsiFrame:
    """K objects at one time."""

    stamp_ns: int
    ids: npt.NDArray[np.uint32]  # (K,) ids of their actors
    types: Kinds  # (K,) indices in OSI_TYPES
    # (K, 18) dimension (m), center (m), roll, pitch, yaw (rad), velocity (m/s), acceleration
    # (m/s2), turning rate about the axes of the global frame (rad/s).
    values: Floats
    host: int | None  # row of the ego, None without one
    is_restart: bool


def objects_of(rows: FrameRows, notes: OsiNotes) -> OsiFrame | None:
    """Return the objects of a frame, and the ego."""
    # Returns the objects; None for a frame without a new time.
    if rows.step is Step.REPEATED or rows.stamp_ns is None:
        notes.add('repeated', f'frame {rows.index}')
        return None
    actors = rows.actors
    notes.add_actors(actors.actor_list)
    sizes = rows.floats[:, _VALUES[0:3]]
    with np.errstate(all='ignore'):
        chosen = np.flatnonzero((sizes > 0.0).all(axis=1)
                                & np.isfinite(rows.floats[:, _VALUES[0:9]]).all(axis=1))
        has_pose = np.isfinite(rows.floats[:, _VALUES[6:9]]).all(axis=1)
        notes.add_each('poses', actors.ids[~has_pose])
        notes.add_each('dropped', np.setdiff1d(actors.ids[has_pose], actors.ids[chosen]))
        notes.add_objects(actors.ids[chosen])
        notes.add_each('sizes', actors.ids[chosen][~rows.has_box[chosen]])
        floats = rows.floats[chosen].copy()
        _set_velocities(floats)
    values = floats[:, _VALUES]
    egos = np.flatnonzero(actors.are_egos[chosen])
    tags = actors.actor_list.tags
    types = np.array([type_of(int(actors.classes[row]), tags[row]) for row in chosen], np.uint8)
    return OsiFrame(rows.stamp_ns, actors.ids[chosen], types, values,
                    int(egos[0]) if len(egos) else None, rows.step is Step.RESTARTED)


def _set_velocities(floats: Floats) -> None:
    """Replace velocities of origins by those of centers; unknown ones by the speed, if known."""
    unknown = np.isnan(floats[:, _VELOCITY]).any(axis=1)
    forward = global_from_unit(quaternion_from_rpy(floats[unknown][:, _ANGLES]))[:, :, 0]
    arms = floats[:, _CENTER] - floats[:, _ORIGIN]
    moved = transported(floats[:, _VELOCITY + _TURNING], arms, is_finite=False)[:, :3]
    moved[unknown] = floats[unknown, _SPEED, None] * forward
    floats[:, _VELOCITY] = moved
