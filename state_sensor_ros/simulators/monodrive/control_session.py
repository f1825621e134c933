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

Only orders are sent while a reply is outstanding, and no order waits for its reply. Replies arrive
in the order of the requests (doc/protocol/control.md), so that a late one is read before that of
the next request::

    request SAMPLE      order: brake        request SAMPLE
    ---------|----------------|------------------|------------>
                    |               |                  |
                    reply SAMPLE    reply, dropped     reply SAMPLE

After a failed request, or a reply that is not whole, the connection is closed.

Requests and replies: Both have this format, big-endian (doc/protocol/control.md)::

     0              4              8
     +--------------+--------------+----------------------------------------------
     | magic uint32 | length uint32| {"type": …, "reference": …, "message": …} …
     +--------------+--------------+----------------------------------------------
     6d 6f 6e 6f    00 00 00 2e    46 bytes in all, 38 of JSON

Some simulators do not count the header in the length of a reply: the JSON then ends 8 bytes later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
import math
import re
import struct
import threading
import time

import msgspec

from state_sensor_ros.simulators import (
    counted,
    DecodeError,
    FramingError,
    ignore,
    RefusalError,
    TransportError,
)
from state_sensor_ros.simulators.connections import Connection, OnSilence, Wait
from state_sensor_ros.simulators.json_values import NOT_TYPED, shortened

CONFIGURE_SIMULATOR = 'SimulatorConfig_ID'
CONFIGURE_TRAJECTORY = 'REPLAY_ConfigureTrajectoryCommand_ID'
CONFIGURE_SENSORS = 'REPLAY_ConfigureSensorsCommand_ID'
RECONFIGURE_SENSOR = 'REPLAY_ReConfigureSensorCommand_ID'
STEP = 'REPLAY_StepSimulationCommand_ID'
SAMPLE = 'SampleSensorsCommand_ID'
CONTROL_EGO = 'EgoControl_ID'

# Magic, length.
_HEADER = struct.Struct('>II')
# 'mono'; simulators before release 1.11 reply with the bytes reversed.
REQUEST_MAGIC = 0x6D6F6E6F
OLD_REPLY_MAGIC = 0x6F6E6F6D
MAX_REFERENCE = 2 ** 63 - 1
_MAX_REQUEST_BYTES = 2 ** 32 - 1
# Known replies take less than a kilobyte.
MAX_REPLY_BYTES = 16 * 1024 * 1024
# Sent after the length by a peer whose length does not include the header.
_EXTRA_BYTES = _HEADER.size
# Texts of failures, for replies without `success`: assumed complete. test_control has the texts
# of both kinds.
_FAILURE = re.compile(r'\b(fail(s|ed|ure)?|errors?|invalid|unable|can ?not|could not|'
                      r'no (\w+ )*(ego|actors?|vehicles?|trajectory)|not (found|registered))\b',
                      re.IGNORECASE)
_MAX_SHOWN = 200


def encode_request(command: str, message: object, reference: int) -> bytes:
    """Encode one request."""
    # message: its body, plain data or ``msgspec.Raw`` JSON, which is sent unchanged.
    # reference: 1 to :data:`MAX_REFERENCE`, repeated by the reply.
    body = msgspec.json.encode({'type': command, 'reference': reference, 'message': message})
    length = _HEADER.size + len(body)
    if length > _MAX_REQUEST_BYTES:
        raise FramingError(command, f'{length} bytes', f'at most {_MAX_REQUEST_BYTES}')
    return _HEADER.pack(REQUEST_MAGIC, length) + body


@dataclass(frozen=True, slots=True)
class Reply:
    command: str
    reference: int | None  # None if the reply has none
    message: object
    success: bool  # as sent, else derived from the text

    def check(self, where: str, command: str, reference: int) -> None:
        """Check that the reply belongs to the request and reports success."""
        # where: named in errors, such as ``host:port``.
        if self.reference not in (None, reference):
            raise DecodeError(where, f'a reply to request {self.reference}',
                              f'one to request {reference}, {command}')
        if not self.success:
            raise RefusalError(where, f'{_shown(self.message)} in reply to {command}', 'success')


