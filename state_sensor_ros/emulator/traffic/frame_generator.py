# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Synthetic traffic as an endless sequence of frames, as the real simulator writes them.

The frames are written by the encoder of trajectories. Wheels are in the order FL FR RL RR: ids 0
to 3 in v2; v1 has the front wheels only, ids 1 and 2. The brake of v1 is -1..0, as in recordings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
import math
from typing import Annotated, TypeAlias

import msgspec
import numpy as np

from state_sensor_ros import rep103
from state_sensor_ros.emulator.bicycle import Pedals
from state_sensor_ros.emulator.traffic.drivers import Drivers, make_fleet
from state_sensor_ros.emulator.traffic.motion import FreeVehicle, Kinematics
from state_sensor_ros.emulator.traffic.road import FloatArray, make_objects, Road, StaticObject
from state_sensor_ros.errors import StateError
from state_sensor_ros.frame import Boxes, Frame, KIND_OBJECT, KIND_VEHICLE, Lanes, NO_LANES, Wheels
from state_sensor_ros.rotations import heading_of, quaternion_from_rpy, quaternion_product
from state_sensor_ros.settings import DEFAULTS
from state_sensor_ros.simulators.monodrive.encoding import members_of
from state_sensor_ros.simulators.monodrive.schema import V1, V2

GENERATIONS = V1, V2

N_LANES = 3
SHORTEST_ROAD_M = 3000.0
# Road per vehicle over all lanes: dense enough for overtaking, and without congestion.
ROAD_PER_VEHICLE_M = 20.0
# Simulated time before the first frame, for the start transient to decay; game_time begins here.
WARM_UP_S = 8.0
# Longest step of the driver models; longer frame periods are divided.
LONGEST_STEP_S = 0.05
# game_time is a float32, which resolves 0.5 ms in the first two hours: faster frames repeat it.
MAX_RATE_HZ = 1000.0
# The Unix time of game_time 0; a constant, so that the same seed gives the same bytes.
DEFAULT_EPOCH_S = 1_600_000_000

CM = 100.0
# The box axes X, Y, Z are the vehicle's -y, +z, -x; the extents are width, height, length.
BOX_FROM_VEHICLE_XYZW = np.array([0.5, -0.5, -0.5, 0.5])
# Front wheel angle at full lock, rad; recordings show 32 to 37 degrees.
FULL_LOCK = np.radians(35.0)
# Pedals from acceleration: rolling resistance (m/s2), air drag (1/m), full throttle and full
# brake (m/s2).
ROLLING, DRAG, FULL_THROTTLE, FULL_BRAKE = 0.15, 0.0006, 3.2, 7.5


def _wheel_quaternions(steering: FloatArray, spin: FloatArray) -> FloatArray:
    """Return (N, 4, 4) x y z w: steer about z, then spin about y."""
    steer = np.concatenate([steering, np.zeros_like(steering)], axis=1) / 2
    spin = spin / 2
    return np.stack([-np.sin(steer) * np.sin(spin), np.cos(steer) * np.sin(spin),
                     np.sin(steer) * np.cos(spin), np.cos(steer) * np.cos(spin)], axis=-1)


def _pedals(acceleration: FloatArray, speed: FloatArray) -> FloatArray:
    """Return (N, 2) throttle 0..1 and brake -1..0; recordings have this sign of the brake."""
    force = acceleration + ROLLING + DRAG * speed**2
    return np.stack([np.clip(force / FULL_THROTTLE, 0, 1),
                     -np.clip(-force / FULL_BRAKE, 0, 1)], axis=-1)


def _object_rows(static: StaticObject) -> tuple[list[float], list[float]]:
    """Return the numbers of an object that stands still and of its box, cm, (13,) each."""
    turn = [0.0, 0.0, float(np.sin(static.yaw / 2)), float(np.cos(static.yaw / 2))]
    return ([*(CM * value for value in static.position), *turn, *[0.0] * 6],
            [*(CM * value for value in static.center), *turn,
             *(CM * value for value in static.size), 1.0, 1.0, 1.0])


def quaternion_of_axes(axes: FloatArray) -> FloatArray:
    """Convert body axes to quaternions."""
    # axes: (N, 3, 3) unit axes as rows x, y, z; z must not point down.
    # Returns (N, 4) float64, x y z w.
    (x_x, x_y, x_z), (_, _, y_z), (_, _, z_z) = np.moveaxis(axes, 0, -1)
    return quaternion_from_rpy(np.column_stack((
        np.arctan2(y_z, z_z), np.arctan2(-x_z, np.hypot(x_x, x_y)), np.arctan2(x_y, x_x))))


