# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Wheels as joints: how far each has turned and how fast it turns.

May know: sensor_msgs. Must not know: where numbers come from.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Each, Given, Segment, Slot, Template
from state_sensor_ros.encode.scene import OwnTopics, Part, Scene
from state_sensor_ros.encode.tables import header, JOINT
from state_sensor_ros.encode.topics import JOINT_STATES
from state_sensor_ros.naming import Actor

_NOBODY: frozenset[str] = frozenset()


class Joints:
    """One message for each vehicle that somebody listens to."""

    def __init__(self, definitions: Definitions) -> None:
        self.template = Template(definitions, JOINT_STATES, {
            'header': header(''), 'name': Given('names'),
            'position': Each('wheels', Slot(JOINT, 0)),
            'velocity': Each('wheels', Slot(JOINT, 1))}, is_message=True)
        # Sets of wheels that were met, by number; vehicles share a handful of them.
        self._numbers: dict[bytes, int] = {}
        self._sets: list[bytes] = []
        self._topics = OwnTopics('joint_states', JOINT_STATES, None, self._segment)

    def parts(self, scene: Scene) -> list[Part]:
        """Lay out the messages of those that somebody listens to."""
        cast, wheels, wanted = scene.cast, scene.frame.wheels, scene.demand.joint_states
        if wheels is None or wanted == _NOBODY:
            return []
        first = np.searchsorted(wheels.actor, np.arange(len(scene.usable) + 1))
        present = scene.usable & (first[1:] > first[:-1])
        data = wheels.wheel.tobytes()
        codes = [self._number(data[begin:end]) for begin, end in pairwise(first.tolist())]
        return self._topics.parts(
            cast, self._topics.wanted(cast, wanted) & present, (JOINT,), wheels.actor,
            with_ego=False, codes=np.array(codes, np.int64))

    def _number(self, wheels: bytes) -> int:
        if wheels not in self._numbers:
            self._numbers[wheels] = len(self._sets)
            self._sets.append(wheels)
        return self._numbers[wheels]

    def _segment(self, actor: Actor, code: int, before: Segment | None) -> Segment:
        wheels = self._sets[code]
        return Segment(self.template, {
            'names': [f'{actor.topic_name}/wheel_{wheel}' for wheel in wheels],
            'wheels': [{}] * len(wheels)})
