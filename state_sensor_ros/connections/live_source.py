# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A live source that connects again with a growing wait: of any connection, or of a TCP port.

State of the source (``health.state``)::

    state       event                                   next state
    ----------  --------------------------------------  ----------
    CONNECTING  connected()                             CONNECTED
                receive() ends or raises                WAITING
    CONNECTED   receive() ends or raises                WAITING
    WAITING     the wait is over                        CONNECTING
    WAITING     the failures are final                  WAITING: frames() raises the last one
    any         close()                                 CLOSED
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
import math
import socket
import threading
import time
from typing import Any

import numpy as np

from state_sensor_ros import errors
from state_sensor_ros.connections.connection import Connection, keep_alive
from state_sensor_ros.connections.framing import Framer
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import DEFAULTS, Settings
from state_sensor_ros.source import Faults, Health, LOST, SourceState

# The kernel buffers this much while a frame is decoded: a few frames of a thousand actors.
_RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024
# While at most _HEADER_BYTES of a header are missing, this much is read at once: a shorter packet
# then needs one system call and one wake-up of the thread.
_AHEAD_BYTES = 64 * 1024
_HEADER_BYTES = 16
# Keep-alive probes begin after a silence of stale_after; the connection fails when none of them
# is acknowledged.
_KEEPALIVE_PROBES = 2
_KEEPALIVE_INTERVAL_S = 1


