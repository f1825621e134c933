# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""False objects of a frame: cars that do not exist."""

from dataclasses import dataclass
import math
from typing import Final

import numpy as np

from state_sensor_ros.classes import CAR
from state_sensor_ros.frame import Floats
from state_sensor_ros.objects.object_maker import Objects
from state_sensor_ros.perception.philox import philox, uniforms, Words

# Second number of the key: each use of the seed has words of its own.
_GHOSTS: Final = 2
# Greatest distance of a ghost if the range is not limited, m.
_RANGE_M: Final = 100.0
# Assumed: a false car moves at up to this speed, m/s, along its length.
_MAX_SPEED: Final = 15.0
# Distance, direction, yaw, speed, identity.
_N_WORDS: Final = 5


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """``origin`` (3,) of the ego, m, and ``heading``, yaw of its x axis, rad; global frame."""

    origin: Floats
    heading: float


NO_EGO = Viewpoint(np.zeros(3), 0.0)


def usual_number(mean: float) -> int:
    """
    Return a number that hardly any frame exceeds.

    :param mean: number of ghosts in a frame, of a Poisson distribution.
    """
    return math.ceil(mean + 4.0 * math.sqrt(mean))


def ghosts_of(seed: int, number: int, mean: float, viewpoint: Viewpoint, *, range_m: float,
              field_of_view: float, size: Floats) -> tuple[Objects, Words] | None:
    """
    Draw the false objects of a frame, uniformly in the field of view.

    :param seed: parameter ``perception.seed``.
    :param number: :func:`frame_number` of the frame.
    :param mean: number of ghosts in a frame, of a Poisson distribution.
    :param viewpoint: viewpoint of the ego.
    :param range_m: greatest distance, 0 for that of a sensor without limit.
    :param field_of_view: deg, 0 for all around.
    :param size: (3,) of a car, m.
    :returns: G objects and (G,) uint64, a random identity of each; None if there are none.
    """
    words = _words(seed, number, 1 + usual_number(mean) * _N_WORDS)
    n_ghosts = _poisson(mean, (int(words[0]) >> 11) * 2.0 ** -53)
    if not n_ghosts:
        return None
    n_words = 1 + n_ghosts * _N_WORDS
    if n_words > len(words):
        words = _words(seed, number, n_words)
    drawn = words[1:n_words].reshape(n_ghosts, _N_WORDS)
    share, side, turn, pace, _ = uniforms(drawn).T
    distances = (range_m or _RANGE_M) * np.sqrt(share)
    directions = viewpoint.heading + math.radians(field_of_view or 360.0) * (side - 0.5)
    half_yaws = np.pi * turn
    angles = np.array((directions, half_yaws, 2.0 * half_yaws))
    cosines, sines = np.cos(angles), np.sin(angles)
    poses, twists = np.zeros((n_ghosts, 7)), np.zeros((n_ghosts, 6))
    poses[:, :3] = viewpoint.origin
    poses[:, 0] += distances * cosines[0]
    poses[:, 1] += distances * sines[0]
    # They stand on the ground of the ego.
    poses[:, 2] += size[2] / 2.0
    poses[:, 5], poses[:, 6] = sines[1], cosines[1]
    axes = np.zeros((n_ghosts, 3, 3))
    axes[:, 0, 0] = axes[:, 1, 1] = cosines[2]
    axes[:, 1, 0], axes[:, 0, 1], axes[:, 2, 2] = sines[2], -sines[2], 1.0
    twists[:, :2] = (_MAX_SPEED * pace)[:, None] * axes[:, :2, 0]
    sizes = np.empty((n_ghosts, 3))
    sizes[:] = size
    return Objects(np.full(n_ghosts, -1), np.full(n_ghosts, CAR, np.uint8), poses, axes, sizes,
                   twists, np.zeros((n_ghosts, 6))), drawn[:, 4]


def _words(seed: int, number: int, n_words: int) -> Words:
    """Return the first words of the ghosts of a frame."""
    n_counters = -(-n_words // 4)
    # numpy's generator increments the counter first.
    places = np.arange(1, n_counters + 1, dtype=np.uint64)
    return philox((seed, _GHOSTS), (places, number, 0, 0), n_counters).T.ravel()[:n_words]


def _poisson(mean: float, chance: float) -> int:
    """Return the least number whose share of a Poisson distribution is above ``chance``."""
    number, probability = 0, math.exp(-mean)
    share = probability
    # Rounding may keep the sum below a chance near 1; probabilities then become 0.
    while share <= chance and probability > 0.0:
        number += 1
        probability *= mean / number
        share += probability
    return number
