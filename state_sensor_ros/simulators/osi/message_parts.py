# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Messages of OSI from the parts that esmini sends over UDP.

Each datagram is ``int32 counter, uint32 size, bytes`` (little-endian). The counter is 1, 2, 3 ...
and negative in the last part of a message, -1 if it is the only part::

    datagrams   1  2  -3    1  -3    1  2  -3
    messages    whole       lost     whole
"""

from __future__ import annotations

import struct

_HEAD = struct.Struct('<iI')


class MessageParts:
    """
    Joins the parts of messages; incomplete messages are dropped.

    :param limit: longest message, bytes.
    :ivar n_lost: messages of which a part was missing, or out of order, or that were too long.
    :ivar n_invalid: datagrams that are not parts of messages.
    """

    def __init__(self, limit: int) -> None:
        self.n_lost = self.n_invalid = 0
        self._limit = limit
        self._parts: list[bytes] = []
        self._n_bytes = 0
        # Whether the current message is counted as lost: its other parts are skipped.
        self._is_lost = False

    def add(self, datagram: bytes) -> bytes | None:
        """
        Add a part.

        :param datagram: datagram as received.
        :returns: the message that it completes, if any.
        """
        counter, size = _HEAD.unpack_from(datagram) if len(datagram) >= _HEAD.size else (0, 0)
        if not counter or len(datagram) != _HEAD.size + size:
            self.n_invalid += 1
            return None
        number = abs(counter)
        if number == 1:
            self._drop(is_lost=bool(self._parts))
            self._is_lost = False
        elif number != len(self._parts) + 1 or self._n_bytes + size > self._limit:
            self._drop(is_lost=not self._is_lost)
            self._is_lost = True
        if self._is_lost:
            # The last part ends the lost message: what follows is another one.
            self._is_lost = counter > 0
            return None
        self._parts.append(datagram[_HEAD.size:])
        self._n_bytes += size
        if counter > 0:
            return None
        message = b''.join(self._parts)
        self._drop(is_lost=False)
        return message

    def _drop(self, *, is_lost: bool) -> None:
        self.n_lost += is_lost
        self._parts = []
        self._n_bytes = 0
