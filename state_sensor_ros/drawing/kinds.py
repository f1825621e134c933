# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Kinds of actors that are drawn differently."""

from __future__ import annotations

from state_sensor_ros.frame import KIND_VEHICLE

VEHICLE, PEDESTRIAN, LIGHT, SIGN, OBJECT = range(5)
# In the order of the constants; the plural has an `s`.
KIND_NAMES = ('vehicle', 'pedestrian', 'traffic light', 'speed limit sign', 'object')
# Tags that name a kind, in lower case.
_BY_TAG = {'pedestrian': PEDESTRIAN, 'traffic_light': LIGHT, 'speed_limit_sign': SIGN}


def kind_of(frame_kind: int, tags: tuple[str, ...]) -> int:
    """
    Return the kind of an actor.

    :param frame_kind: KIND_VEHICLE or KIND_OBJECT, as :class:`Frame` has it.
    :param tags: as sent.
    :returns: VEHICLE … OBJECT; a tag that names a kind decides.
    """
    for tag in tags:
        kind = _BY_TAG.get(tag.lower())
        if kind is not None:
            return kind
    return VEHICLE if frame_kind == KIND_VEHICLE else OBJECT
