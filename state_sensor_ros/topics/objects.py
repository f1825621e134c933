# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Objects as messages of autoware_perception_msgs, derived_object_msgs and vision_msgs."""

from __future__ import annotations

from typing import Final
from uuid import UUID, uuid5

import numpy as np

from state_sensor_ros.cdr.templates import Each, Given, MessageInstance, Slot, Table, Values
from state_sensor_ros.classes import CAR, CLASSES, UNKNOWN
from state_sensor_ros.frame import NS_PER_S, Rows
from state_sensor_ros.naming import Actor
from state_sensor_ros.objects import predicted_paths
from state_sensor_ros.objects.object_maker import Objects
from state_sensor_ros.perception.perceiver import Perceived, perceived_paths
from state_sensor_ros.settings import PERCEPTION, Settings
from state_sensor_ros.topics import encoding, tables
from state_sensor_ros.topics.tables import diagonal, Fields, header, pose, slots, twist, xyz
from state_sensor_ros.topics.topic import LATCHED, stack_topic, Topic

# Of objects: center xyz, orientation xyzw; the same in a second place of one message; length,
# width, height.
CENTER = Table('object center', np.float64, 7)
CENTER_AGAIN = Table('object center again', np.float64, 7)
SIZE = Table('object size', np.float64, 3)
# Linear xyz, angular xyz, in the axes of the global frame, and in those of the object.
GLOBAL_TWIST = Table('object twist, global axes', np.float64, 6)
GLOBAL_ACCELERATION = Table('object acceleration, global axes', np.float64, 6)
OWN_TWIST = Table('object twist, own axes', np.float64, 6)
OWN_ACCELERATION = Table('object acceleration, own axes', np.float64, 6)
# If a number of one of the objects is unknown.
TWIST_VARIANCE = Table('object twist variance', np.float64, 6)
ACCELERATION_VARIANCE = Table('object acceleration variance', np.float64, 6)
# 1 if the object stands still.
IS_STATIONARY = Table('object is stationary', np.bool_, 1)
# Of predicted poses, object by object: position xyz, orientation xyzw.
PATH = Table('predicted path', np.float64, 7)

# Of the ids of objects; any fixed one gives an actor the same id in every run.
NAMESPACE: Final = UUID('3f0c2d6e-9b1a-5c47-8e55-0d6a7b21c9f4')
_UUID_BYTES: Final = 16
_ORIENTATION_AVAILABLE, _BOUNDING_BOX = 2, 0
# Constants of derived_object_msgs.
_TRACKED, _BOX, _CERTAIN = 1, 1, 255
# An object that is slower stands still, m/s.
_STATIONARY_SPEED = 0.1


