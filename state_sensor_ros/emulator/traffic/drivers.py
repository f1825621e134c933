# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The vehicles of a run, and their drivers: car following by the IDM, lane changes by MOBIL."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from state_sensor_ros.emulator.traffic.road import FloatArray, IntArray, Road

BoolArray = npt.NDArray[np.bool_]

# IDM: s0 (m), T (s), a and b (m/s2), and a limit of the braking (m/s2).
REST_GAP_M = 2.5
HEADWAY_S = 1.1
ACCELERATION = 1.6
BRAKING = 2.2
HARDEST_BRAKING = 7.0
# MOBIL: p, threshold and right bias (m/s2), standard deviation of the threshold, b_safe (m/s2).
POLITENESS = 0.1
THRESHOLD = 0.20
RIGHT_BIAS = 0.05
SCATTER = 0.07
SAFE_BRAKING = 2.5
# Lane changes: lowest speed, shortest length, ranges of the duration and of the pause after it.
SLOWEST_CHANGE_MPS = 6.0
SHORTEST_CHANGE_M = 40.0
CHANGE_S = (3.6, 4.8)
PAUSE_S = (3.0, 9.0)
# Changes to the left and to the right are decided in turn, so that two vehicles from different
# lanes never start into the same gap at once.
DECISION_PERIOD_S = 0.25
# The old lane counts as free from this part of the lane change on.
CLEARED_SHARE = 0.75
# Limits the speed in curves, m/s2.
LATERAL_ACCELERATION = 3.2
# The gap without a leader or follower.
FAR_M = 1e6
START_SPACING_M = 55.0


@dataclass(frozen=True, slots=True)
class VehicleModel:
    """A vehicle type; meters, origin on the ground between the axles."""

    family: str
    length: float  # full length of the bounding box
    width: float  # full width of the bounding box
    height: float  # full height of the bounding box
    clearance: float  # height of the lower face of the box above the ground
    box_x: float  # distance of the box center before the origin
    front_x: float  # distance of the front axle before the origin
    rear_x: float  # distance of the rear axle behind the origin
    track: float  # distance between left and right wheels
    radius: float  # radius of the wheels
    share: float  # relative frequency
    speed_factor: float  # factor on the desired speed


MODELS = (
    VehicleModel('sedan', 4.86, 1.97, 1.45, 0.19, -0.02, 1.46, 1.40, 1.60, 0.336, 0.34, 1.00),
    VehicleModel('compact', 4.15, 1.80, 1.42, 0.20, -0.04, 1.26, 1.34, 1.50, 0.334, 0.20, 0.96),
    VehicleModel('subcompact', 3.65, 1.65, 1.30, 0.16, 0.01, 1.14, 1.20, 1.42, 0.300, 0.10, 0.93),
    VehicleModel('SUV', 4.66, 2.06, 1.53, 0.25, 0.02, 1.40, 1.38, 1.64, 0.365, 0.14, 1.03),
    VehicleModel('crossover', 4.52, 1.89, 1.50, 0.21, -0.01, 1.36, 1.36, 1.60, 0.345, 0.14, 1.00),
    VehicleModel('truck', 7.20, 2.30, 2.60, 0.40, -0.30, 2.05, 2.15, 1.90, 0.420, 0.08, 0.78),
)
COLORS = ('Carpaint_Red', 'Carpaint_DarkGrey', 'Carpaint_White', 'Carpaint_Blue',
          'Carpaint_Silver', 'Carpaint_Green')
# Desired speeds, around 90 km/h, differ enough for faster vehicles to overtake.
DESIRED_SPEED_MPS = (17.0, 32.0)


@dataclass(frozen=True, slots=True)
class Fleet:
    """The vehicles of a run; arrays are (N,) float64, meters and m/s."""

    names: tuple[str, ...]  # unique actor names
    tags: tuple[list[str], ...]  # tags of each vehicle; exactly one has `ego`
    models: tuple[VehicleModel, ...]  # type of each vehicle
    colors: tuple[str, ...]  # names of paints
    replay_classes: tuple[str, ...]  # blueprint paths
    desired_speed: FloatArray  # speed of each vehicle on a free, straight road

    def column(self, field: str) -> FloatArray:
        """Return one dimension of every vehicle: (N,) float64, meters."""
        return np.array([getattr(model, field) for model in self.models], dtype=np.float64)


