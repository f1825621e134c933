# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Lane state of each vehicle that carries one, of the ego, and of all together.

May know: ControlStateStamped, ControlStateArray. Must not know: where numbers come from.
"""

from __future__ import annotations

from itertools import compress

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import Strand
from state_sensor_ros.cdr.templates import Given, Segment, Template
from state_sensor_ros.encode.scene import OwnTopics, Part, PerActor, rows_where, Scene
from state_sensor_ros.encode.tables import Fields, header, lane, LANE_CHANGE, LANE_ID, LANE_S
from state_sensor_ros.encode.topics import (
    CONTROL_STATE,
    CONTROL_STATES_TOPIC,
    EGO_CONTROL_STATE_TOPIC,
)
from state_sensor_ros.naming import Actor
from state_sensor_ros.settings import Settings

_TABLES = (LANE_CHANGE, LANE_ID, LANE_S)


class Lanes:
    """One message for each vehicle that somebody listens to, and one for all of them."""

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        prototype: Fields = {'header': header(Given('frame')), 'name': Given('name'),
                             'control_state': lane()}
        self.message = Template(definitions, CONTROL_STATE, prototype, is_message=True)
        self.element = Template(definitions, CONTROL_STATE, prototype)
        self.head = Template(definitions, CONTROL_STATES_TOPIC.type_name,
                             {'header': header(settings.global_frame)}, is_message=True)
        self._topics = OwnTopics(
            'control_state', CONTROL_STATE, EGO_CONTROL_STATE_TOPIC,
            lambda actor, *_: Segment(self.message, _names(actor)))
        self._head = Segment(self.head, {})
        self._elements = PerActor(lambda actor, *_: Segment(self.element, _names(actor)))
        self._array = Strand(is_array=True)

    def parts(self, scene: Scene) -> list[Part]:
        """Lay out the messages of those that somebody listens to, then the array."""
        demand, cast, owners = scene.demand, scene.cast, scene.frame.lanes.actor
        present = np.zeros(len(scene.usable), np.bool_)
        present[owners] = True
        present &= scene.usable
        with_ego = demand.ego_control_state and cast.i_ego >= 0 and bool(present[cast.i_ego])
        parts = self._topics.parts(
            cast, self._topics.wanted(cast, demand.control_state) & present, _TABLES, owners,
            with_ego=with_ego)
        if demand.control_states and present.any():
            elements = compress(self._elements.of(cast), present.tobytes())
            self._array.update([self._head, *elements])
            parts.append(Part(self._array, rows_where(present[owners], *_TABLES),
                              [CONTROL_STATES_TOPIC]))
        return parts


def _names(actor: Actor) -> dict[str, str]:
    return {'frame': actor.frame_id, 'name': actor.name}
