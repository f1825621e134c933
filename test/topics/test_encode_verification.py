# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The check at start: it passes, and names a definition that has changed."""

from __future__ import annotations

from types import SimpleNamespace

from encode_world import ALL_ON, definitions, STAMP_NS, two_actors
from message_store import read, typestore
import pytest

from state_sensor_ros.cdr.definitions import Definitions, Field, load_definitions, SEQUENCE
from state_sensor_ros.errors import EncodeError
from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import AUTOWARE_OBJECTS, OUTPUTS, Settings
from state_sensor_ros.topics.encoder import Encoder, verify
from state_sensor_ros.topics.topic import EVERYTHING

NAMES = {'float64': 'double', 'float32': 'float', 'bool': 'boolean', 'byte': 'octet',
         'char': 'uint8'}


def class_of(type_name, known=None):
    """Return a class with the fields of definitions, named as rosidl names them."""
    known = definitions() if known is None else known

    def text(field):
        name = NAMES.get(field.type_name, field.type_name).replace('/msg/', '/')
        return name if field.length is None else f'sequence<{name}>' \
            if field.length == SEQUENCE else f'{name}[{field.length}]'

    return SimpleNamespace(name=type_name, get_fields_and_field_types=lambda: {
        field.name: text(field) for field in known[type_name]})


def deserialize(data, class_):
    return read(data, class_.name)


def changed(type_name, change):
    """Return the definitions with one type changed, as another release might have it."""
    real = definitions()
    fields = tuple(change(list(real[type_name])))
    return Definitions(lambda name: fields if name == type_name else real[name])


def check(known, classes=class_of, deserialized=deserialize):
    verify(Encoder(ALL_ON, known).type_names, known, classes, deserialized)


def test_definitions_of_the_middleware_pass():
    check(definitions())


@pytest.mark.parametrize(('type_name', 'change', 'message'), [
    # Fields of the same size in another order.
    ('geometry_msgs/msg/Transform', lambda fields: fields[::-1],
     'found geometry_msgs/Vector3 translation; expected geometry_msgs/Quaternion'),
    ('state_sensor_ros/msg/ControlState', lambda f: [f[0], f[1], f[3], f[2], *f[4:]],
     'found int32 road_id; expected int32 section_id'),
    ('nav_msgs/msg/Odometry', lambda fields: [*fields, Field('last', 'float64', 3)],
     'found no more fields; expected double[3] last'),
    ('sensor_msgs/msg/JointState', lambda fields: [
        *fields[:2], Field('position', 'float64', 2), *fields[3:]],
     'found sequence<double> position; expected double[2] position')])
def test_a_field_in_another_place_is_an_error_that_names_it(type_name, change, message):
    known = changed(type_name, change)
    with pytest.raises(EncodeError) as caught:
        verify(Encoder(ALL_ON, definitions()).type_names, known, class_of, deserialize)
    assert str(caught.value).startswith(f'{type_name}: ')
    assert message in str(caught.value)


def test_a_field_that_only_the_middleware_has_is_an_error():
    real = changed('std_msgs/msg/Header', lambda fields: [*fields, Field('seq', 'uint32')])
    with pytest.raises(EncodeError, match='Header: found uint32 seq; expected no more fields'):
        check(definitions(), lambda type_name: class_of(type_name, real))


def test_a_middleware_that_reads_other_numbers_is_an_error():
    # With the alignment of XCDR2 numbers of 8 bytes begin at a multiple of 4.
    with pytest.raises(EncodeError, match=r"Odometry: found \('a', 'bcdef', .*; expected \('a', "):
        check(definitions(), deserialized=lambda data, class_: deserialize(
            data[:4 + 36] + data[4 + 40:] + bytes(4), class_))


@pytest.mark.parametrize('settings', [
    ALL_ON, Settings(outputs=OUTPUTS, autoware_objects=AUTOWARE_OBJECTS)])
def test_messages_are_the_bytes_that_another_implementation_writes(settings):
    frame, encoder = two_actors(), Encoder(settings, load_definitions())
    messages = encoder.encode(frame, Registry().update(frame), STAMP_NS, EVERYTHING)
    assert {topic.type_name for topic, _ in messages} > {'nav_msgs/msg/Odometry'}
    for topic, data in messages:
        message = read(data, topic.type_name)
        assert bytes(typestore().serialize_cdr(message, topic.type_name)) == data