def _tags(model: VehicleModel, is_ego: bool, rng: np.random.Generator) -> list[str]:
    """Return the tags of a vehicle; as in the real simulator, their order varies."""
    tags = ['vehicle', 'dynamic', 'truck' if model.family == 'truck' else 'car']
    tags.insert(int(rng.integers(0, len(tags) + 1)), 'ego' if is_ego else 'traffic')
    return tags


def make_fleet(n_vehicles: int, seed: int) -> Fleet:
    """Draw the vehicles of a run at random."""
    # n_vehicles: number of vehicles, at least 1.
    # Returns the fleet; vehicle n_vehicles // 2 is the ego, a sedan.
    rng = np.random.default_rng((seed, 2))
    shares = np.array([model.share for model in MODELS])
    kinds = rng.choice(len(MODELS), n_vehicles, p=shares / shares.sum())
    i_ego = n_vehicles // 2
    kinds[i_ego] = 0
    models = tuple(MODELS[kind] for kind in kinds)
    variants = rng.integers(1, 4, n_vehicles)
    marks = np.where(rng.random(n_vehicles) < 0.25, '_C', '')
    names = tuple(
        f'{model.family}_monoDrive_{variant:02d}{mark}_{i}'
        for i, (model, variant, mark) in enumerate(zip(models, variants, marks, strict=True)))
    blueprints = tuple(f'{model.family}_simple_{variant:02d}'
                       for model, variant in zip(models, variants, strict=True))
    speeds = rng.uniform(*DESIRED_SPEED_MPS, n_vehicles)
    speeds[i_ego] = 27.0
    return Fleet(
        names=names,
        tags=tuple(_tags(model, i == i_ego, rng) for i, model in enumerate(models)),
        models=models,
        colors=tuple(COLORS[i] for i in rng.integers(0, len(COLORS), n_vehicles)),
        replay_classes=tuple(f'/Game/Vehicles/{name}.{name}_C' for name in blueprints),
        desired_speed=speeds * np.array([model.speed_factor for model in models]),
    )


def idm(speed: FloatArray, desired: FloatArray, gap: FloatArray,
        closing: FloatArray) -> FloatArray:
    """
    Return the acceleration of the Intelligent Driver Model; arrays are (N,) float64.

    :param speed: v, m/s.
    :param desired: v0, m/s.
    :param gap: s, bumper to bumper, m.
    :param closing: dv, the speed minus that of the leader, m/s.
    :returns: m/s2, not below -HARDEST_BRAKING.
    """
    gap_term = speed * HEADWAY_S + speed * closing / (2 * np.sqrt(ACCELERATION * BRAKING))
    desired_gap = REST_GAP_M + np.maximum(gap_term, 0.0)
    acceleration: FloatArray = ACCELERATION * (
        1 - (speed / desired) ** 4 - (desired_gap / np.maximum(gap, 0.1)) ** 2)
    return np.maximum(acceleration, -HARDEST_BRAKING)


@dataclass(frozen=True, slots=True)
class LaneOrder:
    """
    The vehicles in each lane by distance; a vehicle that changes lanes occupies two places.

    Example of two lanes, 1000 m, vehicle 2 on its way from lane 0 to lane 1: vehicle = 0 2 1 2,
    lane = 0 0 1 1, key = 100 340 1120 1340, first = 0 2 4.
    """

    vehicle: IntArray  # (M,) index of the vehicle at each place
    lane: IntArray  # (M,) lane of each place
    key: FloatArray  # (M,) lane * length + s, ascending
    first: IntArray  # (n_lanes + 1,) index of the first place of each lane


