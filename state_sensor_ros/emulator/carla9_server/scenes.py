# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The scenes of the world: synthetic traffic, or a sequence of recorded frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import math

import numpy as np

from state_sensor_ros.emulator.bicycle import (
    DrivenVehicle,
    FULL_BRAKE,
    FULL_LOCK_DEG,
    FULL_THROTTLE,
    Pedals,
    USUAL_VEHICLE,
)
from state_sensor_ros.emulator.carla9_server.road_map import open_drive, Signal
from state_sensor_ros.emulator.carla9_server.world_bodies import (
    ACCELERATION,
    ANGULAR_VELOCITY,
    Body,
    body_of,
    CAR,
    EnvironmentObject,
    LIGHT,
    LIGHT_TAG,
    N_NUMBERS,
    POSITION,
    ROTATION,
    rotations_of_axes,
    SceneFrame,
    TEXT,
    Triple,
    VELOCITY,
    WALKER_EXTENT,
)
from state_sensor_ros.emulator.traffic.frame_generator import Traffic
from state_sensor_ros.emulator.traffic.road import FloatArray, LANE_WIDTH_M

WALKING_SPEED = 1.4
# Walkers: distance from the right edge of the road, between two, and of the first along it, m.
_WALKWAY_M, _WALKERS_M, _FIRST_WALKER_M = 3.0, 12.0, 150.0
# Stop lines of the two groups of lights, as a share of the loop; each has a pole on either side,
# the left one for the leftmost lane.
_STOP_LINES = (0.1, 0.6)
_POLE_M = 1.5
_LIGHT_EXTENT = (0.25, 0.25, 1.6)
# Period of traffic, and of recorded frames whose times do not define one, s.
PERIOD_S = 0.05
_NO_ANGLES: Triple = (0.0, 0.0, 0.0)
_N_SPAWN_POINTS, _SPAWN_HEIGHT_M = 60, 0.3
_SPAWN_POINTS: FloatArray = np.linspace(0.0, 1.0, _N_SPAWN_POINTS, endpoint=False,
                                        dtype=np.float64)
# What stands beside the road and is not an actor: name, class, half edge lengths and distance
# from the edge, m.
_THINGS: tuple[tuple[str, int, Triple, float], ...] = (
    ('ParkedCar_1', CAR[4], (2.4, 1.0, 0.75), 1.0), ('ParkedCar_2', CAR[4], (2.1, 0.9, 0.7), 6.0),
    ('ParkedVan_1', CAR[4], (2.5, 1.05, 1.0), 1.0), ('ParkedTruck_1', 15, (3.6, 1.2, 1.4), 6.0),
    ('Building_1', 3, (10.0, 8.0, 6.0), 12.0))
# Longest time between two recorded frames, s.
_MAX_GAP_S = 10.0
# A frame is shown up to so much before its time, s: recorded times are rounded.
_EARLY_S = 1e-3


