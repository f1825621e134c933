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

Centimeters, float32 values, keys in alphabetical order. v1 has a list of flat actors, v2 lists of
nested objects and vehicles:

    v1  {"frame": [{"name": "sedan_1", "position": [x, y, z], ...}, ...]}
    v2  {"frame": {"objects": [{"name": ..., ...}],
                   "vehicles": [{"control_state": ..., "state": {"name": ...}, "wheels": ...}]}}

Wheels are in the order FL FR RL RR: ids 0 to 3 in v2; v1 has the front wheels only, ids 1 and 2.
"""


from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from state_sensor_ros.emulator.bicycle import Pedals
from state_sensor_ros.emulator.traffic.drivers import Drivers, Fleet, make_fleet
from state_sensor_ros.emulator.traffic.motion import DrivenEgo, Kinematics
from state_sensor_ros.emulator.traffic.road import FloatArray, make_objects, Road, StaticObject
from state_sensor_ros.rotations import quaternion_product

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


@dataclass(frozen=True, slots=True)
class FrameNumbers:
    """The numbers of N vehicles at one instant: lists of N rows, cm, rounded to float32."""

    pose: list[list[float]]  # 13 each: position, orientation xyzw, velocity, angular velocity
    box: list[list[float]]  # 10 each: center, orientation xyzw, extents
    wheels: list[list[float]]  # 20 each: 4 speeds, rad/s, then 4 orientations xyzw
    # Throttle 0..1, brake -1..0, wheel input -1..1.
    inputs: list[list[float]]
    lanes: list[list[int]]  # lane id, road id, section id
    road_s: list[float]  # distance along the road, cm
    changes: list[int]  # -1 during a change to the left, +1 to the right, 0 otherwise


def _as_float32(values: FloatArray) -> FloatArray:
    """Round to float32, widened to float64: the values that the simulator's JSON has."""
    return values.astype(np.float32).astype(np.float64)


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


def collect_numbers(traffic: Traffic) -> FrameNumbers:
    """Collect the numbers of one instant."""
    fleet, drivers, motion, driven = \
        traffic.fleet, traffic.drivers, traffic.motion, traffic.driven
    orientation = quaternion_of_axes(motion.axes)
    pose = np.concatenate([motion.position * CM, orientation, motion.velocity * CM,
                           motion.angular_velocity], axis=1)
    rise = fleet.column('clearance') + fleet.column('height') / 2
    center = (motion.position + fleet.column('box_x')[:, None] * motion.axes[:, 0]
              + rise[:, None] * motion.axes[:, 2])
    extents = np.stack([fleet.column(name) for name in ('width', 'height', 'length')], axis=-1)
    box = np.concatenate([center * CM, quaternion_product(orientation, BOX_FROM_VEHICLE_XYZW),
                          extents * CM], axis=1)
    n = len(fleet.names)
    wheels = np.concatenate([motion.wheel_speed, _wheel_quaternions(
        motion.steering, traffic.spin).reshape(n, 16)], axis=1)
    steer = motion.bicycle_steering[:, None]
    inputs = np.concatenate([_pedals(drivers.acceleration, drivers.speed),
                             np.clip(steer / FULL_LOCK, -1, 1)], axis=1)
    if driven is not None:
        pedals = driven.pedals
        inputs[driven.row] = pedals.throttle, -pedals.brake, pedals.steer
    road_id, section_id, road_s = traffic.road.ids(motion.s)
    return FrameNumbers(
        pose=_as_float32(pose).tolist(), box=_as_float32(box).tolist(),
        wheels=_as_float32(wheels).tolist(), inputs=_as_float32(inputs).tolist(),
        lanes=np.stack([-1 - drivers.lane, road_id, section_id], axis=-1).tolist(),
        road_s=_as_float32(road_s * CM).tolist(),
        changes=(drivers.lane - drivers.old_lane).tolist(),
    )


def _xyz(x: float, y: float, z: float) -> dict[str, object]:
    return {'x': x, 'y': y, 'z': z}


def _wxyz(x: float, y: float, z: float, w: float) -> dict[str, object]:
    return {'w': w, 'x': x, 'y': y, 'z': z}


def _odometry(row: Sequence[float]) -> dict[str, object]:
    return {'angular_velocity': _xyz(*row[10:13]), 'linear_velocity': _xyz(*row[7:10]),
            'pose': {'orientation': _wxyz(*row[3:7]), 'position': _xyz(*row[0:3])}}


