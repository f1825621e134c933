# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A bag as a recording: the messages of its ~/frame topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from state_sensor_ros.errors import TruncatedError
from state_sensor_ros.files.bags.bag_reader import Bag
from state_sensor_ros.files.bags.road_messages import roads_of
from state_sensor_ros.files.bags.state_frames import stamp_s, StateFrameDecoder
from state_sensor_ros.files.formats import ReadOptions
from state_sensor_ros.files.recording import RecordedFrame
from state_sensor_ros.payloads import Packet, PayloadDecoder


class BagRecording:
    """
    The StateFrames of a bag; their times are their stamps.

    :param bag: bag with StateFrames; :meth:`close` closes it.
    :ivar bag: the same bag.
    """

    unit = 'frame'
    simulator = ''

    def __init__(self, bag: Bag) -> None:
        self.name = bag.name
        self.topic = bag.topic
        self.form = f'bag, topic {bag.topic}'
        self.total: int | None = bag.n_messages
        self.cut: TruncatedError | None = None
        self.bag = bag
        self._roads = roads_of(bag)
        self.decoder = self.new_decoder()

    def new_decoder(self) -> PayloadDecoder:
        """Make a decoder of StateFrames."""
        return StateFrameDecoder(*self._roads)

    def frames(self) -> Iterator[RecordedFrame]:
        """Yield all frames in the order of their log times."""
        for index, (data, payload) in enumerate(self.payloads()):
            clock_s = stamp_s(data)
            yield RecordedFrame(Packet(payload, clock_s, 0, 0), clock_s, index,
                                f'message {index} of {self.topic}', index + 1)

    def payloads(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield each serialised StateFrame, and the payload that the decoder takes."""
        return ((data, data) for _, data in self.bag.messages())

    def messages_of_node(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """
        Yield the messages of other topics of the same node.

        :param names: names of topics, as for :meth:`Bag.messages_of_node`.
        :returns: the name and the serialised message of each.
        :raises TrajectoryFormatError: if the bag is damaged.
        """
        return self.bag.messages_of_node(names)

    def close(self) -> None:
        """Close the bag."""
        self.bag.close()


def open_bag(path: str, options: ReadOptions) -> BagRecording:
    """
    Open a bag.

    :raises TrajectoryFormatError: if it is damaged, or has no topic of frames.
    """
    return BagRecording(Bag(Path(path), options.topic, options.limits))
