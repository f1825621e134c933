# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Parameters of a command: those that are given, and those of them that nothing has read."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from state_sensor_ros.commands.printing import print_line
from state_sensor_ros.errors import UsageError
from state_sensor_ros.parameters import LIVE, NODE, Value
from state_sensor_ros.ros.parameter_file import names_in, parameters_of, read_parameter_file
from state_sensor_ros.settings import DEFAULTS, ParameterTable, Settings
from state_sensor_ros.simulators.simulator_list import (
    checked_settings,
    schema_of,
    with_config_file,
)

# Parameters that are options of some commands; -p is another way to give these.
_OF_STREAMS = ('source', 'host', 'port')
_OPTIONS = (*_OF_STREAMS, 'desired_tags', 'undesired_tags')
_IN_SETTINGS = ('ego_tag', 'outputs')
# Parameters of the node in a file that are no settings.
_OF_ROS = ('qos_overrides.', 'actor_qos.', 'use_sim_time')
UNUSED = 'warning: given and not used: '
_FORMER = {'--help-all': '--help and `state_sensor parameters`', '--parameter': '-p'}


def take_parameters(args: argparse.Namespace) -> None:
    """
    Check the parameters of a command line, and set options that are parameters, too.

    Afterward, ``parameters`` of the options is a list of pairs of a name and a value.
    """
    texts, args.parameters, args.stream_parameters = args.parameters, [], []
    if not texts and not args.params_files:
        return
    given = dict(text.split(':=', 1) for text in texts)
    if 'source' in given and hasattr(args, 'source'):
        _set_option(args, 'source', given.pop('source'))
        args.stream_parameters.append('source')
    # Added simulators are searched for if need be.
    schema = schema_of(getattr(args, 'source', DEFAULTS.source))
    if args.params_files or not all(map(schema.has, given)):
        schema = schema_of(getattr(args, 'source', DEFAULTS.source), with_added=True)
    values: dict[str, Value] = {}
    for path in args.params_files:
        values |= _values_in(path, args, schema)
    values |= {name: schema.find(name).parsed(text) for name, text in given.items()}
    for name, value in values.items():
        plain = list(value) if isinstance(value, tuple) else value
        if name in _OPTIONS and hasattr(args, name):
            _set_option(args, name, plain)
            if name in _OF_STREAMS:
                args.stream_parameters.append(name)
        elif name in _IN_SETTINGS and name in args.given:
            raise _given_twice(name)
        else:
            args.parameters.append([name, plain])


def _set_option(args: argparse.Namespace, name: str, value: object) -> None:
    if name in args.given:
        raise _given_twice(name)
    setattr(args, name, value)


def _given_twice(name: str) -> UsageError:
    return UsageError(f'-p {name} and --{name.replace("_", "-")} are both given; leave one of '
                      'them out')


def _values_in(path: str, args: argparse.Namespace, schema: ParameterTable) -> dict[str, Value]:
    content = read_parameter_file(path, '--params-file')
    node = '/'.join(('', *filter(None, getattr(args, 'namespace', '/').split('/')),
                     getattr(args, 'name', '') or 'state_sensor'))
    found = parameters_of(content, node)
    if found is None:
        print_line(f'warning: --params-file {path}: its parameters are not used: the node is '
                   f'{node}, the file has {", ".join(names_in(content))}')
    values = {name: schema.find(name).checked(value) for name, value in _flat(found or {}).items()
              if not name.startswith(_OF_ROS)}
    return {name: value for name, value in values.items() if value != schema.find(name).default
            and name not in args.given}


def _flat(values: Mapping[str, object], prefix: str = '') -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in values.items():
        found |= _flat(value, f'{prefix}{key}.') if isinstance(value, dict) \
            else {f'{prefix}{key}': value}
    return found


def settings_of(args: argparse.Namespace, *, is_live: bool = False,
                own: Mapping[str, object] | None = None) -> Settings:
    """Return the settings of a command, which note what is read of the given parameters."""
    given = dict(args.parameters)
    if is_live:
        args.stream_parameters = []
    options = {name: value for name in _IN_SETTINGS
               if (value := getattr(args, name, None)) is not None}
    if 'outputs' in options:
        options['outputs'] = [item for text in options['outputs'] for item in text.split(',')
                              if item]
    source = args.source if is_live else DEFAULTS.source
    schema = schema_of(source, with_added=bool(given))
    # Those of other runs are not checked against each other.
    others = {NODE} if is_live else {NODE, LIVE}
    used = [name for name in given if schema.find(name).rule.used_by not in others]
    values = {**(own or {}), **options, **{name: given[name] for name in used}}
    if is_live:
        values = with_config_file({'source': source, **values})
    settings = checked_settings(values, with_added=bool(given))
    if not given:
        return settings
    if not hasattr(args, 'unread'):
        args.unread = dict.fromkeys(given)
    return schema.watched(settings, used, lambda name: args.unread.pop(name, None))


def warn_of_unused(args: argparse.Namespace) -> None:
    """Name the parameters that are given and that nothing has read, in one line."""
    unread = [*getattr(args, 'unread', dict(args.parameters)), *args.stream_parameters]
    if unread:
        print_line(UNUSED + ', '.join(f'-p {name}' for name in unread))


def present_spelling(option: str, values: Sequence[str], options: set[str]) -> str:
    """Return what an option of an earlier version is now, ``''`` if there was none."""
    # options: names of the command's own; it uses parameters if one is a parameter, too.
    if option in _FORMER:
        return f'{option} is now {_FORMER[option]}'
    if options.isdisjoint((*_OPTIONS, *_IN_SETTINGS)):
        return ''
    schema, name = schema_of(with_added=True), option.removeprefix('--').replace('-', '_')
    for candidate in (name, name.replace('_', '.', 1), name.removeprefix('no_')):
        if option.startswith('--') and schema.has(candidate):
            declared = schema.find(candidate)
            text = values[0] if values else 'VALUE'
            if declared.type is bool:
                text = 'false' if name == f'no_{candidate}' else 'true'
            elif declared.item is not None:
                text = f'[{", ".join(values[:declared.rule.length])}]'
            return f'{option} is now -p {declared.name}:={text}'
    return ''
