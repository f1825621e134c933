# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What a storage file of a bag offers, whatever its form.

May know: topics as rosbag2 describes them. Must not know: MCAP, SQLite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

# Number of the topic, log time, ns, serialised message.
Message = tuple[int, int, bytes]


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """
    A topic in a storage file.

    ``definition`` of its type, in the language ``encoding`` (``ros2msg``, ``ros2idl``, ``''``);
    ``type_hash`` RIHS01 or ``''``; ``serialization`` such as ``cdr``; ``qos`` offered profiles,
    YAML.
    """

    name: str
    type_name: str
    definition: str = ''
    encoding: str = ''
    type_hash: str = ''
    serialization: str = 'cdr'
    qos: str = ''


class Storage(Protocol):
    """
    A storage file that is open.

    ``topics`` by the number that they have in this file; ``counts`` of messages, by the same.
    """

    topics: dict[int, StoredTopic]
    counts: Counter[int]

    def messages(self, wanted: Collection[int]) -> Iterator[Message]:
        """
        Yield messages in the order of their log times.

        :param wanted: numbers of topics.
        :raises BagError: where the file is damaged.
        """

    def close(self) -> None:
        """Close the file; closing twice is quiet."""
