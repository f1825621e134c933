# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA 0.8: its parameters, measurements of a server, and datasets: doc/protocol/carla.md."""

from __future__ import annotations

from dataclasses import dataclass
import re
from typing import TYPE_CHECKING

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.parameters import parameter
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import SensorReader, Simulator, SimulatorTopics
from state_sensor_ros.source import Report

if TYPE_CHECKING:
    from state_sensor_ros.control.ego_commands import EgoCommands
    from state_sensor_ros.files.recording import RecordingReader
    from state_sensor_ros.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class CarlaParameters:
    """Parameters with the prefix ``carla.``."""

    relay_port: int = parameter(
        0, 'First of three ports that relay your own CARLA client to the server, unchanged; '
        '0 opens none.', low=0, high=65533)
    relay_bind: str = parameter('127.0.0.1', 'Address that the relay listens on.',
                                pattern=re.compile(r'\S+'))
    start_spot: int = parameter(
        0, 'Index of the start spot in an episode that the node requests.',
        low=0, high=4294967295)
    camera_tf: bool = parameter(False, 'Publish the frames of the cameras on /tf_static.')
    camera_poses: tuple[float, ...] = parameter(
        (0.0,) * 18, 'Poses of the central, left and right cameras on the player, each x y z (m) '
        'roll pitch yaw (rad); six zeros: as in metadata.json.', length=18)


class CarlaSimulator(Simulator):
    """The measurements of a server, and datasets."""

    name = 'carla'
    parameters = CarlaParameters
    default_port = 2001
    takes_commands = True

    def check(self, settings: Settings) -> None:
        """Reject ports that exclude each other."""
        if not settings.of(CarlaParameters).relay_port:
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
