# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The sensor port of a simulator: its bytes cut into packets, with the sensor configured first.

The framer has no sockets and uses bounded memory.
Two headers, big-endian (doc/protocol/sensor.md#header). The length includes the header::

     0              4              8              12             16
     +--------------+--------------+--------------+--------------+----------
     | length       | time         | game_time    | sample_count | payload   new, 16 bytes
     +--------------+--------------+--------------+--------------+----------
     | uint32       | uint32 s     | float32 s    | uint32       | JSON
     +--------------+--------------+--------------+--------------+----------
     | length       | time         | game_time    | payload …                old, 12 bytes
     +--------------+--------------+--------------+-------------------------

The first packet with a payload decides: byte 12 is ``{`` or ``[`` with the old header. As the
first byte of a sample count they would mean more than 1.5e9 samples. Example::

     00 00 00 12  5f 5e 10 00  41 48 00 00  00 00 00 28  7b 7d
     18 bytes     1600000000   12.5 s       sample 40    {}       new header: byte 12 is 00
     00 00 00 0e  5f 5e 10 00  41 48 00 00  7b 7d
     14 bytes     1600000000   12.5 s       {}                    old header: byte 12 is 7b

The caller writes the next bytes to :meth:`PacketFramer.buffer`, so that a payload is received
without a copy, and passes their number to :meth:`PacketFramer.advance`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import struct

import numpy as np

from state_sensor_ros.payloads import Packet
from state_sensor_ros.simulators import (
    bad_length,
    Frame,
    FramingError,
    ignore,
    Report,
    Settings,
    TransportError,
    Units,
)
from state_sensor_ros.simulators.connections import TcpSource
from state_sensor_ros.simulators.monodrive.commands import ControlClient
from state_sensor_ros.simulators.monodrive.decoder import FrameDecoder

_OLD_HEADER = struct.Struct('>IIf')
_SAMPLE_COUNT = struct.Struct('>I')
OLD_HEADER_BYTES = _OLD_HEADER.size
NEW_HEADER_BYTES = OLD_HEADER_BYTES + _SAMPLE_COUNT.size
_JSON_OPENERS = b'{['


class PacketFramer:
    """Divide the bytes of one connection into packets."""

    # where: named in errors, such as ``host:port``.

    def __init__(self, max_frame_bytes: int, where: str = 'stream') -> None:
        self._max = max_frame_bytes
        self._where = where
        self._header_bytes = 0  # 0: not detected yet
        self._offset = 0  # of the current packet in the stream
        self._header = bytearray(NEW_HEADER_BYTES)
        self._begin()

    def _begin(self) -> None:
        self._payload: bytearray | None = None
        self._length = 0
        self._filled = 0
        # Before the detection 12 bytes are read first: a packet with the old header may end there.
        self._view = memoryview(self._header)[:self._header_bytes or OLD_HEADER_BYTES]

    def buffer(self) -> memoryview:
        """Return the memory for the next bytes, never empty."""
        return self._view

    def advance(self, n_bytes: int) -> Packet | None:
        """Process bytes that were written to :meth:`buffer`."""
        self._filled += n_bytes
        self._view = self._view[n_bytes:]
        if len(self._view):
            return None
        if self._payload is None:
            self._header_complete()
            if len(self._view):
                return None
        return self._packet()

    def end(self) -> None:
        """Process the end of the stream."""
        if self._filled:
            raise TransportError(
                self._where, f'the end of the stream {self._filled} bytes into a packet',
                f'{self._length} bytes' if self._length else f'{OLD_HEADER_BYTES} bytes or more')

    def _header_complete(self) -> None:
        """Check the length, detect the header and allocate memory for the rest."""
        (self._length,) = _SAMPLE_COUNT.unpack_from(self._header)
        header_bytes = self._header_bytes
        if not (header_bytes or OLD_HEADER_BYTES) <= self._length <= self._max:
            raise self._bad_length(header_bytes or OLD_HEADER_BYTES)
        if not header_bytes:
            if self._length < NEW_HEADER_BYTES:
                header_bytes = OLD_HEADER_BYTES
            elif self._filled < NEW_HEADER_BYTES:
                self._view = memoryview(self._header)[OLD_HEADER_BYTES:]
                return
            else:
                header_bytes = self._detect()
        self._allocate(header_bytes)

    def _detect(self) -> int:
        """Return the size of the header, kept for the connection if this packet decides it."""
        if self._header[OLD_HEADER_BYTES] in _JSON_OPENERS:
            self._header_bytes = OLD_HEADER_BYTES
        elif self._length > NEW_HEADER_BYTES:
            self._header_bytes = NEW_HEADER_BYTES
        # A packet without payload does not show which header the connection has.
        return self._header_bytes or NEW_HEADER_BYTES

    def _bad_length(self, least: int) -> FramingError:
        return bad_length(
            self._where, b'' if self._offset else bytes(self._header[:self._filled]),
            f'packet length {self._length} at byte {self._offset}',
            f'at least {least}, its own header' if self._length < least
            else f'at most max_frame_bytes, {self._max}')

    def _allocate(self, header_bytes: int) -> None:
        """Allocate the payload; its first bytes may have been read as those of a new header."""
        received = self._header[header_bytes:max(self._filled, header_bytes)]
        self._payload = _new_payload(self._length - header_bytes)
        self._payload[:len(received)] = received
        self._view = memoryview(self._payload)[len(received):]

    def _packet(self) -> Packet:
        assert self._payload is not None
        _, time, game_time = _OLD_HEADER.unpack_from(self._header)
        sample_count = 0
        if self._length - len(self._payload) == NEW_HEADER_BYTES:
            (sample_count,) = _SAMPLE_COUNT.unpack_from(self._header, OLD_HEADER_BYTES)
        packet = Packet(self._payload, game_time, time, sample_count)
        self._offset += self._length
        self._begin()
        return packet


def _new_payload(n_bytes: int) -> bytearray:
    """
    Return ``n_bytes`` in memory of up to an eighth more, the same for all of about that length.

    The packets of a stream differ in length by some bytes. In memory of its own length one would
    seldom fit where another had been: eleven took that of thirteen to sixteen, and more in time.
    """
    step = 1 << max(n_bytes.bit_length() - 4, 0)
    payload = bytearray(-(-n_bytes // step) * step)
    # A bytearray that loses less than half of its bytes keeps their memory.
    del payload[n_bytes:]
    return payload


# What to check if the port is open and sends nothing.
_SILENCE = ('check that the port is that of the sensor, that the sensor is configured (parameters '
            'control_port, config_file), and that the simulation is running')


def open_sensor_port(settings: Settings, report: Report = ignore, *, reconnect: bool = True,
                     before_connect: Callable[[], None] | None = None,
                     after_connect: Callable[[], None] | None = None) -> TcpSource:
    """Make the source of ``settings.port``; it connects when its frames are iterated over."""
    clocks = _Clocks(report)

    def decode(packet: Packet) -> list[Frame]:
        frames = list(decoder.frames(packet, details=source.details))
        if len(frames) == 1:
            clocks.compare(packet, frames[0])
        return frames

    source = TcpSource(
        settings.host, settings.port,
        lambda where: PacketFramer(settings.max_frame_bytes, where), decode, settings,
        reconnect=reconnect, before_connect=before_connect, after_connect=after_connect)
    decoder = FrameDecoder(Units(settings.obb_extents, settings.road_s_unit), source.faults)
    source.health.silence = _SILENCE
    return source


class _Clocks:

    def __init__(self, report: Report) -> None:
        self._report, self._are_reported = report, False

    def compare(self, packet: Packet, frame: Frame) -> None:
        """Report once if header and JSON of a packet have different times; the JSON is used."""
        # In the header game_time is a float32.
        if not self._are_reported and (
                abs(packet.game_time - frame.game_time) > np.spacing(np.float32(frame.game_time))
                or (packet.time and frame.time and abs(packet.time - frame.time) > 1)):
            self._are_reported = True
            self._report('clocks', 'the header of a packet has game_time '
                         f'{packet.game_time:.9g}, time {packet.time}, its JSON has '
                         f'{frame.game_time:.9g}, {frame.time}: the values in the JSON '
                         'are used (reported once)')


class ConfiguredSource:
    """Frames of ``settings.port``, with the sensor configured over ``settings.control_port``."""

    # report: called with a kind, for throttling, and a line about a failure of the control port; a
    # failure that prevents a connection to the sensor port is in ``health`` only.

    def __init__(self, settings: Settings, report: Report, *, reconnect: bool = True) -> None:
        self._report = report
        self.client = ControlClient(settings, report, on_silence=self._note_silence)
        self._tcp = open_sensor_port(settings, report, reconnect=reconnect,
                                     before_connect=self.client.configure,
                                     after_connect=self.client.connected)
        self.health, self.faults = self._tcp.health, self._tcp.faults

    @property
    def details(self) -> bool:
        """Whether boxes, wheels and inputs are used."""
        return self._tcp.details

    @details.setter
    def details(self, details: bool) -> None:
        self._tcp.details = details

    def frames(self) -> Iterator[Frame]:
        """Yield frames; connect, wait and connect again until closed."""
        for frame in self._tcp.frames():
            self.client.packet_arrived()
            yield frame

    def reconfigure(self, settings: Settings) -> None:
        """Have the simulator use the tags and box options of ``settings``, soon."""
        self.client.reconfigure(settings)

    def _note_silence(self, text: str) -> None:
        """Report that the control port has not replied for a while."""
        if self.health.state == 'connected':
            self._report('silence', text)
        else:
            self.health.last_error = text

    def close(self) -> None:
        """End :meth:`frames` soon: close the sensor port, then the control port."""
        self._tcp.close()
        self.client.close()
