# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Arguments that several commands share, the types of their values, and their completion."""

from __future__ import annotations

import argparse
from importlib import import_module
import math
from typing import Any, TypeVar

from state_sensor_ros.classes import DEFAULT_CLASSES
from state_sensor_ros.files.storage.mcap_file import COMPRESSIONS

Number = TypeVar('Number', int, float)

GENERATIONS = ('v1', 'v2')
# A period below the resolution of stamps, 1 ns, would make frames without end; this is the rate of
# the fastest synthetic traffic.
_MAX_RESAMPLING_HZ = 1000.0


def completed_by(action: argparse.Action, name: str) -> None:
    """Complete the values of an option in a shell."""
    def complete(**given: Any) -> list[str]:  # noqa: ANN401
        found: list[str] = getattr(import_module('state_sensor_ros.commands.completion'), name)(
            **given)
        return found

    action.completer = complete  # type: ignore[attr-defined]


def add_parameters(parser: argparse.ArgumentParser) -> None:
    """Add the options that set parameters to ``parser``, for every command."""
    completed_by(parser.add_argument(
        '-p', dest='parameters', action='append', default=[], type=_assignment,
        metavar='NAME:=VALUE',
        help='set a parameter (`state_sensor parameters`); repeatable'), 'parameters')
    parser.add_argument('--params-file', dest='params_files', action='append', default=[],
                        metavar='FILE', help='set the parameters in a YAML file; repeatable')


def _assignment(text: str) -> str:
    if ':=' not in text:
        raise argparse.ArgumentTypeError(f'found {text}; expected NAME:=VALUE')
    return text


def add_input(parser: argparse.ArgumentParser, *names: str, more: str = '',
              **options: Any) -> None:  # noqa: ANN401
    """Add a recording to read; ``options``: other members of ``add_argument``."""
    parser.add_argument(*names, **options, help='recording: .json, a bag, .mcap, .parquet, .osi '
                        f"or a simulator's own; - is standard input{more}")


def add_bag_limit(parser: argparse.ArgumentParser) -> None:
    """Add the limit on the parts of a bag to ``parser``, for every reader of bags."""
    parser.add_argument('--max-bag-bytes', type=count, metavar='N',
                        help='largest message or chunk of a bag, bytes (default: 67108864)')


def add_bag_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for reading a bag of frames to ``parser``."""
    parser.add_argument('--topic', default='', metavar='NAME',
                        help='the ~/frame topic to read if a bag has several')
    add_bag_limit(parser)


def add_quiet(parser: argparse.ArgumentParser,
              what: str = 'print neither progress nor the line about the result') -> None:
    """Add the option for silence on success to ``parser``; ``what`` is its help."""
    parser.add_argument('-q', '--quiet', action='store_true', help=what)


def add_batch_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of many recordings to ``parser``."""
    parser.add_argument('--jobs', type=count, metavar='N',
                        help='many recordings: number of processes (default: the cores)')
    parser.add_argument('--dask', default='', metavar='ADDRESS',
                        help='many recordings: Dask scheduler, tcp://HOST:8786')


def add_tags(parser: argparse.ArgumentParser) -> None:
    """Add the options that select actors to ``parser``."""
    for option, text in (('--desired-tags', 'keep the actors with one of these tags'),
                         ('--undesired-tags', 'drop the actors with any of these tags')):
        completed_by(parser.add_argument(option, nargs='+', action='extend', default=[],
                                         metavar='TAG', help=text), 'tags')
    completed_by(parser.add_argument('--actors', nargs='+', action='extend', default=[],
                                     metavar='NAME', help='keep the actors with these names'),
                 'actors')


def add_selection(parser: argparse.ArgumentParser, *, has_times: bool = True) -> None:
    add_tags(parser)
    if has_times:
        parser.add_argument('--start', type=number, default=0.0, metavar='S',
                            help='start S seconds after the first frame')
        parser.add_argument('--end', type=number, default=math.inf, metavar='S',
                            help='end S seconds after the first frame')
    parser.add_argument('--rate', type=above_zero, metavar='HZ',
                        help='keep at most HZ frames per second, without interpolation')


