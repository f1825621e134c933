# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What the commands measure in this process, while others may have its cores."""

import math
import time

from budgets import AWAIT_S
import pytest

from state_sensor_ros.commands import interruption, live, printing, record
from state_sensor_ros.connections import connection
from state_sensor_ros.source import LastError


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """
    Have nothing in this process happen for a delay alone: neither a line nor an end.

    The limits of the programs hold: tests of these start them.
    """
    monkeypatch.setattr(printing, '_SILENCE_S', AWAIT_S)
    monkeypatch.setattr(connection, 'SILENCE_S', AWAIT_S)
    # After the latter, the process of the tests would end.
    monkeypatch.setattr(interruption, '_STOP_S', AWAIT_S)
    monkeypatch.setattr(interruption, '_END_S', AWAIT_S)


class HeldClock:
    """A clock that stands still until :meth:`go_on`."""

    def __init__(self):
        self._held_s, self._since_s = time.monotonic(), math.inf

    def monotonic(self):
        return self._held_s + max(time.monotonic() - self._since_s, 0.0)

    def go_on(self):
        self._since_s = min(self._since_s, time.monotonic())


@pytest.fixture
def held_clock(monkeypatch):
    """Return the clock of ``--seconds`` in this process."""
    clock = HeldClock()
    for module in (live, record):
        monkeypatch.setattr(module, 'time', clock)
    return clock


@pytest.fixture
def first_packet(held_clock, monkeypatch):
    """Have ``--seconds`` begin with the first packet, however late that is."""
    packets = live.LiveStream.packets

    def noted(self):
        for packet in packets(self):
            held_clock.go_on()
            yield packet

    monkeypatch.setattr(live.LiveStream, 'packets', noted)


@pytest.fixture
def failed_attempt(held_clock, monkeypatch):
    """Have ``--seconds`` begin when an attempt to receive has failed, however late that is."""
    note = LastError.note

    def noted(self, text):
        note(self, text)
        held_clock.go_on()

    monkeypatch.setattr(LastError, 'note', noted)
