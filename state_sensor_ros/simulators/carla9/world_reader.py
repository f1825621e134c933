# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The snapshots of CARLA's client library as columns, and the actors that these are of."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from state_sensor_ros.simulators.carla9 import actors, Carla9Parameters, frames

# An object of the library, which has no types.
CarlaObject: TypeAlias = Any
# Numbers of an actor that does not move, after its place.
_AT_REST = (0.0,) * (frames.N_NUMBERS - 6)
# Parked vehicles of the level by the label of the server, with their tag.
_PARKED = {'Vehicles': 'car', 'Bicycle': 'bicycle', 'Motorcycle': 'motorcycle', 'Bus': 'bus',
           'Truck': 'truck', 'Car': 'car'}


class WorldReader:
    """
    Reads the snapshots of one episode; lights and signs are read once.

    :ivar carla: CARLA's client library.
    :ivar world: its world of the episode.
    :ivar ego: its vehicle in the last snapshot, None if there is none.
    :ivar scene: the actors of the last snapshot, the same object until they change.
    """

    def __init__(self, carla: ModuleType, world: CarlaObject, town: CarlaObject,
                 own: Carla9Parameters) -> None:
        self.carla, self.world, self._town = carla, world, town
        self._table = actors.WorldActors(own.ego, with_level=own.static)
        state = carla.ActorSnapshot
        [self._id] = _getters(state, 'id')
        self._of_transform = _getters(carla.Transform, 'location', 'rotation')
        self._of_state = (state.get_transform, state.get_velocity, state.get_angular_velocity,
                          state.get_acceleration)
        self._xyz = _getters(carla.Vector3D, 'x', 'y', 'z')
        self._rpy = _getters(carla.Rotation, 'roll', 'pitch', 'yaw')
        self._actors: dict[int, CarlaObject] = {}
        # In the last snapshot.
        self.ego: CarlaObject | None = None
        self._ids: tuple[int, ...] = ()
        self._fixed: dict[int, Sequence[float]] = {}
        if own.static:
            self._add_parked(carla)
        self._arrange(())

    def _add_parked(self, carla: ModuleType) -> None:
        labels, found = carla.CityObjectLabel, {}
        for label, tag in _PARKED.items():
            if hasattr(labels, label):
                found.update({thing.id: (thing, tag) for thing
                              in self.world.get_environment_objects(getattr(labels, label))})
        for number, (thing, tag) in enumerate(found.values(), actors.FIRST_PARKED):
            # The box of such an object is given in the world, not relative to the object.
            box = thing.bounding_box
            (x, y, z), extent = _xyz(box.location), _xyz(box.extent)
            self._table.add_parked(number, thing.name, tag,
                                   actors.box_of((0, 0, extent[2]), extent))
            self._fixed[number] = (x, y, z - extent[2], *_rpy(box.rotation))

    def find(self, name: str) -> CarlaObject:
        """Return the actor with a name in the last step, None for a part of the level or none."""
        rows = self.scene.rows
        number = dict(zip(rows.names, rows.numbers.tolist(), strict=True)).get(name, -1)
        return None if number in self._fixed else self._actors.get(number)

    def forget(self, actor: CarlaObject) -> None:
        """Ask an actor nothing more: that fails once it was removed, also in earlier snapshots."""
        del self._actors[actor.id]
        if self.ego is actor:
            self.ego = None

    def road_z(self, place: CarlaObject) -> float:
        """Return the height of the nearest lane to a place, m, its own on a map without any."""
        lane = self._town.get_waypoint(place, lane_type=self.carla.LaneType.Any)
        return float(place.z if lane is None else lane.transform.location.z)

    def step(self, snapshot: CarlaObject, *, details: bool, is_first: bool,
             tire_angle: Callable[[CarlaObject | None], float]) -> frames.WorldStep:
        """
        Return the step of a snapshot.

        :param tire_angle: returns that of the ego, degrees, + = right.
        """
        states = list(snapshot)
        ids = tuple(map(self._id, states))
        if ids != self._ids:
            self._update(ids, states)
            self._ids = ids
        numbers = self._numbers(map(states.__getitem__, self._moving))
        stamp = snapshot.timestamp
        return frames.WorldStep(
            stamp.elapsed_seconds, snapshot.frame % (1 << 32), is_first, numbers.tobytes(),
            bytes([int(light.get_state()) for light in self._lights]),
            self._controls(tire_angle(self.ego)) if details else b'', self._lanes(numbers))

    def _numbers(self, moving: Iterable[CarlaObject]) -> array[float]:
        """Return the numbers of a step, of the states of the actors that move."""
        transform, velocity, rate, acceleration = self._of_state
        location, rotation = self._of_transform
        (x, y, z), (roll, pitch, yaw) = self._xyz, self._rpy
        flat: list[float] = []
        for state in moving:
            at, moves, turns = transform(state), velocity(state), rate(state)
            xyz, rpy, gains = location(at), rotation(at), acceleration(state)
            flat += (x(xyz), y(xyz), z(xyz), roll(rpy), pitch(rpy), yaw(rpy), x(moves), y(moves),
                     z(moves), x(turns), y(turns), z(turns), x(gains), y(gains), z(gains))
        # Half the time of numpy.
        return array('f', flat + self._still)

    def _update(self, ids: tuple[int, ...], states: Sequence[CarlaObject]) -> None:
        """Add the actors that are new, and remove those that have gone."""
        present = set(ids)
        for number in set(self._ids) - present:
            self._table.remove(number)
            self._actors.pop(number, None)
            self._fixed.pop(number, None)
        new = present.difference(self._ids)
        if new:
            # One that was removed meanwhile is not returned, and not asked for again.
            for actor in sorted(self.world.get_actors(sorted(new)), key=lambda one: one.id):
                self._add(actor, states[ids.index(actor.id)])
        self._arrange(ids)

    def _add(self, actor: CarlaObject, state: CarlaObject) -> None:
        box = getattr(actor, 'bounding_box', None)
        number, attributes = actor.id, {}
        # An attribute whose value is not of its type makes all of them unreadable.
        with suppress(ValueError):
            attributes = actor.attributes
        known = self._table.add(number, actor.type_id, attributes, actors.NO_BOX if box is None
                                else actors.box_of(_xyz(box.location), _xyz(box.extent)))
        if known is not None:
            self._actors[number] = actor
        if known is not None and known.is_fixed:
            place = state.get_transform()
            self._fixed[number] = (*_xyz(place.location), *_rpy(place.rotation))

    def _arrange(self, ids: tuple[int, ...]) -> None:
        """Put the actors of a frame in the order of their ids."""
        # Places in the snapshot.
        self._moving = [place for place, number in enumerate(ids) if number not in self._fixed
                        and self._table.get(number) is not None]
        self._moving.sort(key=ids.__getitem__)
        moving, fixed = [ids[place] for place in self._moving], sorted(self._fixed)
        self._still = [number for actor in fixed for number in (*self._fixed[actor], *_AT_REST)]
        numbers = moving + fixed
        ego = self._table.ego_of(moving)
        self.ego = None if ego is None else self._actors.get(ego)
        known = [self._table.get(number) for number in numbers]
        lights = [row for row, actor in enumerate(known) if actor is not None and actor.is_light]
        self._lights = [self._actors[numbers[row]] for row in lights]
        self._vehicles = [row for row, actor in enumerate(known)
                          if actor is not None and actor.is_vehicle]
        self.scene = frames.StepActors(
            self._table.rows(np.array(numbers, np.int64)), np.array(lights, np.int64),
            tuple(str(light.get_opendrive_id()) for light in self._lights)
            if self._lights and hasattr(self._lights[0], 'get_opendrive_id') else ())

    def _controls(self, tire_angle: float) -> bytes:
        numbers = self.scene.rows.numbers.tolist()
        controls = np.full((len(numbers), 4), np.nan)
        # From the snapshot, without a request to the server.
        for row in self._vehicles:
            if (actor := self._actors.get(numbers[row])) is not None:
                control = actor.get_control()
                controls[row, :3] = control.throttle, control.brake, control.steer
                if actor is self.ego:
                    controls[row, 3] = tire_angle
        return controls.tobytes()

    def _lanes(self, numbers: array[float]) -> bytes:
        """Return the lanes of vehicles: row, road, section, lane, s (m), speed to the right."""
        rows, found = np.array(numbers).reshape(-1, frames.N_NUMBERS), []
        location = self.carla.Location
        for row in self._vehicles:
            x, y, z, _, _, _, vx, vy, vz = rows[row, :9].tolist()
            waypoint = self._town.get_waypoint(location(x, y, z), project_to_road=False)
            if waypoint is not None:
                right = waypoint.transform.get_right_vector()
                found.append((row, waypoint.road_id, waypoint.section_id, waypoint.lane_id,
                              waypoint.s, vx * right.x + vy * right.y + vz * right.z))
        return np.array(found, float).tobytes()


def _getters(kind: CarlaObject, *names: str) -> tuple[Callable[[CarlaObject], CarlaObject], ...]:
    """Return functions that get properties of a class of the library."""
    return tuple(getattr(kind, name).fget for name in names)


def _xyz(vector: CarlaObject) -> tuple[float, float, float]:
    return vector.x, vector.y, vector.z


def _rpy(rotation: CarlaObject) -> tuple[float, float, float]:
    return rotation.roll, rotation.pitch, rotation.yaw
