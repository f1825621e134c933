# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The parameters of the node: how they are declared, checked and changed."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
import os
from typing import cast
import warnings

from rcl_interfaces import msg
from rclpy.node import Node
from rclpy.parameter import Parameter

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.parameters import did_you_mean, Value
from state_sensor_ros.plug_ins import PlugInWarning
from state_sensor_ros.ros.sink import given_parameters
from state_sensor_ros.settings import CORE, DEFAULTS, FILE, ParameterTable, PERCEPTION, Settings
from state_sensor_ros.simulators import checked_settings, live_settings, schema_of
from state_sensor_ros.topics.encoder import perception_used

_DOUBLES = (Parameter.Type.DOUBLE, Parameter.Type.DOUBLE_ARRAY)
# Declared by rclpy with each topic.
_DECLARED_LATER = 'qos_overrides.'


class NodeParameters:
    """
    The fields of :class:`Settings` and those of all simulators, as parameters of ``node``.

    A change is checked before it is set, and takes effect after it is set: in between, another
    callback of the node may refuse it. Two names of one parameter always have one value.

    :ivar settings: the parameters as they are now.
    :ivar warnings: lines about the parameters given at start.
    :ivar is_frozen: whether only dynamic parameters may change, as while the node is configured.
    """

    def __init__(self, node: Node, on_change: Callable[[Settings], None]) -> None:
        self._node, self._on_change = node, on_change
        self.is_frozen = False
        source = self._given('source')
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always', PlugInWarning)
            schema = schema_of(source if isinstance(source, str) else DEFAULTS.source,
                               with_added=True)
        self._names = tuple(dict.fromkeys((*schema.names, *schema.aliases)))
        # Explicit parameters take precedence over the simulator's own configuration.
        self.settings = live_settings({name: self._given(name) for name in self._names})
        for name in self._names:
            self._declare(name, schema)
        node.add_pre_set_parameters_callback(self._as_declared)
        node.add_on_set_parameters_callback(self._check)
        node.add_post_set_parameters_callback(self._apply)
        self.warnings = [*(str(each.message) for each in caught), *without_effect(self.settings),
                         *self._unknown()]

    def _unknown(self) -> Iterator[str]:
        """Yield a line for each parameter that was given at start and that there is not."""
        for name in given_parameters(self._node):
            if not self._node.has_parameter(name) and not name.startswith(_DECLARED_LATER):
                yield f'unknown parameter {name} is ignored' + did_you_mean([name], self._names)

    def _given(self, name: str) -> object:
        """Return the value given at start for ``name``, None for none."""
        # Declared without a type first: a declaration with a default does not show whether a
        # value was given, and refuses a wrong value with an error text of rclpy.
        parameter = self._node.declare_parameter(
            name, None, msg.ParameterDescriptor(dynamic_typing=True))
        self._node.undeclare_parameter(name)
        return _plain(parameter.value)

    def _declare(self, name: str, schema: ParameterTable) -> None:
        value = _plain(schema.value_of(self.settings, name))
        # rclpy takes an empty list for bytes.
        self._node.declare_parameter(name, [''] if value == [] else value,
                                     _descriptor(name, schema), ignore_override=True)
        if value == []:
            self._node.set_parameters([Parameter(name, Parameter.Type.STRING_ARRAY, [])])

    def _as_declared(self, parameters: list[Parameter]) -> list[Parameter]:
        """
        Return a change with the types that its parameters are declared with.

        Implied changes are added: other names of the same parameters, and what a new source brings
        with it, such as its usual port.
        """
        changed = {each.name: each for each in parameters}
        # A wrong value is refused by the check, which gives the reason.
        with suppress(ConfigError):
            before, after = map(self._values, (self.settings, self._settings_with(parameters)))
            changed |= {name: Parameter(name, value=_plain(value)) for name, value in after.items()
                        if value != before[name] or name in changed}
        return [_of_type(each, self._node.describe_parameter(each.name).type)
                if self._node.has_parameter(each.name) else each for each in changed.values()]

    def _check(self, parameters: list[Parameter]) -> msg.SetParametersResult:
        """Accept or refuse a change as a whole; another callback may still refuse it."""
        try:
            settings = self._settings_with(parameters)
            if self.is_frozen:
                _check_dynamic(self.settings, settings)
        except ConfigError as error:
            return msg.SetParametersResult(successful=False, reason=str(error))
        return msg.SetParametersResult(successful=True)

    def _apply(self, parameters: list[Parameter]) -> None:
        """Use a change that every callback has accepted."""
        before, settings = self.settings, self._settings_with(parameters)
        if settings != before:
            self.settings = settings
            self._on_change(settings)
            for line in {*without_effect(settings)}.difference(without_effect(before)):
                self._node.get_logger().warning(line)

    def _values(self, settings: Settings) -> dict[str, Value]:
        schema = schema_of(settings.source, with_added=True)
        return {name: schema.value_of(settings, name) for name in self._names}

    def _settings_with(self, parameters: Iterable[Parameter]) -> Settings:
        values = {each.name: _plain(each.value) for each in parameters if each.name in self._names}
        return checked_settings(values, self.settings) if values else self.settings


