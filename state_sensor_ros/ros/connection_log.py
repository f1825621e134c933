# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Log lines about a connection: its loss, failed attempts, and its recovery."""

from __future__ import annotations

from typing import NamedTuple

from state_sensor_ros.pipeline.source import Health, SourceState

# Of failures that repeat, one in so many is logged.
_PERIOD = 10


class Line(NamedTuple):
    """A line of the log: a warning, or information."""

    is_warning: bool
    text: str


class ConnectionLog:
    """
    Turn the health of one source, read periodically, into a line for each change.

    A connection that was lost and made again between two readings is two changes. The error of a
    recording is one change. Of failures that repeat, with nothing new between them, every tenth
    is logged.
    """

    def __init__(self) -> None:
        self._n_losses = self._n_connects = self._n_failures = 0
        # The last failure that was logged.
        self._failure = ''

    def new_lines(self, health: Health) -> list[Line]:
        """
        Return a line for each change since the last call, the oldest first.

        :param health: health of the source; its counters begin at 0.
        """
        # In this order: the source's thread counts a connect, then its loss, then the failure of
        # the next attempt.
        n_losses, n_connects, failure = health.n_losses, health.n_connects, health.last_error
        n_failures = health.failures.n
        is_repeated = n_failures > 1
        is_due = n_failures // _PERIOD > self._n_failures // _PERIOD
        times = f' for the {n_failures}th time' if is_due else ''
        lines = []
        if n_losses > self._n_losses:
            self._failure = health.loss
            if is_due or not is_repeated:
                lines.append(Line(True, f'connection lost{times}: {health.loss}'))
        if health.state is SourceState.CONNECTED:
            if n_connects > self._n_connects:
                # StreamLog logs the first connection.
                lines += [Line(False, 'connected again')] * (n_connects > 1 and not is_repeated)
                # After a successful connect, the same failure is logged again.
                self._n_connects, self._failure = n_connects, failure
        elif failure != self._failure or (is_due and not lines):
            self._failure = failure
            is_attempt = health.state in (SourceState.CONNECTING, SourceState.WAITING)
            # The text of a failed connect already says so.
            text = f'not connected{times}: {failure}' if is_attempt and not failure.startswith(
                'cannot connect') else failure
            lines.append(Line(True, text))
        self._n_losses, self._n_failures = n_losses, n_failures
        return lines
