# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Changes of the entities of a simulator, each proven by a later frame; /initialpose moves the ego.

An ego that a stack drives is braked before it is moved, and until the stack sends a command after
that. A frame is a proof if it has the entity where it was put, or where its velocity has moved it
since, within :data:`NEAR_M` in the plane and :data:`NEAR_RAD`, with its velocity within
:data:`NEAR_M_S` and :data:`NEAR_RAD_S`; or if an entity that was deleted is not in it.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
import math
from queue import Empty, SimpleQueue
import threading
from typing import Any, TYPE_CHECKING

from geometry_msgs.msg import PoseWithCovarianceStamped
import numpy as np
from rclpy.subscription import Subscription

from state_sensor_ros import source as sources
from state_sensor_ros.errors import StateSensorError
from state_sensor_ros.frame import Frame
from state_sensor_ros.rotations import global_from_body, heading_of
from state_sensor_ros.topics.transforms import BaseLink

if TYPE_CHECKING:
    from state_sensor_ros.ros.node import StateSensorNode

NEAR_M, NEAR_RAD, NEAR_M_S, NEAR_RAD_S = 0.5, 0.1, 1.0, 0.5
# Time in which a frame is a proof, s of game time; longest wait for a frame, s.
_PROOF_S, _SILENCE_S = 1.0, 10.0
# Results of simulation_interfaces, which need not be installed here.
UNSUPPORTED, NOT_FOUND, INCORRECT_STATE, FAILED = 0, 2, 3, 4


class RefusedError(StateSensorError):
    """A request that is refused: ``code`` and text of the result."""

    def __init__(self, code: int, text: str = '') -> None:
        Exception.__init__(self, text)
        self.code = code


class Editing:
    """Make changes, one at a time, in the threads of the callers."""

    def __init__(self, node: StateSensorNode) -> None:
        self._node, self._one = node, threading.Lock()
        # Frames since the begin of the change that is being made, None without one.
        self._frames: SimpleQueue[Frame] | None = None
        self._pose_topic: Subscription | None = None

    def begin(self) -> None:
        """Listen to poses if the node's source can move the ego."""
        if sources.SET in sources.edits_of(self._node.source):
            self._pose_topic = self._node.create_subscription(
                PoseWithCovarianceStamped, '/initialpose', self._take_pose, 1,
                callback_group=self._node.service_group)

    def end(self) -> None:
        """Listen no more."""
        if self._pose_topic is not None:
            self._node.destroy_subscription(self._pose_topic)
        self._pose_topic = None

    def pose_of(self, pose: Any, header: Any, invalid: int) -> tuple[float, ...]:  # noqa: ANN401
        """Return position and unit quaternion; raise RefusedError, with a code if it is none."""
        own, given = self._node.settings.global_frame, header.frame_id
        if given not in ('', own):
            raise RefusedError(FAILED, f'found the frame {given!r}; expected {own!r}')
        numbers = [getattr(part, axis) for part, axes in (
            (pose.position, 'xyz'), (pose.orientation, 'xyzw')) for axis in axes]
        length = math.hypot(*numbers[3:])
        if not (0.9 < length < 1.1 and math.isfinite(sum(numbers))):
            raise RefusedError(invalid, f'found {numbers}; expected an orientation of length 1')
        return *numbers[:3], *[number / length for number in numbers[3:]]

    def frame_arrived(self) -> None:
        """Keep a frame that may be a proof; called by the thread of the stream."""
        if (frames := self._frames) is not None and (last := self._node.snapshot()) is not None:
            frames.put(last.frame)

    def make(self, edit: sources.EntityEdit) -> None:
        """Make a change and wait until a frame shows it; raise StateSensorError if none does."""
        if edit.kind not in sources.edits_of(source := self._node.source):
            raise RefusedError(UNSUPPORTED, f'not supported: {edit.kind} by this source')
        assert isinstance(source, sources.EditableSource)
        with self._one:
            last = self._node.snapshot()
            if last is None or (isinstance(source, sources.SteerableSource) and source.is_paused):
                raise RefusedError(INCORRECT_STATE, 'paused, or not begun: no frame would show it')
            i_ego, commanding = last.actor_list.i_ego, self._node.commanding
            with commanding.driver.held() if commanding is not None and i_ego >= 0 \
                    and last.frame.names[i_ego] == edit.name else nullcontext(True) as is_braked:
                if not is_braked:
                    raise RefusedError(FAILED, 'the brake is not sent: the ego is not moved')
                self._frames = frames = SimpleQueue()
                try:
                    _await_proof(edit, source.edit(edit), frames)
                finally:
                    self._frames = None

    def _take_pose(self, message: Any) -> None:  # noqa: ANN401
        """Move the ego to the ground at a pose, of base_link if it is known by that; it stands."""
        try:
            x, y, _, *turn = self.pose_of(message.pose.pose, message.header, FAILED)
            last, settings = self._node.snapshot(), self._node.settings
            if last is None or (i_ego := last.actor_list.i_ego) < 0:
                raise RefusedError(NOT_FOUND, 'found no ego')
            if settings.ego_frame or 'autoware' in settings.outputs:
                offset = BaseLink(settings, self._node.log.warn).offset(last.frame, i_ego)
                ahead, left, _ = global_from_body(np.array([turn]))[0] @ offset
                x, y = x - ahead, y - left
            self.make(sources.EntityEdit(
                sources.SET, last.frame.names[i_ego], (x, y, math.nan, *turn), (0.0,) * 6))
        except StateSensorError as error:
            self._node.log.warn('initial pose', f'/initialpose is refused: {error}')


