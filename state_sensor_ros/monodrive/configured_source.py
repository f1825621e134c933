# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The sensor port of a simulator that we configure and sample ourselves, over its control port.

May know: what belongs before, after and between packets. Must not know: commands, payloads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from state_sensor_ros.connections.tcp import TcpSource
from state_sensor_ros.monodrive.control_client import ControlClient
from state_sensor_ros.payloads import Packet
from state_sensor_ros.settings import Settings


class ConductedSource:
    """
    Packets of ``settings.port``, with the sensor made and sampled over ``settings.control_port``.

    :param report: called with a kind, for throttling, and a line about what went wrong with the
        control port; what keeps the sensor port from being connected is in ``health``.
    """

    def __init__(self, settings: Settings, report: Callable[[str, str], None]) -> None:
        self._report = report
        self._client = ControlClient(settings, report, on_silence=self._note_silence)
        self._tcp = TcpSource(
            settings.host, settings.port, reconnect_min=settings.reconnect_min,
            reconnect_max=settings.reconnect_max, stale_after=settings.stale_after,
            max_frame_bytes=settings.max_frame_bytes,
            before_connect=self._client.configure, after_connect=self._client.connected)
        self.health = self._tcp.health

    def packets(self) -> Iterator[Packet]:
        """Yield packets; connect, wait and connect again until closed."""
        for packet in self._tcp.packets():
            self._client.packet_arrived()
            yield packet

    def reconfigure(self, settings: Settings) -> None:
        """Have the simulator use the tags and box options of ``settings``, soon."""
        self._client.reconfigure(settings)

    def _note_silence(self, text: str) -> None:
        """Take note that the control port has not replied for a while."""
        if self.health.state == 'connected':
            self._report('silence', text)
        else:
            self.health.last_error = text

    def close(self) -> None:
        """End :meth:`packets` soon: first the sensor port, then the control port."""
        self._tcp.close()
        self._client.close()
