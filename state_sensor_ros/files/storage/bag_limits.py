# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Size limits of a bag, and the errors for a bag that exceeds them or is damaged.

Readers check a declared size before they allocate memory for it, because a few bytes of a file can
declare any size.
"""

from __future__ import annotations

from dataclasses import dataclass

from state_sensor_ros.errors import TrajectoryFormatError

_REPAIRABLE = 'a whole bag; `state_sensor repair` recovers its readable messages'


@dataclass(frozen=True, slots=True)
class BagLimits:
    """
    Sizes above which a bag is refused, bytes.

    ``n_bytes`` limit for a message, for a chunk, also decompressed, and for all definitions.
    """

    # The default of max_frame_bytes: the node cannot have received a larger packet.
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
    """
    Return the limits with a given size.

    :param n_bytes: size of a message and of a chunk, bytes; None for the default.
    """
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
    """
    Return the error for a violation of a bag's format.

    :param where: place in a file.
    :param fault: short description of the fault.
    """
    return BagError(where, f'a damaged bag ({fault})', _REPAIRABLE, fault)


def too_large(where: str, what: str, limit: int) -> BagError:
    """
    Return the error for data above a limit.

    :param where: place in a file.
    :param what: noun with its article, such as ``a chunk``.
    :param limit: limit that it exceeds, bytes.
    """
    found = f'{what} of more than {limit} bytes'
    return BagError(where, found, 'no more than that (--max-bag-bytes; in the node '
                    'max_frame_bytes)', f'{found}, see --max-bag-bytes')
