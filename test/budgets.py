# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
How long tests wait, and how much the tests with random or many inputs try.

``pytest --budget N`` tries N times as much as ``make test`` and, above 1, runs the tests marked as
thorough too. ``make test-all`` sets 8.
"""

# How long tests wait for what has to happen; only a failure takes that long.
from itertools import product

import pytest

AWAIT_S = 180.0

_budget = 1.0


def set_budget(budget):
    """Set the factor; before the test modules are imported."""
    global _budget
    _budget = budget


def is_large():
    """Return whether this is a run of everything, as of ``make test-all``."""
    return _budget > 1


def tries(number):
    """Return how many inputs to try, or seconds to spend, where ``make test`` takes ``number``."""
    return max(round(number * _budget), 1)


def spread(items, number):
    """Return ``tries(number)`` of ``items``, evenly spread, the first and the last among them."""
    items = list(items)
    number = max(tries(number), 2)
    if number >= len(items):
        return items
    return [items[round(i * (len(items) - 1) / (number - 1))] for i in range(number)]


def one_of(values, *, n_always=1):
    """Return values of a parameter, of which ``make test`` takes the first ``n_always``."""
    return [value if i < n_always else pytest.param(value, marks=pytest.mark.thorough)
            for i, value in enumerate(values)]


def first_of(cases, *, n_always=1):
    """Return cases of several parameters, of which ``make test`` takes the first ``n_always``."""
    return [pytest.param(*case, marks=() if i < n_always else pytest.mark.thorough)
            for i, case in enumerate(cases)]


def each_once(*parameters):
    """
    Return all combinations of the values of parameters.

    ``make test`` takes so many that each value is in one.
    """
    taken = [tuple(values[i % len(values)] for values in parameters)
             for i in range(max(map(len, parameters)))]
    return [pytest.param(*values, marks=() if values in taken else pytest.mark.thorough)
            for values in product(*parameters)]
