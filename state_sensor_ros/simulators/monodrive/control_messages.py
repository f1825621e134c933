# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Messages of the simulator's control port: requests to bytes, bytes to replies, without sockets.

Both have this form, big-endian (doc/protocol/control.md)::

     0              4              8
     +--------------+--------------+----------------------------------------------
     | magic uint32 | length uint32| {"type": …, "reference": …, "message": …} …
     +--------------+--------------+----------------------------------------------
     6d 6f 6e 6f    00 00 00 2e    46 bytes in all, 38 of JSON

Some simulators do not count the header in the length of a reply: the JSON then ends 8 bytes later.
"""

from __future__ import annotations

from dataclasses import dataclass
import re
import struct

import msgspec

from state_sensor_ros.simulators import counted, DecodeError, FramingError, RefusalError
from state_sensor_ros.simulators.json_text import NOT_TYPED, shortened

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
    """
    Encode one request.

    :param command: the command's identifier.
    :param message: its body, plain data or ``msgspec.Raw`` JSON, which is sent unchanged.
    :param reference: 1 to :data:`MAX_REFERENCE`, repeated by the reply.
    :returns: header and JSON.
    :raises FramingError: when its length does not fit the header.
    """
    body = msgspec.json.encode({'type': command, 'reference': reference, 'message': message})
    length = _HEADER.size + len(body)
    if length > _MAX_REQUEST_BYTES:
        raise FramingError(command, f'{length} bytes', f'at most {_MAX_REQUEST_BYTES}')
    return _HEADER.pack(REQUEST_MAGIC, length) + body


@dataclass(frozen=True, slots=True)
class Reply:
    """
    Reply of the simulator.

    ``reference`` None if the reply has none; ``success`` as sent, else derived from the text.
    """

    command: str
    reference: int | None
    message: object
    success: bool

    def check(self, where: str, command: str, reference: int) -> None:
        """
        Check that the reply belongs to the request and reports success.

        :param where: named in errors, such as ``host:port``.
        :param command: command of the request, named in errors.
        :param reference: reference of the request.
        :raises DecodeError: when it belongs to another request.
        :raises RefusalError: with the simulator's text, when it reports a failure.
        """
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
        """
        Process up to ``n_wanted`` bytes.

        :param data: the next bytes of the stream, at most ``n_wanted``.
        :raises FramingError: when magic or length is impossible: the stream is unusable.
        :raises DecodeError: when the body is not an object with an integer reference.
        """
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
        """
        Process the end of the stream.

        :raises DecodeError: always: the reply is incomplete.
        """
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
            self._unfinished = DecodeError(self._where, f'a reply that is no JSON ({exc})',
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
    """Return a short text of a value, one line."""
    return shortened(repr(value), _MAX_SHOWN)
