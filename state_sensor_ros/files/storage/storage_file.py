# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What storage files of bags have in common: topics and messages, size limits, and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from state_sensor_ros.errors import TrajectoryFormatError

# Topic number, log time in ns, serialized message.
StoredMessage = tuple[int, int, bytes]
# The language of definitions and the serialization that this package writes.
ROS2MSG, CDR = 'ros2msg', 'cdr'
REPAIRABLE = 'a whole bag; `state_sensor repair` recovers its readable messages'


@dataclass(frozen=True, slots=True)
class StoredTopic:
    name: str
    type_name: str
    # Of its type, in the language ``encoding`` (``ros2msg``, ``ros2idl``, ``''``).
    definition: str = ''
    encoding: str = ''
    type_hash: str = ''  # RIHS01 or ``''``
    serialization: str = CDR  # such as ``cdr``
    qos: str = ''  # offered profiles as YAML


class Recovered(NamedTuple):
    """A message of a damaged bag."""

    topic: StoredTopic
    log_ns: int  # log_ns, publish_ns: its times, ns
    data: bytes
    publish_ns: int | None = None
    sequence: int = 0  # 0 if the file does not store them


@dataclass(frozen=True, slots=True)
class BagLimits:
    """Sizes above which a bag is refused, bytes."""

    # The default of max_frame_bytes: the node cannot have received a larger packet.
    # Limit for a message, for a chunk, also decompressed, and for all definitions.
    n_bytes: int = 64 * 1024 * 1024

    @property
    def n_file_bytes(self) -> int:
        """Decompressed size of a storage file that is compressed as a whole."""
        return 16 * self.n_bytes

    @property
    def n_metadata_bytes(self) -> int:
        """Size of metadata.yaml, whose parsed values take several times as much memory."""
        return self.n_bytes // 8


DEFAULT_LIMITS = BagLimits()


def limits_of(n_bytes: int | None) -> BagLimits:
    """Return the limits with a given size."""
    # n_bytes: size of a message and of a chunk, bytes; None for the default.
    return DEFAULT_LIMITS if n_bytes is None else BagLimits(n_bytes)


class BagError(TrajectoryFormatError):
    """
    A bag is damaged or too large.

    :param where: place in one of its files.
    :param found: see :class:`StateSensorError`.
    :param expected: see :class:`StateSensorError`.
    :param fault: short description of the fault; ``''`` for the text of ``found``.
    """

    def __init__(self, where: str, found: str, expected: str, fault: str = '') -> None:
        super().__init__(where, found, expected)
        self.fault = fault or found


def damaged(where: str, fault: str) -> BagError:
    """Return the error for a violation of a bag's format."""
    return BagError(where, f'a damaged bag ({fault})', REPAIRABLE, fault)


def too_large(where: str, what: str, limit: int) -> BagError:
    """Return the error for data above a limit."""
    # what: noun with its article, such as ``a chunk``.
    found = f'{what} of more than {limit} bytes'
    return BagError(where, found, 'no more than that (--max-bag-bytes; in the node '
                    'max_frame_bytes)', f'{found}, see --max-bag-bytes')
