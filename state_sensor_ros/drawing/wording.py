# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Titles of axes, numbers with units and counts: of pictures, animations and lines of commands."""

from __future__ import annotations

from state_sensor_ros.errors import counted

X_TITLE, Y_TITLE = 'x (m)', 'y (m)'
TIME_TITLE = 'time since the first frame (s)'
SPEED_TITLE, SPEED_KPH_TITLE = 'speed (m/s)', 'speed (km/h)'
_SIZES = (('TB', 1e12), ('GB', 1e9), ('MB', 1e6), ('kB', 1e3))
KPH_PER_MPS = 3.6
# Shown on an empty map.
NOTHING = 'nothing to draw: no actor has a pose'
# Longer names are shortened.
_MAX_NAME = 32


def seconds(time_s: float) -> str:
    """
    Return a time or duration, rounded to 0.01 s.

    >>> seconds(6.65711), seconds(30.0)
    ('6.66 s', '30 s')

    :param time_s: s.
    """
    return f'{round(time_s, 2):.12g} s'


def figure(value: float, n_digits: int = 4) -> str:
    """
    Return a number with some significant digits; a large one without an exponent.

    >>> figure(19.99876), figure(21345.6), figure(0.00012345)
    ('20', '21346', '0.0001234')

    :param value: number.
    :param n_digits: number of significant digits.
    """
    return f'{value:.0f}' if abs(value) >= 10 ** n_digits else f'{value:.{n_digits}g}'


def size(n_bytes: int) -> str:
    """
    Return a number of bytes in the unit that fits.

    >>> size(999), size(1_070_000_000), size(999_700)
    ('999 B', '1.07 GB', '1 MB')

    :param n_bytes: number of bytes.
    """
    for unit, factor in _SIZES:
        # 999.5 would be rounded to 1e+03.
        if n_bytes >= 0.9995 * factor:
            return f'{figure(n_bytes / factor, 3)} {unit}'
    return f'{n_bytes} B'


def part_of(part: int, number: int, noun: str) -> str:
    """
    Return a part of a number of things as text.

    >>> part_of(35, 48, 'object'), part_of(1, 1, 'vehicle')
    ('35 of 48 objects', '1 of 1 vehicle')

    :param part: number of these things.
    :param number: number of all.
    :param noun: noun in the singular.
    """
    return f'{part} of {counted(number, noun)}'


def shortened(text: str, longest: int = _MAX_NAME) -> str:
    """
    Return a text, its middle replaced by an ellipsis if it is longer than ``longest``.

    >>> shortened('from_here_to_there', 9)
    'from…here'

    :param text: text of any length.
    :param longest: greatest length, characters.
    """
    half = longest // 2
    return text if len(text) <= longest else f'{text[:half]}…{text[half + 1 - longest:]}'
