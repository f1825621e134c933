# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A frame to the serialised bytes of each topic.

May know: which families of topics there are and in which order they are sent. Must not know: how a
message is laid out, publishers, quality of service.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.encode.actors import Actors
from state_sensor_ros.encode.joints import Joints
from state_sensor_ros.encode.lanes import Lanes
from state_sensor_ros.encode.markers import Markers
from state_sensor_ros.encode.numbers import (
    body_numbers,
    first_boxes,
    known_orientations,
    lane_numbers,
    Numbers,
    stamp_numbers,
    wheel_numbers,
)
from state_sensor_ros.encode.odometry import Odometry
from state_sensor_ros.encode.scene import Batch, Family, Messages, Scene
from state_sensor_ros.encode.state_frame import StateFrames
from state_sensor_ros.encode.tables import JOINT, LABEL, LANE_S, STAMP, WHEEL_POSE
from state_sensor_ros.encode.topics import (
    actor_topics,
    ACTORS_TOPIC,
    Demand,
    FRAME_TOPIC,
    MARKERS_TOPIC,
    switched,
    Topic,
)
from state_sensor_ros.encode.transforms import Clock, Transforms
from state_sensor_ros.frame import Bools, Frame, Rows, usable_poses
from state_sensor_ros.naming import Actor, Cast
from state_sensor_ros.settings import Settings

_NOTHING = nullcontext()
_NONE: Bools = np.zeros(0, np.bool_)
_NO_ROWS: Rows = np.zeros(0, np.int64)
_FRAME_ALONE = Demand.of((FRAME_TOPIC,))


def _ignore(kind: str, text: str) -> None:
    """Report nowhere."""