class ReplyReader:
    """
    Assemble one reply from parts.

    The caller feeds exactly ``n_wanted`` bytes, in any number of parts, until that is 0, or calls
    :meth:`end` when no more bytes arrive.

    :param where: named in errors, such as ``host:port``.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._header = bytearray()
        self._body = bytearray()
        self._reply: Reply | None = None
        self._unfinished: DecodeError | None = None
        self.n_wanted = _HEADER.size

    @property
    def is_incomplete_json(self) -> bool:
        """Whether the body ends inside its JSON: the rest of it is beyond the given length."""
        return self._unfinished is not None

    @property
    def reply(self) -> Reply:
        """Return the reply, once ``n_wanted`` is 0."""
        assert self._reply is not None
        return self._reply

    def feed(self, data: bytes) -> None:
        """Process up to ``n_wanted`` bytes."""
        # data: the next bytes of the stream, at most ``n_wanted``.
        assert len(data) <= self.n_wanted
        in_header = len(self._header) < _HEADER.size
        (self._header if in_header else self._body).extend(data)
        self.n_wanted -= len(data)
        if self.n_wanted:
            return
        if in_header:
            self.n_wanted = self._body_bytes()
        else:
            self._body_complete()

    def end(self) -> None:
        """Process the end of the stream."""
        n_bytes = len(self._header) + len(self._body)
        raise self._unfinished or DecodeError(
            self._where, f'{counted(n_bytes, "byte")} of a reply', f'{self.n_wanted} more')

    def _body_bytes(self) -> int:
        magic, length = _HEADER.unpack(self._header)
        if magic not in (REQUEST_MAGIC, OLD_REPLY_MAGIC):
            raise FramingError(self._where, f'magic {magic:#010x}',
                               f'{REQUEST_MAGIC:#010x} or {OLD_REPLY_MAGIC:#010x}')
        # An envelope is never empty.
        if not _HEADER.size < length <= MAX_REPLY_BYTES:
            raise FramingError(self._where, f'reply length {length}',
                               f'{_HEADER.size + 1} to {MAX_REPLY_BYTES}')
        return int(length) - _HEADER.size

    def _body_complete(self) -> None:
        try:
            value = msgspec.json.decode(self._body)
        except NOT_TYPED as exc:
            if self._unfinished is not None:
                raise self._unfinished from exc
            self._unfinished = DecodeError(self._where, f'a reply that is not JSON ({exc})',
                                           'an object')
            self.n_wanted = _EXTRA_BYTES
            return
        self._unfinished = None
        self._reply = self._parsed(value)

    def _parsed(self, value: object) -> Reply:
        if not isinstance(value, dict):
            raise DecodeError(self._where, f'a reply of {_shown(value)}', 'an object')
        reference, message, success = (value.get(key) for key in (
            'reference', 'message', 'success'))
        if isinstance(reference, float) and reference.is_integer():
            reference = int(reference)  # of a peer without integers
        if reference is not None and (not isinstance(reference, int)
                                      or isinstance(reference, bool)):
            raise DecodeError(f'{self._where}: reference', _shown(reference), 'an integer')
        if not isinstance(success, bool):
            success = not (isinstance(message, str) and _FAILURE.search(message))
        command = value.get('type')
        return Reply(command if isinstance(command, str) else '', reference,
                     message, success)


def _shown(value: object) -> str:
    return shortened(repr(value), _MAX_SHOWN)


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
# Longest time for which another thread may be about to send, s.
_ORDER_S = 0.02
# Orders without a reply, after which none is sent that could wait.
_MOST_UNANSWERED = 4


class UnansweredError(TransportError):
    """A reply is not there yet, or an order was not sent; the connection stays open."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request without a reply: its reference, steady time of its sending, whether an order."""

    reference: int
    at_s: float
    is_order: bool


