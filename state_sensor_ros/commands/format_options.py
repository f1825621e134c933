# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The options of formats and of the selection, and the refusal of those that a run does not use.

What a format uses is declared in its row: :class:`state_sensor_ros.files.formats.Format`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from contextlib import closing
import math
from typing import Any

from state_sensor_ros.commands.options import number, seconds
from state_sensor_ros.commands.parameter_options import (
    add_any_parameter,
    add_parameters,
    option_of,
    options_in,
    parameter_names,
    parameters_that_affect,
    settings_of,
    texts_given,
    typed,
)
from state_sensor_ros.errors import UsageError
from state_sensor_ros.files.formats import DEFAULT_CLASSES, Format, FORMATS, ReadOptions, texts_of
from state_sensor_ros.files.frame_selection import RecordingSelection
from state_sensor_ros.files.recording import RecordingReader
from state_sensor_ros.files.storage.mcap_file import COMPRESSIONS
from state_sensor_ros.parameters import MESSAGES, nearest, WRITING
from state_sensor_ros.settings import NAMES, PERCEPTION, Settings
from state_sensor_ros.simulators.opening import format_of, formats, open_any, trajectory_format
from state_sensor_ros.simulators.simulator_list import schema_of, unread_parameters

SELECTION = frozenset(('desired_tags', 'undesired_tags', 'actors', 'start', 'end', 'rate'))
# Parameters of the node that are options of what writes recordings.
WRITING_PARAMETERS = options_in(WRITING)
# A period below the resolution of stamps, 1 ns, would make frames without end; this is the rate of
# the fastest synthetic traffic.
_MAX_RESAMPLING_HZ = 1000.0
# Options of every run that writes.
_OF_ALL = frozenset(('help', 'force', 'quiet', 'parameter'))


class FormatsHelp(str):
    """
    A help text with formats for ``%(read)s`` and ``%(written)s``, their names for ``%(names)s``.

    Added simulators, which may add formats, are searched for when the text is shown.
    """

    __slots__ = ()

    def __mod__(self, values: Any) -> str:  # noqa: ANN401
        """Return the text with ``values``, a mapping, and the formats."""
        return str.__mod__(self, {
            **values, 'read': ', '.join(texts_of(row for row in formats() if row.reader)),
            'written': ', '.join(texts_of(row for row in formats() if row.is_written)),
            'names': ', '.join(names_of_formats())})


def add_selection(parser: argparse.ArgumentParser, *, has_times: bool = True) -> None:
    """
    Add the options of the selection: :class:`RecordingSelection`.

    :param parser: parser of a sub-command.
    :param has_times: whether the input has a beginning and an end.
    """
    group = parser.add_argument_group('selection')
    group.add_argument('--desired-tags', nargs='+', action='extend', default=[], metavar='TAG',
                       help='keep the actors with at least one of these tags')
    group.add_argument('--undesired-tags', nargs='+', action='extend', default=[], metavar='TAG',
                       help='drop the actors with any of these tags')
    group.add_argument('--actors', nargs='+', action='extend', default=[], metavar='NAME',
                       help='keep the actors with these names')
    if has_times:
        group.add_argument('--start', type=number, default=0.0, metavar='S',
                           help='start S seconds after the first frame')
        group.add_argument('--end', type=number, default=math.inf, metavar='S',
                           help='end S seconds after the first frame')
    group.add_argument('--rate', type=seconds, metavar='HZ', help='keep at most HZ frames per '
                       'second, without interpolation (default: all)')


def selection_of(args: argparse.Namespace) -> RecordingSelection:
    """
    Return the selection that the options describe.

    :param args: the parsed options.
    :raises ConfigError: if a parameter is out of its range.
    """
    return RecordingSelection(
        texts_given(args, 'desired_tags'), texts_given(args, 'undesired_tags'), tuple(args.actors),
        getattr(args, 'start', 0.0), getattr(args, 'end', math.inf), args.rate)


def _resampling_rate(text: str) -> float:
    """Return the rate in ``text``, Hz; raise ArgumentTypeError if out of range."""
    value = seconds(text)
    if value > _MAX_RESAMPLING_HZ:
        raise argparse.ArgumentTypeError(f'{text} Hz is above {_MAX_RESAMPLING_HZ:g}')
    return value


