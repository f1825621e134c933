# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Random words that depend on a key and a counter alone: Philox 4x64-10 for many counters at once.

The words are those of ``numpy.random.Philox``, which has one counter. The generator is that of
Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.frame import Floats

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
