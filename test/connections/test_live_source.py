# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The base of live sources: what a subclass need not do."""

import pytest

from state_sensor_ros.connections.live_source import LiveSource
from state_sensor_ros.errors import TransportError


class Broken(LiveSource):

    def receive(self):
        self.connected()
        raise ConnectionResetError(104, 'Connection reset by peer')
        yield

    def interrupt(self):
        raise OSError(107, 'Transport endpoint is not connected')


def test_error_of_the_system_names_the_address():
    source = Broken(address='10.0.0.1:8790', reconnect=False)
    with pytest.raises(TransportError, match=r'10\.0\.0\.1:8790: found connection reset by peer'):
        list(source.packets())
    assert (source.health.n_connects, source.health.n_losses) == (1, 1)


def test_source_whose_connection_has_ended_closes_quietly():
    source = Broken()
    source.close()
    source.close()
    assert list(source.packets()) == []