def add_writing_options(parser: argparse.ArgumentParser) -> None:
    """
    Add the options that formats use when they are written.

    :param parser: parser of a sub-command that writes all formats.
    """
    parser.add_argument('--generation', choices=sorted(trajectory_format().generations),
                        help='generation of the trajectory (default: that of each frame)')
    parser.add_argument('--columns', metavar='NAME,...', help='columns of a table (default: all)')
    trace = parser.add_argument_group('for writing ASAM OSI')
    trace.add_argument('--resample', type=_resampling_rate, metavar='HZ',
                       help='interpolate the frames at this rate (default: keep the frames)')
    trace.add_argument('--gaps', choices=('split', 'fill'), default='split',
                       help='how to treat an object that returns after a gap: `split` gives it '
                       'a new id, `fill` interpolates gaps of up to 1 s (default: split)')
    trace.add_argument('--default-class', choices=DEFAULT_CLASSES, default='',
                       metavar='CLASS', help='class of the actors that have no class tag: '
                       f'{", ".join(DEFAULT_CLASSES)} (default: car for vehicles, other for '
                       'objects)')
    bag = parser.add_argument_group('for writing a bag')
    bag.add_argument('--storage', choices=storages(),
                     help='format of the files in the folder of a bag (default: mcap)')
    bag.add_argument('--compression', choices=COMPRESSIONS, metavar='NAME',
                     help='compression of MCAP: zstd, lz4, none, zstd_fast or zstd_small '
                          '(default: zstd)')
    bag.add_argument('--clock', action='store_true', help='also write /clock')
    bag.add_argument('--name', default='state_sensor', metavar='NODE',
                     help='name of the node in the topics (default: state_sensor)')
    bag.add_argument('--namespace', default='/', help='namespace of that node (default: /)')
    add_parameters(parser, WRITING_PARAMETERS)
    if '-p' not in parser._option_string_actions:
        add_any_parameter(parser)


def written_with(output: Format) -> frozenset[str]:
    """
    Return the names of the options that the writer of a format uses.

    :param output: format to write.
    """
    return output.writes.union(parameters_that_affect(MESSAGES), ('parameter',)) \
        if output.storage else output.writes


def storages() -> list[str]:
    """Return the storages of bags."""
    return sorted({row.storage for row in FORMATS if row.storage})


def format_name(text: str) -> str:
    """Return the name of a format for ``--to``; raise ArgumentTypeError otherwise."""
    known = names_of_formats()
    if text in known:
        return text
    likely = nearest(text, known)
    raise argparse.ArgumentTypeError(
        f'there is no format {text!r}' + (f'; did you mean {likely}?' if likely
                                          else f'; expected one of {", ".join(known)}'))


def names_of_formats() -> list[str]:
    """Return the names of the formats that ``--to`` takes."""
    return sorted(row.name for row in formats() if row.is_written and row.suffixes)


def add_to(parser: argparse.ArgumentParser, help_: str) -> None:
    """Add the option that names the format to write; the names follow ``help_``."""
    action = parser.add_argument('--to', type=format_name, metavar='FORMAT',
                                 help=FormatsHelp(f'{help_}: %(names)s'))
    # For the completion of a shell.
    action.completer = lambda **_: names_of_formats()  # type: ignore[attr-defined]


def refuse_unused(args: argparse.Namespace, used: Iterable[str], what: str,
                  uses: dict[str, str] | None = None, *,
                  parameters: Iterable[str] = ()) -> None:
    """
    Refuse options that are given and not used, whatever their values.

    :param args: the parsed options; those of a job of a batch are not checked again.
    :param used: names of the options that the run uses.
    :param what: description of the run, such as ``OUT ego.csv is a table``.
    :param uses: purposes of options that do not belong to a format, by name.
    :param parameters: names of further parameters that the run uses.
    :raises UsageError: naming the first such option, and what it is for.
    """
    given = {name: typed(args, name) for name in getattr(args, 'given', ())}
    unused = {name: text for name, text in given.items() if name not in _OF_ALL.union(used)}
    # Parameters of simulators are checked later: the recording's simulator is not known yet. The
    # parameter rate differs from the option --rate.
    unused |= {name: f'-p {name}' for name in parameter_names(args)
               if ('.' not in name or name in NAMES)
               and name not in (set(used) - {'rate'}).union(parameters)}
    for name in sorted(unused):
        raise UsageError(f'{unused[name]} is for {(uses or {}).get(name) or _purpose(name)}; '
                         f'{what}')


def refuse_alone(args: argparse.Namespace, output: Format, settings: Settings) -> None:
    """
    Refuse parameters that have no effect without another parameter, which is not set.

    :param args: the parsed options.
    :param output: format that is written.
    :param settings: settings of the run.
    :raises UsageError: naming the first such parameter, and what it is for.
    """
    if getattr(args, 'compression', None) and (args.storage or output.storage) != 'mcap':
        raise UsageError(f'--compression is for MCAP; OUT is {args.storage or output.noun}')
    given = {name: f'-p {name}' for name in parameter_names(args)}
    given |= {name: typed(args, name) for name in getattr(args, 'given', ())}
    schema = schema_of(settings.source, with_added=bool(parameter_names(args)))
    for name, needed in schema.without_effect(given, settings) if output.storage else ():
        raise UsageError(f'{given[name]} is for {" or ".join(map(option_of, needed))}')
    _refuse_without_output([name for name in given if name in PERCEPTION], settings)


