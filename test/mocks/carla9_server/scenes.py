# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The scenes of the world: synthetic traffic, or a sequence of recorded frames."""

from itertools import count
import math

import numpy as np

from carla9_server.bodies import (  # noqa: I100
    ACCELERATION,
    ANGULAR_VELOCITY,
    axes_of_rotation,
    Body,
    body_of,
    GREEN,
    LIGHT,
    N_NUMBERS,
    NO_BOX,
    NOWHERE,
    POSITION,
    RED,
    ROTATION,
    rotations_of_axes,
    SceneFrame,
    TEXT,
    VELOCITY,
    WALKER_EXTENT,
    YELLOW,
)
from carla9_server.road_map import open_drive, Signal
from state_sensor_ros.emulator.bicycle import (
    FULL_BRAKE,
    FULL_LOCK_DEG,
    FULL_THROTTLE,
)
from state_sensor_ros.emulator.traffic.frame_generator import Traffic
from state_sensor_ros.emulator.traffic.road import LANE_WIDTH_M
from state_sensor_ros.frame import KIND_VEHICLE, LIGHT_GREEN, LIGHT_RED, LIGHT_YELLOW
from state_sensor_ros.rep103 import from_rep103_kinematics, mirrored_vectors
from state_sensor_ros.rotations import rpy_from_quaternion

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
_N_SPAWN_POINTS, _SPAWN_HEIGHT_M = 60, 0.3
# What stands beside the road and is not an actor: name, class, half edge lengths and distance
# from the edge, m.
_THINGS = (('ParkedCar_1', 14, (2.4, 1.0, 0.75), 1.0), ('ParkedCar_2', 14, (2.1, 0.9, 0.7), 6.0),
           ('ParkedVan_1', 14, (2.5, 1.05, 1.0), 1.0), ('ParkedTruck_1', 15, (3.6, 1.2, 1.4), 6.0),
           ('Building_1', 3, (10.0, 8.0, 6.0), 12.0))
# Longest time between two recorded frames, s.
_MAX_GAP_S = 10.0
# A frame is shown up to so much before its time, s: recorded times are rounded.
_EARLY_S = 1e-3
_STATES = {LIGHT_GREEN: GREEN, LIGHT_YELLOW: YELLOW, LIGHT_RED: RED}


