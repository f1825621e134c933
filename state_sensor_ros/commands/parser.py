# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The parser of a command line, which separates IN and OUT from the values of an option before them.

An option with several values takes the words up to the next option, except those that are needed
for IN and OUT, and those that name a recording.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import os
import re
import sys
from typing import Any, NoReturn

from state_sensor_ros.commands.help_page import CompleteHelp, is_file, short_help, SubjectHelp
from state_sensor_ros.commands.printing import print_error
from state_sensor_ros.parameters import nearest
from state_sensor_ros.texts import one_line, shortened

WRONG_USAGE = 2
# Characters of a message: a word may be of any length.
_MAX_MESSAGE = 1000
_MANY = ('+', '*')
_NUMBER = re.compile(r'-\d|-\.\d')
_CHOICE = re.compile(r"argument .*?: invalid choice: '(?P<word>.*?)' "
                     r'\(choose from (?P<known>.*)\)')


class Parser(argparse.ArgumentParser):
    """
    Parse arguments; an error is one line that begins with ``error:``.

    ``given`` of the parsed options has the names of the options on the command line.
    """

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401
        is_command = options.get('add_help', True) and 'formatter_class' in options
        super().__init__(*args, **{**options, 'add_help': False} if is_command else options)
        if is_command:
            self.add_argument('-h', '--help', action=SubjectHelp, nargs='?', metavar='SUBJECT',
                              default=argparse.SUPPRESS,
                              help='show this page, or the options of one group or simulator')
            self.add_argument('--help-all', action=CompleteHelp, nargs=0,
                              default=argparse.SUPPRESS,
                              help='show all options, including those of the node and the '
                              'simulators')

    def format_help(self) -> str:
        """Return the help of one page; of the program itself, its commands."""
        return super().format_help() if self._subparsers is not None else short_help(self)

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ANN401
        """Print a help, a version or an error; one that cannot be written is an OSError."""
        if file is sys.stdout:
            file.write(message)
            file.flush()
        else:
            print_error(message)

    def error(self, message: str) -> NoReturn:
        """End the program with the exit code of wrong usage, after one line."""
        if match := _CHOICE.fullmatch(message):
            likely = nearest(match['word'], re.findall(r"[^\s',]+", match['known']))
            message += f'; did you mean {likely}?' if likely else ''
        text = shortened(one_line(message), _MAX_MESSAGE)
        self.exit(WRONG_USAGE, f'error: {self.prog}: {text} (see {self.prog} --help)\n')

    def unrecognized(self, words: Sequence[str]) -> NoReturn:
        """End the program after one line about unknown words."""
        options = [option for option in self._option_string_actions if option.startswith('--')]
        if '.' in words[0] and '-p' in self._option_string_actions:
            from state_sensor_ros.commands.parameter_options import options_of_simulators
            options += options_of_simulators()
        likely = nearest(words[0].partition('=')[0], options) if words[0][:1] == '-' else ''
        self.error(f'unrecognized arguments: {" ".join(words)}'
                   + (f'; did you mean {likely}?' if likely else ''))

    def parse_known_args(self, args: Any = None,  # noqa: ANN401
                         namespace: Any = None) -> Any:  # noqa: ANN401
        """Parse ``args``, and add the names of the options on the command line."""
        if args is None or '_ARGCOMPLETE' in os.environ or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        options, positional = self._in_order(self._with_parameters(list(args)))
        parsed, unknown = super().parse_known_args(
            [*options, '--', *positional] if positional else options, namespace)
        actions = [self._action_of(word) for word in options if _is_option(word)]
        parsed.given = frozenset(action.dest for action in actions if action is not None)
        return parsed, unknown

    def _with_parameters(self, words: list[str]) -> list[str]:
        """Return the words with ``-p`` in place of the options of simulators."""
        if '-p' not in self._option_string_actions or not any('.' in word for word in words
                                                              if word.startswith('--')):
            return words
        # Imported here: few command lines have such an option.
        from state_sensor_ros.commands.parameter_options import with_parameters
        return with_parameters(words, self._option_string_actions)

    def _in_order(self, words: list[str]) -> tuple[list[str], list[str]]:
        """Return the options with their values, and the positional words."""
        options: list[str] = []
        positional: list[str] = []
        # For each option with several values, the range of its values in ``options``.
        many: list[tuple[int, int]] = []
        i = 0
        while i < len(words):
            word = words[i]
            i += 1
            if word == '--':
                positional += words[i:]
                break
            if not _is_option(word):
                positional.append(word)
                continue
            options.append(word)
            action = self._action_of(word)
            has_value = '=' in word or (
                word not in self._option_string_actions and word[1] != '-')
            n_values = 0 if action is None or has_value or action.nargs == 0 else \
                len(words) if action.nargs in _MANY else \
                action.nargs if isinstance(action.nargs, int) else 1
            begin = len(options)
            while n_values and i < len(words) and words[i] != '--' and not _is_option(words[i]):
                options.append(words[i])
                i, n_values = i + 1, n_values - 1
            if action is not None and action.nargs in _MANY and not has_value:
                many.append((begin, len(options)))
        if many:
            begin, end = many[-1]
            n_back = self._n_given_back(options[begin:end], len(positional))
            positional += options[end - n_back:end]
            del options[end - n_back:end]
        return options, positional

    def _action_of(self, word: str) -> argparse.Action | None:
        """Return the option that a word is or begins."""
        name = word.partition('=')[0]
        if name in self._option_string_actions:
            return self._option_string_actions[name]
        if not name.startswith('--'):
            # The value of a short option may follow it directly.
            return self._option_string_actions.get(name[:2])
        actions = {id(action): action for option, action in self._option_string_actions.items()
                   if option.startswith(name)}
        return next(iter(actions.values())) if len(actions) == 1 else None

    def _n_given_back(self, values: list[str], n_positional: int) -> int:
        """Return how many of the last values of an option are positional words."""
        actions = [action for action in self._actions if not action.option_strings]
        n_needed = sum(action.nargs in (None, '+') for action in actions)
        has_many = any(action.nargs in _MANY for action in actions)
        # The option keeps at least one value.
        n_back = min(max(n_needed - n_positional, 0), max(len(values) - 1, 0))
        if has_many and n_positional <= n_needed:
            while n_back < len(values) - 1 and is_file(values[-n_back - 1]):
                n_back += 1
        return n_back


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith('-') and not _NUMBER.match(word)
