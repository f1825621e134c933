# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
One frame as it lies in a recording, whatever form that has.

May know: payload, place, time. Must not know: files, what a payload means.
"""

from __future__ import annotations

from dataclasses import dataclass

from state_sensor_ros.payloads import Packet

# PROTOCOL 6: of a recording that does not say when its frames were.
PERIOD_S = 0.05


@dataclass(frozen=True, slots=True)
class Entry:
    """
    One frame as it lies in a recording.

    ``packet`` its payload, and a ``game_time`` that is made good, 20 Hz, where the payload has
    none; ``clock_s`` the time it names itself, s, NaN for none; ``index`` from 0; ``place`` in
    the file, in words; ``position`` how much of the recording lies before its end.
    """

    packet: Packet
    clock_s: float
    index: int
    place: str
    position: int