class ObjectTopicEncoder(encoding.TopicEncoder):
    """One array of objects for each frame."""

    is_true = False  # whether it has the ground truth, whatever ``perception.*`` are
    has_details = True
    uses_perception = frozenset(PERCEPTION)

    def set_up(self, settings: Settings) -> None:
        # Class attribute: the topic may not exist with these settings.
        type_name = type(self).topics[0].type_name
        self._element_type = self._definitions[type_name][-1].type_name
        self._head = MessageInstance(self.message(
            type_name, {'header': header(settings.global_frame)}), {})
        self._make_templates(settings)

    def _make_templates(self, settings: Settings) -> None:
        """Make the templates of an object; its covariances, those of the noise, are constants."""
        noise = self._perception = settings.perception
        pose, twist = (list(diagonal) for diagonal in (
            settings.pose_covariance_diagonal, settings.twist_covariance_diagonal))
        for variances, columns, std in ((pose, slice(0, 2), noise.position_std),
                                        (pose, slice(5, 6), noise.yaw_std),
                                        (twist, slice(0, 2), noise.velocity_std)):
            if std and not self.is_true:
                variances[columns] = [std ** 2] * len(variances[columns])
        self._pose_variances, self._twist_variances = tuple(pose), tuple(twist)
        # By whether a number of an object's motion is unknown.
        self._elements = [
            encoding.PerActor(lambda *of_object, template=template: MessageInstance(
                template, self.values(*of_object)))
            for is_partial in (False, True)
            for template in [self.element(
                self._element_type, self.object_fields(settings, is_partial))]]

    def object_fields(self, settings: Settings, is_partial: bool) -> Fields:
        raise NotImplementedError

    def values(self, actor: Actor, class_: int, n_poses: int) -> Values:
        """Return the givens of an object."""
        # n_poses: length of its predicted path, 0 for none.
        raise NotImplementedError

    def key(self, now: encoding.FrameToSend) -> object:
        """Return the objects and their classes; no two false positives are the same."""
        perceived = self._perceived(now)
        return (perceived.objects.rows.tobytes(), perceived.objects.classes.tobytes(),
                perceived.false_positives, self.is_partial(now))

    def is_partial(self, now: encoding.FrameToSend) -> bool:
        """Return whether a number of an object's motion is unknown."""
        return now.frame.forward_speed is not None or not self._perceived(now).truth.is_known()

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock:
        """Lay out the objects that are reported; those that are not seen are kept for later."""
        if now.settings.perception is not self._perception:
            self._make_templates(now.settings)
        perceived, actors = self._perceived(now), now.actor_list.actors
        truth, n_false = perceived.truth, len(perceived.false_positives)
        elements = self._elements[self.is_partial(now)].of(
            [*[actors[row] for row in truth.rows.tolist()], *perceived.false_positives],
            truth.classes.tolist() + [CAR] * n_false,
            self.path_lengths(now, truth).tolist() + [len(predicted_paths.TIMES_S)] * n_false)
        if perceived.seen is not None:
            elements = [*[elements[i] for i in perceived.seen.tolist()],
                        *elements[len(truth.rows):]]
        return encoding.MessageBlock([self._head, *elements], {}, self.topics, is_array=True)

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        self.fill(now, self._perceived(now).objects, numbers)

    def fill(self, now: encoding.FrameToSend, objects: Objects, numbers: encoding.Numbers) -> None:
        """Compute the numbers of some objects: centers and sizes here."""
        numbers[CENTER], numbers[SIZE] = objects.poses, objects.sizes

    def path_lengths(self, now: encoding.FrameToSend, truth: Objects) -> Rows:
        """Return the number of predicted poses of each object: (T,) int64."""
        return np.zeros(len(truth.rows), np.int64)

    def _perceived(self, now: encoding.FrameToSend) -> Perceived:
        if self.is_true:
            objects = now.objects.of(now.frame, now.actor_list)
            return Perceived(objects, objects, objects.twists)
        return now.perceiver.of(now.frame, now.actor_list)


def object_id(name: str) -> bytes:
    """Return the id of an object, a UUID of version 5."""
    # Names that are not Unicode are refused.
    return uuid5(NAMESPACE, name.encode('utf-8', 'replace').decode()).bytes


def object_topic(name: str, kind: str, *, is_perceived: bool = True) -> tuple[Topic, ...]:
    """Return a topic of Autoware's perception."""
    return (stack_topic(f'/perception/object_recognition/{name}',
                        f'autoware_perception_msgs/msg/{kind}', is_perceived=is_perceived),)


