# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Encode the topics for autonomy stacks: objects once for each frame, then each topic's messages.

As in :mod:`state_sensor_ros.topics.encoder`, the layout of the messages is kept until its key
changes, and numbers are patched into it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import MessageInstance, Table, Template, Values
from state_sensor_ros.frame import Bools, Frame, Kinds
from state_sensor_ros.naming import Actor, ActorList
from state_sensor_ros.objects.object_maker import ObjectMaker, Objects
from state_sensor_ros.objects.predicted_paths import ConstantPaths, Paths, TruePaths
from state_sensor_ros.payloads import FutureFrame
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.layout_key import LayoutKey
from state_sensor_ros.topics.message_block import MessageBlock, Messages
from state_sensor_ros.topics.numbers import Numbers, stamp_numbers
from state_sensor_ros.topics.per_actor import Column, PerActor
from state_sensor_ros.topics.stacks.autoware import AutowareObjects
from state_sensor_ros.topics.stacks.derived_objects import DerivedObjects
from state_sensor_ros.topics.stacks.ego_state import EgoState, steering_numbers, tyre_angle
from state_sensor_ros.topics.stacks.output_tables import (
    CENTRE,
    CENTRE_AGAIN,
    CHANGE_VARIANCE,
    GLOBAL_ACCELERATION,
    GLOBAL_TWIST,
    IS_STATIONARY,
    OWN_ACCELERATION,
    OWN_TWIST,
    PATH,
    SIZE,
    SPEED_VARIANCE,
)
from state_sensor_ros.topics.stacks.output_topics import EGO_TOPICS, OBJECT_TOPICS, output_topics
from state_sensor_ros.topics.stacks.vision import VisionObjects
from state_sensor_ros.topics.tables import STAMP, UNKNOWN_VARIANCE
from state_sensor_ros.topics.topic import Demand, Topic
from state_sensor_ros.topics.verification import Sample, sample_of

# An object that is slower stands still, m/s.
_STATIONARY_SPEED = 0.1


def _ignore(kind: str, text: str) -> None:
    """Report nowhere."""


class _ObjectMessages(Protocol):
    """Templates of one topic of objects: a head, and an element for each object."""

    topic: Topic
    head: Template
    element: Template

    def values(self, actor: Actor, class_: int, n_poses: int) -> Values:
        """Return the givens of an element."""


class _ObjectTopic:
    """The messages of one topic of objects."""

    def __init__(self, messages: _ObjectMessages) -> None:
        self.messages = messages
        self._head = MessageInstance(messages.head, {})
        self._elements = PerActor(self._element)
        self._buffer = PatchBuffer(is_array=True)

    def block(self, actor_list: ActorList, are_objects: Bools, classes: bytes,
              n_poses: bytes) -> MessageBlock:
        """
        Lay out the message.

        :param are_objects: (N,) bool, of the actors.
        :param classes: (N,) of the actors, index in CLASSES.
        :param n_poses: (N,) lengths of predicted paths.
        """
        elements = self._elements.of(actor_list, Column(classes), Column(n_poses))
        self._buffer.update([self._head, *compress(elements, are_objects.tobytes())])
        return MessageBlock(self._buffer, {}, [self.messages.topic])

    def _element(self, actor: Actor, appearance: tuple[Any, ...], _: object) -> MessageInstance:
        return MessageInstance(self.messages.element, self.messages.values(actor, *appearance))


