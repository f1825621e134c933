# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The bytes between the server and its clients: calls, snapshots of the world, tokens of streams.

Requests and replies are those of rpclib: MessagePack without a length in front.

    request   [0, number, name, arguments]       arguments[0] is [whether no reply is read]
    reply     [1, number, error or nil, result]

A result is a variant in an array: [[1, value]], or [[0, [text]]] of a call that failed; a call
without a value gives [[false]] or [[true, [text]]]. A client that gets an ``error`` raises it.

A snapshot is its length (uint32), the header of any sensor, that of the world, and 119 bytes for
each actor, whose last 54 depend on its kind. All is little endian and packed.
"""

from __future__ import annotations

from collections.abc import Iterator
import re
import struct
import time

import msgspec
import numpy as np
import numpy.typing as npt

from state_sensor_ros.errors import FramingError

# Longest request: a thousand actors are spawned with half of it.
MAX_REQUEST = 2**22
_REQUEST = 0
_REPLY = 1
# Errors of msgspec for a request whose end has not arrived, and for what follows a request.
_CUT, _MORE = 'Input data was truncated', re.compile(r'trailing characters \(byte (\d+)\)')
# Place of the world's observer in the client's list of sensors.
_OBSERVER = 17
_HEADER = struct.Struct('<IQQd6fQdf3iI')
_TOKEN = struct.Struct('<IHBB16x')
_TCP, _ADDRESS_OF_THE_SERVER = 1, 0
# Where the last 54 bytes of an actor begin.
_STATE = 65
_FIELDS: dict[str, tuple[str, int]] = {
    'id': ('<u4', 0), 'actor_state': ('u1', 4), 'numbers': ('(15,)<f4', 5),
    # A vehicle.
    'throttle': ('<f4', _STATE), 'steer': ('<f4', _STATE + 4), 'brake': ('<f4', _STATE + 8),
    'hand_brake': ('?', _STATE + 12), 'reverse': ('?', _STATE + 13),
    'is_manual': ('?', _STATE + 14), 'gear': ('<i4', _STATE + 15),
    'speed_limit': ('<f4', _STATE + 19), 'light_at_vehicle': ('u1', _STATE + 23),
    'has_light': ('?', _STATE + 24), 'light_id': ('<u4', _STATE + 25),
    # A walker.
    'direction': ('(3,)<f4', _STATE), 'walking_speed': ('<f4', _STATE + 12),
    'jumps': ('?', _STATE + 16),
    # A traffic light, and its first field a sign.
    'sign_id': ('S32', _STATE), 'green_s': ('<f4', _STATE + 32),
    'yellow_s': ('<f4', _STATE + 36), 'red_s': ('<f4', _STATE + 40),
    'elapsed_s': ('<f4', _STATE + 44), 'pole_index': ('<u4', _STATE + 48),
    'is_frozen': ('?', _STATE + 52), 'light': ('u1', _STATE + 53)}
# One actor; ``numbers`` are those of world_bodies.
ACTOR = np.dtype({'names': list(_FIELDS), 'formats': [kind for kind, _ in _FIELDS.values()],
                  'offsets': [at for _, at in _FIELDS.values()], 'itemsize': 119})
ACTIVE = 1

ActorRows = npt.NDArray[np.void]


class CallError(Exception):
    """A call that fails; the text is the reply."""


class Request(msgspec.Struct, array_like=True, frozen=True):
    kind: int
    number: int  # that its reply repeats
    name: str
    arguments: list[object]


class RequestCutter:
    """Cuts a stream of bytes into requests, which have no length in front."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._decoder = msgspec.msgpack.Decoder(Request)

    def requests(self, received: bytes) -> Iterator[Request]:
        """Take the next bytes of the stream, and yield the requests that are complete."""
        self._data += received
        while (request := self._next()) is not None:
            if request.kind != _REQUEST:
                raise _no_request(f'a message of kind {request.kind}')
            yield request
        if len(self._data) > MAX_REQUEST:
            raise _no_request(f'more than {MAX_REQUEST} bytes')

    def _next(self) -> Request | None:
        n_bytes = len(self._data)
        while n_bytes:
            try:
                request = self._decoder.decode(memoryview(self._data)[:n_bytes])
            except (ValueError, RecursionError) as error:
                more = _MORE.search(str(error))
                if more is None and str(error) != _CUT:
                    raise _no_request(str(error)) from error
                n_bytes = int(more[1]) if more else 0
            else:
                del self._data[:n_bytes]
                return request
        return None


def _no_request(found: str) -> FramingError:
    return FramingError('request', found, 'a request of rpclib')


def encode_reply(number: int, result: object = None, error: str | None = None) -> bytes:
    return msgspec.msgpack.encode((_REPLY, number, error, result))


def snapshot_bytes(actors: ActorRows, *, episode: int, frame: int, elapsed_s: float,
                   delta_s: float, is_new_map: bool) -> bytes:
    """Return a message of the world's stream, of now; ``actors``: (N,) ACTOR."""
    size = _HEADER.size - 4 + actors.nbytes
    return _HEADER.pack(
        size, _OBSERVER, frame, elapsed_s, 0, 0, 0, 0, 0, 0, episode, time.monotonic(),
        delta_s, 0, 0, 0, int(is_new_map)) + actors.tobytes()


def token_bytes(stream: int, port: int) -> bytes:
    """Return the token of a stream, on the address by which the client has reached the server."""
    return _TOKEN.pack(stream, port, _TCP, _ADDRESS_OF_THE_SERVER)
