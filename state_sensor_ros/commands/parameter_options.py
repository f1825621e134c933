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
from collections.abc import Container, Iterable, Sequence
from typing import cast

from state_sensor_ros.commands.help_page import metavar_of
from state_sensor_ros.commands.help_page import NODE as NODE_TITLE
from state_sensor_ros.errors import UsageError
from state_sensor_ros.parameters import (
    LIVE,
    MESSAGES,
    NODE,
    Parameter,
    READING,
    RECEIVING,
    Rule,
    STREAM,
)
from state_sensor_ros.settings import DEFAULTS, NAMES, rule_of, Settings
from state_sensor_ros.simulators.simulator_list import checked_settings, schema_of


def parameters_that_affect(what: str) -> tuple[str, ...]:
    """
    Return the names of simulator parameters that are options of a command.

    :param what: STREAM or MESSAGES.
    """
    schema = schema_of()
    return tuple(name for name in schema.names if name not in NAMES
                 and schema.find(name).rule.affects == what)


# Parameters of simulators that are options of commands which read a stream or a recording.
STREAM_PARAMETERS = parameters_that_affect(STREAM)
# Those of them that a recording of their simulator uses, too.
RECORDED_PARAMETERS = frozenset(
    name for name in STREAM_PARAMETERS if schema_of().find(name).rule.used_by != LIVE)


def options_in(run: str) -> tuple[str, ...]:
    """
    Return the names of the parameters that are options in some runs of commands.

    :param run: READING, RECEIVING, WRITING or EVALUATING.
    """
    schema = schema_of()
    more = STREAM_PARAMETERS if run == RECEIVING else ()
    return tuple(name for name in schema.names
                 if run in schema.find(name).rule.runs or name in more)


# Parameters of what reads recordings; the second ones have an effect on those of every format.
READING_PARAMETERS = options_in(READING)
ALWAYS_READ = frozenset(name for name in READING_PARAMETERS if not rule_of(name).readers)


def option_of(name: str) -> str:
    """
    Return a name as an option of the command line.

    :param name: name of the parsed option, or of a parameter.
    """
    return f'--{name.replace("_", "-")}'


def typed(args: argparse.Namespace, name: str) -> str:
    """
    Return an option as the command line has it: `--no-legend` for a switch that is off.

    :param args: the parsed options.
    :param name: name of one that is given.
    """
    option = option_of(name)
    return option if getattr(args, name, None) is not False else f'--no-{option[2:]}'


def add_parameters(parser: argparse.ArgumentParser, names: Sequence[str],
                   title: str = NODE_TITLE) -> None:
    """
    Add an option for each parameter, such as ``--ego-tag`` for ``ego_tag``.

    :param parser: parser of a sub-command.
    :param names: names of parameters of the driver or of a simulator of this package.
    :param title: heading of these options in the help.
    """
    group = parser.add_argument_group(title)
    schema = schema_of()
    for name in names:
        parameter = schema.find(name)
        rule, item = parameter.rule, parameter.item
        aliases = [alias for alias, target in schema.aliases.items() if target == name]
        options = [option_of(option) for option in (name, *aliases)]
        help_ = _help_of(parameter)
        if item and rule.length:
            group.add_argument(*options, dest=name, nargs=rule.length, type=item, metavar='X',
                               help=help_)
        elif item:
            group.add_argument(*options, dest=name, nargs='+', action='extend', type=item,
                               metavar='X' if item is float else 'TEXT', help=help_)
        elif parameter.type is bool:
            group.add_argument(*options, dest=name, action=argparse.BooleanOptionalAction,
                               default=None, help=help_)
        else:
            group.add_argument(*options, dest=name, type=parameter.type, help=help_,
                               choices=rule.choices or None,
                               metavar=None if rule.choices else metavar_of(name))


def parameters_taken(parser: argparse.ArgumentParser, *,
                     with_added: bool = False) -> dict[str, list[argparse.Action]]:
    """
    Return the parameters that a command takes, by subject, as options.

    :param parser: parser of a sub-command that has ``-p``.
    :param with_added: see :func:`schema_of`.
    """
    schema, own = schema_of(with_added=with_added), {
        action.dest: action for action in parser._actions}
    return {subject: actions for subject, names in schema.by_subject().items() if (actions := [
        own[name] if name in own and name != 'rate' else _as_option(schema.find(name))
        for name in names if _is_taken(schema.find(name), own)])}


def _is_taken(parameter: Parameter, own: Container[str]) -> bool:
    """Return whether a command with the options ``own`` takes a parameter, in some runs."""
    rule, name, is_live = parameter.rule, parameter.name, 'config_file' in own
    if name in NAMES:
        return (name in own and name != 'rate') or (is_live and is_received(rule)) or (
            rule.affects == MESSAGES and 'outputs' in own)
    return rule.affects != NODE and (rule.used_by != LIVE or is_live) and (
        rule.affects != MESSAGES or 'outputs' in own)


def is_received(rule: Rule) -> bool:
    """Return whether a parameter has an effect on how frames of a live stream are received."""
    return rule.selected or (rule.used_by, rule.affects) == (LIVE, STREAM)


def _as_option(parameter: Parameter) -> argparse.Action:
    """Return a parameter without an option of its own in the spelling of one."""
    name, value = parameter.name, metavar_of(parameter.name)
    option, value = (option_of(name), value) if '.' in name else ('-p', f'{name}:={value}')
    return argparse.Action([option], name, metavar=value, help=_help_of(parameter))


