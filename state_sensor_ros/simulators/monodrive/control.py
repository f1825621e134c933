# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The control port: it configures and samples the State sensor, and drives the ego.

A session is one connection. Only orders are sent while a reply is outstanding, and no order waits
for its reply. Replies arrive in the order of the requests (doc/protocol/control.md), so that a
late one is read before that of the next request::

    request SAMPLE      order: brake        request SAMPLE
    ---------|----------------|------------------|------------>
                    |               |                  |
                    reply SAMPLE    reply, dropped     reply SAMPLE

After a failed request, or a reply that is not whole, the connection is closed.

The client follows doc/protocol/control.md#session. Two threads send requests: the one that
connects to the sensor port creates the sensor (:meth:`ControlClient.configure`); the control
thread does the rest. A third one may send orders. States::

    state         event                                             next state
    ------------  ------------------------------------------------  ------------
    UNCONFIGURED  connected(): the sensor port accepted             CONNECTED
    CONNECTED     a request failed: the control connection is lost  RECOVERING
                  configure(): the sensor connection is lost        UNCONFIGURED
    RECOVERING    control port connected, sensor confirmed          CONNECTED
                  configure(): the sensor connection is lost        UNCONFIGURED
    any           close()                                           CLOSED

The control thread works in CONNECTED (changes and samples) and in RECOVERING (reconnects).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
import threading
import time
from typing import TypeVar

from state_sensor_ros.connections.connection import Connection, OnSilence, Wait
from state_sensor_ros.control.ego_commands import EgoCommand, Proof
from state_sensor_ros.errors import RefusalError, TransportError
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.monodrive import wire
from state_sensor_ros.source import ignore, Report

# Keys of the sensor are in doc/protocol/control.md#sensor-configuration.
SENSOR_TYPE = 'State'
CONFIGURE_SIMULATOR = 'SimulatorConfig_ID'
CONFIGURE_TRAJECTORY = 'REPLAY_ConfigureTrajectoryCommand_ID'
CONFIGURE_SENSORS = 'REPLAY_ConfigureSensorsCommand_ID'
RECONFIGURE_SENSOR = 'REPLAY_ReConfigureSensorCommand_ID'
STEP = 'REPLAY_StepSimulationCommand_ID'
SAMPLE = 'SampleSensorsCommand_ID'
CONTROL_EGO = 'EgoControl_ID'
UPDATE_STATE = 'UpdateStateCommand_ID'

# The vendor's client waits as long; loading a map or a trajectory takes longer.
REPLY_TIMEOUT_S, LOADING_TIMEOUT_S = 25.0, 60.0
_LOADING = CONFIGURE_SIMULATOR, CONFIGURE_TRAJECTORY
# For the rest of a reply whose length does not include the header: it was sent together with the
# bytes that have arrived.
_REST_TIMEOUT_S = 0.5
# For the thread that uses the connection to leave it.
_LEAVE_TIMEOUT_S = 0.5
_CHUNK_BYTES = 1024 * 1024
# Longest time for which another thread may be about to send, s.
_ORDER_S = 0.02
# Orders without a reply, after which none is sent that could wait.
_MOST_UNANSWERED = 4
# The sensor port may open a little after the reply; another configuration in that time might
# close it again.
LATE_PORT_S = 1.0
# After a refusal, such as that of a sample without an ego.
_RETRY_S = 0.5
# Reply and packet of a sample come together; after this time the packet was not sent.
_PACKET_TIMEOUT_S = 5.0
_JOIN_S = 1.0

_Result = TypeVar('_Result')


def state_sensor(settings: Settings) -> dict[str, object]:
    """
    Return the configuration of the State sensor for ``settings``.

    It has no ``ros`` block: with one, the simulator would not open the data connection
    (doc/protocol/sensor.md#configuration-keys).
    """
    return {
        'type': SENSOR_TYPE,
        'listen_port': settings.port,
        'location': dict.fromkeys('xyz', 0.0),
        'rotation': dict.fromkeys(('pitch', 'yaw', 'roll'), 0.0),
        'desired_tags': list(settings.desired_tags),
        'undesired_tags': list(settings.undesired_tags),
        'include_obb': settings.include_obb,
        'debug_drawing': settings.debug_drawing,
        'enable_streaming': True,
        'wait_for_fresh_frame': True,
    }


class UnansweredError(TransportError):
    """A reply is not there yet, or an order was not sent; the connection stays open."""


@dataclass(slots=True)
class _Sent:
    """A request: its reference, whether it is an order, and whether it has been answered."""

    reference: int
    is_order: bool
    is_answered: bool = False


