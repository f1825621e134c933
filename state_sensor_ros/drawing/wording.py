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


def part_of(part: int, number: int, noun: str) -> str:
    """
    Return a part of a number of things.

    >>> part_of(35, 48, 'object'), part_of(1, 1, 'vehicle')
    ('35 of 48 objects', '1 of 1 vehicle')

    :param part: of the number.
    :param number: of all.
    :param noun: of one of them.
    """
    return f'{part} of {counted(number, noun)}'


def shortened(text: str, longest: int = _MAX_NAME) -> str:
    """
    Return a text, its middle replaced by an ellipsis where it is longer than ``longest``.

    >>> shortened('from_here_to_there', 9)
    'from…here'

    :param text: of any length.
    :param longest: length in characters.
    """
    half = longest // 2
    return text if len(text) <= longest else f'{text[:half]}…{text[half + 1 - longest:]}'
