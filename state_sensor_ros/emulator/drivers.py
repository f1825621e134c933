# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
How drivers follow and overtake: the IDM and MOBIL models, all vehicles at once.

May know: distances along a road and lane numbers. Must not: space, units other than SI, JSON.
Source of truth: Treiber, Hennecke, Helbing 2000 (IDM); Kesting, Treiber, Helbing 2007 (MOBIL).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from state_sensor_ros.emulator.fleet import Fleet
from state_sensor_ros.emulator.road import Road

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# IDM: gap at rest (m), time headway (s), acceleration and comfortable braking (m/s2).
REST_GAP_M = 2.5
HEADWAY_S = 1.1
ACCELERATION = 1.6
BRAKING = 2.2
HARDEST_BRAKING = 7.0
# MOBIL: politeness, gain that is worth a change, right-hand bias, braking one may cause (m/s2),
# and how much the judgement of drivers scatters.
POLITENESS = 0.1
WORTH = 0.20
KEEP_RIGHT = 0.05
SCATTER = 0.07
SAFE_BRAKING = 2.5
# Nobody overtakes at a crawl, nor turns a lane change in less than this length.
SLOWEST_CHANGE_MPS = 6.0
SHORTEST_CHANGE_M = 40.0
CHANGE_S = (3.6, 4.8)
REST_AFTER_CHANGE_S = (3.0, 9.0)
# Each side is considered in turn, so two lanes never aim at the same gap at once.
DECISION_PERIOD_S = 0.25
# From this part of the manoeuvre on, the old lane is free for those behind.
CLEARED_SHARE = 0.75
LATERAL_ACCELERATION = 3.2
FAR_M = 1e6
START_SPACING_M = 55.0


def idm(speed: FloatArray, desired: FloatArray, gap: FloatArray,
        closing: FloatArray) -> FloatArray:
    """
    Intelligent Driver Model.

    :param speed: m/s.
    :param desired: free speed, m/s.
    :param gap: bumper to bumper, m.
    :param closing: speed minus that of the leader, m/s.
    :returns: acceleration, m/s2, not below the hardest braking.
    """
    wish = speed * HEADWAY_S + speed * closing / (2 * np.sqrt(ACCELERATION * BRAKING))
    wish = REST_GAP_M + np.maximum(wish, 0.0)
    free = (speed / desired) ** 4
    acceleration: FloatArray = ACCELERATION * (1 - free - (wish / np.maximum(gap, 0.1)) ** 2)
    return np.maximum(acceleration, -HARDEST_BRAKING)


@dataclass(frozen=True, slots=True)
class Queue:
    """
    Everybody who takes up a lane, in order; who changes lanes stands in both.

    :param who: (M,) vehicle of each place.
    :param key: (M,) lane * length + s, ascending.
    :param first: (n_lanes + 1,) where each lane begins.
    """

    who: IntArray
    lane: IntArray
    key: FloatArray
    first: IntArray


