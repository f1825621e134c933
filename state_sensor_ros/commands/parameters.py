# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""
`state_sensor parameters`, and the parameters of a command line: -p, files, options of their names.

Parameters are listed as they are declared.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
import re
import textwrap
from typing import Any, get_args

from state_sensor_ros.commands.options import completed_by, parameter_names
from state_sensor_ros.commands.terminal import print_line, print_output
from state_sensor_ros.errors import ConfigError, reason_of, UsageError
from state_sensor_ros.parameters import as_yaml, did_you_mean, Parameter, Value
from state_sensor_ros.settings import DEFAULTS
from state_sensor_ros.simulators import schema_for, schema_of
from state_sensor_ros.texts import one_line, shortened, size

_WIDTH = 100
_EPILOG = """Set a parameter with -p NAME:=VALUE or --params-file FILE; for the node, after
--ros-args. Those marked (D) may change while the node runs.

examples:
  state_sensor parameters
  state_sensor parameters control
  state_sensor parameters ego_tag"""
# Options that are parameters, too.
_OPTIONS = ('source', 'host', 'port', 'desired_tags', 'undesired_tags', 'ego_tag', 'outputs')
# Parameters of the node in a file that are no settings.
_OF_ROS = ('qos_overrides.', 'use_sim_time')
_LAYOUT = 'NODE_NAME:, below it ros__parameters:, below it NAME: VALUE'
# That of a node with every parameter has 10 kB; a recording would be parsed for a minute.
_MAX_BYTES = 1_000_000


def add_parameters(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('name', metavar='NAME', nargs='?', default='',
                        help='parameter, or group of parameters (default: all)')


def run_parameters(args: argparse.Namespace) -> None:
    """Print the parameters that are named."""
    schema = schema_of(with_added=True)
    groups = schema.by_subject()
    if args.name in groups:
        groups = {args.name: groups[args.name]}
    elif schema.has(args.name):
        groups = {'': [schema.find(args.name).name]}
    elif args.name:
        raise ConfigError(args.name, 'no parameter or group of this name'
                          + did_you_mean([args.name], (*groups, *schema.names), 0.0))
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


def add_assignments(parser: argparse.ArgumentParser) -> None:
    """Add the options that set parameters to ``parser``, for every command."""
    group = parser.add_argument_group('parameters')
    completed_by(group.add_argument(
        '-p', dest='parameters', action='append', default=[], type=_assignment,
        metavar='NAME:=VALUE',
        help='set a parameter (`state_sensor parameters`); repeatable'), parameter_names)
    group.add_argument('--params-file', dest='params_files', action='append', default=[],
                       metavar='FILE', help='set the parameters in a YAML file; repeatable')


def _assignment(text: str) -> tuple[str, str]:
    name, mark, value = text.partition(':=')
    if not mark:
        raise argparse.ArgumentTypeError(f'found {text}; expected NAME:=VALUE')
    return name, value


def take_parameters(args: argparse.Namespace) -> None:
    """
    Check the parameters of a command line, set by options, -p, or files in this order.

    Afterward, ``values`` has all of them by name, and options that are parameters have theirs.
    """
    if hasattr(args, 'values'):
        # Of a job of a batch.
        return
    # The port of `simulate` is the one on which it serves.
    own = [name for name in _OPTIONS if hasattr(args, name)
           and (name != 'port' or hasattr(args, 'host'))]
    given = {name: value for name in own if (value := getattr(args, name)) not in (None, [])}
    if given.get('source') == DEFAULTS.source:
        del given['source']
    texts: dict[str, str] = dict(args.parameters)
    if both := given.keys() & texts.keys():
        raise UsageError(f'-p {min(both)} and --{min(both).replace("_", "-")} are both given; '
                         'leave one of them out')
    found = {name: value for path in args.params_files
             for name, value in _values_in(path, args).items()}
    source = given.get('source') or texts.get('source') or found.get('source') or DEFAULTS.source
    schema = schema_for([*found, *texts, *given], str(source))
    values: dict[str, Value] = {
        **{name: schema.find(name).checked(value) for name, value in found.items()},
        **{name: schema.find(name).parsed(text) for name, text in texts.items()},
        **{name: schema.find(name).checked(value) for name, value in given.items()}}
    for name in own:
        if name in values:
            value = values[name]
            setattr(args, name, list(value) if isinstance(value, tuple) else value)
    args.values = values


def _values_in(path: str, args: argparse.Namespace) -> dict[str, object]:
    content = read_parameter_file(path, '--params-file')
    node = getattr(args, 'name', '') or '/state_sensor'
    found = parameters_of(content, node)
    if found is None:
        print_line(f'warning: --params-file {path}: its parameters are not used: the node is '
                   f'{node}, the file has ' + ', '.join(name for name, _ in _parts(content, '')))
    return {name: value for name, value in _flat(found or {}).items()
            if not name.startswith(_OF_ROS)}


def _flat(values: Mapping[str, object], prefix: str = '') -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in values.items():
        found |= _flat(value, f'{prefix}{key}.') if isinstance(value, dict) \
            else {f'{prefix}{key}': value}
    return found


def read_parameter_file(path: str | Path, option: str) -> object:
    """Return the content of a file of parameters, which ``option`` names."""
    path = Path(path)
    if not path.is_file():
        raise ConfigError(option, f'there is no file {path}')
    if (n_bytes := path.stat().st_size) > _MAX_BYTES:
        raise ConfigError(f'{option} {path}', f'a file of {size(n_bytes)}',
                          f'parameters, at most {size(_MAX_BYTES)}: {_LAYOUT}')
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    reader = YAML(typ='safe', pure=True)
    # As rcl reads it; the last of equal keys counts.
    reader.version = (1, 1)
    reader.allow_duplicate_keys = True
    try:
        text = path.read_bytes()
        refuse_aliases(reader.parse(text))
        content: object = reader.load(text)
    except OSError as error:
        raise ConfigError(f'{option} {path}', reason_of(error)) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f'{option} {path}', one_line(str(error)), 'YAML') from error
    if next(_parts(content, ''), None) is None:
        raise ConfigError(f'{option} {path}', 'a file without parameters', _LAYOUT)
    return content


def refuse_aliases(events: Iterable[Any]) -> None:
    """
    Refuse aliases in YAML, as rcl does: a few lines of them stand for more than any memory.

    :param events: those that a parser of YAML yields.
    :raises ValueError: naming the alias and its line.
    """
    for event in events:
        if type(event).__name__ == 'AliasEvent':
            raise ValueError(f'the alias *{event.anchor}, as which ROS reads no value, in line '
                             f'{event.start_mark.line + 1}')


def parameters_of(content: object, node: str) -> dict[str, Any] | None:
    """
    Return the parameters that a file gives to a node, None if it does not name the node.

    :param content: of the file.
    :param node: full name; names in the file may have the wildcards ``*`` and ``**``.
    :raises ConfigError: if they are anything but names and values.
    """
    found: dict[str, Any] | None = None
    for name, value in _parts(content, ''):
        pattern = re.escape(name).replace(r'/\*\*', '(/.*)?').replace(r'\*', '[^/]*')
        if re.fullmatch(pattern, node):
            if not isinstance(value, dict | None):
                raise ConfigError(f'{name}: ros__parameters', shortened(repr(value)), _LAYOUT)
            found = {**(found or {}), **(value or {})}
    return found


def _parts(content: object, name: str) -> Iterator[tuple[str, object]]:
    for key, value in content.items() if isinstance(content, dict) else ():
        if key == 'ros__parameters':
            yield name, value
        else:
            yield from _parts(value, f'{name}/{str(key).strip("/")}')
