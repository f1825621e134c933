# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Where packets come from: each module here is one source.

A source is used by one thread, which asks it for packets; any other thread may close it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from state_sensor_ros.payloads import Packet
from state_sensor_ros.pipeline.counters import LastError
from state_sensor_ros.settings import Settings


@dataclass(slots=True)
class Health:
    """
    The state of a source; written by its thread, read by any.

    ``state`` one of connecting, waiting (before the next try), connected, playing, paused, ended,
    closed; ``n_packets`` received; ``n_connects`` successful ones; ``n_protocol_errors``
    impossible lengths; ``n_cut_packets`` streams that ended in a packet; ``error`` the last one.
    """

    state: str = 'connecting'
    n_bytes: int = 0
    n_packets: int = 0
    n_connects: int = 0
    n_protocol_errors: int = 0
    n_cut_packets: int = 0
    n_earlier_reconnects: int = 0
    error: LastError = field(default_factory=LastError)

    @property
    def n_reconnects(self) -> int:
        """How often the source connected again after the first time."""
        return self.n_earlier_reconnects + max(self.n_connects - 1, 0)

    @property
    def last_error(self) -> str:
        """Text of the last error, one line, ``''`` for none."""
        return self.error.text

    @last_error.setter
    def last_error(self, text: str) -> None:
        self.error.note(text)

    def count_on(self, earlier: Health) -> None:
        """Add what an earlier source of the same stream counted, before this one is started."""
        self.n_bytes += earlier.n_bytes
        self.n_packets += earlier.n_packets
        self.n_protocol_errors += earlier.n_protocol_errors
        self.n_cut_packets += earlier.n_cut_packets
        self.n_earlier_reconnects += earlier.n_reconnects


class Source(Protocol):
    """One stream of packets."""

    health: Health

    def packets(self) -> Iterator[Packet]:
        """Yield packets until the stream has ended for good or :meth:`close` is called."""

    def reconfigure(self, settings: Settings) -> None:
        """Take note of dynamic parameters that changed, from any thread."""

    def close(self) -> None:
        """End :meth:`packets` soon, from any thread; closing twice is quiet."""
