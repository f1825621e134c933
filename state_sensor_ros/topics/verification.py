# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Check at start that the middleware has the message definitions that the encoder has, and reads CDR.

The encoder reads definitions from files, the middleware was built with its own. So a changed
definition, or a middleware with another serialization, is an error at start, not a wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import zip_longest
import re
from typing import Any

from state_sensor_ros.cdr.definitions import Definitions, DUMMY, Field, SEQUENCE
from state_sensor_ros.cdr.templates import MESSAGE_PHASE, Template
from state_sensor_ros.errors import EncodeError

# A type as message classes of ROS name it, such as ``sequence<geometry_msgs/Point, 4>``, and the
# names that differ from those of definitions.
_TYPE = re.compile(r'(?P<sequence>sequence<)?(?P<package>\w+/)?(?P<name>\w+)(<\d+>)?(, \d+)?>?'
                   r'(\[(?P<length>\d+)\])?')
_PRIMITIVES = {'double': 'float64', 'float': 'float32', 'boolean': 'bool', 'octet': 'byte'}
_SAMPLE = 'nav_msgs/msg/Odometry'


def verify(type_names: Iterable[str], definitions: Definitions, class_of: Callable[[str], Any],
           deserialize: Callable[[bytes, Any], Any]) -> None:
    """Compare definitions with message classes; have a sample message deserialized."""
    # class_of: returns the class of a type, which has ``get_fields_and_field_types``.
    waiting, compared = list(type_names), set[str]()
    while waiting:
        type_name = waiting.pop()
        if type_name in compared:
            continue
        compared.add(type_name)
        fields = class_of(type_name).get_fields_and_field_types() or {DUMMY: 'uint8'}
        for own, other in zip_longest(definitions[type_name], [
                _field(name, text) for name, text in fields.items()]):
            if own is not None and own.type_name == 'char':
                own = replace(own, type_name='uint8')
            if own is None or own != other:
                raise EncodeError(type_name, _described(other), _described(own))
            if '/' in own.type_name:
                waiting.append(own.type_name)
    _verify_serialization(definitions, class_of(_SAMPLE), deserialize)


def _field(name: str, text: str) -> Field:
    match = _TYPE.fullmatch(text)
    if match is None:
        raise EncodeError(name, text, 'the type of a field')
    package, bare = match['package'], match['name']
    type_name = f'{package}msg/{bare}' if package else _PRIMITIVES.get(bare, bare)
    return Field(name, type_name, SEQUENCE if match['sequence'] else
                 int(match['length']) if match['length'] else None)


def _described(field: Field | None) -> str:
    if field is None:
        return 'no more fields'
    length = '' if field.length is None else f'[{field.length or ""}]'
    return f'{field.type_name}{length} {field.name}'


def _verify_serialization(definitions: Definitions, class_: Any,  # noqa: ANN401
                          deserialize: Callable[[bytes, Any], Any]) -> None:
    """Check texts, whose lengths move the numbers after them, and numbers at both ends."""
    expected = 'a', 'bcdef', 1.5, 2.5
    data = Template(definitions, _SAMPLE, {
        'header': {'frame_id': expected[0]}, 'child_frame_id': expected[1],
        'pose': {'pose': {'position': {'x': expected[2]}}},
        'twist': {'covariance': [*[0.0] * 35, expected[3]]}}, is_message=True)
    try:
        message = deserialize(data.lay_out({}, MESSAGE_PHASE).data, class_)
    except RuntimeError as error:
        raise EncodeError(_SAMPLE, str(error), 'a message of its definition') from error
    found = (message.header.frame_id, message.child_frame_id, message.pose.pose.position.x,
             message.twist.covariance[35])
    if found != expected:
        raise EncodeError(_SAMPLE, repr(found), repr(expected))