class Traffic:
    """Moving vehicles and static objects on a road."""

    # n_vehicles: number of vehicles, at least 1; one of them is the ego.
    # free: vehicles without a driver, which a client drives or has placed, by their rows.
    # driven: the ego once a client drives it, None before.

    def __init__(self, n_vehicles: int, n_objects: int, rate_hz: float, seed: int) -> None:
        self.road = Road(max(SHORTEST_ROAD_M, n_vehicles * ROAD_PER_VEHICLE_M), N_LANES, seed)
        self.fleet = make_fleet(n_vehicles, seed)
        self.objects = make_objects(self.road, n_objects)
        self.drivers = Drivers(self.road, self.fleet, seed)
        self.kinematics = Kinematics(self.road, self.fleet)
        self.period_s = 1.0 / rate_hz
        for _ in range(round(WARM_UP_S / LONGEST_STEP_S)):
            self.drivers.advance(LONGEST_STEP_S)
        self.spin = np.random.default_rng((seed, 4)).uniform(-np.pi, np.pi, (n_vehicles, 4))
        self.motion = self.kinematics.evaluate(self.drivers)
        self.free: dict[int, FreeVehicle] = {}
        self.driven: FreeVehicle | None = None

    def drive(self, pedals: Pedals) -> None:
        """Drive the ego from the next step on."""
        if self.driven is None:
            self.driven = self._freed(next(
                row for row, tags in enumerate(self.fleet.tags) if 'ego' in tags))
        self.driven.pedals = pedals

    def place(self, row: int, x: float, y: float, yaw: float, speed: float) -> None:
        """Put a vehicle on the ground, where it stands, or rolls straight on from there."""
        vehicle = self._freed(row)
        vehicle.place(x, y, yaw, speed)
        if vehicle is not self.driven:
            vehicle.pedals = Pedals(brake=float(not speed))

    def _freed(self, row: int) -> FreeVehicle:
        return self.free.setdefault(row, FreeVehicle(
            self.road, self.fleet, self.drivers, self.motion, row))

    def step(self, elapsed_s: float | None = None) -> None:
        """Advance all vehicles; ``elapsed_s``: simulated time, s; None for one frame period."""
        period_s = self.period_s if elapsed_s is None else elapsed_s
        n_steps = max(1, int(np.ceil(period_s / LONGEST_STEP_S - 1e-9)))
        dt_s = period_s / n_steps
        before = self.motion.wheel_speed
        for _ in range(n_steps):
            self.drivers.advance(dt_s)
            for vehicle in self.free.values():
                vehicle.advance(dt_s, self.drivers)
        self.motion = self.kinematics.evaluate(self.drivers)
        for vehicle in self.free.values():
            vehicle.show(self.motion, self.kinematics)
        turned = self.spin + 0.5 * (before + self.motion.wheel_speed) * period_s
        self.spin = np.mod(turned + np.pi, 2 * np.pi) - np.pi


# Up to 10 km in cm, 10 km/s; neither NaN nor infinite.
Number: TypeAlias = Annotated[float, msgspec.Meta(ge=-1e6, le=1e6)]


class Placement(msgspec.Struct):
    """
    Where a client puts an actor; cm and cm/s, left-handed.

    Heights and tilts of vehicles are those of the ground; objects stand upright. An actor without
    a velocity stands.
    """

    name: str
    position: tuple[Number, Number, Number]
    orientation: tuple[Number, Number, Number, Number]  # x y z w
    linear_velocity: tuple[Number | None, Number | None, Number | None] = (None, None, None)


