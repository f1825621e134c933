# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""How old a command is: the queue, the way, clocks that differ, drift or are set."""

import pytest

from state_sensor_ros.control.command_inputs import CommandAge

TOO_OLD_S = 0.5
AHEAD_S = 1e6  # clock of the publisher against ours


class Stream:
    """Messages at 50 Hz over a way of 1 ms; the clocks of both ends can be set."""

    def __init__(self):
        self.age = CommandAge(TOO_OLD_S)
        self.steady_s, self.own_s, self.other_s = 100.0, 1000.0, 1000.0 + AHEAD_S

    def advance(self, seconds):
        self.steady_s += seconds
        self.own_s += seconds
        self.other_s += seconds

    def message(self, way_s=0.001, queue_s=0.0):
        """Return the age of a message that is used now."""
        return self.age.age_s(self.other_s - way_s - queue_s, self.own_s - queue_s, self.own_s,
                              self.steady_s)

    def run(self, seconds):
        """Return the ages of messages for a while."""
        ages = []
        for _ in range(round(seconds * 50)):
            self.advance(0.02)
            ages.append(self.message())
        return ages


@pytest.fixture
def stream():
    made = Stream()
    assert max(made.run(1.0)) < 1e-3
    return made


def test_queue_and_way_both_count(stream):
    assert stream.message(queue_s=3.0) == pytest.approx(3.0)
    # After a stop of this process: waited in the transport, stamped on receipt.
    stream.advance(3.0)
    assert stream.message(way_s=2.0, queue_s=0.25) == pytest.approx(2.25, abs=0.01)
    assert stream.message() == pytest.approx(0.0, abs=0.01)


def test_drift_of_the_clocks_is_followed(stream):
    for _ in range(3600):
        stream.advance(1.0)
        stream.other_s -= 1e-4
        assert stream.message() < 2e-3


def test_own_clock_that_is_set_changes_nothing(stream):
    for step_s in (1e5, -2e5):
        stream.own_s += step_s
        assert max(stream.run(1.0)) < 1e-3


def test_publisher_clock_that_is_set_is_accepted_after_some_seconds(stream):
    stream.other_s += 100.0
    assert max(stream.run(1.0)) < 1e-3
    stream.other_s -= 100.0
    assert min(stream.run(4.0)) > TOO_OLD_S
    assert max(stream.run(4.0)[-50:]) < 1e-3
    # Messages that come late one after the other, each by another time, stay too old.
    stream.advance(10.0)
    assert min(stream.message(way_s=10.0 - i / 10) for i in range(90)) > TOO_OLD_S


def test_middleware_without_stamps():
    age = CommandAge(TOO_OLD_S)
    assert age.age_s(0.0, 0.0, 1000.0, 100.0) == 0.0
    assert age.age_s(0.0, 999.0, 1000.0, 100.0) == 1.0
