# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Objects as messages of Autoware: tracked, detected and predicted objects."""

from __future__ import annotations

from collections.abc import Sequence
import hashlib
from typing import Final
from uuid import UUID

import numpy as np

from state_sensor_ros.cdr.templates import Each, Given, Prototype, Slot, Table, Values
from state_sensor_ros.classes import CLASSES
from state_sensor_ros.frame import NS_PER_S, Rows
from state_sensor_ros.naming import Actor
from state_sensor_ros.objects.object_maker import Objects
from state_sensor_ros.objects.predicted_paths import (
    constant_lengths,
    ConstantPaths,
    Paths,
    STEP_S,
    TruePaths,
)
from state_sensor_ros.perception.perceiver import perceived_paths
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.stacks.object_topic import (
    CENTER,
    Covariances,
    ObjectTopicEncoder,
    SIZE,
)
from state_sensor_ros.topics.tables import (
    diagonal,
    Fields,
    pose,
    slots,
    twist,
    with_variances,
    xyz,
)
from state_sensor_ros.topics.topic import Qos, Topic
from state_sensor_ros.topics.topic_encoder import FrameToSend, Numbers

# Of objects: 1 if the object stands still.
IS_STATIONARY = Table('object is stationary', np.bool_, 1)
# Of objects: linear xyz, angular xyz, in the axes of the object.
OWN_TWIST = Table('object twist, own axes', np.float64, 6)
OWN_ACCELERATION = Table('object acceleration, own axes', np.float64, 6)
# Of objects, if a number of one of them is unknown.
TWIST_VARIANCE = Table('object twist variance', np.float64, 6)
ACCELERATION_VARIANCE = Table('object acceleration variance', np.float64, 6)
# Of false positives: the bytes of their ids.
FALSE_UUID = Table('false positive id', np.uint8, 16)
# Of predicted poses, object by object: position xyz, orientation xyzw.
PATH = Table('predicted path', np.float64, 7)

# Of the ids of objects; any fixed one gives an actor the same id in every run.
NAMESPACE: Final = UUID('3f0c2d6e-9b1a-5c47-8e55-0d6a7b21c9f4')
_ORIENTATION_AVAILABLE: Final = 2
_BOUNDING_BOX: Final = 0
_UUID_BYTES: Final = 16
# An object that is slower stands still, m/s.
_STATIONARY_SPEED = 0.1

_PERCEPTION: Final = '/perception/object_recognition'
_TRACKED: Final = 'autoware_perception_msgs/msg/TrackedObjects'


def object_id(name: str) -> bytes:
    """Return the id of an object, a UUID of version 5."""
    # As uuid.uuid5(), which refuses names that are not Unicode.
    digest = hashlib.sha1(NAMESPACE.bytes + name.encode('utf-8', 'replace'),
                          usedforsecurity=False).digest()
    return UUID(bytes=digest[:_UUID_BYTES], version=5).bytes


def object_topic(name: str, type_name: str, *,
                 is_perceived: bool = True) -> tuple[Topic, ...]:
    """Return a topic of Autoware's perception, of which a stack uses the newest message only."""
    # type_name: ``package/msg/Name``.
    return (Topic(f'{_PERCEPTION}/{name}', type_name, Qos(depth=1), is_exclusive=True,
                  is_perceived=is_perceived),)


