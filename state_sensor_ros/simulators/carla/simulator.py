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
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import SensorReader, Simulator, SimulatorTopics
from state_sensor_ros.simulators.carla import CarlaParameters
from state_sensor_ros.source import Report

if TYPE_CHECKING:
    from state_sensor_ros.control.ego_commands import EgoCommands
    from state_sensor_ros.files.recording import RecordingReader
    from state_sensor_ros.source import Source

# Names of one machine, on which a relay cannot have the ports of the server.
_THIS_MACHINE = frozenset(('127.0.0.1', 'localhost', '::1', '0.0.0.0', '::'))


class CarlaSimulator(Simulator):
    """The measurements of a server, and datasets."""

    name = 'carla'
    parameters = CarlaParameters
    default_port = 2001
    takes_commands = True

    def check(self, settings: Settings) -> None:
        """Reject ports that exclude each other."""
        own, host, port = settings.of(CarlaParameters), settings.host, settings.port
        if not own.relay_port:
            if settings.control_input and not settings.control_port:
                raise ConfigError('control_port', '0', "the server's world port, such as 2000, if "
                                  'control_input is set: the client of an episode drives')
            return
        if settings.control_input:
            raise ConfigError('control_input', settings.control_input,
                              "'' with relay_port: the user's client drives")
        if settings.control_port:
            raise ConfigError('control_port', str(settings.control_port),
                              "0 with relay_port: the user's client requests the episode")
        if not 2 <= port <= 65534:
            raise ConfigError('port', str(port), '2 to 65534 with relay_port: the world port of '
                              'the server is the one before, its control port the one after')
        if abs(own.relay_port + 1 - port) <= 2 and (
                host == own.relay_bind or {host, own.relay_bind} <= _THIS_MACHINE):
            raise ConfigError('carla.relay_port', str(own.relay_port), 'three ports beside those '
                              f'of the server, {port - 1} to {port + 1}')

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
        """Return the player's status, commands, limits, and images of a dataset."""
        from state_sensor_ros.simulators.carla import dataset, topics
        cameras = recording.cameras if isinstance(recording, dataset.DatasetRecording) else None
        return SimulatorTopics(topics.carla_encoders(cameras),
                               topics.camera_transforms(cameras or (), settings))

    def sensor_reader(self, settings: Settings, report: Report,
                      recording: RecordingReader | None = None) -> SensorReader:
        """Return what decodes the images of a frame of a dataset."""
        from state_sensor_ros.simulators.carla.dataset import image_views
        return image_views(report)
