# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The times between the frames of a mock server, on a clock that the test advances."""

import threading

import pytest

from state_sensor_ros.emulator import threaded_server
from state_sensor_ros.emulator.threaded_server import Pacer


class Clock:
    """A clock that only waiting and the test advance; ``wait`` as an Event has it."""

    def __init__(self):
        self.now_s = 100.0

    def monotonic(self):
        return self.now_s

    def wait(self, seconds):
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(threaded_server, 'time', made)
    return made


def waits(clock, pacer, n):
    """Return how long each of ``n`` frames waits, s."""
    found = []
    for _ in range(n):
        before_s = clock.now_s
        pacer.wait(0.1)
        found.append(round(clock.now_s - before_s, 6))
    return found


def test_pacer_keeps_the_rate_after_a_delay(clock):
    pacer = Pacer(20.0, clock)
    assert waits(clock, pacer, 3) == [0.0, 0.05, 0.05]
    clock.now_s += 0.12
    assert waits(clock, pacer, 4) == [0.0, 0.0, 0.03, 0.05]


def test_pacer_catches_up_nothing_after_a_restart(clock):
    pacer = Pacer(20.0, clock)
    waits(clock, pacer, 3)
    clock.now_s += 0.4
    pacer.restart()
    assert waits(clock, pacer, 3) == [0.0, 0.05, 0.05]


def test_pacer_of_the_real_rate_waits_for_the_simulated_period(clock):
    assert waits(clock, Pacer('real', clock), 3) == [0.0, 0.1, 0.1]
    assert waits(clock, Pacer('max', clock), 2) == [0.0, 0.0]


def test_pacer_waits_no_longer_than_the_system_can(clock):
    pacer = Pacer(1e-12, clock)
    waits(clock, pacer, 1)
    before_s = clock.now_s
    pacer.wait(0.1)
    assert clock.now_s - before_s == pytest.approx(threading.TIMEOUT_MAX)
