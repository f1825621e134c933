# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The objects of the frame that is encoded, made once for all topics that have objects."""

from __future__ import annotations

from state_sensor_ros.frame import Bools, Frame
from state_sensor_ros.naming import ActorList
from state_sensor_ros.objects.object_maker import Centres, ObjectMaker, Objects
from state_sensor_ros.settings import Settings


class FrameObjects:
    """
    Make the objects of a frame when the first topic needs them.

    :param settings: parameters; :meth:`reconfigure` replaces the dynamic ones.
    """

    def __init__(self, settings: Settings) -> None:
        self._maker = ObjectMaker(settings)
        self._frame: Frame | None = None
        self._objects: Objects | None = None

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings``, which differ in dynamic parameters only, from the next frame on."""
        self._maker.reconfigure(settings)

    def restart(self) -> None:
        """Start a new run of the simulator: its first frame has no accelerations."""
        self._maker.restart()

    @property
    def all_objects(self) -> tuple[Bools, Centres] | None:
        """Return :attr:`ObjectMaker.all_objects` of the last frame, None before the first."""
        return self._maker.all_objects

    def of(self, frame: Frame, actor_list: ActorList) -> Objects:
        """
        Return the objects of a frame.

        :param frame: frame with boxes: the last one again, or one whose clock has advanced.
        :param actor_list: actors of the frame.
        """
        if frame is not self._frame or self._objects is None:
            self._frame, self._objects = frame, self._maker.make(frame, actor_list)
        return self._objects