def refuse_of_others(args: argparse.Namespace, simulator: str) -> None:
    """
    Refuse parameters that only other simulators have, or only live streams use.

    :param args: the parsed options.
    :param simulator: name of the recording's simulator, empty for none.
    :raises UsageError: naming the first such parameter.
    """
    shown = {name: f'-p {name}' for name in parameter_names(args) if name not in NAMES}
    shown |= {name: typed(args, name) for name in getattr(args, 'given', None) or ()
              if '.' in name and name not in NAMES}
    for name, purpose in unread_parameters(shown, simulator).items() if shown else ():
        raise UsageError(f'{shown[name]} is for {purpose}')


def refuse_given(args: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """
    Refuse options that a run does not use; in a job of a batch another input may use them.

    :param args: the parsed options.
    :param names: names of options or parameters.
    :param why: what follows the name of an option in the error.
    :raises UsageError: naming the first that is given.
    """
    # None in a job of a batch.
    given: frozenset[str] | None = getattr(args, 'given', None)
    for name in () if given is None else sorted(given.union(parameter_names(args)) & {*names}):
        raise UsageError(f'{option_of(name)} {why}')


def open_input(args: argparse.Namespace, path: str, settings: Settings) -> RecordingReader:
    """
    Open a recording; refuse parameters that its simulator does not use.

    :param args: the parsed options, with ``topic`` and ``max_bag_bytes``.
    :param path: path of the recording.
    :param settings: settings of the command.
    :raises TrajectoryFormatError: if it cannot be read.
    :raises UsageError: naming the first such parameter.
    """
    recording = open_any(path, ReadOptions(settings, args.topic, args.max_bag_bytes))
    try:
        refuse_of_others(args, recording.simulator)
    except UsageError:
        recording.close()
        raise
    return recording


def _refuse_without_output(given: Sequence[str], settings: Settings) -> None:
    """
    Refuse parameters of perception that none of the outputs uses.

    :param given: names of such parameters.
    :param settings: settings; the outputs are used.
    :raises UsageError: naming the first such parameter.
    """
    if not given:
        return
    # Imported here: it takes 0.05 s, and few runs have these parameters.
    from state_sensor_ros.topics.topic_list import perception_used
    used = perception_used(settings)
    for name in given:
        if name not in used:
            raise UsageError(f'-p {name} is for the objects that --outputs autoware (tracking, '
                             'detection, predicted), derived_objects or vision write; none of '
                             'the selected outputs uses it')


def read_options_of(args: argparse.Namespace, file: str | None) -> ReadOptions:
    """
    Return the options for reading a recording to send; refuse parameters without effect.

    :param args: the parsed options.
    :param file: the recording, None for none; a trajectory is sent as it is.
    :raises UsageError: naming the first parameter that it does not use.
    :raises ConfigError: if a value is out of its range.
    """
    options = ReadOptions(settings_of(args, ()))
    if not parameter_names(args):
        return options
    read = None if file is None else format_of(file)
    given: frozenset[str] = getattr(args, 'given', frozenset())
    if file is None or read is None or read is trajectory_format():
        refuse_unused(args, given, 'no FILE is read' if file is None
                      else f'FILE {file} is sent as it is')
        refuse_of_others(args, '')
        return options
    refuse_unused(args, given | read.reads, f'FILE {file} is {read.noun}')
    with closing(open_any(file, options)) as recording:
        refuse_of_others(args, recording.simulator)
    return options


def _purpose(name: str) -> str:
    """Describe the formats that use an option."""
    writers = texts_of(row for row in formats() if name in written_with(row))
    readers = texts_of(row for row in formats() if name in row.reads)
    texts = [f'{verb} {_alternatives(names)}' for verb, names in (
        ('reading', readers), ('writing', writers)) if names]
    return ' and '.join(texts) or 'another use of the command'


def _alternatives(names: Sequence[str]) -> str:
    """
    Return names as in `a, b or c`.

    >>> _alternatives(['a bag (.mcap, .db3)', 'a table', 'a trace'])
    'a bag (.mcap, .db3), a table or a trace'
    """
    return ' or '.join(name for name in (', '.join(names[:-1]), *names[-1:]) if name)
