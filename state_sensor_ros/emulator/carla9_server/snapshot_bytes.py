# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The snapshot of a world as its stream has it, and the token by which a client finds a stream.

A message is its length (uint32), the header of any sensor, that of the world, and 119 bytes for
each actor, whose last 54 depend on its kind. All is little endian and packed.
"""

from __future__ import annotations

from dataclasses import dataclass
import struct

import numpy as np
import numpy.typing as npt

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
# One actor; ``numbers`` are those of bodies_in_motion.
ACTOR = np.dtype({'names': list(_FIELDS), 'formats': [kind for kind, _ in _FIELDS.values()],
                  'offsets': [at for _, at in _FIELDS.values()], 'itemsize': 119})
ACTIVE = 1

ActorRows = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class SnapshotTime:
    """
    When a snapshot is, and of which episode.

    ``frame`` counts over all episodes; ``elapsed_s`` since the episode began, ``delta_s`` since
    the frame before, ``platform_s`` of the computer, s.
    """

    episode: int
    frame: int
    elapsed_s: float
    delta_s: float
    platform_s: float
    is_new_map: bool = False


def snapshot_bytes(moment: SnapshotTime, actors: ActorRows) -> bytes:
    """
    Return a message of the world's stream.

    :param moment: its time.
    :param actors: (N,) ACTOR.
    """
    size = _HEADER.size - 4 + actors.nbytes
    return _HEADER.pack(
        size, _OBSERVER, moment.frame, moment.elapsed_s, 0, 0, 0, 0, 0, 0, moment.episode,
        moment.platform_s, moment.delta_s, 0, 0, 0, int(moment.is_new_map)) + actors.tobytes()


def token_bytes(stream: int, port: int) -> bytes:
    """
    Return the token of a stream, on the address by which the client has reached the server.

    :param stream: number of the stream.
    :param port: where it is served.
    """
    return _TOKEN.pack(stream, port, _TCP, _ADDRESS_OF_THE_SERVER)
