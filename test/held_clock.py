# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The seconds of a live stream in this process: from what a test is about, not from its start."""

import math
import time

from state_sensor_ros.commands import live, record
from state_sensor_ros.source import LastError


class HeldClock:
    """A clock that stands still until :meth:`go_on`."""

    def __init__(self):
        self._held_s, self._since_s = time.monotonic(), math.inf

    def monotonic(self):
        return self._held_s + max(time.monotonic() - self._since_s, 0.0)

    def go_on(self):
        self._since_s = min(self._since_s, time.monotonic())


def hold_clock(monkeypatch):
    """Have ``--seconds`` not pass; return their clock."""
    clock = HeldClock()
    for module in (live, record):
        monkeypatch.setattr(module, 'time', clock)
    return clock


def begin_with_the_first_packet(monkeypatch):
    """Have ``--seconds`` begin with the first packet, however late that is."""
    clock, packets = hold_clock(monkeypatch), live.LiveStream.packets

    def noted(self):
        for packet in packets(self):
            clock.go_on()
            yield packet

    monkeypatch.setattr(live.LiveStream, 'packets', noted)


def begin_with_the_first_failure(monkeypatch):
    """Have ``--seconds`` begin when an attempt to receive has failed, however late that is."""
    clock, note = hold_clock(monkeypatch), LastError.note

    def noted(self, text):
        note(self, text)
        clock.go_on()

    monkeypatch.setattr(LastError, 'note', noted)
