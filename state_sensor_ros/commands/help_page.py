# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Help of a command: a line for each option, the complete texts, or the options of one subject.

Options of groups with the title :data:`NODE` or :data:`LIVE` are not in the first of them. A
subject is a group of options, or a subject of parameters, such as a simulator.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
import os
import re
import shutil
import sys
import textwrap

from state_sensor_ros.parameters import nearest

# Titles of the groups that the short help leaves out.
NODE, LIVE = 'parameters of the node', 'parameters of a live stream'
_HIDDEN = (NODE, LIVE)
# Width of the option column, and of a page, also without a terminal.
_OPTION_WIDTH, _LEAST_WIDTH, _MOST_WIDTH, _PIPED_WIDTH = 30, 60, 120, 100
# Where a text may end early: after a clause.
_CLAUSE = re.compile(r'[;,:.]? \(|[;:,.] ')
_SENTENCE = '. '
_MANY = ('+', '*')
# Lines about a positional argument, and room for the word that does not fit in the first of them.
_N_LINES, _LAST_WORD = 2, 12


class SubjectHelp(argparse.Action):
    """Print the help of one page, or that of the subject that is given, and end the program."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: object, values: object,
                 option_string: str | None = None) -> None:
        """Print."""
        parser._print_message(_subject_help(parser, values) if isinstance(values, str)
                              else short_help(parser), sys.stdout)
        parser.exit()

    def completer(self, parser: argparse.ArgumentParser, **_: object) -> list[str]:
        """Return the subjects, for the completion of a shell."""
        return list(subjects(parser))


class CompleteHelp(argparse.Action):
    """Print the complete help, and end the program."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print."""
        parser._print_message(argparse.ArgumentParser.format_help(parser), sys.stdout)
        parser.exit()


class CompleteFormatter(argparse.RawDescriptionHelpFormatter):
    """The formatter of the complete help: many values are named once."""

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        return values_of(action) or super()._format_args(action, default_metavar)


def values_of(action: argparse.Action) -> str:
    """Return several values of an option as in `TAG…` or `X… (6)`, '' for a single one."""
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.option_strings and action.nargs in _MANY:
        return f'{name}…'
    return f'{name}… ({action.nargs})' if isinstance(action.nargs, int) and action.nargs > 1 \
        else ''


def metavar_of(name: str) -> str:
    """
    Return what stands for the value of a parameter in help texts.

    >>> metavar_of('map_file'), metavar_of('global_frame')
    ('FILE', 'FRAME')
    """
    return re.split(r'[._]', name)[-1].upper()


def short_help(parser: argparse.ArgumentParser) -> str:
    """
    Return a page with a line for each option of a command's own.

    :param parser: parser of the command.
    """
    width = _page_width()
    groups = [group for group in parser._action_groups
              if group.title not in _HIDDEN and group._group_actions]
    lines = [_usage(parser), *([parser.description] if parser.description else []), '']
    for group in groups:
        # Positional ones need no heading.
        if group._group_actions[0].option_strings:
            lines.append(f'{group.title}:')
        lines += _rows(parser, group._group_actions, width)
    if parser.epilog:
        lines += ['', parser.epilog]
    return '\n'.join(lines) + '\n'


def subjects(parser: argparse.ArgumentParser, *,
             with_added: bool = False) -> dict[str, list[argparse.Action]]:
    """
    Return the options of a command by subject, with the parameters that it takes.

    :param parser: parser of the command.
    :param with_added: whether added simulators are searched for.
    """
    found: dict[str, dict[str, argparse.Action]] = {}
    for group in parser._action_groups:
        options = [action for action in group._group_actions if action.option_strings
                   and (group.title not in _HIDDEN or '.' not in action.dest)]
        if options:
            subject = (group.title or '').split()[-1].lower()
            found.setdefault(subject, {}).update((action.dest, action) for action in options)
    if '-p' in parser._option_string_actions:
        # Imported here: this module is loaded by commands without parameters, too.
        from state_sensor_ros.commands.parameter_options import parameters_taken
        for subject, actions in parameters_taken(parser, with_added=with_added).items():
            found.setdefault(subject, {}).update((action.dest, action) for action in actions)
    return {subject: list(actions.values()) for subject, actions in found.items()}


