# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Where packets come from: each module here is one source.

A source is used by one thread, which asks it for packets; any other thread may close it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from state_sensor_ros.framing import Packet
from state_sensor_ros.settings import Settings


@dataclass(slots=True)
class Health:
    """
    How a source is doing; written by its thread, read by anybody.

    ``state`` one of connecting, waiting (before the next try), connected, playing, paused, ended,
    closed; ``n_connects`` successful ones; ``last_error`` one line, ``''`` for none;
    ``n_protocol_errors`` impossible lengths; ``n_cut_packets`` streams that ended in a packet.
    """

    state: str = 'connecting'
    n_bytes: int = 0
    n_packets: int = 0
    n_connects: int = 0
    n_protocol_errors: int = 0
    n_cut_packets: int = 0
    last_error: str = ''

    @property
    def n_reconnects(self) -> int:
        """How often the source connected again after the first time."""
        return max(self.n_connects - 1, 0)


class Source(Protocol):
    """One stream of packets."""

    health: Health

    def packets(self) -> Iterator[Packet]:
        """Yield packets until the stream has ended for good or :meth:`close` is called."""

    def reconfigure(self, settings: Settings) -> None:
        """Take note of dynamic parameters that changed, from any thread."""

    def close(self) -> None:
        """End :meth:`packets` soon, from any thread; closing twice is quiet."""