class TrafficFrames(Iterator[dict[str, object]]):
    """
    The frames of traffic, without end; each is made when it is taken.

    They share their constant parts: treat them as read-only.

    :param n_vehicles: number of vehicles, at least 1; exactly one has the tag `ego`.
    :param rate_hz: frames per second of simulated time, at most :data:`MAX_RATE_HZ`.
    :param generation: `v1` or `v2`.
    :param epoch_s: Unix time of game_time 0, s.
    """

    def __init__(self, n_vehicles: int, n_objects: int, rate_hz: float, seed: int,
                 generation: str, epoch_s: int = DEFAULT_EPOCH_S) -> None:
        self._traffic = Traffic(n_vehicles, n_objects, rate_hz, seed)
        self._epoch_s, self._generation, self._n_frames = epoch_s, generation, 0
        fleet, objects = self._traffic.fleet, self._traffic.objects
        # The parts that do not change.
        self._object_bodies, self._object_boxes = np.array(
            [_object_rows(each) for each in objects]).reshape(-1, 2, 13).swapaxes(0, 1)
        if generation == V1:
            # Recordings have no angular velocity of an object.
            self._object_bodies[:, 10:] = np.nan
        x = np.stack([fleet.column('front_x'), -fleet.column('rear_x')], -1)[:, [0, 0, 1, 1]]
        y = fleet.column('track')[:, None] * np.array([-0.5, 0.5, -0.5, 0.5])
        z = np.repeat(fleet.column('radius')[:, None], 4, axis=1)
        self._wheel_positions = np.stack([x, y, z], axis=-1) * CM
        self._box_names = (*['Body'] * n_vehicles, *(each.box_name for each in objects))
        self._constant = Frame(
            '', 0.0, 0, 0, (*fleet.names, *(each.name for each in objects)),
            np.repeat(np.array((KIND_VEHICLE, KIND_OBJECT), np.uint8), (n_vehicles, n_objects)),
            (*map(tuple, fleet.tags), *((each.tag,) for each in objects)),
            np.zeros((n_vehicles + n_objects, 13)), NO_LANES,
            colors=(*fleet.colors, *[''] * n_objects),
            replay_classes=(*fleet.replay_classes, *[''] * n_objects))

    def drive(self, pedals: Pedals) -> None:
        """Drive the ego between the last frame and the next one."""
        self._traffic.drive(pedals)

    def place(self, actors: Sequence[Placement]) -> None:
        """
        Place actors between the last frame and the next one.

        :raises StateError: if one of them is not there; then none is moved.
        """
        names, n_vehicles = self._constant.names, len(self._traffic.fleet.names)
        unknown = {each.name for each in actors}.difference(names)
        if unknown or not actors:
            raise StateError('frame', ', '.join(map(repr, unknown)) or 'no actor',
                             'names of actors of the simulation')
        for actor in actors:
            (x, y, z), yaw = actor.position, heading_of(actor.orientation)
            row = names.index(actor.name)
            if row < n_vehicles:
                v_x, v_y, _ = (each or 0.0 for each in actor.linear_velocity)
                speed = v_x * math.cos(yaw) + v_y * math.sin(yaw)
                self._traffic.place(row, x / CM, y / CM, yaw, speed / CM)
                continue
            body, box = self._object_bodies[row - n_vehicles], self._object_boxes[row - n_vehicles]
            box[:3] = x, y, box[2] + z - body[2]
            body[:3] = actor.position
            body[5:7] = box[5:7] = math.sin(yaw / 2), math.cos(yaw / 2)

    def __next__(self) -> dict[str, object]:
        traffic = self._traffic
        if self._n_frames:
            traffic.step()
        game_time_s = WARM_UP_S + self._n_frames * traffic.period_s
        self._n_frames += 1
        kinematics, boxes = self._bodies()
        frame = replace(
            self._constant, game_time=float(np.float32(game_time_s)),
            time=self._epoch_s + int(game_time_s), sample_count=self._n_frames,
            kinematics=kinematics, boxes=boxes, lanes=self._lanes(), wheels=self._wheels(),
            inputs=self._inputs())
        return members_of(frame, self._generation)

    def _bodies(self) -> tuple[FloatArray, Boxes]:
        """Return the numbers of the actors, and their boxes."""
        fleet, motion = self._traffic.fleet, self._traffic.motion
        orientation = quaternion_of_axes(motion.axes)
        rise = fleet.column('clearance') + fleet.column('height') / 2
        center = (motion.position + fleet.column('box_x')[:, None] * motion.axes[:, 0]
                  + rise[:, None] * motion.axes[:, 2])
        extents = np.stack([fleet.column(name) for name in ('width', 'height', 'length')], -1)
        rows = rep103.to_rep103_bodies(np.concatenate([
            np.concatenate([motion.position * CM, orientation, motion.velocity * CM,
                            motion.angular_velocity], axis=1), self._object_bodies,
            np.concatenate([center * CM, quaternion_product(orientation, BOX_FROM_VEHICLE_XYZW),
                            extents * CM, np.ones_like(center)], axis=1), self._object_boxes]),
            n_actors := self._constant.n_actors, DEFAULTS)
        return rows[:n_actors], Boxes(np.arange(n_actors), self._box_names, rows[n_actors:])

    def _wheels(self) -> Wheels:
        motion, (n_vehicles, n_wheels) = self._traffic.motion, self._traffic.spin.shape
        rows = rep103.to_rep103_wheels(np.concatenate([
            self._wheel_positions, _wheel_quaternions(motion.steering, self._traffic.spin),
            motion.wheel_speed[:, :, None]], axis=-1).reshape(-1, 8))
        ids = np.tile(np.arange(n_wheels), n_vehicles)
        are_known = np.ones(len(ids), np.bool_)
        return Wheels(np.repeat(np.arange(n_vehicles), n_wheels), ids.astype(np.uint8),
                      ids.astype(np.int32), rows[:, :3], rows[:, 3:7], are_known, are_known,
                      rows[:, 7])

    def _lanes(self) -> Lanes:
        drivers = self._traffic.drivers
        road_id, section_id, road_s = self._traffic.road.ids(self._traffic.motion.s)
        changes = drivers.lane - drivers.old_lane
        return Lanes(np.arange(len(changes)), np.stack([changes < 0, changes > 0], axis=-1),
                     np.stack([road_id, section_id, -1 - drivers.lane], -1).astype(np.int32),
                     road_s)

    def _inputs(self) -> FloatArray:
        traffic = self._traffic
        steer = np.clip(traffic.motion.bicycle_steering / FULL_LOCK, -1, 1)
        inputs = np.full((self._constant.n_actors, 4), np.nan)
        inputs[:len(steer), :2] = _pedals(traffic.drivers.acceleration, traffic.drivers.speed)
        inputs[:len(steer), 2] = -steer
        for row, vehicle in traffic.free.items():
            pedals = vehicle.pedals
            inputs[row, :3] = pedals.throttle, -pedals.brake, -pedals.steer
        return inputs