class TrafficScene:
    """
    Traffic that begins anew with each episode; the same seed gives the same traffic.

    ``ego`` is the name of the body that clients can drive; ``environment`` has of each object of
    the map that is not an actor its transform, its box in the world, id, name and class.
    """

    def __init__(self, n_vehicles, n_objects, seed, period_s=PERIOD_S):
        self._counts = n_vehicles, n_objects, seed
        self._period_s = period_s
        self._traffic = self._begin()
        fleet, road = self._traffic.fleet, self._traffic.road
        self.ego = next(name for name, tags in zip(fleet.names, fleet.tags, strict=True)
                        if 'ego' in tags)
        self._edge = road.n_lanes * LANE_WIDTH_M
        self._signals = tuple(
            Signal(str(2 * group + side + 1), share * road.length_m,
                   self._edge + _POLE_M if side else -_POLE_M,
                   (1, road.n_lanes - 1) if side else (0, 0))
            for group, share in enumerate(_STOP_LINES) for side in (0, 1))
        self.xodr = open_drive(road, self._signals)
        self.spawn_points = self._places(
            np.linspace(0.0, 1.0, _N_SPAWN_POINTS, endpoint=False),
            road.lane_offset(np.arange(_N_SPAWN_POINTS) % road.n_lanes), _SPAWN_HEIGHT_M)
        self.environment = [self._thing(*each) for each in enumerate(_THINGS)]
        self._bodies = (*self._vehicles(), *self._walkers(), *self._objects(), *self._lights())
        self._still = self._still_numbers()

    def _begin(self):
        n_vehicles, n_objects, seed = self._counts
        self._n_walkers = (n_objects + 2) // 3
        self._elapsed_s, self._velocity = 0.0, None
        return Traffic(n_vehicles, n_objects - self._n_walkers, 1.0 / self._period_s,
                       seed)

    def first(self):
        """Return the frame at the begin of an episode."""
        if self._elapsed_s or self._traffic.driven is not None:
            self._traffic = self._begin()
        return self._frame(0.0)

    def advance(self, elapsed_s):
        """Return the next frame; ``elapsed_s`` simulated time, s, None for a period."""
        elapsed_s = elapsed_s or self._period_s
        self._traffic.step(elapsed_s)
        self._elapsed_s += elapsed_s
        return self._frame(elapsed_s)

    def drive(self, pedals):
        """Drive the ego from now on, steering to the right positive."""
        self._traffic.drive(pedals)

    def place(self, position, yaw):
        """Put the ego on the ground elsewhere; ``yaw`` in degrees. Its velocity stays."""
        body, yaw = self._body(), math.radians(yaw)
        # Tires leave what is along them.
        self._traffic.place(self._traffic.fleet.names.index(self.ego), *position[:2], yaw,
                            body.speed * math.cos(body.yaw - yaw))

    def push(self, velocity):
        """Set the velocity of the ego."""
        body = self._body()
        body.speed = velocity[0] * math.cos(body.yaw) + velocity[1] * math.sin(body.yaw)

    def _body(self):
        """Return the ego as clients move it, whether they have driven it or not."""
        return self._traffic._freed(self._traffic.fleet.names.index(self.ego))._body

    def _frame(self, elapsed_s):
        motion = self._traffic.motion
        n_vehicles, n_moving = len(motion.position), len(motion.position) + self._n_walkers
        numbers = np.zeros((len(self._bodies), N_NUMBERS))
        numbers[n_moving:] = self._still
        vehicles, moving = numbers[:n_vehicles], numbers[:n_moving]
        vehicles[:, POSITION] = motion.position
        vehicles[:, ROTATION] = rotations_of_axes(motion.axes)
        vehicles[:, VELOCITY] = motion.velocity
        vehicles[:, ANGULAR_VELOCITY] = np.degrees(motion.angular_velocity)
        self._put_walkers(numbers[n_vehicles:n_moving])
        if self._velocity is not None and elapsed_s > 0.0:
            moving[:, ACCELERATION] = (moving[:, VELOCITY] - self._velocity) / elapsed_s
        self._velocity = moving[:, VELOCITY].copy()
        return SceneFrame(self._elapsed_s, self._bodies, numbers, self._controls())

    def _put_walkers(self, rows):
        s = (_FIRST_WALKER_M + _WALKERS_M * np.arange(len(rows), dtype=np.float64)
             + WALKING_SPEED * self._elapsed_s)
        surface = self._traffic.road.surface(s, np.full(len(rows), self._edge + _WALKWAY_M))
        along = surface.along / np.linalg.norm(surface.along, axis=1, keepdims=True)
        rows[:, POSITION] = surface.point
        rows[:, 2] += WALKER_EXTENT[2]
        rows[:, 4] = np.degrees(np.arctan2(along[:, 1], along[:, 0]))
        rows[:, VELOCITY] = along * WALKING_SPEED

    def _controls(self):
        """Return pedals that would have the accelerations of the drivers, and those of the ego."""
        drivers, motion, driven = (self._traffic.drivers, self._traffic.motion,
                                   self._traffic.driven)
        controls = np.zeros((len(self._bodies), 3))
        rows = controls[:len(motion.position)]
        rows[:, 0] = np.clip(drivers.acceleration / FULL_THROTTLE, 0.0, 1.0)
        rows[:, 1] = np.clip(-drivers.acceleration / FULL_BRAKE, 0.0, 1.0)
        rows[:, 2] = np.clip(motion.bicycle_steering / math.radians(FULL_LOCK_DEG), -1.0, 1.0)
        if driven is not None:
            pedals = driven.pedals
            rows[driven.row] = np.clip((pedals.throttle, pedals.brake, pedals.steer), (0, 0, -1),
                                       1)
        return controls

    def _vehicles(self):
        fleet = self._traffic.fleet
        return [body_of(name, tuple(tags), (
            (model.box_x, 0.0, model.clearance + model.height / 2),
            (model.length / 2, model.width / 2, model.height / 2), NOWHERE), is_vehicle=True,
            is_ego='ego' in tags, model=model.family)
            for name, tags, model in zip(fleet.names, fleet.tags, fleet.models, strict=True)]

    def _walkers(self):
        return [body_of(f'walker_{number}', ('pedestrian',), (NOWHERE, WALKER_EXTENT, NOWHERE))
                for number in range(self._n_walkers)]

    def _objects(self):
        for item in self._traffic.objects:
            (x, y, z), (cx, cy, cz) = item.position, item.center
            cosine, sine = math.cos(item.yaw), math.sin(item.yaw)
            center = (cosine * (cx - x) + sine * (cy - y), cosine * (cy - y) - sine * (cx - x),
                      cz - z)
            yield body_of(item.name, (item.tag,), (
                center, tuple(edge / 2 for edge in item.size), NOWHERE))

    def _lights(self):
        type_id, label = LIGHT
        return [Body(f'light_{signal.id}', type_id, (('role_name', TEXT, ''),),
                     (0.0, 0.0, 2.0 * _LIGHT_EXTENT[2]), _LIGHT_EXTENT, semantic_tags=(label,),
                     sign_id=signal.id) for signal in self._signals]

    def _places(self, shares, offsets, height):
        """Return positions and rotations along the road, at shares of the loop."""
        road = self._traffic.road
        surface = road.surface(shares * road.length_m, offsets)
        yaws = np.degrees(np.arctan2(surface.along[:, 1], surface.along[:, 0]))
        return [((x, y, z + height), (0.0, yaw, 0.0)) for (x, y, z), yaw in zip(
            surface.point.tolist(), yaws.tolist(), strict=True)]

    def _thing(self, number, thing):
        name, label, (length, width, height), aside = thing
        offset = self._edge + aside + width if number % 2 else -aside - width
        [(position, rotation)] = self._places(
            np.array([0.02 + 0.01 * number]), np.array([offset]), 0.0)
        x, y, z = position
        return [(position, rotation), [(x, y, z + height), (length, width, height), rotation, 0],
                1000 + number, name, label]

    def _still_numbers(self):
        objects, signals = self._traffic.objects, self._signals
        numbers = np.zeros((len(objects) + len(signals), N_NUMBERS))
        for i, item in enumerate(objects):
            numbers[i, POSITION], numbers[i, 4] = item.position, math.degrees(item.yaw)
        surface = self._traffic.road.surface(np.array([signal.s for signal in signals]),
                                             np.array([signal.offset for signal in signals]))
        rows = numbers[len(objects):]
        rows[:, POSITION] = surface.point
        # A light faces the traffic that it is for.
        rows[:, 4] = np.degrees(np.arctan2(surface.along[:, 1], surface.along[:, 0])) + 180.0
        return numbers


