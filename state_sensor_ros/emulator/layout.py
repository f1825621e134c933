# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Frames as the simulator writes them: plain JSON objects of generation v0, v1 or v2.

May know: key names, centimetres, float32 rounding. Must not: how vehicles move, sockets.
Source of truth: PROTOCOL 4.4 to 4.7; keys in alphabetical order but for the clock at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from state_sensor_ros.emulator.drivers import Drivers
from state_sensor_ros.emulator.fleet import Fleet
from state_sensor_ros.emulator.motion import Motion, multiply_xyzw, quaternion_xyzw
from state_sensor_ros.emulator.road import Road
from state_sensor_ros.emulator.roadside import Thing

FloatArray = npt.NDArray[np.float64]

GENERATIONS = ('v0', 'v1', 'v2')
CM = 100.0
# X of the box is the vehicle's -y, its Y is +z, its Z is -x (PROTOCOL 5.e): width, height, length.
BOX_FROM_VEHICLE_XYZW = np.array([0.5, -0.5, -0.5, 0.5])
# Front wheel angle at full lock, rad (PROTOCOL 5.a: 32 to 37 degrees).
FULL_LOCK = np.radians(35.0)
# Pedals from acceleration: rolling resistance (m/s2), air drag (1/m), full throttle, full brake.
ROLLING, DRAG, FULL_THROTTLE, FULL_BRAKE = 0.15, 0.0006, 3.2, 7.5


@dataclass(frozen=True, slots=True)
class Rows:
    """
    Numbers of one instant, ready to be written: lists of N rows, cm, rounded to float32.

    :param pose: 13 numbers: position, orientation xyzw, velocity, angular velocity.
    :param box: center, orientation xyzw, extents.
    :param wheels: 4 speeds, 4 quaternions xyzw.
    :param inputs: throttle, brake (negative), wheel input, steering angle in degrees.
    :param lanes: lane id, road id, section id.
    :param road_s: cm.
    :param changes: -1 during a change to the left, +1 to the right, 0 else.
    """

    pose: list[list[float]]
    box: list[list[float]]
    wheels: list[list[float]]
    inputs: list[list[float]]
    lanes: list[list[int]]
    road_s: list[float]
    changes: list[int]


def as_float32(values: FloatArray) -> FloatArray:
    """
    Round like the simulator, whose JSON carries float32 widened to double.

    :param values: any shape.
    :returns: same shape, float64, each exactly a float32.
    """
    return values.astype(np.float32).astype(np.float64)


def _wheel_quaternions(steering: FloatArray, spin: FloatArray) -> FloatArray:
    """Return (N, 4, 4) x y z w: steer about z, then spin about y."""
    steer = np.concatenate([steering, np.zeros_like(steering)], axis=1) / 2
    spin = spin / 2
    return np.stack([-np.sin(steer) * np.sin(spin), np.cos(steer) * np.sin(spin),
                     np.sin(steer) * np.cos(spin), np.cos(steer) * np.cos(spin)], axis=-1)


def _pedals(acceleration: FloatArray, speed: FloatArray) -> FloatArray:
    """Return (N, 2) throttle 0..1 and brake -1..0, the sign that recordings have."""
    demand = acceleration + ROLLING + DRAG * speed**2
    return np.stack([np.clip(demand / FULL_THROTTLE, 0, 1),
                     -np.clip(-demand / FULL_BRAKE, 0, 1)], axis=-1)


