# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Length of the common prefix and suffix of two sequences, and replacement of what is between them.

Results kept for each actor are updated this way: only those of changed actors are computed again.
Example: ``b`` leaves and ``x``, ``y`` arrive at its place::

    names    a  b  c  d        common_ends('abcd', 'axycd') == (1, 2)
    results  A  B  C  D
    names    a  x  y  c  d     only x and y have to be computed:
    results  A  X  Y  C  D     spliced(('A', 'B', 'C', 'D'), 1, ('X', 'Y'), 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

_Item = TypeVar('_Item')
_Items = TypeVar('_Items', bytes, tuple[Any, ...])


def common_ends(old: Sequence[_Item], new: Sequence[_Item]) -> tuple[int, int]:
    """
    Return the length of the common prefix and, of the rest, that of the common suffix.

    :param old: sequence whose slices can be compared, such as a tuple or text.
    :param new: sequence of the same type.
    :returns: number of items at the front and at the back; together at most the shorter length.
    """
    n_shorter = min(len(old), len(new))
    # Slices are compared at C speed: bisection is faster than a loop over the items.
    head, beyond = 0, n_shorter + 1
    while beyond - head > 1:
        middle = (head + beyond) // 2
        if old[head:middle] == new[head:middle]:
            head = middle
        else:
            beyond = middle
    tail, beyond = 0, n_shorter - head + 1
    while beyond - tail > 1:
        middle = (tail + beyond) // 2
        if old[len(old) - middle:len(old) - tail] == new[len(new) - middle:len(new) - tail]:
            tail = middle
        else:
            beyond = middle
    return head, tail


def spliced(old: _Items, head: int, middle: _Items, tail: int) -> _Items:
    """
    Replace the middle of a sequence.

    :param old: sequence whose ends are kept.
    :param head: number of items kept at the front.
    :param middle: new items between the ends.
    :param tail: number of items kept at the back.
    """
    return old[:head] + middle + old[len(old) - tail:]
