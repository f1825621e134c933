# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Who is on the road: the vehicles' models, names, tags and temperaments.

May know: dimensions in metres, the naming habits of the simulator. Must not: motion, JSON.
Source of truth: dimensions in the range of PROTOCOL 5.e and 5.f, names and tags as in 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Model:
    """
    A kind of vehicle; metres, origin on the ground between the axles.

    :param length: full length.
    :param width: full width.
    :param height: of the body's box.
    :param clearance: from the ground to the lower face of the box.
    :param box_x: the box centre before the origin.
    :param front_x: front axle before the origin.
    :param rear_x: rear axle behind it.
    :param track: distance between left and right wheels.
    :param radius: of the wheels.
    :param share: how frequent it is.
    :param pace: factor on the desired speed.
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
    pace: float


MODELS = (
    Model('sedan', 4.86, 1.97, 1.45, 0.19, -0.02, 1.46, 1.40, 1.60, 0.336, 0.34, 1.00),
    Model('compact', 4.15, 1.80, 1.42, 0.20, -0.04, 1.26, 1.34, 1.50, 0.334, 0.20, 0.96),
    Model('subcompact', 3.65, 1.65, 1.30, 0.16, 0.01, 1.14, 1.20, 1.42, 0.300, 0.10, 0.93),
    Model('SUV', 4.66, 2.06, 1.53, 0.25, 0.02, 1.40, 1.38, 1.64, 0.365, 0.14, 1.03),
    Model('crossover', 4.52, 1.89, 1.50, 0.21, -0.01, 1.36, 1.36, 1.60, 0.345, 0.14, 1.00),
    Model('truck', 7.20, 2.30, 2.60, 0.40, -0.30, 2.05, 2.15, 1.90, 0.420, 0.08, 0.78),
)
COLORS = ('Carpaint_Red', 'Carpaint_DarkGrey', 'Carpaint_White', 'Carpaint_Blue',
          'Carpaint_Silver', 'Carpaint_Green')
# Desired speeds around 90 km/h with enough spread to make overtaking worth while.
DESIRED_SPEED_MPS = (17.0, 32.0)


@dataclass(frozen=True, slots=True)
class Fleet:
    """
    The vehicles of a run; arrays are (N,) float64, metres and m/s.

    :param names: unique actor names.
    :param tags: tags of each vehicle; exactly one carries `ego`.
    :param models: the model of each vehicle.
    :param colors: paint names.
    :param replay_classes: blueprint paths.
    :param desired_speed: free speed of each driver.
    """

    names: tuple[str, ...]
    tags: tuple[list[str], ...]
    models: tuple[Model, ...]
    colors: tuple[str, ...]
    replay_classes: tuple[str, ...]
    desired_speed: FloatArray
    i_ego: int

    def column(self, field: str) -> FloatArray:
        """
        Collect one dimension of every vehicle.

        :param field: name of a numeric field of :class:`Model`.
        :returns: (N,) float64.
        """
        return np.array([getattr(model, field) for model in self.models], dtype=np.float64)


def _tags(model: Model, is_ego: bool, rng: np.random.Generator) -> list[str]:
    """Give a vehicle its tags; their order is not fixed in the real simulator either."""
    tags = ['vehicle', 'dynamic']
    if model.family != 'truck':
        tags.append('car')
    own = 'ego' if is_ego else 'traffic'
    tags.insert(int(rng.integers(0, len(tags) + 1)), own)
    return tags


def make_fleet(n_vehicles: int, seed: int) -> Fleet:
    """
    Draw the vehicles of a run.

    :param n_vehicles: at least 1.
    :param seed: same seed, same fleet.
    :returns: the fleet; the ego is in the middle of it.
    """
    rng = np.random.default_rng((seed, 2))
    shares = np.array([model.share for model in MODELS])
    kinds = rng.choice(len(MODELS), n_vehicles, p=shares / shares.sum())
    i_ego = n_vehicles // 2
    kinds[i_ego] = 0
    models = tuple(MODELS[kind] for kind in kinds)
    variants = rng.integers(1, 4, n_vehicles)
    marks = np.where(rng.random(n_vehicles) < 0.25, '_C', '')
    kinds_of = enumerate(zip(models, variants, marks, strict=True))
    names = tuple(f'{model.family}_monoDrive_{variant:02d}{mark}_{i}'
                  for i, (model, variant, mark) in kinds_of)
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
        desired_speed=speeds * np.array([model.pace for model in models]),
        i_ego=i_ego,
    )
