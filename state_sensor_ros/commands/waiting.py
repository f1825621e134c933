# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A line about what a command waits for, if no progress bar shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import sys
import threading
import time

from state_sensor_ros.commands.printing import print_line

# A running simulator sends a frame within this time, s.
_SILENCE_S = 1.0


@contextmanager
def waiting_named(where: str, has_begun: Callable[[], bool], reason: Callable[[], str], *,
                  is_quiet: bool, what: str = 'frame') -> Iterator[None]:
    """
    Print one line if the first frame has not arrived after a second, unless on a terminal.

    :param where: ``host:port`` of the stream.
    :param has_begun: whether a frame has arrived.
    :param reason: text of the last error of the stream, ``''`` for none.
    :param is_quiet: whether to print nothing.
    :param what: what is waited for, such as ``frame``.
    """
    since = time.strftime('%H:%M:%S')

    def name() -> None:
        if not has_begun():
            why = reason().removeprefix('cannot connect to ').removeprefix(f'{where}: ')
            why = why.removeprefix(f'{where} ')
            print_line(f'waiting for a {what} from {where} since {since}'
                       f'{f": {why}" if why else ""}')

    timer = threading.Timer(_SILENCE_S, name)
    timer.daemon = True
    if not is_quiet and not sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
