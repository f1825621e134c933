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

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.frame import Floats

Words = npt.NDArray[np.uint64]

_N_ROUNDS: Final = 10
# Of the product with words 0 and 2, and what is added to the key after each round.
_FACTORS: Words = np.array([[0xD2E7470EE14C6C93], [0xCA5A826395121157]], np.uint64)
_KEY_STEPS: Words = np.array([[0x9E3779B97F4A7C15], [0xBB67AE8584CAA73B]], np.uint64)
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFFFFFF)


def philox(key: tuple[int, int], counters: Words) -> Words:
    """
    Return four random words for each counter.

    :param key: two numbers below 2 ** 64.
    :param counters: (4, R) uint64; each is the counter of numpy's generator plus one.
    :returns: (4, R) uint64.
    """
    evens, odds = counters[::2].copy(), counters[1::2]
    factors, low_factors, high_factors, key_steps, lows, halves = _constants(evens.shape[1])
    keys = np.repeat(np.array([[key[0]], [key[1]]], np.uint64), evens.shape[1], axis=1)
    low, high, carried, part = (np.empty_like(evens) for _ in range(4))
    # Sums and products wrap around. In place and without broadcasting, which take longer than the
    # numbers of 100 counters.
    with np.errstate(over='ignore'):
        for _ in range(_N_ROUNDS):
            products = evens * factors
            # The upper halves of the products of 128 bits, by products of halves of words.
            np.bitwise_and(evens, lows, out=low)
            np.right_shift(evens, halves, out=high)
            np.multiply(low, low_factors, out=carried)
            np.right_shift(carried, halves, out=carried)
            np.multiply(high, low_factors, out=part)
            np.add(carried, part, out=carried)
            np.multiply(low, high_factors, out=low)
            np.bitwise_and(carried, lows, out=part)
            np.add(low, part, out=low)
            np.right_shift(low, halves, out=low)
            np.right_shift(carried, halves, out=carried)
            np.multiply(high, high_factors, out=high)
            np.add(high, carried, out=high)
            np.add(high, low, out=high)
            np.bitwise_xor(high[::-1], odds, out=evens)
            np.bitwise_xor(evens, keys, out=evens)
            odds = products[::-1]
            np.add(keys, key_steps, out=keys)
    words = np.empty_like(counters)
    words[::2], words[1::2] = evens, odds
    return words


@lru_cache(maxsize=8)
def _constants(n_counters: int) -> tuple[Words, ...]:
    """Return what the words of so many counters are combined with, (2, n_counters) each."""
    return tuple([np.repeat(column, n_counters, axis=1) for column in (
        _FACTORS, _FACTORS & _LOW, _FACTORS >> _HALF, _KEY_STEPS,
        np.full((2, 1), _LOW), np.full((2, 1), _HALF))])


def uniforms(words: Words) -> Floats:
    """Return numbers from 0 to below 1 of words, 53 bits of each, as numpy's generators do."""
    shifted: Words = words >> np.uint64(11)
    return shifted.astype(np.float64) * 2.0 ** -53


def rest_uniforms(words: Words) -> Floats:
    """
    Return a number from 0 to below 1 of the bits that :func:`normal_deviates` leaves.

    :param words: (4, R) uint64, of which the lower 8 bits are used.
    :returns: (R,) float64, of 32 bits.
    """
    parts = (words & np.uint64(0xFF)).astype(np.float64)
    return np.array((2.0 ** -8, 2.0 ** -16, 2.0 ** -24, 2.0 ** -32)) @ parts


def normal_deviates(words: Words) -> Floats:
    """
    Return two numbers of the normal distribution for each word (Box and Muller, 1958).

    :param words: (W, R) uint64, of which the upper 56 bits are used: 28 for each number.
    :returns: (2 W, R) float64; those of word w are in rows w and W + w.
    """
    # Of 0 there is no logarithm; 28 bits reach 6.3 standard deviations.
    chances = ((words >> np.uint64(36)).astype(np.float64) + 0.5) * 2.0 ** -28
    radii: Floats = np.sqrt(-2.0 * np.log(chances))
    angles: Floats = ((words >> np.uint64(8)) & np.uint64(0xFFFFFFF)).astype(np.float64) \
        * (2.0 * np.pi * 2.0 ** -28)
    return np.concatenate((radii * np.cos(angles), radii * np.sin(angles)))
