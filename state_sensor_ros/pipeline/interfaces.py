# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Interfaces of the encoders and sinks of a pipeline; how to add one: doc/design/extending.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from state_sensor_ros.frame import Frame
from state_sensor_ros.naming import ActorList
from state_sensor_ros.payloads import FutureFrame, PayloadDecoder
from state_sensor_ros.pipeline.actor_topics import TopicSwitch
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import Demand, Topic


class Sink(TopicSwitch, Protocol):
    """The destination of messages. Used by one thread."""

    def demand(self) -> Demand:
        """Return which topics have subscribers."""

    def publish(self, messages: Sequence[tuple[Topic, bytes]], stamp_ns: int) -> None:
        """
        Send messages in their order.

        :param messages: topic and serialised message of each.
        :param stamp_ns: of their frame, ns since the epoch of the messages' clock.
        """


class SimulatorEncoder(Protocol):
    """Encodes the topics of one simulator only, such as CARLA's traffic lights."""

    def encode(self, frame: Frame, actor_list: ActorList, stamp_ns: int, demand: Demand, *,
               advanced: bool = True) -> list[tuple[Topic, bytes]]:
        """
        Encode these topics; nothing where the frame is of another simulator.

        :param frame: all actors, SI, REP-103 axes; ``extension`` has the data of the simulator.
        :param actor_list: of the registry, rows as in ``frame``.
        :param stamp_ns: ns since the epoch of the messages' clock.
        :param demand: topics that have subscribers; others need not be encoded.
        :param advanced: False for a frame whose clock did not advance.
        :returns: the messages in the order in which they are to be sent.
        """

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings``, which differ in dynamic parameters only, from the next frame on."""


class StackEncoder(Protocol):
    """Encodes topics for autonomy stacks, of frames of any simulator."""

    def encode(self, frame: Frame, actor_list: ActorList, stamp_ns: int, demand: Demand,
               upcoming: FutureFrame | None) -> list[tuple[Topic, bytes]]:
        """
        Encode the topics that ``demand`` names, of a frame whose clock has advanced.

        :param frame: all actors, SI, REP-103 axes.
        :param actor_list: of the registry, rows as in ``frame``.
        :param stamp_ns: ns since the epoch of the messages' clock.
        :param upcoming: of the packet.
        :returns: the messages in the order in which they are to be sent.
        """

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings``, which differ in dynamic parameters only, from the next frame on."""

    def restart(self) -> None:
        """Start a new run of the simulator."""


@dataclass(frozen=True, slots=True)
class Codec:
    """
    The decoder and the encoders of one stream; all of them keep state of the last frames.

    ``decoder`` of the source's payloads; ``encoder`` of the common topics; ``simulator_encoders``
    of simulator-specific topics; ``stack_encoder`` of those for autonomy stacks, if any.
    """

    decoder: PayloadDecoder
    encoder: Encoder
    simulator_encoders: Sequence[SimulatorEncoder] = ()
    stack_encoder: StackEncoder | None = None
