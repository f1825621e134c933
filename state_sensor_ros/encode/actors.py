# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
~/actors: who is there, with the names that they have in ROS.

May know: ActorArray, the cast. Must not know: frames, numbers that change.
"""

from __future__ import annotations

from collections.abc import Sequence

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import Strand
from state_sensor_ros.cdr.templates import Given, Segment, Template
from state_sensor_ros.encode.looks import Column, Look, PerLook
from state_sensor_ros.encode.numbers import stamp_numbers
from state_sensor_ros.encode.tables import header, STAMP
from state_sensor_ros.encode.topics import ACTORS_TOPIC
from state_sensor_ros.naming import Actor, Cast
from state_sensor_ros.settings import Settings


class Actors:
    """One ActorArray for each change of the cast."""

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        self.head = Template(definitions, ACTORS_TOPIC.type_name,
                             {'header': header(settings.global_frame)}, is_message=True)
        self.element = Template(definitions, 'state_sensor_ros/msg/Actor', {
            name: Given(name)
            for name in ('name', 'topic_name', 'frame_id', 'id', 'kind', 'tags')})
        self._head = Segment(self.head, {})
        self._strand = Strand(is_array=True)
        self._elements = PerLook(self._element)

    def encode(self, cast: Cast, stamp_ns: int) -> bytes:
        """Return the message for ``cast``."""
        columns = Column(cast.kinds), Column(cast.tags)
        self._strand.update([self._head, *self._elements.of(cast, columns)])
        self._strand.patch(STAMP, stamp_numbers(stamp_ns))
        begins, ends = self._strand.messages()
        return self._strand.tobytes(begins[0], ends[0])

    def _element(self, actor: Actor, look: Sequence[Look]) -> Segment:
        kind, tags = look
        return Segment(self.element, {
            'name': actor.name, 'topic_name': actor.topic_name, 'frame_id': actor.frame_id,
            'id': actor.id, 'kind': kind, 'tags': tags})
