# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Odometry of each actor, and of the ego under a name that never changes.

May know: nav_msgs. Must not know: where numbers come from, in which axes the twist is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Given, Segment, Slot, Template
from state_sensor_ros.encode.scene import OwnTopics, Part, Scene
from state_sensor_ros.encode.tables import (
    FORWARD_VARIANCE,
    header,
    POSE,
    pose,
    TWIST,
    twist,
    UNKNOWN_VARIANCE,
)
from state_sensor_ros.encode.topics import EGO_ODOMETRY_TOPIC, ODOMETRY
from state_sensor_ros.frame import Rows
from state_sensor_ros.settings import Settings


class Odometry:
    """One message for each actor that somebody listens to."""

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        self.template = _template(settings, definitions, settings.twist_covariance_diagonal)
        self.forward_only = _template(
            settings, definitions, (Slot(FORWARD_VARIANCE, 0), *[UNKNOWN_VARIANCE] * 5))
        self._topics = _own_topics(self.template)
        self._forward_only_topics = _own_topics(self.forward_only)
        # (K,) int64, rows of the actors whose twist is laid out, None for all.
        self.moving: Rows | None = None

    def parts(self, scene: Scene) -> list[Part]:
        """Lay out the messages of those that somebody listens to."""
        demand, cast, usable = scene.demand, scene.cast, scene.usable
        topics = self._topics if scene.frame.forward_speed is None else self._forward_only_topics
        with_ego = demand.ego_odometry and cast.i_ego >= 0 and bool(usable[cast.i_ego])
        parts = topics.parts(cast, topics.wanted(cast, demand.odometry) & usable, (POSE,),
                             np.arange(len(usable)), with_ego=with_ego)
        self.moving = parts[0].rows.get(POSE) if parts else None
        return parts


def _own_topics(template: Template) -> OwnTopics:
    return OwnTopics('odometry', ODOMETRY, EGO_ODOMETRY_TOPIC, lambda actor, *_: Segment(
        template, {'child': actor.frame_id}))


def _template(settings: Settings, definitions: Definitions,
              twist_variances: Sequence[float | Slot]) -> Template:
    return Template(definitions, ODOMETRY, {
        'header': header(settings.global_frame), 'child_frame_id': Given('child'),
        'pose': {'pose': pose(POSE), 'covariance': _diagonal(settings.pose_covariance_diagonal)},
        'twist': {'twist': twist(TWIST, 0), 'covariance': _diagonal(twist_variances)},
    }, is_message=True)


def _diagonal(variances: Sequence[float | Slot]) -> list[float | Slot]:
    """Return a 6x6 matrix, row by row, as REP-103 orders covariances."""
    matrix: list[float | Slot] = [0.0] * 36
    matrix[::7] = variances
    return matrix
