# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Calls that a thread makes later, so that what must not wait does not make them."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, Full, Queue
import threading

_MOST_WAITING = 1000


class LateCalls:
    """Make calls in their order in a thread; drop new ones while too many wait."""

    def __init__(self, on_defect: Callable[[Exception], None]) -> None:
        self.n_dropped = 0
        self._on_defect = on_defect
        self._waiting: Queue[Callable[[], None] | None] = Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._work, daemon=True, name='reports')
        self._thread.start()

    def put(self, call: Callable[[], None]) -> None:
        """Have a call made soon; return at once."""
        try:
            self._waiting.put_nowait(call)
        except Full:
            self.n_dropped += 1

    def close(self, seconds: float) -> None:
        """Wait until the calls are made; what takes longer is dropped."""
        with_end = False
        while not with_end:
            try:
                self._waiting.put_nowait(None)
                with_end = True
            except Full:
                self._drop_oldest()
        self._thread.join(seconds)

    def _drop_oldest(self) -> None:
        try:
            self._waiting.get_nowait()
            self.n_dropped += 1
        except Empty:
            pass

    def _work(self) -> None:
        while (call := self._waiting.get()) is not None:
            try:
                call()
            except Exception as error:  # noqa: BLE001
                # A defect in the code of a report must not end the other reports.
                self._on_defect(error)