class OutputEncoder:
    """
    Encode the topics of ``outputs``.

    :param settings: parameters; :meth:`reconfigure` replaces the dynamic ones.
    :param definitions: of the messages.
    :param report: called with a kind, for throttling, and a line about what was found.
    """

    def __init__(self, settings: Settings, definitions: Definitions,
                 report: Callable[[str, str], None] = _ignore) -> None:
        self._objects = ObjectMaker(settings)
        self._ego = EgoState(settings, definitions, report) \
            if 'autoware' in settings.outputs else None
        self._ego_topics = () if self._ego is None else EGO_TOPICS
        self._vision = VisionObjects(settings, definitions) \
            if 'vision' in settings.outputs else None
        # By whether the source measures the speed forward and no other velocity.
        self._topics = {is_forward_only: [_ObjectTopic(each) for each in self._messages(
            settings, definitions, is_forward_only)] for is_forward_only in (False, True)}
        self._variance = settings.twist_covariance_diagonal[0]
        self._constant_paths, self._true_paths = ConstantPaths(), TruePaths()
        self._are_labels_sent = False
        self._key: LayoutKey | None = None
        self._blocks: list[MessageBlock] = []
        self._tables: frozenset[Table] = frozenset()

    def _messages(self, settings: Settings, definitions: Definitions,
                  is_forward_only: bool) -> list[_ObjectMessages]:
        messages: list[_ObjectMessages] = []
        if self._ego is not None:
            messages += [AutowareObjects(kind, settings, definitions,
                                         is_forward_only=is_forward_only)
                         for kind in OBJECT_TOPICS if kind in settings.autoware_objects]
        if 'derived_objects' in settings.outputs:
            messages.append(DerivedObjects(settings, definitions))
        if self._vision is not None:
            messages.append(self._vision)
        return messages

    def samples(self) -> list[Sample]:
        """Return a sample of each message, for verification at start."""
        found = [sample_of((topic.messages.head, topic.messages.element, topic.messages.element))
                 for topics in self._topics.values() for topic in topics]
        if self._ego is not None:
            found += [sample_of((template,)) for templates in self._ego.templates.values()
                      for template in templates.values()]
        if self._vision is not None:
            found.append(sample_of((self._vision.labels,)))
        return found

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings``, which differ in dynamic parameters only, from the next frame on."""
        self._objects.reconfigure(settings)
        self._key = None

    def restart(self) -> None:
        """Start a new run of the simulator: its first frame has no accelerations."""
        self._objects.restart()
        if self._ego is not None:
            self._ego.restart()

    def encode(self, frame: Frame, actor_list: ActorList, stamp_ns: int, demand: Demand,
               upcoming: FutureFrame | None) -> Messages:
        """
        Encode the topics that ``demand`` names, of a frame whose clock has advanced.

        :param frame: with boxes, wheels and inputs, where these topics have a subscriber.
        :param actor_list: of the registry, rows as in ``frame``.
        :param stamp_ns: ns since the epoch of the messages' clock.
        :param upcoming: the frame in its recording, linked with those that follow; None of a live
            stream.
        :returns: the messages in the order in which they are to be sent.
        """
        messages: Messages = []
        if self._vision is not None and not self._are_labels_sent:
            self._are_labels_sent = True
            messages.append(self._vision.encode_labels(stamp_ns))
        is_forward_only = frame.forward_speed is not None
        topics = [topic for topic in self._topics[is_forward_only]
                  if demand.has_other(topic.messages.topic)]
        i_ego = actor_list.i_ego
        has_ego = i_ego >= 0 and any(map(demand.has_other, self._ego_topics)) \
            and bool(frame.has_pose()[i_ego])
        if not topics and not has_ego:
            self.restart()
            return messages
        parts: list[object] = [demand, is_forward_only]
        numbers: Numbers = {STAMP: stamp_numbers(stamp_ns)}
        objects = paths = None
        classes: Kinds = np.zeros(frame.n_actors, np.uint8)
        are_objects: Bools = np.zeros(frame.n_actors, np.bool_)
        n_poses: npt.NDArray[np.uint8] = np.zeros(frame.n_actors, np.uint8)
        if topics:
            objects = self._objects.make(frame, actor_list)
            are_objects[objects.rows], classes[objects.rows] = True, objects.classes
            if any(topic.messages.topic == OBJECT_TOPICS['predicted'] for topic in topics):
                paths = self._paths(objects, actor_list, upcoming)
                n_poses[objects.rows] = paths.lengths
        else:
            self._objects.restart()
        angle = np.nan
        if has_ego and self._ego is not None:
            numbers |= self._ego.numbers(frame, i_ego)
            angle = tyre_angle(frame, i_ego)
            numbers |= steering_numbers(angle)
        elif self._ego is not None:
            self._ego.restart()
        has_steering = bool(np.isfinite(angle))
        key = LayoutKey(actor_list, (
            *parts, has_ego, has_steering, are_objects.tobytes(), classes.tobytes(),
            n_poses.tobytes()))
        if key != self._key:
            self._key = key
            self._blocks = [topic.block(actor_list, are_objects, classes.tobytes(),
                                        n_poses.tobytes()) for topic in topics]
            if has_ego and self._ego is not None:
                self._blocks += self._ego.blocks(demand, is_forward_only=is_forward_only,
                                                 has_steering=has_steering)
            self._tables = frozenset(table for block in self._blocks for table in block.tables)
        if objects is not None:
            numbers |= self._object_numbers(frame, objects, paths)
        for block in self._blocks:
            messages += block.messages(numbers)
        return messages

    def _paths(self, objects: Objects, actor_list: ActorList,
               upcoming: FutureFrame | None) -> Paths:
        if upcoming is None:
            return self._constant_paths.paths(objects)
        names = tuple([actor_list.names[row] for row in objects.rows.tolist()])
        return self._true_paths.paths(objects, names, upcoming)

    def _object_numbers(self, frame: Frame, objects: Objects, paths: Paths | None) -> Numbers:
        """Return the numbers of the tables in use."""
        tables, numbers = self._tables, Numbers()
        if tables.isdisjoint((CENTRE, CENTRE_AGAIN)):
            return numbers
        numbers[CENTRE] = numbers[CENTRE_AGAIN] = objects.poses
        numbers[SIZE] = objects.sizes
        numbers[GLOBAL_TWIST], numbers[GLOBAL_ACCELERATION] = objects.twists, objects.accelerations
        if OWN_TWIST in tables:
            numbers[OWN_TWIST] = objects.turned(objects.twists)
            numbers[OWN_ACCELERATION] = objects.turned(objects.accelerations)
        if IS_STATIONARY in tables:
            linear = objects.twists[:, :3]
            numbers[IS_STATIONARY] = (np.einsum('ij,ij->i', linear, linear)
                                      < _STATIONARY_SPEED ** 2).astype(np.uint8)[:, None]
        if SPEED_VARIANCE in tables and frame.forward_speed is not None:
            are_unknown = np.isnan(frame.forward_speed[objects.rows])
            numbers[SPEED_VARIANCE] = numbers[CHANGE_VARIANCE] = np.where(
                are_unknown, UNKNOWN_VARIANCE, self._variance)[:, None]
        if PATH in tables and paths is not None:
            numbers[PATH] = paths.rows()
        return numbers


def open_outputs(settings: Settings, definitions: Definitions,
                 report: Callable[[str, str], None] = _ignore) -> OutputEncoder | None:
    """
    Return the encoder of ``outputs``, None where there are none.

    :param settings: parameters.
    :param definitions: of the messages.
    :param report: called with a kind, for throttling, and a line about what was found.
    :raises EncodeError: where a definition is missing or another than expected.
    """
    return OutputEncoder(settings, definitions, report) if output_topics(settings) else None
