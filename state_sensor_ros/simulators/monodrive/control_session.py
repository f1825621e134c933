# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
One connection to the control port of a simulator: one request and its reply at a time.

After anything but a whole reply the connection is closed: a late reply would be taken for that of
the next request (doc/protocol/control.md).
"""

from __future__ import annotations

import threading

from state_sensor_ros.simulators import (
    cannot_connect,
    DecodeError,
    FramingError,
    ignore,
    reason_of,
    RefusalError,
    TransportError,
)
from state_sensor_ros.simulators.monodrive.control_messages import (
    CONFIGURE_SIMULATOR,
    CONFIGURE_TRAJECTORY,
    encode_request,
    MAX_REFERENCE,
    Reply,
    ReplyReader,
)
from state_sensor_ros.simulators.tcp_connections import Connection, OnSilence, Wait

# The vendor's client waits as long; loading a map or a trajectory takes longer.
REPLY_TIMEOUT_S = 25.0
LOADING_TIMEOUT_S = 60.0
LOADING = frozenset({CONFIGURE_SIMULATOR, CONFIGURE_TRAJECTORY})
# For the rest of a reply whose length does not include the header: with some simulators
# (doc/protocol/control.md#length). It was sent together with the bytes that have arrived.
_REST_TIMEOUT_S = 0.5
# For the thread that uses the connection to leave it.
_LEAVE_TIMEOUT_S = 0.5
_CHUNK_BYTES = 1024 * 1024


class ControlSession:
    """
    A control connection; requests of several threads wait for each other.

    :param host: host of the simulator.
    :param port: its control port.
    :param reply_timeout_s: replaces the usual time-outs.
    :param on_silence: called with one line when a reply has not arrived for a second.
    """

    def __init__(self, host: str, port: int, *, reply_timeout_s: float | None = None,
                 on_silence: OnSilence = ignore) -> None:
        self._connection = Connection(host, port)
        self.where = self._connection.where
        self._reply_timeout_s = reply_timeout_s
        self._on_silence = on_silence
        self._requesting = threading.Lock()
        self._reference = 0

    def connect(self) -> None:
        """
        Connect; once for each object.

        :raises TransportError: when no simulator listens there, or the session was closed.
        """
        with self._requesting:
            try:
                self._connection.connect()
            except OSError as error:
                if self._connection.is_shut_down:
                    raise self._failed(error, '') from error
                raise cannot_connect(self.where, error) from error

    def request(self, command: str, message: object) -> object:
        """
        Send a request and wait for its reply.

        :param command: the command's identifier.
        :param message: its body, plain data or ``msgspec.Raw`` JSON.
        :returns: the message of the reply.
        :raises RefusalError: when the reply reports a failure; the connection stays open.
        :raises TransportError: when there is no valid reply; the connection is closed.
        """
        with self._requesting:
            self._reference = self._reference % MAX_REFERENCE + 1
            reference = self._reference
            try:
                self._send(command, encode_request(command, message, reference))
                reply = self._receive(command)
                reply.check(self.where, command, reference)
            except RefusalError:
                raise
            except (DecodeError, FramingError) as error:
                self._connection.close()
                raise TransportError(error.where, error.found, error.expected) from error
            except OSError:
                self._connection.close()
                raise
            return reply.message

    def is_alive(self) -> bool:
        """Return whether the connection is open, also while a request waits for its reply."""
        if not self._requesting.acquire(blocking=False):
            return True
        try:
            # Between two requests the peer sends nothing.
            return self._connection.is_alive()
        finally:
            self._requesting.release()

    def close(self) -> None:
        """End the connection and all waits on it, from any thread; it cannot connect again."""
        self._connection.shut_down()
        # A thread that used the socket has been woken and leaves it.
        if self._requesting.acquire(timeout=_LEAVE_TIMEOUT_S):
            self._connection.close()
            self._requesting.release()

    def _send(self, command: str, data: bytes) -> None:
        rest = memoryview(data)
        try:
            connected = self._connection.open_socket
            while rest:
                # Each part has its own time-out: a long trajectory may take longer as a whole.
                rest = rest[self._wait(f'reader of {command}', command).send(connected, rest):]
        except TransportError:
            raise
        except OSError as error:
            raise self._failed(error, f'that {command} is read') from error

    def _receive(self, command: str) -> Reply:
        """Wait for one reply."""
        reader = ReplyReader(self.where)
        wait = self._wait(f'reply to {command}', command)
        expected = f'a reply to {command}'
        while reader.n_wanted:
            try:
                if reader.is_incomplete_json:
                    wait = Wait(self.where, 'more bytes', _REST_TIMEOUT_S)
                data = wait.receive(self._connection.open_socket,
                                    min(reader.n_wanted, _CHUNK_BYTES))
            except TransportError:
                if reader.is_incomplete_json:
                    reader.end()
                raise
            except OSError as error:
                raise self._failed(error, expected) from error
            if not data:
                if reader.is_incomplete_json:
                    reader.end()
                raise self._failed(None, expected)
            reader.feed(data)
        return reader.reply

    def _wait(self, missing: str, command: str) -> Wait:
        return Wait(self.where, missing, self._timeout_s(command), self._on_silence)

    def _failed(self, error: OSError | None, expected: str) -> TransportError:
        if self._connection.is_shut_down:
            return TransportError(self.where, 'ended on request')
        if error is not None:
            return TransportError(self.where, reason_of(error))
        return TransportError(self.where, 'the connection was closed instead of ' + expected)

    def _timeout_s(self, command: str) -> float:
        if self._reply_timeout_s is not None:
            return self._reply_timeout_s
        return LOADING_TIMEOUT_S if command in LOADING else REPLY_TIMEOUT_S
