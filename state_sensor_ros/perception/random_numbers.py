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

Those of an actor depend neither on the other actors nor on which of the numbers are used. Philox
4x64-10 makes them for many counters at once, with the words of ``numpy.random.Philox``, which has
one counter. The generator is that of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
(2011).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
import math
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.frame import Floats, NS_PER_S, Rows
from state_sensor_ros.naming import ActorList, EMPTY_ACTOR_LIST

Words = npt.NDArray[np.uint64]

_N_ROUNDS: Final = 10
# Of the products with words 0 and 2, and what is added to the key after each round.
_FACTORS: Final = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_KEY_STEPS: Final = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
_WORD_BITS: Final = 64
_WORD: Final = 2 ** _WORD_BITS - 1
# Lanes are added in steps of so many, as the constants of each number of lanes are kept.
_LANE_STEP: Final = 16
_LANE_BYTES: Final = 16

_BYTE: Final = np.uint64(0xFF)
_BYTE_SHARES: Floats = np.array((2.0 ** -8, 2.0 ** -16, 2.0 ** -24, 2.0 ** -32))
# Second number of the key: each use of the seed has words of its own.
_ACTORS: Final = 1
_NAME_BYTES: Final = 16


def philox(key: tuple[int, int], counters: Sequence[Words | int], n_counters: int) -> Words:
    """
    Return four random words for each counter.

    One Python integer has a lane of 128 bits for each counter, with a word in its lower half: its
    product with a factor is that of each lane, as no product exceeds its lane::

        lanes      | 0 . word of counter 1 | 0 . word of counter 0 |
        x factor   | high half . low half  | high half . low half  |

    For 100 counters this takes half the time of products of halves of words in numpy.

    :param key: two numbers below 2 ** 64.
    :param counters: four words of each of R counters, each (R,) uint64 or one number for all; a
        counter is that of numpy's generator plus one.
    :param n_counters: R.
    :returns: (4, R) uint64.
    """
    n_lanes = -(-n_counters // _LANE_STEP) * _LANE_STEP
    ones, low_halves, round_keys = _constants(key, n_lanes)
    word_0, word_1, word_2, word_3 = (
        ones * word if isinstance(word, int) else _lanes(word, n_lanes) for word in counters)
    factor_0, factor_2 = _FACTORS
    for key_0, key_2 in round_keys:
        product_0, product_2 = word_0 * factor_0, word_2 * factor_2
        low_0, low_2 = product_0 & low_halves, product_2 & low_halves
        word_0 = (product_2 ^ low_2) >> _WORD_BITS ^ word_1 ^ key_0
        word_2 = (product_0 ^ low_0) >> _WORD_BITS ^ word_3 ^ key_2
        word_1, word_3 = low_2, low_0
    words = np.frombuffer(b''.join([
        (even | odd << _WORD_BITS).to_bytes(n_lanes * _LANE_BYTES, 'little')
        for even, odd in ((word_0, word_1), (word_2, word_3))]), '<u8')
    return words.reshape(2, n_lanes, 2)[:, :n_counters].transpose(0, 2, 1).reshape(4, n_counters)


def _lanes(words: Words, n_lanes: int) -> int:
    """Return lanes with the words in the first ones."""
    lanes = np.zeros((n_lanes, 2), '<u8')
    lanes[:len(words), 0] = words
    return int.from_bytes(lanes.tobytes(), 'little')


@lru_cache(maxsize=16)
def _constants(key: tuple[int, int], n_lanes: int) -> tuple[int, int, list[tuple[int, int]]]:
    """Return 1 in each lane, the lower half of each, and the two keys of each round in each."""
    ones = int.from_bytes((b'\1' + bytes(_LANE_BYTES - 1)) * n_lanes, 'little')
    return ones, ones * _WORD, [
        (ones * (key[0] + i * _KEY_STEPS[0] & _WORD), ones * (key[1] + i * _KEY_STEPS[1] & _WORD))
        for i in range(_N_ROUNDS)]


def uniforms(words: Words) -> Floats:
    """Return numbers from 0 to below 1 of words, 53 bits of each, as numpy's generators do."""
    shifted: Words = words >> np.uint64(11)
    return shifted.astype(np.float64) * 2.0 ** -53


def rest_uniforms(words: Words) -> Floats:
    """
    Return a number from 0 to below 1 of the bits that :func:`normal_deviates` leaves.

    :param words: (4, R) uint64; their lower 8 bits are used.
    :returns: (R,) float64, of 32 bits.
    """
    parts = (words & _BYTE).astype(np.float64)
    return _BYTE_SHARES @ parts


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