class ControlSession:
    """A control connection; requests of several threads wait for each other."""

    def __init__(self, host: str, port: int, *, reply_timeout_s: float | None = None,
                 on_silence: OnSilence = ignore) -> None:
        self._connection = Connection(host, port)
        self.where = self._connection.where
        self._reply_timeout_s = reply_timeout_s
        self._on_silence = on_silence
        # Held from a request to its reply, and while bytes are sent.
        self._requesting, self._sending = threading.Lock(), threading.Lock()
        self._is_connected = False
        self._reference = 0
        # The requests without a reply, the oldest first.
        self._outstanding: deque[_Sent] = deque()
        # Of the last order that was refused, until it is reported.
        self._refusal: RefusalError | None = None
        # The reply that is being received.
        self._reader = ReplyReader(self.where)

    def connect(self) -> None:
        with self._requesting:
            self._connection.open()
            self._is_connected = True

    def request(self, command: str, message: object) -> object:
        """Send a request and wait for its reply."""
        # message: its body, plain data or ``msgspec.Raw`` JSON.
        with self._requesting, self._closed_on_failure():
            reference = self._send(command, message)
            reply = self._reply_to(reference, self._wait(f'reply to {command}', command))
            reply.check(self.where, command, reference)
            return reply.message

    def order(self, command: str, message: Callable[[], object], *, may_wait: bool) -> None:
        """Send a request at once, and do not wait for its reply."""
        # message: called immediately before it is sent, for its body.
        if not self._is_connected:
            raise UnansweredError(self.where, 'no connection yet')
        self._read_replies()
        if may_wait and sum(sent.is_order for sent in (*self._outstanding,)) >= _MOST_UNANSWERED:
            raise UnansweredError(self.where, f'no reply to the last {_MOST_UNANSWERED} orders')
        self._send_order(command, message)
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise refusal

    def unanswered_s(self) -> float:
        """Return the age of the oldest order without a reply, s, 0 without one."""
        with suppress(TransportError):
            self._read_replies()
        at_s = next((sent.at_s for sent in (*self._outstanding,) if sent.is_order), math.inf)
        return max(time.monotonic() - at_s, 0.0)

    def _read_replies(self) -> None:
        # A thread that waits for a reply reads those before it.
        if self._requesting.acquire(blocking=False):
            try:
                with self._closed_on_failure(), suppress(UnansweredError):
                    while self._outstanding and self._has_data():
                        self._next_reply(self._short_wait('rest of a reply', 0.0))
            finally:
                self._requesting.release()

    def is_alive(self) -> bool:
        """Return whether the connection is open, also while a request waits for its reply."""
        if not self._requesting.acquire(blocking=False):
            return True
        try:
            # Between two requests the peer sends nothing but late replies to orders.
            return bool(self._outstanding) or self._connection.is_alive()
        finally:
            self._requesting.release()

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
        except (DecodeError, FramingError) as error:
            self._end_connection()
            raise TransportError(error.where, error.found, error.expected) from error
        except OSError:
            self._end_connection()
            raise

    def _end_connection(self) -> None:
        self._connection.close()
        self._outstanding.clear()

    def _send(self, command: str, message: object) -> int:
        """Send a request of any length; return its reference."""
        with self._sending:
            reference, data = self._encoded(command, message)
            rest, self._connection.unsent = memoryview(self._connection.unsent + data), b''
            try:
                connected = self._connection.open_socket
                while rest:
                    # Each part has its own time-out: a long trajectory may take longer as a whole.
                    rest = rest[self._wait(f'reader of {command}', command).send(connected, rest):]
            except TransportError:
                raise
            except OSError as error:
                raise self._connection.failed(error) from error
            return reference

    def _has_data(self) -> bool:
        try:
            return self._connection.has_data()
        except OSError as error:
            raise self._connection.failed(error) from error

    def _send_order(self, command: str, message: Callable[[], object]) -> None:
        """Send a short request now."""
        if not self._sending.acquire(timeout=_ORDER_S):
            raise UnansweredError(self.where, 'an earlier request is not read')
        try:
            _, data = self._encoded(command, message(), is_order=True)
            try:
                self._connection.send_at_once(data)
            except BlockingIOError as error:
                self._outstanding.pop()
                raise UnansweredError(self.where, 'earlier orders are not read') from error
        except OSError as error:
            if isinstance(error, UnansweredError):
                raise
            # A thread that reads is woken, and closes the connection.
            self._connection.interrupt()
            raise self._connection.failed(error) from error
        finally:
            self._sending.release()

    def _encoded(self, command: str, message: object, *,
                 is_order: bool = False) -> tuple[int, bytes]:
        """Return a new reference, which has no reply yet, and the bytes of a request."""
        reference = self._reference % MAX_REFERENCE + 1
        data = encode_request(command, message, reference)
        self._reference = reference
        self._outstanding.append(_Sent(reference, time.monotonic(), is_order))
        return reference, data

    def _reply_to(self, reference: int, wait: Wait) -> Reply:
        """Read replies until that to one request; leave out those to earlier orders."""
        while True:
            oldest, reply = self._next_reply(wait)
            if oldest.reference == reference:
                return reply

    def _next_reply(self, wait: Wait) -> tuple[_Sent, Reply]:
        """Read the reply to the oldest request without one; return both."""
        reply = self._receive(wait)
        sent = self._outstanding.popleft()
        if reply.reference not in (None, sent.reference):
            raise DecodeError(self.where, f'a reply to request {reply.reference}',
                              f'one to request {sent.reference}')
        if sent.is_order:
            try:
                reply.check(self.where, 'an order', sent.reference)
            except RefusalError as error:
                self._refusal = error
        return sent, reply

    def _receive(self, wait: Wait) -> Reply:
        """Wait for one reply; one of which a part has arrived is continued by the next call."""
        reader = self._reader
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
                raise self._connection.failed(error) from error
            if not data:
                if reader.is_incomplete_json:
                    reader.end()
                if self._connection.is_shut_down:
                    raise self._connection.failed(ConnectionError())
                raise TransportError(
                    self.where, f'the connection was closed instead of a {wait.missing}')
            reader.feed(data)
        self._reader = ReplyReader(self.where)
        return reader.reply

    def _short_wait(self, missing: str, patience_s: float) -> Wait:
        return Wait(self.where, missing, patience_s, error=UnansweredError)

    def _wait(self, missing: str, command: str) -> Wait:
        return Wait(self.where, missing, self._timeout_s(command), self._on_silence)

    def _timeout_s(self, command: str) -> float:
        if self._reply_timeout_s is not None:
            return self._reply_timeout_s
        return LOADING_TIMEOUT_S if command in LOADING else REPLY_TIMEOUT_S
