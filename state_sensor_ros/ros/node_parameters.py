# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The settings as parameters of a ROS node: declared, checked, and changed while running."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import cast
import warnings

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.parameters import nearest, Value
from state_sensor_ros.plug_ins import PlugInWarning
from state_sensor_ros.ros.rclpy_inside import given_parameters
from state_sensor_ros.settings import DEFAULTS, ParameterTable, PERCEPTION, Settings
from state_sensor_ros.simulators import checked_settings, schema_of, with_config_file
from state_sensor_ros.topics.topic import Qos
from state_sensor_ros.topics.topic_list import perception_used

_ACTOR_RELIABILITY, _ACTOR_DEPTH = 'actor_qos.reliability', 'actor_qos.depth'
_MAX_DEPTH = 10000
_LISTS = (Parameter.Type.DOUBLE_ARRAY, Parameter.Type.STRING_ARRAY)
_TEXTS = (Parameter.Type.STRING, Parameter.Type.STRING_ARRAY)
_INTEGERS_FOR_DOUBLES = (Parameter.Type.INTEGER_ARRAY, Parameter.Type.DOUBLE_ARRAY)
# Declared by rclpy with each topic.
_DECLARED_LATER = 'qos_overrides.'


class NodeParameters:
    """
    The fields of :class:`Settings`, those of all simulators, and ``actor_qos.*``, of ``node``.

    A change is checked before it is set, and takes effect after it is set: in between, another
    callback of the node may refuse it. Two names of one parameter always have one value. What
    another parameter switches off is logged once.
    """

    def __init__(self, node: Node, on_change: Callable[[Settings], None]) -> None:
        self._node = node
        self._on_change = on_change
        self._is_frozen = False
        source = self._given('source')
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always', PlugInWarning)
            schema = schema_of(source if isinstance(source, str) else DEFAULTS.source,
                               with_added=True)
        self.warnings = [str(each.message) for each in caught]
        self._names = tuple(dict.fromkeys((*schema.names, *schema.aliases)))
        given = {name: self._given(name) for name in self._names}
        explicit = {name: value for name, value in given.items() if value is not None}
        # Explicit parameters take precedence over the simulator's own configuration.
        self.settings = checked_settings(with_config_file(explicit))
        self._without_effect = list(without_effect(self.settings))
        self.warnings += self._without_effect
        for name in self._names:
            self._declare(name, schema)
        self.actor_qos = self._declare_actor_qos()
        node.add_pre_set_parameters_callback(self._as_declared)
        node.add_on_set_parameters_callback(self._check)
        node.add_post_set_parameters_callback(self._apply)

    def freeze(self) -> None:
        """Allow changes of dynamic parameters only, from now on."""
        self._is_frozen = True

    def thaw(self) -> None:
        """Allow changes of every parameter, as before the node was configured."""
        self._is_frozen = False

    def unknown(self) -> dict[str, str]:
        """Return the parameters that were given at start and that the node does not have."""
        # Returns their names, each with the most similar name of a parameter, or ``''``.
        declared = [*self._names, _ACTOR_RELIABILITY, _ACTOR_DEPTH]
        return {name: nearest(name, declared) for name in given_parameters(self._node)
                if not self._node.has_parameter(name) and not name.startswith(_DECLARED_LATER)}

    def _given(self, name: str) -> object:
        """Return the value given at start for ``name``, None for none."""
        # Declared without a type first: a declaration with a default does not show whether a
        # value was given, and refuses a wrong value with an error text of rclpy.
        parameter = self._node.declare_parameter(
            name, None, ParameterDescriptor(dynamic_typing=True))
        self._node.undeclare_parameter(name)
        return _plain(parameter.value)

    def _declare(self, name: str, schema: ParameterTable) -> None:
        value, descriptor = schema.value_of(self.settings, name), _descriptor(name, schema)
        if schema.find(name).item is str:
            # rclpy takes an empty list for bytes.
            self._node.declare_parameter(name, [''], descriptor, ignore_override=True)
            self._node.set_parameters(
                [Parameter(name, Parameter.Type.STRING_ARRAY, _plain(value))])
        else:
            self._node.declare_parameter(name, _plain(value),
                                         descriptor, ignore_override=True)

    def _declare_actor_qos(self) -> Qos:
        reliability = self._node.declare_parameter(
            _ACTOR_RELIABILITY, 'reliable', ParameterDescriptor(
                description='Reliability of the topics of each actor.', read_only=True,
                additional_constraints='reliable | best_effort')).value
        depth = self._node.declare_parameter(
            _ACTOR_DEPTH, 10, ParameterDescriptor(
                description='History depth of the topics of each actor.', read_only=True,
                integer_range=[IntegerRange(from_value=1, to_value=_MAX_DEPTH)])).value
        if reliability not in ('reliable', 'best_effort'):
            raise ConfigError(_ACTOR_RELIABILITY, repr(reliability), 'reliable or best_effort')
        return Qos(reliable=reliability == 'reliable', latched=False, depth=depth)

    def _as_declared(self, parameters: list[Parameter]) -> list[Parameter]:
        """
        Return a change with the types that its parameters are declared with.

        Implied changes are added: other names of the same parameters, and what a new source brings
        with it, such as its usual port.
        """
        requested = {each.name for each in parameters}
        implied: dict[str, object] = {}
        # A wrong value is refused by the check, which gives the reason.
        with suppress(ConfigError):
            before, after = map(self._values, (self.settings, self._settings_with(parameters)))
            implied = {name: value for name, value in after.items()
                       if value != before[name] or name in requested}
        changed = [each for each in parameters if each.name not in implied]
        changed += [Parameter(name, value=_plain(value)) for name, value in implied.items()]
        return [_of_type(each, self._node.describe_parameter(each.name).type)
                if self._node.has_parameter(each.name) else each for each in changed]

    def _check(self, parameters: list[Parameter]) -> SetParametersResult:
        """Accept or refuse a change as a whole; another callback may still refuse it."""
        try:
            settings = self._settings_with(parameters)
            if self._is_frozen:
                _check_dynamic(self.settings, settings)
        except ConfigError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _apply(self, parameters: list[Parameter]) -> None:
        """Use a change that every callback has accepted."""
        settings = self._settings_with(parameters)
        if settings != self.settings:
            self.settings = settings
            self._on_change(settings)
            before, self._without_effect = self._without_effect, list(without_effect(settings))
            for line in self._without_effect:
                if line not in before:
                    self._node.get_logger().warning(line)

    def _values(self, settings: Settings) -> dict[str, Value]:
        schema = schema_of(settings.source, with_added=True)
        return {name: schema.value_of(settings, name) for name in self._names}

    def _settings_with(self, parameters: Iterable[Parameter]) -> Settings:
        values = {each.name: _plain(each.value) for each in parameters
                  if each.name in self._names}
        return checked_settings(values, self.settings) if values \
            else self.settings


