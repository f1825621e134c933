# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
/clock, /tf and /tf_static: the time and the frames to which all other topics refer.

The frame base_link of an autonomy stack is a point of the ego, to which motion is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import compress
import math

import numpy as np

from state_sensor_ros import frame as frames
from state_sensor_ros import rotations
from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Given, MESSAGE_PHASE, MessageInstance, Table, Template
from state_sensor_ros.frame import Bools, Floats, Frame, Wheels
from state_sensor_ros.naming import wheel_frame
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics import encoding
from state_sensor_ros.topics.tables import Fields, header, POSE, STAMP_FIELD, xyz, xyzw
from state_sensor_ros.topics.topic import STATIC_TF_TOPIC, TF_TOPIC, Topic

# Of wheels: position xyz, orientation xyzw of unit length, in the frame of the actor.
WHEEL_POSE = Table('wheel pose', np.float64, 7)
# Of the ego, likewise, in the odom frame.
EGO_IN_ODOM = Table('ego in odom', np.float64, 7)
# Child frame of the ego's pose for a stack if ``ego_frame`` is empty.
BASE_LINK = 'base_link'


class ClockEncoder(encoding.TopicEncoder):
    """One Clock with the stamp of the frame."""

    topics = (Topic('/clock', 'rosgraph_msgs/msg/Clock'),)
    switch = 'publish_clock'

    def set_up(self, settings: Settings) -> None:
        self._message = MessageInstance(self.message(ClockEncoder.topics[0].type_name, {
            'clock': STAMP_FIELD}), {})

    @classmethod
    def topics_of(cls, settings: Settings) -> tuple[Topic, ...]:
        """Return the topic if ``publish_clock`` is true, and the stamps are game time."""
        return cls.topics if settings.publish_clock and settings.stamp_source == 'game_time' \
            else ()

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock:
        return encoding.MessageBlock([self._message], {}, self.topics)


class TransformEncoder(encoding.TopicEncoder):
    """One TFMessage with all transforms of a frame; there is none without transforms."""

    topics = (TF_TOPIC,)
    switch = 'tf'
    uses_rows = True

    def set_up(self, settings: Settings) -> None:
        stamped = 'geometry_msgs/msg/TransformStamped'
        self._actor = self.element(stamped, {
            'header': header(settings.global_frame), 'child_frame_id': Given('child'),
            'transform': {'translation': xyz(POSE, 0), 'rotation': xyzw(POSE, 3)}})
        self._wheel = self.element(stamped, {
            'header': header(Given('parent')), 'child_frame_id': Given('child'),
            'transform': {'translation': xyz(WHEEL_POSE, 0), 'rotation': xyzw(WHEEL_POSE, 3)}})
        # In the odom frame of REP 105 the ego has no other parent.
        self._ego = self.element(stamped, {
            'header': header(settings.odom_frame), 'child_frame_id': Given('child'),
            'transform': {'translation': xyz(EGO_IN_ODOM, 0), 'rotation': xyzw(EGO_IN_ODOM, 3)}})
        self._odom_pose = settings.odom_frame_pose if settings.odom_frame else None
        self._head = MessageInstance(self.message(self.topics[0].type_name, {}), {})
        self._actors = encoding.PerActor(lambda actor: MessageInstance(
            self._actor, {'child': actor.frame_id}))
        self._wheels = encoding.PerActor(lambda actor, wheel: MessageInstance(self._wheel, {
            'parent': actor.frame_id,
            'child': wheel_frame(settings.frame_prefix, actor, wheel)}))

    def needs(self, settings: Settings) -> bool:
        """Return the wheels if they have frames or the place of base_link follows from them."""
        return settings.wheel_tf or is_on_wheels(settings)

    def key(self, now: encoding.FrameToSend) -> object:
        """Return the wheels that have a position, None if wheels have no frames."""
        wheels = now.frame.wheels
        if wheels is None or not now.settings.wheel_tf:
            return None
        return wheels.actor.tobytes(), wheels.wheel.tobytes(), _are_placed(wheels).tobytes()

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock | None:
        """Lay out the message: the ego or all actors, then the wheels."""
        actor_list, chosen = now.actor_list, now.usable
        if now.settings.tf == 'ego':
            chosen = chosen & (np.arange(len(chosen)) == actor_list.i_ego)
        if not chosen.any():
            return None
        i_ego, others = actor_list.i_ego, chosen
        ego: list[MessageInstance] = []
        if self._odom_pose is not None and i_ego >= 0 and chosen[i_ego]:
            others = chosen & (np.arange(len(chosen)) != i_ego)
            ego = [MessageInstance(self._ego, {'child': actor_list.actors[i_ego].frame_id})]
        instances = [self._head, *ego,
                     *compress(self._actors.of(actor_list.actors), others.tobytes())]
        rows = encoding.rows_where(others, POSE)
        wheels = now.frame.wheels
        if wheels is not None and now.settings.wheel_tf:
            are_placed = chosen[wheels.actor] & _are_placed(wheels)
            instances += self._wheels.of(
                [actor_list.actors[i] for i in wheels.actor[are_placed].tolist()],
                wheels.wheel[are_placed].tolist())
            rows |= encoding.rows_where(are_placed, WHEEL_POSE)
        return encoding.MessageBlock(instances, rows, self.topics, is_array=True)

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        """Compute the poses of the wheels and in the odom frame; those of the actors are POSE."""
        if self._odom_pose is not None and now.actor_list.i_ego >= 0:
            numbers[EGO_IN_ODOM] = _within(self._odom_pose, now.rows[now.actor_list.i_ego, :7])
        wheels = now.frame.wheels
        if wheels is None or not now.settings.wheel_tf:
            return
        poses = np.empty((len(wheels.actor), WHEEL_POSE.width))
        poses[:, :3] = wheels.position_xyz
        if now.base_link is not None:
            poses[wheels.actor == now.base_link[0], :3] -= now.base_link[1]
        # Rows that are not sent may hold anything.
        with np.errstate(all='ignore'):
            poses[:, 3:] = rotations.normalized(wheels.known_orientation_xyzw())
        numbers[WHEEL_POSE] = poses