class AutowareObjectEncoder(ObjectTopicEncoder):
    """The base of the four topics."""

    member = ''  # of the parameter ``autoware_objects`` that switches the topic on

    @classmethod
    def topics_of(cls, settings: Settings) -> tuple[Topic, ...]:
        """Return the topic if ``autoware_objects`` has it."""
        return cls.topics if cls.member in settings.autoware_objects else ()

    def object_fields(self, settings: Settings, is_partial: bool) -> Fields:
        twist_variances, accel_variances = (
            diagonal(slots(unknown) if is_partial else known) for unknown, known in (
                (TWIST_VARIANCE, self._twist_variances),
                (ACCELERATION_VARIANCE, settings.twist_covariance_diagonal)))
        return {
            'object_id': {'uuid': [Given(f'id_{i}') for i in range(_UUID_BYTES)]},
            'existence_probability': 1.0,
            'classification': [{'label': Given('label'), 'probability': 1.0}],
            'kinematics': self.kinematics(
                {'pose': pose(CENTER), 'covariance': diagonal(self._pose_variances)},
                {'twist': twist(OWN_TWIST, 0), 'covariance': twist_variances},
                {'accel': twist(OWN_ACCELERATION, 0), 'covariance': accel_variances}),
            'shape': {'type': _BOUNDING_BOX, 'dimensions': xyz(SIZE, 0)}}

    def kinematics(self, with_pose: Fields, with_twist: Fields, with_accel: Fields) -> Fields:
        """Return the kinematics of a tracked object of its parts with covariance."""
        return {'pose_with_covariance': with_pose, 'twist_with_covariance': with_twist,
                'acceleration_with_covariance': with_accel,
                'orientation_availability': _ORIENTATION_AVAILABLE,
                'is_stationary': Slot(IS_STATIONARY, 0)}

    def values(self, actor: Actor, class_: int, n_poses: int) -> Values:
        return {**{f'id_{i}': byte for i, byte in enumerate(object_id(actor.name))},
                'label': CLASSES[class_].autoware, 'path': [{}] * n_poses}

    def fill(self, now: encoding.FrameToSend, objects: Objects, numbers: encoding.Numbers) -> None:
        """Add the motion in the objects' own axes."""
        super().fill(now, objects, numbers)
        # The same objects have the same motion: computed for the first of the topics.
        if numbers.get(OWN_TWIST) is not objects.own_motion[0]:
            numbers[OWN_TWIST], numbers[OWN_ACCELERATION] = objects.own_motion
            linear = objects.twists[:, :3]
            # A comparison with NaN is false.
            numbers[IS_STATIONARY] = (np.einsum('ij,ij->i', linear, linear)
                                      < _STATIONARY_SPEED ** 2).astype(np.uint8)[:, None]
        if self.is_partial(now):
            for motion, least, table, variance in zip(
                    objects.own_motion,
                    (self._twist_variances, now.settings.twist_covariance_diagonal),
                    (OWN_TWIST, OWN_ACCELERATION), (TWIST_VARIANCE, ACCELERATION_VARIANCE),
                    strict=True):
                if now.frame.forward_speed is not None:
                    motion = motion.copy()
                    motion[:, 1:3] = np.nan
                numbers[table], numbers[variance] = tables.with_variances(motion, least)


class GroundTruthEncoder(AutowareObjectEncoder):
    topics = object_topic('ground_truth/objects', 'TrackedObjects', is_perceived=False)
    member = 'ground_truth'
    is_true = True
    uses_perception = frozenset()


class TrackingEncoder(AutowareObjectEncoder):
    topics = object_topic('tracking/objects', 'TrackedObjects')
    member = 'tracking'


class DetectionEncoder(AutowareObjectEncoder):
    """The objects as a detector publishes them: without an identity."""

    topics = object_topic('detection/objects', 'DetectedObjects')
    member = 'detection'

    def object_fields(self, settings: Settings, is_partial: bool) -> Fields:
        """Return an object without an identity."""
        return {name: value for name, value in super().object_fields(settings, is_partial).items()
                if name != 'object_id'}

    def kinematics(self, with_pose: Fields, with_twist: Fields, with_accel: Fields) -> Fields:
        return {'pose_with_covariance': with_pose, 'has_position_covariance': True,
                'orientation_availability': _ORIENTATION_AVAILABLE,
                'twist_with_covariance': with_twist, 'has_twist': True,
                'has_twist_covariance': True}


class PredictionEncoder(AutowareObjectEncoder):
    topics = object_topic('objects', 'PredictedObjects')
    member = 'predicted'

    def set_up(self, settings: Settings) -> None:
        super().set_up(settings)
        self._constant_paths = predicted_paths.ConstantPaths()
        self._true_paths = predicted_paths.TruePaths()
        # Computed once for a frame; see _predicted.
        self._last: tuple[encoding.FrameToSend, predicted_paths.Paths, Rows] | None = None

    def kinematics(self, with_pose: Fields, with_twist: Fields, with_accel: Fields) -> Fields:
        return {'initial_pose_with_covariance': with_pose,
                'initial_twist_with_covariance': with_twist,
                'initial_acceleration_with_covariance': with_accel,
                'predicted_paths': [{
                    'path': Each('path', pose(PATH)), 'confidence': 1.0,
                    'time_step': {'nanosec': round(predicted_paths.STEP_S * NS_PER_S)}}]}

    def key(self, now: encoding.FrameToSend) -> object:
        """Return the lengths of the paths, too."""
        return super().key(now), self._predicted(now)[0].lengths.tobytes()

    def path_lengths(self, now: encoding.FrameToSend, truth: Objects) -> Rows:
        """Return (T,) lengths of the paths."""
        return self._predicted(now)[1]

    def _predicted(self, now: encoding.FrameToSend) -> tuple[predicted_paths.Paths, Rows]:
        """Return the paths of the objects that are reported, and the lengths of those of all."""
        if self._last is None or self._last[0] is not now:
            perceived = self._perceived(now)
            truth = perceived.truth
            if now.upcoming is None:
                # From where the object is perceived, with its true velocity.
                paths = self._constant_paths.paths(perceived.objects, perceived.true_twists)
                self._last = now, paths, predicted_paths.constant_lengths(
                    truth.classes, truth.twists)
            else:
                names = tuple([now.actor_list.names[row] for row in truth.rows.tolist()])
                paths = self._true_paths.paths(truth, names, now.upcoming)
                self._last = now, perceived_paths(paths, perceived), paths.lengths
        return self._last[1:]

    def fill(self, now: encoding.FrameToSend, objects: Objects, numbers: encoding.Numbers) -> None:
        """Add the poses of the paths."""
        super().fill(now, objects, numbers)
        numbers[PATH] = self._predicted(now)[0].rows()


