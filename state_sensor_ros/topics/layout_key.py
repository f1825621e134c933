# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The request to lay out the messages of a frame, and the key under which a layout is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from state_sensor_ros.frame import Bools, Frame
from state_sensor_ros.naming import ActorList
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.topic import Demand


class LayoutKey(NamedTuple):
    """
    All that a layout depends on: with an equal key only numbers differ.

    ``actor_list`` is compared by identity, as it defines no equality. That is correct because it
    is immutable and the key references it: the same object still has the same actors, and no other
    object can have its address. A copy with equal actors only costs a new layout. It is fast
    because the registry returns the same object until an actor changes: the comparison does not
    depend on the number of actors. ``parts``, bytes and texts, are compared by value.
    """

    actor_list: ActorList
    parts: tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LayoutRequest:
    """
    A frame whose messages are to be laid out.

    ``frame`` whose numbers are not used; ``actor_list`` its N actors; ``demand`` without the
    topics that ``settings`` switch off; ``usable`` (N,) bool, actors with a pose;
    ``drawable_boxes`` (M,) bool, boxes with a pose and a size, ``usable_wheels`` (W,) bool, wheels
    with a pose, both (0,) where not demanded.
    """

    settings: Settings
    frame: Frame
    actor_list: ActorList
    demand: Demand
    usable: Bools
    drawable_boxes: Bools
    usable_wheels: Bools