class LiveSource(ABC):
    """
    Frames of a running simulator, until :meth:`close`.

    One thread iterates over :meth:`frames`; any thread may close or reconfigure.

    :param settings: ``reconnect_min`` is the first wait before connecting again, doubled up to
        ``reconnect_max``.
    :param address: address that it connects to, as :meth:`Simulator.address` returns it, for
        errors of the operating system.
    :param reconnect: whether to connect again after a failure; otherwise the first failure is
        raised, and the source ends with the connection.
    :ivar settings: present values of the parameters.
    :ivar is_over: whether :meth:`finish` was called.
    :ivar health: packets, reconnects and the last error are noted by this class, ``n_bytes`` and
        ``n_cut_packets`` by a subclass that has any.
    """

    def __init__(self, settings: Settings = DEFAULTS, address: str = 'source', *,
                 reconnect: bool = True) -> None:
        self.health, self.faults, self.details = Health(), Faults(), True
        self._address = address
        self.settings = settings
        self._reconnect = reconnect
        self._closing = threading.Event()
        self.is_over = False

    @abstractmethod
    def receive(self) -> Iterator[Frame]:
        """
        Connect, call :meth:`connected`, and yield the frames until the connection ends.

        It is called again for each further connection.

        :raises StateSensorError: if connecting or receiving fails, as does OSError; an
            UnreachableError if the simulator does not run yet. Three equal failures in a row end
            a command.
        """

    def decoded(self, decode: Callable[[], Iterable[Frame]]) -> Iterator[Frame]:
        """
        Yield the frames of a packet, none if it cannot be used, which is a fault.

        :param decode: returns or yields them, or raises DecodeError.
        """
        self.health.arrived_ns = time.perf_counter_ns()
        n_packets = self.health.n_packets + 1
        self.faults.place = f'packet {n_packets}'
        try:
            # One by one: a fault belongs between the frames around it.
            frames = iter(decode())
            while True:
                # Warnings about unusual numbers, which are NaN afterward, are for no user.
                with np.errstate(all='ignore'):
                    frame = next(frames, None)
                if frame is None:
                    break
                yield frame
        except errors.DecodeError as error:
            self.faults.add(LOST, error)
        except Exception as error:
            if not self.faults.has_defects:
                raise
            self.faults.add(LOST, errors.DecodeError(self.faults.place, repr(error)), defect=error)
        finally:
            # Also if it had several frames, or none.
            self.health.n_packets = n_packets

    def disconnect(self) -> None:  # noqa: B027
        """Release what :meth:`receive` has opened; called after its end, also after a failure."""

    def interrupt(self) -> None:  # noqa: B027
        """
        End a wait of :meth:`receive`; called from any thread by :meth:`close`.

        :raises OSError: if the connection has ended by itself; ignored.
        """

    def end_reason(self) -> str:
        """Return why :meth:`receive` ended without an error."""
        return 'the simulator ended the stream'

    @property
    def is_closing(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closing.is_set()

    def connected(self) -> None:
        """Note that a connection was made; called by :meth:`receive`."""
        self.health.n_connects += 1
        self.health.state = SourceState.CONNECTED

    def finish(self, why: str) -> None:
        """
        Note that nothing follows: no further connection is made.

        :param why: one line, such as that a scenario is over.
        """
        self.is_over = True
        self.health.loss = why

    def frames(self) -> Iterator[Frame]:
        """
        Yield what arrives; connect, wait and connect again until closed.

        :raises StateSensorError: if the connection fails, unless it is to be made again; if the
            failures are final.
        """
        delay_s = self.settings.reconnect_min
        frame: Frame | None = None
        while not self.is_closing:
            try:
                self.health.state = SourceState.CONNECTING
                n_before = self.health.n_packets
                for frame in self.receive():
                    if self.is_closing:
                        break
                    self.health.n_packets += 1
                    yield frame
                if not self.is_over:
                    self._failed(self.end_reason(), None, frame)
            except (errors.StateSensorError, OSError) as error:
                failure = error if isinstance(error, errors.StateSensorError) \
                    else errors.TransportError(self._address, errors.reason_of(error))
                self.health.n_protocol_errors += isinstance(error, errors.FramingError)
                self._failed(str(failure), failure, frame)
            finally:
                self.disconnect()
            if self.is_over or not self._reconnect:
                break
            if self.health.n_packets > n_before and self.health.failures.n <= 1:
                delay_s = self.settings.reconnect_min
            self._closing.wait(delay_s)
            delay_s = min(2 * delay_s, self.settings.reconnect_max)
        self.health.state = SourceState.ENDED if self.is_over else SourceState.CLOSED

    def _failed(self, why: str, error: Exception | None, last: Frame | None) -> None:
        """Note the end of a connection; raise its error if no further connection is made."""
        if self.is_closing:
            return
        # A simulator that fails again at the same time of its run has made no progress.
        self.health.failures.add(error, self.health.n_packets if last is None else last.game_time)
        self.health.fail(why)
        if error is not None and (self.health.failures.are_final or not self._reconnect):
            raise error

    def reconfigure(self, settings: Settings) -> None:
        """
        Use changed dynamic parameters; may be called from any thread.

        :param settings: all parameters; those that are not dynamic are as before.
        """
        self.settings = settings

    def close(self) -> None:
        """End :meth:`frames` soon; may be called from any thread, and twice."""
        self._closing.set()
        with suppress(OSError):
            self.interrupt()


class TcpSource(LiveSource):
    """
    Frames of one TCP port, until :meth:`close`.

    :param host: host of the simulator.
    :param port: its sensor port.
    :param new_framer: makes the framer of a new connection from ``host:port``, which its errors
        name.
    :param decode: returns the frames of a packet, or raises DecodeError.
    :param settings: ``reconnect_min`` and ``reconnect_max`` are used, and ``stale_after``: after
        that silence the peer is probed by TCP keep-alive.
    :param reconnect: as in :class:`LiveSource`.
    :param before_connect: called before each connect, for example to configure the simulator;
        its :class:`TransportError` counts as a failed connect.
    :param after_connect: called after each connect, for example to start the sampling.
    :param patience_s: time for which a connect that is refused, or closed before its first byte,
        is tried again before it counts as failed, s: for a port that opens a little after
        ``before_connect``.
    """

    def __init__(self, host: str, port: int, new_framer: Callable[[str], Framer[Any]],
                 decode: Callable[[Any], Iterable[Frame]], settings: Settings = DEFAULTS, *,
                 reconnect: bool = True,
                 before_connect: Callable[[], None] | None = None,
                 after_connect: Callable[[], None] | None = None,
                 patience_s: float = 0.0) -> None:
        super().__init__(settings, f'{host}:{port}', reconnect=reconnect)
        self._new_framer, self._decode = new_framer, decode
        self._before_connect, self._after_connect = before_connect, after_connect
        self._patience_s = patience_s
        self._connection = Connection(host, port)
        self._drop_reason = ''

    def receive(self) -> Iterator[Frame]:
        """
        Connect, and yield the frames of the connection.

        :raises StateSensorError: if it fails.
        """
        if self._before_connect is not None:
            self._before_connect()
        late_s = 0.0
        while True:
            self._drop_reason = ''
            self._connection.open(self._patience_s, self._set_options)
            self._connection.open_socket.settimeout(None)
            if not late_s:
                late_s, n_bytes = time.monotonic() + self._patience_s, self.health.n_bytes
                self.connected()
            if self._after_connect is not None:
                self._after_connect()
            failure: errors.TransportError | None = None
            try:
                yield from self._receive()
            except errors.TransportError as error:
                failure = error
            if self.health.n_bytes > n_bytes or time.monotonic() >= late_s \
                    or self._drop_reason or self.is_closing:
                break
            # It was closed at its start: connect again.
            self._connection.close()
            self._closing.wait(self.settings.reconnect_min)
        if failure is not None:
            raise failure

    def disconnect(self) -> None:
        """Close the connection; note what waits there if it is more than two packets."""
        health, n_unread = self.health, self._connection.n_unread()
        if n_unread * health.n_packets > 2 * health.n_bytes:
            health.unread = f'{n_unread / 1e6:.3g} MB'
        self._connection.close()

    def interrupt(self) -> None:
        """Wake a thread that waits in a system call."""
        self._connection.shut_down()

    def end_reason(self) -> str:
        """Return why the connection ended: :meth:`drop`, or the peer."""
        return self._drop_reason or 'the peer closed the connection'

    def drop(self, why: str) -> None:
        """
        End the current connection, from any thread; the next one is made as after a loss.

        :param why: reason, one line.
        """
        self._drop_reason = why
        self._connection.interrupt()

    def _set_options(self, unconnected: socket.socket) -> None:
        """Set the receive buffer, which must precede the connect, and the keep-alive probes."""
        unconnected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        keep_alive(unconnected, max(1, math.ceil(self.settings.stale_after)),
                   _KEEPALIVE_INTERVAL_S, _KEEPALIVE_PROBES)

    def _receive(self) -> Iterator[Frame]:
        """Yield the frames of one connection until the peer closes it between two packets."""
        connected, framer = self._connection.open_socket, self._new_framer(self._address)
        receive_into, acknowledge = connected.recv_into, _acknowledgment(connected)
        ahead = memoryview(bytearray(_AHEAD_BYTES))
        # Stop reading on close: unread data makes the kernel send RST, which frees a blocked
        # peer; otherwise it waits for another minute.
        while not self.is_closing:
            room = framer.buffer()
            reads_ahead = len(room) <= _HEADER_BYTES
            try:
                # One call for the rest of a payload: each return to Python may wait for the
                # interpreter lock, which another thread holds while it decodes (measured: 5 ms).
                n_bytes = receive_into(ahead) if reads_ahead \
                    else receive_into(room, 0, socket.MSG_WAITALL)
            except OSError as error:
                raise errors.TransportError(self._address, errors.reason_of(error)) from error
            if not n_bytes:
                self._end(framer)
                return
            self.health.n_bytes += n_bytes
            acknowledge()
            for packet in framer.fed(ahead[:n_bytes]) if reads_ahead \
                    else (framer.advance(n_bytes),):
                if packet is not None and not self.is_closing:
                    yield from self.decoded(partial(self._decode, packet))

    def _end(self, framer: Framer[Any]) -> None:
        if self.is_closing:
            return
        try:
            framer.end()
        except errors.TransportError:
            self.health.n_cut_packets += 1
            raise


def _acknowledgment(connected: socket.socket) -> Callable[[], object]:
    """
    Return a function that has the kernel acknowledge at once the bytes received last.

    A peer with Nagle's algorithm holds a frame back until the previous one is acknowledged, and
    the kernel delays an acknowledgment without data by up to 40 ms.
    """
    if not hasattr(socket, 'TCP_QUICKACK'):  # Linux only
        return lambda: None
    return partial(connected.setsockopt, socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
