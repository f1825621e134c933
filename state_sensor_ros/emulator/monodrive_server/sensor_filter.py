# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The filter of a State sensor: actors are selected by tags, and boxes are sent or left out.

Without boxes, actors of v2 have an empty list and actors of v1 have no key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

BOXES = 'oriented_bounding_box'


@dataclass(frozen=True, slots=True)
class SensorFilter:
    """
    The filter of one sensor.

    :param desired: lower-case tags; an actor needs one of them, so an empty set selects none.
    :param undesired: lower-case tags that exclude an actor.
    :param include_obb: whether boxes are sent.
    """

    desired: frozenset[str]
    undesired: frozenset[str]
    include_obb: bool

    def passes(self, actor: object) -> bool:
        """
        Return whether the tags of an actor select it.

        :param actor: an element of a frame of any generation.
        :returns: False for anything but an object with suitable tags.
        """
        if not isinstance(actor, dict):
            return False
        tags = lower_tags(_state(actor).get('tags'))
        return not tags.isdisjoint(self.desired) and tags.isdisjoint(self.undesired)


def lower_tags(tags: object) -> frozenset[str]:
    """
    Return tags in lower case: engine names compare without case, and `""` is not a tag.

    :param tags: the value of a member `tags`; anything but a list has no tags.
    :returns: the strings in it, in lower case.
    """
    if not isinstance(tags, (list, tuple)):
        return frozenset()
    return frozenset(tag.lower() for tag in tags if isinstance(tag, str) and tag)


def is_actor(value: object) -> bool:
    """
    Return whether a top-level member of a frame is an actor of generation v0.

    :param value: the member.
    :returns: whether it is an object with a position.
    """
    return isinstance(value, dict) and 'position' in value


def _state(vehicle: dict[str, object]) -> dict[str, object]:
    state = vehicle.get('state')
    return state if isinstance(state, dict) else vehicle


def actors(members: dict[str, object]) -> Iterator[dict[str, object]]:
    """
    Iterate over the actors of a frame of any generation.

    :param members: the members of the frame.
    :returns: the object with name and tags of each actor.
    """
    frame = members.get('frame')
    if isinstance(frame, dict):
        groups = (frame.get('objects'), frame.get('vehicles'))
    elif 'frame' in members:
        groups = (frame, None)
    else:
        groups = ([value for value in members.values() if is_actor(value)], None)
    for group in groups:
        if isinstance(group, list):
            yield from (_state(actor) for actor in group if isinstance(actor, dict))


def has_ego(members: dict[str, object]) -> bool:
    """
    Return whether a frame has an ego.

    :param members: the members of the frame.
    :returns: whether an actor has the tag `ego`.
    """
    return any('ego' in lower_tags(actor.get('tags')) for actor in actors(members))


def filtered(members: dict[str, object], sensor_filter: SensorFilter) -> dict[str, object]:
    """
    Apply a filter to a frame.

    :param members: the members of the frame; not modified.
    :param sensor_filter: the filter.
    :returns: the members with the selected actors only.
    """
    frame = members.get('frame')
    if isinstance(frame, dict):
        kept: object = {key: _filter_list(group, sensor_filter, _without_boxes_v2)
                        if isinstance(group, list) else group for key, group in frame.items()}
        return {**members, 'frame': kept}
    if isinstance(frame, list):
        return {**members, 'frame': _filter_list(frame, sensor_filter, _without_boxes_v1)}
    return {key: value for key, value in members.items()
            if not is_actor(value) or sensor_filter.passes(value)}


def _filter_list(group: list[dict[str, object]], sensor_filter: SensorFilter,
                 without_boxes: Callable[[dict[str, object]], object]) -> list[object]:
    kept = [actor for actor in group if sensor_filter.passes(actor)]
    return list(kept) if sensor_filter.include_obb else [without_boxes(actor) for actor in kept]


def _without_boxes_v2(actor: dict[str, object]) -> dict[str, object]:
    state = actor.get('state')
    if isinstance(state, dict):
        return {**actor, 'state': {**state, BOXES: []}}
    return {**actor, BOXES: []}


def _without_boxes_v1(actor: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in actor.items() if key != BOXES}
