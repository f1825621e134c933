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
import math
import os

from state_sensor_ros.classes import EGO_TAG
from state_sensor_ros.commands.parameter_values import settings_of
from state_sensor_ros.errors import UsageError
from state_sensor_ros.files.formats import Format, ReadOptions, texts_of
from state_sensor_ros.files.frame_selection import RecordingSelection
from state_sensor_ros.files.recording import RecordingReader
from state_sensor_ros.parameters import nearest
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.opening import formats, open_any

SELECTION = frozenset(('desired_tags', 'undesired_tags', 'actors', 'start', 'end', 'rate'))
# Options of every run.
_OF_ALL = frozenset(('force', 'quiet', 'parameters', 'params_files'))


def selection_of(args: argparse.Namespace) -> RecordingSelection:
    """Return the selection that ``args``, the parsed options, describe."""
    tag, origin = ego_of(args)
    return RecordingSelection(
        tuple(args.desired_tags), tuple(args.undesired_tags), tuple(args.actors),
        getattr(args, 'start', 0.0), getattr(args, 'end', math.inf), args.rate, tag, origin)


def check_times(args: argparse.Namespace) -> None:
    """Refuse an end before the start."""
    given: frozenset[str] = getattr(args, 'given', frozenset())
    if {'start', 'end'} <= given and args.end < args.start:
        raise UsageError(f'--end {args.end:g} is before --start {args.start:g}')


def ego_of(args: argparse.Namespace) -> tuple[str, str]:
    """
    Return how the ego is selected.

    :param args: the parsed options.
    :returns: the tag that it has then, and the option or parameter, ``''`` if none is given.
    """
    if args.ego_tag is not None:
        return args.ego_tag, f'--ego-tag {args.ego_tag}'
    unread = getattr(args, 'unread', ())
    for name, value in args.parameters:
        if name == 'ego_tag' or (name.endswith('.ego') and value and name not in unread):
            return str(value) if name == 'ego_tag' else EGO_TAG, f'-p {name}:={value}'
    return '', ''


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


def refuse_unused(args: argparse.Namespace, used: Iterable[str], what: str,
                  uses: dict[str, str] | None = None) -> None:
    """
    Refuse options that are given and not used, whatever their values.

    :param args: the parsed options; those of a job of a batch are not checked again.
    :param used: names of the options that the run uses.
    :param what: description of the run, such as ``OUT ego.csv is a table``.
    :param uses: purposes of options that do not belong to a format, by name.
    :raises UsageError: naming the first such option, and what it is for; or of wrong times.
    """
    check_times(args)
    for name in sorted(getattr(args, 'given', frozenset()) - _OF_ALL.union(used)):
        raise UsageError(f'{option_of(args, name)} is for '
                         f'{(uses or {}).get(name) or _purpose(name)}; {what}')


def refuse_given(args: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """
    Refuse options that a run does not use; in a job of a batch another input may use them.

    :param args: the parsed options.
    :param names: names of options.
    :param why: what follows the name of an option in the error.
    :raises UsageError: naming the first that is given.
    """
    for name in sorted(getattr(args, 'given', frozenset()) & {*names}):
        raise UsageError(f'{option_of(args, name)} {why}')


def check_suffix(option: str, out: str | None, suffix: str) -> None:
    """Refuse a file whose name has the suffix of another format; a pipe has none."""
    if out and os.path.splitext(out)[1].lower() not in ('', suffix):
        raise UsageError(f'{option} {out} does not end with {suffix}')


def refuse_compression(args: argparse.Namespace, output: Format) -> None:
    """Refuse a compression of another storage than MCAP; ``output`` is the format written."""
    storage = args.storage or output.storage
    if args.compression and storage != 'mcap':
        raise UsageError(f'--compression is for MCAP; OUT is {storage or output.noun}')


def option_of(args: argparse.Namespace, name: str) -> str:
    """
    Return an option as the command line has it: `--no-legend` for a switch that is off.

    :param args: the parsed options.
    :param name: name of one that is given.
    """
    return f'--{"no-" if getattr(args, name) is False else ""}{name.replace("_", "-")}'


def open_input(args: argparse.Namespace, path: str, settings: Settings) -> RecordingReader:
    """
    Open a recording.

    :param args: the parsed options, with ``topic`` and ``max_bag_bytes``.
    :param path: path of the recording.
    :param settings: settings of the command.
    :raises TrajectoryFormatError: if it cannot be read.
    """
    return open_any(path, ReadOptions(settings, args.topic, args.max_bag_bytes))


def read_options_of(args: argparse.Namespace) -> ReadOptions:
    """Return the options for reading a recording to send; ``args`` are the parsed options."""
    args.stream_parameters = []
    return ReadOptions(settings_of(args))


def _purpose(name: str) -> str:
    """Describe the formats that use an option."""
    writers = texts_of(row for row in formats() if name in row.writes)
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