def add_ego_tag(parser: argparse.ArgumentParser) -> None:
    """Add the option that selects the ego to ``parser``."""
    completed_by(parser.add_argument(
        '--ego-tag', metavar='TAG', help='tag of the ego (default: ego)'), 'tags')


def add_writing_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that formats use when they are written to ``parser``."""
    add_ego_tag(parser)
    completed_by(parser.add_argument(
        '--outputs', nargs='+', action='extend', metavar='STACK',
        help='bag: topics for autoware, derived_objects, vision'), 'outputs')
    parser.add_argument('--generation', choices=GENERATIONS,
                        help='trajectory: generation (default: that of each frame)')
    completed_by(parser.add_argument(
        '--columns', metavar='NAME,...', help='table: columns (default: all)'), 'columns')
    parser.add_argument('--resample', type=_resampling_rate, metavar='HZ',
                        help='OSI: interpolate the frames at this rate (default: no)')
    parser.add_argument('--gaps', choices=('split', 'fill'), default='split',
                        help='OSI: new id after a gap (split), or interpolate up to 1 s (fill)')
    parser.add_argument('--default-class', choices=DEFAULT_CLASSES, default='',
                        metavar='CLASS', help='OSI: class of actors without one (default: car, '
                        'other)')
    parser.add_argument('--storage', choices=('mcap', 'sqlite3'),
                        help='bag: format of its files (default: mcap)')
    parser.add_argument('--compression', choices=COMPRESSIONS, metavar='NAME',
                        help='MCAP: zstd (default), lz4, none, zstd_fast, zstd_small')
    parser.add_argument('--clock', action='store_true', help='bag: also write /clock')
    parser.add_argument('--name', default='state_sensor', metavar='NODE',
                        help='bag: name of the node (default: state_sensor)')
    parser.add_argument('--namespace', default='/', metavar='NS',
                        help='bag: namespace of the node (default: /)')


def add_to(parser: argparse.ArgumentParser, help_: str) -> None:
    """Add the option that names the format to write, with its help."""
    completed_by(parser.add_argument('--to', metavar='FORMAT', help=help_), 'formats')


def port(text: str) -> int:
    """Return the port in ``text``, 1 to 65535; raise ArgumentTypeError otherwise."""
    return _bounded(_whole(text), text, 1, 65535)


def count(text: str) -> int:
    """Return the whole number in ``text``, at least 1; raise ArgumentTypeError otherwise."""
    return _bounded(_whole(text), text, 1)


def index(text: str) -> int:
    """Return the whole number in ``text``, at least 0; raise ArgumentTypeError otherwise."""
    return _bounded(_whole(text), text, 0)


def above_zero(text: str) -> float:
    """Return the number in ``text``, above 0; raise ArgumentTypeError otherwise."""
    value = _finite(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f'{text} is not greater than 0')
    return value


def number(text: str) -> float:
    """Return the finite number in ``text``, at least 0; raise ArgumentTypeError otherwise."""
    return _bounded(_finite(text), text, 0.0)


def _resampling_rate(text: str) -> float:
    value = above_zero(text)
    if value > _MAX_RESAMPLING_HZ:
        raise argparse.ArgumentTypeError(f'{text} Hz is above {_MAX_RESAMPLING_HZ:g}')
    return value


def _whole(text: str) -> int:
    if not (text.isascii() and text.removeprefix('-').isdigit()):
        raise argparse.ArgumentTypeError(f'{text!r} is not a whole number')
    return int(text)


def _finite(text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'{text!r} is not a number') from error
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f'{text} is not a finite number')
    return value


def _bounded(value: Number, text: str, low: Number, high: Number | None = None) -> Number:
    if value < low or (high is not None and value > high):
        raise argparse.ArgumentTypeError(
            f'{text} is less than {low:g}' if high is None
            else f'{text} is not between {low} and {high}')
    return value
