# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Synthetic traffic, step by step, as an endless sequence of frames with a clock."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from state_sensor_ros.emulator.bicycle import DrivenVehicle, Pedals, USUAL_VEHICLE
from state_sensor_ros.emulator.traffic.drivers import Drivers, make_fleet
from state_sensor_ros.emulator.traffic.json_template import collect_numbers, GENERATIONS, TEMPLATES
from state_sensor_ros.emulator.traffic.motion import DrivenEgo, Kinematics
from state_sensor_ros.emulator.traffic.road import make_objects, Road
from state_sensor_ros.errors import ConfigError

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


class Traffic:
    """Moving vehicles and static objects on a road."""

    # n_vehicles: number of vehicles, at least 1; one of them is the ego.
    # driven: the ego once a client drives it, None before.

    def __init__(self, n_vehicles: int, n_objects: int, rate_hz: float, seed: int,
                 vehicle: DrivenVehicle = USUAL_VEHICLE) -> None:
        length_m = max(SHORTEST_ROAD_M, n_vehicles * ROAD_PER_VEHICLE_M)
        self.road = Road(length_m, N_LANES, seed)
        self.fleet = make_fleet(n_vehicles, seed)
        self.objects = make_objects(self.road, n_objects)
        self.drivers = Drivers(self.road, self.fleet, seed)
        self.kinematics = Kinematics(self.road, self.fleet)
        self.period_s = 1.0 / rate_hz
        for _ in range(round(WARM_UP_S / LONGEST_STEP_S)):
            self.drivers.advance(LONGEST_STEP_S)
        rng = np.random.default_rng((seed, 4))
        self.spin = rng.uniform(-np.pi, np.pi, (n_vehicles, 4))
        self.motion = self.kinematics.evaluate(self.drivers)
        self._vehicle = vehicle
        self.driven: DrivenEgo | None = None

    def drive(self, pedals: Pedals) -> None:
        """Drive the ego from the next step on."""
        if self.driven is None:
            self.driven = DrivenEgo(self.road, self.fleet, self.drivers, self.motion,
                                    self._vehicle)
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
        mean_speed = 0.5 * (before + self.motion.wheel_speed)
        turned = self.spin + mean_speed * period_s
        self.spin = np.mod(turned + np.pi, 2 * np.pi) - np.pi


def generate(n_vehicles: int, n_objects: int, rate_hz: float, seed: int, generation: str,
             epoch_s: int = DEFAULT_EPOCH_S,
             vehicle: DrivenVehicle = USUAL_VEHICLE) -> TrafficFrames:
    """
    Generate frames without end.

    Frames share their constant parts: treat them as read-only.

    :param n_vehicles: number of vehicles, at least 1; exactly one has the tag `ego`.
    :param rate_hz: frames per second of simulated time, at most 1000.
    :param generation: `v0`, `v1` or `v2`.
    :param epoch_s: Unix time of game_time 0, s.
    """
    if n_vehicles < 1 or n_objects < 0:
        raise ConfigError('vehicles and objects', f'{n_vehicles} and {n_objects}',
                          'at least 1 and at least 0')
    if not 0.0 < rate_hz <= MAX_RATE_HZ:
        raise ConfigError('rate', f'{rate_hz} Hz', f'more than 0 and at most {MAX_RATE_HZ:g} Hz')
    if generation not in TEMPLATES:
        raise ConfigError('generation', repr(generation), f'one of {", ".join(GENERATIONS)}')
    traffic = Traffic(n_vehicles, n_objects, rate_hz, seed, vehicle)
    return TrafficFrames(traffic, generation, epoch_s)


class TrafficFrames(Iterator[dict[str, object]]):
    """The frames of traffic, without end; each is made when it is taken."""

    # epoch_s: Unix time of game_time 0, s.

    def __init__(self, traffic: Traffic, generation: str, epoch_s: int) -> None:
        self._traffic, self._epoch_s = traffic, epoch_s
        self._write = TEMPLATES[generation](traffic.fleet, traffic.objects)
        self._n_frames = 0

    def drive(self, pedals: Pedals) -> None:
        """Drive the ego between the last frame and the next one."""
        self._traffic.drive(pedals)

    def __next__(self) -> dict[str, object]:
        traffic = self._traffic
        if self._n_frames:
            traffic.step()
        frame = self._write(collect_numbers(traffic.road, traffic.fleet, traffic.drivers,
                                            traffic.motion, traffic.spin, traffic.driven))
        game_time_s = WARM_UP_S + self._n_frames * traffic.period_s
        self._n_frames += 1
        frame['game_time'] = float(np.float32(game_time_s))
        frame['sample_count'] = self._n_frames
        frame['time'] = self._epoch_s + int(game_time_s)
        return frame
