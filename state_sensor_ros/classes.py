# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
What an actor is: its kind, its class by its tags, and whether it is the ego.

The tags of each class follow doc/reference/outputs.md#objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from state_sensor_ros.frame import Frame, Kinds, Rows

# Tag of the actor that the sensor belongs to, and of a copy of an actor that is elsewhere.
EGO_TAG, GHOST_TAG = 'ego', 'ghost'


class Kind(IntEnum):
    """
    Kind of an actor as the simulator groups them.

    >>> import state_sensor_ros as sensor
    >>> sensor.Kind(1), sensor.Kind.VEHICLE == 1
    (<Kind.VEHICLE: 1>, True)
    """

    OBJECT = 0
    VEHICLE = 1


@dataclass(frozen=True, slots=True)
class ObjectClass:
    name: str  # in vision_msgs and in the parameter ``object_classes``
    tags: frozenset[str]  # in lower case: an actor with one of them has this class
    # autoware, derived: number of the class in ObjectClassification and in
    # derived_object_msgs/Object.
    autoware: int
    derived: int
    is_motor_vehicle: bool  # whether its predicted paths are longer
    size_xyz: tuple[float, float, float]  # length, width, height without a box, m; 0: unknown


# The first class that has a tag of the actor counts.
CLASSES = (
    ObjectClass('person', frozenset(('pedestrian', 'walker', 'person')), 7, 4, False,
                (0.6, 0.6, 1.75)),
    ObjectClass('cyclist', frozenset(('bicycle', 'cyclist')), 6, 5, False, (1.8, 0.6, 1.7)),
    ObjectClass('motorcycle', frozenset(('motorcycle',)), 5, 8, True, (2.2, 0.8, 1.6)),
    ObjectClass('bus', frozenset(('bus',)), 3, 9, True, (12.0, 2.55, 3.2)),
    ObjectClass('truck', frozenset(('truck',)), 2, 7, True, (8.0, 2.5, 3.2)),
    ObjectClass('trailer', frozenset(('trailer',)), 4, 9, True, (8.0, 2.5, 3.2)),
    ObjectClass('car', frozenset(('car',)), 1, 6, True, (4.6, 1.85, 1.5)),
    ObjectClass('unknown', frozenset(), 0, 0, False, (0.0, 0.0, 0.0)))
CLASS_NAMES = tuple(object_class.name for object_class in CLASSES)
PERSON, CAR, UNKNOWN = 0, len(CLASSES) - 2, len(CLASSES) - 1


def class_of(kind: int, tags: Iterable[str]) -> int:
    lower = {tag.lower() for tag in tags}
    for i, object_class in enumerate(CLASSES):
        if not lower.isdisjoint(object_class.tags):
            return i
    return CAR if kind == Kind.VEHICLE else UNKNOWN


# Cached: the actors of a stream have few different tags.
cached_class_of = lru_cache(maxsize=1024)(class_of)


def classes_of(kinds: Iterable[int], tags: Iterable[tuple[str, ...]]) -> Kinds:
    """Return (N,) uint8, the class of each actor, index in :data:`CLASSES`."""
    return np.fromiter(map(cached_class_of, kinds, tags), np.uint8)


def has_ego_tag(tags: Iterable[str], ego_tag: str = EGO_TAG) -> bool:
    """
    Return whether the tags of an actor mark an ego.

    :param tags: tags as sent; compared as a whole, in any case.
    :param ego_tag: tag that marks the ego, in any case.
    """
    return ego_tag.lower() in map(str.lower, tags)


def ego_row(tags: Iterable[Iterable[str]], ego_tag: str = EGO_TAG) -> int | None:
    """Return the row of the ego: of several actors with its tag, the first."""
    return next((row for row, actor_tags in enumerate(tags) if has_ego_tag(actor_tags, ego_tag)),
                None)


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
