# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Messages with the objects that a sensor would report, published with a delay."""

from collections import deque
from collections.abc import Iterator, Sequence

from state_sensor_ros.frame import NS_PER_S
from state_sensor_ros.topics.message_block import Messages
from state_sensor_ros.topics.topic import Topic


class DelayLine:
    """
    Hold messages back until the stamps have reached their time.

    They leave in the order in which they came, also if the delay becomes shorter. ``held`` the
    messages that are held back.
    """

    def __init__(self) -> None:
        # Stamp at which the messages of a frame are due, and the messages.
        self.held: deque[tuple[int, Messages]] = deque()

    def clear(self) -> None:
        """Drop the messages that are held back."""
        self.held.clear()

    def hold(self, messages: Messages, stamp_ns: int, delay_s: float) -> Messages:
        """
        Hold the messages of perceived topics back; return the others.

        :param messages: messages of a frame.
        :param stamp_ns: stamp of the frame, ns.
        :param delay_s: delay, s.
        """
        late = [message for message in messages if message[0].is_perceived]
        if late:
            self.held.append((stamp_ns + round(delay_s * NS_PER_S), late))
        return [message for message in messages if not message[0].is_perceived]

    def due(self, stamp_ns: int | None) -> Iterator[tuple[int, Sequence[tuple[Topic, bytes]]]]:
        """
        Yield the messages that are due, with the stamp at which they are.

        :param stamp_ns: stamp that has been reached, ns; None to yield all.
        """
        while self.held and (stamp_ns is None or self.held[0][0] <= stamp_ns):
            yield self.held.popleft()
