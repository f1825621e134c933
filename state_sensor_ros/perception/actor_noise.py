# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The random numbers of actors in a frame.

Those of an actor depend on the seed, its raw name and the game time alone: neither on the other
actors nor on which of the numbers are used.
"""

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
import math
from typing import Final

import numpy as np

from state_sensor_ros.frame import Floats, NS_PER_S, Rows
from state_sensor_ros.naming import ActorList, EMPTY_ACTOR_LIST
from state_sensor_ros.perception.philox import normal_deviates, philox, rest_uniforms, Words

# Second number of the key: each use of the seed has words of its own.
_ACTORS: Final = 1
_NAME_BYTES: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class Deviates:
    """
    Numbers of the standard normal distribution for R actors.

    ``position`` and ``velocity`` (2, R) along the global x and y, ``size`` (3, R) of length, width
    and height, ``yaw`` (R,).
    """

    position: Floats
    velocity: Floats
    size: Floats
    yaw: Floats


@lru_cache(maxsize=4096)
def _name_bytes(name: str) -> bytes:
    return blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=_NAME_BYTES).digest()


def frame_number(game_time: float) -> int:
    """
    Return the number by which a frame is known, its game time in ns.

    :param game_time: s; a frame without one, or with one of which there are no ns, has 0.
    """
    time_ns = game_time * NS_PER_S
    return round(time_ns) % 2 ** 64 if math.isfinite(time_ns) else 0


class ActorNoise:
    """
    Draw the random numbers of actors; what depends on their names is kept between frames.

    Each actor has one block of four words in a frame.
    """

    def __init__(self) -> None:
        self._actor_list: ActorList = EMPTY_ACTOR_LIST
        self._names: Words = np.zeros((2, 0), np.uint64)

    def words(self, seed: int, number: int, actor_list: ActorList, rows: Rows) -> Words:
        """
        Return the random words of some actors.

        :param seed: parameter ``perception.seed``.
        :param number: :func:`frame_number` of the frame.
        :param actor_list: the actors of the frame.
        :param rows: (R,) int64, rows of those actors in the frame.
        :returns: (4, R) uint64.
        """
        if actor_list is not self._actor_list:
            self._actor_list = actor_list
            self._names = np.frombuffer(b''.join(map(_name_bytes, actor_list.names)), '<u8') \
                .astype(np.uint64).reshape(-1, 2).T
        # numpy's generator increments the counter first.
        return philox((seed, _ACTORS), (1, number, *self._names[:, rows]), len(rows))


def deviates_of(words: Words) -> Deviates:
    """
    Return the deviations of actors, in standard deviations.

    :param words: (4, R) uint64, the words of the actors.
    """
    drawn = normal_deviates(words)
    return Deviates(drawn[0::4], drawn[1::4], drawn[[2, 6, 3]], drawn[7])


def chances_of(words: Words) -> Floats:
    """
    Return a number from 0 to below 1 for each actor, independent of its deviates.

    :param words: (4, R) uint64, the words of the actors.
    :returns: (R,) float64.
    """
    return rest_uniforms(words)
