# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Numbers of a result that are assumed, derived or unknown, and of how many actors."""

from __future__ import annotations

from collections import Counter

import numpy as np

from state_sensor_ros.classes import cached_class_of, CLASSES, UNKNOWN
from state_sensor_ros.frame import Bools, DERIVED_SIZE, DERIVED_VELOCITY, Frame
from state_sensor_ros.texts import counted


class Assumptions:
    """Take note of frames; an actor counts once for each kind of number."""

    def __init__(self) -> None:
        self._names: tuple[set[str], ...] = set(), set(), set()
        self._classes: dict[str, int] = {}
        self._last: tuple[object, bytes] | None = None

    def add(self, frame: Frame) -> None:
        """Take note of a frame with its boxes."""
        has_box: Bools = np.zeros(frame.n_actors, np.bool_)
        if frame.boxes is not None:
            has_box[frame.boxes.actor] = True
        assumed = frame.is_derived(DERIVED_SIZE)
        velocities = np.isnan(frame.forward_speed) if frame.forward_speed is not None \
            else np.isnan(frame.velocity_xyz).any(axis=1)
        derived = frame.is_derived(DERIVED_VELOCITY)
        flags = np.stack((~has_box | assumed, derived & ~velocities,
                          velocities)) & frame.has_pose()
        key = frame.names, flags.tobytes()
        if key == self._last:
            return
        self._last = key
        for which, names in zip(flags, self._names, strict=True):
            for row in which.nonzero()[0].tolist():
                class_ = cached_class_of(int(frame.kinds[row]), frame.tags[row])
                # Actors without a class and a box are no objects.
                if class_ != UNKNOWN or has_box[row]:
                    names.add(frame.names[row])
                    self._classes[frame.names[row]] = class_

    @property
    def lines(self) -> list[str]:
        """Return a line for each kind of number that is not the source's."""
        texts = ('sizes of {} are assumed by class', 'velocities of {} are derived from positions',
                 'velocities of {} are unknown')
        return [text.format(self._listed(names))
                for text, names in zip(texts, self._names, strict=True) if names]

    def _listed(self, names: set[str]) -> str:
        counts = Counter(CLASSES[self._classes[name]].name for name in names)
        listed = ', '.join(f'{name} {count}' for name, count in sorted(counts.items()))
        return f'{counted(len(names), "actor")} ({listed})'
