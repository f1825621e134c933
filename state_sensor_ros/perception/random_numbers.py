# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Random numbers that depend on a seed, a raw name and a game time alone.

Those of an actor are a hash of all three (BLAKE2b): they depend neither on the other actors nor on
which of the numbers are used.
"""

from dataclasses import dataclass
from hashlib import blake2b
import math
import struct
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.frame import Floats, NS_PER_S, Rows
from state_sensor_ros.naming import ActorList

Words = npt.NDArray[np.uint64]

_BYTE: Final = np.uint64(0xFF)
_BYTE_SHARES: Floats = np.array((2.0 ** -8, 2.0 ** -16, 2.0 ** -24, 2.0 ** -32))
# Words of 64 bits for each actor and frame.
_N_WORDS: Final = 4
_KEY: Final = struct.Struct('<QQ')


def normal_deviates(words: Words) -> Floats:
    """
    Return two numbers of the normal distribution for each word (Box and Muller, 1958).

    :param words: (W, R) uint64; their upper 56 bits are used, 28 for each number.
    :returns: (2 W, R) float64; those of word w are in rows w and W + w.
    """
    # Of 0 there is no logarithm; 28 bits reach 6.3 standard deviations.
    chances = ((words >> np.uint64(36)).astype(np.float64) + 0.5) * 2.0 ** -28
    radii: Floats = np.sqrt(-2.0 * np.log(chances))
    angles: Floats = ((words >> np.uint64(8)) & np.uint64(0xFFFFFFF)).astype(np.float64) \
        * (2.0 * np.pi * 2.0 ** -28)
    deviates: Floats = np.empty((2, *words.shape))
    np.cos(angles, out=deviates[0])
    np.sin(angles, out=deviates[1])
    deviates *= radii
    return deviates.reshape(2 * len(words), words.shape[1])


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


def frame_number(game_time: float) -> int:
    """
    Return the number by which a frame is known, its game time in ns.

    :param game_time: s; a frame without one, or with one of which there are no ns, has 0.
    """
    time_ns = game_time * NS_PER_S
    return round(time_ns) % 2 ** 64 if math.isfinite(time_ns) else 0


def actor_words(seed: int, number: int, actor_list: ActorList, rows: Rows) -> Words:
    """
    Return the random words of some actors.

    :param seed: parameter ``perception.seed``.
    :param number: :func:`frame_number` of the frame.
    :param actor_list: the actors of the frame.
    :param rows: (R,) int64, rows of those actors in the frame.
    :returns: (4, R) uint64.
    """
    # A copy of the hash of the frame takes half the time of another hash of both.
    of_frame = blake2b(_KEY.pack(seed, number), digest_size=8 * _N_WORDS)
    digests = []
    for row in rows.tolist():
        of_actor = of_frame.copy()
        of_actor.update(actor_list.names[row].encode('utf-8', 'surrogatepass'))
        digests.append(of_actor.digest())
    return np.frombuffer(b''.join(digests), '<u8').astype(np.uint64).reshape(-1, _N_WORDS).T


def deviates_of(words: Words) -> Deviates:
    """
    Return the deviations of actors, in standard deviations.

    :param words: (4, R) uint64, the words of the actors.
    """
    drawn = normal_deviates(words)
    return Deviates(drawn[0::4], drawn[1::4], drawn[[2, 6, 3]], drawn[7])


def chances_of(words: Words) -> Floats:
    """
    Return a number from 0 to below 1 for each actor, of the bits that its deviates leave.

    :param words: (4, R) uint64, the words of the actors; their lower 8 bits are used.
    :returns: (R,) float64, of 32 bits.
    """
    return _BYTE_SHARES @ (words & _BYTE).astype(np.float64)
