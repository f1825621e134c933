# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The messages of an encoder whose frames, actors, subscribers and parameters change."""

from __future__ import annotations

from dataclasses import replace
import gc
import math

from budgets import tries
from encode_world import (
    ALL_ON,
    Chance,
    definitions,
    HALF,
    make_frame,
    STAMP_NS,
    subscriptions_without,
    two_actors,
)
from message_store import read
import numpy as np
import pytest

from state_sensor_ros.cdr.templates import MessageInstance
from state_sensor_ros.naming import Actor, Registry
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING, NOTHING, Subscriptions
from state_sensor_ros.topics.transforms import encode_static_frames


def encoded(frame, settings=ALL_ON, subscriptions=EVERYTHING, registry=None, **options):
    """Return topic name to message, of a new encoder."""
    actor_list = (registry or Registry()).update(frame)
    messages = Encoder(settings, definitions()).encode(
        frame, actor_list, STAMP_NS, subscriptions, **options)
    return read_all(messages)


def read_all(messages):
    found = {topic.name: read(data, topic.type_name) for topic, data in messages}
    assert len(found) == len(messages)
    return found


@pytest.mark.parametrize('twist_frame', ['child', 'global'])
def test_encode_after_changes_equals_a_new_encoder_to_the_byte(twist_frame):
    chance = Chance(99)
    settings = replace(ALL_ON, twist_frame=twist_frame, frame_prefix='sim/')
    registry = Registry(Settings(
        frame_prefix='sim/', ego_frame='base_link', max_actor_topics=6))
    encoder = Encoder(settings, definitions())
    for i in range(tries(40)):
        chance.change_names()
        frame = chance.frame()
        actor_list = registry.update(frame)
        subscriptions = subscriptions_without('~/markers') if i % 3 else Subscriptions(actors={
            kind: frozenset(actor.topic_name for actor in actor_list.actors
                            if actor.name in chance.some())
            for kind in ('odometry', 'control_state', 'joint_states')})
        sent, expected = (each.encode(frame, actor_list, i, subscriptions) for each in (
            encoder, Encoder(settings, definitions())))
        # A new encoder sends ~/actors, another one only when they change; ~/markers have a first
        # message.
        assert [each for each in sent if each[0].name not in ('~/markers', '~/actors')] == [
            each for each in expected if each[0].name not in ('~/markers', '~/actors')]
        assert expected[-1][0].name == '~/actors'


@pytest.mark.parametrize(('twist_frame', 'linear', 'variance'), [
    ('child', (5.0, 0.0, 0.0), 1e-9), ('global', (0.0, 5.0, 0.0), 1e6)])
def test_odometry_of_a_forward_speed_has_variances_of_the_unknown(twist_frame, linear, variance):
    kinematics = np.full((1, 13), np.nan)
    kinematics[0, :7] = 0.0, 0.0, 0.0, 0.0, 0.0, HALF, HALF
    frame = make_frame(kinematics=kinematics, forward_speed=np.array([5.0]))
    found = encoded(frame, replace(ALL_ON, twist_frame=twist_frame))
    message = found['~/actors/car/odometry']
    found_linear = message.twist.twist.linear
    assert (found_linear.x, found_linear.y, found_linear.z) == pytest.approx(linear, abs=1e-12)
    assert message.twist.covariance[0] == variance
    assert set(message.twist.covariance[7::7]) == {1e6}
    # In the axes of the global frame, whatever ``twist_frame`` is.
    assert found['~/frame'].actors[0].twist.linear.y == pytest.approx(5.0, abs=1e-12)


def test_repeated_frame_gives_the_frame_alone():
    assert encoded(two_actors(), advanced=False).keys() == {'~/frame'}


@pytest.mark.parametrize(('settings', 'topics'), [
    ({'publish_clock': False}, {'/clock'}), ({'tf': 'none'}, {'/tf'}),
    ({'frame': False}, {'~/frame'}), ({'debug_drawing': False}, {'~/markers'}),
    ({'include_obb': False}, {'~/markers'}),
    ({'joint_states': False}, {'~/actors/demo_1/joint_states'}),
    ({'odometry': False}, {'~/actors/demo_1/odometry', '~/actors/Cone_A/odometry',
                           '~/actors/demo_1/control_state'})])
def test_parameters_switch_topics(settings, topics):
    everything = encoded(two_actors()).keys()
    assert encoded(two_actors(), replace(ALL_ON, **settings)).keys() == everything - topics