class DerivedObjectsEncoder(ObjectTopicEncoder):
    """One ObjectArray, with velocities in the axes of its header."""

    topics = (Topic('~/objects', 'derived_object_msgs/msg/ObjectArray', is_perceived=True),)

    def object_fields(self, settings: Settings, is_partial: bool) -> Fields:
        return {
            'header': header(settings.global_frame), 'id': Given('id'),
            'detection_level': _TRACKED, 'object_classified': Given('is_classified'),
            'pose': pose(CENTER), 'twist': twist(GLOBAL_TWIST, 0),
            'accel': twist(GLOBAL_ACCELERATION, 0),
            'shape': {'type': _BOX, 'dimensions': [Slot(SIZE, i) for i in range(3)]},
            'classification': Given('class'), 'classification_certainty': Given('certainty')}

    def values(self, actor: Actor, class_: int, n_poses: int) -> Values:
        is_classified = class_ != UNKNOWN
        return {'id': actor.id, 'is_classified': is_classified, 'class': CLASSES[class_].derived,
                'certainty': _CERTAIN if is_classified else 0}

    def fill(self, now: encoding.FrameToSend, objects: Objects, numbers: encoding.Numbers) -> None:
        """Add the motion in the global frame, NaN if unknown: a message has no variances."""
        super().fill(now, objects, numbers)
        numbers[GLOBAL_TWIST], numbers[GLOBAL_ACCELERATION] = objects.twists, objects.accelerations


class DetectionsEncoder(ObjectTopicEncoder):
    """One Detection3DArray."""

    topics = (Topic('~/detections', 'vision_msgs/msg/Detection3DArray', is_perceived=True),)
    uses_perception = ObjectTopicEncoder.uses_perception - {'perception.velocity_std'}

    def object_fields(self, settings: Settings, is_partial: bool) -> Fields:
        return {
            'header': header(settings.global_frame), 'id': Given('id'),
            'results': [{'hypothesis': {'class_id': Given('class'), 'score': 1.0},
                         'pose': {'pose': pose(CENTER_AGAIN),
                                  'covariance': diagonal(self._pose_variances)}}],
            'bbox': {'center': pose(CENTER), 'size': xyz(SIZE, 0)}}

    def values(self, actor: Actor, class_: int, n_poses: int) -> Values:
        return {'id': actor.name, 'class': CLASSES[class_].name}

    def fill(self, now: encoding.FrameToSend, objects: Objects, numbers: encoding.Numbers) -> None:
        """Add the centers of the objects, which a detection has in two fields."""
        super().fill(now, objects, numbers)
        numbers[CENTER_AGAIN] = numbers[CENTER]


class LabelInfoEncoder(encoding.ChangeEncoder):
    """The names of the classes, before the first detections."""

    topics = (Topic('~/label_info', 'vision_msgs/msg/LabelInfo', LATCHED),)

    def prototype(self, settings: Settings) -> Fields:
        return {'header': header(settings.global_frame),
                'class_map': [{'class_id': each.autoware, 'class_name': each.name}
                              for each in sorted(CLASSES, key=lambda each: each.autoware)]}
