# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Parameters of the node as options of a command, with the same names, checks and help."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import get_args

from state_sensor_ros.settings import (
    DEFAULTS,
    parse_settings,
    rule_of,
    Settings,
    type_of,
    value_of,
)


def add_parameters(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """
    Add an option for each parameter, such as ``--ego-tag`` for ``ego_tag``.

    :param parser: of a sub-command.
    :param names: of fields of :class:`Settings`.
    """
    group = parser.add_argument_group('parameters of the node')
    for name in names:
        option, default = f'--{name.replace("_", "-")}', value_of(DEFAULTS, name)
        items = get_args(type_of(name))
        help_ = f'{rule_of(name).help} (default: {_shown(default)})'.replace('%', '%%')
        if items and rule_of(name).length:
            group.add_argument(option, dest=name, nargs=rule_of(name).length, type=items[0],
                               metavar='X', help=help_)
        elif items:
            group.add_argument(option, dest=name, nargs='+', action='extend', type=items[0],
                               metavar='X' if items[0] is float else 'TEXT', help=help_)
        elif type_of(name) is bool:
            group.add_argument(option, dest=name, action=argparse.BooleanOptionalAction,
                               default=None, help=help_)
        else:
            group.add_argument(option, dest=name, type=type_of(name), help=help_,
                               choices=rule_of(name).choices or None)


def settings_of(args: argparse.Namespace, names: Sequence[str]) -> Settings:
    """
    Return the settings with the values of the command line.

    :param args: the parsed options.
    :param names: as given to :func:`add_parameters`.
    :raises ConfigError: naming the parameter, the value and what is allowed.
    """
    return parse_settings({name: _items(name, getattr(args, name)) for name in names
                           if getattr(args, name) is not None})


def _items(name: str, value: object) -> object:
    """Return the items of a list of choices, which may be separated by commas."""
    if not (isinstance(value, list) and rule_of(name).choices):
        return value
    return [item for text in value for item in text.split(',') if item]


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return 'yes' if default else 'no'
    if isinstance(default, tuple):
        return ' '.join(str(item) for item in default) or 'none'
    return str(default) if default != '' else 'none'
