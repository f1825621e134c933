# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The parts that a pipeline is given: codec, sink (to add one: doc/design/extending.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from state_sensor_ros.payloads import PayloadDecoder
from state_sensor_ros.pipeline.published_actors import TopicSwitch
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import Demand, Topic


class Sink(TopicSwitch, Protocol):
    """The destination of messages. Used by one thread."""

    def demand(self) -> Demand:
        """Return which topics have subscribers."""

    def publish(self, messages: Sequence[tuple[Topic, bytes]], stamp_ns: int) -> None:
        """
        Send messages in their order.

        :param messages: topics and serialised messages.
        :param stamp_ns: stamp of their frame, ns since the epoch of the messages' clock.
        """


@dataclass(frozen=True, slots=True)
class Codec:
    """
    The decoder and the encoder of one stream; both keep state of the last frames.

    ``decoder`` of the source's payloads; ``encoder`` of all topics.
    """

    decoder: PayloadDecoder
    encoder: Encoder
