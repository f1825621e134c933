# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The sensor port of a simulator: packets decoded to frames, the sensor configured before."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from state_sensor_ros.connections.tcp import TcpSource
from state_sensor_ros.frame import Frame
from state_sensor_ros.rep103 import Units
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.monodrive.control import ControlClient, LATE_PORT_S
from state_sensor_ros.simulators.monodrive.frames import Decoder
from state_sensor_ros.simulators.monodrive.wire import Packet, PacketFramer
from state_sensor_ros.source import Report

# What to check if the port is open and sends nothing.
_SILENCE = ('check that the port is that of the sensor, that the sensor is configured (parameters '
            'control_port, config_file), and that the simulation is running')


class SensorPort(TcpSource):
    """Frames of ``settings.port``; it connects when they are iterated over."""

    def __init__(self, settings: Settings, *, reconnect: bool = True,
                 before_connect: Callable[[], None] | None = None,
                 after_connect: Callable[[], None] | None = None,
                 patience_s: float = 0.0) -> None:
        super().__init__(
            settings.host, settings.port,
            lambda where: PacketFramer(settings.max_frame_bytes, where), self._frames_of, settings,
            reconnect=reconnect, before_connect=before_connect, after_connect=after_connect,
            patience_s=patience_s)
        self._decoder = Decoder(Units(settings.obb_extents, settings.road_s_unit), self.faults)
        self.health.silence = _SILENCE

    def _frames_of(self, packet: Packet) -> Iterator[Frame]:
        self._decoder.details = self.details
        return self._decoder.frames(packet.payload, packet[1:])


class ConfiguredSource(SensorPort):
    """
    Frames of ``settings.port``, with the sensor configured over ``settings.control_port``.

    :param report: called with a kind, for throttling, and a line about a failure of the control
        port; a failure that prevents a connection to the sensor port is in ``health`` only.
    """

    def __init__(self, settings: Settings, report: Report, *, reconnect: bool = True) -> None:
        self.client = ControlClient(settings, report, self._note_silence)
        self._report = report
        super().__init__(settings, reconnect=reconnect, before_connect=self.client.configure,
                         after_connect=self.client.connected, patience_s=LATE_PORT_S)

    def frames(self) -> Iterator[Frame]:
        """Yield frames; connect, wait and connect again until closed."""
        for frame in super().frames():
            self.client.packet_arrived()
            yield frame

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
        """End :meth:`frames` soon: close the sensor port, then the control port."""
        super().close()
        self.client.close()
