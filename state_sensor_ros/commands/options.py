# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Options that several commands share: parameters, the selection, formats, live streams."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
import math
from typing import Any

from state_sensor_ros import simulators
from state_sensor_ros.classes import DEFAULT_CLASSES, EGO_TAG
from state_sensor_ros.commands import parameter_file
from state_sensor_ros.commands.terminal import print_line
from state_sensor_ros.errors import UsageError
from state_sensor_ros.files import Format, formats, open_any, ReadOptions
from state_sensor_ros.files.frame_selection import RecordingSelection
from state_sensor_ros.files.recording import RecordingReader
from state_sensor_ros.parameters import nearest, Value
from state_sensor_ros.settings import DEFAULTS, Settings

GENERATIONS = ('v1', 'v2')
# Options that are parameters, too.
_PARAMETERS = ('source', 'host', 'port', 'desired_tags', 'undesired_tags', 'ego_tag', 'outputs')
# Parameters of the node in a file that are no settings.
_OF_ROS = ('qos_overrides.', 'actor_qos.', 'use_sim_time')


def _number(kind: Callable[[str], float], low: float, high: float = math.inf, *,
            is_open: bool = False) -> Callable[[str], Any]:
    """Return the type of an option: a number from ``low``, if ``is_open`` above it."""
    def parsed(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not (low < value <= high or (value == low and not is_open)) or math.isinf(value):
            noun = 'whole number' if kind is int else 'number'
            limits = f'from {low:g} to {high:g}' if high < math.inf else \
                f'{"above" if is_open else "of at least"} {low:g}'
            raise argparse.ArgumentTypeError(f'found {text}; expected a {noun} {limits}')
        return value
    return parsed


port = _number(int, 1, 65535)
port_or_0 = _number(int, 0, 65535)
count = _number(int, 1)
index = _number(int, 0)
number = _number(float, 0.0)
above_zero = _number(float, 0.0, is_open=True)


def listed(text: str) -> list[str]:
    """Return the type of an option that takes ``a,b`` and may be repeated (``extend``)."""
    return [item for item in text.split(',') if item]


def completed_by(action: argparse.Action, name: str) -> None:
    """Complete the values of an option in a shell."""
    def complete(**given: Any) -> list[str]:  # noqa: ANN401
        found: list[str] = getattr(import_module('state_sensor_ros.commands.completion'), name)(
            **given)
        return found

    action.completer = complete  # type: ignore[attr-defined]


def add_parameters(parser: argparse.ArgumentParser) -> None:
    """Add the options that set parameters to ``parser``, for every command."""
    group = parser.add_argument_group('parameters')
    completed_by(group.add_argument(
        '-p', dest='parameters', action='append', default=[], type=_assignment,
        metavar='NAME:=VALUE',
        help='set a parameter (`state_sensor parameters`); repeatable'), 'parameters')
    group.add_argument('--params-file', dest='params_files', action='append', default=[],
                       metavar='FILE', help='set the parameters in a YAML file; repeatable')


def _assignment(text: str) -> tuple[str, str]:
    name, mark, value = text.partition(':=')
    if not mark:
        raise argparse.ArgumentTypeError(f'found {text}; expected NAME:=VALUE')
    return name, value


def add_input(parser: argparse.ArgumentParser, *names: str, more: str = '',
              **options: Any) -> None:  # noqa: ANN401
    """Add a recording to read; ``options``: other members of ``add_argument``."""
    parser.add_argument(*names, **options, help='recording: .json, a bag, .mcap, .parquet, .osi '
                        f"or a simulator's own; - is standard input{more}")


def add_bag_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for reading a bag of frames to ``parser``."""
    group = parser.add_argument_group('reading a bag')
    group.add_argument('--topic', default='', metavar='NAME',
                       help='the ~/frame topic to read if a bag has several')


def add_quiet(parser: argparse.ArgumentParser,
              what: str = 'print neither progress nor the line about the result') -> None:
    """Add the option for silence on success to ``parser``; ``what`` is its help."""
    parser.add_argument('-q', '--quiet', action='store_true', help=what)


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option that replaces outputs."""
    parser.add_argument('--force', action='store_true', help='overwrite OUT')


def add_batch_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of many recordings to ``parser``."""
    group = parser.add_argument_group('many recordings')
    group.add_argument('--jobs', type=count, metavar='N',
                       help='number of processes (default: the cores)')
    group.add_argument('--dask', default='', metavar='ADDRESS',
                       help='Dask scheduler, tcp://HOST:8786')


def add_selection(parser: argparse.ArgumentParser, *, has_times: bool = True) -> None:
    """Add the options that select actors and frames to ``parser``."""
    group = parser.add_argument_group('selection')
    for option, text in (('--desired-tags', 'keep the actors with one of these tags'),
                         ('--undesired-tags', 'drop the actors with any of these tags')):
        completed_by(group.add_argument(option, type=listed, action='extend', default=[],
                                        metavar='TAG,...', help=text), 'tags')
    completed_by(group.add_argument('--actors', action='append', default=[], metavar='NAME',
                                    help='keep the actor with this name; repeatable'), 'actors')
    if has_times:
        group.add_argument('--start', type=number, default=0.0, metavar='S',
                           help='start S seconds after the first frame')
        group.add_argument('--end', type=number, default=math.inf, metavar='S',
                           help='end S seconds after the first frame')
    group.add_argument('--rate', type=above_zero, metavar='HZ',
                       help='keep at most HZ frames per second, without interpolation')
    completed_by(group.add_argument(
        '--ego-tag', metavar='TAG', help='tag of the ego (default: ego)'), 'tags')


def add_writing_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that formats use when they are written to ``parser``."""
    group = parser.add_argument_group('formats')
    completed_by(group.add_argument(
        '--to', metavar='FORMAT', help='format, if the name of OUT does not decide it'),
        'formats')
    group.add_argument('--generation', choices=GENERATIONS,
                       help='trajectory: generation (default: that of each frame)')
    completed_by(group.add_argument(
        '--columns', type=listed, action='extend', metavar='NAME,...',
        help='table: columns (default: all)'), 'columns')
    group.add_argument('--default-class', choices=DEFAULT_CLASSES, default='', metavar='CLASS',
                       help='OSI: class of actors without one (default: car, other)')
    completed_by(group.add_argument(
        '--outputs', type=listed, action='extend', metavar='STACK,...',
        help='bag: topics for autoware, derived_objects, vision'), 'outputs')
    group.add_argument('--storage', choices=('mcap', 'sqlite3'),
                       help='bag: format of its files (default: mcap)')
    group.add_argument('--compression', choices=('zstd', 'none'), metavar='NAME',
                       help='MCAP: zstd (default) or none')
    group.add_argument('--clock', action='store_true', help='bag: also write /clock')
    group.add_argument('--name', default='state_sensor', metavar='NODE',
                       help='bag: name of the node (default: state_sensor)')
    group.add_argument('--namespace', default='/', metavar='NS',
                       help='bag: namespace of the node (default: /)')


class _SimulatorNames:
    """The names of the installed simulators, which are searched for at the first use."""

    def __contains__(self, name: object) -> bool:
        return name in simulators.simulator_names()

    def __iter__(self) -> Any:  # noqa: ANN401
        return iter(simulators.simulator_names())


def add_stream_options(parser: argparse.ArgumentParser, *, has_end: bool = True) -> None:
    """Add the options of a live stream, and of its end, to ``parser``."""
    group = parser.add_argument_group('live stream')
    group.add_argument('--source', choices=_SimulatorNames(), default=DEFAULTS.source,
                       metavar='NAME', help=f'%(choices)s (default: {DEFAULTS.source})')
    group.add_argument('--host', help=f'host of the simulator (default: {DEFAULTS.host})')
    group.add_argument('--port', type=port,
                       help=f'port of its frames (default: that of the source, {DEFAULTS.port})')
    if has_end:
        group.add_argument('--frames', type=count, metavar='N', help='end after N frames')
        group.add_argument('--seconds', type=above_zero, metavar='S',
                           help='end S s after the first frame, or after S s without one')


def take_parameters(args: argparse.Namespace) -> None:
    """
    Check the parameters of a command line, set by options, -p, or files in this order.

    Afterward, ``values`` has all of them by name, and options that are parameters have theirs.
    """
    if hasattr(args, 'values'):
        # Of a job of a batch.
        return
    # The port of `simulate` is the one on which it serves.
    own = [name for name in _PARAMETERS if hasattr(args, name)
           and (name != 'port' or hasattr(args, 'host'))]
    options = {name: value for name in own
               if (value := getattr(args, name)) not in (None, [])}
    if options.get('source') == DEFAULTS.source:
        del options['source']
    texts: dict[str, str] = dict(args.parameters)
    if both := options.keys() & texts.keys():
        raise UsageError(f'-p {min(both)} and --{min(both).replace("_", "-")} are both given; '
                         'leave one of them out')
    found = {name: value for path in args.params_files
             for name, value in _values_in(path, args).items()}
    source = str(options.get('source') or texts.get('source') or found.get('source')
                 or DEFAULTS.source)
    schema = simulators.schema_for([*found, *texts, *options], source)
    values: dict[str, Value] = {
        name: schema.find(name).checked(value) for name, value in found.items()}
    values |= {name: schema.find(name).parsed(text) for name, text in texts.items()}
    values |= {name: schema.find(name).checked(value) for name, value in options.items()}
    for name in own:
        if name in values:
            value = values[name]
            setattr(args, name, list(value) if isinstance(value, tuple) else value)
    args.values = values


def _values_in(path: str, args: argparse.Namespace) -> dict[str, object]:
    content = parameter_file.read_parameter_file(path, '--params-file')
    node = '/'.join(('', *filter(None, getattr(args, 'namespace', '/').split('/')),
                     getattr(args, 'name', '') or 'state_sensor'))
    found = parameter_file.parameters_of(content, node)
    if found is None:
        print_line(f'warning: --params-file {path}: its parameters are not used: the node is '
                   f'{node}, the file has '
                   f'{", ".join(parameter_file.names_in(content))}')
    return {name: value for name, value in _flat(found or {}).items()
            if not name.startswith(_OF_ROS)}


def _flat(values: Mapping[str, object], prefix: str = '') -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in values.items():
        found |= _flat(value, f'{prefix}{key}.') if isinstance(value, dict) \
            else {f'{prefix}{key}': value}
    return found


def settings_of(args: argparse.Namespace, *, is_live: bool = False, **own: Value) -> Settings:
    """Return the settings of a command; ``own``: values where the command line has none."""
    values: dict[str, object] = {**own, **args.values}
    if is_live:
        values = simulators.with_config_file({**values, 'source': args.source})
    else:
        values.pop('source', None)
    return simulators.checked_settings(values, is_live=is_live)


def selection_of(args: argparse.Namespace) -> RecordingSelection:
    """Return the selection that ``args``, the parsed options, describe."""
    start, end = getattr(args, 'start', 0.0), getattr(args, 'end', math.inf)
    if end < start:
        raise UsageError(f'--end {end:g} is before --start {start:g}')
    tag, origin = ego_of(args)
    return RecordingSelection(tuple(args.desired_tags), tuple(args.undesired_tags),
                              tuple(args.actors), start, end, args.rate, tag, origin)


def ego_of(args: argparse.Namespace) -> tuple[str, str]:
    """Return the tag that the ego is to have, and what selects it; ``''`` if nothing does."""
    if args.ego_tag is not None:
        return args.ego_tag, f'--ego-tag {args.ego_tag}'
    return next(((EGO_TAG, f'-p {name}:={value}') for name, value in args.values.items()
                 if name.endswith('.ego') and value), ('', ''))


def format_named(name: str) -> Format:
    """
    Return the format that ``--to`` names.

    :raises UsageError: if there is none of this name.
    """
    known = {row.name: row for row in formats() if row.is_written and row.suffixes}
    if name not in known:
        likely = nearest(name, known)
        raise UsageError(f'--to: there is no format {name!r}; ' + (
            f'did you mean {likely}?' if likely else
            f'expected one of {", ".join(sorted(known))}'))
    return known[name]


def check_suffix(option: str, out: str | None, suffixes: Iterable[str]) -> None:
    """Refuse a file whose name has the suffix of another format; a pipe has none."""
    if out and '.' in out.rpartition('/')[2] and not out.lower().endswith((*suffixes,)):
        raise UsageError(f'{option} {out} does not end with {" or ".join(suffixes)}')


def open_input(args: argparse.Namespace, path: str, settings: Settings) -> RecordingReader:
    """
    Open a recording.

    :param args: the parsed options, with ``topic``.
    :param path: path of the recording.
    :param settings: settings of the command.
    :raises TrajectoryFormatError: if it cannot be read.
    """
    return open_any(path, ReadOptions(settings, args.topic))
