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

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.array_cut import ArrayCut
from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import MessageInstance, Slot, Table, Template, Values
from state_sensor_ros.classes import CAR
from state_sensor_ros.frame import Needs, Rows
from state_sensor_ros.naming import Actor
from state_sensor_ros.objects.object_maker import Objects
from state_sensor_ros.objects.predicted_paths import TIMES_S
from state_sensor_ros.payloads import Report
from state_sensor_ros.perception.perceiver import Perceived
from state_sensor_ros.settings import PERCEPTION, Settings
from state_sensor_ros.topics.message_block import MessageBlock
from state_sensor_ros.topics.per_actor import Column, PerActor
from state_sensor_ros.topics.tables import (
    Fields,
    header,
    STAMP,
    stamp_numbers,
    UNKNOWN_VARIANCE,
)
from state_sensor_ros.topics.topic_encoder import FrameToSend, Numbers, TopicEncoder

# Of objects: centre xyz, orientation xyzw.
CENTRE = Table('object centre', 8, 7)
# Of the predicted path of a ghost, where the topic has paths.
GHOST_POSES = len(TIMES_S)
# In the place of a ghost in the layout of all.
_ANY_GHOST = Actor('ghost', '', '', 0, False)
# Of objects: length, width, height.
SIZE = Table('object size', 8, 3)


def motion_variances(settings: Settings, speed: Table | None) -> Sequence[float | Slot]:
    """
    Return the variances of a twist or an acceleration in the body's own axes.

    :param settings: of which ``twist_covariance_diagonal`` is used.
    :param speed: variance of the speed forward, if the source measures nothing else.
    """
    return settings.twist_covariance_diagonal if speed is None \
        else (Slot(speed, 0), *[UNKNOWN_VARIANCE] * 5)


def with_noise(settings: Settings) -> Settings:
    """
    Return settings whose covariances are those of the noise, where there is any.

    :param settings: of which ``perception.*`` are used.
    """
    perception = settings.perception
    pose, twist = settings.pose_covariance_diagonal, settings.twist_covariance_diagonal
    if perception.position_std:
        pose = (perception.position_std ** 2,) * 2 + pose[2:]
    if perception.yaw_std:
        pose = (*pose[:5], perception.yaw_std ** 2)
    if perception.velocity_std:
        twist = (perception.velocity_std ** 2,) * 2 + twist[2:]
    return replace(settings, pose_covariance_diagonal=pose, twist_covariance_diagonal=twist)


