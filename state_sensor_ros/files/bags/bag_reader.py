# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The StateFrames of a rosbag2 bag, under any node name, and other messages of the same node.

A bag is a folder with metadata.yaml, or a single storage file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.files.bags.open_bag import OpenBag, TopicKey
from state_sensor_ros.files.bags.state_frames import STATE_FRAME
from state_sensor_ros.files.storage.bag_limits import BagLimits, DEFAULT_LIMITS


class Bag:
    """
    A bag with StateFrames; it is open until :meth:`close`.

    :param path: folder with metadata.yaml, or a .mcap or .db3 file.
    :param topic: topic of the StateFrames; ``''`` for the only one of that type.
    :param limits: sizes above which the bag is refused.
    :ivar topic: topic of the StateFrames.
    :ivar n_messages: number of StateFrames.
    :raises TrajectoryFormatError: if it cannot be read or has no such topic.
    """

    def __init__(self, path: Path, topic: str = '', limits: BagLimits = DEFAULT_LIMITS) -> None:
        self._bag = OpenBag(path, limits)
        self.name = self._bag.name
        try:
            self._frames = self._chosen(topic)
        except BaseException:
            self.close()
            raise
        self.topic = self._frames[0]
        self._node = self.topic.rpartition('/')[0]
        self.n_messages = self._bag.count(self._frames)

    def messages(self) -> Iterator[tuple[int, bytes]]:
        """
        Yield log time, ns, and serialised StateFrame of each message, in the order of log times.

        :raises TrajectoryFormatError: if the bag is damaged.
        """
        for _, log_ns, data in self._bag.messages({self._frames}):
            yield log_ns, data

    def has(self, name: str, type_name: str) -> bool:
        """
        Return whether the bag has a topic of the node that published the StateFrames.

        :param name: name of the topic, without the node's, such as ``frame``.
        :param type_name: ``package/msg/Name``.
        """
        return (f'{self._node}/{name}', type_name) in self._bag.topics

    def counts_of_node(self) -> dict[tuple[str, str], int]:
        """
        Return the number of messages of each topic of the node that published the StateFrames.

        :returns: numbers by name, without the node's, and type.
        """
        prefix = f'{self._node}/'
        return {(name.removeprefix(prefix), type_name): self._bag.count((name, type_name))
                for name, type_name in self._bag.topics if name.startswith(prefix)}

    def messages_of_node(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """
        Yield messages of the node that published the StateFrames, in the order of log times.

        :param names: names of topics, without the node's, such as ``frame``.
        :returns: the name and the serialised message of each.
        :raises TrajectoryFormatError: if the bag is damaged.
        """
        short_names = {f'{self._node}/{name}': name for name in names}
        selected = {key for key in self._bag.topics if key[0] in short_names}
        for topic, _, data in self._bag.messages(selected):
            yield short_names[topic], data

    def messages_of(self, name: str, type_name: str) -> Iterator[bytes]:
        """
        Yield the messages of any topic in the order of log times.

        :param name: name of the topic.
        :param type_name: ``package/msg/Name``.
        :raises TrajectoryFormatError: if the bag is damaged.
        """
        key = name, type_name
        # The messages of a latched topic are at the start: the rest of the bag is not read.
        for _, _, data in islice(self._bag.messages({key}), self._bag.count(key)):
            yield data

    def latched(self, name: str, type_name: str) -> Iterator[bytes]:
        """
        Yield the messages of a topic of the node that published the StateFrames.

        :param name: name of a topic with few messages, as for :meth:`has`.
        :param type_name: ``package/msg/Name``.
        :raises TrajectoryFormatError: if the bag is damaged.
        """
        return self.messages_of(f'{self._node}/{name}', type_name)

    def close(self) -> None:
        """Close the bag; a second call has no effect."""
        self._bag.close()

    def _chosen(self, topic: str) -> TopicKey:
        """Return name and type of the topic of the StateFrames."""
        frames = sorted(key for key in self._bag.topics if key[1] == STATE_FRAME)
        names = [name for name, _ in frames]
        if not frames:
            raise TrajectoryFormatError(self.name, 'no topic of the type StateFrame',
                                        f'a bag with {STATE_FRAME}, such as ~/frame')
        if not topic and len(frames) > 1:
            raise TrajectoryFormatError(self.name, f'the topics {", ".join(names)}',
                                        'one of them to be named by --topic')
        if topic and topic not in names:
            raise TrajectoryFormatError(self.name, f'no topic {topic} of the type StateFrame',
                                        f'one of {", ".join(names)}')
        chosen = (topic or names[0], STATE_FRAME)
        self._bag.check_definition(chosen)
        return chosen
