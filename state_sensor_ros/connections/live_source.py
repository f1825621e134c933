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
    WAITING     the failures are final                  WAITING: packets() raises the last one
    any         close()                                 CLOSED
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
import math
import threading

from state_sensor_ros.errors import (
    DecodeError,
    FramingError,
    reason_of,
    StateSensorError,
    TransportError,
)
from state_sensor_ros.payloads import FrameLike, Packet, packet_of
from state_sensor_ros.settings import DEFAULTS, Settings
from state_sensor_ros.source import Health, MAX_GAP_S, Schedule, SourceState

# A change of the rate takes effect within this time.
_PACE_PERIOD_S = 0.1


class LiveSource(ABC):
    """
    Frames or packets of a running simulator, until :meth:`close`.

    One thread iterates over :meth:`packets`; any thread may close or reconfigure.

    :param settings: ``reconnect_min`` is the first wait before connecting again, doubled up to
        ``reconnect_max``; ``rate`` is the pace of :meth:`pace`.
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
        self.health = Health()
        self._address = address
        self.settings = settings
        self._reconnect = reconnect
        self._closing = threading.Event()
        self.is_over = False
        self._schedule = Schedule(settings.rate)
        self._last_game_time = math.nan

    @abstractmethod
    def receive(self) -> Iterator[FrameLike | Packet]:
        """
        Connect, call :meth:`connected`, and yield until the connection ends.

        It is called again for each further connection.

        :raises StateSensorError: if connecting or receiving fails, as does OSError; an
            UnreachableError if the simulator does not run yet. Three equal failures in a row end
            a command.
        """

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
        self._last_game_time = math.nan
        self._schedule.restart()

    def finish(self, why: str) -> None:
        """
        Note that nothing follows: no further connection is made.

        :param why: one line, such as that a scenario is over.
        """
        self.is_over = True
        self.health.loss = why

    def wait(self, seconds: float) -> bool:
        """
        Wait, but not beyond :meth:`close`.

        :param seconds: longest time.
        :returns: whether the source is to go on.
        """
        return not self._closing.wait(seconds)

    def pace(self, game_time: float) -> bool:
        """
        Wait until a frame is due, for a simulator that runs faster than its clock.

        :param game_time: game time of the frame, s; the first one is due at once, as are all if
            the parameter ``rate`` is 0.
        :returns: whether the source is to go on.
        """
        gap_s = game_time - self._last_game_time
        self._last_game_time = game_time
        # NaN compares false with everything.
        gap_s = gap_s if 0.0 < gap_s <= MAX_GAP_S else 0.0
        while not self.is_closing and (left_s := self._schedule.time_left(gap_s)):
            self._closing.wait(min(left_s, _PACE_PERIOD_S))
        return not self.is_closing

    def packets(self) -> Iterator[Packet]:
        """
        Yield what arrives; connect, wait and connect again until closed.

        :raises StateSensorError: if the connection fails, unless it is to be made again; if the
            failures are final.
        """
        delay_s = self.settings.reconnect_min
        packet: Packet | None = None
        while not self.is_closing:
            try:
                self.health.state = SourceState.CONNECTING
                n_before = self.health.n_packets
                for item in self.receive():
                    if self.is_closing:
                        break
                    self.health.n_packets += 1
                    packet = packet_of(item)
                    yield packet
                if not self.is_over:
                    self._failed(self.end_reason(), None, packet)
            except FramingError as error:
                self.health.n_protocol_errors += 1
                self._failed(str(error), error, packet)
            except StateSensorError as error:
                self._failed(str(error), error, packet)
            except OSError as error:
                failure = TransportError(self._address, reason_of(error))
                self._failed(str(failure), failure, packet)
            finally:
                self.disconnect()
            if self.is_over or not self._reconnect:
                break
            if self.health.n_packets > n_before and self.health.failures.n <= 1:
                delay_s = self.settings.reconnect_min
            self._closing.wait(delay_s)
            delay_s = min(2 * delay_s, self.settings.reconnect_max)
        self.health.state = SourceState.ENDED if self.is_over else SourceState.CLOSED

    def _failed(self, why: str, error: Exception | None, last: Packet | None) -> None:
        """Note the end of a connection; raise its error if no further connection is made."""
        if self.is_closing:
            return
        # A simulator that fails again at the same time of its run has made no progress.
        is_frame = last is not None and not isinstance(last.decoded, DecodeError | None)
        self.health.failures.add(
            error, last.game_time if last and is_frame else self.health.n_packets)
        self.health.fail(why)
        if error is not None and (self.health.failures.are_final or not self._reconnect):
            raise error

    def reconfigure(self, settings: Settings) -> None:
        """
        Use changed dynamic parameters; may be called from any thread.

        :param settings: all parameters; those that are not dynamic are as before.
        """
        self.settings = settings
        self._schedule.rate = settings.rate

    def close(self) -> None:
        """End :meth:`packets` soon; may be called from any thread, and twice."""
        self._closing.set()
        with suppress(OSError):
            self.interrupt()
