# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The base of live sources: what a subclass need not do."""

from itertools import count

import pytest

from state_sensor_ros.connections.live_source import LiveSource
from state_sensor_ros.errors import TransportError, UnreachableError
from state_sensor_ros.payloads import Packet
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import build_frame

QUICK = Settings(reconnect_min=0.01, reconnect_max=0.01)


class Broken(LiveSource):

    def receive(self):
        self.connected()
        raise ConnectionResetError(104, 'Connection reset by peer')
        yield

    def interrupt(self):
        raise OSError(107, 'Transport endpoint is not connected')


def test_error_of_the_system_names_the_address():
    source = Broken(address='10.0.0.1:8790', reconnect=False)
    with pytest.raises(TransportError, match=r'10\.0\.0\.1:8790: connection reset by peer$'):
        list(source.packets())
    assert (source.health.n_connects, source.health.n_losses) == (1, 1)


def test_source_whose_connection_has_ended_closes_quietly():
    source = Broken()
    source.close()
    source.close()
    assert list(source.packets()) == []


class Failing(LiveSource):
    """Each connection yields and raises what the script says for it."""

    def __init__(self, script):
        super().__init__(QUICK)
        self._script = script
        self.health.failures.limit = 3

    def receive(self):
        items, error = next(self._script)
        self.connected()
        yield from items
        raise error


def frames_until(game_time):
    return [build_frame('toy', time, ['a'], [[0, 0, 0]]) for time in (0.0, game_time)]


@pytest.mark.parametrize(('script', 'n_connects'), [
    # For good: one reason and nothing new, be there no frame, or the same run again.
    ((([], TransportError('a', 'b')) for _ in count()), 3),
    (((frames_until(2.0), TransportError('a', 'b')) for _ in count()), 3),
    # Each of these makes a new count begin.
    ((([], TransportError('a', f'b{min(i, 5)}')) for i in count()), 8),
    ((([], (UnreachableError if i < 5 else TransportError)('a', 'b')) for i in count()), 8),
    (((frames_until(min(i, 4.0) + 1), TransportError('a', 'b')) for i in count()), 7),
    ((([Packet(b'{}', 0.0, 0, 0)] * (i < 6), TransportError('a', 'b')) for i in count()), 8)])
def test_source_that_fails_for_good_ends_a_command_and_no_node(script, n_connects):
    source = Failing(script)
    with pytest.raises(TransportError):
        list(source.packets())
    assert source.health.n_connects == n_connects
    node = Failing(([], TransportError('a', 'b')) for _ in count())
    node.health.failures.limit = None
    node.health.on_error = lambda: node.health.n_connects == 9 and node.close()
    assert list(node.packets()) == []
    assert node.health.n_connects == 9