class ControlSession:
    """A control connection; requests of several threads wait for each other."""

    def __init__(self, host: str, port: int, on_silence: OnSilence = ignore) -> None:
        self._connection = Connection(host, port)
        self.where = self._connection.where
        self._on_silence = on_silence
        # Held from a request to its reply, and while bytes are sent.
        self._requesting, self._sending = threading.Lock(), threading.Lock()
        self._is_connected = False
        self._reference = 0
        # The requests without a reply, the oldest first.
        self._outstanding: deque[_Sent] = deque()
        # Of the last order that was refused, until it is reported.
        self._refusal: RefusalError | None = None
        # Of the reply that is being received.
        self._received = bytearray()

    def connect(self) -> None:
        with self._requesting:
            self._connection.open()
            self._is_connected = True

    def request(self, command: str, message: object) -> object:
        """Send a request, plain data or ``msgspec.Raw`` JSON, and wait for its reply."""
        with self._requesting, self._closed_on_failure():
            reference = self._send(command, message)
            wait = self._wait(f'reply to {command}', command)
            while True:
                sent, reply = self._next_reply(wait)
                if sent.reference == reference:
                    reply.check(self.where, command)
                    return reply.message

    def order(self, command: str, message: Callable[[], object], *, may_wait: bool) -> Proof:
        """Send a request at once, do not wait for its reply, and return what looks for it."""
        # message: called immediately before it is sent, for its body.
        if not self._is_connected:
            raise UnansweredError(self.where, 'no connection yet')
        self._read_replies()
        if may_wait and sum(sent.is_order for sent in (*self._outstanding,)) >= _MOST_UNANSWERED:
            raise UnansweredError(self.where, f'no reply to the last {_MOST_UNANSWERED} orders')
        sent = self._send_order(command, message)
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise refusal
        return partial(self._is_answered, sent)

    def _is_answered(self, sent: _Sent) -> bool:
        with suppress(TransportError):
            self._read_replies()
        return sent.is_answered

    def is_open(self) -> bool:
        """Return whether the peer keeps the connection."""
        with suppress(TransportError):
            self._read_replies()
            return bool(self._outstanding) or self._connection.is_alive()
        return False

    def close(self) -> None:
        """End the connection and all waits on it, from any thread; it cannot connect again."""
        self._connection.shut_down()
        # A thread that used the socket has been woken and leaves it.
        if self._requesting.acquire(timeout=_LEAVE_TIMEOUT_S):
            self._connection.close()
            self._requesting.release()

    @contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        """Close the connection if the block fails, unless it was only refused or has to wait."""
        try:
            yield
        except (RefusalError, UnansweredError):
            raise
        except OSError as error:
            self._connection.close()
            self._outstanding.clear()
            self._received.clear()
            if isinstance(error, TransportError):
                raise
            raise self._connection.failed(error) from error

    def _send(self, command: str, message: object) -> int:
        """Send a request of any length; return its reference."""
        with self._sending:
            sent, data = self._encoded(command, message, is_order=False)
            rest, self._connection.unsent = memoryview(self._connection.unsent + data), b''
            connected = self._connection.open_socket
            while rest:
                # Each part has its own time-out: a long trajectory may take longer as a whole.
                rest = rest[self._wait(f'reader of {command}', command).send(connected, rest):]
            return sent.reference

    def _send_order(self, command: str, message: Callable[[], object]) -> _Sent:
        """Send a short request now."""
        if not self._sending.acquire(timeout=_ORDER_S):
            raise UnansweredError(self.where, 'an earlier request is not read')
        try:
            sent, data = self._encoded(command, message(), is_order=True)
            self._connection.send_at_once(data)
            return sent
        except BlockingIOError as error:
            self._outstanding.pop()
            raise UnansweredError(self.where, 'earlier orders are not read') from error
        except OSError as error:
            # A thread that reads is woken, and closes the connection.
            self._connection.interrupt()
            raise self._connection.failed(error) from error
        finally:
            self._sending.release()

    def _encoded(self, command: str, message: object, *, is_order: bool) -> tuple[_Sent, bytes]:
        """Return a new request, which has no reply yet, and its bytes."""
        sent = _Sent(self._reference % wire.MAX_REFERENCE + 1, is_order)
        data = wire.encode_request(command, message, sent.reference)
        self._reference = sent.reference
        self._outstanding.append(sent)
        return sent, data

    def _read_replies(self) -> None:
        # A thread that waits for a reply reads those before it.
        if self._requesting.acquire(blocking=False):
            try:
                with self._closed_on_failure(), suppress(UnansweredError):
                    while self._outstanding and self._connection.has_data():
                        self._next_reply(Wait(self.where, 'rest of a reply', 0.0,
                                              error=UnansweredError))
            finally:
                self._requesting.release()

    def _next_reply(self, wait: Wait) -> tuple[_Sent, wire.Reply]:
        """Read the reply to the oldest request without one; return both."""
        reply = self._receive(wait)
        sent = self._outstanding.popleft()
        if reply.reference not in (None, sent.reference):
            raise TransportError(self.where, f'a reply to request {reply.reference}',
                                 f'one to request {sent.reference}')
        if sent.is_order:
            try:
                reply.check(self.where, 'an order')
                sent.is_answered = True
            except RefusalError as error:
                self._refusal = error
        return sent, reply

    def _receive(self, wait: Wait) -> wire.Reply:
        """Wait for one reply; one of which a part has arrived is continued by the next call."""
        while not isinstance(reply := wire.parse_reply(self._received, self.where), wire.Reply):
            n_bytes, fault = reply
            if fault is not None:
                wait = Wait(self.where, 'more bytes', _REST_TIMEOUT_S)
            try:
                data = wait.receive(self._connection.open_socket, min(n_bytes, _CHUNK_BYTES))
            except OSError as error:
                raise fault or error from None
            if not data:
                raise fault or (
                    self._connection.failed(ConnectionError()) if self._connection.is_shut_down
                    else TransportError(self.where, 'the connection was closed instead of a '
                                        f'{wait.missing}'))
            self._received += data
        self._received.clear()
        return reply

    def _wait(self, missing: str, command: str) -> Wait:
        timeout_s = LOADING_TIMEOUT_S if command in _LOADING else REPLY_TIMEOUT_S
        return Wait(self.where, missing, timeout_s, self._on_silence)


