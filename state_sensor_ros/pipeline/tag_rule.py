# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Selection of actors by their tags, ignoring case: doc/interface.md#selection."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from state_sensor_ros.frame import Frame, Rows


class TagRule:
    """
    A rule for tags; empty strings in it match nothing.

    :param desired: tags of which an actor needs at least one; if there are none, all actors pass.
    :param undesired: tags that an actor must not have.
    """

    def __init__(self, desired: Iterable[str] = (), undesired: Iterable[str] = ()) -> None:
        self._desired = frozenset(tag.lower() for tag in desired if tag)
        self._undesired = frozenset(tag.lower() for tag in undesired if tag)
        self.passes_all = not self._desired and not self._undesired
        # Tags of the last frame and the rows that pass, kept as tags seldom change.
        self._tags: tuple[tuple[str, ...], ...] = ()
        self._rows: Rows = np.zeros(0, np.int64)

    def select(self, frame: Frame) -> Frame:
        """
        Return the frame with the actors that pass.

        :param frame: frame with all actors.
        :returns: the frame itself if all pass.
        """
        if self.passes_all:
            return frame
        if frame.tags != self._tags:
            self._rows = np.flatnonzero([self.passes(tags) for tags in frame.tags])
            self._tags = frame.tags
        return frame if len(self._rows) == frame.n_actors else frame.select(self._rows)

    def passes(self, tags: Iterable[str]) -> bool:
        """
        Return whether an actor passes.

        :param tags: tags of the actor, as sent.
        """
        lower = {tag.lower() for tag in tags}
        return (not self._desired or not lower.isdisjoint(self._desired)) \
            and lower.isdisjoint(self._undesired)
