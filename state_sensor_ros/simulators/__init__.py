# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The public module for authors of simulators: doc/design/extending.md.

What only some simulators need is in the other modules here that have an ``__all__``. No simulator
is imported by name: ``simulator_list`` imports one where it is used.
"""

from state_sensor_ros.classes import EGO_TAG, has_ego_tag
from state_sensor_ros.connections.live_source import LiveSource
from state_sensor_ros.control.ego_commands import EgoCommand, EgoCommands
from state_sensor_ros.emulator.bicycle import Bicycle, FULL_LOCK_DEG, Pedals
from state_sensor_ros.errors import (
    bad_length,
    ConfigError,
    DecodeError,
    failed_stream,
    FramingError,
    importing,
    no_frames,
    reading,
    reason_of,
    RefusalError,
    restated,
    StateError,
    StateSensorError,
    TrajectoryFormatError,
    TransportError,
    TruncatedError,
    UnreachableError,
)
from state_sensor_ros.files.formats import Format, ReadOptions, WriteOptions
from state_sensor_ros.files.frame_builder import (
    ActorLane,
    ActorWheel,
    build_frame,
    FrameBuilder,
    lane_states,
)
from state_sensor_ros.files.recording import FrameFile, FrameWriter, RecordingReader
from state_sensor_ros.frame import (
    Boxes,
    EVERY_PART,
    Frame,
    FRONT_LEFT,
    FRONT_RIGHT,
    INDICATORS_BOTH,
    INDICATORS_LEFT,
    INDICATORS_OFF,
    INDICATORS_RIGHT,
    INDICATORS_UNKNOWN,
    Lanes,
    LIGHT_CIRCLE,
    LIGHT_GREEN,
    LIGHT_PEDESTRIAN,
    LIGHT_RED,
    LIGHT_YELLOW,
    MapLine,
    REAR_LEFT,
    REAR_RIGHT,
    TrafficLights,
    Wheels,
)
from state_sensor_ros.parameters import (
    LIVE,
    parameter,
    RECORDED,
    refuse_unused,
)
from state_sensor_ros.rep103 import Units
from state_sensor_ros.settings import parse_settings, Settings
from state_sensor_ros.simulators.simulator import (
    Reading,
    Replay,
    SensorImage,
    SensorReader,
    Simulator,
    SimulatorTopics,
    SOURCE_PARAMETERS,
)
from state_sensor_ros.small_files import read_limited
from state_sensor_ros.source import (
    DROPPED,
    DUPLICATE,
    Fault,
    Faults,
    FrameReader,
    Health,
    ignore,
    IGNORED,
    LOST,
    MEMBER,
    MISSING,
    OTHER_ID,
    Report,
    RIDER,
    RIVAL,
    Source,
    SourceState,
    UNDECLARED,
)
from state_sensor_ros.texts import counted, one_line

__all__ = [
    'DROPPED', 'DUPLICATE', 'EGO_TAG', 'EVERY_PART',
    'FRONT_LEFT', 'FRONT_RIGHT', 'FULL_LOCK_DEG', 'IGNORED', 'INDICATORS_BOTH',
    'INDICATORS_LEFT', 'INDICATORS_OFF', 'INDICATORS_RIGHT', 'INDICATORS_UNKNOWN',
    'LIGHT_CIRCLE', 'LIGHT_GREEN', 'LIGHT_PEDESTRIAN', 'LIGHT_RED', 'LIGHT_YELLOW', 'LIVE',
    'LOST', 'MEMBER', 'MISSING', 'OTHER_ID', 'REAR_LEFT', 'REAR_RIGHT', 'RECORDED', 'RIDER',
    'RIVAL', 'SOURCE_PARAMETERS', 'UNDECLARED', 'ActorLane', 'ActorWheel', 'Bicycle', 'Boxes',
    'ConfigError', 'DecodeError', 'EgoCommand', 'EgoCommands', 'Fault', 'Faults', 'Format',
    'Frame', 'FrameBuilder', 'FrameFile', 'FrameReader', 'FrameWriter',
    'FramingError', 'Health', 'Lanes', 'LiveSource', 'MapLine', 'Pedals',
    'ReadOptions', 'Reading', 'RecordingReader', 'RefusalError', 'Replay',
    'Report', 'SensorImage', 'SensorReader', 'Settings', 'Simulator',
    'SimulatorTopics', 'Source', 'SourceState', 'StateError',
    'StateSensorError', 'TrafficLights', 'TrajectoryFormatError', 'TransportError',
    'TruncatedError', 'Units', 'UnreachableError', 'Wheels', 'WriteOptions', 'bad_length',
    'build_frame', 'counted', 'failed_stream', 'has_ego_tag', 'ignore',
    'importing', 'lane_states', 'no_frames', 'one_line', 'parameter', 'parse_settings',
    'read_limited', 'reading', 'reason_of', 'refuse_unused', 'restated',
]