class ClientState(Enum):
    """State of a :class:`ControlClient`; the transitions are in the module's docstring."""

    UNCONFIGURED = 0
    CONNECTED = 1
    RECOVERING = 2
    CLOSED = 3


class ControlClient:
    """
    Keeps the simulator's State sensor as in ``settings``, samples it, and sends orders.

    Each connect to the sensor port follows :meth:`configure` and precedes :meth:`connected`.

    :ivar sessions: the session, and the spare one for orders that the other one does not take.
    """

    def __init__(self, settings: Settings, report: Report, on_silence: OnSilence = ignore) -> None:
        self._settings = settings
        self._report, self._on_silence = report, on_silence
        # Held while a control connection is made and the sensor is configured on it.
        self._configuring = threading.Lock()
        # Guards all below; notified at each change.
        self._changed = threading.Condition()
        self.state = ClientState.UNCONFIGURED
        self.sessions = [self._new_session(), self._new_session()]
        # A connection that has not answered yet.
        self._tried = self.sessions[0]
        # The sensor of the last request, None if the simulator's may differ.
        self._requested: dict[str, object] | None = None
        self._n_packets = 0
        self._next_sample_s = 0.0
        self._thread: threading.Thread | None = None

    def _new_session(self) -> ControlSession:
        return ControlSession(self._settings.host, self._settings.control_port, self._on_silence)

    def configure(self) -> None:
        """Create the sensor in the simulator."""
        with self._configuring:
            self._enter(ClientState.UNCONFIGURED)
            self._begin_session(partial(self._request_sensor, command=CONFIGURE_SENSORS))
            with self._changed:
                if self._thread is None and self.state is not ClientState.CLOSED:
                    self._thread = threading.Thread(target=self._work, name='control', daemon=True)
                    self._thread.start()

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

    def made(self, call: Callable[[ControlSession], _Result]) -> _Result:
        """Return the result of a call of a further thread with the session; a loss is noted."""
        session = self.sessions[0]
        try:
            return call(session)
        except TransportError as error:
            if not isinstance(error, RefusalError | UnansweredError):
                self._is_lost(session)
            raise

    def update(self, frame: object) -> None:
        """Have the simulator set the actors of a frame, and wait until it has said so."""
        reply = self.made(lambda session: session.request(UPDATE_STATE, frame))
        wire.Reply(None, reply, reply == 'complete').check(self.sessions[0].where, UPDATE_STATE)

    def close(self) -> None:
        """End all waits, from any thread, and the control connection."""
        self._enter(ClientState.CLOSED)
        for session in (*self.sessions, self._tried):
            session.close()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_S)

    def _enter(self, state: ClientState) -> None:
        """Change the state, unless the client is closed."""
        with self._changed:
            if self.state is not ClientState.CLOSED:
                self.state = state
            self._changed.notify_all()

    def _begin_session(self, ask: Callable[[ControlSession], None]) -> None:
        """Replace the control connection by one that has answered, and a lost spare one."""
        new = self._connected()
        try:
            ask(new)
        finally:
            # Also after a refusal, which is an answer.
            if new.is_open():
                self._use(0, new)
        if self._settings.control_input and not self.sessions[1].is_open():
            # Commands are sent without a spare connection, too.
            with suppress(TransportError):
                self._use(1, self._connected())

    def _connected(self) -> ControlSession:
        new = self._new_session()
        with self._changed:
            if self.state is ClientState.CLOSED:
                raise TransportError(new.where, 'ended on request')
            self._tried = new
        new.connect()
        return new

    def _use(self, place: int, new: ControlSession) -> None:
        with self._changed:
            old, self.sessions[place] = self.sessions[place], new
        old.close()

    def _request_sensor(self, session: ControlSession, command: str) -> None:
        """Send the configuration of the sensor; one that is refused is not sent again."""
        with self._changed:
            sensor = self._requested = state_sensor(self._settings)
        session.request(command, sensor)

    def _work(self) -> None:
        """Perform the tasks of the control thread."""
        while (task := self._next_task()) is not None:
            session = self.sessions[0]
            try:
                task(session)
            except TransportError as error:
                if isinstance(error, RefusalError) or self._is_lost(session):
                    self._report('control', str(error))
                    with self._changed:
                        self._changed.wait_for(
                            lambda: self.state in (ClientState.UNCONFIGURED,
                                                   ClientState.CLOSED), _RETRY_S)

    def _next_task(self) -> Callable[[ControlSession], None] | None:
        """Wait for a task; return None once closed."""
        with self._changed:
            while self.state is not ClientState.CLOSED:
                wait_s: float | None = None
                if self.state is ClientState.RECOVERING:
                    return self._recover
                if self.state is ClientState.CONNECTED:
                    if self._requested != state_sensor(self._settings):
                        return partial(self._request_sensor, command=RECONFIGURE_SENSOR)
                    if self._settings.sample_rate > 0:
                        wait_s = self._next_sample_s - time.monotonic()
                        if wait_s <= 0:
                            return self._sample
                self._changed.wait(wait_s)
        return None

    def _recover(self, _lost: ControlSession) -> None:
        """Connect again; the sensor still exists unless the simulator was restarted."""
        with self._configuring:
            if self.state is not ClientState.RECOVERING:
                return
            try:
                self._begin_session(self._request_known)
            except RefusalError:
                # The connection stands; the configuration is sent again when it changes.
                self._enter(ClientState.CONNECTED)
                raise
            self._enter(ClientState.CONNECTED)

    def _request_known(self, session: ControlSession) -> None:
        try:
            self._request_sensor(session, RECONFIGURE_SENSOR)
        except RefusalError:
            self._request_sensor(session, CONFIGURE_SENSORS)

    def _sample(self, session: ControlSession) -> None:
        """Request one sample and wait for its packet."""
        with self._changed:
            n_before = self._n_packets
        session.request(SAMPLE, {})
        with self._changed:
            if self._changed.wait_for(lambda: self._n_packets > n_before or self.state is not
                                      ClientState.CONNECTED, _PACKET_TIMEOUT_S):
                # In step with the clock, without a burst after a delay.
                self._next_sample_s = max(self._next_sample_s + 1 / self._settings.sample_rate,
                                          time.monotonic())
                return
            # Another client may have changed the sensor: configure it before the next sample.
            self._requested = None
        self._report('control', f'{session.where}: no packet in {_PACKET_TIMEOUT_S:g} s '
                     f'after {SAMPLE}')

    def _is_lost(self, session: ControlSession) -> bool:
        """Return whether a failure of ``session`` means that there is no control connection."""
        with self._changed:
            if self.state is ClientState.CONNECTED and session is self.sessions[0]:
                self._enter(ClientState.RECOVERING)
            return self.state is ClientState.RECOVERING


