# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
/tf: each actor in the global frame, and its wheels in its own; /clock.

May know: tf2_msgs, rosgraph_msgs, names of frames. Must not know: where numbers come from.
"""

from __future__ import annotations

from itertools import compress

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import Strand
from state_sensor_ros.cdr.templates import Given, Segment, Slot, Template
from state_sensor_ros.encode.scene import Part, PerActor, rows_where, Scene
from state_sensor_ros.encode.tables import header, POSE, STAMP, WHEEL_POSE, xyz, xyzw
from state_sensor_ros.encode.topics import CLOCK_TOPIC, TF_TOPIC
from state_sensor_ros.frame import Bools, Wheels
from state_sensor_ros.naming import Actor, Cast
from state_sensor_ros.settings import Settings


class Clock:
    """The stamp itself."""

    def __init__(self, definitions: Definitions) -> None:
        self.template = Template(definitions, CLOCK_TOPIC.type_name, {
            'clock': {'sec': Slot(STAMP, 0), 'nanosec': Slot(STAMP, 1)}}, is_message=True)
        self._strand = Strand()
        self._strand.update([Segment(self.template, {})])

    def parts(self, scene: Scene) -> list[Part]:
        """Lay out /clock."""
        return [Part(self._strand, {}, [CLOCK_TOPIC])] if scene.demand.clock else []


class Transforms:
    """One TFMessage with all transforms of a frame."""

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        self._prefix = settings.frame_prefix
        self.head = Template(definitions, TF_TOPIC.type_name, {}, is_message=True)
        stamped = 'geometry_msgs/msg/TransformStamped'
        self.actor = Template(definitions, stamped, {
            'header': header(settings.global_frame), 'child_frame_id': Given('child'),
            'transform': {'translation': xyz(POSE, 0), 'rotation': xyzw(POSE, 3)}})
        self.wheel = Template(definitions, stamped, {
            'header': header(Given('parent')), 'child_frame_id': Given('child'),
            'transform': {'translation': xyz(WHEEL_POSE, 0), 'rotation': xyzw(WHEEL_POSE, 3)}})
        self._head = Segment(self.head, {})
        self._actors = PerActor(lambda actor, *_: Segment(self.actor, {'child': actor.frame_id}))
        self._wheels: PerActor[dict[int, Segment]] = PerActor(lambda actor, *_: {})
        self._strand = Strand(is_array=True)

    def parts(self, scene: Scene) -> list[Part]:
        """Lay out /tf, which is not sent without a transform in it."""
        cast, chosen = scene.cast, scene.usable
        if scene.settings.tf == 'ego':
            chosen = chosen & (np.arange(len(chosen)) == cast.i_ego)
        if not scene.demand.tf or not chosen.any():
            return []
        segments = [self._head, *compress(self._actors.of(cast), chosen.tobytes())]
        rows = rows_where(chosen, POSE)
        wheels = scene.frame.wheels
        if wheels is not None and scene.settings.wheel_tf:
            are_placed = chosen[wheels.actor] & scene.usable_wheels
            segments += self._placed(cast, wheels, are_placed)
            rows |= rows_where(are_placed, WHEEL_POSE)
        self._strand.update(segments)
        return [Part(self._strand, rows, [TF_TOPIC])]

    def _placed(self, cast: Cast, wheels: Wheels, are_placed: Bools) -> list[Segment]:
        kept = self._wheels.of(cast)
        return [self._wheel(cast.actors[i], kept[i], wheel) for i, wheel in zip(
            wheels.actor[are_placed].tolist(), wheels.wheel[are_placed].tolist(), strict=True)]

    def _wheel(self, actor: Actor, own: dict[int, Segment], wheel: int) -> Segment:
        if wheel not in own:
            own[wheel] = Segment(self.wheel, {
                'parent': actor.frame_id,
                'child': f'{self._prefix}{actor.topic_name}/wheel_{wheel}'})
        return own[wheel]