class Encoder:
    """
    Encode frames.

    :param settings: parameters; :meth:`reconfigure` replaces the dynamic ones.
    :param definitions: of the messages.
    :param report: called with a kind, for throttling, and a line about what went wrong.
    """

    def __init__(self, settings: Settings, definitions: Definitions,
                 report: Callable[[str, str], None] = _ignore) -> None:
        self._settings, self._report = settings, report
        self._are_boxes_reported = False
        self._markers = Markers(settings, definitions)
        self._odometry = Odometry(settings, definitions)
        # In the order in which they are sent: who transforms data wants the transform first.
        self._families: tuple[Family, ...] = (
            Clock(definitions), Transforms(settings, definitions),
            self._odometry, Lanes(settings, definitions), Joints(definitions),
            self._markers)
        self._state_frames = StateFrames(settings, definitions)
        self._actors = Actors(settings, definitions)
        self.reconfigure(settings)

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings``, which differ in dynamic parameters only, from the next frame on."""
        self._settings = settings
        self._hear(Demand.nothing())
        self._key: object = None

    def restart(self) -> None:
        """Begin anew, as after a restart of the simulator: displays are emptied first."""
        self._markers.restart()
        self._are_boxes_reported = False
        self._key = None

    def encode(self, frame: Frame, cast: Cast, stamp_ns: int, demand: Demand, *,
               advanced: bool = True) -> Messages:
        """
        Encode what ``demand`` asks for.

        :param cast: of the registry, rows as in ``frame``.
        :param advanced: False for a frame whose clock did not advance: only ~/frame is encoded.
        :returns: the messages in the order in which they are to be sent.
        """
        if demand is not self._demand:
            self._hear(demand)
        messages: Messages = []
        if advanced and self._is_heard:
            messages = self._encode_moving(frame, cast, stamp_ns)
        if self._wanted.frame and frame.boxes is not None and frame.wheels is not None \
                and frame.inputs is not None and frame.looks is not None:
            messages.append((FRAME_TOPIC, self._state_frames.encode(frame, cast, stamp_ns)))
        return messages

    def encode_actors(self, cast: Cast, stamp_ns: int) -> tuple[Topic, bytes]:
        """Encode ~/actors."""
        return ACTORS_TOPIC, self._actors.encode(cast, stamp_ns)

    def encode_delete_all(self, stamp_ns: int) -> tuple[Topic, bytes]:
        """Encode the array of markers that empties displays; may be called from any thread."""
        return MARKERS_TOPIC, self._markers.encode_delete_all(stamp_ns)

    def actor_topics(self, actor: Actor, *, has_lanes: bool,
                     has_wheels: bool) -> tuple[Topic, ...]:
        """Return the topics that ``actor`` has of its own."""
        return actor_topics(self._settings, actor, has_lanes=has_lanes, has_wheels=has_wheels)

    def _hear(self, demand: Demand) -> None:
        """Note what is wanted from now on."""
        self._demand, self._wanted = demand, switched(self._settings, demand)
        self._is_heard = self._wanted not in (Demand.nothing(), _FRAME_ALONE)
        self._wants_wheel_tf = self._wanted.tf and self._settings.wheel_tf
        self._wants_wheels = self._wants_wheel_tf or self._wanted.joint_states != frozenset()

    def _encode_moving(self, frame: Frame, cast: Cast, stamp_ns: int) -> Messages:
        """Encode all but ~/frame, strand by strand."""
        usable = frame.has_pose()
        boxes, wheels = frame.boxes, frame.wheels
        drawable_boxes = usable_wheels = _NONE
        key = [cast, self._wanted, usable.tobytes(), frame.lanes.actor.tobytes(),
               frame.forward_speed is None]
        if boxes is not None and self._wanted.markers:
            drawable_boxes = frame.bodies().drawable_boxes()
            key += (boxes.actor.tobytes(), drawable_boxes.tobytes())
        if wheels is not None and self._wants_wheels:
            if self._wants_wheel_tf:
                usable_wheels = wheels.position_known & usable_poses(
                    wheels.position_xyz, known_orientations(wheels))
            key += (wheels.actor.tobytes(), wheels.wheel.tobytes(), usable_wheels.tobytes())
        if key != self._key:
            self._lay_out(Scene(self._settings, frame, cast, self._wanted, usable, drawable_boxes,
                                usable_wheels))
            if not self._are_boxes_reported and not drawable_boxes.all():
                self._report_boxes(frame, drawable_boxes)
            # An array that empties displays first is for one frame only.
            self._key = None if self._markers.is_transient else key
        if not self._batches:
            return []
        numbers = self._numbers(frame, stamp_ns)
        messages: Messages = []
        for batch in self._batches:
            messages += batch.messages(numbers)
        if self._markers.has_gone:
            topic, array = messages[-1]
            messages[-1] = topic, self._markers.with_deletions(array, stamp_ns)
        return messages

    def _lay_out(self, scene: Scene) -> None:
        parts = [part for family in self._families for part in family.parts(scene)]
        self._batches = [Batch(part) for part in parts]
        self._tables = frozenset(table for part in parts for table in part.strand.tables)
        boxes = scene.frame.boxes
        self._first_boxes = _NO_ROWS if boxes is None or LABEL not in self._tables \
            else first_boxes(boxes)

    def _report_boxes(self, frame: Frame, drawable_boxes: Bools) -> None:
        """Report once in a run that boxes are not drawn."""
        assert frame.boxes is not None
        self._are_boxes_reported = True
        are_left_out = np.flatnonzero(~drawable_boxes)
        row = int(are_left_out[0])
        name = frame.names[int(frame.boxes.actor[row])]
        numbers = ', '.join(f'{number:g}' for number in frame.boxes.rows[row].tolist())
        self._report('boxes', f'boxes that cannot be drawn: {len(are_left_out)}, the first of '
                     f'{name!r}: found {numbers}; expected x y z, a unit quaternion, three '
                     'lengths and three scales above 0 (reported once)')

    def _numbers(self, frame: Frame, stamp_ns: int) -> Numbers:
        """Return the numbers of all tables in use."""
        tables = self._tables
        # Rows that are left out are computed, too, and may be anything.
        with _NOTHING if frame.bodies().is_plain and frame.wheels is None \
                else np.errstate(all='ignore'):
            numbers = body_numbers(frame, self._settings, tables, self._odometry.moving,
                                   self._first_boxes)
            if frame.wheels is not None and (WHEEL_POSE in tables or JOINT in tables):
                numbers |= wheel_numbers(frame.wheels)
        if LANE_S in tables:
            numbers |= lane_numbers(frame.lanes)
        numbers[STAMP] = stamp_numbers(stamp_ns)
        return numbers
