# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The health of a relay, from the events of its process.

State (``health.state``)::

    state       event                                                  next state
    ----------  -----------------------------------------------------  ----------
    WAITING     a client and the server are connected                   CONNECTED
    CONNECTED   the client closes the copied connection and keeps the   CONNECTED
                described one: an episode ends
                the server closes the copied connection, the client     WAITING
                has left, the process ended
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from state_sensor_ros.errors import counted
from state_sensor_ros.payloads import Report
from state_sensor_ros.pipeline.source import Health, SourceState


class RelayHealth:
    """
    Counts the connections of clients.

    :param report: called with a kind, for throttling, and a line about what is lost.
    :param servers: ``host:port`` of each port of the server.
    :param own: ``host:port`` of each port of the relay.
    :param copied: number of the port whose frames are copied.
    :param described: number of the port that a client keeps open over all of its episodes.
    :param max_frame_bytes: most bytes of a frame that is copied.
    :param silence: likely reason if the server sends nothing, for diagnostics.
    :param patience_s: time for which a refused connect is tried again, s.
    :ivar health: health of the source.
    """

    def __init__(self, report: Report, servers: Sequence[str], own: Sequence[str], *,
                 copied: int, described: int, max_frame_bytes: int, silence: str,
                 patience_s: float) -> None:
        self.health = Health(state=SourceState.WAITING)
        self._report, self._servers, self._own = report, servers, own
        self._copied, self._described = copied, described
        self._max_frame_bytes, self._silence = max_frame_bytes, silence
        self._patience_s = patience_s
        self._n_copied = self._n_described = 0

    @property
    def has_left(self) -> bool:
        """Whether a client has had frames, and none is connected any more."""
        return bool(self.health.n_connects) and not self._n_copied and not self._n_described

    def begin(self) -> None:
        """Note that the process has begun."""
        self._n_copied = self._n_described = 0
        self.health.fail(self._no_client())

    def note_frame(self, n_bytes: int) -> None:
        """Note a frame of the copied port; the last one may come after the end of its episode."""
        if self._n_copied:
            self.health.silence = ''
        self.health.n_packets += 1
        self.health.n_bytes += n_bytes

    def note(self, event: dict[str, Any]) -> None:
        """
        Note an event of the process.

        :param event: members of the event by name.
        """
        kind, where = event['event'], self._servers[event.get('port', self._copied)]
        if kind == 'dropped':
            self._report('relay', f'{where}: {counted(event["n"], "frame")} dropped so far: '
                         'the server sends faster than this machine reads')
        elif kind == 'too long':
            self.health.n_protocol_errors += 1
            self.health.last_error = (f'{where}: found a frame of {event["n"]} bytes; expected at '
                                      f'most max_frame_bytes, {self._max_frame_bytes}')
        elif kind == 'refused':
            self._warn(f'cannot connect to {where} for {self._patience_s:g} s: '
                       f'{event["error"].lower()}; is the server running?')
        elif kind == 'turned away':
            self._warn(f'{self._own[event["port"]]}: a client of the relay is turned away: '
                       f'{event["error"]}')
        elif event['port'] == self._copied:
            if kind in ('connected', 'closed'):
                self._count_copied(event)
        elif event['port'] == self._described:
            self._count_described(event)

    def _warn(self, text: str) -> None:
        self.health.last_error = text
        self._report('relay', text)

    def _count_copied(self, event: dict[str, Any]) -> None:
        health = self.health
        if event['event'] == 'connected':
            self._n_copied += 1
            # The next episode of a client does not count as another connection.
            health.n_connects += health.state is not SourceState.CONNECTED
            health.silence = self._silence
            health.state = SourceState.CONNECTED
            return
        self._n_copied -= 1
        is_cut = event['by'] == 'server' and event['n'] > 0
        health.n_cut_packets += is_cut
        why = _closed(event) + (f' {event["n"]} bytes into a frame' if is_cut else '')
        if self._n_copied:
            health.last_error = why
        elif event['by'] == 'client' and self._n_described:
            health.silence = 'the client of the relay has ended its episode and begun no other one'
        else:
            health.fail(why)

    def _count_described(self, event: dict[str, Any]) -> None:
        health, kind = self.health, event['event']
        self._n_described += (kind == 'connected') - (kind == 'closed')
        if self._n_copied:
            return
        if health.state is SourceState.CONNECTED:
            if kind == 'closed' and not self._n_described:
                health.fail(_closed(event))
        elif kind == 'waiting':
            health.last_error = (f'cannot connect to {self._servers[self._described]}: '
                                 'connection refused; is the server running?')
        elif kind == 'connected':
            health.last_error = ('a client of the relay is connected to '
                                 f'{self._servers[self._described]}, and not to '
                                 f'{self._servers[self._copied]}')
        else:
            health.last_error = self._no_client()

    def _no_client(self) -> str:
        first, *_, last = self._own
        return f'no client is connected to the relay, {first} to {last.rpartition(":")[2]}'


def _closed(event: dict[str, Any]) -> str:
    return f'the {event["by"]} closed the connection'
