# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The public module for authors of simulators, and the opening by name: doc/design/extending.md.

It may import control/, cdr/, topics/, pipeline/, connections/, files/, files/tables/ and the
modules directly in the package, but no simulator by name: ``simulator_list`` imports one where it
is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from state_sensor_ros.connections.live_source import LiveSource
from state_sensor_ros.control.ego_commands import EgoCommand, EgoCommands
from state_sensor_ros.errors import (
    ConfigError,
    DecodeError,
    FramingError,
    StateError,
    StateSensorError,
    TrajectoryFormatError,
    TransportError,
)
from state_sensor_ros.files.formats import Format, ReadOptions, WriteOptions
from state_sensor_ros.files.frame_writer import FrameWriter
from state_sensor_ros.files.recording import RecordedFrame, RecordingReader
from state_sensor_ros.frame import (
    Boxes,
    Frame,
    FRONT_LEFT,
    FRONT_RIGHT,
    Lanes,
    LIGHT_GREEN,
    LIGHT_RED,
    LIGHT_YELLOW,
    MapLine,
    REAR_LEFT,
    REAR_RIGHT,
    TrafficLights,
    Wheels,
)
from state_sensor_ros.parameters import LIVE, MESSAGES, parameter, RECORDED, STREAM
from state_sensor_ros.payloads import (
    Decoded,
    Fault,
    FrameDecoder,
    FrameLike,
    LEFT_OUT,
    Packet,
    PayloadDecoder,
    Report,
    SingleFrameDecoder,
)
from state_sensor_ros.pipeline.source import Health, Source, SourceState
from state_sensor_ros.rep103 import Units
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.frame_builder import (
    ActorLane,
    ActorWheel,
    build_frame,
    FrameBuilder,
    lane_states,
)
from state_sensor_ros.simulators.frame_file import FrameFile
from state_sensor_ros.simulators.simulator import (
    SensorImage,
    SensorPoints,
    SensorReader,
    Simulator,
    SimulatorTopics,
    StandIn,
)

if TYPE_CHECKING:
    from state_sensor_ros.connections.datagrams import DatagramPort
    from state_sensor_ros.connections.tcp import Framer, TcpSource
    from state_sensor_ros.simulators.stand_in_options import StandInOptions

__all__ = [
    'FRONT_LEFT',
    'FRONT_RIGHT',
    'LEFT_OUT',
    'LIGHT_GREEN',
    'LIGHT_RED',
    'LIGHT_YELLOW',
    'LIVE',
    'MESSAGES',
    'REAR_LEFT',
    'REAR_RIGHT',
    'RECORDED',
    'STREAM',
    'ActorLane', 'ActorWheel', 'Boxes',
    'ConfigError',
    'DatagramPort',
    'DecodeError',
    'Decoded',
    'EgoCommand',
    'EgoCommands',
    'Fault',
    'Format',
    'Frame',
    'FrameBuilder',
    'FrameDecoder',
    'FrameFile',
    'FrameLike',
    'FrameWriter',
    'Framer',
    'FramingError',
    'Health',
    'Lane',
    'Lanes',
    'LiveSource',
    'MapLine',
    'Packet',
    'PayloadDecoder',
    'ReadOptions',
    'RecordedFrame',
    'RecordingReader',
    'Report',
    'SensorImage',
    'SensorPoints',
    'SensorReader',
    'Settings',
    'Simulator',
    'SimulatorTopics',
    'SingleFrameDecoder',
    'Source',
    'SourceState',
    'StandIn',
    'StandInOptions',
    'StateError',
    'StateSensorError',
    'TcpSource',
    'TrafficLights',
    'TrajectoryFormatError',
    'TransportError',
    'Units',
    'Wheel',
    'Wheels',
    'WriteOptions',
    'build_frame',
    'lane_states',
    'parameter',
]

# Recordings need neither sockets nor options.
_LATER = {'DatagramPort': 'connections.datagrams',
          'Framer': 'connections.tcp', 'TcpSource': 'connections.tcp',
          'StandInOptions': 'simulators.stand_in_options'}


def __getattr__(name: str) -> object:
    """Import a name that few simulators use at its first use."""
    if name not in _LATER:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module(f'state_sensor_ros.{_LATER[name]}'), name)
