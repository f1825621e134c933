# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""What two sequences have in common at both ends: all but those who came, went or changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

_Item = TypeVar('_Item')
_Items = TypeVar('_Items', bytes, tuple[Any, ...])


def same_ends(old: Sequence[_Item], new: Sequence[_Item]) -> tuple[int, int]:
    """Return how many items are the same from the front and, of the rest, from the back."""
    n_shorter = min(len(old), len(new))
    # Slices are compared at C speed, so that bisection beats a loop over the items.
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
    """Put ``middle`` between what is the same at both ends, as :func:`same_ends` tells."""
    return old[:head] + middle + old[len(old) - tail:]
