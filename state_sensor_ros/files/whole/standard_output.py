# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Standard output of the program, for its data and not for the output of other packages.

:func:`reserve` redirects ``print`` to standard error, because the code of added simulators runs in
the same process.
"""

from __future__ import annotations

import sys
from typing import TextIO

_reserved: TextIO | None = None


def reserve() -> None:
    """Keep standard output for :func:`standard_output`, until the process ends."""
    global _reserved
    if _reserved is None:
        _reserved, sys.stdout = sys.stdout, sys.stderr


def standard_output() -> TextIO:
    """Return the stream of the program's own output."""
    return sys.stdout if _reserved is None else _reserved


def print_output(text: str, *, end: str = '\n') -> None:
    """Write ``text`` and ``end`` to standard output, at once."""
    print(text, end=end, file=standard_output(), flush=True)
