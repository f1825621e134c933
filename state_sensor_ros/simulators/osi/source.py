# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The live source: ground truth over UDP, as esmini sends it.

Each datagram is ``int32 counter, uint32 size, bytes`` (little-endian). The counter is 1, 2, 3 ...
and negative in the last part of a message, -1 if it is the only part::

    datagrams   1  2  -3    1  -3    1  2  -3
    messages    whole       lost     whole
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
import math
import struct
import time

from state_sensor_ros.connections.connection import DatagramPort
from state_sensor_ros.connections.live_source import LiveSource
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.osi import OsiParameters
from state_sensor_ros.simulators.osi.frames import Decoder, Run
from state_sensor_ros.source import Report
from state_sensor_ros.texts import counted

_HEAD = struct.Struct('<iI')
# Time between two checks whether the stream is over, s.
_WAIT_S = 1.0
# Memory of a part besides its content, bytes. Longest time from the first part of a message to its
# last one, s: a sender writes them one after the other.
_PART_BYTES = 64
_LONGEST_MESSAGE_S = 1.0
# UDP has no end: a stream without reconnects is over after this silence, s.
_END_S = 5.0


class OsiSource(LiveSource):
    """Yield a frame for each message."""

    # reconnect: whether it waits without limit; otherwise it ends after 5 s without a message,
    # once it has received one.

    def __init__(self, settings: Settings, address: str, report: Report, *,
                 reconnect: bool = True) -> None:
        super().__init__(settings, address, reconnect=reconnect)
        self._report = report
        self._port: DatagramPort | None = None
        self._parts = MessageParts(settings.max_frame_bytes)
        self._losses = 0, 0
        self._decoder = Decoder(settings.of(OsiParameters), Run(), self.faults)

    def receive(self) -> Iterator[Frame]:
        """Open the port, and yield the frames."""
        own = self.settings.of(OsiParameters)
        self._port = port = DatagramPort(own.bind, own.port)
        self.connected()
        self.health.silence = (f'nothing has arrived at {self._address}; does the '
                               'simulator send there? esmini: --osi_receiver_ip')
        heard_s = math.inf
        while not self.is_closing:
            datagram = port.receive(_WAIT_S)
            if datagram is None:
                if not self._reconnect and time.monotonic() - heard_s > _END_S:
                    self.finish(f'no message for {_END_S:g} s')
                    break
                continue
            heard_s = time.monotonic()
            self.health.silence = ''
            self.health.n_bytes += len(datagram)
            message = self._parts.add(datagram, port.n_dropped)
            self._count(self._parts)
            if message is not None:
                self._decoder.details = self.details
                yield from self.decoded(partial(map, self._decoder.frame, [message]))

    def _count(self, parts: MessageParts) -> None:
        health, losses = self.health, (parts.n_lost, parts.n_dropped)
        if losses != self._losses:
            self._losses, health.n_cut_packets = losses, parts.n_lost
            self._report('osi_lost', f'{self._address}: {counted(parts.n_lost, "message")} lost, '
                         'of which a part was missing or out of order, and '
                         f'{counted(parts.n_dropped, "datagram")} not read in time')
        if parts.n_invalid > health.n_protocol_errors:
            health.n_protocol_errors = parts.n_invalid
            self._report('osi_invalid', f'{self._address}: {counted(parts.n_invalid, "datagram")} '
                         'invalid: not message parts as esmini sends them')

    def disconnect(self) -> None:
        """Close the port; note what waits there."""
        port, self._port = self._port, None
        if port is not None:
            n_unread = sum(self._parts.add(datagram, port.n_dropped) is not None
                           for datagram in port.waiting())
            self._count(self._parts)
            if n_unread > 1:
                self.health.unread = counted(n_unread, 'message')
            port.close()

    def interrupt(self) -> None:
        """End the wait for a datagram."""
        port = self._port
        if port is not None:
            port.interrupt()


class MessageParts:
    """
    Joins the parts of messages; incomplete messages are dropped.

    :ivar n_lost: messages of which a part was missing or out of order, or which were too long.
    :ivar n_dropped: datagrams that the system has dropped, some of which may be whole messages.
    :ivar n_invalid: datagrams that are no parts.
    """

    def __init__(self, limit: int) -> None:
        self.n_lost = self.n_dropped = self.n_invalid = 0
        self._limit = limit
        self._parts: list[bytes] = []
        self._n_bytes = 0
        self._begin_s = 0.0
        # Whether the current message is counted as lost: its other parts are skipped.
        self._is_lost = False

    def add(self, datagram: bytes, n_dropped: int = 0, now_s: float | None = None) -> bytes | None:
        now_s = time.monotonic() if now_s is None else now_s
        counter, size = _HEAD.unpack_from(datagram) if len(datagram) >= _HEAD.size else (0, 0)
        if not counter or len(datagram) != _HEAD.size + size:
            self.n_invalid += 1
            return None
        number = abs(counter)
        if number == 1:
            self._drop(is_lost=bool(self._parts))
            self._is_lost = False
            self._begin_s = now_s
        elif not self._is_next(number, size, is_last=counter < 0, n_dropped=n_dropped,
                               now_s=now_s):
            self._drop(is_lost=not self._is_lost)
            self._is_lost = True
        self.n_dropped = n_dropped
        if self._is_lost:
            # The last part ends the lost message: what follows is another one.
            self._is_lost = counter > 0
            return None
        self._parts.append(datagram[_HEAD.size:])
        self._n_bytes += size + _PART_BYTES
        if counter > 0:
            return None
        message = b''.join(self._parts)
        self._drop(is_lost=False)
        return message

    def _is_next(self, number: int, size: int, *, is_last: bool, n_dropped: int,
                 now_s: float) -> bool:
        """Return whether a part follows those that were received, of the same message."""
        parts = self._parts
        if number != len(parts) + 1 or n_dropped != self.n_dropped \
                or now_s - self._begin_s > _LONGEST_MESSAGE_S \
                or self._n_bytes + size + _PART_BYTES > self._limit:
            return False
        # All parts but the last one are full.
        return size <= len(parts[0]) if is_last else size == len(parts[0])

    def _drop(self, *, is_lost: bool) -> None:
        self.n_lost += is_lost
        self._parts = []
        self._n_bytes = 0