def without_effect(settings: Settings) -> Iterator[str]:
    """Yield a line for each parameter that another one switches off."""
    for name, is_on, switch, is_off in (
            ('debug_drawing', settings.debug_drawing, 'include_obb', not settings.include_obb),
            ('wheel_tf', settings.wheel_tf, 'tf', settings.tf == 'none')):
        if is_on and is_off:
            yield f'{name} has no effect: {switch} is {"none" if switch == "tf" else "false"}'
    schema, used = schema_of(settings.source, with_added=True), perception_used(settings)
    unused = [name for name in PERCEPTION if name not in used
              and schema.value_of(settings, name) != schema.find(name).default]
    if unused:
        yield f'no output uses the parameters {", ".join(unused)}'


def _of_type(parameter: Parameter, code: int) -> Parameter:
    """Return a parameter in another type: integers or texts as numbers, or an empty list."""
    # code: wanted type, a constant of ``ParameterType``; a value that cannot be converted is
    # returned unchanged.
    given, wanted = parameter.type_, Parameter.Type(code)
    value = _plain(parameter.value)
    if (given, wanted) == (Parameter.Type.INTEGER, Parameter.Type.DOUBLE):
        return Parameter(parameter.name, wanted, float(value))  # type: ignore[arg-type]
    # `ros2 param load` reads nan and 1e-09, which `ros2 param dump` has written, as texts.
    if given in _TEXTS and wanted in (Parameter.Type.DOUBLE, Parameter.Type.DOUBLE_ARRAY):
        with suppress(ValueError):
            numbers = [float(each) for each in (value if isinstance(value, list) else str(
                value).strip('[]').split(','))]
            if wanted is Parameter.Type.DOUBLE_ARRAY:
                return Parameter(parameter.name, wanted, numbers)
            if len(numbers) == 1 and given is Parameter.Type.STRING:
                return Parameter(parameter.name, wanted, numbers[0])
    # The type of an empty list is ambiguous: bools in `ros2 param set`, bytes in rclpy.
    if isinstance(value, list) and wanted in _LISTS and (
            not value or (given, wanted) == _INTEGERS_FOR_DOUBLES):
        convert = float if wanted is Parameter.Type.DOUBLE_ARRAY else str
        return Parameter(parameter.name, wanted, [convert(each) for each in value])
    return parameter


def _plain(value: object) -> object:
    """Return an array of any type that rclpy uses as a list."""
    # Before Python 3.11 an array is not registered as a sequence.
    is_array = isinstance(value, (Sequence, array)) and not isinstance(value, str)
    return list(cast(Sequence[object], value)) if is_array else value


def _check_dynamic(now: Settings, new: Settings) -> None:
    """Refuse a change of parameters that are fixed while configured."""
    schema = schema_of(now.source, with_added=True)
    changed = [name for name in schema.names
               if schema.value_of(now, name) != schema.value_of(new, name)]
    for name in changed:
        if not schema.find(name).rule.dynamic:
            raise ConfigError(name, 'a change while the node is configured',
                              'none: clean the node up first, or restart it with the new value')


def _descriptor(name: str, schema: ParameterTable) -> ParameterDescriptor:
    found = schema.find(name)
    rule, is_list = found.rule, found.item is not None
    descriptor = ParameterDescriptor(name=name, description=rule.help)
    if rule.choices:
        descriptor.additional_constraints = f'{"each " if is_list else ""}one of ' \
            + ', '.join(rule.choices)
    if rule.length is not None:
        descriptor.additional_constraints = f'{rule.length} numbers'
    if name != found.name:
        descriptor.description += f' Another name of {found.name}.'
    if not rule.dynamic:
        descriptor.description += ' Can be changed only while the node is unconfigured.'
    if rule.low is not None and rule.high is not None and not is_list:
        if found.type is int:
            descriptor.integer_range = [IntegerRange(from_value=int(rule.low),
                                                     to_value=int(rule.high))]
        else:
            descriptor.floating_point_range = [FloatingPointRange(
                from_value=float(rule.low), to_value=float(rule.high))]
    return descriptor