_FULL_BRAKE = EgoCommand(throttle=0.0, brake=1.0, steer=0.0, steering_angle=0.0)


class MonodriveCommands:
    """
    Sends each command at once, as a request whose reply is read later.

    :param client: of the control port; it connects again after a loss.
    """

    def __init__(self, client: ControlClient) -> None:
        self._client = client
        self._last: EgoCommand | None = None

    def write(self, command: EgoCommand) -> Proof:
        """Write a command, on the spare connection if the other one does not take it."""
        may_wait = command.throttle > 0.0 and not command.is_urgent(self._last)
        self._last = command

        def order(session: ControlSession) -> Proof:
            return session.order(CONTROL_EGO, lambda: _message(command.now()), may_wait=may_wait)

        try:
            return self._client.made(order)
        except TransportError as error:
            with suppress(TransportError):
                return order(self._client.sessions[1])
            raise error

    def brake(self) -> None:
        """Brake on the second connection."""
        self._client.sessions[1].order(CONTROL_EGO, lambda: _message(_FULL_BRAKE), may_wait=False)

    def close(self) -> None:
        """Do nothing: the last command is sent; the source closes the connection."""


def _message(command: EgoCommand) -> dict[str, float]:
    direction = -1 if command.reverse else 1
    return {'forward_amount': direction * command.throttle, 'right_amount': -command.steer,
            'brake_amount': 1.0 if command.hand_brake else command.brake,
            'drive_mode': direction}