def _box_v2(name: str, row: Sequence[float]) -> dict[str, object]:
    return {'center': _xyz(*row[0:3]), 'extents': _xyz(*row[7:10]), 'name': name,
            'orientation': _wxyz(*row[3:7]), 'scale': _xyz(1.0, 1.0, 1.0)}


def _box_v1(name: str, row: Sequence[float]) -> dict[str, object]:
    return {'center': row[0:3], 'extents': row[7:10], 'name': name,
            'orientation': row[3:7], 'scale': [1.0, 1.0, 1.0]}


def _object_rows(static: StaticObject) -> tuple[list[float], list[float]]:
    """Return the pose (13) and the box (10) of a static object, as in FrameNumbers."""
    turn = [0.0, 0.0, float(np.sin(static.yaw / 2)), float(np.cos(static.yaw / 2))]
    position = [CM * value for value in static.position]
    pose: list[float] = _as_float32(np.array(position + turn + [0.0] * 6)).tolist()
    box = [CM * v for v in static.center] + turn + [CM * v for v in static.size]
    return pose, _as_float32(np.array(box)).tolist()


def _vehicle_v2(fleet: Fleet, wheel_positions: list[dict[str, object]], i: int,
                numbers: FrameNumbers) -> dict[str, object]:
    lane_id, road_id, section_id = numbers.lanes[i]
    row = numbers.wheels[i]
    wheels = [{'id': k, 'pose': {'orientation': _wxyz(*row[4 + 4 * k:8 + 4 * k]),
                                 'position': wheel_positions[k]}, 'speed': row[k]}
              for k in range(4)]
    return {
        'control_state': {
            'lane_change_left': numbers.changes[i] < 0,
            'lane_change_right': numbers.changes[i] > 0,
            'lane_id': lane_id, 'road_id': road_id, 's': numbers.road_s[i],
            'section_id': section_id},
        'state': {
            'color': fleet.colors[i], 'name': fleet.names[i],
            'odometry': _odometry(numbers.pose[i]),
            'oriented_bounding_box': [_box_v2('Body', numbers.box[i])],
            'replay_class': fleet.replay_classes[i], 'tags': fleet.tags[i]},
        'wheels': wheels}


def _wheel_positions(fleet: Fleet) -> list[list[dict[str, object]]]:
    """Return the constant four wheel centers of each vehicle, cm, vehicle frame."""
    x = np.stack([fleet.column('front_x'), -fleet.column('rear_x')], axis=-1)[:, [0, 0, 1, 1]]
    y = fleet.column('track')[:, None] * np.array([-0.5, 0.5, -0.5, 0.5])
    z = np.repeat(fleet.column('radius')[:, None], 4, axis=1)
    corners = _as_float32(np.stack([x, y, z], axis=-1) * CM).tolist()
    return [[_xyz(*corner) for corner in vehicle] for vehicle in corners]


def _object_v2(static: StaticObject) -> dict[str, object]:
    pose, box = _object_rows(static)
    return {'name': static.name, 'odometry': _odometry(pose),
            'oriented_bounding_box': [_box_v2(static.box_name, box)], 'tags': [static.tag]}


def _vehicle_v1(fleet: Fleet, i: int, numbers: FrameNumbers) -> dict[str, object]:
    pose, row = numbers.pose[i], numbers.wheels[i]
    throttle, brake, wheel = numbers.inputs[i]
    return {
        'angular_velocity': pose[10:13],
        # Recordings have an integer 0 for a released pedal.
        'brake_input': brake or 0, 'name': fleet.names[i], 'orientation': pose[3:7],
        'oriented_bounding_box': [_box_v1('Body', numbers.box[i])], 'position': pose[0:3],
        'tags': fleet.tags[i], 'throttle_input': throttle or 0, 'velocity': pose[7:10],
        'wheel_input': wheel, 'wheel_speed': row[0:4],
        'wheels': [{'id': 1, 'orientation': row[4:8]}, {'id': 2, 'orientation': row[8:12]}]}


def _object_v1(static: StaticObject) -> dict[str, object]:
    pose, box = _object_rows(static)
    return {'name': static.name, 'orientation': pose[3:7],
            'oriented_bounding_box': [_box_v1(static.box_name, box)],
            'position': pose[0:3], 'tags': [static.tag], 'velocity': pose[7:10]}


GENERATIONS = V1, V2 = 'v1', 'v2'