def check_packages(settings: Settings) -> None:
    """Check that the message packages are installed that the values of parameters need."""
    for parameter in CORE.names:
        for value, package in CORE.find(parameter).packages(CORE.value_of(settings, parameter)):
            if find_spec(package) is None:
                distribution = os.environ.get('ROS_DISTRO', '$ROS_DISTRO')
                raise ConfigError(
                    parameter, f'{value} needs the package {package}: apt install '
                    f'ros-{distribution}-{package.replace("_", "-")}, or its sources in the '
                    'workspace, or `make setup STACKS=1` if ROS 2 is from PyPI')


def without_effect(settings: Settings) -> Iterator[str]:
    """Yield a line for each parameter that another one switches off."""
    if settings.debug_drawing and not settings.include_obb:
        yield 'debug_drawing has no effect: include_obb is false'
    if settings.wheel_tf and settings.tf == 'none':
        yield 'wheel_tf has no effect: tf is none'
    if settings.trajectory_file and settings.source != FILE:
        yield f'trajectory_file has no effect: source is {settings.source}'
    schema, used = schema_of(settings.source, with_added=True), perception_used(settings)
    unused = [name for name in PERCEPTION if name not in used
              and schema.value_of(settings, name) != schema.find(name).default]
    if unused:
        yield f'no output uses the parameters {", ".join(unused)}'


def _of_type(parameter: Parameter, code: int) -> Parameter:
    """Return a parameter in another type: integers or texts as numbers, or an empty list."""
    # code: wanted type, a constant of ``ParameterType``; a value that cannot be converted is
    # returned unchanged.
    wanted, value = Parameter.Type(code), _plain(parameter.value)
    if wanted is Parameter.Type.STRING_ARRAY and value == []:
        # Its type is ambiguous: bools in `ros2 param set`, bytes in rclpy.
        return Parameter(parameter.name, wanted, [])
    is_list = wanted is Parameter.Type.DOUBLE_ARRAY
    if wanted in _DOUBLES and (isinstance(value, str) or isinstance(value, list) is is_list):
        # `ros2 param load` reads nan and 1e-09, which `ros2 param dump` has written, as texts.
        items = value if isinstance(value, list) else str(value).strip('[]').split(',')
        with suppress(ValueError):
            numbers = [float(str(item)) for item in items]
            return Parameter(parameter.name, wanted, numbers if is_list else numbers.pop())
    return parameter


def _plain(value: object) -> object:
    """Return an array of any type that rclpy uses as a list."""
    # Before Python 3.11 an array is not registered as a sequence.
    is_array = isinstance(value, (Sequence, array)) and not isinstance(value, str)
    return list(cast(Sequence[object], value)) if is_array else value


def _check_dynamic(now: Settings, new: Settings) -> None:
    """Refuse a change of parameters that are fixed while configured."""
    schema = schema_of(now.source, with_added=True)
    for name in schema.names:
        if schema.value_of(now, name) != schema.value_of(new, name) \
                and not schema.find(name).rule.dynamic:
            raise ConfigError(name, 'a change while the node is configured',
                              'none: clean the node up first, or restart it with the new value')


def _descriptor(name: str, schema: ParameterTable) -> msg.ParameterDescriptor:
    found = schema.find(name)
    rule, descriptor = found.rule, msg.ParameterDescriptor(name=name, description=found.rule.help)
    if rule.choices:
        descriptor.additional_constraints = 'one of ' + ', '.join(rule.choices)
    elif rule.length is not None:
        descriptor.additional_constraints = f'{rule.length} numbers'
    if name != found.name:
        descriptor.description += f' Another name of {found.name}.'
    if not rule.dynamic:
        descriptor.description += ' Can be changed only while the node is unconfigured.'
    if rule.low is not None and rule.high is not None and found.type is int:
        descriptor.integer_range = [msg.IntegerRange(from_value=int(rule.low),
                                                     to_value=int(rule.high))]
    elif rule.low is not None and rule.high is not None and found.type is float:
        descriptor.floating_point_range = [msg.FloatingPointRange(
            from_value=float(rule.low), to_value=float(rule.high))]
    return descriptor