def collect(road: Road, fleet: Fleet, drivers: Drivers, motion: Motion,
            spin: FloatArray) -> Rows:
    """
    Put the numbers of one instant into rows.

    :param road: for the ids.
    :param fleet: for the boxes.
    :param drivers: for lanes and pedals.
    :param motion: poses and speeds.
    :param spin: (N, 4) wheel angles, rad.
    :returns: the rows.
    """
    orientation = quaternion_xyzw(motion.axes)
    pose = np.concatenate([motion.position * CM, orientation, motion.velocity * CM,
                           motion.angular_velocity], axis=1)
    rise = fleet.column('clearance') + fleet.column('height') / 2
    center = (motion.position + fleet.column('box_x')[:, None] * motion.axes[:, 0]
              + rise[:, None] * motion.axes[:, 2])
    extents = np.stack([fleet.column(name) for name in ('width', 'height', 'length')], axis=-1)
    box = np.concatenate([center * CM, multiply_xyzw(orientation, BOX_FROM_VEHICLE_XYZW),
                          extents * CM], axis=1)
    n = len(fleet.names)
    wheels = np.concatenate([motion.wheel_speed, _wheel_quaternions(
        motion.steering, spin).reshape(n, 16)], axis=1)
    steer = motion.bicycle_steering[:, None]
    inputs = np.concatenate([_pedals(drivers.acceleration, drivers.speed),
                             np.clip(steer / FULL_LOCK, -1, 1), np.degrees(steer)], axis=1)
    road_id, section_id, road_s = road.ids(motion.s)
    return Rows(
        pose=as_float32(pose).tolist(), box=as_float32(box).tolist(),
        wheels=as_float32(wheels).tolist(), inputs=as_float32(inputs).tolist(),
        lanes=np.stack([-1 - drivers.lane, road_id, section_id], axis=-1).tolist(),
        road_s=as_float32(road_s * CM).tolist(),
        changes=(drivers.lane - drivers.old_lane).tolist(),
    )


def _xyz(x: float, y: float, z: float) -> dict[str, object]:
    return {'x': x, 'y': y, 'z': z}


def _wxyz(x: float, y: float, z: float, w: float) -> dict[str, object]:
    return {'w': w, 'x': x, 'y': y, 'z': z}


def _odometry(row: Sequence[float | None]) -> dict[str, object]:
    px, py, pz, qx, qy, qz, qw, vx, vy, vz, wx, wy, wz = row
    return {'angular_velocity': {'x': wx, 'y': wy, 'z': wz},
            'linear_velocity': {'x': vx, 'y': vy, 'z': vz},
            'pose': {'orientation': {'w': qw, 'x': qx, 'y': qy, 'z': qz},
                     'position': {'x': px, 'y': py, 'z': pz}}}


def _box_v2(name: str, row: Sequence[float]) -> dict[str, object]:
    return {'center': _xyz(*row[0:3]), 'extents': _xyz(*row[7:10]), 'name': name,
            'orientation': _wxyz(*row[3:7]), 'scale': _xyz(1.0, 1.0, 1.0)}


def _box_v1(name: str, row: Sequence[float]) -> dict[str, object]:
    return {'center': row[0:3], 'extents': row[7:10], 'name': name,
            'orientation': row[3:7], 'scale': [1.0, 1.0, 1.0]}


def _thing_rows(thing: Thing) -> tuple[list[float | None], list[float]]:
    """Return the pose row and the box row of an object."""
    turn = [0.0, 0.0, float(np.sin(thing.yaw / 2)), float(np.cos(thing.yaw / 2))]
    position = [CM * value for value in thing.position]
    pose: list[float | None] = as_float32(np.array(position + turn + [0.0] * 6)).tolist()
    if thing.rate_x_unknown:
        pose[10] = None
    box = [CM * v for v in thing.center] + turn + [CM * v for v in thing.size]
    return pose, as_float32(np.array(box)).tolist()


def _vehicle_v2(fleet: Fleet, wheel_positions: list[dict[str, object]], i: int,
                rows: Rows) -> dict[str, object]:
    lane_id, road_id, section_id = rows.lanes[i]
    spun = rows.wheels[i]
    wheels = [{'id': k, 'pose': {'orientation': _wxyz(*spun[4 + 4 * k:8 + 4 * k]),
                                 'position': wheel_positions[k]}, 'speed': spun[k]}
              for k in range(4)]
    return {
        'control_state': {
            'lane_change_left': rows.changes[i] < 0, 'lane_change_right': rows.changes[i] > 0,
            'lane_id': lane_id, 'road_id': road_id, 's': rows.road_s[i],
            'section_id': section_id},
        'state': {
            'color': fleet.colors[i], 'name': fleet.names[i], 'odometry': _odometry(rows.pose[i]),
            'oriented_bounding_box': [_box_v2('Body', rows.box[i])],
            'replay_class': fleet.replay_classes[i], 'tags': fleet.tags[i]},
        'wheels': wheels}


