# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The CRC-32 of two concatenated texts, from the CRC-32 of each.

A CRC-32 is the remainder of a polynomial over GF(2), divided by the polynomial of the standard. To
append n bytes multiplies the polynomial of the first text by x to the power of 8 n, and adds that
of the second one::

    crc(a b) = crc(a) * x^(8 n) + crc(b)        sums are exclusive or; products modulo the divisor
"""

from __future__ import annotations

from functools import cache

# The divisor without its highest term. Bit 31 has the coefficient of x^0, bit 0 that of x^31.
_DIVISOR = 0xEDB88320
_ONE = 1 << 31


def combined_crc(first: int, second: int, n_bytes: int) -> int:
    """
    Return the CRC-32 of two concatenated texts.

    :param first: CRC-32 of the first text.
    :param second: CRC-32 of the second text.
    :param n_bytes: length of the second text.

    >>> from zlib import crc32
    >>> combined_crc(crc32(b'left '), crc32(b'right'), 5) == crc32(b'left right')
    True
    """
    power, exponent, bit = _ONE, 8 * n_bytes, 0
    while exponent >> bit:
        if exponent >> bit & 1:
            power = _product(power, _power_of_two(bit))
        bit += 1
    return _product(first, power) ^ second


@cache
def _power_of_two(bit: int) -> int:
    """Return x to the power of 2 to the power of ``bit``."""
    if not bit:
        return _ONE >> 1
    root = _power_of_two(bit - 1)
    return _product(root, root)


def _product(a: int, b: int) -> int:
    """Return the product of two polynomials, modulo the divisor."""
    product = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            product ^= b
        # b times x.
        b = b >> 1 ^ (_DIVISOR if b & 1 else 0)
    return product
