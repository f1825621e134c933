# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The comparison of a result with that of an earlier run: what got better, what got worse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from state_sensor_ros.errors import one_line, TrajectoryFormatError
from state_sensor_ros.evaluation.evaluation_result import numbers_of
from state_sensor_ros.evaluation.matches import ERROR_NAMES

# Key of the result with the differences, new less old.
AGAINST: Final = 'against'
_LEFT_OUT = (AGAINST, 'confidence')
_MAX_BYTES = 1 << 26
# The last key of numbers of which more, or less, is better.
_MORE = frozenset((
    'map', 'nds', 'recall', 'precision', 'hota', 'mota', 'idf1', 'amota', 'mostly_tracked',
    '0.5', '1.0', '2.0', '4.0'))
_LESS = frozenset((
    *ERROR_NAMES, *(f'm{name}' for name in ERROR_NAMES), 'motp', 'amotp', 'identity_switches',
    'fragmentations', 'false_positives', 'misses', 'mostly_lost', 'track_initialization_duration',
    'longest_gap_duration', 'min_ade', 'min_fde', 'miss_rate', 'min_ade_argoverse',
    'miss_rate_nuscenes', 'overlap_rate', 'ate_rmse', 'rpe_rmse', 'rmse'))
# Parts of paths whose numbers repeat others in more detail.
_DETAILS = ('/bands/', '/nuscenes/', '/k/', '/unknown/')
# Smaller differences are rounding: relative, and of errors near zero.
_LEAST_SHARE, _LEAST_CHANGE = 1e-9, 1e-6


@dataclass(frozen=True, slots=True)
class Change:
    """
    The change of a number.

    ``path``, ``old``, ``new``; ``is_better``; ``is_within`` whether the old number is within the
    confidence interval of the new one.
    """

    path: str
    old: float
    new: float
    is_better: bool
    is_within: bool

    @property
    def size(self) -> float:
        """Change relative to the greater of both numbers."""
        return abs(self.new - self.old) / max(abs(self.new), abs(self.old))


def read_result(path: str) -> dict[str, Any]:
    """
    Read the result of an earlier run.

    :param path: file with the output of ``evaluate --json``.
    :raises TrajectoryFormatError: if it has no such result.
    """
    expected = 'the output of evaluate --json for one STACK'
    try:
        with Path(path).open('rb') as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise TrajectoryFormatError(path, f'more than {_MAX_BYTES} bytes', expected)
        result = msgspec.json.decode(data, type=dict[str, Any])
    except OSError as error:
        raise TrajectoryFormatError(path, one_line(str(error.strerror)), expected) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise TrajectoryFormatError(path, 'no JSON object', expected) from error
    if 'frames' not in result:
        raise TrajectoryFormatError(path, 'no frames', expected)
    return result


def differences(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the differences of the numbers that both results have, None if one is undefined.

    :param new: result of this run.
    :param old: result of the earlier run.
    """
    found: dict[str, Any] = {}
    for key, value in new.items():
        if key in _LEFT_OUT or key not in old:
            continue
        other = old[key]
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            found[key] = differences(value, other)
        elif _is_number(value) and _is_number(other):
            found[key] = None if value is None or other is None else value - other
    return found


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def changes(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[Change]:
    """
    Return the main numbers that got better or worse, the greatest relative change first.

    :param new: result of this run.
    :param old: result of the earlier run.
    """
    before = dict(numbers_of({key: value for key, value in old.items() if key not in _LEFT_OUT}))
    intervals = new.get('confidence', {}).get('intervals', {})
    found = []
    for path, number in numbers_of(new):
        name, other = path.rpartition('/')[2], before.get(path)
        if number is None or other is None or path.startswith(_LEFT_OUT) \
                or name not in _MORE | _LESS or any(part in path for part in _DETAILS):
            continue
        difference = number - other
        if abs(difference) > max(_LEAST_SHARE * max(abs(number), abs(other)), _LEAST_CHANGE):
            low, high = intervals.get(path, (number, number))
            found.append(Change(path, other, number, (difference > 0.0) == (name in _MORE),
                                low <= other <= high))
    return sorted(found, key=lambda change: -change.size)
