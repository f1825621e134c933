# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Encode a frame to the serialised messages of all topics.

Each frame has a layout: the blocks of messages, with all bytes but the numbers. A layout is kept
until its key changes; a frame with the same key only patches numbers into the blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Protocol

import numpy as np

from state_sensor_ros.bodies import usable_poses
from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.frame import Bools, Frame, Rows
from state_sensor_ros.naming import Actor, ActorList
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.actor_array import ActorArrayEncoder
from state_sensor_ros.topics.base_link import BaseLink
from state_sensor_ros.topics.control_states import ControlStateEncoder
from state_sensor_ros.topics.joint_states import JointStateEncoder
from state_sensor_ros.topics.layout_key import LayoutKey, LayoutRequest
from state_sensor_ros.topics.markers import MarkerEncoder
from state_sensor_ros.topics.message_block import MessageBlock, Messages
from state_sensor_ros.topics.numbers import (
    body_numbers,
    first_boxes,
    known_orientations,
    lane_numbers,
    Numbers,
    stamp_numbers,
    wheel_numbers,
)
from state_sensor_ros.topics.odometry import OdometryEncoder
from state_sensor_ros.topics.state_frame import StateFrameEncoder
from state_sensor_ros.topics.tables import JOINT, LABEL, LANE_S, STAMP, WHEEL_POSE
from state_sensor_ros.topics.topic import (
    actor_topics,
    ACTORS_TOPIC,
    Demand,
    enabled,
    FRAME_TOPIC,
    MARKERS_TOPIC,
    NO_ACTORS,
    Topic,
)
from state_sensor_ros.topics.transforms import ClockEncoder, TransformEncoder

_NOTHING = nullcontext()
_NONE: Bools = np.zeros(0, np.bool_)
_NO_ROWS: Rows = np.zeros(0, np.int64)
_FRAME_ALONE = Demand.of((FRAME_TOPIC,))


def _ignore(kind: str, text: str) -> None:
    """Report nowhere."""