class Drivers:
    """
    Positions along the road, speeds and lanes of all vehicles; arrays are (N,).

    :ivar s: metres along the loop, counting rounds on.
    :ivar speed: ds/dt, m/s.
    :ivar acceleration: dv/dt during the coming step, m/s2.
    :ivar lane: lane aimed at, 0 is the leftmost.
    :ivar old_lane: where the manoeuvre began.
    :ivar change_s, change_m: where it began and how long it is, metres of s.
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
        # Lanes are staggered by a third of the spacing, and nobody is exactly in line.
        self.s = spacing * (row + self.lane / road.n_lanes + self._rng.uniform(0, 0.2, n))
        self.speed = np.minimum(self._desired, 22.0) * self._rng.uniform(0.85, 1.0, n)
        self.acceleration = np.zeros(n)
        self.old_lane = self.lane.copy()
        self.change_s = np.full(n, -FAR_M)
        self.change_m = np.ones(n)
        self._rest_until_s = self._rng.uniform(0, 3.0, n)
        self._clock_s = 0.0
        self._next_decision_s = 0.0
        self._side = -1
        self._plan()

    @property
    def progress(self) -> FloatArray:
        """(N,) share of the lane change that is done; 1 for those who keep their lane."""
        share: FloatArray = np.clip((self.s - self.change_s) / self.change_m, 0.0, 1.0)
        return share

    @property
    def is_changing(self) -> BoolArray:
        """(N,) whether the vehicle is between two lanes."""
        changing: BoolArray = self.lane != self.old_lane
        return changing

    def advance(self, dt_s: float) -> None:
        """
        Move on with the accelerations decided before, then decide anew.

        :param dt_s: the step; positions are exact integrals of the speeds.
        """
        self.s = self.s + self.speed * dt_s + 0.5 * self.acceleration * dt_s**2
        self.speed = np.maximum(self.speed + self.acceleration * dt_s, 0.0)
        self._clock_s += dt_s
        done = self.is_changing & (self.progress >= 1.0)
        self.old_lane = np.where(done, self.lane, self.old_lane)
        rest = self._rng.uniform(*REST_AFTER_CHANGE_S, len(self.s))
        self._rest_until_s = np.where(done, self._clock_s + rest, self._rest_until_s)
        if self._clock_s >= self._next_decision_s:
            self._next_decision_s += DECISION_PERIOD_S
            self._side = -self._side
            self._change_lanes(self._side)
        self._plan(dt_s)

    def _free_speed(self) -> FloatArray:
        """Limit the desired speed in curves."""
        bend = np.abs(self._road.curvature(self.s + self.speed))
        limited: FloatArray = np.minimum(
            self._desired, np.sqrt(LATERAL_ACCELERATION / np.maximum(bend, 1e-6)))
        return limited

    def _queue(self) -> Queue:
        straddling = np.flatnonzero(self.is_changing & (self.progress < CLEARED_SHARE))
        who = np.concatenate([np.arange(len(self.s)), straddling])
        lane = np.concatenate([self.lane, self.old_lane[straddling]])
        key = lane * self._road.length_m + np.mod(self.s, self._road.length_m)[who]
        order = np.argsort(key, kind='stable')
        lane = lane[order]
        first = np.searchsorted(lane, np.arange(self._road.n_lanes + 1))
        return Queue(who[order], lane, key[order], first)

    def _neighbours(self, queue: Queue, who: IntArray,
                    lane: IntArray) -> tuple[IntArray, IntArray]:
        """Return leader and follower of each vehicle in a lane; -1 where the lane is empty."""
        key = lane * self._road.length_m + np.mod(self.s[who], self._road.length_m)
        begin, end = queue.first[lane], queue.first[lane + 1]
        size = np.maximum(end - begin, 1)
        after = np.searchsorted(queue.key, key, side='right') - begin
        # A place of one's own in that lane counts neither as leader nor as follower.
        before = np.searchsorted(queue.key, key, side='left') - begin - 1
        leader = queue.who[np.minimum(begin + after % size, len(queue.who) - 1)]
        follower = queue.who[np.minimum(begin + before % size, len(queue.who) - 1)]
        nobody = end == begin
        return (np.where(nobody | (leader == who), -1, leader),
                np.where(nobody | (follower == who), -1, follower))

    def _gap(self, behind: IntArray, ahead: IntArray) -> FloatArray:
        """Return the gap (m) between bumpers; -1 on either side means nobody there."""
        apart = np.mod(self.s[ahead] - self.s[behind], self._road.length_m)
        gap: FloatArray = apart + self._rear_m[ahead] - self._front_m[behind]
        return np.where((behind < 0) | (ahead < 0), FAR_M, gap)

    def _follow(self, behind: IntArray, ahead: IntArray, free: FloatArray) -> FloatArray:
        """Return the IDM acceleration of ``behind`` if ``ahead`` were its leader."""
        closing = np.where(ahead < 0, 0.0, self.speed[behind] - self.speed[ahead])
        return idm(self.speed[behind], free[behind], self._gap(behind, ahead), closing)

    def _plan(self, dt_s: float = 0.0) -> None:
        """Decide accelerations: each vehicle heeds the leader of every lane that it takes up."""
        queue, free = self._queue(), self._free_speed()
        leader, _ = self._neighbours(queue, queue.who, queue.lane)
        wanted = self._follow(queue.who, leader, free)
        plan = np.full(len(self.s), np.inf)
        np.minimum.at(plan, queue.who, wanted)
        if dt_s > 0.0:
            plan = np.maximum(plan, -self.speed / dt_s)
        self.acceleration = plan

    def _change_lanes(self, side: int) -> None:
        """Start the lane changes to one side (-1 left, +1 right) that MOBIL approves."""
        target = self.lane + side
        may = ((target >= 0) & (target < self._road.n_lanes) & ~self.is_changing
               & (self.speed > SLOWEST_CHANGE_MPS) & (self._clock_s >= self._rest_until_s))
        who = np.flatnonzero(may)
        if not len(who):
            return
        queue, free = self._queue(), self._free_speed()
        target = target[who]
        leader, follower = self._neighbours(queue, who, self.lane[who])
        new_leader, new_follower = self._neighbours(queue, who, target)
        own_gain = self._follow(who, new_leader, free) - self._follow(who, leader, free)
        pressed = self._follow(new_follower, who, free)
        cost = np.where(new_follower < 0, 0.0,
                        pressed - self._follow(new_follower, new_leader, free))
        relief = np.where(follower < 0, 0.0, self._follow(follower, leader, free)
                          - self._follow(follower, who, free))
        room_ahead, room_behind = self._gap(who, new_leader), self._gap(new_follower, who)
        # Modulo makes an overlapping neighbour look a whole round away: look both ways.
        beside = (self._length_apart(who, new_leader) | self._length_apart(who, new_follower))
        safe = ((pressed > -SAFE_BRAKING) & ~beside & (room_ahead > 2 * REST_GAP_M)
                & (room_behind > 2 * REST_GAP_M)
                & (self._follow(who, new_leader, free) > -SAFE_BRAKING))
        worth = WORTH - side * KEEP_RIGHT + self._rng.normal(0.0, SCATTER, len(self.s))[who]
        go = who[safe & (own_gain + POLITENESS * (cost + relief) > worth)]
        self.lane[go] += side
        self.change_s[go] = self.s[go]
        lasting = self._rng.uniform(*CHANGE_S, len(self.s))[go]
        self.change_m[go] = np.maximum(SHORTEST_CHANGE_M, self.speed[go] * lasting)

    def _length_apart(self, one: IntArray, other: IntArray) -> BoolArray:
        """Tell whether two vehicles are so close that their lengths may overlap."""
        length_m = self._road.length_m
        apart = np.mod(self.s[other] - self.s[one] + length_m / 2, length_m) - length_m / 2
        reach = np.maximum(self._front_m, -self._rear_m)
        close: BoolArray = (other >= 0) & (
            np.abs(apart) < reach[one] + reach[other] + REST_GAP_M)
        return close