class RecordedScene:
    """
    Frames of a recording, from the first in each episode; clients cannot drive in it.

    ``frames`` begins the recording again: it returns an iterator of :class:`Frame`.
    """

    ego = ''

    def __init__(self, frames, xodr):
        self.xodr, self.spawn_points, self.environment = xodr, [], []
        self._recorded = frames

    def first(self):
        """Return the first frame, whose time is 0; None if there is none."""
        bodies = KnownBodies()
        self._frames = self._timed(map(bodies.scene_frame, self._recorded()))
        self._elapsed_s = 0.0
        self._next = next(self._frames, None)
        return self._take()

    def advance(self, elapsed_s):
        """
        Return the next frame, None after the last one.

        ``elapsed_s``: simulated time, s: the frame that is the last one then, which may be the
        same again; None for the next frame.
        """
        if self._next is None:
            return None
        if elapsed_s is None:
            self._elapsed_s = self._next.time_s
            return self._take()
        self._elapsed_s += elapsed_s
        while self._next is not None and self._next.time_s <= self._elapsed_s + _EARLY_S:
            self._take()
        return self._now

    def drive(self, pedals):
        """Leave the ego as it was recorded."""

    def _take(self):
        self._now, self._next = self._next, next(self._frames, None)
        return self._now

    def _timed(self, frames):
        """Yield frames whose times begin at 0 and increase, with accelerations."""
        before, recorded_s = None, 0.0
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


