# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The key of a layout: identity of the actor table, value of all else."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

from encode_world import ALL_ON, definitions, two_actors
import pytest

from state_sensor_ros.naming import Registry
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING, Subscriptions


def test_an_actor_table_cannot_change():
    table = Registry().update(two_actors())
    assert {type(getattr(table, name)) for name in ('actors', 'names', 'kinds', 'tags')} <= {
        tuple, bytes}
    with pytest.raises(FrozenInstanceError):
        table.i_ego = 1
    with pytest.raises(FrozenInstanceError):
        table.actors[0].frame_id = 'other'


def test_equal_copies_of_table_and_subscriptions_give_the_same_messages():
    frame, encoder = two_actors(), Encoder(ALL_ON, definitions())
    table = Registry().update(frame)
    subscriptions = Subscriptions(actors={'odometry': frozenset({'demo_1'})})
    messages = [encoder.encode(frame, *each) for each in (
        (table, 1, subscriptions), (table, 2, subscriptions), (replace(table), 2, subscriptions),
        (table, 2, replace(subscriptions)))]
    # The first array of markers also empties displays, and the first frame has ~/actors.
    assert messages[1] == messages[2] == messages[3]


def test_other_subscriptions_take_effect_with_the_next_frame():
    frame, encoder = two_actors(), Encoder(ALL_ON, definitions())
    table = Registry().update(frame)
    for names in ({'/clock'}, {'/clock', '/tf'}, {'/clock'}, set()):
        topics = [topic for topic, _ in Encoder(ALL_ON, definitions()).encode(
            frame, table, 1, EVERYTHING) if topic.name in names]
        sent = encoder.encode(frame, table, 1, Subscriptions.of(topics))
        assert {topic.name for topic, _ in sent} - {'~/actors'} == names
