# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
One connection to the control port of a simulator: a request, its reply, then the next.

May know: sockets, time-outs, an end from another thread. Must not know: what commands mean.
Source: PROTOCOL 2. After anything but a reply the connection is given up: what came later would be
taken for the answer to another question.
"""

from __future__ import annotations

from contextlib import suppress
import socket
import threading

from state_sensor_ros.connections.lookup import look_up
from state_sensor_ros.connections.wait import ignore_silence, OnSilence, Wait
from state_sensor_ros.errors import DecodeError, FramingError, RefusalError, told, TransportError
from state_sensor_ros.monodrive.control_messages import (
    CONFIGURE_SIMULATOR,
    CONFIGURE_TRAJECTORY,
    encode_request,
    MAX_REFERENCE,
    Reply,
    ReplyReader,
)

# A client of the vendor waits as long; loading a map or a trajectory takes longer (PROTOCOL 2.4).
REPLY_TIMEOUT_S = 25.0
LOADING_TIMEOUT_S = 60.0
LOADING = frozenset({CONFIGURE_SIMULATOR, CONFIGURE_TRAJECTORY})
CONNECT_TIMEOUT_S = 5.0
# For bytes that have been sent together with those that are there already (PROTOCOL 2.3).
_DOUBTFUL_TIMEOUT_S = 0.5
# For the thread that uses the connection to leave it.
_LEAVE_TIMEOUT_S = 0.5
_CHUNK_BYTES = 1024 * 1024


class ControlSession:
    """
    A control connection; requests of several threads wait for each other.

    :param host: of the simulator.
    :param port: its control port.
    :param reply_timeout_s: replaces the usual time-outs, for tests and impatient callers.
    :param on_silence: called with one line when a reply has not come for a second.
    """

    def __init__(self, host: str, port: int, *, reply_timeout_s: float | None = None,
                 on_silence: OnSilence = ignore_silence) -> None:
        self._address = (host, port)
        self.where = f'{host}:{port}'
        self._reply_timeout_s = reply_timeout_s
        self._on_silence = on_silence
        self._requesting = threading.Lock()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_closed = False
        self._reference = 0

    def connect(self) -> None:
        """
        Connect; once in the life of this object.

        :raises TransportError: where nobody listens, or this was closed.
        """
        with self._requesting:
            try:
                self._connect()
            except OSError as error:
                self._give_up()
                found = 'a request to end' if self._is_closed else told(error)
                raise TransportError(self.where, found,
                                     "a simulator's control port") from error

    def _connect(self) -> None:
        """Try each address of the host, as `localhost` may have two."""
        failure = OSError('no address')
        for family, kind, protocol, _, address in look_up(*self._address,
                                                          lambda: self._is_closed):
            connection = socket.socket(family, kind, protocol)
            with self._lock:
                self._socket = connection
            # Looked at after close() can see the socket: one of the two sees the other.
            if self._is_closed:
                raise OSError('closed')
            connection.settimeout(CONNECT_TIMEOUT_S)
            try:
                connection.connect(address)
                # To a socket that was shut down before, Linux says that it is connected.
                if self._is_closed:
                    raise OSError('closed')
                if connection.getsockname() != address:
                    return
                # Linux may connect a socket to itself when nobody listens on an ephemeral port.
                failure = ConnectionRefusedError('connected to itself')
            except OSError as error:
                failure = error
            self._give_up()
        raise failure

    def request(self, command: str, message: object) -> object:
        """
        Send a request and wait for its reply.

        :param command: the command's identifier.
        :param message: its body, plain data or ``msgspec.Raw`` JSON.
        :returns: the message of the reply.
        :raises RefusalError: where the simulator says that it failed; the connection stays.
        :raises TransportError: where there is no reply; the connection is gone.
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
                self._give_up()
                raise TransportError(error.where, error.found, error.expected) from error
            except OSError:
                self._give_up()
                raise
            return reply.message

    def is_alive(self) -> bool:
        """Tell whether the connection is up; one that waits for a reply counts as such."""
        if not self._requesting.acquire(blocking=False):
            return True
        try:
            connection = self._socket
            if connection is None:
                return False
            connection.settimeout(0.0)
            connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        else:
            # Between two requests there is nothing to be read but the end of the stream.
            return False
        finally:
            self._requesting.release()

    def close(self) -> None:
        """End the connection and whatever waits for it, from any thread; for good."""
        self._is_closed = True
        with self._lock:
            if self._socket is not None:
                # It may not be connected, or the peer may have gone: then nothing waits in it.
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
        # A thread that was using the socket has been woken and leaves it.
        if self._requesting.acquire(timeout=_LEAVE_TIMEOUT_S):
            self._give_up()
            self._requesting.release()

    def _give_up(self) -> None:
        with self._lock:
            connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()

    def _connection(self) -> socket.socket:
        connection = self._socket
        if connection is None or self._is_closed:
            found = 'a request to end' if self._is_closed else 'no connection'
            raise TransportError(self.where, found, 'a connection to the control port')
        return connection

    def _send(self, command: str, data: bytes) -> None:
        connection = self._connection()
        rest = memoryview(data)
        try:
            while rest:
                # Each part has a time-out of its own: a long trajectory may take its time.
                rest = rest[self._wait(f'reader of {command}', command).send(connection, rest):]
        except TransportError:
            raise
        except OSError as error:
            raise self._failed(error, f'that {command} is read') from error

    def _receive(self, command: str) -> Reply:
        """Wait for one reply."""
        connection = self._connection()
        reader = ReplyReader(self.where)
        wait = self._wait(f'reply to {command}', command)
        while reader.n_wanted:
            try:
                if reader.is_doubtful:
                    wait = Wait(self.where, 'more bytes', _DOUBTFUL_TIMEOUT_S)
                data = wait.receive(connection, min(reader.n_wanted, _CHUNK_BYTES))
            except TransportError:
                if reader.is_doubtful:
                    reader.end()
                raise
            except OSError as error:
                raise self._failed(error, f'a reply to {command}') from error
            if not data:
                if reader.is_doubtful:
                    reader.end()
                raise self._failed(None, f'a reply to {command}')
            reader.feed(data)
        return reader.reply

    def _wait(self, missing: str, command: str) -> Wait:
        return Wait(self.where, missing, self._timeout_s(command), self._on_silence)

    def _failed(self, error: OSError | None, expected: str) -> TransportError:
        found = 'the end of the connection' if error is None else told(error)
        return TransportError(self.where, 'a request to end' if self._is_closed else found,
                              expected)

    def _timeout_s(self, command: str) -> float:
        if self._reply_timeout_s is not None:
            return self._reply_timeout_s
        return LOADING_TIMEOUT_S if command in LOADING else REPLY_TIMEOUT_S