def quaternion_of_axes(axes: FloatArray) -> FloatArray:
    """Convert body axes to quaternions."""
    # axes: (N, 3, 3) unit axes as rows x, y, z; z must not point down.
    # Returns (N, 4) float64, x y z w, with w >= 0.
    (m00, m10, m20), (m01, m11, m21), (m02, m12, m22) = np.moveaxis(axes, 0, -1)
    # z points up, so w and z are not both small: the larger one is the divisor.
    w_first = np.stack([m21 - m12, m02 - m20, m10 - m01, 1 + m00 + m11 + m22], axis=-1)
    z_first = np.stack([m02 + m20, m12 + m21, 1 - m00 - m11 + m22, m10 - m01], axis=-1)
    quaternion = np.where((m00 + m11 > 0)[:, None], w_first, z_first)
    quaternion *= np.where(quaternion[:, 3] < 0, -1.0, 1.0)[:, None]
    normalized: FloatArray = quaternion / np.linalg.norm(quaternion, axis=-1)[:, None]
    return normalized


class Traffic:
    """Moving vehicles and static objects on a road."""

    # n_vehicles: number of vehicles, at least 1; one of them is the ego.
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
        self.driven: DrivenEgo | None = None

    def drive(self, pedals: Pedals) -> None:
        """Drive the ego from the next step on."""
        if self.driven is None:
            self.driven = DrivenEgo(self.road, self.fleet, self.drivers, self.motion)
        self.driven.pedals = pedals

    def step(self, elapsed_s: float | None = None) -> None:
        """Advance all vehicles; ``elapsed_s``: simulated time, s; None for one frame period."""
        period_s = self.period_s if elapsed_s is None else elapsed_s
        n_steps = max(1, int(np.ceil(period_s / LONGEST_STEP_S - 1e-9)))
        dt_s = period_s / n_steps
        before = self.motion.wheel_speed
        for _ in range(n_steps):
            self.drivers.advance(dt_s)
            if self.driven is not None:
                self.driven.advance(dt_s, self.drivers)
        self.motion = self.kinematics.evaluate(self.drivers)
        if self.driven is not None:
            self.driven.show(self.motion, self.kinematics)
        turned = self.spin + 0.5 * (before + self.motion.wheel_speed) * period_s
        self.spin = np.mod(turned + np.pi, 2 * np.pi) - np.pi


def generate(n_vehicles: int, n_objects: int, rate_hz: float, seed: int, generation: str,
             epoch_s: int = DEFAULT_EPOCH_S) -> TrafficFrames:
    """
    Generate frames without end.

    Frames share their constant parts: treat them as read-only.

    :param n_vehicles: number of vehicles, at least 1; exactly one has the tag `ego`.
    :param rate_hz: frames per second of simulated time, at most :data:`MAX_RATE_HZ`.
    :param generation: `v1` or `v2`.
    :param epoch_s: Unix time of game_time 0, s.
    """
    return TrafficFrames(Traffic(n_vehicles, n_objects, rate_hz, seed), generation, epoch_s)


class TrafficFrames(Iterator[dict[str, object]]):
    """The frames of traffic, without end; each is made when it is taken."""

    # epoch_s: Unix time of game_time 0, s.

    def __init__(self, traffic: Traffic, generation: str, epoch_s: int) -> None:
        self._traffic, self._epoch_s, self._generation = traffic, epoch_s, generation
        # The parts that do not change.
        self._objects = list(map(_object_v1 if generation == V1 else _object_v2, traffic.objects))
        self._wheel_positions = _wheel_positions(traffic.fleet)
        self._n_frames = 0

    def drive(self, pedals: Pedals) -> None:
        """Drive the ego between the last frame and the next one."""
        self._traffic.drive(pedals)

    def __next__(self) -> dict[str, object]:
        traffic = self._traffic
        if self._n_frames:
            traffic.step()
        numbers = collect_numbers(traffic)
        vehicles = [
            _vehicle_v1(traffic.fleet, i, numbers) if self._generation == V1
            else _vehicle_v2(traffic.fleet, positions, i, numbers)
            for i, positions in enumerate(self._wheel_positions)]
        game_time_s = WARM_UP_S + self._n_frames * traffic.period_s
        self._n_frames += 1
        return {
            'frame': [*vehicles, *self._objects] if self._generation == V1
            else {'objects': self._objects, 'vehicles': vehicles},
            'game_time': float(np.float32(game_time_s)), 'sample_count': self._n_frames,
            'time': self._epoch_s + int(game_time_s)}
