# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Match names with a client's regular expression by RE2, in linear time: Python's backtracks."""

from __future__ import annotations

from collections.abc import Sequence
import time
from typing import Any

from state_sensor_ros.errors import ConfigError

_WHERE = 'filter'
MAX_CHARACTERS = 200
# CPU time for all names together: the executor's only thread matches them.
MAX_S = 0.5


def matching_rows(expression: str, names: Sequence[str]) -> list[int]:
    """Return the names that an expression matches as a whole."""
    # expression: POSIX Extended Regular Expression; ``''`` matches every name.
    if not expression:
        return list(range(len(names)))
    pattern = _compiled(expression)
    until_s = time.thread_time() + MAX_S
    rows = []
    for row, name in enumerate(names):
        if pattern.fullmatch(name.encode('utf-8', 'replace')) is not None:
            rows.append(row)
        if time.thread_time() > until_s:
            raise ConfigError(_WHERE, f'{expression!r}, which takes longer than {MAX_S:g} s',
                              'a simpler expression')
    return rows


# RE2's classes have no static types.
def _compiled(expression: str) -> Any:  # noqa: ANN401
    if len(expression) > MAX_CHARACTERS:
        raise ConfigError(_WHERE, f'{len(expression)} characters', f'at most {MAX_CHARACTERS}')
    try:
        # Imported with the first filter, as an optional dependency.
        import re2
    except ImportError:
        raise ConfigError(_WHERE, 'no library to match regular expressions with',
                          'google-re2 (`pip install google-re2`), or an empty filter') from None
    options = re2.Options()
    options.posix_syntax = options.one_line = options.dot_nl = options.never_capture = True
    options.log_errors = False
    try:
        return re2.compile(expression.encode('utf-8', 'surrogatepass'), options=options)
    except re2.error as error:
        found = error.args[0]
        reason = found.decode('utf-8', 'replace') if isinstance(found, bytes) else str(found)
        raise ConfigError(_WHERE, f'{expression!r} ({reason})',
                          'a POSIX Extended Regular Expression') from error
