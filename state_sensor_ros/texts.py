# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Numbers and texts as people read them: with units, in one line, shortened."""

from collections.abc import Sequence

# Most characters of a value in an error, and of all that was found: a file may have any.
MAX_SHOWN, MAX_FOUND = 40, 600
_SIZES = (('TB', 1e12), ('GB', 1e9), ('MB', 1e6), ('kB', 1e3))


def one_line(text: str) -> str:
    """
    Make text safe for one line of a log or a terminal.

    :param text: text that may contain line ends or escape sequences from a peer or a file.
    :returns: the text with unprintable characters as in Python string literals.
    """
    if text.isprintable():
        return text
    return ''.join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def shortened(text: str, n_most: int = MAX_SHOWN) -> str:
    """
    Return a text, or its beginning, an ellipsis and, if there is much room, its end.

    >>> shortened('a rather long value', 8)
    'a rather…'

    :param text: text of any length.
    :param n_most: number of characters, without the ellipsis.
    """
    if len(text) <= n_most:
        return text
    # The end of a long text may be the remedy.
    n_last = n_most // 4 if n_most >= MAX_FOUND else 0
    return f'{text[:n_most - n_last]}…{text[len(text) - n_last:]}'


def abbreviated(text: str, longest: int = 32) -> str:
    """
    Return a text, its middle replaced by an ellipsis if it is longer than ``longest``.

    >>> abbreviated('from_here_to_there', 9)
    'from…here'
    """
    half = longest // 2
    return text if len(text) <= longest else f'{text[:half]}…{text[half + 1 - longest:]}'


def listed(items: Sequence[str], n_most: int = 8, separator: str = ', ',
           rest: str = ' and {} more', n_items: int | None = None) -> str:
    """
    Join the first items of a list.

    >>> listed(['car', 'bus', 'van'], 2)
    'car, bus and 1 more'

    :param n_most: number of items that are joined.
    :param separator: between two items.
    :param rest: text for the number of items that are omitted, appended if there are any.
    :param n_items: number of all items; None if ``items`` has all.
    """
    shown = items[:n_most]
    n_more = (len(items) if n_items is None else n_items) - len(shown)
    return separator.join(shown) + (rest.format(n_more) if n_more else '')


def counted(number: int, noun: str) -> str:
    """
    Return a number of things.

    >>> counted(1, 'vehicle'), counted(48, 'object')
    ('1 vehicle', '48 objects')

    :param number: how many.
    :param noun: what is counted, in the singular.
    """
    return f'{number} {noun}' if number == 1 else f'{number} {noun}s'


def seconds(time_s: float) -> str:
    """
    Return a time or duration, rounded to 0.01 s.

    >>> seconds(6.65711), seconds(30.0)
    ('6.66 s', '30 s')
    """
    return f'{round(time_s, 2):.12g} s'


def figure(value: float, n_digits: int = 4) -> str:
    """
    Return a number with some significant digits; a large one without an exponent.

    >>> figure(19.99876), figure(21345.6), figure(0.00012345)
    ('20', '21346', '0.0001234')
    """
    return f'{value:.0f}' if abs(value) >= 10 ** n_digits else f'{value:.{n_digits}g}'


def size(n_bytes: int) -> str:
    """
    Return a number of bytes in the unit that fits.

    >>> size(999), size(1_070_000_000), size(999_700)
    ('999 B', '1.07 GB', '1 MB')
    """
    for unit, factor in _SIZES:
        # 999.5 would be rounded to 1e+03.
        if n_bytes >= 0.9995 * factor:
            return f'{figure(n_bytes / factor, 3)} {unit}'
    return f'{n_bytes} B'
