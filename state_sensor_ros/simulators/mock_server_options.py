# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Options of the command `simulate` that have an effect in some of its uses only."""

from __future__ import annotations

import argparse
from collections.abc import Callable

__all__ = ['MockServerOptions', 'whole_number', 'with_file', 'without_file']

# Returns what speaks against an option beside the others, empty where nothing does.
Objection = Callable[[argparse.Namespace], str]


class MockServerOptions:
    """
    A group of options with an objection each; those that are given nevertheless are refused.

    :param parser: of the command.
    :param title: of the group in the help.
    :param objection: to all options of the group.
    """

    def __init__(self, parser: argparse.ArgumentParser, title: str,
                 objection: Objection) -> None:
        self._group = parser.add_argument_group(title)
        self._objection = objection
        self._options: list[tuple[str, str, Objection]] = []

    def add(self, name: str, objection: Objection = lambda args: '',
            **declaration: object) -> None:
        """
        Add an option.

        :param name: with its dashes.
        :param objection: to this option, beside that to the group.
        :param declaration: as ``ArgumentParser.add_argument`` takes it.
        """
        action = self._group.add_argument(name, **declaration)  # type: ignore[arg-type]
        self._options.append((name, action.dest, objection))

    def refused(self, args: argparse.Namespace) -> dict[str, list[str]]:
        """
        Return the names of given options by the objection to them.

        :param args: the parsed options, with ``given``.
        """
        refused: dict[str, list[str]] = {}
        for name, dest, objection in self._options:
            if dest in args.given and (text := self._objection(args) or objection(args)):
                refused.setdefault(text, []).append(name)
        return refused


def without_file(args: argparse.Namespace) -> str:
    """Return the objection to an option of synthetic traffic beside FILE in ``args``."""
    return '' if args.file is None else \
        f'only for synthetic traffic, not for FILE {args.file}'


def with_file(args: argparse.Namespace) -> str:
    """Return the objection to an option of recordings without FILE in ``args``."""
    return '' if args.file else 'requires FILE: synthetic traffic does not end'


def whole_number(text: str, low: int, high: int | None = None) -> int:
    """
    Read the value of an option.

    :param text: decimal digits.
    :param low: the least value.
    :param high: the greatest value, None for no limit.
    :returns: the number.
    :raises ArgumentTypeError: where it is none, or out of the limits.
    """
    if not (text.isascii() and text.removeprefix('-').isdigit()):
        raise argparse.ArgumentTypeError(f'{text!r} is not a whole number')
    value = int(text)
    if value < low or (high is not None and value > high):
        raise argparse.ArgumentTypeError(
            f'{text} is less than {low}' if high is None
            else f'{text} is not between {low} and {high}')
    return value
