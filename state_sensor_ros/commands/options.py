# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Options that several sub-commands share, and the types of their values."""

from __future__ import annotations

import argparse
import math

from state_sensor_ros.errors import UsageError
from state_sensor_ros.settings import DEFAULTS
from state_sensor_ros.simulators.mock_server_options import whole_number
from state_sensor_ros.simulators.opening import trajectory_format
from state_sensor_ros.simulators.output_names import output_format


def add_stream_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add the options of the port of frames, for every reader of the stream.

    :param parser: parser of the sub-command.
    """
    parser.add_argument('--host', help=f'host of the simulator (default: {DEFAULTS.host})')
    parser.add_argument('--port', type=port,
                        help='port that sends the frames (default: depends on the simulator; '
                        f'{DEFAULTS.port} for {DEFAULTS.source})')


def add_bag_limit(parser: argparse.ArgumentParser) -> None:
    """Add the limit on the parts of a bag to ``parser``, for every reader of bags."""
    parser.add_argument('--max-bag-bytes', type=count, metavar='N',
                        help='limit on each message or chunk of a bag, decompressed, in bytes '
                        '(default: 67108864); a file that is compressed as a whole may be 16 '
                        'times as large')


def add_bag_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for reading a bag of frames to ``parser``."""
    parser.add_argument('--topic', default='',
                        help='the ~/frame topic to read if a bag has several')
    add_bag_limit(parser)


def add_quiet(parser: argparse.ArgumentParser,
              what: str = 'print neither progress nor a line about the result') -> None:
    """Add the option for silence on success to ``parser``; ``what`` is its help."""
    parser.add_argument('-q', '--quiet', action='store_true', help=what)


def add_batch_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of many recordings to ``parser``."""
    group = parser.add_argument_group('many recordings')
    group.add_argument('--jobs', type=count, metavar='N',
                       help='number of processes (default: one for each core)')
    group.add_argument('--dask', default='', metavar='ADDRESS',
                       help='scheduler of a Dask cluster: tcp://HOST:8786; its workers must '
                       'see the same paths')


def check_trajectory_name(path: str) -> None:
    """
    Check that an output that can only be a trajectory is not named as another format.

    :param path: path as given.
    :raises UsageError: if its name is that of another format.
    """
    named = output_format(path)
    if named != trajectory_format():
        raise UsageError(f'OUT {path} is the name of {named.noun}; expected NAME.json or -: '
                         '`state_sensor convert` makes other formats of a trajectory')


def port(text: str) -> int:
    """Return the port in ``text``, 1 to 65535; raise ArgumentTypeError otherwise."""
    return whole_number(text, 1, 65535)


def count(text: str) -> int:
    """Return the whole number in ``text``, at least 1; raise ArgumentTypeError otherwise."""
    return whole_number(text, 1)


def index(text: str) -> int:
    """Return the whole number in ``text``, at least 0; raise ArgumentTypeError otherwise."""
    return whole_number(text, 0)


def seconds(text: str) -> float:
    """Return the time in ``text``, s, above 0; raise ArgumentTypeError otherwise."""
    value = _finite(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f'{text} is not greater than 0')
    return value


def number(text: str) -> float:
    """Return the finite number in ``text``, at least 0; raise ArgumentTypeError otherwise."""
    value = _finite(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f'{text} is less than 0')
    return value


def _finite(text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'{text!r} is not a number') from error
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f'{text} is not a finite number')
    return value