class Drivers:
    """
    Positions along the road, speeds and lanes of all vehicles; arrays are (N,).

    :ivar s: distance of the rear axle along the loop, m, increasing over all rounds.
    :ivar speed: ds/dt, m/s.
    :ivar acceleration: dv/dt during the next step, m/s2.
    :ivar lane: target lane, 0 is the leftmost.
    :ivar old_lane: lane in which the lane change began; equal to ``lane`` without one.
    :ivar change_s: s at which the lane change began, m.
    :ivar change_m: length of the lane change, m.
    """

    def __init__(self, road: Road, fleet: Fleet, seed: int) -> None:
        self._road = road
        self._rng = np.random.default_rng((seed, 3))
        n = len(fleet.names)
        self._desired = fleet.desired_speed
        self._front_m = (fleet.column('rear_x') + fleet.column('box_x')
                         + fleet.column('length') / 2)
        self._rear_m = self._front_m - fleet.column('length')
        place = self._rng.permutation(n)
        row = place // road.n_lanes
        spacing = min(START_SPACING_M, road.length_m / (row.max() + 1))
        self.lane: IntArray = (place % road.n_lanes).astype(np.int64)
        # The lanes are staggered by a third of the spacing; a random part avoids equal positions.
        self.s = spacing * (row + self.lane / road.n_lanes + self._rng.uniform(0, 0.2, n))
        self.speed = np.minimum(self._desired, 22.0) * self._rng.uniform(0.85, 1.0, n)
        self.acceleration = np.zeros(n)
        self.old_lane = self.lane.copy()
        self.change_s = np.full(n, -FAR_M)
        self.change_m = np.ones(n)
        self._paused_until_s = self._rng.uniform(0, 3.0, n)
        self._clock_s = 0.0
        self._next_decision_s = 0.0
        self._side = -1
        self._set_accelerations()

    @property
    def progress(self) -> FloatArray:
        """(N,) completed share of the lane change, 0..1; 1 without one."""
        share: FloatArray = np.clip((self.s - self.change_s) / self.change_m, 0.0, 1.0)
        return share

    @property
    def is_changing(self) -> BoolArray:
        """(N,) whether the vehicle is changing lanes."""
        changing: BoolArray = self.lane != self.old_lane
        return changing

    def advance(self, dt_s: float) -> None:
        """Move all vehicles by the accelerations of the previous call, then compute new ones."""
        # dt_s: the step, s; positions are exact integrals of the speeds.
        self.s = self.s + self.speed * dt_s + 0.5 * self.acceleration * dt_s**2
        self.speed = np.maximum(self.speed + self.acceleration * dt_s, 0.0)
        self._clock_s += dt_s
        done = self.is_changing & (self.progress >= 1.0)
        self.old_lane = np.where(done, self.lane, self.old_lane)
        pause = self._rng.uniform(*PAUSE_S, len(self.s))
        self._paused_until_s = np.where(done, self._clock_s + pause, self._paused_until_s)
        if self._clock_s >= self._next_decision_s:
            self._next_decision_s += DECISION_PERIOD_S
            self._side = -self._side
            self._change_lanes(self._side)
        self._set_accelerations(dt_s)

    def place(self, vehicle: int, s: float, speed: float, lane: int) -> None:
        """Place a vehicle that a client drives."""
        # s: distance of its rear axle along the loop, m.
        # speed: ds/dt, m/s.
        self.s[vehicle], self.speed[vehicle], self.acceleration[vehicle] = s, speed, 0.0
        self.lane[vehicle] = self.old_lane[vehicle] = lane

    def _free_speed(self) -> FloatArray:
        """Return the desired speeds, limited by the lateral acceleration in curves."""
        curvature = np.abs(self._road.curvature(self.s + self.speed))
        limited: FloatArray = np.minimum(
            self._desired, np.sqrt(LATERAL_ACCELERATION / np.maximum(curvature, 1e-6)))
        return limited

    def _lane_order(self) -> LaneOrder:
        in_two_lanes = np.flatnonzero(self.is_changing & (self.progress < CLEARED_SHARE))
        vehicle = np.concatenate([np.arange(len(self.s)), in_two_lanes])
        lane = np.concatenate([self.lane, self.old_lane[in_two_lanes]])
        key = lane * self._road.length_m + np.mod(self.s, self._road.length_m)[vehicle]
        order = np.argsort(key, kind='stable')
        lane = lane[order]
        first = np.searchsorted(lane, np.arange(self._road.n_lanes + 1))
        return LaneOrder(vehicle[order], lane, key[order], first)

    def _neighbors(self, order: LaneOrder, vehicle: IntArray,
                   lane: IntArray) -> tuple[IntArray, IntArray]:
        """Return leader and follower of each vehicle in a lane; -1 for none."""
        key = lane * self._road.length_m + np.mod(self.s[vehicle], self._road.length_m)
        begin, end = order.first[lane], order.first[lane + 1]
        size = np.maximum(end - begin, 1)
        # Both sides skip equal keys: a vehicle's own place is neither its leader nor its follower.
        after = np.searchsorted(order.key, key, side='right') - begin
        before = np.searchsorted(order.key, key, side='left') - begin - 1
        leader = order.vehicle[np.minimum(begin + after % size, len(order.vehicle) - 1)]
        follower = order.vehicle[np.minimum(begin + before % size, len(order.vehicle) - 1)]
        is_empty = end == begin
        return (np.where(is_empty | (leader == vehicle), -1, leader),
                np.where(is_empty | (follower == vehicle), -1, follower))

    def _gap(self, behind: IntArray, ahead: IntArray) -> FloatArray:
        """Return the gaps (m) between bumpers; FAR_M if an index is -1."""
        apart = np.mod(self.s[ahead] - self.s[behind], self._road.length_m)
        gap: FloatArray = apart + self._rear_m[ahead] - self._front_m[behind]
        return np.where((behind < 0) | (ahead < 0), FAR_M, gap)

    def _follow(self, behind: IntArray, ahead: IntArray, free: FloatArray) -> FloatArray:
        """Return the IDM accelerations of vehicles ``behind`` with the leaders ``ahead``."""
        closing = np.where(ahead < 0, 0.0, self.speed[behind] - self.speed[ahead])
        return idm(self.speed[behind], free[behind], self._gap(behind, ahead), closing)

    def _set_accelerations(self, dt_s: float = 0.0) -> None:
        """Compute accelerations, the smallest one over the lanes that a vehicle occupies."""
        order, free = self._lane_order(), self._free_speed()
        leader, _ = self._neighbors(order, order.vehicle, order.lane)
        acceleration = np.full(len(self.s), np.inf)
        np.minimum.at(acceleration, order.vehicle, self._follow(order.vehicle, leader, free))
        if dt_s > 0.0:
            acceleration = np.maximum(acceleration, -self.speed / dt_s)
        self.acceleration = acceleration

    def _change_lanes(self, side: int) -> None:
        """Start the lane changes to one side (-1 left, +1 right) that MOBIL allows."""
        target = self.lane + side
        may = ((target >= 0) & (target < self._road.n_lanes) & ~self.is_changing
               & (self.speed > SLOWEST_CHANGE_MPS) & (self._clock_s >= self._paused_until_s))
        vehicle = np.flatnonzero(may)
        if not len(vehicle):
            return
        order, free = self._lane_order(), self._free_speed()
        leader, follower = self._neighbors(order, vehicle, self.lane[vehicle])
        new_leader, new_follower = self._neighbors(order, vehicle, target[vehicle])
        after = self._follow(vehicle, new_leader, free)
        own_gain = after - self._follow(vehicle, leader, free)
        follower_after = self._follow(new_follower, vehicle, free)
        new_follower_gain = np.where(
            new_follower < 0, 0.0,
            follower_after - self._follow(new_follower, new_leader, free))
        old_follower_gain = np.where(
            follower < 0, 0.0,
            self._follow(follower, leader, free) - self._follow(follower, vehicle, free))
        # The gap modulo the road's length makes an overlapping vehicle appear a round away.
        is_beside = self._may_overlap(vehicle, new_leader) | self._may_overlap(
            vehicle, new_follower)
        is_safe = ((follower_after > -SAFE_BRAKING) & ~is_beside
                   & (self._gap(vehicle, new_leader) > 2 * REST_GAP_M)
                   & (self._gap(new_follower, vehicle) > 2 * REST_GAP_M)
                   & (after > -SAFE_BRAKING))
        threshold = (THRESHOLD - side * RIGHT_BIAS
                     + self._rng.normal(0.0, SCATTER, len(self.s))[vehicle])
        gain = own_gain + POLITENESS * (new_follower_gain + old_follower_gain)
        started = vehicle[is_safe & (gain > threshold)]
        self.lane[started] += side
        self.change_s[started] = self.s[started]
        duration = self._rng.uniform(*CHANGE_S, len(self.s))[started]
        self.change_m[started] = np.maximum(SHORTEST_CHANGE_M, self.speed[started] * duration)

    def _may_overlap(self, one: IntArray, other: IntArray) -> BoolArray:
        """Return whether two vehicles are so close that their lengths may overlap."""
        length_m = self._road.length_m
        apart = np.mod(self.s[other] - self.s[one] + length_m / 2, length_m) - length_m / 2
        reach = np.maximum(self._front_m, -self._rear_m)
        close: BoolArray = (other >= 0) & (np.abs(apart) < reach[one] + reach[other] + REST_GAP_M)
        return close
