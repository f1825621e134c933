# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Client of the control port: it configures and samples the State sensor, and drives the ego.

The sequence follows doc/protocol/control.md#session. Two threads send requests: the one that
connects to the sensor port creates the sensor (:meth:`ControlClient.configure`); the control
thread does the rest. A third one may send commands to the ego (:meth:`ControlClient.order`), which
wait for no reply; of the others, at most one is outstanding.

States::

    state         event                                             next state
    ------------  ------------------------------------------------  ------------
    UNCONFIGURED  configure()                                       CONFIGURING
    CONFIGURING   the simulator accepted the sensor                 CONFIGURED
                  refusal, time-out, no connection                  UNCONFIGURED
    CONFIGURED    connected(): the sensor port accepted             CONNECTED
                  configure(): the sensor port is not open yet      CONFIGURING
    CONNECTED     a request failed: the control connection is lost  RECOVERING
                  configure(): the sensor connection is lost        CONFIGURING
    RECOVERING    control port connected, sensor confirmed          CONNECTED
                  configure(): the sensor connection is lost        CONFIGURING
    any           close()                                           CLOSED

The control thread works in CONNECTED (changes and samples) and in RECOVERING (reconnects).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import Enum
import math
import threading
import time
from typing import TypeAlias

from state_sensor_ros.simulators import (
    EgoCommand,
    ignore,
    RefusalError,
    Report,
    Settings,
    TransportError,
)
from state_sensor_ros.simulators.connections import OnSilence
from state_sensor_ros.simulators.monodrive.control_session import (
    CONFIGURE_SENSORS,
    CONTROL_EGO,
    ControlSession,
    RECONFIGURE_SENSOR,
    SAMPLE,
    UnansweredError,
)
from state_sensor_ros.simulators.monodrive.sensor_config import state_sensor

# The sensor port may open a little after the reply; another configuration in that time might
# close it again.
_SETTLE_S = 1.0
# After a refusal, such as that of a sample without an ego.
_RETRY_S = 0.5
# Reply and packet of a sample come together; after this time the packet was not sent.
_PACKET_TIMEOUT_S = 5.0
_JOIN_S = 1.0

_Task: TypeAlias = Callable[[ControlSession], None]


class ClientState(Enum):
    """State of a :class:`ControlClient`; the transitions are in the module's docstring."""

    UNCONFIGURED = 0
    CONFIGURING = 1
    CONFIGURED = 2
    CONNECTED = 3
    RECOVERING = 4
    CLOSED = 5


_SENSOR_CONNECTED = (ClientState.CONNECTED, ClientState.RECOVERING)