class KnownBodies:
    """The bodies of a recording; an actor keeps the box with which it first appeared."""

    def __init__(self):
        self._bodies, self._key, self._row = {}, None, ()

    def scene_frame(self, frame):
        """Convert a frame to CARLA's units and axes; what is unknown is 0."""
        lights, n_actors = frame.traffic_lights, len(frame.names)
        light_names = () if lights is None else lights.names
        # Lights of CARLA 0.9 are actors, too.
        row_of = {name: row for row, (name, tags) in enumerate(zip(
            frame.names, frame.tags, strict=True)) if 'traffic_light' in tags}
        others = tuple(name for name in light_names if name not in row_of)
        row_of.update(zip(others, count(n_actors), strict=False))
        numbers = np.zeros((n_actors + len(others), N_NUMBERS))
        _put_numbers(numbers[:n_actors], frame)
        states = None
        if lights is not None:
            rows = [row_of[name] for name in light_names]
            numbers[rows, 0:3] = mirrored_vectors(lights.poses[:, :3])
            numbers[rows, 3:6] = _rotations(lights.poses[:, 3:])
            states = np.full(len(numbers), 255, np.uint8)
            states[rows] = [_STATES[int(state)] for state in lights.states]
        np.nan_to_num(numbers, copy=False)
        key = frame.names, frame.tags, others
        if key != self._key:
            boxes = _boxes(frame, numbers)
            self._row = (*map(self._body, frame.names, frame.tags, frame.kinds, boxes),
                         *(self._body(f'light {name}', ('traffic_light',), -1, NO_BOX)
                           for name in others))
            self._key = key
        controls = np.zeros((len(numbers), 3))
        if frame.inputs is not None:
            # Throttle, brake, steer: + = left there.
            controls[:n_actors] = np.nan_to_num(frame.inputs[:, :3]) * (1.0, 1.0, -1.0)
        return SceneFrame(frame.game_time, self._row, numbers, controls, states)

    def _body(self, name, tags, kind, box):
        key = name, tags, int(kind)
        if key not in self._bodies:
            self._bodies[key] = body_of(name, tags, box, is_vehicle=kind == KIND_VEHICLE,
                                        is_ego='ego' in tags)
        return self._bodies[key]


def _rotations(orientation_xyzw):
    """Return pitch, yaw and roll, deg: + pitch raises the nose, + yaw turns right."""
    return np.degrees(rpy_from_quaternion(orientation_xyzw))[:, (1, 2, 0)] * (-1.0, -1.0, 1.0)


def _put_numbers(rows, frame):
    source = from_rep103_kinematics(frame.kinematics)
    rows[:, 0:3] = source[:, 0:3] / 100.0
    rows[:, 3:6] = _rotations(frame.kinematics[:, 3:7])
    rows[:, 6:9] = source[:, 7:10] / 100.0
    rows[:, 9:12] = np.degrees(source[:, 10:13])
    if frame.accelerations is not None:
        rows[:, 12:15] = mirrored_vectors(frame.accelerations)


def _boxes(frame, numbers):
    """Return the box of each actor on the actor, the first one of several."""
    boxes = [NO_BOX] * len(frame.names)
    if frame.boxes is None:
        return boxes
    rows = frame.boxes.rows
    centers, extents = mirrored_vectors(rows[:, :3]), rows[:, 7:10] / 2.0
    rotations = _rotations(rows[:, 3:7])
    for at, row in reversed(list(enumerate(frame.boxes.actor.tolist()))):
        axes = axes_of_rotation(numbers[row, 3:6])
        turn, extent = axes_of_rotation(rotations[at]) @ axes.T, extents[at]
        tilt = rotations_of_axes(turn[None])[0]
        center = axes @ (centers[at] - numbers[row, 0:3])
        boxes[row] = tuple(tuple(np.nan_to_num(each).tolist()) for each in (center, extent, tilt))
    return boxes
