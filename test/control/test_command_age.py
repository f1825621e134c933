# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The age of a command, by the clock that the first stamp of its publisher is of."""

import math

import pytest

from state_sensor_ros.control.command_inputs import CommandAge


@pytest.mark.parametrize(('first_s', 'first_clocks_s', 'age_s'), [
    pytest.param(100.4, (100.2, 1000.0), 3.0, id='game-time'),
    pytest.param(1000.1, (100.2, 1000.0), 3.0, id='clock-of-the-node'),
    # A relay that was late from the start, and a publisher whose clock is another one.
    pytest.param(98.0, (100.2, 1000.0), 0.0, id='neither'),
    pytest.param(0.0, (100.2, 1000.0), 0.0, id='without-a-stamp'),
    pytest.param(1000.1, (math.nan, 1000.0), 3.0, id='before-the-first-frame'),
])
def test_age_is_that_of_the_clock_of_the_first_stamp(first_s, first_clocks_s, age_s):
    age = CommandAge()
    assert age.age_s(first_s, first_clocks_s) == 0.0
    assert age.age_s(first_s and first_s + 5.0, first_clocks_s) == 0.0
    later_s = [clock_s + 9.0 for clock_s in first_clocks_s]
    # Each publishes what is three seconds old.
    assert age.age_s(first_s + 5.8 if age_s else first_s, later_s) == pytest.approx(age_s, abs=0.3)
