# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The vehicles of a run: dimensions, names, tags and desired speeds.

Dimensions and the format of names and tags follow recordings of the real simulator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from state_sensor_ros.emulator.traffic.road import FloatArray


@dataclass(frozen=True, slots=True)
class VehicleModel:
    """
    A vehicle type; metres, origin on the ground between the axles.

    :param length: full length of the bounding box.
    :param width: full width of the bounding box.
    :param height: full height of the bounding box.
    :param clearance: height of the lower face of the box above the ground.
    :param box_x: distance of the box centre before the origin.
    :param front_x: distance of the front axle before the origin.
    :param rear_x: distance of the rear axle behind the origin.
    :param track: distance between left and right wheels.
    :param radius: radius of the wheels.
    :param share: relative frequency.
    :param speed_factor: factor on the desired speed.
    """

    family: str
    length: float
    width: float
    height: float
    clearance: float
    box_x: float
    front_x: float
    rear_x: float
    track: float
    radius: float
    share: float
    speed_factor: float


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
    """
    The vehicles of a run; arrays are (N,) float64, metres and m/s.

    :param names: unique actor names.
    :param tags: tags of each vehicle; exactly one has `ego`.
    :param models: type of each vehicle.
    :param colors: names of paints.
    :param replay_classes: blueprint paths.
    :param desired_speed: speed of each vehicle on a free, straight road.
    """

    names: tuple[str, ...]
    tags: tuple[list[str], ...]
    models: tuple[VehicleModel, ...]
    colors: tuple[str, ...]
    replay_classes: tuple[str, ...]
    desired_speed: FloatArray

    def column(self, field: str) -> FloatArray:
        """
        Return one dimension of every vehicle.

        :param field: name of a numeric field of :class:`VehicleModel`.
        :returns: (N,) float64, metres.
        """
        return np.array([getattr(model, field) for model in self.models], dtype=np.float64)


def _tags(model: VehicleModel, is_ego: bool, rng: np.random.Generator) -> list[str]:
    """Return the tags of a vehicle; as in the real simulator, their order varies."""
    tags = ['vehicle', 'dynamic', 'truck' if model.family == 'truck' else 'car']
    tags.insert(int(rng.integers(0, len(tags) + 1)), 'ego' if is_ego else 'traffic')
    return tags


def make_fleet(n_vehicles: int, seed: int) -> Fleet:
    """
    Draw the vehicles of a run at random.

    :param n_vehicles: number of vehicles, at least 1.
    :param seed: the same seed returns the same fleet.
    :returns: the fleet; vehicle n_vehicles // 2 is the ego, a sedan.
    """
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
