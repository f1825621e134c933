# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A live source that connects again with a growing wait, whatever its connection is.

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
import threading
import time

import numpy as np

from state_sensor_ros.errors import (
    DecodeError,
    FramingError,
    reason_of,
    StateSensorError,
    TransportError,
)
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import DEFAULTS, Settings
from state_sensor_ros.source import Faults, Health, LOST, SourceState


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
        frames: list[Frame] = []
        try:
            # Warnings about unusual numbers, which are NaN afterward, are for no user.
            with np.errstate(all='ignore'):
                frames += decode()
        except DecodeError as error:
            self.faults.add(LOST, error)
        except Exception as error:
            if not self.faults.has_defects:
                raise
            self.faults.add(LOST, DecodeError(self.faults.place, repr(error)), defect=error)
        yield from frames
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
            except (StateSensorError, OSError) as error:
                failure = error if isinstance(error, StateSensorError) \
                    else TransportError(self._address, reason_of(error))
                self.health.n_protocol_errors += isinstance(error, FramingError)
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