def _wheel_positions(fleet: Fleet) -> list[list[dict[str, object]]]:
    """Return the four wheel centres of each vehicle, cm, vehicle frame; they never change."""
    x = np.stack([fleet.column('front_x'), -fleet.column('rear_x')], axis=-1)[:, [0, 0, 1, 1]]
    y = fleet.column('track')[:, None] * np.array([-0.5, 0.5, -0.5, 0.5])
    z = np.repeat(fleet.column('radius')[:, None], 4, axis=1)
    corners = as_float32(np.stack([x, y, z], axis=-1) * CM).tolist()
    return [[_xyz(*corner) for corner in vehicle] for vehicle in corners]


Layout = Callable[[Rows], dict[str, object]]


def layout_v2(fleet: Fleet, things: Sequence[Thing]) -> Layout:
    """
    Prepare the v2 layout: `frame` is an object with `objects` and `vehicles`.

    :param fleet: the vehicles.
    :param things: the objects.
    :returns: what makes the members of a frame, without the clock, from rows.
    """
    positions = _wheel_positions(fleet)
    objects = []
    for thing in things:
        pose, box = _thing_rows(thing)
        objects.append({'name': thing.name, 'odometry': _odometry(pose),
                        'oriented_bounding_box': [_box_v2(thing.box_name, box)],
                        'tags': [thing.tag]})

    def write(rows: Rows) -> dict[str, object]:
        return {'frame': {'objects': objects, 'vehicles': [
            _vehicle_v2(fleet, position, i, rows) for i, position in enumerate(positions)]}}
    return write


def _vehicle_v1(fleet: Fleet, i: int, rows: Rows) -> dict[str, object]:
    pose, spun = rows.pose[i], rows.wheels[i]
    throttle, brake, wheel, _ = rows.inputs[i]
    return {
        'angular_velocity': pose[10:13],
        # Recordings write an integer 0 while the pedal is free.
        'brake_input': brake or 0, 'name': fleet.names[i], 'orientation': pose[3:7],
        'oriented_bounding_box': [_box_v1('Body', rows.box[i])], 'position': pose[0:3],
        'tags': fleet.tags[i], 'throttle_input': throttle or 0, 'velocity': pose[7:10],
        'wheel_input': wheel, 'wheel_speed': spun[0:4],
        # Only the front wheels, counted from 1 (PROTOCOL 4.7, v1 recordings).
        'wheels': [{'id': 1, 'orientation': spun[4:8]}, {'id': 2, 'orientation': spun[8:12]}]}


def layout_v1(fleet: Fleet, things: Sequence[Thing]) -> Layout:
    """
    Prepare the v1 layout: `frame` is a list of flat actors, vectors are arrays.

    :param fleet: the vehicles.
    :param things: the objects, which have no angular velocity.
    :returns: what makes the members of a frame, without the clock, from rows.
    """
    objects = []
    for thing in things:
        pose, box = _thing_rows(thing)
        objects.append({'name': thing.name, 'orientation': pose[3:7],
                        'oriented_bounding_box': [_box_v1(thing.box_name, box)],
                        'position': pose[0:3], 'tags': [thing.tag], 'velocity': pose[7:10]})

    def write(rows: Rows) -> dict[str, object]:
        vehicles = [_vehicle_v1(fleet, i, rows) for i in range(len(fleet.names))]
        return {'frame': [*vehicles, *objects]}
    return write


def layout_v0(fleet: Fleet, things: Sequence[Thing]) -> Layout:
    """
    Prepare the v0 layout: each actor is a top-level member under its name.

    :param fleet: the vehicles.
    :param things: the objects, which do not steer.
    :returns: what makes the members of a frame, without the clock, from rows.
    """
    objects = {}
    for thing in things:
        pose, _ = _thing_rows(thing)
        objects[thing.name] = {'angular_velocity': [0.0, 0.0, 0.0], 'orientation': pose[3:7],
                               'position': pose[0:3], 'tags': [thing.tag],
                               'velocity': pose[7:10]}

    def write(rows: Rows) -> dict[str, object]:
        frame: dict[str, object] = {
            name: {'angular_velocity': pose[10:13], 'orientation': pose[3:7],
                   'position': pose[0:3], 'steering_direction': inputs[3],
                   'tags': tags, 'velocity': pose[7:10]}
            for name, tags, pose, inputs in zip(
                fleet.names, fleet.tags, rows.pose, rows.inputs, strict=True)}
        return {**frame, **objects}
    return write


LAYOUTS: dict[str, Callable[[Fleet, Sequence[Thing]], Layout]] = {
    'v0': layout_v0, 'v1': layout_v1, 'v2': layout_v2}
