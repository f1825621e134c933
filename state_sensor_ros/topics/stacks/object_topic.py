# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The base of the topics of objects: tables of their numbers, and an array with all objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.patch_buffer import ArrayCut, PatchBuffer
from state_sensor_ros.cdr.templates import MessageInstance, Table, Values
from state_sensor_ros.classes import CAR
from state_sensor_ros.frame import Rows
from state_sensor_ros.naming import Actor
from state_sensor_ros.objects.object_maker import Objects
from state_sensor_ros.objects.predicted_paths import TIMES_S
from state_sensor_ros.perception.perceiver import Perceived
from state_sensor_ros.settings import PERCEPTION, Settings
from state_sensor_ros.topics.per_actor import Column, PerActor
from state_sensor_ros.topics.tables import Fields, header
from state_sensor_ros.topics.topic_encoder import FrameToSend, MessageBlock, Numbers, TopicEncoder

# Of objects: center xyz, orientation xyzw.
CENTER = Table('object center', np.float64, 7)
# Number of poses in the predicted path of a false positive, if the topic has paths.
FALSE_POSES = len(TIMES_S)
# In the place of a false positive in the layout of all.
_ANY_FALSE_POSITIVE = Actor('false_positive', '', '', 0, False)
# Of objects: length, width, height.
SIZE = Table('object size', np.float64, 3)


class Covariances(NamedTuple):
    """Variances of an object: those of the settings, or those of the noise."""

    pose_covariance_diagonal: tuple[float, ...]
    twist_covariance_diagonal: tuple[float, ...]


def covariances_of(settings: Settings, *, is_true: bool) -> Covariances:
    """
    Return the covariances of the settings, or those of the noise if there is any.

    :param is_true: whether there is no noise.

    :param settings: parameters; ``perception.*`` and the covariances are used.
    """
    pose, twist = settings.pose_covariance_diagonal, settings.twist_covariance_diagonal
    if is_true:
        return Covariances(pose, twist)
    perception = settings.perception
    if perception.position_std:
        pose = (perception.position_std ** 2,) * 2 + pose[2:]
    if perception.yaw_std:
        pose = (*pose[:5], perception.yaw_std ** 2)
    if perception.velocity_std:
        twist = (perception.velocity_std ** 2,) * 2 + twist[2:]
    return Covariances(pose, twist)


class ObjectTopicEncoder(TopicEncoder):
    """One array of objects for each frame."""

    is_true = False  # whether it has the ground truth, whatever ``perception.*`` are
    uses_perception = frozenset(PERCEPTION)

    def set_up(self, settings: Settings) -> None:
        # Class attribute: the topic may not exist with these settings.
        type_name = type(self).topics[0].type_name
        self._element_type = self._definitions[type_name][-1].type_name
        self._head = MessageInstance(self.message(
            type_name, {'header': header(settings.global_frame)}), {})
        self._buffer = PatchBuffer(is_array=True)
        self._make_templates(settings)

    def _make_templates(self, settings: Settings) -> None:
        """Make the templates of an object, whose covariances are constants."""
        self._perception = settings.perception
        # With the covariances of the messages of this topic.
        self._measured = covariances_of(settings, is_true=self.is_true)
        # By whether a number of an object's motion is unknown.
        elements = [self.object_fields(settings, is_partial) for is_partial in (False, True)]
        self._elements = [PerActor(self._maker(element)) for element in elements]
        # Of false positives, whose ids are numbers: their layout is always the same.
        self._false_layouts = [
            self._maker({**element, **self.false_positive_fields()})(
                _ANY_FALSE_POSITIVE, (CAR, FALSE_POSES), None) for element in elements]

    def false_positive_fields(self) -> Fields:
        """Return the fields in which a false positive differs: its id as numbers."""
        return {}

    def false_positive_ids(self, false_positives: Sequence[Actor]) -> Numbers:
        """Return the numbers of the tables in :meth:`false_positive_fields`."""
        return {}

    def object_fields(self, settings: Settings, is_partial: bool) -> Fields:
        raise NotImplementedError

    def values(self, actor: Actor, class_: int, n_poses: int) -> Values:
        """Return the givens of an object."""
        # n_poses: length of its predicted path, 0 for none.
        raise NotImplementedError

    def needs(self, settings: Settings) -> bool:
        return True

    def key(self, now: FrameToSend) -> object:
        """Return the objects, their classes and the number of places for false positives."""
        perceived = self._perceived(now)
        return (perceived.truth.rows.tobytes(), perceived.truth.classes.tobytes(),
                perceived.n_false_places, self.is_partial(now))

    def is_partial(self, now: FrameToSend) -> bool:
        """Return whether a number of an object's motion is unknown."""
        return now.frame.forward_speed is not None or not self._perceived(now).truth.is_known()

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out all objects and places for false positives; what is reported is cut out."""
        if now.settings.perception is not self._perception:
            self._make_templates(now.settings)
        perceived = self._perceived(now)
        false_positive = self._false_layouts[self.is_partial(now)]
        self._buffer.update([self._head, *self._instances(now, perceived.truth),
                             *[false_positive] * perceived.n_false_places])
        block = MessageBlock(self._buffer, {}, self.topics)
        if perceived.reported is not None:
            block.make = partial(self._message, self._buffer.array_cut())
        return [block]

    def _instances(self, now: FrameToSend, truth: Objects) -> list[MessageInstance]:
        n_actors = len(now.usable)
        classes, n_poses = np.zeros(n_actors, np.uint8), np.zeros(n_actors, np.uint8)
        classes[truth.rows], n_poses[truth.rows] = truth.classes, self.path_lengths(now, truth)
        elements = self._elements[self.is_partial(now)].of(
            now.actor_list, Column(classes.tobytes()), Column(n_poses.tobytes()))
        return [elements[row] for row in truth.rows.tolist()]

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        perceived = self._perceived(now)
        self.tables(now, perceived.objects, numbers)
        if perceived.n_false_places:
            numbers |= self.false_positive_ids(perceived.false_positives)

    def tables(self, now: FrameToSend, objects: Objects, numbers: Numbers) -> None:
        """Compute the numbers of some objects: centers and sizes here."""
        numbers[CENTER], numbers[SIZE] = objects.poses, objects.sizes

    def path_lengths(self, now: FrameToSend, truth: Objects) -> Rows:
        """Return the number of predicted poses of each object: (T,) int64."""
        return np.zeros(len(truth.rows), np.int64)

    def _perceived(self, now: FrameToSend) -> Perceived:
        if self.is_true:
            objects = now.objects.of(now.frame, now.actor_list)
            return Perceived(objects, objects, objects.twists)
        return now.perceiver.of(now.frame, now.actor_list)

    def _message(self, cut: ArrayCut, now: FrameToSend,
                 numbers: Mapping[Table, npt.NDArray[Any]]) -> bytes:
        reported = self._perceived(now).reported
        assert reported is not None
        return cut.message(reported, numbers)

    def _maker(self, element: Fields) -> Callable[
            [Actor, Sequence[Any], MessageInstance | None], MessageInstance]:
        template = self.element(self._element_type, element)
        return lambda actor, appearance, _: MessageInstance(
            template, self.values(actor, *appearance))
