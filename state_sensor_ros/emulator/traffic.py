# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Synthetic traffic: frame after frame of vehicles that follow and overtake on a winding road.

May know: all parts of the world and in which order they go. Must not: sockets, files.
Source of truth: PROTOCOL 4 for frames, 5.g for the clock.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from state_sensor_ros.emulator.drivers import Drivers
from state_sensor_ros.emulator.fleet import make_fleet
from state_sensor_ros.emulator.layout import collect, GENERATIONS, LAYOUTS
from state_sensor_ros.emulator.motion import Kinematics, Motion
from state_sensor_ros.emulator.road import Road
from state_sensor_ros.emulator.roadside import make_things
from state_sensor_ros.errors import ConfigError

N_LANES = 3
SHORTEST_ROAD_M = 3000.0
# Road per vehicle, over all lanes: dense enough to overtake, free enough to move.
ROAD_PER_VEHICLE_M = 20.0
# Time that traffic has had to sort itself out before the first frame; game_time begins here.
WARM_UP_S = 8.0
# Longest step of the drivers' models; longer frame periods are divided.
LONGEST_STEP_S = 0.05
# float32 resolves half a millisecond for the first two hours; faster sensors would repeat.
MAX_RATE_HZ = 1000.0
# The Unix time of game_time 0, fixed so that the same seed gives the same bytes.
DEFAULT_EPOCH_S = 1_600_000_000


class Traffic:
    """
    A world of moving vehicles and standing objects.

    :param n_vehicles: at least 1; one of them is the ego.
    :param n_objects: cones and signs.
    :param rate_hz: frames per second of simulated time.
    :param seed: same seed, same traffic.
    """

    def __init__(self, n_vehicles: int, n_objects: int, rate_hz: float, seed: int) -> None:
        length_m = max(SHORTEST_ROAD_M, n_vehicles * ROAD_PER_VEHICLE_M)
        self.road = Road(length_m, N_LANES, seed)
        self.fleet = make_fleet(n_vehicles, seed)
        self.things = make_things(self.road, n_objects)
        self.drivers = Drivers(self.road, self.fleet, seed)
        self.kinematics = Kinematics(self.road, self.fleet)
        self.period_s = 1.0 / rate_hz
        self.n_steps = max(1, int(np.ceil(self.period_s / LONGEST_STEP_S - 1e-9)))
        for _ in range(round(WARM_UP_S / LONGEST_STEP_S)):
            self.drivers.advance(LONGEST_STEP_S)
        rng = np.random.default_rng((seed, 4))
        self.spin = rng.uniform(-np.pi, np.pi, (n_vehicles, 4))
        self.motion: Motion = self.kinematics.observe(self.drivers)

    def step(self) -> None:
        """Move the world on by one frame period."""
        dt_s = self.period_s / self.n_steps
        before = self.motion.wheel_speed
        for _ in range(self.n_steps):
            self.drivers.advance(dt_s)
        self.motion = self.kinematics.observe(self.drivers)
        mean_speed = 0.5 * (before + self.motion.wheel_speed)
        turned = self.spin + mean_speed * self.period_s
        self.spin = np.mod(turned + np.pi, 2 * np.pi) - np.pi


def generate(n_vehicles: int, n_objects: int, rate_hz: float, seed: int, generation: str,
             epoch_s: int = DEFAULT_EPOCH_S) -> Iterator[dict[str, object]]:
    """
    Make frames without end.

    Frames share parts that never change: treat them as read-only.

    :param n_vehicles: at least 1; exactly one carries the tag `ego`.
    :param n_objects: cones and signs.
    :param rate_hz: frames per second of simulated time.
    :param seed: same seed, same frames.
    :param generation: `v0`, `v1` or `v2`.
    :param epoch_s: Unix time of game_time 0.
    :returns: an endless iterator of frames as plain JSON objects, clock members last.
    :raises ConfigError: when one of the values is out of range.
    """
    if n_vehicles < 1 or n_objects < 0:
        raise ConfigError('vehicles, objects', f'{n_vehicles}, {n_objects}', '>= 1, >= 0')
    if not 0.0 < rate_hz <= MAX_RATE_HZ:
        raise ConfigError('rate', f'{rate_hz} Hz', f'more than 0, at most {MAX_RATE_HZ:g}')
    if generation not in LAYOUTS:
        raise ConfigError('generation', repr(generation), f'one of {", ".join(GENERATIONS)}')
    return _frames(Traffic(n_vehicles, n_objects, rate_hz, seed), generation, epoch_s)


def _frames(traffic: Traffic, generation: str, epoch_s: int) -> Iterator[dict[str, object]]:
    write = LAYOUTS[generation](traffic.fleet, traffic.things)
    n_frames = 0
    while True:
        frame = write(collect(traffic.road, traffic.fleet, traffic.drivers, traffic.motion,
                              traffic.spin))
        game_time_s = WARM_UP_S + n_frames * traffic.period_s
        n_frames += 1
        frame['game_time'] = float(np.float32(game_time_s))
        frame['sample_count'] = n_frames
        frame['time'] = epoch_s + int(game_time_s)
        yield frame
        traffic.step()
