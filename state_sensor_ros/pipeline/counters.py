# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The counts of frames from the configuration of the node to its clean-up."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
import math
import threading

from state_sensor_ros.source import LastError

# Above the number of frames in a second, after which the latencies are taken.
_MAX_LATENCIES = 4096


@dataclass(slots=True)
class Counters:
    """
    Counts from the configuration of the node to its clean-up.

    While no frame is in flight, ``n_received == n_published + n_skipped + n_dropped``: each frame
    of a packet is counted once. :class:`FrameQueue` writes ``n_received`` and ``n_dropped`` under
    ``lock``, any thread notes ``last_error``, and the thread of the pipeline writes all others.

    ``n_dropped`` frames that were received and not processed: the queue was full, or the stream
    was stopped; ``n_skipped`` frames that cannot be used; ``n_defects`` exceptions that the
    program did not expect, ``last_defect`` the last of them; ``latencies_ns`` from the receipt of
    a frame's last byte to its last message: the pipeline appends, :meth:`take_latencies` removes.
    """

    n_received: int = 0
    n_published: int = 0
    n_skipped: int = 0
    n_dropped: int = 0
    n_defects: int = 0
    n_repeated: int = 0
    n_restarts: int = 0
    n_dropped_actors: int = 0
    n_duplicates: int = 0
    n_bad_poses: int = 0
    n_unknown_velocities: int = 0
    n_without_topics: int = 0
    n_actors: int = 0
    n_egos: int = 0
    game_time: float = math.nan
    generation: str = ''
    last_error: LastError = field(default_factory=LastError)
    last_defect: str = ''
    latencies_ns: deque[int] = field(default_factory=lambda: deque(maxlen=_MAX_LATENCIES))
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def n_in_flight(self) -> int:
        """Return the number of frames that were received and are not processed yet."""
        return self.n_received - self.n_published - self.n_skipped - self.n_dropped

    def take_latencies(self) -> list[int]:
        """
        Remove and return the latencies so far, ns, the oldest first.

        Called by one thread; the pipeline may append meanwhile: both ends of a deque are safe.
        """
        return [self.latencies_ns.popleft() for _ in range(len(self.latencies_ns))]
