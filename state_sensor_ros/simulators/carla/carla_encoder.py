# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Encode the simulator-specific data of CARLA to the serialised messages of its topics."""

from __future__ import annotations

from collections.abc import Collection

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.frame import Bools, Frame
from state_sensor_ros.naming import ActorList
from state_sensor_ros.payloads import Report
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.carla_data import CarlaData
from state_sensor_ros.simulators.carla.image_messages import ImageMessages
from state_sensor_ros.simulators.carla.player_messages import player_numbers, PlayerMessages
from state_sensor_ros.simulators.carla.point_messages import PointMessages
from state_sensor_ros.simulators.carla.sign_messages import sign_numbers, SignArrays, SignMarkers
from state_sensor_ros.topics.message_block import MessageBlock, Messages
from state_sensor_ros.topics.numbers import Numbers, stamp_numbers
from state_sensor_ros.topics.tables import STAMP
from state_sensor_ros.topics.topic import Demand, enabled, Topic
from state_sensor_ros.topics.verification import Sample, sample_of


def _ignore(kind: str, text: str) -> None:
    """Report nowhere."""


class CarlaEncoder:
    """
    Encode CARLA's own topics and markers; nothing for a frame of another simulator.

    :param settings: parameters; :meth:`reconfigure` replaces the dynamic ones.
    :param definitions: of the messages.
    :param report: called with a kind, for throttling, and a line about what went wrong.
    :param topics: that exist; sensors without one are left out. None: all.
    """

    def __init__(self, settings: Settings, definitions: Definitions, report: Report = _ignore,
                 topics: Collection[Topic] | None = None) -> None:
        self._settings, self._report = settings, report
        self._player = PlayerMessages(settings, definitions)
        self._arrays = SignArrays(settings, definitions)
        self._markers = SignMarkers(settings, definitions)
        self._images = ImageMessages(definitions, report, settings.camera_fov, topics)
        self._points = PointMessages(definitions, report, topics)
        self._key: object = None

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings``, which differ in dynamic parameters only, from the next frame on."""
        self._settings = settings
        self._key = None
        if not enabled(settings, Demand()).markers:
            self._markers.restart()

    def samples(self) -> list[Sample]:
        """Return a sample of each message, for verification at start."""
        player, arrays, markers = self._player, self._arrays, self._markers
        return [
            sample_of((player.status,)), *[sample_of((each,)) for each in player.controls],
            *[sample_of((head, arrays.elements[topic], arrays.elements[topic]))
              for topic, head in arrays.heads.items()],
            sample_of((markers.head, *markers.elements.values(), markers.deletion)),
            sample_of((self._images.image,)), sample_of((self._images.info,)),
            sample_of((self._images.classes,)), sample_of((self._points.points,))]

    def encode(self, frame: Frame, actor_list: ActorList, stamp_ns: int, demand: Demand, *,
               advanced: bool = True) -> Messages:
        """
        Encode the topics that ``demand`` names.

        :param actor_list: of the registry, rows as in ``frame``.
        :param stamp_ns: ns since the epoch of the messages' clock.
        :param advanced: False for a frame whose clock did not advance: nothing is encoded.
        :returns: the messages in the order in which they are to be sent.
        """
        data = frame.extension
        if not advanced or not isinstance(data, CarlaData):
            return []
        usable = frame.has_pose()
        key = (actor_list, demand, usable.tobytes(), data.classes.tobytes(),
               data.ids.tobytes(), data.speed_limits.tobytes(),
               self._player.key(data))
        if key != self._key:
            self._lay_out(frame, data, actor_list, demand, usable)
            # An array that deletes markers is for one frame only.
            self._key = None if self._markers.is_transient else key
        messages: Messages = []
        if self._blocks:
            numbers = self._numbers(frame, data, stamp_ns)
            for block in self._blocks:
                messages += block.messages(numbers)
        self._images.note_frame(data.frame_number, stamp_ns)
        if data.sensor_data and data.has_player:
            for error in data.sensor_data.errors:
                self._report('sensor', str(error))
            player_frame = actor_list.actors[0].frame_id
            messages += self._images.encode(data.sensor_data.images, player_frame, stamp_ns,
                                            demand)
            messages += self._points.encode(data.sensor_data.points, player_frame, stamp_ns,
                                            demand)
        return messages

    def _lay_out(self, frame: Frame, data: CarlaData, actor_list: ActorList, demand: Demand,
                 usable: Bools) -> None:
        blocks: list[MessageBlock] = []
        if data.player is not None and data.has_player:
            blocks += self._player.blocks(data.player, actor_list.actors[0].frame_id, demand)
        blocks += self._arrays.blocks(data, actor_list, demand)
        if enabled(self._settings, demand).markers:
            blocks += self._markers.blocks(data, usable)
        self._blocks = blocks
        self._tables = frozenset(table for block in blocks for table in block.tables)

    def _numbers(self, frame: Frame, data: CarlaData, stamp_ns: int) -> Numbers:
        """Return the numbers of all tables in use."""
        numbers = sign_numbers(frame, data, self._tables)
        if data.has_player and data.player is not None and frame.forward_speed is not None:
            numbers |= player_numbers(data, data.player, float(frame.forward_speed[0]),
                                      self._tables)
        numbers[STAMP] = stamp_numbers(stamp_ns)
        return numbers