class AutowareObjectEncoder(ObjectTopicEncoder):
    """The base of the four topics."""

    member = ''  # of the parameter ``autoware_objects`` that switches the topic on

    @classmethod
    def topics_of(cls, settings: Settings) -> tuple[Topic, ...]:
        """Return the topic if ``autoware_objects`` has it."""
        return cls.topics if cls.member in settings.autoware_objects else ()

    def object_fields(self, settings: Settings, is_partial: bool) -> Fields:
        return {'object_id': {'uuid': [Given(f'id_{i}') for i in range(_UUID_BYTES)]},
                **self.nameless_object_fields(settings, is_partial)}

    def false_positive_fields(self) -> Fields:
        return {'object_id': {'uuid': [Slot(FALSE_UUID, i) for i in range(_UUID_BYTES)]}}

    def false_positive_ids(self, false_positives: Sequence[Actor]) -> Numbers:
        ids = b''.join([object_id(false_positive.name) for false_positive in false_positives])
        return {FALSE_UUID: np.frombuffer(ids, np.uint8).reshape(-1, _UUID_BYTES)}

    def nameless_object_fields(self, settings: Settings, is_partial: bool) -> Fields:
        """Return an object without an identity."""
        def covariance(of: Settings | Covariances, table: Table) -> Prototype:
            return diagonal(slots(table) if is_partial else of.twist_covariance_diagonal)

        measured = self._measured
        return {
            'existence_probability': 1.0,
            'classification': [{'label': Given('label'), 'probability': 1.0}],
            'kinematics': self.kinematics(
                {'pose': pose(CENTER), 'covariance': diagonal(measured.pose_covariance_diagonal)},
                {'twist': twist(OWN_TWIST, 0), 'covariance': covariance(measured, TWIST_VARIANCE)},
                {'accel': twist(OWN_ACCELERATION, 0),
                 'covariance': covariance(settings, ACCELERATION_VARIANCE)}),
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

    def tables(self, now: FrameToSend, objects: Objects, numbers: Numbers) -> None:
        """Add the motion in the objects' own axes."""
        super().tables(now, objects, numbers)
        # The same objects have the same motion: computed for the first of the topics.
        if numbers.get(OWN_TWIST) is not objects.own_motion[0]:
            numbers[OWN_TWIST], numbers[OWN_ACCELERATION] = objects.own_motion
            linear = objects.twists[:, :3]
            # A comparison with NaN is false.
            numbers[IS_STATIONARY] = (np.einsum('ij,ij->i', linear, linear)
                                      < _STATIONARY_SPEED ** 2).astype(np.uint8)[:, None]
        if self.is_partial(now):
            for motion, least, table, variance in zip(
                    objects.own_motion, (self._measured.twist_covariance_diagonal,
                                         now.settings.twist_covariance_diagonal),
                    (OWN_TWIST, OWN_ACCELERATION), (TWIST_VARIANCE, ACCELERATION_VARIANCE),
                    strict=True):
                if now.frame.forward_speed is not None:
                    motion = motion.copy()
                    motion[:, 1:3] = np.nan
                numbers[table], numbers[variance] = with_variances(
                    motion, least)


class GroundTruthEncoder(AutowareObjectEncoder):
    topics = object_topic('ground_truth/objects', _TRACKED, is_perceived=False)
    member = 'ground_truth'
    is_true = True
    uses_perception = frozenset()


class TrackingEncoder(AutowareObjectEncoder):
    topics = object_topic('tracking/objects', _TRACKED)
    member = 'tracking'


class DetectionEncoder(AutowareObjectEncoder):
    """The objects as a detector publishes them: without an identity."""

    topics = object_topic('detection/objects', 'autoware_perception_msgs/msg/DetectedObjects')
    member = 'detection'

    def object_fields(self, settings: Settings, is_partial: bool) -> Fields:
        """Return an object without an identity."""
        return self.nameless_object_fields(settings, is_partial)

    def false_positive_fields(self) -> Fields:
        return {}

    def kinematics(self, with_pose: Fields, with_twist: Fields, with_accel: Fields) -> Fields:
        return {'pose_with_covariance': with_pose, 'has_position_covariance': True,
                'orientation_availability': _ORIENTATION_AVAILABLE,
                'twist_with_covariance': with_twist, 'has_twist': True,
                'has_twist_covariance': True}


class PredictionEncoder(AutowareObjectEncoder):
    topics = object_topic('objects', 'autoware_perception_msgs/msg/PredictedObjects')
    member = 'predicted'

    def set_up(self, settings: Settings) -> None:
        super().set_up(settings)
        self._constant_paths, self._true_paths = ConstantPaths(), TruePaths()
        # Computed once for a frame; see _predicted.
        self._last: tuple[FrameToSend, Paths, Rows] | None = None

    def kinematics(self, with_pose: Fields, with_twist: Fields, with_accel: Fields) -> Fields:
        return {'initial_pose_with_covariance': with_pose,
                'initial_twist_with_covariance': with_twist,
                'initial_acceleration_with_covariance': with_accel,
                'predicted_paths': [{'path': Each('path', pose(PATH)), 'confidence': 1.0,
                                     'time_step': {'sec': int(STEP_S), 'nanosec': int(
                                         STEP_S % 1.0 * NS_PER_S)}}]}

    def key(self, now: FrameToSend) -> object:
        """Return the lengths of the paths, too."""
        _, lengths = self._predicted(now)
        return super().key(now), lengths.tobytes()

    def path_lengths(self, now: FrameToSend, truth: Objects) -> Rows:
        """Return (T,) lengths of the paths."""
        return self._predicted(now)[1]

    def _predicted(self, now: FrameToSend) -> tuple[Paths, Rows]:
        """Return the paths of the objects that are reported, and the lengths of those of all."""
        if self._last is None or self._last[0] is not now:
            perceived = self._perceived(now)
            truth = perceived.truth
            if now.upcoming is None:
                # From where the object is perceived, with its true velocity.
                paths = self._constant_paths.paths(perceived.objects, perceived.true_twists)
                self._last = now, paths, constant_lengths(truth.classes, truth.twists)
            else:
                names = tuple([now.actor_list.names[row] for row in truth.rows.tolist()])
                paths = self._true_paths.paths(truth, names, now.upcoming)
                self._last = now, perceived_paths(paths, perceived), paths.lengths
        return self._last[1:]

    def tables(self, now: FrameToSend, objects: Objects, numbers: Numbers) -> None:
        """Add the poses of the paths."""
        super().tables(now, objects, numbers)
        numbers[PATH] = self._predicted(now)[0].rows()
