# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The truth of a recording's frames: objects as the outputs have them, and the ego's base_link."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from state_sensor_ros.errors import DecodeError, TrajectoryFormatError
from state_sensor_ros.evaluation.ground_truth import EgoTrack, GroundTruth, GroundTruthBuilder
from state_sensor_ros.evaluation.object_set import N_COLUMNS, ObjectSet, SIZE, VELOCITY, XYZ, YAW
from state_sensor_ros.frame import Bools, Floats, Frame
from state_sensor_ros.naming import Actor, registry_of
from state_sensor_ros.objects.object_maker import ObjectMaker, origin_twist, transported
from state_sensor_ros.pipeline.stamps import Stamper, Step
from state_sensor_ros.rotations import global_from_unit, normalised
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.base_link import BASE_LINK, BaseLink


class FrameGroundTruth:
    """
    Makes the truth of frames.

    :param name: name of the recording.
    :param settings: parameters; stamp_source, ego_tag, ego_frame, base_link_xyz and those of
        objects are used.
    :param selects: returns whether an actor with a name and tags is selected.
    :param report: called with a kind and a line.
    """

    def __init__(self, name: str, settings: Settings,
                 selects: Callable[[str, tuple[str, ...]], bool],
                 report: Callable[[str, str], None]) -> None:
        self._name = name
        self._builder = GroundTruthBuilder(name)
        self._objects = ObjectMaker(settings)
        self._base_link = BaseLink(settings, report)
        self._registry = registry_of(settings)
        self._selects = selects
        self._stamper = Stamper(settings.stamp_source)
        self._stamps_ns: list[int] = []
        self._origins: list[Floats] = []
        self._poses: list[Floats] = []
        self._speeds: list[float] = []
        self._offset: Floats = np.zeros(3)
        self._ego_frames = {BASE_LINK}

    def add(self, frame: Frame, stamp_ns: int | None = None) -> None:
        """
        Add a frame; one whose clock did not advance is left out.

        :param frame: frame with its boxes and wheels, if it has any.
        :param stamp_ns: stamp in the bag of the frame; None to compute it from the frame's time.
        :raises TrajectoryFormatError: if time goes back, or gives no stamp.
        """
        try:
            step = self._stamper.step(frame, 0)
        except DecodeError as error:
            raise TrajectoryFormatError(self._name, error.found, error.expected) from error
        if step is Step.REPEATED:
            return
        stamp_ns = self._stamper.stamp_ns if stamp_ns is None else stamp_ns
        actor_list = self._registry.update(frame)
        objects = self._objects.make(frame, actor_list)
        states = np.empty((len(objects.rows), N_COLUMNS))
        states[:, XYZ] = objects.poses[:, :3]
        states[:, YAW] = np.arctan2(objects.axes[:, 1, 0], objects.axes[:, 0, 0])
        states[:, VELOCITY] = objects.twists[:, :2]
        states[:, SIZE] = objects.sizes
        rows = objects.rows.tolist()
        are_selected: Bools = np.array([self._selects(frame.names[row], frame.tags[row])
                                        for row in rows], np.bool_)
        self._builder.add(stamp_ns, ObjectSet(
            tuple([frame.names[row] for row in rows]), objects.classes.astype(np.int64), states,
            np.ones(len(rows))), are_selected)
        i_ego = actor_list.i_ego
        if i_ego >= 0 and frame.has_pose()[i_ego]:
            self._add_ego(frame, i_ego, actor_list.actors[i_ego], stamp_ns)

    def _add_ego(self, frame: Frame, i_ego: int, ego: Actor, stamp_ns: int) -> None:
        origin = frame.position_xyz[i_ego]
        orientation = normalised(frame.orientation_xyzw[i_ego:i_ego + 1])
        self._offset = self._base_link.offset(frame, i_ego)
        axes = global_from_unit(orientation)[0]
        base = origin + axes @ self._offset
        self._stamps_ns.append(stamp_ns)
        self._origins.append(origin)
        self._poses.append(np.concatenate((base, orientation[0])))
        twist = transported(origin_twist(frame, i_ego)[None], (base - origin)[None],
                            is_finite=True)[0]
        self._speeds.append(float(twist[:3] @ axes[:, 0]))
        self._ego_frames.add(ego.frame_id)

    def finish(self) -> GroundTruth:
        """Return the truth."""
        ego = None
        if self._stamps_ns:
            ego = EgoTrack(np.array(self._stamps_ns, np.int64), np.stack(self._origins),
                           np.stack(self._poses), np.array(self._speeds),
                           frozenset(self._ego_frames - {BASE_LINK}), self._offset)
        return self._builder.finish(ego)
