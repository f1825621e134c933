# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A figure beside its goal."""

from dataclasses import dataclass
import math


@dataclass(frozen=True)
class Row:
    """One figure; ``goal`` such as ``>= 12`` or ``<= 0.9``."""

    name: str
    actors: int
    figure: float
    goal: str
    unit: str = 'ratio'

    @property
    def holds(self):
        """Whether the goal is met."""
        sign, bound = self.goal.split()
        return self.figure >= float(bound) if sign == '>=' else self.figure <= float(bound)


def show(rows):
    """Print rows; return them."""
    for row in rows:
        print(f'{row.name:<66} N={row.actors:<5}{row.figure:9.3f} {row.unit:<8} goal '
              f'{row.goal:<8}{"holds" if row.holds else "MISSED"}', flush=True)
    return rows


def percentile(values, share):
    """Return the smallest value that ``share`` of ``values`` do not exceed."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


# A figure above its stored one by this factor is worse.
TOLERANCE = 1.25


def least(measure, n_attempts, enough):
    """Measure up to ``n_attempts`` times, at most until ``enough``; return the least figure."""
    found = math.inf
    for _ in range(n_attempts):
        found = min(found, measure())
        if found <= enough:
            break
    return found


def compared(rows, stored, n_attempts):
    """
    Measure rows and print them beside the stored figures, of which less is better.

    :param rows: a function that measures, by name.
    :param stored: the stored figures by name; a row without one is worse.
    :param n_attempts: how often a row is measured that seems worse.
    :returns: the names of the rows that are worse by TOLERANCE or more in every attempt.
    """
    worse = []
    for name, measure in rows.items():
        before = stored.get(name, 0.0)
        # A row that is worse by exactly TOLERANCE fails.
        found = least(measure, n_attempts, math.nextafter(TOLERANCE * before, 0.0))
        if found >= TOLERANCE * before:
            worse.append(name)
        print(f'{name:<80}{found:9.3f}  stored {before:9.3f}  '
              f'{"WORSE" if name in worse else "holds"}', flush=True)
    return worse
