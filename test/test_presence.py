# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Topics of actors exist from their first frame until they have been away for too long."""

from __future__ import annotations

from encode_world import make_frame
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np

from state_sensor_ros.encode import Topic
from state_sensor_ros.frame import KIND_OBJECT, KIND_VEHICLE
from state_sensor_ros.naming import NOBODY, Registry
from state_sensor_ros.presence import Presence
from state_sensor_ros.stamps import NS_PER_S

TIMEOUT_S = 2
NAMES = 'abcde'
KINDS = {name: KIND_OBJECT if name == 'a' else KIND_VEHICLE for name in NAMES}

# Of each frame: who is in it, in which order, who carries a lane state; or a restart, None.
frames = st.lists(st.none() | st.tuples(
    st.lists(st.sampled_from(NAMES), unique=True), st.frozensets(st.sampled_from(NAMES))),
    min_size=1, max_size=12)


class Topics:
    """Gives an actor its topics, and knows which exist."""

    def __init__(self):
        self.existing = set()

    def actor_topics(self, actor, *, has_lanes, has_wheels):
        kinds = ['odometry', *['lanes'] * has_lanes, *['wheels'] * has_wheels]
        return tuple(Topic(f'{actor.topic_name}/{kind}', 'a/msg/Type', kind) for kind in kinds)

    def open(self, topics):
        self.existing |= {topic.name for topic in topics}

    def shut(self, topics):
        self.existing -= {topic.name for topic in topics}


@settings(derandomize=True, max_examples=400, deadline=None)
@given(frames)
def test_topics_follow_the_actors(sequence):
    topics, registry = Topics(), Registry()
    presence, cast = Presence(topics, topics, registry, TIMEOUT_S), NOBODY
    # The model: whether each name ever carried a lane state, and since when it has been away.
    had_lanes, away_since_s = {}, {}
    for now_s, entry in enumerate(sequence):
        if entry is None:
            presence.restart(now_s * NS_PER_S)
            registry.restart()
            cast, away_since_s = NOBODY, dict.fromkeys(had_lanes, now_s)
            continue
        names, with_lanes = entry
        before, cast = cast, registry.update(make_frame(
            names, kinds=[KINDS[name] for name in names]))
        lane_rows = [i for i, name in enumerate(names) if name in with_lanes]
        presence.follow(cast, before, np.array(lane_rows, np.int64), now_s * NS_PER_S)
        presence.shut_absent(now_s * NS_PER_S)
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