class TrafficScene:
    """Traffic that begins anew with each episode; the same seed gives the same traffic."""

    # period_s: time between frames, unless another is given, s.

    def __init__(self, n_vehicles: int, n_objects: int, seed: int, period_s: float = PERIOD_S,
                 vehicle: DrivenVehicle = USUAL_VEHICLE) -> None:
        self._vehicle = vehicle
        self._counts = n_vehicles, n_objects, seed
        self._period_s = period_s
        self._traffic = self._begin()
        self.ego = next(name for name, tags in zip(
            self._traffic.fleet.names, self._traffic.fleet.tags, strict=True) if 'ego' in tags)
        road = self._traffic.road
        edge = road.n_lanes * LANE_WIDTH_M
        self._signals = tuple(
            Signal(str(2 * group + side + 1), share * road.length_m,
                   edge + _POLE_M if side else -_POLE_M,
                   (1, road.n_lanes - 1) if side else (0, 0))
            for group, share in enumerate(_STOP_LINES) for side in (0, 1))
        self.xodr = open_drive(road, self._signals)
        self.spawn_points = self._places(_SPAWN_POINTS, road.lane_offset(
            np.arange(_N_SPAWN_POINTS) % road.n_lanes), _SPAWN_HEIGHT_M)
        self.environment = self._environment()
        self._bodies = (*self._vehicles(), *self._walkers(), *self._objects(), *self._lights())
        self._still = self._still_numbers()

    def _begin(self) -> Traffic:
        n_vehicles, n_objects, seed = self._counts
        self._n_walkers = (n_objects + 2) // 3
        self._elapsed_s = 0.0
        self._velocity: FloatArray | None = None
        return Traffic(n_vehicles, n_objects - self._n_walkers, 1.0 / self._period_s,
                       seed, self._vehicle)

    def first(self) -> SceneFrame:
        """Return the frame at the begin of an episode."""
        if self._elapsed_s or self._traffic.driven is not None:
            self._traffic = self._begin()
        return self._frame(0.0)

    def advance(self, elapsed_s: float | None) -> SceneFrame:
        """Return the next frame."""
        # elapsed_s: simulated time since the frame before, s; None for a period.
        elapsed_s = elapsed_s or self._period_s
        self._traffic.step(elapsed_s)
        self._elapsed_s += elapsed_s
        return self._frame(elapsed_s)

    def drive(self, pedals: Pedals) -> None:
        """Drive the ego from now on."""
        self._traffic.drive(pedals)

    def _frame(self, elapsed_s: float) -> SceneFrame:
        motion = self._traffic.motion
        n_vehicles, n_walkers = len(motion.position), self._n_walkers
        numbers = np.zeros((len(self._bodies), N_NUMBERS))
        numbers[n_vehicles + n_walkers:] = self._still
        vehicles = numbers[:n_vehicles]
        vehicles[:, POSITION] = motion.position
        vehicles[:, ROTATION] = rotations_of_axes(motion.axes)
        vehicles[:, VELOCITY] = motion.velocity
        vehicles[:, ANGULAR_VELOCITY] = np.degrees(motion.angular_velocity)
        self._put_walkers(numbers[n_vehicles:n_vehicles + n_walkers])
        if self._velocity is not None and elapsed_s > 0.0:
            moving = numbers[:n_vehicles + n_walkers]
            moving[:, ACCELERATION] = (moving[:, VELOCITY] - self._velocity) / elapsed_s
        self._velocity = numbers[:n_vehicles + n_walkers, VELOCITY].copy()
        return SceneFrame(self._elapsed_s, self._bodies, numbers, self._controls())

    def _put_walkers(self, rows: FloatArray) -> None:
        road = self._traffic.road
        s: FloatArray = (_FIRST_WALKER_M + _WALKERS_M * np.arange(len(rows), dtype=np.float64)
                         + WALKING_SPEED * self._elapsed_s)
        surface = road.surface(s, np.full(len(rows), road.n_lanes * LANE_WIDTH_M + _WALKWAY_M))
        along = surface.along / np.linalg.norm(surface.along, axis=1, keepdims=True)
        rows[:, POSITION] = surface.point
        rows[:, 2] += WALKER_EXTENT[2]
        rows[:, 4] = np.degrees(np.arctan2(along[:, 1], along[:, 0]))
        rows[:, VELOCITY] = along * WALKING_SPEED

    def _controls(self) -> FloatArray:
        """Return pedals that would have the accelerations of the drivers, and those of the ego."""
        drivers, motion, driven = (self._traffic.drivers, self._traffic.motion,
                                   self._traffic.driven)
        controls: FloatArray = np.zeros((len(self._bodies), 3))
        rows = controls[:len(motion.position)]
        rows[:, 0] = np.clip(drivers.acceleration / FULL_THROTTLE, 0.0, 1.0)
        rows[:, 1] = np.clip(-drivers.acceleration / FULL_BRAKE, 0.0, 1.0)
        rows[:, 2] = np.clip(motion.bicycle_steering / math.radians(FULL_LOCK_DEG), -1.0, 1.0)
        if driven is not None:
            pedals = driven.pedals
            rows[driven.row] = np.clip((pedals.throttle, pedals.brake, pedals.steer), (0, 0, -1),
                                       1)
        return controls

    def _vehicles(self) -> list[Body]:
        fleet = self._traffic.fleet
        return [body_of(name, tuple(tags), (
            (model.box_x, 0.0, model.clearance + model.height / 2),
            (model.length / 2, model.width / 2, model.height / 2), _NO_ANGLES), is_vehicle=True,
            is_ego='ego' in tags, paint=color, model=model.family)
            for name, tags, model, color in zip(fleet.names, fleet.tags, fleet.models,
                                                fleet.colors, strict=True)]

    def _walkers(self) -> list[Body]:
        return [body_of(f'walker_{number}', ('pedestrian',),
                        (_NO_ANGLES, WALKER_EXTENT, _NO_ANGLES))
                for number in range(self._n_walkers)]

    def _objects(self) -> list[Body]:
        bodies = []
        for item in self._traffic.objects:
            (x, y, z), (cx, cy, cz) = item.position, item.center
            cosine, sine = math.cos(item.yaw), math.sin(item.yaw)
            center = (cosine * (cx - x) + sine * (cy - y), cosine * (cy - y) - sine * (cx - x),
                      cz - z)
            length, width, height = item.size
            bodies.append(body_of(item.name, (item.tag,), (
                center, (length / 2, width / 2, height / 2), _NO_ANGLES)))
        return bodies

    def _lights(self) -> list[Body]:
        return [Body(f'light_{signal.id}', LIGHT, (('role_name', TEXT, ''),),
                     (0.0, 0.0, 2.0 * _LIGHT_EXTENT[2]), _LIGHT_EXTENT, semantic_tags=(LIGHT_TAG,),
                     sign_id=signal.id, group=number // 2, pole_index=number % 2)
                for number, signal in enumerate(self._signals)]

    def _places(self, shares: FloatArray, offsets: FloatArray,
                height: float) -> list[tuple[Triple, Triple]]:
        """Return positions and rotations along the road, at shares of the loop."""
        road = self._traffic.road
        distances: FloatArray = shares * road.length_m
        surface = road.surface(distances, offsets)
        yaws = np.degrees(np.arctan2(surface.along[:, 1], surface.along[:, 0]))
        return [((x, y, z + height), (0.0, yaw, 0.0)) for (x, y, z), yaw in zip(
            surface.point.tolist(), yaws.tolist(), strict=True)]

    def _environment(self) -> list[EnvironmentObject]:
        """Return the parked vehicles, and a building, beside the road."""
        edge = self._traffic.road.n_lanes * LANE_WIDTH_M
        things: list[EnvironmentObject] = []
        for number, (name, label, (length, width, height), aside) in enumerate(_THINGS):
            offset = edge + aside + width if number % 2 else -aside - width
            (position, rotation), = self._places(
                np.array([0.02 + 0.01 * number]), np.array([offset]), 0.0)
            x, y, z = position
            things.append(((position, rotation), [(x, y, z + height), (length, width, height),
                                                  rotation, 0], 1000 + number, name, label))
        return things

    def _still_numbers(self) -> FloatArray:
        objects, road = self._traffic.objects, self._traffic.road
        numbers: FloatArray = np.zeros((len(objects) + len(self._signals), N_NUMBERS))
        for i, item in enumerate(objects):
            numbers[i, POSITION], numbers[i, 4] = item.position, math.degrees(item.yaw)
        surface = road.surface(np.array([signal.s for signal in self._signals]),
                               np.array([signal.offset for signal in self._signals]))
        rows = numbers[len(objects):]
        rows[:, POSITION] = surface.point
        # A light faces the traffic that it is for.
        rows[:, 4] = np.degrees(np.arctan2(surface.along[:, 1], surface.along[:, 0])) + 180.0
        return numbers


class RecordedScene:
    """Frames of a recording, from the first in each episode; clients cannot drive in it."""

    ego = ''

    def __init__(self, frames: Callable[[], Iterator[SceneFrame]], xodr: str) -> None:
        self.xodr = xodr
        self.spawn_points: list[tuple[Triple, Triple]] = []
        self.environment: list[EnvironmentObject] = []
        self._recorded = frames
        self._frames: Iterator[SceneFrame] = iter(())

    def first(self) -> SceneFrame | None:
        """Return the first frame, whose time is 0; None if there is none."""
        self._frames = self._timed(self._recorded())
        self._elapsed_s = 0.0
        self._next = next(self._frames, None)
        return self._take()

    def advance(self, elapsed_s: float | None) -> SceneFrame | None:
        """Return the next frame, None after the last one."""
        # elapsed_s: simulated time, s: the frame that is the last one then, which may be the same
        # again; None for the next frame.
        if self._next is None:
            return None
        if elapsed_s is None:
            self._elapsed_s = self._next.time_s
            return self._take()
        self._elapsed_s += elapsed_s
        while self._next is not None and self._next.time_s <= self._elapsed_s + _EARLY_S:
            self._take()
        return self._now

    def drive(self, pedals: Pedals) -> None:
        """Leave the ego as it was recorded."""

    def _take(self) -> SceneFrame | None:
        self._now, self._next = self._next, next(self._frames, None)
        return self._now

    def _timed(self, frames: Iterator[SceneFrame]) -> Iterator[SceneFrame]:
        """Yield frames whose times begin at 0 and increase, with accelerations."""
        before: SceneFrame | None = None
        recorded_s = 0.0
        for frame in frames:
            time_s, numbers = 0.0, frame.numbers
            if before is not None:
                gap_s = frame.time_s - recorded_s
                gap_s = gap_s if 0.0 < gap_s <= _MAX_GAP_S else PERIOD_S
                time_s = before.time_s + gap_s
                if not numbers[:, ACCELERATION].any() and frame.bodies is before.bodies:
                    numbers = numbers.copy()
                    numbers[:, ACCELERATION] = np.nan_to_num(
                        numbers[:, VELOCITY] - before.numbers[:, VELOCITY]) / gap_s
            recorded_s = frame.time_s
            before = SceneFrame(time_s, frame.bodies, numbers, frame.controls, frame.lights)
            yield before
