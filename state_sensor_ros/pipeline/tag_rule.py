# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Which actors are wanted by their tags, as PROTOCOL 3.1 and INTERFACE 3.3 define it.

May know: tags, compared without case. Must not know: where they are in a payload or a frame.
"""

from __future__ import annotations

from collections.abc import Iterable


class TagRule:
    """
    A rule for tags; empty strings in it match nothing.

    :param desired: the actor needs at least one of them; none of them passes all.
    :param undesired: the actor must have none of them.
    """

    def __init__(self, desired: Iterable[str] = (), undesired: Iterable[str] = ()) -> None:
        self._desired = frozenset(tag.lower() for tag in desired if tag)
        self._undesired = frozenset(tag.lower() for tag in undesired if tag)
        self.passes_all = not self._desired and not self._undesired

    def passes(self, tags: Iterable[str]) -> bool:
        """
        Tell whether an actor is wanted.

        :param tags: as sent.
        """
        own = {tag.lower() for tag in tags}
        return (not self._desired or not own.isdisjoint(self._desired)) \
            and own.isdisjoint(self._undesired)
