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
_LOW_FACTORS, _HIGH_FACTORS = _FACTORS & _LOW, _FACTORS >> _HALF


def philox(key: tuple[int, int], counters: Words) -> Words:
    """
    Return four random words for each counter.

    :param key: two numbers below 2 ** 64.
    :param counters: (4, R) uint64; each is the counter of numpy's generator plus one.
    :returns: (4, R) uint64.
    """
    keys: Words = np.array([[key[0]], [key[1]]], np.uint64)
    evens, odds = counters[::2], counters[1::2]
    high, carried, halves = (np.empty(evens.shape, np.uint64) for _ in range(3))
    # Sums and products wrap around; in place, as these arrays are short.
    with np.errstate(over='ignore'):
        for _ in range(_N_ROUNDS):
            products = evens * _FACTORS
            # The upper halves of the products of 128 bits, by products of halves of words.
            low = evens & _LOW
            np.right_shift(evens, _HALF, out=high)
            np.multiply(low, _LOW_FACTORS, out=carried)
            carried >>= _HALF
            carried += np.multiply(high, _LOW_FACTORS, out=halves)
            low *= _HIGH_FACTORS
            low += np.bitwise_and(carried, _LOW, out=halves)
            low >>= _HALF
            carried >>= _HALF
            high *= _HIGH_FACTORS
            high += carried
            high += low
            evens = high[::-1] ^ odds
            evens ^= keys
            odds = products[::-1]
            keys += _KEY_STEPS
    words = np.empty_like(counters)
    words[::2], words[1::2] = evens, odds
    return words


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
