# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The arguments of a live stream."""

from __future__ import annotations

import argparse
from collections.abc import Container, Iterable, Iterator

from state_sensor_ros.commands.arguments.shared import above_zero, count, port
from state_sensor_ros.settings import DEFAULTS, SIMULATORS
from state_sensor_ros.simulators.simulator_list import find_simulator, simulator_names


class SimulatorNames(Container[str]):
    """The names of the installed simulators, which are searched for at the first use."""

    def __contains__(self, name: object) -> bool:
        return name in (*simulator_names(), *(
            old for built_in in SIMULATORS for old in find_simulator(built_in).old_names))

    def __iter__(self) -> Iterator[str]:
        return iter(simulator_names())


def add_source_argument(parser: argparse.ArgumentParser,
                        names: Iterable[str] = ()) -> None:
    """Add the option that selects a simulator."""
    parser.add_argument('--source', choices=SimulatorNames(), default=DEFAULTS.source,
                        metavar='NAME', help=f'{", ".join(names) or "%(choices)s"} '
                        f'(default: {DEFAULTS.source})')
    # The name of version 0.2.
    parser.add_argument('--protocol', dest='source', choices=SimulatorNames(),
                        help=argparse.SUPPRESS)


def add_stream_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the port of frames to ``parser``, for every reader of the stream."""
    parser.add_argument('--host', help=f'host of the simulator (default: {DEFAULTS.host})')
    parser.add_argument('--port', type=port,
                        help=f'port of its frames (default: that of the source, {DEFAULTS.port})')


def add_live_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a live stream and of its end to ``parser``."""
    add_source_argument(parser)
    add_stream_arguments(parser)
    parser.add_argument('--frames', type=count, metavar='N', help='end after N frames')
    parser.add_argument('--seconds', type=above_zero, metavar='S',
                        help='end S s after the first frame, or after S s without one')
