# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A row of the short benchmark fails where it is a quarter worse than its stored figure."""

import importlib

from paths import ROOT
import pytest

STORED = {'steady': 2.0, 'spoilt': 2.0}


@pytest.fixture
def row(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / 'bench'))
    return importlib.import_module('row')


@pytest.fixture
def compared(row):
    return row.compared


def measuring(*figures):
    """Return a function that measures ``figures``, one after the other."""
    remaining = iter(figures)
    return lambda: next(remaining)


def test_row_a_quarter_worse_fails(compared, capsys):
    rows = {'steady': measuring(2.49), 'spoilt': measuring(2.5, 2.6, 2.7)}
    assert compared(rows, STORED, 3) == ['spoilt']
    steady, spoilt = capsys.readouterr().out.splitlines()
    assert steady.split()[0::4] == ['steady', 'holds']
    assert spoilt.split() == ['spoilt', '2.500', 'stored', '2.000', 'WORSE']


def test_row_that_recovers_holds(compared):
    assert compared({'steady': measuring(4.0, 3.0, 2.4)}, STORED, 3) == []


def test_better_row_is_measured_once(compared):
    assert compared({'steady': measuring(0.5)}, STORED, 3) == []


def test_row_without_a_stored_figure_fails(compared):
    assert compared({'new': measuring(0.1, 0.1, 0.1)}, STORED, 3) == ['new']


@pytest.mark.parametrize(('memory', 'trend'), [
    ([100, 110, 100, 110, 240, 100], 0),  # a queue that is full once
    ([240, 240, 100, 240, 240, 240], 0),  # a queue that is empty once
    ([240, 100, 110, 110, 100, 240], 0),
    ([100, 240, 110, 140, 280, 150], 40),  # a leak below a queue that fills and empties
    ([100, 110, 120, 130, 140, 150], 30)])
def test_trend_of_memory_is_of_a_leak_and_not_of_a_queue(row, memory, trend):
    assert row.trend(memory) == trend
