# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The parser of a command line: errors of one line, and options that leave IN and OUT."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, combinations, islice, pairwise, product, takewhile
import os
import re
from typing import Any, NoReturn

from state_sensor_ros.commands.printing import print_line
from state_sensor_ros.files.whole.output import print_output
from state_sensor_ros.parameters import nearest
from state_sensor_ros.texts import shortened

WRONG_USAGE = 2
# Characters of a message: a word may be of any length.
_MAX_MESSAGE = 1000
_OPTION_WIDTH = 34
_MAX_READINGS = 200
_NUMBER = re.compile(r'-\.?\d')
_FILE_NAME = re.compile(r'.*(\.[A-Za-z]\w*|[*?/].*)')
_CHOICE = re.compile(r"argument .*?: invalid choice: '(?P<word>.*?)' "
                     r'\(choose from (?P<known>.*)\)')
_UNKNOWN = 'unrecognized arguments: '


class _WrongUsageError(Exception):
    """A command line that cannot be parsed; its text is the reason."""


class Version(argparse.Action):
    """Print the version, and end; a failure is an OSError."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print_output(str(self.const))
        parser.exit()


class Parser(argparse.ArgumentParser):
    """Parse arguments; an error is one line that begins with ``error:``."""

    # explain: returns what an unknown option is now, ``''`` for no option of an earlier version,
    # from the option, its values, and the names of all that is declared.

    def __init__(self, **options: Any) -> None:  # noqa: ANN401
        self._positional: dict[str, str] = {}
        self._declared: set[str] = set()
        super().__init__(**{'formatter_class': partial(
            argparse.RawDescriptionHelpFormatter, max_help_position=_OPTION_WIDTH), **options})
        self.explain: Callable[[str, Sequence[str], set[str]], str] = lambda *_: ''

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:  # noqa: ANN401
        action = super().add_argument(*names, **options)
        self._declared.add(action.dest)
        if not action.option_strings:
            word = str(action.metavar or action.dest)
            self._positional[action.dest] = {'+': f'{word} [{word} ...]', '*': f'[{word} ...]',
                                             '?': f'[{word}]'}.get(str(action.nargs), word)
            self.usage = ' '.join(('%(prog)s [options]', *self._positional.values()))
        return action

    def print_help(self, file: Any = None) -> None:  # noqa: ANN401
        """Print the help; a failure is an OSError."""
        print_output(self.format_help(), end='')

    def error(self, message: str) -> NoReturn:
        """Raise an error that :meth:`parse` may answer with another reading of the words."""
        raise _WrongUsageError(message)

    def end(self, message: str, words: Sequence[str] = ()) -> NoReturn:
        """End the program with the exit code of wrong usage, after a line about ``words``."""
        known: Sequence[str] = ()
        if match := _CHOICE.fullmatch(message):
            word, known = match['word'], re.findall(r"[^\s',]+", match['known'])
        elif message.startswith(f'{_UNKNOWN}-'):
            word = message.removeprefix(_UNKNOWN).partition(' ')[0]
            values = [*takewhile(lambda value: not _is_option(value),
                                 words[words.index(word) + 1:])] if word in words else []
            word, has_value, value = word.partition('=')
            if text := self.explain(word, [value] if has_value else values, self._declared):
                message, word = text, ''
            elif word.startswith('--'):
                known = re.findall(r'--(\w[\w-]*)', self.format_help())
        if known and (likely := nearest(word.removeprefix('--'), known)):
            message += f'; did you mean {"--" if word.startswith("--") else ""}{likely}?'
        print_line(f'error: {self.prog}: {shortened(message, _MAX_MESSAGE)} '
                   f'(see {self.prog} --help)')
        self.exit(WRONG_USAGE)

    def parse_program(self, words: Sequence[str]) -> NoReturn:
        """Show the help or the version, or end the program: no command is the first word."""
        try:
            self.parse_args(words)
        except _WrongUsageError as error:
            self.end(str(error))
        self.end('expected a command as the first word')

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """
        Parse the words of a command; ``given`` has the names of the options among them.

        An option with several values takes all words up to the next option. If others are
        missing then, it gives its last ones back.
        """
        messages = []
        for candidate in _readings(words):
            try:
                return self._parsed(candidate)
            except _WrongUsageError as error:
                messages.append(str(error))
        return self.end(messages[0], words)

    def _parsed(self, words: Sequence[str]) -> argparse.Namespace:
        args = self.parse_intermixed_args(words)
        # Again, with None for the defaults.
        known = self.parse_intermixed_args(words, argparse.Namespace(**dict.fromkeys(vars(args))))
        args.given = frozenset(name for name, value in vars(known).items()
                               if value is not None and name not in self._positional)
        check: Callable[[argparse.Namespace], str] = vars(args).pop('check', lambda args: '')
        if text := check(args):
            self.error(text)
        return args


def _readings(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the words, then each order in which one or two options give back their last values."""
    yield [*words]
    if '--' in words:
        return
    starts = [i for i, word in enumerate(words) if _is_option(word)]
    # Beginnings and ends of what may be given back; an option keeps one value at least. First
    # those that leave no file to the option.
    spans = [[(i, end) for i in sorted(range(end - 1, start + 1, -1), key=lambda i: _is_file(
        words[i - 1]))] for start, end in pairwise([*starts, len(words)])]
    spans = [span for span in reversed(spans) if span]
    pairs = (((first, second) for first, second in product(one, other))
             for other, one in combinations(spans, 2))
    for back in islice(chain(((part,) for span in spans for part in span), *pairs), _MAX_READINGS):
        moved = [word for i, end in sorted(back) for word in words[i:end]]
        kept = {k for i, end in back for k in range(i, end)}
        yield [*(word for k, word in enumerate(words) if k not in kept), '--', *moved]


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith('-') and not _NUMBER.match(word)


def _is_file(word: str) -> bool:
    return os.path.exists(word) or _FILE_NAME.fullmatch(word) is not None
