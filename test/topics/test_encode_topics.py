# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Names and quality of service of the topics, and what has to be decoded for them."""

from __future__ import annotations

from dataclasses import replace

from encode_world import (
    ALL_ON,
    definitions,
    STAMP_NS,
    subscriptions_of,
    subscriptions_without,
    two_actors,
)
import pytest

from state_sensor_ros.naming import Actor, Registry
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING, NOTHING, Qos, Subscriptions

ACTOR = Actor('Car 1', 'Car_1', 'Car_1', 3, True)
SILENT = Actor('Car 2', 'Car_2', 'Car_2', 4, False)


def test_quality_of_service_is_that_of_the_contract():
    offered = {topic.name: topic.qos for topic in Encoder(ALL_ON, definitions()).topics}
    assert offered.pop('/tf') == Qos(reliable=True, latched=False, depth=100)
    assert offered.pop('~/actors') == Qos(reliable=True, latched=True, depth=1)
    assert set(offered) == {'/clock', '~/frame', '~/markers', '~/ego/odometry',
                            '~/ego/control_state'}
    assert set(offered.values()) == {Qos(reliable=True, latched=False, depth=10)}


@pytest.mark.parametrize(('settings', 'has_lanes', 'has_wheels', 'kinds'), [
    (ALL_ON, True, True, ['odometry', 'control_state', 'joint_states']),
    (Settings(), True, True, ['odometry', 'control_state']),
    (replace(ALL_ON, odometry=False), True, True, ['joint_states'])])
def test_topics_of_an_actor(settings, has_lanes, has_wheels, kinds):
    encoder = Encoder(settings, definitions())
    topics = encoder.actor_topics(ACTOR, has_lanes=has_lanes, has_wheels=has_wheels)
    assert [topic.kind for topic in topics] == kinds
    assert [topic.name for topic in topics] == [f'~/actors/Car_1/{kind}' for kind in kinds]
    assert {topic.actor for topic in topics} == {'Car_1'}
    assert encoder.actor_topics(SILENT, has_lanes=has_lanes, has_wheels=has_wheels) == ()


@pytest.mark.parametrize(('settings', 'subscriptions', 'needs'), [
    (ALL_ON, EVERYTHING, True), (ALL_ON, NOTHING, False),
    (Settings(), subscriptions_without('~/frame'), False),
    (Settings(), subscriptions_of('~/control_states'), False),
    (ALL_ON, subscriptions_of('~/frame'), True),
    (ALL_ON, subscriptions_of('/tf'), True), (Settings(), subscriptions_of('/tf'), False),
    (ALL_ON, subscriptions_of(joint_states='a'), True),
    (Settings(), subscriptions_of(joint_states='a'), False)])
def test_details_are_decoded_for_subscribers(settings, subscriptions, needs):
    assert Encoder(settings, definitions()).needs(subscriptions) is needs


@pytest.mark.parametrize('settings', [ALL_ON, Settings()])
def test_the_needed_parts_are_sufficient(settings):
    frame = two_actors()
    actor_list = Registry().update(frame)
    everything = Encoder(settings, definitions()).encode(frame, actor_list, STAMP_NS, EVERYTHING)
    for topic, data in everything:
        subscriptions = Subscriptions.of([topic])
        needs = Encoder(settings, definitions()).needs(subscriptions)
        bare = frame if needs else replace(frame, boxes=None, wheels=None, inputs=None)
        sent = Encoder(settings, definitions()).encode(bare, actor_list, STAMP_NS, subscriptions)
        assert [each for each in sent if subscriptions.names is None or each[0].name != '~/actors'
                or topic.name == '~/actors'] == [(topic, data)]
