# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What the driver asks of a simulator over its control port: a State sensor, changes to it, samples.

May know: in which order to ask, when to ask again. Must not know: bytes of messages, packets.
Source: PROTOCOL 2.5, 2.6 and 8. Two threads ask: the one that connects to the sensor port, for the
sensor, and one of our own for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
import math
import threading
import time

from state_sensor_ros.connections.wait import ignore_silence, OnSilence
from state_sensor_ros.errors import RefusalError, TransportError
from state_sensor_ros.monodrive.control_messages import (
    CONFIGURE_SENSORS,
    RECONFIGURE_SENSOR,
    SAMPLE,
)
from state_sensor_ros.monodrive.control_session import ControlSession
from state_sensor_ros.monodrive.sensor_config import state_sensor
from state_sensor_ros.payloads import Report
from state_sensor_ros.settings import Settings

# A sensor port may open a little after the sensor was configured (PROTOCOL 1.1); configuring it
# once more meanwhile might close it again.
_SETTLE_S = 1.0
# After a refusal, such as that of a sample before there is an ego.
_RETRY_S = 0.5
# Reply and packet of a sample come together; a packet that takes longer is not on its way.
_PACKET_TIMEOUT_S = 5.0
_JOIN_S = 1.0



class Conductor:
    """
    Keep the simulator's State sensor as ``settings`` want it, and ask for samples.

    :meth:`configure` and :meth:`connected` belong before and after each connect to the sensor
    port. There is never more than one request outstanding.

    :param report: called with a kind, for throttling, and a line about what went wrong.
    :param on_silence: called with one line when a reply has not come for a second.
    :param reply_timeout_s: replaces the usual time-outs.
    :param packet_timeout_s: how long to wait for the packet of a sample.
    """

    def __init__(self, settings: Settings, report: Report, *,
                 on_silence: OnSilence = ignore_silence,
                 reply_timeout_s: float | None = None,
                 packet_timeout_s: float = _PACKET_TIMEOUT_S) -> None:
        self._settings = settings
        self._report, self._on_silence = report, on_silence
        self._reply_timeout_s = reply_timeout_s
        self._packet_timeout_s = packet_timeout_s
        self._configuring = threading.Lock()
        # Guards all below; notified at each change.
        self._changed = threading.Condition()
        self._session: ControlSession | None = None
        # The sensor as the simulator was last asked to make it, and when.
        self._asked: dict[str, object] | None = None
        self._asked_at_s = -math.inf
        self._n_packets = 0
        self._next_sample_s = 0.0
        self._is_connected = False
        self._is_closed = False
        self._worker: threading.Thread | None = None

    def configure(self) -> None:
        """
        Have the simulator make the sensor.

        :raises TransportError: with what the simulator said, or did not say.
        """
        with self._configuring:
            with self._changed:
                was_connected, self._is_connected = self._is_connected, False
                self._changed.notify_all()
            if was_connected or not self._is_settling():
                self._renew(CONFIGURE_SENSORS)
            self._begin_work()

    def connected(self) -> None:
        """Take note that the sensor port is connected: packets can come."""
        with self._changed:
            self._is_connected = True
            self._next_sample_s = time.monotonic()
            self._changed.notify_all()

    def packet_arrived(self) -> None:
        """Take note of a packet: the next sample may be asked for."""
        with self._changed:
            self._n_packets += 1
            self._changed.notify_all()

    def reconfigure(self, settings: Settings) -> None:
        """Have the simulator change the sensor, soon; failures are reported."""
        with self._changed:
            self._settings = settings
            self._changed.notify_all()

    def close(self) -> None:
        """End whatever waits, from any thread; for good."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            session, worker = self._session, self._worker
        if session is not None:
            session.close()
        if worker not in (None, threading.current_thread()):
            assert worker is not None
            worker.join(_JOIN_S)

    def _is_settling(self) -> bool:
        """Whether the sensor was made a moment ago by a simulator that is still there."""
        session = self._session
        return (session is not None and self._asked is not None
                and time.monotonic() - self._asked_at_s < _SETTLE_S and session.is_alive())

    def _renew(self, command: str) -> None:
        """Begin a new connection with ``command``; whatever waits on the old one is woken."""
        session = ControlSession(self._settings.host, self._settings.control_port,
                                 reply_timeout_s=self._reply_timeout_s,
                                 on_silence=self._on_silence)
        with self._changed:
            if self._is_closed:
                raise TransportError(session.where, 'a request to end', 'a connection')
            old, self._session = self._session, session
            self._asked, self._asked_at_s = None, -math.inf
        if old is not None:
            old.close()
        session.connect()
        self._ask(session, command)

    def _ask(self, session: ControlSession, command: str) -> None:
        """Send the sensor's configuration as it is wanted now."""
        with self._changed:
            sensor = state_sensor(self._settings)
            # Also if it is refused: asked again, it would be refused again.
            self._asked = sensor
        session.request(command, sensor)
        with self._changed:
            self._asked_at_s = time.monotonic()

    def _begin_work(self) -> None:
        with self._changed:
            if self._worker is None and not self._is_closed:
                self._worker = threading.Thread(target=self._work, name='conduct', daemon=True)
                self._worker.start()

    def _work(self) -> None:
        """Change the sensor and ask for samples while the sensor port is connected."""
        while (task := self._next_task()) is not None:
            work, session = task
            try:
                work()
            except RefusalError as error:
                self._report('control', str(error))
                self._pause()
            except TransportError as error:
                self._lost(session, error)

    def _next_task(self) -> tuple[Callable[[], None], ControlSession | None] | None:
        """Wait until there is something to do; None at the end."""
        with self._changed:
            while not self._is_closed:
                wait_s: float | None = None
                if self._is_connected:
                    if self._session is None:
                        return self._recover, None
                    if self._asked != state_sensor(self._settings):
                        return partial(self._ask, self._session, RECONFIGURE_SENSOR), self._session
                    if self._settings.sample_rate > 0:
                        wait_s = self._next_sample_s - time.monotonic()
                        if wait_s <= 0:
                            return partial(self._sample, self._session), self._session
                self._changed.wait(wait_s)
        return None

    def _recover(self) -> None:
        """Connect again; the sensor is still there unless the simulator was restarted."""
        with self._configuring:
            if self._session is not None:
                return
            try:
                self._renew(RECONFIGURE_SENSOR)
            except RefusalError:
                self._renew(CONFIGURE_SENSORS)

    def _sample(self, session: ControlSession) -> None:
        """Ask for one sample and wait for its packet."""
        with self._changed:
            n_before = self._n_packets
        session.request(SAMPLE, {})
        with self._changed:
            if self._changed.wait_for(
                    lambda: self._n_packets > n_before or not self._is_connected
                    or self._is_closed, self._packet_timeout_s):
                # In step with the clock, but never a burst after a delay.
                self._next_sample_s = max(self._next_sample_s + 1 / self._settings.sample_rate,
                                          time.monotonic())
                return
            # Somebody may have changed our sensor: the next thing is to ask for it again.
            self._asked = None
        self._report('control', f'{session.where}: found no packet in {self._packet_timeout_s:g} '
                     f's after {SAMPLE}; expected one')

    def _lost(self, session: ControlSession | None, error: TransportError) -> None:
        """Take note that a connection has gone, unless it was given up for a new one."""
        with self._changed:
            if self._is_closed or (session is not None and session is not self._session):
                return
            lost, self._session = self._session, None
        if lost is not None:
            lost.close()
        self._report('control', str(error))
        self._pause()

    def _pause(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or not self._is_connected, _RETRY_S)