class ObjectTopicEncoder(TopicEncoder):
    """
    One array of objects for each frame.

    ``is_true`` whether it has the truth, whatever ``perception.*`` are; ``is_cut`` whether
    elements can be cut out of the message, as they end at the same phase whatever they contain.
    """

    is_true = False
    is_cut = True
    uses_perception = frozenset(PERCEPTION)

    def __init__(self, settings: Settings, definitions: Definitions, report: Report) -> None:
        super().__init__(settings, definitions, report)
        # Class attribute: the topic may not exist with these settings.
        type_name = type(self).topics[0].type_name
        self._head_template = Template(definitions, type_name,
                                       {'header': header(settings.global_frame)}, is_message=True)
        self._element_type = definitions[type_name][-1].type_name
        self._head = MessageInstance(self._head_template, {})
        self._buffer, self._ghost_buffer = PatchBuffer(is_array=True), PatchBuffer(is_array=True)
        self._cut: ArrayCut | None = None
        self._now: FrameToSend | None = None
        self._make_templates(settings)

    def _make_templates(self, settings: Settings) -> None:
        """Make the templates of an object, whose covariances are constants."""
        self._perception = settings.perception
        # By whether only the speed forward is measured.
        self._templates = [
            Template(self._definitions, self._element_type,
                     self.element(settings, is_forward_only))
            for is_forward_only in (False, True)]
        self._elements = [PerActor(self._maker(template)) for template in self._templates]
        # Of ghosts, whose ids are numbers: their layout is always the same.
        self._ghost_templates = [
            Template(self._definitions, self._element_type,
                     {**self.element(settings, is_forward_only), **self.ghost_fields()})
            for is_forward_only in (False, True)]
        self._ghosts = [self._maker(template)(_ANY_GHOST, (CAR, GHOST_POSES), None)
                        for template in self._ghost_templates]

    def ghost_fields(self) -> Fields:
        """Return the fields of an object that are others for a ghost: its id as numbers."""
        return {}

    def ghost_ids(self, ghosts: Sequence[Actor]) -> Numbers:
        """
        Return the numbers of the tables in :meth:`ghost_fields`.

        :param ghosts: G ghosts.
        :returns: G rows of each.
        """
        return {}

    def measured(self, settings: Settings) -> Settings:
        """Return settings with the covariances of what is measured here."""
        return settings if self.is_true else with_noise(settings)

    def element(self, settings: Settings, is_forward_only: bool) -> Fields:
        """
        Return the prototype of an object.

        :param is_forward_only: whether the source measures the speed forward and no other
            velocity.
        """
        raise NotImplementedError

    def values(self, actor: Actor, class_: int, n_poses: int) -> Values:
        """
        Return the givens of an object.

        :param actor: the actor that it is made of.
        :param class_: index in CLASSES.
        :param n_poses: length of its predicted path, 0 for none.
        """
        raise NotImplementedError

    def needs(self, settings: Settings) -> Needs:
        """Return the boxes."""
        return Needs.of(boxes=True)

    def samples(self) -> list[list[Template]]:
        """Return an array of two of each template."""
        return [[self._head_template, template, template]
                for template in (*self._templates, *self._ghost_templates)]

    def key(self, now: FrameToSend) -> object:
        """Return the objects and their classes; where they cannot be cut out, which are seen."""
        perceived = self._perceived(now)
        key = perceived.truth.rows.tobytes(), perceived.truth.classes.tobytes()
        if self._cut is not None:
            return key
        # Never that of a layout with a cut, which may have been the last one.
        return key, perceived.ghosts, \
            None if perceived.are_seen is None else perceived.are_seen.tobytes()

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the array, of all objects if those that are not seen can be cut out."""
        if now.settings.perception != self._perception:
            self._make_templates(now.settings)
        perceived = self._perceived(now)
        elements = self._instances(now, perceived.truth)
        self._cut = None
        if self.is_cut and not self.is_true and now.perceiver.changes_who_is_there:
            self._buffer.update([self._head, *elements])
            self._cut = self._buffer.array_cut()
        if self._cut is None:
            if perceived.are_seen is not None:
                elements = [elements[i] for i in np.flatnonzero(perceived.are_seen).tolist()]
            self._buffer.update([self._head, *elements, *self._ghost_instances(now, perceived)])
        block = MessageBlock(self._buffer, {}, self.topics)
        if self._cut is not None:
            block.edit = self._edited
        return [block]

    def _instances(self, now: FrameToSend, truth: Objects) -> list[MessageInstance]:
        n_actors = len(now.usable)
        classes, n_poses = np.zeros(n_actors, np.uint8), np.zeros(n_actors, np.uint8)
        classes[truth.rows], n_poses[truth.rows] = truth.classes, self.path_lengths(truth)
        elements = self._elements[now.frame.forward_speed is not None].of(
            now.actor_list, Column(classes.tobytes()), Column(n_poses.tobytes()))
        return [elements[row] for row in truth.rows.tolist()]

    def _ghost_instances(self, now: FrameToSend, perceived: Perceived) -> list[MessageInstance]:
        make = self._maker(self._templates[now.frame.forward_speed is not None])
        return [make(ghost, (CAR, GHOST_POSES), None) for ghost in perceived.ghosts]

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        """Compute the numbers of the objects in the buffer."""
        self._now = now
        self.tables(now, self._objects(now), numbers)

    def tables(self, now: FrameToSend, objects: Objects, numbers: Numbers) -> None:
        """
        Compute the numbers of some objects: centres and sizes here.

        :param now: their frame.
        :param objects: of it.
        :param numbers: tables are added.
        """
        numbers[CENTRE], numbers[SIZE] = objects.poses, objects.sizes

    def path_lengths(self, truth: Objects) -> Rows:
        """
        Return the number of predicted poses of each object.

        :param truth: T objects.
        :returns: (T,) int64.
        """
        return np.zeros(len(truth.rows), np.int64)

    def _perceived(self, now: FrameToSend) -> Perceived:
        if self.is_true:
            objects = now.objects.of(now.frame, now.actor_list)
            return Perceived(objects, objects)
        return now.perceiver.of(now.frame, now.actor_list)

    def _objects(self, now: FrameToSend) -> Objects:
        """Return the objects in the buffer."""
        perceived = self._perceived(now)
        return perceived.objects if self._cut is not None else perceived.reported()

    def _edited(self, data: npt.NDArray[np.uint8]) -> bytes:
        """Return the message of all objects without those that are not seen, and with ghosts."""
        assert self._now is not None
        assert self._cut is not None
        now, perceived = self._now, self._perceived(self._now)
        if perceived.ghost_objects is None:
            return data.tobytes() if perceived.are_seen is None \
                else self._cut.message(data, perceived.are_seen)
        has_others = perceived.are_seen is None or bool(perceived.are_seen.any())
        ghosts = self._ghosts_after(now, perceived, n_before=int(has_others))
        return ghosts if not has_others else self._cut.message(
            data, perceived.are_seen, len(perceived.ghosts), ghosts)

    def _ghosts_after(self, now: FrameToSend, perceived: Perceived, *, n_before: int) -> bytes:
        """
        Return the bytes of the ghosts.

        :param n_before: 1 for elements that follow another one, 0 for a message of ghosts alone.
        """
        ghosts, objects = perceived.ghosts, perceived.ghost_objects
        assert objects is not None
        ghost = self._ghosts[now.frame.forward_speed is not None]
        # In the place of the other one is the first ghost once more.
        layout = [self._head, *[ghost] * (n_before + len(ghosts))]
        self._ghost_buffer.update(layout)
        if n_before:
            ghosts, objects = (ghosts[0], *ghosts), objects.at(
                np.maximum(np.arange(-1, len(ghosts)), 0))
        numbers: Numbers = {STAMP: stamp_numbers(now.stamp_ns), **self.ghost_ids(ghosts)}
        self.tables(now, objects, numbers)
        for table in self._ghost_buffer.tables:
            self._ghost_buffer.patch(table, numbers[table])
        return self._ghost_buffer.array_bytes(n_before)

    def _maker(self, template: Template) -> Callable[
            [Actor, Sequence[Any], MessageInstance | None], MessageInstance]:
        return lambda actor, appearance, _: MessageInstance(
            template, self.values(actor, *appearance))
