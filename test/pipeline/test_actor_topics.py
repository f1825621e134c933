# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""Topics of actors: from the first frame until some time after the last, within the limit."""

from __future__ import annotations

import time

from budgets import one_of
from encode_world import make_frame
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from state_sensor_ros.frame import KIND_OBJECT, KIND_VEHICLE, NS_PER_S
from state_sensor_ros.naming import EMPTY_ACTOR_LIST, Registry
from state_sensor_ros.pipeline.actors import ActorTopics
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.topic import Topic

TIMEOUT_S = 2
NAMES = 'abcde'
KINDS = {name: KIND_OBJECT if name == 'a' else KIND_VEHICLE for name in NAMES}

# Frames: the actors in their order, and those with a lane state; None is a restart.
frames = st.lists(st.none() | st.tuples(
    st.lists(st.sampled_from(NAMES), unique=True), st.frozensets(st.sampled_from(NAMES))),
    min_size=1, max_size=12)


class Topics:
    """Returns the topics of an actor, and records which are open."""

    def __init__(self):
        self.existing = set()

    def actor_topics(self, actor, *, has_lanes, has_wheels):
        kinds = ['odometry', *['lanes'] * has_lanes, *['wheels'] * has_wheels]
        return tuple(Topic(f'{actor.topic_name}/{kind}', 'a/msg/Type') for kind in kinds)

    def open(self, topics):
        self.existing |= {topic.name for topic in topics}

    def shut(self, topics):
        self.existing -= {topic.name for topic in topics}


@given(frames)
def test_topics_follow_the_actors(sequence):
    topics, registry = Topics(), Registry()
    actor_topics, actor_list = ActorTopics(topics, topics, registry, TIMEOUT_S), EMPTY_ACTOR_LIST
    # The model: whether each name ever carried a lane state, and since when it has been away.
    had_lanes, away_since_s = {}, {}
    for now_s, entry in enumerate(sequence):
        if entry is None:
            registry.restart(actor_topics.restart(now_s * NS_PER_S))
            actor_list = EMPTY_ACTOR_LIST
            # The time between the last frame of a run and the first of the next is unknown: 0.
            away_since_s = {name: away_since_s.get(name, now_s - 1) + 1 for name in had_lanes}
            continue
        names, with_lanes = entry
        before, actor_list = actor_list, registry.update(make_frame(
            names, kinds=[KINDS[name] for name in names]))
        lane_rows = [i for i, name in enumerate(names) if name in with_lanes]
        actor_topics.follow(actor_list, before, np.array(lane_rows, np.int64), now_s * NS_PER_S)
        actor_topics.close_absent(now_s * NS_PER_S)
        for name in names:
            had_lanes[name] = had_lanes.get(name, False) or name in with_lanes
        away_since_s = {name: away_since_s.get(name, now_s)
                        for name in had_lanes if name not in names}
        for name, since_s in list(away_since_s.items()):
            if now_s - since_s >= TIMEOUT_S:
                del had_lanes[name], away_since_s[name]
        assert topics.existing == {
            f'{name}/{kind}' for name, has_lanes in had_lanes.items() for kind, exists in (
                ('odometry', True), ('lanes', has_lanes),
                ('wheels', KINDS[name] == KIND_VEHICLE)) if exists}


def follow(actor_topics, registry, before, names, now_s):
    """Do for a frame what the pipeline does; return its actors."""
    actor_list, no_lanes = registry.update(make_frame(names)), np.zeros(0, np.int64)
    actor_topics.follow(actor_list, before, no_lanes, now_s * NS_PER_S)
    actor_topics.close_absent(now_s * NS_PER_S)
    actor_topics.make_room(registry.n_without_topics)
    return actor_list


class Odometry(Topics):
    """Gives each actor within the limit one topic."""

    def actor_topics(self, actor, *, has_lanes, has_wheels):
        return (Topic(actor.topic_name, 'a/msg/Type'),) if actor.has_topics else ()


steps = st.lists(st.tuples(
    st.sampled_from(['frame', 'frame', 'frame', 'restart']),
    st.lists(st.sampled_from('abcdefgh'), unique=True)), min_size=1, max_size=20)


@given(steps, st.integers(0, 4))
def test_topics_never_exceed_the_limit_and_free_places_are_used(sequence, limit):
    topics, registry = Odometry(), Registry(Settings(max_actor_topics=limit))
    actor_topics, actor_list = ActorTopics(topics, topics, registry, TIMEOUT_S), EMPTY_ACTOR_LIST
    for now_s, (kind, names) in enumerate(sequence):
        if kind == 'restart':
            registry.restart(actor_topics.restart(now_s * NS_PER_S))
            actor_list = EMPTY_ACTOR_LIST
        # Actors without topics get the places of absent ones with the next frame.
        for _ in range(2):
            actor_list = follow(actor_topics, registry, actor_list, names, now_s)
        served = {actor.topic_name for actor in actor_list.actors if actor.has_topics}
        assert len(topics.existing) <= limit
        assert served <= topics.existing
        # An actor goes without topics only where all places are taken by others in the frame.
        assert len(served) == min(limit, len(names))


def ratio_of_costs(run, small, large):
    """Return how much more of the processor the large input takes, the least of some tries."""
    def cost(n):
        began = time.process_time()
        run(n)
        return time.process_time() - began
    return min(cost(large) for _ in range(3)) / min(cost(small) for _ in range(3))


@pytest.mark.parametrize('name', one_of(['a!{}', 'a{}', 'a_{}', '{}']), ids=repr)
def test_naming_is_linear_in_actors_whatever_their_names_are(name):
    # 8 times the actors: 8 where it is linear, 64 where it is quadratic.
    def run(n):
        # After cleaning, all names are equal: 20 different characters, in all combinations.
        digits = '!$%&()*+,-./:;<=>?@~'
        registry = Registry()
        names = [name.format(''.join(digits[i // 20 ** k % 20] for k in range(4)))
                 for i in range(n)]
        registry.update(make_frame(names))

    assert ratio_of_costs(run, 500, 4000) < 24


def test_absent_actors_are_bounded_where_the_clock_stands_still(monkeypatch):
    monkeypatch.setattr('state_sensor_ros.pipeline.actors._MAX_ABSENT', 1000)
    topics, registry = Odometry(), Registry(Settings(max_actor_topics=10))
    actor_topics, actor_list = ActorTopics(topics, topics, registry, TIMEOUT_S), EMPTY_ACTOR_LIST
    for i in range(25):
        actor_list = follow(actor_topics, registry, actor_list,
                            [f'{i} {j}' for j in range(100)], 0)
    assert len(registry._known) < 1300