def _await_proof(edit: sources.EntityEdit, before_s: float, frames: SimpleQueue[Frame]) -> None:
    """Wait until one of ``frames`` proves a change; raise RefusedError if none does."""
    elapsed_s, why = -math.inf, 'none arrives, or the run has begun again'
    with suppress(Empty):
        while elapsed_s <= _PROOF_S:
            frame = frames.get(timeout=_SILENCE_S)
            if frame.game_time - before_s < elapsed_s:
                break
            elapsed_s = frame.game_time - before_s
            if elapsed_s > 1e-6 and not (why := _difference(edit, frame, elapsed_s)):
                return
    raise RefusedError(FAILED, f'no frame within {_PROOF_S:g} s shows the change of '
                       f'{edit.name}: {why}')


def _difference(edit: sources.EntityEdit, frame: Frame, elapsed_s: float) -> str:
    """Return why a frame does not prove a change, empty if it does."""
    is_there = edit.name in frame.names
    if not is_there or edit.kind == sources.DELETE:
        return '' if is_there is not (edit.kind == sources.DELETE) \
            else f'it is {"still" if is_there else "not"} there'
    x, y, _, *orientation, v_x, v_y, _, _, _, rate = frame.kinematics[
        frame.names.index(edit.name)].tolist()
    is_near = is_as_fast = True
    if edit.pose is not None:
        off_x, off_y = x - edit.pose[0], y - edit.pose[1]
        # Without a velocity, NaN, it has not gone on.
        if (square := v_x * v_x + v_y * v_y) > 0.0:
            # It was nearest so long ago: some frames may have been on their way before the change.
            ago_s = min(max((off_x * v_x + off_y * v_y) / square, 0.0), elapsed_s)
            off_x, off_y = off_x - v_x * ago_s, off_y - v_y * ago_s
        is_near = math.hypot(off_x, off_y) < NEAR_M and abs(math.remainder(
            heading_of(orientation) - heading_of(edit.pose[3:]), math.tau)) < NEAR_RAD
    if edit.twist is not None:
        # Without a rate, NaN, it does not turn.
        off_rate = (0.0 if math.isnan(rate) else rate) - edit.twist[5]
        is_as_fast = math.hypot(v_x - edit.twist[0], v_y - edit.twist[1]) < NEAR_M_S \
            and abs(off_rate) < NEAR_RAD_S
    return '' if is_near and is_as_fast else (
        f'it is at x {x:.2f}, y {y:.2f} m, moves at {math.hypot(v_x, v_y):.2f} m/s and turns at '
        f'{rate:.2f} rad/s')
