# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Steps of the snapshots of CARLA's client library; lights and signs are read once."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
import math
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from state_sensor_ros.simulators import Needs
from state_sensor_ros.simulators.carla9.actors import box_of, FIRST_PARKED, NO_BOX, WorldActors
from state_sensor_ros.simulators.carla9.frames import N_NUMBERS, StepActors, WorldStep

# Objects of CARLA's client library, which has no types.
Snapshot: TypeAlias = Any
World: TypeAlias = Any
ClientActor: TypeAlias = Any
# Numbers of an actor that does not move, after its place.
_AT_REST = (0.0,) * (N_NUMBERS - 6)
Getters: TypeAlias = tuple[Callable[[Any], Any], ...]
_BLANK_LANE = 0, 0, 0, math.nan, 0.0
# Parked vehicles of the level by the label of the server, with their tag.
_PARKED = (('Car', 'car'), ('Truck', 'truck'), ('Bus', 'bus'), ('Motorcycle', 'motorcycle'),
           ('Bicycle', 'bicycle'), ('Vehicles', 'car'))


class WorldReader:
    """Reads the snapshots of one episode."""

    def __init__(self, carla: ModuleType, world: World, town: Any,  # noqa: ANN401
                 table: WorldActors, *, with_parked: bool) -> None:
        self._world, self._town, self._table = world, town, table
        self._location = carla.Location
        state = carla.ActorSnapshot
        [self._id] = _getters(state, 'id')
        self._of_transform = _getters(carla.Transform, 'location', 'rotation')
        self._of_state = (state.get_transform, state.get_velocity, state.get_angular_velocity,
                          state.get_acceleration)
        self._xyz = _getters(carla.Vector3D, 'x', 'y', 'z')
        self._rpy = _getters(carla.Rotation, 'roll', 'pitch', 'yaw')
        self._actors: dict[int, ClientActor] = {}
        # Ids in the last snapshot, and of these the places of the actors that move.
        self._ids: tuple[int, ...] = ()
        self._moving: list[int] = []
        # Whether a vehicle was on a lane when that was last computed, by serial number.
        self._had_lane: dict[int, bool] = {}
        self._ego: int | None = None
        self._fixed: dict[int, Sequence[float]] = {}
        if with_parked:
            self._add_parked(carla)
        self._arrange(())

    def _add_parked(self, carla: ModuleType) -> None:
        number = FIRST_PARKED
        known: set[int] = set()
        for label, tag in _PARKED:
            kind = getattr(carla.CityObjectLabel, label, None)
            for found in () if kind is None else self._world.get_environment_objects(kind):
                if found.id in known:
                    continue
                known.add(found.id)
                # The box of such an object is given in the world, not relative to the object.
                box = found.bounding_box
                extent = _xyz(box.extent)
                x, y, z = _xyz(box.location)
                rotation = box.rotation
                self._table.add_parked(number, found.name, tag, box_of((0, 0, extent[2]), extent))
                self._fixed[number] = (x, y, z - extent[2], rotation.roll, rotation.pitch,
                                       rotation.yaw)
                number += 1

    def step(self, snapshot: Snapshot, needed: Needs, *, is_first: bool,
             tire_angle: Callable[[ClientActor | None], float]) -> tuple[StepActors, WorldStep]:
        """Return the step of a snapshot and its scene, the same object until that changes."""
        # tire_angle: returns that of the ego, degrees, + = right.
        states = list(snapshot)
        ids = tuple(map(self._id, states))
        if ids != self._ids:
            self._update(ids, states)
            self._ids = ids
        numbers = self._numbers(map(states.__getitem__, self._moving))
        stamp = snapshot.timestamp
        return self.scene, WorldStep(
            stamp.elapsed_seconds, snapshot.frame % (1 << 32), is_first, numbers.tobytes(),
            bytes([int(light.get_state()) for light in self._lights]),
            self._controls(tire_angle(self.ego)) if needed.inputs else b'',
            self._lanes(numbers, needed))

    def _numbers(self, moving: Iterable[Any]) -> array[float]:
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

    def _update(self, ids: tuple[int, ...], states: Sequence[Any]) -> None:
        """Add the actors that are new, and remove those that have gone."""
        present = set(ids)
        for number in set(self._ids) - present:
            self._table.remove(number)
            self._actors.pop(number, None)
            self._fixed.pop(number, None)
        new = present.difference(self._ids)
        if new:
            # One that was removed meanwhile is not returned, and not asked for again.
            for actor in sorted(self._world.get_actors(sorted(new)), key=lambda one: one.id):
                self._add(actor)
        by_id = dict(zip(ids, states, strict=True))
        for number in sorted(new):
            known = self._table.get(number)
            if known is not None and known.is_fixed:
                transform = by_id[number].get_transform()
                rotation = transform.rotation
                self._fixed[number] = (*_xyz(transform.location), rotation.roll, rotation.pitch,
                                       rotation.yaw)
        self._arrange(ids)

    def _add(self, actor: ClientActor) -> None:
        box = getattr(actor, 'bounding_box', None)
        number, attributes = actor.id, {}
        # An attribute whose value is not of its type makes all of them unreadable.
        with suppress(ValueError):
            attributes = actor.attributes
        self._table.add(number, actor.type_id, attributes, box_of(
            _xyz(box.location), _xyz(box.extent)) if box is not None else NO_BOX)
        if self._table.get(number) is not None:
            self._actors[number] = actor

    def _arrange(self, ids: tuple[int, ...]) -> None:
        """Put the actors of a frame in the order of their ids."""
        self._moving = [place for place, number in enumerate(ids) if number not in self._fixed
                        and self._table.get(number) is not None]
        self._moving.sort(key=ids.__getitem__)
        moving, fixed = [ids[place] for place in self._moving], sorted(self._fixed)
        self._still = [number for actor in fixed for number in (*self._fixed[actor], *_AT_REST)]
        numbers = np.array(moving + fixed, np.int64)
        self._ego = self._table.ego_of(moving)
        lights = [row for row, number in enumerate(moving + fixed)
                  if (known := self._table.get(number)) is not None and known.is_light]
        self._lights = [self._actors[int(numbers[row])] for row in lights]
        self.scene = StepActors(
            self._table.rows(numbers), np.array(lights, np.int64),
            tuple(str(light.get_opendrive_id()) for light in self._lights)
            if self._lights and hasattr(self._lights[0], 'get_opendrive_id') else ())
        self._vehicles = self.scene.rows.vehicles()
        self._are_lanes_blank = False

    def actor(self, number: int) -> ClientActor | None:
        return self._actors.get(number)

    @property
    def ego(self) -> ClientActor | None:
        """Return the ego in the last snapshot, None if there is none."""
        return None if self._ego is None else self._actors.get(self._ego)

    def _controls(self, tire_angle: float) -> bytes:
        numbers = self.scene.rows.numbers
        controls = np.full((len(numbers), 4), np.nan)
        # From the snapshot, without a request to the server.
        for row in self._vehicles:
            actor = self._actors.get(int(numbers[row]))
            if actor is not None:
                control = actor.get_control()
                controls[row, :3] = control.throttle, control.brake, control.steer
        controls[numbers == self._ego, 3] = tire_angle
        return controls.tobytes()

    def _lanes(self, numbers: array[float], needed: Needs) -> bytes | None:
        """Return the lanes of vehicles; blank ones of those that had one if not needed."""
        if not needed.lanes and self._are_lanes_blank:
            return None
        self._are_lanes_blank = not needed.lanes
        rows, had_lane = np.array(numbers).reshape(-1, N_NUMBERS), self._had_lane
        serials = self.scene.rows.serials.tolist()
        found: list[tuple[int, int, int, int, float, float]] = []
        for row in self._vehicles:
            serial = serials[row]
            if not needed.lanes and serial in had_lane:
                lane = _BLANK_LANE if had_lane[serial] else None
            else:
                lane = self._lane(rows[row].tolist())
                had_lane[serial] = lane is not None
                # Its numbers change: the next ones of the vehicles are blank, or computed again.
                self._are_lanes_blank = False
            if lane is not None:
                found.append((row, *lane))
        if len(had_lane) > 2 * len(serials):
            self._had_lane = {serial: had_lane[serial] for serial in serials if serial in had_lane}
        return np.array(found, float).tobytes()

    def _lane(self, numbers: Sequence[float]) -> tuple[int, int, int, float, float] | None:
        """Return the lane of a vehicle: road, section, lane, s (m), speed to the right (m/s)."""
        waypoint = self._town.get_waypoint(self._location(*numbers[:3]), project_to_road=False)
        if waypoint is None:
            return None
        right = waypoint.transform.get_right_vector()
        vx, vy, vz = numbers[6:9]
        return (waypoint.road_id, waypoint.section_id, waypoint.lane_id, waypoint.s,
                vx * right.x + vy * right.y + vz * right.z)


def _getters(kind: Any, *names: str) -> Getters:  # noqa: ANN401
    """Return functions that get properties of a class of the library."""
    return tuple(getattr(kind, name).fget for name in names)


def _xyz(vector: Any) -> tuple[float, float, float]:  # noqa: ANN401
    return vector.x, vector.y, vector.z
