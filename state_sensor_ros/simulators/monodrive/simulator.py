# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""monoDrive as one of the simulators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from state_sensor_ros.simulators import (
    ConfigError,
    MockServer,
    PayloadDecoder,
    Reading,
    Replay,
    Report,
    Settings,
    Simulator,
    SOURCE_PARAMETERS,
    Units,
)
from state_sensor_ros.simulators.mock_server_options import whole_number, with_file, without_file
from state_sensor_ros.simulators.monodrive.commands import MonodriveCommands
from state_sensor_ros.simulators.monodrive.decoder import Decoder
from state_sensor_ros.simulators.monodrive.recording import is_trajectory
from state_sensor_ros.simulators.monodrive.replay_client import open_replay
from state_sensor_ros.simulators.monodrive.sensor_config import read_sensor_config
from state_sensor_ros.simulators.monodrive.source import ConfiguredSource, open_sensor_port
from state_sensor_ros.simulators.monodrive.trajectory import TRAJECTORY
from state_sensor_ros.simulators.monodrive.wire import GENERATIONS

if TYPE_CHECKING:
    import argparse

    from state_sensor_ros.simulators import EgoCommands, Source
    from state_sensor_ros.simulators.mock_server_options import MockServerOptions


class MonodriveSimulator(Simulator):
    """The State sensor on a TCP port, Replay Mode trajectories, and their mock server."""

    name = 'monodrive'
    old_names = ('tcp',)
    default_port = 8700
    uses = SOURCE_PARAMETERS - {'rate'}
    has_wall_time = has_mock_server = takes_commands = True
    formats = (TRAJECTORY,)

    def check(self, settings: Settings) -> None:
        """Check that a configured sensor has a tag: the simulator sends nothing without."""
        if settings.control_input and not settings.control_port:
            raise ConfigError('control_port', '0', 'the port that takes commands, such as 8999, '
                              'if control_input is set')
        if settings.control_port and not any(settings.desired_tags):
            raise ConfigError('desired_tags', 'an empty list',
                              'at least one tag if control_port is set: the simulator sends '
                              'nothing for an empty list')

    def parameters_of_config(self, path: str) -> Mapping[str, object]:
        """Return what the State entry of the simulator's sensor JSON sets."""
        return read_sensor_config(Path(path))

    def new_decoder(self, settings: Settings) -> PayloadDecoder:
        """Make a decoder of all frame generations."""
        return Decoder(Units(settings.obb_extents, settings.road_s_unit))

    def open_source(self, settings: Settings, report: Report, *,
                    reconnect: bool = True) -> Source:
        """Make the source of the sensor port; with a control port, configure the sensor first."""
        if settings.control_port:
            return ConfiguredSource(settings, report, reconnect=reconnect)
        return open_sensor_port(settings, reconnect=reconnect)

    def open_commands(self, settings: Settings, source: Source, report: Report) -> EgoCommands:
        """Make what sends commands on the control port."""
        assert isinstance(source, ConfiguredSource)
        return MonodriveCommands(source.client)

    def add_mock_server_options(self, options: MockServerOptions) -> None:
        """Add the variants of the protocol, and what is done with a recording."""
        options.add('--control-port', type=lambda text: whole_number(text, 0, 65535), default=0,
                    metavar='PORT',
                    help='control port (8999 on the real simulator); 0 = none (default: 0)')
        options.add('--on-sample', _with_commands_alone, action='store_true',
                    help='send a frame only in reply to a sample or step command')
        options.add('--header', type=int, choices=(16, 12), default=16,
                    help='size of the packet header, bytes (default: 16)')
        options.add('--reply-magic', _with_control_port, choices=('new', 'old'), default='new',
                    help='magic number of the control replies (default: new)')
        options.add('--no-success', _with_control_port, action='store_true',
                    help='omit the member success from control replies')
        options.add('--loop', with_file, action='store_true', help='repeat FILE endlessly')
        options.add('--generation', _without_trajectory, choices=GENERATIONS, default='v2',
                    help='JSON generation of synthetic frames and datasets (default: v2)')
        options.add('--cycle', without_file, type=lambda text: whole_number(text, 0), default=0,
                    metavar='K',
                    help='generate K frames and repeat them (saves CPU with many actors)')

    def mock_server(self, options: argparse.Namespace) -> AbstractContextManager[MockServer]:
        """Serve a trajectory or synthetic traffic as the simulator does."""
        from state_sensor_ros.simulators.monodrive.mock_server import open_mock_server
        return open_mock_server(options)

    def open_replay(self, options: argparse.Namespace, reading: Reading,
                    warn: Callable[[str], None]) -> Replay:
        """Prepare a replay over the control port."""
        return open_replay(options, reading, warn)


def _with_control_port(args: argparse.Namespace) -> str:
    """Return the objection to an option of the control port in ``args``, if it has none."""
    return '' if args.control_port else \
        'found no --control-port; expected one: they are for its commands'


def _with_commands_alone(args: argparse.Namespace) -> str:
    """Return the objection to frames on request in ``args``: to a missing port, or to a pace."""
    # A number is the step of synthetic traffic, too.
    if 'rate' in args.given and (args.file is not None or isinstance(args.rate, str)):
        return f'found --rate {args.rate}; expected none: a command sends each frame'
    return _with_control_port(args)


def _without_trajectory(args: argparse.Namespace) -> str:
    """Return the objection to a generation in ``args``: the frames of a trajectory have one."""
    if args.file is None or not is_trajectory(args.file):
        return ''
    return f'found FILE {args.file}; expected none or a dataset: a trajectory is sent as it is'
