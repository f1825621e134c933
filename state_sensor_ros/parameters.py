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
Parameters: how one is declared, and the checks of its values.

A class of parameters is a frozen dataclass whose fields are made by :func:`parameter`. The driver
has one, and each simulator may have one for what only it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
import math
import re
from typing import Any, cast, get_args, get_type_hints, TypeAlias

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.texts import counted, listed

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | tuple[float, ...]
_MAX_NEAR = 5


@dataclass(frozen=True, slots=True)
class Rule:
    """The rules for the values of a parameter."""

    help: str  # one line
    low: float | None = None  # inclusive bounds of a number
    high: float | None = None
    choices: tuple[str, ...] = ()  # values of a string, or of each item of a list
    is_open: bool = False  # whether other packages may add choices
    length: int | None = None  # of an array
    pattern: re.Pattern[str] | None = None  # of a string
    dynamic: bool = False  # whether it may change while the node runs
    may_be_nan: bool = False  # whether NaN is allowed, for a number that is then computed
    # Packages of ROS messages that the node needs for a value or an item of a list, by its text,
    # and those of Python that a simulator needs; '' stands for any other value.
    messages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    subject: str = ''  # heading over it and the parameters after it


def parameter(default: Value, help: str, **rule: Any) -> Any:  # noqa: A002, ANN401
    """
    Describe a field of a class of parameters.

    :param default: value of the type of the field: bool, int, float, str, or a tuple of float or
        str.
    :param help: one line with the unit, ending with a full stop.
    :param rule: other members of :class:`Rule`.
    """
    return field(default=default, metadata={'rule': Rule(help, **rule)})


@dataclass(frozen=True, slots=True)
class Parameter:
    """One declared parameter."""

    name: str  # with the prefix of its simulator, if any
    type: Any  # such as ``int`` or ``tuple[str, ...]``
    default: Value
    rule: Rule
    owner: type  # the class that declares it
    attribute: str  # its field there

    @property
    def item(self) -> type | None:
        """Type of the items of a list, None if the value is not a list."""
        items = get_args(self.type)
        return cast(type, items[0]) if items else None

    def packages(self, value: Value) -> list[tuple[str, str]]:
        """
        Return the packages that a value needs, of messages and of Python.

        :param value: value of this parameter.
        :returns: for each package, the value or the item that needs it, and its name.
        """
        items = [str(item) for item in (value if isinstance(value, tuple) else (value,))]
        return [(item, package) for packages in (self.rule.messages, self.rule.libraries)
                for item in items for package in packages.get(item, packages.get('', ()))]

    def checked(self, value: object) -> Value:
        """
        Return a value in the type of this parameter.

        :param value: lists and arrays are taken as tuples, integers as floats.
        :raises ConfigError: naming the parameter, the value and what is allowed.
        """
        rule, item = self.rule, self.item
        if item is None:
            return cast(Value, self._checked(value, self.type))
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ConfigError(self.name, repr(value), 'a list')
        # An empty list of YAML has no type of items: a list of '' stands for it.
        items = tuple(self._checked(each, item, 'a list in which each item is ')
                      for each in value if not (rule.choices and each == ''))
        if rule.length is not None and len(items) != rule.length:
            raise ConfigError(self.name, counted(len(items), 'item'),
                              f'{rule.length} items: {rule.help}')
        return cast(Value, items)

    def _checked(self, value: Any, kind: type, what: str = '') -> object:  # noqa: ANN401
        """Return a single value or an item of a list; ``what`` precedes the expected type."""
        rule = self.rule
        if type(value) is int and not -2**63 <= value < 2**63:
            raise ConfigError(self.name, 'an integer beyond 64 bits', 'one within them')
        if kind is float and type(value) is int:
            value = float(value)
        expected = ''
        if type(value) is not kind:
            expected = what + _KINDS[kind]
            if self.type is str:
                # ROS reads an id such as 0 as a number.
                expected += f'; quote it: -p "{self.name}:=\'{value}\'"'
        elif kind is str:
            if rule.choices and not rule.is_open and value not in rule.choices:
                expected = f'one of {", ".join(choice or repr("") for choice in rule.choices)}'
            elif rule.pattern is not None and not rule.pattern.fullmatch(value):
                expected = f'text that matches {rule.pattern.pattern}'
        elif rule.may_be_nan and value != value:
            # One object for all NaN: tuples compare equal by identity.
            return math.nan
        elif not math.isfinite(value):
            expected = 'a finite number'
        elif not (-math.inf if rule.low is None else rule.low) <= value <= (
                math.inf if rule.high is None else rule.high):
            expected = f'{_bounds(rule)}: {rule.help}'
        if expected:
            raise ConfigError(self.name, repr(value), expected)
        return value

    def parsed(self, text: str) -> Value:
        """
        Return the value in a text, as ROS reads it from ``-p NAME:=TEXT``.

        :param text: value; a list is ``[A, B]``, and quotes around a text may be omitted.
        :raises ConfigError: naming the parameter, the text and what is allowed.
        """
        if self.item is None:
            return self.checked(_scalar(text, self.type))
        inner = text.strip()
        if not (inner.startswith('[') and inner.endswith(']')):
            raise ConfigError(self.name, repr(text), 'a list, such as [a, b]')
        return self.checked([_scalar(part, self.item)
                             for part in inner[1:-1].split(',') if part.strip()])