def _subject_help(parser: argparse.ArgumentParser, word: str) -> str:
    """Return the help of a subject or an option with complete texts."""
    found = subjects(parser, with_added=True)
    name = word.lower().removeprefix('--').replace('-', '_')
    known = {action.dest: [action] for actions in found.values() for action in actions} | found
    if name not in known and is_file(word):
        # IN or OUT after the option.
        return short_help(parser)
    if name not in known:
        near = nearest(name, known)
        parser.error(f'there is no help about {word!r}; ' + (
            f'did you mean {near}?' if near else f'expected one of {", ".join(found)}'))
    return '\n'.join((_usage(parser), '', f'{name}:',
                      *_rows(parser, known[name], _page_width(), is_brief=False), ''))


def is_file(word: str) -> bool:
    """Return whether a word is a path, or has the suffix of a format."""
    # Imported here: needed for few command lines only.
    from state_sensor_ros.simulators.opening import format_of_name
    return os.path.exists(word) or format_of_name(word) is not None


def _usage(parser: argparse.ArgumentParser) -> str:
    positional = [action for action in parser._actions if not action.option_strings]
    return ' '.join(['usage:', parser.prog, '[options]', *map(_positional, positional)])


def _page_width() -> int:
    columns = shutil.get_terminal_size((_PIPED_WIDTH, 24)).columns
    return min(max(columns - 2, _LEAST_WIDTH), _MOST_WIDTH)


def _rows(parser: argparse.ArgumentParser, actions: Iterable[argparse.Action],
          width: int, *, is_brief: bool = True) -> Iterator[str]:
    for action in actions:
        if action.help == argparse.SUPPRESS:
            continue
        name, text = shown(action), described(parser, action)
        if not is_brief and len(name) >= _OPTION_WIDTH - 3:
            yield f'  {name}'
            name = ''
        room = width - max(_OPTION_WIDTH, len(name) + 4)
        if is_brief:
            text = brief(text, room if action.option_strings else _N_LINES * room - _LAST_WORD)
        first, *more = textwrap.wrap(text, room, max_lines=_N_LINES if is_brief else None,
                                     placeholder=' …') or ['']
        yield f'  {name:<{_OPTION_WIDTH - 2}}{first}' if len(name) < _OPTION_WIDTH - 3 \
            else f'  {name}  {first}'
        yield from (' ' * _OPTION_WIDTH + line for line in more)


def shown(action: argparse.Action) -> str:
    """Return an argument as it is typed, with the names of its values."""
    return _option(action) if action.option_strings else _positional(action)


def described(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Return the help text of an argument in one line."""
    text = parser._get_formatter()._expand_help(action) if action.help else ''
    return ' '.join(text.split())


def _positional(action: argparse.Action) -> str:
    name = action.metavar if isinstance(action.metavar, str) else action.dest
    several = f'{name}…' if action.nargs in _MANY else name
    return f'[{several}]' if action.nargs in ('*', '?') else several


def _option(action: argparse.Action) -> str:
    """Return an option as it is typed, with its short name and without its former names."""
    if isinstance(action, argparse.BooleanOptionalAction):
        return f'--[no-]{action.option_strings[0].removeprefix("--")}'
    options = [option for option in action.option_strings if not option.startswith('--')][:1]
    options += [option for option in action.option_strings if option.startswith('--')][:1]
    name = ', '.join(options)
    if action.nargs == 0:
        return name
    if several := values_of(action):
        return f'{name} {several}'
    if action.nargs == '?':
        return f'{name} [{action.metavar}]'
    value = action.metavar or ('|'.join(map(str, action.choices)) if action.choices
                               else action.dest.upper())
    return f'{options[0] if len(options) > 1 else name} {value}'


def brief(text: str, width: int) -> str:
    """
    Shorten a help text, if possible at the end of a sentence or else of a clause.

    :param text: help text.
    :param width: greatest number of characters.

    >>> brief('address of the server; it must be a name', 30)
    'address of the server'
    >>> brief('recording, of any format. Formats: a bag, a table', 30)
    'recording, of any format'
    """
    if len(text) <= width:
        return text
    ends = [match for match in _CLAUSE.finditer(text) if match.start() <= width - 2
            and text.count('(', 0, match.start()) == text.count(')', 0, match.start())]
    ends = [match for match in ends if match[0] == _SENTENCE] or ends
    if ends and ends[-1].start() > width // 4:
        return text[:ends[-1].start()] + (' …' if ends[-1][0] == ', ' else '')
    return text[:width - 1].rpartition(' ')[0] + ' …'
