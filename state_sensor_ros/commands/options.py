# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Options that several commands share: selection, formats, live streams; and their completion."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from functools import partial
from itertools import islice
import math
import os
import re
from typing import Any

from state_sensor_ros import classes, errors, simulators
from state_sensor_ros.files import formats, frame_selection, open_any, search
from state_sensor_ros.parameters import Value
from state_sensor_ros.settings import DEFAULTS, OUTPUTS, Settings

GENERATIONS = ('v1', 'v2')
# Frames whose actors a shell proposes.
_N_COMPLETED = 50


def number_from(kind: Callable[[str], float], low: float, high: float = math.inf, *,
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


port = number_from(int, 1, 65535)
port_or_0 = number_from(int, 0, 65535)
count = number_from(int, 1)
index = number_from(int, 0)
number = number_from(float, 0.0)
above_zero = number_from(float, 0.0, is_open=True)


def numbers(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Return the type of an option that takes ``1,2``."""
    return lambda text: sorted({kind(part) for part in text.split(',')})


def _node_name(text: str) -> str:
    """Return the type of an option that takes the name of a node, in a namespace or not."""
    if not re.fullmatch(r'(/?[A-Za-z_]\w*)(/[A-Za-z_]\w*)*', text, re.ASCII):
        raise argparse.ArgumentTypeError(f'found {text}; expected a name such as /car/front')
    return text if text.startswith('/') else f'/{text}'


def listed(text: str) -> list[str]:
    """Return the type of an option that takes ``a,b`` and may be repeated (``extend``)."""
    return [item for item in text.split(',') if item]


class _Choices:
    """Names of plug-ins, too, which are searched for at the first use."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    def __contains__(self, name: object) -> bool:
        return name in [*self._names()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())


def _format_names() -> list[str]:
    return sorted(row.name for row in formats() if row.writer and row.suffixes)


def completed_by(action: argparse.Action, complete: Callable[..., list[str]]) -> None:
    """Complete the values of an option in a shell."""
    action.completer = complete  # type: ignore[attr-defined]


def parameter_names(**_: object) -> list[str]:
    """Return what begins an option -p."""
    return [f'{name}:=' for name in simulators.schema_of(with_added=True).names]


def _actors(**_: object) -> list[str]:
    """Return the names of actors in the first frames of the recording on the command line."""
    # argcomplete passes no arguments of a sub-command.
    path = next(filter(os.path.exists, os.environ.get('COMP_LINE', '').split()[2:]), None)
    try:
        with closing(open_any(path or '')) as reader:
            return sorted({name for frame in islice(reader.frames(), _N_COMPLETED)
                           for name in frame.names})
    except (errors.StateSensorError, OSError):
        return []


def add_input(parser: argparse.ArgumentParser, *names: str, more: str = '',
              **options: Any) -> None:  # noqa: ANN401
    """Add a recording to read; ``options``: other members of ``add_argument``."""
    parser.add_argument(*names, **options, help='recording: .json, a bag, .mcap, .parquet, .osi '
                        f"or a simulator's own; - is standard input{more}")


def _add_bag(parser: argparse.ArgumentParser) -> None:
    """Add the options for reading a bag of frames to ``parser``."""
    group = parser.add_argument_group('reading a bag')
    group.add_argument('--topic', default='', metavar='NAME',
                       help='the ~/frame topic to read if a bag has several')


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option that replaces outputs."""
    parser.add_argument('--force', action='store_true', help='overwrite OUT')


def add_quiet(parser: argparse.ArgumentParser,
              what: str = 'print neither progress nor the line about the result') -> None:
    """Add the option for silence on success to ``parser``; ``what`` is its help."""
    parser.add_argument('-q', '--quiet', action='store_true', help=what)


def _add_batch(parser: argparse.ArgumentParser) -> None:
    """Add the options of many recordings to ``parser``."""
    group = parser.add_argument_group('many recordings')
    group.add_argument('--jobs', type=count, metavar='N',
                       help='number of processes (default: the cores)')
    group.add_argument('--dask', default='', metavar='ADDRESS',
                       help='Dask scheduler, tcp://HOST:8786')


def are_many(args: argparse.Namespace, paths: list[str]) -> bool:
    """Return whether options or paths are those of several recordings."""
    if len(paths) > 1 or args.jobs is not None or args.dask or search.is_glob(paths[0]):
        return True
    # The error of a folder as a recording is more specific.
    with suppress(errors.ConfigError):
        return os.path.isdir(paths[0]) and paths != [
            found.path for found in search.find_recordings(paths, has_results=False)]
    return False


def _add_selection(parser: argparse.ArgumentParser, *, has_times: bool = True) -> None:
    """Add the options that select actors and frames to ``parser``."""
    group = parser.add_argument_group('selection')
    for option, text in (('--desired-tags', 'keep the actors with one of these tags'),
                         ('--undesired-tags', 'drop the actors with any of these tags')):
        group.add_argument(option, type=listed, action='extend', default=[], metavar='TAG,...',
                           help=text)
    completed_by(group.add_argument('--actors', action='append', default=[], metavar='NAME',
                                    help='keep the actor with this name; repeatable'), _actors)
    if has_times:
        group.add_argument('--start', type=number, default=0.0, metavar='S',
                           help='start S seconds after the first frame')
        group.add_argument('--end', type=number, default=math.inf, metavar='S',
                           help='end S seconds after the first frame')
    group.add_argument('--rate', type=above_zero, metavar='HZ',
                       help='keep at most HZ frames per second, without interpolation')
    group.add_argument('--ego-tag', metavar='TAG', help='tag of the ego (default: ego)')


def _add_writing(parser: argparse.ArgumentParser) -> None:
    """Add the options that formats use when they are written to ``parser``."""
    group = parser.add_argument_group('formats')
    group.add_argument('--to', metavar='FORMAT', choices=_Choices(_format_names),
                       help='format, if the name of OUT does not decide it')
    group.add_argument('--generation', choices=GENERATIONS,
                       help='trajectory: generation (default: that of each frame)')
    group.add_argument('--columns', type=listed, action='extend', metavar='NAME,...',
                       help='table: columns (default: all)')
    completed_by(group.add_argument(
        '--outputs', type=listed, action='extend', metavar='STACK,...',
        help=f'bag: topics for {", ".join(OUTPUTS)}'), lambda **_: [*OUTPUTS])
    group.add_argument('--storage', choices=('mcap', 'sqlite3'),
                       help='bag: format of its files (default: mcap)')
    group.add_argument('--compression', choices=('zstd', 'none'), metavar='NAME',
                       help='MCAP: zstd (default) or none')
    group.add_argument('--clock', action='store_true', help='bag: also write /clock')
    group.add_argument('--name', type=_node_name, default='/state_sensor', metavar='NODE',
                       help='bag: name of the node (default: /state_sensor)')


def _add_stream(parser: argparse.ArgumentParser) -> None:
    """Add the options of a live stream, and of its end, to ``parser``."""
    group = parser.add_argument_group('live stream')
    group.add_argument('--source', choices=_Choices(simulators.simulator_names),
                       default=DEFAULTS.source, metavar='NAME',
                       help=f'%(choices)s (default: {DEFAULTS.source})')
    group.add_argument('--host', help=f'host of the simulator (default: {DEFAULTS.host})')
    group.add_argument('--port', type=port,
                       help=f'port of its frames (default: that of the source, {DEFAULTS.port})')
    group.add_argument('--frames', type=count, metavar='N', help='end after N frames')
    group.add_argument('--seconds', type=above_zero, default=math.inf, metavar='S',
                       help='end S s after the first frame, or after S s without one')


def _add_output(parser: argparse.ArgumentParser) -> None:
    add_force(parser)
    add_quiet(parser)


_GROUPS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    'output': _add_output, 'batch': _add_batch, 'bag': _add_bag, 'stream': _add_stream,
    'selection': _add_selection, 'actors': partial(_add_selection, has_times=False),
    'writing': _add_writing}


def add(parser: argparse.ArgumentParser, *groups: str) -> None:
    """Add groups of options to ``parser``; ``actors`` is a selection without times."""
    for group in groups:
        _GROUPS[group](parser)


def settings_of(args: argparse.Namespace, *, is_live: bool = False, **own: Value) -> Settings:
    """Return the settings of a command; ``own``: values where the command line has none."""
    values: dict[str, object] = {**own, **args.values}
    if is_live:
        return simulators.live_settings({**values, 'source': args.source})
    values.pop('source', None)
    return simulators.checked_settings(values, is_live=False)


def selection_of(args: argparse.Namespace) -> frame_selection.RecordingSelection:
    """Return the selection that ``args``, the parsed options, describe."""
    start, end = getattr(args, 'start', 0.0), getattr(args, 'end', math.inf)
    if end < start:
        raise errors.UsageError(f'--end {end:g} is before --start {start:g}')
    # The tag that the ego is to have, and what selects it.
    tag, origin = next(((classes.EGO_TAG, f'-p {name}:={value}') for name,
                        value in args.values.items() if name.endswith('.ego') and value), ('', ''))
    if args.ego_tag is not None:
        tag, origin = args.ego_tag, f'--ego-tag {args.ego_tag}'
    return frame_selection.RecordingSelection(
        tuple(args.desired_tags), tuple(args.undesired_tags), tuple(args.actors), start, end,
        args.rate, tag, origin)


def check_suffix(option: str, out: str | None, suffix: str) -> None:
    """Refuse a file whose name does not have the suffix of its format."""
    if out and not out.lower().endswith(suffix):
        raise errors.UsageError(f'{option} {out} does not end with {suffix}')