def _within(frame_pose: Sequence[float], pose: Floats) -> Floats:
    """Return (1, 7) a pose in the axes of a frame."""
    # frame_pose: x y z, m, roll pitch yaw, rad, of the frame.
    # pose: (7,) position and orientation, in the axes in which that of the frame is given.
    orientation = rotations.quaternion_from_rpy(np.array([frame_pose[3:]]))
    position = (pose[:3] - np.array(frame_pose[:3])) @ rotations.global_from_unit(orientation)[0]
    turned = rotations.quaternion_product(orientation[0] * rotations.CONJUGATE_XYZW, pose[3:])
    relative: Floats = np.concatenate((position, turned))[None]
    return relative


def _are_placed(wheels: Wheels) -> Bools:
    """Return which wheels have a frame: their pose is known and can be published."""
    return wheels.position_known & frames.usable_poses(
        wheels.position_xyz, wheels.known_orientation_xyzw())


@dataclass(frozen=True, slots=True)
class StaticTransform:
    """A frame that does not move in its parent."""

    parent: str
    child: str
    pose: Sequence[float]  # x y z, m, roll pitch yaw, rad, of ``child`` in ``parent``


def encode_static_frames(settings: Settings, definitions: Definitions,
                         transforms: Sequence[StaticTransform]) -> tuple[Topic, bytes] | None:
    """
    Return the topic and the message, or None without static transforms.

    The stamp is zero: the transforms are valid at any time.
    """
    if settings.parent_frame:
        transforms = (StaticTransform(settings.parent_frame, settings.global_frame,
                                      settings.global_frame_pose), *transforms)
    if settings.odom_frame:
        transforms = (*transforms, StaticTransform(settings.global_frame, settings.odom_frame,
                                                   settings.odom_frame_pose))
    if not transforms:
        return None
    message = Template(definitions, STATIC_TF_TOPIC.type_name, {
        'transforms': [_fields(transform) for transform in transforms]}, is_message=True)
    return STATIC_TF_TOPIC, message.lay_out({}, MESSAGE_PHASE).data


def _fields(transform: StaticTransform) -> Fields:
    x, y, z, *roll_pitch_yaw = transform.pose
    qx, qy, qz, qw = rotations.quaternion_from_rpy(np.array([roll_pitch_yaw]))[0].tolist()
    return {'header': {'frame_id': transform.parent}, 'child_frame_id': transform.child,
            'transform': {'translation': {'x': x, 'y': y, 'z': z},
                          'rotation': {'x': qx, 'y': qy, 'z': qz, 'w': qw}}}


class BaseLink:
    """The origin of base_link in the axes of the ego."""

    def __init__(self, settings: Settings, report: Callable[[str, str], None]) -> None:
        self._given = None if is_measured(settings) else np.array(settings.base_link_xyz)
        # Each text once.
        self._report = cache(report)

    def offset(self, frame: Frame, i_ego: int) -> Floats:
        """Return the position of base_link on the ego: (3,) float64, m, axes of the ego."""
        if self._given is not None:
            return self._given
        middle = None if frame.wheels is None else _rear_middle(frame.wheels, i_ego)
        if middle is None:
            self._report('base_link', 'no rear wheel has a position, so base_link is the '
                         "ego's origin; set base_link_xyz (reported once)")
            return np.zeros(3)
        return middle


def is_measured(settings: Settings) -> bool:
    """Return whether the position of base_link follows from wheels: ``base_link_xyz`` is NaN."""
    return math.isnan(settings.base_link_xyz[0])


def is_on_wheels(settings: Settings) -> bool:
    """Return whether the ego's frame is base_link at a position that follows from its wheels."""
    return bool(settings.ego_frame) and is_measured(settings)


def _rear_middle(wheels: Wheels, i_ego: int) -> Floats | None:
    rows = {int(wheels.wheel[row]): row for row in wheels.rows_of(i_ego)
            if wheels.position_known[row]}
    rear = frames.REAR_LEFT, frames.REAR_RIGHT
    if not rows.keys() >= set(rear):
        return None
    left, right = wheels.position_xyz[[rows[wheel] for wheel in rear]]
    middle: Floats = (left + right) / 2.0
    return middle


def move_by(numbers: Floats, arm: Floats) -> None:
    """Move a pose and its velocity to another point of the body."""
    # numbers: (13,) float64, changed in place: position, orientation of unit length, velocity,
    # angular velocity; global frame. The velocity stays if one of its numbers or of those of the
    # angular velocity is NaN.
    # arm: (3,) float64, from the old point to the new one, m, axes of the global frame.
    numbers[0:3] += arm
    # Without numpy: its calls take longer for a single body.
    (x, y, z), (a, b, c) = numbers[10:13].tolist(), arm.tolist()
    v_x, v_y, v_z = numbers[7:10].tolist()
    moved = v_x + (y * c - z * b), v_y + (z * a - x * c), v_z + (x * b - y * a)
    if all(map(math.isfinite, moved)):
        numbers[7:10] = moved
