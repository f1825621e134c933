# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What a State sensor lets through: the tag filter and the boxes of its configuration.

May know: where tags and boxes are in frames of each generation. Must not: sockets, clocks.
Source of truth: PROTOCOL 3 and 3.1; without boxes v2 keeps an empty list and v1 has no key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

BOXES = 'oriented_bounding_box'


@dataclass(frozen=True, slots=True)
class Selection:
    """
    The filter of one sensor.

    :param desired: lower-case tags of which an actor needs one; empty lets nothing pass.
    :param undesired: lower-case tags that bar an actor.
    :param include_obb: whether boxes are sent.
    """

    desired: frozenset[str]
    undesired: frozenset[str]
    include_obb: bool

    def passes(self, tags: object) -> bool:
        """
        Decide on one actor.

        :param tags: its tags as found in the frame.
        :returns: whether the actor is sent.
        """
        own = lower_tags(tags)
        return not own.isdisjoint(self.desired) and own.isdisjoint(self.undesired)


def lower_tags(tags: object) -> frozenset[str]:
    """
    Read a list of tags; engine names compare without case, and `""` is no tag.

    :param tags: anything.
    :returns: the strings in it, in lower case.
    """
    if not isinstance(tags, (list, tuple)):
        return frozenset()
    return frozenset(tag.lower() for tag in tags if isinstance(tag, str) and tag)


def is_actor(value: object) -> bool:
    """
    Tell an actor of generation v0 from the other members of the frame.

    :param value: a top-level member.
    :returns: whether it is an object with a position.
    """
    return isinstance(value, dict) and 'position' in value


def _state(vehicle: dict[str, object]) -> dict[str, object]:
    state = vehicle.get('state')
    return state if isinstance(state, dict) else vehicle


def actors(members: dict[str, object]) -> Iterator[dict[str, object]]:
    """
    Go through the actors of a frame of any generation.

    :param members: the frame.
    :returns: what carries name and tags of each actor.
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
    Look for the ego.

    :param members: a frame.
    :returns: whether an actor is tagged `ego`.
    """
    return any('ego' in lower_tags(actor.get('tags')) for actor in actors(members))


def select(members: dict[str, object], selection: Selection) -> dict[str, object]:
    """
    Apply a filter.

    :param members: a frame, left as it is.
    :param selection: the filter.
    :returns: a frame with the actors that pass.
    """
    frame = members.get('frame')
    if isinstance(frame, dict):
        kept: object = {key: _select_v2(group, selection) if isinstance(group, list) else group
                        for key, group in frame.items()}
        return {**members, 'frame': kept}
    if isinstance(frame, list):
        return {**members, 'frame': _select_v1(frame, selection)}
    return {key: value for key, value in members.items()
            if not is_actor(value) or _passes(value, selection)}


def _passes(actor: object, selection: Selection) -> bool:
    return isinstance(actor, dict) and selection.passes(_state(actor).get('tags'))


def _select_v2(group: list[object], selection: Selection) -> list[object]:
    kept = [actor for actor in group if _passes(actor, selection)]
    return kept if selection.include_obb else [_without_boxes_v2(actor) for actor in kept]


def _without_boxes_v2(actor: object) -> object:
    if not isinstance(actor, dict):
        return actor
    if isinstance(actor.get('state'), dict):
        return {**actor, 'state': _without_boxes_v2(actor['state'])}
    return {**actor, BOXES: []}


def _select_v1(group: list[object], selection: Selection) -> list[object]:
    kept = [actor for actor in group if _passes(actor, selection)]
    if selection.include_obb:
        return kept
    return [{key: value for key, value in actor.items() if key != BOXES}
            for actor in kept if isinstance(actor, dict)]