# What is expected of a value, by its type.
_KINDS: dict[type, str] = {bool: 'true or false', int: 'a whole number', float: 'a number',
                           str: 'text'}


def _scalar(text: str, kind: type) -> object:
    """Return the value of a type in ``text``, or the text itself, which is refused."""
    text = text.strip()
    if kind is str:
        return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in '\'"' else text
    if kind is bool:
        return {'true': True, 'false': False}.get(text.lower(), text)
    try:
        return int(text) if kind is int else float(text.replace('.nan', 'nan'))
    except ValueError:
        return text


def _bounds(rule: Rule) -> str:
    if rule.low is None or rule.high is None:
        return f'at least {rule.low:g}' if rule.high is None else f'at most {rule.high:g}'
    return f'{rule.low:.12g} to {rule.high:.12g}'


def parameters_in(owner: type, prefix: str = '') -> dict[str, Parameter]:
    """
    Return the parameters of a class, by name.

    :param owner: dataclass; fields that :func:`parameter` did not make are ignored.
    :param prefix: prefix of their names, such as ``toy.``.
    """
    hints = get_type_hints(owner)
    return {f'{prefix}{item.name}': Parameter(
        f'{prefix}{item.name}', hints[item.name], cast(Value, item.default),
        item.metadata['rule'], owner, item.name)
        for item in fields(owner) if 'rule' in item.metadata}


def did_you_mean(wanted: Iterable[str], known: Iterable[str], least: float = 0.6) -> str:
    """
    Return the known names that are nearest to unknown ones, as the end of a line.

    >>> did_you_mean(['hreo'], ['car', 'hero'])
    "; did you mean 'hero'?"
    >>> did_you_mean(['25'], ['car_125', 'car_25'])
    "; did you mean 'car_25'?"

    :param least: least similarity, 0 to 1.
    :returns: ``''`` if none is similar.
    """
    names = sorted(set(known))
    near = dict.fromkeys(name for word in wanted for name in (
        [name for name in names if name.endswith((f'_{word}', f'.{word}'))]
        or get_close_matches(word, names, 1, least)
        or get_close_matches(word.lower(), names, 1, least)))
    return f'; did you mean {" or ".join([*map(repr, near)][:_MAX_NEAR])}?' if near else ''


def near_names(wanted: Iterable[str], known: Iterable[str]) -> str:
    """
    Return the known names that are nearest to unknown ones, or all of them if none is similar.

    >>> near_names(['x'], ['car', 'hero'])
    '; there are car, hero'
    >>> near_names(['wall'], ['hero', 'wall'])
    '; there are hero'
    """
    words = list(wanted)
    names = sorted({*known}.difference(words))
    return did_you_mean(words, names) or (
        f'; there are {listed(names, _MAX_NEAR)}' if names else '')


def as_yaml(value: Value) -> str:
    """
    Return a value of a parameter as YAML.

    :param value: value of a field of :class:`Settings`.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f'[{", ".join(map(as_yaml, value))}]'
    if value != value:
        return '.nan'
    # Without a point, YAML 1.1 reads 1e-09 as text.
    return re.sub(r'^(\d+)e', r'\1.0e', str(value)) if isinstance(value, float) \
        else str(value) or "''"
