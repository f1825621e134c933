# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The sensor port of a running simulator, alone or with the sensor configured first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from state_sensor_ros.simulators import Packet, Report, Settings
from state_sensor_ros.simulators.connections import TcpSource
from state_sensor_ros.simulators.monodrive.control_client import ControlClient
from state_sensor_ros.simulators.monodrive.sensor_framing import PacketFramer

# What to check if the port is open and sends nothing.
_SILENCE = ('check that the port is that of the sensor, that the sensor is configured (parameters '
            'control_port, config_file), and that the simulation is running')


def open_sensor_port(settings: Settings, *, reconnect: bool = True,
                     before_connect: Callable[[], None] | None = None,
                     after_connect: Callable[[], None] | None = None) -> TcpSource:
    """
    Make the source of ``settings.port``; it connects when its packets are iterated over.

    :param reconnect: whether it connects again, as :class:`TcpSource` does.
    :param before_connect: called before each connect, as by :class:`TcpSource`.
    :param after_connect: called after each connect.
    """
    source = TcpSource(
        settings.host, settings.port,
        lambda where: PacketFramer(settings.max_frame_bytes, where), settings, reconnect=reconnect,
        before_connect=before_connect, after_connect=after_connect)
    source.health.silence = _SILENCE
    return source


class ConfiguredSource:
    """
    Packets of ``settings.port``, with the sensor configured over ``settings.control_port``.

    :param report: called with a kind, for throttling, and a line about a failure of the control
        port; a failure that prevents a connection to the sensor port is in ``health`` only.
    :param reconnect: whether it connects again, as :class:`TcpSource` does.
    :ivar client: of the control port.
    """

    def __init__(self, settings: Settings, report: Report, *, reconnect: bool = True) -> None:
        self._report = report
        self.client = ControlClient(settings, report, on_silence=self._note_silence)
        self._tcp = open_sensor_port(settings, reconnect=reconnect,
                                     before_connect=self.client.configure,
                                     after_connect=self.client.connected)
        self.health = self._tcp.health

    def packets(self) -> Iterator[Packet]:
        """Yield packets; connect, wait and connect again until closed."""
        for packet in self._tcp.packets():
            self.client.packet_arrived()
            yield packet

    def reconfigure(self, settings: Settings) -> None:
        """Have the simulator use the tags and box options of ``settings``, soon."""
        self.client.reconfigure(settings)

    def _note_silence(self, text: str) -> None:
        """Report that the control port has not replied for a while."""
        if self.health.state == 'connected':
            self._report('silence', text)
        else:
            self.health.last_error = text

    def close(self) -> None:
        """End :meth:`packets` soon: close the sensor port, then the control port."""
        self._tcp.close()
        self.client.close()
