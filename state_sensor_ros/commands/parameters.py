# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor parameters`: the parameters of the node and of commands, as they are declared."""

from __future__ import annotations

import argparse
import textwrap
from typing import get_args

from state_sensor_ros.commands.options import completed_by
from state_sensor_ros.commands.terminal import print_output
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.parameters import as_yaml, nearest, Parameter
from state_sensor_ros.simulators import schema_of

_WIDTH = 100
_EPILOG = """Set a parameter with -p NAME:=VALUE or --params-file FILE; for the node, after
--ros-args. Those marked (D) may change while the node runs.

examples:
  state_sensor parameters
  state_sensor parameters control
  state_sensor parameters ego_tag"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    completed_by(parser.add_argument(
        'name', metavar='NAME', nargs='?', default='',
        help='parameter, or group of parameters (default: all)'), 'subjects')


def run(args: argparse.Namespace) -> None:
    """Print the parameters that are named."""
    schema = schema_of(with_added=True)
    groups = schema.by_subject()
    if args.name in groups:
        groups = {args.name: groups[args.name]}
    elif schema.has(args.name):
        groups = {'': [schema.find(args.name).name]}
    elif args.name:
        known = (*groups, *schema.names)
        raise ConfigError(args.name, 'no parameter or group of this name; the nearest is '
                          f'{nearest(args.name, known, 0.0)}')
    lines: list[str] = []
    for group, names in groups.items():
        lines += ['', f'{group}:'] if group else ['']
        for name in names:
            lines += _described(schema.find(name))
    print_output('\n'.join(lines[1:]))


def _described(parameter: Parameter) -> list[str]:
    """Return name, type and default of a parameter, and below them its text and values."""
    rule, items = parameter.rule, get_args(parameter.type)
    type_name = f'list of {items[0].__name__}' if items else parameter.type.__name__
    text = rule.help
    if rule.choices:
        text += f' One of {", ".join(filter(None, rule.choices))}.'
    elif rule.low is not None and rule.high is not None:
        text += f' From {rule.low:.12g} to {rule.high:.12g}.'
    if rule.dynamic:
        text += ' (D)'
    return [f'  {parameter.name} ({type_name}): {as_yaml(parameter.default)}',
            *textwrap.wrap(text, _WIDTH, initial_indent='    ', subsequent_indent='    ')]
