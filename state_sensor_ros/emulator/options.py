# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
How a stand-in simulator serves, and the pace at which it does.

May know: the options of `simulate` and their ranges, real time. Must not: sockets, frames.
Source of truth: INTERFACE 2.
"""

from __future__ import annotations

from dataclasses import dataclass
import threading
import time
from typing import Literal

from state_sensor_ros.emulator.wire import REPLY_MAGICS, SENSOR_HEADERS
from state_sensor_ros.errors import ConfigError

# A reader that held the simulator up for longer than this is not followed by a burst.
MAX_LAG_S = 1.0

Rate = float | Literal['real', 'max']


@dataclass(frozen=True, slots=True)
class Options:
    """
    How the simulator serves.

    :param port: sensor port, 0 picks a free one.
    :param control_port: None for none, 0 picks a free one.
    :param bind: address of all ports.
    :param rate: `real` (by game_time), `max` (as fast as it is read) or frames per second.
    :param n_frames: end after so many, None for no limit.
    :param header_size: 16, or 12 for the older generation.
    :param on_sample: wait for sample and step commands instead of running freely.
    :param reply_magic: `new` or `old`.
    :param with_success: whether replies carry the member `success`.
    :raises ConfigError: when a value is out of range.
    """

    port: int = 0
    control_port: int | None = None
    bind: str = '127.0.0.1'
    rate: Rate = 'real'
    n_frames: int | None = None
    header_size: int = 16
    on_sample: bool = False
    reply_magic: str = 'new'
    with_success: bool = True

    def __post_init__(self) -> None:
        if self.header_size not in SENSOR_HEADERS:
            raise ConfigError('header', str(self.header_size), '16 or 12')
        if self.reply_magic not in REPLY_MAGICS:
            raise ConfigError('reply-magic', repr(self.reply_magic), 'new or old')
        is_number = not isinstance(self.rate, str)
        if self.rate not in ('real', 'max') and not (is_number and float(self.rate) > 0.0):
            raise ConfigError('rate', str(self.rate), 'real, max or a number above 0')
        if self.n_frames is not None and self.n_frames < 1:
            raise ConfigError('frames', str(self.n_frames), '1 or more')


class Pacer:
    """
    Waits between frames so that the average rate holds.

    :param rate: as in :class:`Options`.
    :param stop: ends every wait at once.
    """

    def __init__(self, rate: Rate, stop: threading.Event) -> None:
        self._rate = rate
        self._stop = stop
        self._due_s = 0.0

    def wait(self, period_s: float) -> None:
        """
        Wait for the moment of the next frame.

        :param period_s: its distance in simulated time from the one before, s.
        """
        if self._rate == 'max':
            return
        now_s = time.monotonic()
        # After a pause, the next frame is due one period from now, not at once.
        earliest_s = now_s - MAX_LAG_S
        step_s = period_s if isinstance(self._rate, str) else 1.0 / self._rate
        self._due_s = self._due_s + step_s if self._due_s > earliest_s else now_s
        if self._due_s > now_s:
            self._stop.wait(self._due_s - now_s)
