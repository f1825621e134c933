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

import hashlib
from typing import Final
from uuid import UUID

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Each, Given, Prototype, Slot, Table, Template, Values
from state_sensor_ros.classes import CLASSES
from state_sensor_ros.naming import Actor
from state_sensor_ros.objects.predicted_paths import STEP_S
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.stacks.output_tables import (
    CENTRE,
    CHANGE_VARIANCE,
    IS_STATIONARY,
    motion_variances,
    OWN_ACCELERATION,
    OWN_TWIST,
    PATH,
    SIZE,
    SPEED_VARIANCE,
)
from state_sensor_ros.topics.stacks.output_topics import OBJECT_TOPICS
from state_sensor_ros.topics.tables import diagonal, Fields, header, NS_PER_S, pose, twist, xyz

# Of the ids of objects; any fixed one gives an actor the same id in every run.
NAMESPACE: Final = UUID('3f0c2d6e-9b1a-5c47-8e55-0d6a7b21c9f4')
_ORIENTATION_AVAILABLE: Final = 2
_BOUNDING_BOX: Final = 0
_UUID_BYTES: Final = 16


def object_id(name: str) -> bytes:
    """
    Return the id of an object, a UUID of version 5.

    :param name: raw name of the actor.
    :returns: 16 bytes.
    """
    # As uuid.uuid5(), which refuses names that are not Unicode.
    digest = hashlib.sha1(NAMESPACE.bytes + name.encode('utf-8', 'replace'),
                          usedforsecurity=False).digest()
    return UUID(bytes=digest[:_UUID_BYTES], version=5).bytes


class AutowareObjects:
    """
    Templates of one topic of objects.

    :param kind: of ``autoware_objects``.
    :param is_forward_only: whether the source measures the speed forward and no other velocity.
    """

    def __init__(self, kind: str, settings: Settings, definitions: Definitions, *,
                 is_forward_only: bool) -> None:
        self.topic = OBJECT_TOPICS[kind]
        self.head = Template(definitions, self.topic.type_name,
                             {'header': header(settings.global_frame)}, is_message=True)
        element = definitions[self.topic.type_name][-1].type_name
        with_pose: Fields = {'pose': pose(CENTRE), 'covariance': diagonal(
            settings.pose_covariance_diagonal)}

        def covariance(table: Table) -> Prototype:
            return diagonal(motion_variances(settings, table if is_forward_only else None))

        with_twist: Fields = {'twist': twist(OWN_TWIST, 0),
                              'covariance': covariance(SPEED_VARIANCE)}
        with_accel: Fields = {'accel': twist(OWN_ACCELERATION, 0),
                              'covariance': covariance(CHANGE_VARIANCE)}
        kinematics: Fields
        if kind == 'predicted':
            kinematics = {
                'initial_pose_with_covariance': with_pose,
                'initial_twist_with_covariance': with_twist,
                'initial_acceleration_with_covariance': with_accel,
                'predicted_paths': [{'path': Each('path', pose(PATH)), 'confidence': 1.0,
                                     'time_step': {'sec': int(STEP_S), 'nanosec': int(
                                         STEP_S % 1.0 * NS_PER_S)}}]}
        elif kind == 'detection':
            kinematics = {
                'pose_with_covariance': with_pose, 'has_position_covariance': True,
                'orientation_availability': _ORIENTATION_AVAILABLE,
                'twist_with_covariance': with_twist, 'has_twist': True,
                'has_twist_covariance': True}
        else:
            kinematics = {
                'pose_with_covariance': with_pose, 'twist_with_covariance': with_twist,
                'acceleration_with_covariance': with_accel,
                'orientation_availability': _ORIENTATION_AVAILABLE,
                'is_stationary': Slot(IS_STATIONARY, 0)}
        # A detection has no identity.
        identity: Fields = {} if kind == 'detection' else {
            'object_id': {'uuid': [Given(f'id_{i}') for i in range(_UUID_BYTES)]}}
        self.element = Template(definitions, element, {
            **identity, 'existence_probability': 1.0,
            'classification': [{'label': Given('label'), 'probability': 1.0}],
            'kinematics': kinematics,
            'shape': {'type': _BOUNDING_BOX, 'dimensions': xyz(SIZE, 0)}})

    @staticmethod
    def values(actor: Actor, class_: int, n_poses: int) -> Values:
        """
        Return the givens of an object.

        :param actor: that it is made of.
        :param class_: index in CLASSES.
        :param n_poses: length of its predicted path.
        """
        return {**{f'id_{i}': byte for i, byte in enumerate(object_id(actor.name))},
                'label': CLASSES[class_].autoware, 'path': [{}] * n_poses}
