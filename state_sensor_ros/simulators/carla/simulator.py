# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA 0.8 as one of the simulators; its libraries are imported when they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.files.recording import RecordingReader
from state_sensor_ros.parameters import refuse_unused
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import SensorReader, Simulator, SimulatorTopics
from state_sensor_ros.simulators.carla.parameters import CarlaParameters
from state_sensor_ros.source import Report

if TYPE_CHECKING:
    from state_sensor_ros.control.ego_commands import EgoCommands
    from state_sensor_ros.source import Source

# Names of one machine, on which a relay cannot have the ports of the server.
_THIS_MACHINE = frozenset(('127.0.0.1', 'localhost', '::1', '0.0.0.0', '::'))
_DATASET = 'state_sensor_ros.simulators.carla.dataset'


class CarlaSimulator(Simulator):
    """The measurements of a server, and datasets."""

    name = 'carla'
    parameters = CarlaParameters
    default_port = 2001
    takes_commands = True

    def check(self, settings: Settings) -> None:
        """Reject ports that exclude each other, and what has no effect without them."""
        own = settings.of(CarlaParameters)
        if not own.relay_port:
            refuse_unused(own, 'carla.', ['relay_bind'], 'without carla.relay_port')
        if not settings.control_port:
            refuse_unused(own, 'carla.', ['start_spot'],
                          'without control_port: it is for an episode that the driver requests')
        if own.relay_port:
            _check_relay(settings)
        elif settings.control_input and not settings.control_port:
            raise ConfigError('control_port', '0', "the server's world port, such as 2000, if "
                              'control_input is set: the client of an episode drives')

    def open_source(self, settings: Settings, report: Report, *,
                    reconnect: bool = True) -> Source:
        """Make the source of the measurements: the server's port, or a relay."""
        from state_sensor_ros.simulators.carla.relay import CarlaRelay
        from state_sensor_ros.simulators.carla.stream import CarlaSource
        if settings.of(CarlaParameters).relay_port:
            return CarlaRelay(settings, report, reconnect=reconnect)
        return CarlaSource(settings, reconnect=reconnect)

    def open_commands(self, settings: Settings, source: Source, report: Report) -> EgoCommands:
        """Make what sends commands in reply to the frames of an episode."""
        from state_sensor_ros.simulators.carla.stream import CarlaSource
        assert isinstance(source, CarlaSource)
        assert source.client is not None
        return source.client

    def topics(self, settings: Settings, *, recording: RecordingReader | None) -> SimulatorTopics:
        """Return the player's status, commands, lights, limits, and images of a dataset."""
        from state_sensor_ros.simulators.carla.dataset import DatasetRecording
        from state_sensor_ros.simulators.carla.images import camera_transforms
        from state_sensor_ros.simulators.carla.topics import carla_encoders
        cameras = recording.cameras if isinstance(recording, DatasetRecording) else None
        return SimulatorTopics(carla_encoders(cameras), camera_transforms(cameras or (), settings))

    def sensor_reader(self, settings: Settings, report: Report,
                      recording: RecordingReader | None = None) -> SensorReader:
        """Return what decodes the images of a frame of a dataset."""
        from state_sensor_ros.simulators.carla.images import image_views
        return image_views(report)


def _check_relay(settings: Settings) -> None:
    """Check the ports of the relay against the server's."""
    own = settings.of(CarlaParameters)
    if settings.control_input:
        raise ConfigError('control_input', settings.control_input,
                          "'' with relay_port: the user's client drives")
    if settings.control_port:
        raise ConfigError('control_port', str(settings.control_port),
                          "0 with relay_port: the user's client requests the episode")
    if not 2 <= settings.port <= 65534:
        raise ConfigError('port', str(settings.port), '2 to 65534 with relay_port: the world port '
                          'of the server is the one before, its control port the one after')
    if abs(own.relay_port + 1 - settings.port) <= 2 and (
            settings.host == own.relay_bind
            or {settings.host, own.relay_bind} <= _THIS_MACHINE):
        raise ConfigError('carla.relay_port', str(own.relay_port), 'three ports beside those of '
                          f'the server, {settings.port - 1} to {settings.port + 1}')
