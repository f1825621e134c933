# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The messages that the middleware reads from the bytes of the encoder."""

from __future__ import annotations

from budgets import one_of
from encode_reference import Reference
from encode_world import ALL_ON, Chance, definitions, STAMP_NS, two_actors
from message_store import typestore
import numpy as np
import pytest
from rclpy.serialization import deserialize_message

from state_sensor_ros.naming import Registry
from state_sensor_ros.ros.sink import message_class
from state_sensor_ros.topics.encoder import Encoder, verify
from state_sensor_ros.topics.topic import EVERYTHING


def deserialize(data, type_name):
    return deserialize_message(data, message_class(type_name))


def leaves(message, where=''):
    """Return path and value of each leaf of a message of rclpy."""
    if hasattr(message, 'get_fields_and_field_types'):
        return [leaf for name in message.get_fields_and_field_types()
                for leaf in leaves(getattr(message, name), f'{where}.{name}')]
    if isinstance(message, (str, bytes)) or not hasattr(message, '__len__'):
        return [(where, message)]
    return [(f'{where}.n', len(message)), *(
        leaf for i, element in enumerate(message) for leaf in leaves(element, f'{where}[{i}]'))]


def assert_same(found, expected):
    for (where, own), (there, other) in zip(leaves(found), leaves(expected), strict=True):
        assert where == there
        if isinstance(own, float):
            np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-12, err_msg=where)
        else:
            assert own == other, where


@pytest.mark.parametrize('seed', one_of(range(3)))
def test_rclpy_reads_every_message_as_it_is_meant(seed):
    chance, registry = Chance(seed), Registry()
    encoder = Encoder(ALL_ON, definitions())
    frames = [two_actors()]
    for _ in range(15):
        chance.change_names()
        frames.append(chance.frame())
    for frame in frames:
        actor_list = registry.update(frame)
        messages = encoder.encode(frame, actor_list, STAMP_NS, EVERYTHING)
        reference = Reference(frame, actor_list, STAMP_NS, ALL_ON)
        expected = {**reference.messages(), '~/actors': reference.actors()}
        for topic, data in messages:
            found = deserialize(data, topic.type_name)
            if topic.name == '~/markers':
                continue
            meant = expected[topic.name]
            raw = bytes(typestore().serialize_cdr(meant, topic.type_name))
            assert_same(found, deserialize(raw, topic.type_name))


def test_definitions_are_those_of_the_middleware():
    verify(Encoder(ALL_ON, definitions()).type_names, definitions(), message_class,
           deserialize_message)