def add_any_parameter(parser: argparse.ArgumentParser) -> None:
    """Add ``-p`` to ``parser``, for commands that use parameters of the node."""
    parser.add_argument('-p', '--parameter', action='append', default=[], type=_assignment,
                        metavar='NAME:=VALUE',
                        help='set a parameter of the node or of a simulator; repeatable')


def _assignment(text: str) -> str:
    if ':=' not in text:
        raise argparse.ArgumentTypeError(f'found {text}; expected NAME:=VALUE')
    return text


def given_parameters(args: argparse.Namespace, names: Sequence[str],
                     source: str = DEFAULTS.source, *,
                     with_added: bool = False) -> dict[str, object]:
    """
    Return the parameters that the command line gives.

    :param args: the parsed options.
    :param names: names given to :func:`add_parameters`.
    :param source: the selected simulator.
    :param with_added: see :func:`schema_of`.
    :raises ConfigError: naming the parameter, the value and what is allowed.
    """
    schema = schema_of(source, with_added=with_added)
    given = {name: _items(schema.find(name), getattr(args, name)) for name in names
             if getattr(args, name) is not None}
    for text in getattr(args, 'parameter', ()):
        name, _, value = text.partition(':=')
        given[name] = schema.find(name).parsed(value)
    return given


def parameter_names(args: argparse.Namespace) -> list[str]:
    """Return the names in the options ``-p`` of ``args``, the parsed options."""
    return [text.partition(':=')[0] for text in getattr(args, 'parameter', ())]


def refuse_wrong_names(args: argparse.Namespace) -> None:
    """
    Refuse a parameter that there is not, or that both ``-p`` and an option of its own give.

    :param args: the parsed options.
    :raises ConfigError: naming the first that there is not, and the nearest one.
    :raises UsageError: naming the first that is given twice.
    """
    names = parameter_names(args)
    schema = schema_of()
    if not all(schema.has(name) for name in names):
        # Added simulators are searched for if need be.
        schema = schema_of(with_added=True)
    for name in names:
        target = schema.find(name).name
        # The option --rate differs from the parameter.
        if target in args.given - {'rate'}:
            raise UsageError(f'-p {name} is given beside {option_of(target)}; expected one of '
                             'them')


def with_parameters(words: Sequence[str], known: Container[str]) -> list[str]:
    """
    Return the words of a command line with ``-p toy.speed:=2`` in place of ``--toy.speed 2``.

    :param words: words of the command line.
    :param known: options that the command has itself.
    """
    found: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == '--':
            return [*found, word, *rest]
        option, has_value, value = word.partition('=')
        parameter = _parameter_of(option) if option not in known else None
        if parameter is None:
            found.append(word)
            continue
        if parameter.type is bool and not has_value:
            value = str(not option.startswith('--no-')).lower()
        elif not has_value:
            if not rest:
                raise UsageError(f'{option} needs a value')
            value = rest.pop(0)
        found += ['-p', f'{parameter.name}:={value}' if parameter.item is None
                  else f'{parameter.name}:=[{value}]']
    return found


def options_of_simulators() -> list[str]:
    """Return the options that :func:`with_parameters` replaces."""
    return [option_of(name) for name in schema_of(with_added=True).names if '.' in name]


def _parameter_of(option: str) -> Parameter | None:
    """Return the parameter of a simulator that an option such as ``--toy.speed`` names."""
    if not option.startswith('--') or '.' not in option:
        return None
    name = option[2:].replace('-', '_')
    for with_added in (False, True):
        schema = schema_of(with_added=with_added)
        for candidate in (name, name.removeprefix('no_')):
            if schema.has(candidate) and '.' in candidate:
                return schema.find(candidate)
    return None


def texts_given(args: argparse.Namespace, name: str) -> tuple[str, ...]:
    """
    Return the texts of a parameter that is a list, from its option or from ``-p``.

    :param args: the parsed options; its own option has a list.
    :param name: name of a parameter of the driver.
    :raises ConfigError: naming the parameter, the value and what is allowed.
    """
    values = [text.partition(':=')[2] for text in getattr(args, 'parameter', ())
              if text.startswith(f'{name}:=')]
    return tuple(cast('Iterable[str]', schema_of().find(name).parsed(values[-1]) if values
                      else getattr(args, name)))


def settings_of(args: argparse.Namespace, names: Sequence[str]) -> Settings:
    """
    Return the settings with the values of the command line.

    :param args: the parsed options.
    :param names: names given to :func:`add_parameters`.
    :raises ConfigError: naming the parameter, the value and what is allowed.
    """
    # The simulator of a recording is not known before it is opened.
    with_added = bool(getattr(args, 'parameter', ()))
    return checked_settings(given_parameters(args, names, with_added=with_added),
                            with_added=with_added)


def _items(parameter: Parameter, value: object) -> object:
    """Return the items of a list of choices, which may be separated by commas."""
    if not (isinstance(value, list) and parameter.rule.choices):
        return value
    return [item for text in value for item in text.split(',') if item]


def _help_of(parameter: Parameter) -> str:
    return f'{parameter.rule.help} (default: {_shown(parameter.default)})'.replace('%', '%%')


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return 'yes' if default else 'no'
    if isinstance(default, tuple):
        return ' '.join(str(item) for item in default) or 'none'
    return str(default) if default != '' else 'none'