@pytest.mark.parametrize('name', ['/clock', '/tf', '~/ego/odometry', '~/ego/control_state',
                                  '~/frame', '~/markers'])
def test_topics_without_subscribers_are_dropped(name):
    frame, encoder = two_actors(), Encoder(ALL_ON, definitions())
    actor_list = Registry().update(frame)

    def sent(stamp_ns, subscriptions):
        return [topic.name
                for topic, _ in encoder.encode(frame, actor_list, stamp_ns, subscriptions)]

    messages = sent(STAMP_NS, subscriptions_without(name))
    assert name not in messages
    everything = sent(STAMP_NS + 1, EVERYTHING)
    assert {*everything, '~/actors'} == {*messages, name}
    assert sent(STAMP_NS + 2, Subscriptions(frozenset((name,)), {})) == [name]


def test_actors_are_sent_when_they_change_and_after_a_restart():
    frame, registry, encoder = two_actors(), Registry(), Encoder(ALL_ON, definitions())

    def sends(frame, stamp_ns):
        return encoder.encode(frame, registry.update(frame), stamp_ns, NOTHING) != []

    assert sends(frame, 1)
    assert not sends(frame, 2)
    assert sends(frame.select(np.array([1])), 3)
    assert not sends(frame.select(np.array([1])), 4)
    encoder.restart()
    assert sends(frame.select(np.array([1])), 5)


def test_ego_is_in_the_odom_frame_and_it_in_the_global_frame():
    # The ego is at (1, 2, 3); odom at (1, 1, 0), turned to the left: the ego is 1 m ahead of it.
    settings = replace(ALL_ON, wheel_tf=False, odom_frame='odom',
                       odom_frame_pose=(1.0, 1.0, 0.0, 0.0, 0.0, math.pi / 2))
    ego, cone = encoded(two_actors(), settings)['/tf'].transforms
    place, turn = ego.transform.translation, ego.transform.rotation
    assert (ego.header.frame_id, ego.child_frame_id) == ('odom', 'demo_1')
    assert (place.x, place.y, place.z) == pytest.approx((1.0, 0.0, 3.0))
    # The ego heads as odom does.
    assert (turn.x, turn.y, turn.z, abs(turn.w)) == pytest.approx((0.0, 0.0, 0.0, 1.0))
    assert (cone.header.frame_id, cone.transform.translation.x) == ('map', -7.5)
    topic, data = encode_static_frames(settings, definitions(), ())
    [fixed] = read(data, topic.type_name).transforms
    assert (fixed.header.frame_id, fixed.child_frame_id) == ('map', 'odom')
    assert fixed.transform.translation.y == 1.0


def test_parts_that_were_not_decoded_leave_their_topics_out():
    frame = replace(two_actors(), boxes=None, wheels=None, inputs=None)
    found = encoded(frame)
    assert '~/frame' not in found
    assert '~/markers' not in found
    assert len(found['/tf'].transforms) == 2


def test_a_name_without_a_utf_8_form_is_replaced():
    found = encoded(make_frame(('\ud800', 'é')))
    assert [actor.name for actor in found['~/frame'].actors] == ['?', 'é']


def test_reconfigured_encoder_equals_a_new_one():
    frame, registry = two_actors(), Registry()
    actor_list = registry.update(frame)
    encoder = Encoder(ALL_ON, definitions())
    encoder.encode(frame, actor_list, 1, EVERYTHING)
    settings = replace(ALL_ON, tf='ego', wheel_tf=False, joint_states=False, odometry=False)
    encoder.reconfigure(settings)
    subscriptions = subscriptions_without('~/markers')
    assert encoder.encode(frame, actor_list, 2, subscriptions) == Encoder(
        settings, definitions()).encode(frame, actor_list, 2, subscriptions)[:-1]


@pytest.mark.thorough
def test_nothing_is_kept_of_actors_that_have_left():
    registry, encoder = Registry(), Encoder(ALL_ON, definitions())
    counts = []
    for i in range(31):
        chance = Chance(0)
        chance.names = [f'stays_{k}' for k in range(5)] + [f'new_{i}_{k}' for k in range(5)]
        frame = chance.frame()
        actor_list = registry.update(frame)
        encoder.encode(frame, actor_list, i * 10 ** 9, EVERYTHING)
        for k in range(5):
            registry.remove(f'new_{i}_{k}')
        if i in (10, 30):
            gc.collect()
            counts.append(sum(isinstance(each, (MessageInstance, Actor))
                              for each in gc.get_objects()))
    assert counts[0] == counts[1]
