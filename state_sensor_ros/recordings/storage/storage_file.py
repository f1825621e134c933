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
from typing import NamedTuple, Protocol

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


class Recovered(NamedTuple):
    """
    A message of a damaged bag.

    ``publish_ns`` None and ``sequence`` 0 where the file has no place for them.
    """

    topic: StoredTopic
    log_ns: int
    data: bytes
    publish_ns: int | None = None
    sequence: int = 0


class Salvage(Protocol):
    """
    What can still be read of a storage file.

    ``topics`` that were found so far; behind the last message: ``losses`` what could not be read,
    and ``defects`` what else was wrong, each in words.
    """

    topics: dict[int, StoredTopic]
    losses: list[str]
    defects: list[str]

    @property
    def n_lost(self) -> int | None:
        """How many messages were lost, None where that is not known."""

    def messages(self) -> Iterator[Recovered]:
        """Yield all messages that can be read, in the order of the file."""

    def close(self) -> None:
        """Close the file; closing twice is quiet."""


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
