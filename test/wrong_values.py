# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Values that a parameter must refuse, and others that it takes, by its declaration."""

from state_sensor_ros.simulators import schema_of

SCHEMA = schema_of()
_OF_OTHER_TYPES = {bool: (1, 'true'), int: ('many', 1.5, True), float: ('fast', True),
                   str: (7, True)}
# Texts of which each pattern refuses some.
_TEXTS = ('', 'a b', '/a')
# Values that a further rule of their parameter refuses.
_FURTHER = {'base_link_xyz': [[0.0, float('nan'), 0.0]], 'default_sizes': [[1.0] * 20]}
_NOT_FINITE = (float('nan'), float('inf'), -float('inf'))


def _outside(rule, kind):
    """Return values of the type that are out of range, or not among the choices."""
    if kind is str:
        texts = [text for text in _TEXTS if rule.pattern and not rule.pattern.fullmatch(text)]
        return [*texts, *(['', 'sometimes'] if rule.choices else [])]
    step = 1 if kind is int else 0.5
    bounds = [(rule.low, -step), (rule.high, step)] if kind in (int, float) else []
    return [kind(bound + beyond) for bound, beyond in bounds if bound is not None] + (
        [value for value in _NOT_FINITE if not (rule.may_be_nan and value != value)]
        if kind is float else [])


def wrong_values(parameter):
    """Return values that a parameter refuses, those of a further rule among them."""
    rule, item = parameter.rule, parameter.item
    if item is None:
        wrong = [*_OF_OTHER_TYPES[parameter.type], *_outside(rule, parameter.type), [1]]
        wrong = [value for value in wrong if not (value == '' and '' in rule.choices)]
    else:
        # ROS has no lists of several types, nor a difference of [''] and an empty list.
        items = [*_OF_OTHER_TYPES[item], *(value for value in _outside(rule, item) if value != '')]
        wrong = ['car', 3, True, *([value] * max(len(parameter.default), 1) for value in items)]
        if rule.length is not None:
            wrong += [[0.0] * (rule.length + beyond) for beyond in (-1, 1)]
    return [*wrong, *_FURTHER.get(parameter.name, ())]


def other_value(parameter):
    """Return a value of a parameter that it takes and that differs from its default."""
    rule, default = parameter.rule, parameter.default
    if parameter.item is not None:
        if parameter.item is str:
            return [rule.choices[-1] if rule.choices else 'other']
        return [number + 1.0 if number == number else 1.0 for number in default]
    if isinstance(default, bool):
        return not default
    if isinstance(default, str):
        return next((choice for choice in rule.choices if choice != default), 'other')
    return default + type(default)(1) if rule.high is None or default + 1 <= rule.high \
        else (default + rule.low) / 2


WRONG = [(name, value) for name in SCHEMA.names for value in wrong_values(SCHEMA.find(name))]
