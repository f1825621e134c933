# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What the commands measure in this process, while others may have its cores."""

from budgets import AWAIT_S
import pytest

from state_sensor_ros.commands import reading
from state_sensor_ros.connections import connection


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """
    Have nothing in this process happen for a delay alone: neither a line nor an end.

    The limits of the programs hold: tests of these start them.
    """
    monkeypatch.setattr(reading, '_SILENCE_S', AWAIT_S)
    monkeypatch.setattr(connection, 'SILENCE_S', AWAIT_S)
