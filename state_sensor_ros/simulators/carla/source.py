# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The source of a CARLA 0.8 server: as the client of an episode, as a relay, or as a reader.

A server sends measurements during an episode that a client requested on the world port. With that
port, ``settings.control_port``, this source is the client. With ``carla.relay_port`` another
program is, which connects through the relay. With neither, the measurements port must be free.
Sequence of the ports: doc/protocol/carla.md#ports.
"""

from __future__ import annotations

from collections.abc import Iterator

from state_sensor_ros.payloads import frames_of
from state_sensor_ros.simulators import DecodeError, Faults, Frame, Report, Settings
from state_sensor_ros.simulators.carla.commands import EpisodeClient, LATE_PORT_S
from state_sensor_ros.simulators.carla.decoder import CarlaDecoder
from state_sensor_ros.simulators.carla.frame_payload import MeasurementFramer, sensors_of_reply
from state_sensor_ros.simulators.carla.parameters import CarlaParameters
from state_sensor_ros.simulators.connections import Relay, TcpSource

# The measurements port follows the world port.
WORLD, MEASUREMENTS_AFTER_WORLD = 0, 1
N_PORTS = 3


class CarlaSource:
    """
    Frames of ``settings.port``; with ``settings.control_port``, of episodes that it requests.

    In such an episode each frame is answered with a command: that of a stack, or before the first
    of these what the simulator's autopilot proposes, so that the player moves and a server in
    synchronous mode continues.
    """

    def __init__(self, settings: Settings, *, reconnect: bool = True) -> None:
        client = EpisodeClient(settings, self._note_silence, self._lose_control) \
            if settings.control_port else None
        self.client = client
        self._tcp = TcpSource(
            settings.host, settings.port,
            lambda where: MeasurementFramer(settings.max_frame_bytes, where,
                                            b'' if client is None else client.scene),
            self._decode, settings, reconnect=reconnect,
            before_connect=None if client is None else client.begin_episode,
            after_connect=self._connected,
            patience_s=0.0 if client is None else LATE_PORT_S)
        self.health, self.faults = self._tcp.health, self._tcp.faults
        self._decoder = CarlaDecoder()
        self._silence = silence_of_a_port(settings.host, settings.port)

    @property
    def details(self) -> bool:
        """Whether boxes are used."""
        return self._decoder.details

    @details.setter
    def details(self, details: bool) -> None:
        self._decoder.details = details

    def frames(self) -> Iterator[Frame]:
        """Yield frames; connect, wait and connect again until closed."""
        yield from self._tcp.frames()

    def _decode(self, payload: bytes) -> Iterator[Frame]:
        self.health.silence = ''
        if self.client is not None:
            self.client.answer(payload)
        yield from decode(self._decoder, payload, self.faults)

    def _connected(self) -> None:
        self.health.silence = self._silence
        if self.client is not None:
            self.client.take_control()

    def reconfigure(self, settings: Settings) -> None:
        """Do nothing: no dynamic parameter concerns the source."""

    def _note_silence(self, text: str) -> None:
        """Keep the line about a world port that does not reply."""
        self.health.last_error = text

    def _lose_control(self, text: str) -> None:
        """End the episode: without commands a server in synchronous mode sends no frame."""
        self._tcp.drop(text)

    def close(self) -> None:
        """End :meth:`frames` soon, from any thread; a second call has no effect."""
        self._tcp.close()
        if self.client is not None:
            self.client.shut_down()


def decode(decoder: CarlaDecoder, payload: bytes, faults: Faults) -> Iterator[Frame]:
    """Yield the frame of a payload, and add its faults."""
    if not payload:
        raise DecodeError('payload', 'nothing', 'a frame')
    yield from frames_of(decoder.decode(payload), faults)


def open_relay(settings: Settings, report: Report, *, reconnect: bool = True) -> Relay:
    """Make the source of what passes between a client of ``carla.relay_port`` and the server."""
    own = settings.of(CarlaParameters)
    decoder = CarlaDecoder()

    def decode_copy(payload: bytes) -> Iterator[Frame]:
        decoder.details = relay.details
        yield from decode(decoder, payload, relay.faults)

    relay = Relay(
        settings, settings.port - MEASUREMENTS_AFTER_WORLD, own.relay_bind, own.relay_port, report,
        n_ports=N_PORTS, copied=MEASUREMENTS_AFTER_WORLD, described=WORLD,
        description_of=sensors_of_reply, decode=decode_copy, reconnect=reconnect,
        silence=silence_of_a_port(settings.host, settings.port))
    return relay


def silence_of_a_port(host: str, port: int) -> str:
    """Return the warning about a measurements port that accepts a connection and sends nothing."""
    return (f'{host}:{port} accepted the connection and is silent; expected measurements: a port '
            'of CARLA 0.8 serves one client, so end the other one, or let it connect through '
            'carla.relay_port; for CARLA 0.9, use source carla9')