class ControlClient:
    """
    Keep the simulator's State sensor as in ``settings``, and sample it.

    Each connect to the sensor port follows :meth:`configure` and precedes :meth:`connected`.
    """

    def __init__(self, settings: Settings, report: Report, *,
                 on_silence: OnSilence = ignore,
                 reply_timeout_s: float | None = None,
                 packet_timeout_s: float = _PACKET_TIMEOUT_S) -> None:
        self._settings = settings
        self._report, self._on_silence = report, on_silence
        self._reply_timeout_s = reply_timeout_s
        self._packet_timeout_s = packet_timeout_s
        # Held while a control connection is made and the sensor is configured on it.
        self._configuring = threading.Lock()
        # Guards all below; notified at each change.
        self._changed = threading.Condition()
        self._state = ClientState.UNCONFIGURED
        self._session: ControlSession | None = None
        # For orders that the other one does not take.
        self._spare: ControlSession | None = None
        # The sensor of the last request, None if the simulator's may differ.
        self._requested: dict[str, object] | None = None
        self._configured_at_s = -math.inf
        self._n_packets = 0
        self._next_sample_s = 0.0
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> ClientState:
        return self._state

    def configure(self) -> None:
        """
        Create the sensor in the simulator.

        No request is sent within a second of the last one when its sensor port has not been
        connected since and the control connection is open: the port may be about to open.
        """
        with self._configuring:
            is_settling = self._is_settling()
            self._enter(ClientState.CONFIGURING)
            if not is_settling:
                try:
                    self._begin_session(CONFIGURE_SENSORS)
                except TransportError:
                    self._enter(ClientState.UNCONFIGURED)
                    raise
                self._configured_at_s = time.monotonic()
            self._enter(ClientState.CONFIGURED)
            self._start_thread()

    def connected(self) -> None:
        """Start to sample: the sensor port is connected."""
        with self._changed:
            self._next_sample_s = time.monotonic()
            self._enter(ClientState.CONNECTED)

    def packet_arrived(self) -> None:
        """Count a packet: the next sample may be requested."""
        with self._changed:
            self._n_packets += 1
            self._changed.notify_all()

    def reconfigure(self, settings: Settings) -> None:
        """Change the sensor in the control thread; failures are reported."""
        with self._changed:
            self._settings = settings
            self._changed.notify_all()

    def order(self, command: str, message: Callable[[], object], *, may_wait: bool) -> None:
        """Send a request of a further thread at once; see :meth:`ControlSession.order`."""
        session = self._session
        if session is None:
            raise TransportError(f'{self._settings.host}:{self._settings.control_port}',
                                 'no connection', "a simulator's control port")
        try:
            session.order(command, message, may_wait=may_wait)
        except (RefusalError, UnansweredError):
            raise
        except TransportError:
            self._is_lost(session)
            raise

    def order_otherwise(self, command: str, message: Callable[[], object]) -> None:
        """Send a request on the second connection, which is there for this only."""
        if (spare := self._spare) is not None:
            spare.order(command, message, may_wait=False)

    def unanswered_s(self) -> float:
        """Return the age of the oldest order without a reply, s, 0 without one."""
        session = self._session
        return session.unanswered_s() if session is not None else 0.0

    def close(self) -> None:
        """End all waits, from any thread, and the control connection."""
        with self._changed:
            self._enter(ClientState.CLOSED)
            sessions, thread = (self._session, self._spare), self._thread
        for session in sessions:
            if session is not None:
                session.close()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_S)

    def _enter(self, state: ClientState) -> None:
        """Change the state, unless the client is closed."""
        with self._changed:
            if self._state is not ClientState.CLOSED:
                self._state = state
            self._changed.notify_all()

    def _is_settling(self) -> bool:
        """Return whether the sensor was created a moment ago and the simulator still runs."""
        return (self._state is ClientState.CONFIGURED
                and time.monotonic() - self._configured_at_s < _SETTLE_S
                and self._session is not None and self._session.is_alive())

    def _begin_session(self, command: str) -> None:
        """Replace the control connection, and send ``command`` on the new one."""
        session = ControlSession(self._settings.host, self._settings.control_port,
                                 reply_timeout_s=self._reply_timeout_s,
                                 on_silence=self._on_silence)
        with self._changed:
            if self._state is ClientState.CLOSED:
                raise TransportError(session.where, 'ended on request')
            old, self._session = self._session, session
        if old is not None:
            old.close()
        session.connect()
        if self._settings.control_input:
            self._open_spare()
        self._request_sensor(session, command)

    def _open_spare(self) -> None:
        """Open the second connection, now that there are descriptors and a simulator."""
        spare = ControlSession(self._settings.host, self._settings.control_port)
        with suppress(TransportError):
            spare.connect()
            with self._changed:
                old, self._spare = self._spare, spare
                is_closed = self._state is ClientState.CLOSED
            if old is not None:
                old.close()
            if is_closed:
                spare.close()

    def _request_sensor(self, session: ControlSession, command: str) -> None:
        """Send the configuration of the sensor; one that is refused is not sent again."""
        with self._changed:
            sensor = self._requested = state_sensor(self._settings)
        session.request(command, sensor)

    def _start_thread(self) -> None:
        with self._changed:
            if self._thread is None and self._state is not ClientState.CLOSED:
                self._thread = threading.Thread(target=self._work, name='control', daemon=True)
                self._thread.start()

    def _work(self) -> None:
        """Perform the tasks of the control thread."""
        while (next_task := self._next_task()) is not None:
            task, session = next_task
            try:
                task(session)
            except RefusalError as error:
                self._report('control', str(error))
                self._pause()
            except TransportError as error:
                if self._is_lost(session):
                    self._report('control', str(error))
                    self._pause()

    def _next_task(self) -> tuple[_Task, ControlSession] | None:
        """Wait for a task; return it with the session it is for, None once closed."""
        with self._changed:
            while self._state is not ClientState.CLOSED:
                wait_s: float | None = None
                if self._state in _SENSOR_CONNECTED:
                    assert self._session is not None
                    if self._state is ClientState.RECOVERING:
                        return self._recover, self._session
                    if self._requested != state_sensor(self._settings):
                        return self._change_sensor, self._session
                    if self._settings.sample_rate > 0:
                        wait_s = self._next_sample_s - time.monotonic()
                        if wait_s <= 0:
                            return self._sample, self._session
                self._changed.wait(wait_s)
        return None

    def _change_sensor(self, session: ControlSession) -> None:
        self._request_sensor(session, RECONFIGURE_SENSOR)

    def _recover(self, _lost: ControlSession) -> None:
        """Connect again; the sensor still exists unless the simulator was restarted."""
        with self._configuring:
            if self._state is not ClientState.RECOVERING:
                return
            try:
                try:
                    self._begin_session(RECONFIGURE_SENSOR)
                except RefusalError:
                    self._begin_session(CONFIGURE_SENSORS)
            except RefusalError:
                # The connection stands; the configuration is sent again when it changes.
                self._enter(ClientState.CONNECTED)
                raise
            self._enter(ClientState.CONNECTED)

    def _sample(self, session: ControlSession) -> None:
        """Request one sample and wait for its packet."""
        with self._changed:
            n_before = self._n_packets
        session.request(SAMPLE, {})
        with self._changed:
            if self._changed.wait_for(
                    lambda: self._n_packets > n_before
                    or self._state is not ClientState.CONNECTED, self._packet_timeout_s):
                # In step with the clock, without a burst after a delay.
                self._next_sample_s = max(self._next_sample_s + 1 / self._settings.sample_rate,
                                          time.monotonic())
                return
            # Another client may have changed the sensor: configure it before the next sample.
            self._requested = None
        self._report('control', f'{session.where}: no packet in {self._packet_timeout_s:g} s '
                     f'after {SAMPLE}')

    def _is_lost(self, session: ControlSession) -> bool:
        """Return whether a failure of ``session`` means that there is no control connection."""
        with self._changed:
            if self._state is ClientState.CONNECTED and session is self._session:
                self._enter(ClientState.RECOVERING)
            return self._state is ClientState.RECOVERING

    def _pause(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._state not in _SENSOR_CONNECTED, _RETRY_S)


class MonodriveCommands:
    """Send each command at once, as a request whose reply is read later."""

    # client: client of the control port; it connects again after a loss.

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def send(self, command: EgoCommand) -> None:
        self._client.order(CONTROL_EGO, lambda: _message(command.now()),
                           may_wait=command.throttle > 0.0)

    def unanswered_s(self) -> float:
        """Return the age of the oldest command without a reply, s."""
        return self._client.unanswered_s()

    def brake(self) -> None:
        """Brake on the second connection."""
        self._client.order_otherwise(CONTROL_EGO, lambda: _message(_FULL_BRAKE))

    def close(self) -> None:
        """Do nothing: the last command is sent; the source closes the connection."""


_FULL_BRAKE = EgoCommand(throttle=0.0, brake=1.0, steer=0.0, steering_angle=0.0)


def _message(command: EgoCommand) -> dict[str, float]:
    direction = -1 if command.reverse else 1
    return {'forward_amount': direction * command.throttle, 'right_amount': -command.steer,
            'brake_amount': 1.0 if command.hand_brake else command.brake,
            'drive_mode': direction}