class _TopicEncoder(Protocol):
    """Encoder of one kind of messages."""

    def blocks(self, request: LayoutRequest) -> list[MessageBlock]:
        """Lay out the messages that ``request`` demands."""


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
        self._base_link = BaseLink(settings, report) if settings.ego_frame else None
        self._markers = MarkerEncoder(settings, definitions)
        self._odometry = OdometryEncoder(settings, definitions)
        # In the order in which they are sent: a transform precedes the data that refers to it.
        self._topic_encoders: tuple[_TopicEncoder, ...] = (
            ClockEncoder(definitions), TransformEncoder(settings, definitions),
            self._odometry, ControlStateEncoder(settings, definitions),
            JointStateEncoder(definitions), self._markers)
        self._state_frames = StateFrameEncoder(settings, definitions)
        self._actor_arrays = ActorArrayEncoder(settings, definitions)
        self.reconfigure(settings)

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings``, which differ in dynamic parameters only, from the next frame on."""
        self._settings = settings
        self._set_demand(Demand.nothing())
        self._key: LayoutKey | None = None

    def restart(self) -> None:
        """Start a new run of the simulator: the next markers first empty the displays."""
        self._markers.restart()
        self._are_boxes_reported = False
        self._key = None

    def encode(self, frame: Frame, actor_list: ActorList, stamp_ns: int, demand: Demand, *,
               advanced: bool = True) -> Messages:
        """
        Encode the topics that ``demand`` names.

        :param actor_list: of the registry, rows as in ``frame``.
        :param stamp_ns: ns since the epoch of the messages' clock.
        :param advanced: False for a frame whose clock did not advance: only ~/frame is encoded.
        :returns: the messages in the order in which they are to be sent.
        :raises EncodeError: if a message cannot be laid out.
        """
        if demand is not self._demand and demand != self._demand:
            self._set_demand(demand)
        messages: Messages = []
        if advanced and self._has_more_than_frame:
            messages = self._encode_blocks(frame, actor_list, stamp_ns)
        if self._enabled.frame and frame.boxes is not None and frame.wheels is not None \
                and frame.inputs is not None and frame.appearance is not None:
            messages.append((FRAME_TOPIC, self._state_frames.encode(frame, actor_list, stamp_ns)))
        return messages

    def encode_actors(self, actor_list: ActorList, stamp_ns: int) -> tuple[Topic, bytes]:
        """
        Encode ~/actors.

        :param actor_list: of the registry.
        :param stamp_ns: ns since the epoch of the messages' clock.
        """
        return ACTORS_TOPIC, self._actor_arrays.encode(actor_list, stamp_ns)

    def encode_delete_all(self, stamp_ns: int) -> tuple[Topic, bytes]:
        """
        Encode the array of markers that empties displays; may be called from any thread.

        :param stamp_ns: ns since the epoch of the messages' clock.
        """
        return MARKERS_TOPIC, self._markers.encode_delete_all(stamp_ns)

    def actor_topics(self, actor: Actor, *, has_lanes: bool,
                     has_wheels: bool) -> tuple[Topic, ...]:
        """
        Return the topics that an actor has of its own, with the current settings.

        :param actor: whose ``topic_name`` is a part of their names.
        :param has_lanes: whether a frame had a lane state of the actor.
        :param has_wheels: whether the actor is a vehicle.
        """
        return actor_topics(self._settings, actor, has_lanes=has_lanes, has_wheels=has_wheels)

    def _set_demand(self, demand: Demand) -> None:
        self._demand, self._enabled = demand, enabled(self._settings, demand)
        self._has_more_than_frame = self._enabled not in (Demand.nothing(), _FRAME_ALONE)
        self._needs_wheel_tf = self._enabled.tf and self._settings.wheel_tf
        self._needs_wheels = self._needs_wheel_tf or self._enabled.joint_states != NO_ACTORS

    def _encode_blocks(self, frame: Frame, actor_list: ActorList, stamp_ns: int) -> Messages:
        """Encode all topics but ~/frame."""
        bodies, boxes, wheels = frame.bodies(), frame.boxes, frame.wheels
        usable = bodies.usable
        drawable_boxes = usable_wheels = _NONE
        parts = [self._enabled, usable.tobytes(), frame.lanes.actor.tobytes(),
                 frame.forward_speed is None]
        if boxes is not None and self._enabled.markers:
            drawable_boxes = bodies.drawable_boxes()
            parts += (boxes.actor.tobytes(), drawable_boxes.tobytes())
        if wheels is not None and self._needs_wheels:
            if self._needs_wheel_tf:
                usable_wheels = wheels.position_known & usable_poses(
                    wheels.position_xyz, known_orientations(wheels))
            parts += (wheels.actor.tobytes(), wheels.wheel.tobytes(), usable_wheels.tobytes())
        key = LayoutKey(actor_list, tuple(parts))
        if key != self._key:
            self._lay_out(LayoutRequest(self._settings, frame, actor_list, self._enabled, usable,
                                        drawable_boxes, usable_wheels))
            if not self._are_boxes_reported and not drawable_boxes.all():
                self._report_boxes(frame, drawable_boxes)
            # An array that first empties displays is for one frame only.
            self._key = None if self._markers.is_transient else key
        if not self._blocks:
            return []
        numbers = self._numbers(frame, actor_list.i_ego, stamp_ns)
        messages: Messages = []
        for block in self._blocks:
            messages += block.messages(numbers)
        if self._markers.has_gone:
            topic, array = messages[-1]
            messages[-1] = topic, self._markers.with_deletions(array, stamp_ns)
        return messages

    def _lay_out(self, request: LayoutRequest) -> None:
        self._blocks = [block for encoder in self._topic_encoders
                        for block in encoder.blocks(request)]
        self._tables = frozenset(table for block in self._blocks for table in block.tables)
        boxes = request.frame.boxes
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

    def _numbers(self, frame: Frame, i_ego: int, stamp_ns: int) -> Numbers:
        """Return the numbers of all tables in use."""
        tables = self._tables
        base_link = None if self._base_link is None or i_ego < 0 \
            else (i_ego, self._base_link.offset(frame, i_ego))
        # Rows that are not sent are computed, too; their values have no meaning.
        with _NOTHING if frame.bodies().is_plain and frame.wheels is None \
                else np.errstate(all='ignore'):
            numbers = body_numbers(frame, self._settings, tables, self._odometry.moving,
                                   self._first_boxes, base_link)
            if frame.wheels is not None and (WHEEL_POSE in tables or JOINT in tables):
                numbers |= wheel_numbers(frame.wheels, base_link)
        if LANE_S in tables:
            numbers |= lane_numbers(frame.lanes)
        numbers[STAMP] = stamp_numbers(stamp_ns)
        return numbers
