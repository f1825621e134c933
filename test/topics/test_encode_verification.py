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

from encode_world import ALL_ON, definitions
from message_store import read, typestore
import pytest

from state_sensor_ros.cdr.definitions import Definitions, Field
from state_sensor_ros.errors import EncodeError
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic_list import TOPICS
from state_sensor_ros.topics.verification import sample_settings, verify


def changed(type_name, change):
    """Return the definitions with one type changed, as another release might have it."""
    real = definitions()
    fields = tuple(change(list(real[type_name])))
    return Definitions(lambda name: fields if name == type_name else real[name])


def samples(definitions):
    return Encoder(sample_settings(ALL_ON), definitions).samples()


def test_samples_have_their_leaves():
    verify(samples(definitions()), read)


def test_every_topic_has_a_sample():
    assert {sample.type_name for sample in samples(definitions())} == {
        type_name for each in TOPICS
        for type_name in (each.type_name, *(topic.type_name for topic in each.topics))
        if type_name}


def test_samples_name_every_number_of_an_odometry():
    sample = next(s for s in samples(definitions()) if s.type_name == 'nav_msgs/msg/Odometry')
    assert len(sample.leaves) == 2 + 1 + 1 + 7 + 36 + 6 + 36
    values = [leaf for path, leaf in sample.leaves if path[-1] in list('xyzw')]
    assert len(set(values)) == 13


@pytest.mark.parametrize(('type_name', 'change', 'where'), [
    # Fields of the same size in another order.
    ('geometry_msgs/msg/Transform', lambda fields: fields[::-1],
     'tf2_msgs/msg/TFMessage transforms.0.transform'),
    ('geometry_msgs/msg/Quaternion', lambda fields: [fields[3], *fields[:3]],
     'transforms.0.transform.rotation.w'),
    ('geometry_msgs/msg/Twist', lambda fields: fields[::-1],
     'nav_msgs/msg/Odometry twist.twist.angular.x'),
    ('state_sensor_ros/msg/ControlState', lambda f: [f[0], f[1], f[3], f[2], *f[4:]],
     'control_state.section_id: found 3000; expected 3001'),
    ('state_sensor_ros/msg/VehicleInputs', lambda f: [f[1], f[0], *f[2:]], 'inputs.brake'),
    ('visualization_msgs/msg/Marker', lambda f: [*f[:3], f[4], f[3], *f[5:]], 'markers'),
    ('builtin_interfaces/msg/Time', lambda fields: fields[::-1], 'rosgraph_msgs/msg/Clock clock')])
def test_a_field_in_another_place_is_an_error_that_names_it(type_name, change, where):
    with pytest.raises(EncodeError) as caught:
        verify(samples(changed(type_name, change)), read)
    assert where in str(caught.value)


@pytest.mark.parametrize('type_name', ['nav_msgs/msg/Odometry', 'geometry_msgs/msg/Vector3'])
def test_a_missing_field_is_an_error_before_anything_is_read(type_name):
    with pytest.raises(EncodeError, match=f'{type_name}: found no field'):
        samples(changed(type_name, lambda fields: fields[:-1]))


def test_a_field_of_another_size_is_an_error_before_anything_is_read():
    narrow = changed('geometry_msgs/msg/Point', lambda fields: [
        Field(field.name, 'float32') for field in fields])
    with pytest.raises(EncodeError, match=r'Point x: found float32; expected float64'):
        samples(narrow)


def test_a_reader_without_the_field_is_an_error():
    class Nothing:
        pass

    with pytest.raises(EncodeError, match=r'rosgraph_msgs/msg/Clock clock\.sec: found None'):
        verify(samples(definitions()), lambda data, type_name: Nothing())


def test_bytes_that_cannot_be_deserialised_are_an_error():
    def refuse(data, type_name):
        raise RuntimeError('failed to deserialize')

    with pytest.raises(EncodeError, match='rosgraph_msgs/msg/Clock: found failed to deserialize'):
        verify(samples(definitions()), refuse)


def test_a_flipped_bit_anywhere_in_the_numbers_is_found():
    sample = next(s for s in samples(definitions()) if s.type_name == 'rosgraph_msgs/msg/Clock')
    for i in range(4, len(sample.data)):
        def spoiled(data, type_name, i=i):
            return read(data[:i] + bytes([data[i] ^ 1]) + data[i + 1:], type_name)
        with pytest.raises(EncodeError, match='clock'):
            verify([sample], spoiled)


def test_samples_are_the_bytes_that_another_implementation_writes():
    for sample in samples(definitions()):
        message = read(sample.data, sample.type_name)
        assert bytes(typestore().serialize_cdr(message, sample.type_name)) == sample.data
