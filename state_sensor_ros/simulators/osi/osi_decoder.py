# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Payloads of OSI: each is one serialised message."""

from __future__ import annotations

from dataclasses import replace
import math

from state_sensor_ros.simulators import Decoded, SingleFrameDecoder
from state_sensor_ros.simulators.osi.messages import (
    kind_of_messages,
    MessageKind,
    parse_truth,
)
from state_sensor_ros.simulators.osi.osi_frames import OsiFrames


class OsiDecoder(SingleFrameDecoder):
    """
    Decodes the messages of one trace or stream, in any order.

    :param kind: kind of the messages, None to find it by the first ones.
    :param ego: name or id of the ego of a trace without a host, empty for none.
    :param first: message whose lanes, stationary objects and host are used until another message
        has them; empty for none.
    """

    def __init__(self, kind: MessageKind | None, ego: str = '', first: bytes = b'') -> None:
        self._kind = kind
        self._frames = OsiFrames(ego)
        if first and kind is not None:
            self._frames.take_static(parse_truth(first, kind))

    def decode(self, payload: bytes | bytearray | memoryview, *, game_time: float = math.nan,
               time: int = 0, sample_count: int = 0) -> list[Decoded]:
        """
        Decode one message.

        :raises DecodeError: if it cannot be parsed, or has too many objects.
        """
        data = bytes(payload)
        kind = self._kind
        if kind is None:
            kind, is_certain = kind_of_messages((data,))
            self._kind = kind if is_certain else None
        timed = parse_truth(data, kind or MessageKind.GROUND_TRUTH)
        if math.isnan(timed.game_time):
            timed = replace(timed, game_time=game_time)
        return [self._frames.decoded(timed, self.needs)]
