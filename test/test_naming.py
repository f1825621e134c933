# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Names for ROS: legal, unique, the same for as long as an actor is known."""

from __future__ import annotations

from dataclasses import replace
import re

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from state_sensor_ros.evaluation.truth import FrameGroundTruth
from state_sensor_ros.files.frame_builder import build_frame
from state_sensor_ros.frame import Frame, NO_LANES
from state_sensor_ros.naming import EMPTY_ACTOR_LIST, legal_topic_name, Registry
from state_sensor_ros.settings import Settings

LEGAL = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')


def frame_of(*names, tags=None, kinds=None) -> Frame:
    n_actors = len(names)
    return Frame('v2', 0.0, 0, 0, names,
                 np.ones(n_actors, np.uint8) if kinds is None else np.array(kinds, np.uint8),
                 ((),) * n_actors if tags is None else tags, np.zeros((n_actors, 13)), NO_LANES)


def topic_names(registry, *names):
    return [actor.topic_name for actor in registry.update(frame_of(*names)).actors]


@pytest.mark.parametrize(('raw', 'legal'), [
    ('compact_monoDrive_01_2', 'compact_monoDrive_01_2'), ('Misc.Cone-2', 'Misc_Cone_2'),
    ('3rd', 'actor_3rd'), ('', 'actor'), ('a  b', 'a__b'), ('__', '__'), ('/', '_'),
    ('../../etc/passwd', '______etc_passwd'), ('Straße 7', 'Stra_e_7'), ('車', '_'),
    ('a\x00b\n', 'a_b_'), ('~x', '_x'), ('-5', '_5'), ('٣', '_')])
def test_legal_topic_names(raw, legal):
    assert legal_topic_name(raw) == legal


@given(st.lists(st.one_of(st.text(max_size=12), st.sampled_from(
    ['a', 'a_2', 'a-2', 'a.2', 'a_3', '', 'actor', 'actor_2', '2', 'actor_2_2'])), unique=True))
def test_names_are_always_legal_and_unique(names):
    actors = Registry().update(frame_of(*names)).actors
    assert [actor.name for actor in actors] == names
    assert all(LEGAL.fullmatch(actor.topic_name) for actor in actors)
    for attribute in ('topic_name', 'frame_id', 'id'):
        assert len({getattr(actor, attribute) for actor in actors}) == len(actors)


def test_collisions_are_numbered_in_order_of_first_appearance():
    registry = Registry()
    assert topic_names(registry, 'a.b', 'a-b', 'a_b') == ['a_b', 'a_b_2', 'a_b_3']
    assert topic_names(registry, 'a_b', 'a b', 'a.b') == ['a_b_3', 'a_b_4', 'a_b']
    # A name that another actor got by numbering is also in use.
    assert topic_names(registry, 'a_b_2') == ['a_b_2_2']


def test_forgotten_names_are_free_and_ids_are_not_used_again():
    registry = Registry()
    registry.update(frame_of('a.b', 'a-b'))
    registry.update(frame_of('a-b'))
    registry.remove('a_b')
    [kept, new] = registry.update(frame_of('a-b', 'a_b')).actors
    assert (kept.topic_name, kept.id) == ('a_b_2', 2)
    assert (new.topic_name, new.id) == ('a_b', 3)
    registry.remove('unknown')
    assert registry.update(frame_of('a-b', 'a_b')).actors == (kept, new)


def ids_of(registry, names, ids):
    frame = replace(frame_of(*names), ids=None if ids is None else np.array(ids, np.int64))
    return [actor.id for actor in registry.update(frame).actors]


def test_ids_are_those_of_the_source_if_no_other_actor_has_them():
    other = 2**31
    registry = Registry()
    assert ids_of(registry, 'ab', [7, 0]) == [7, 0]
    actor_list = registry.actor_list
    assert registry.update(replace(frame_of('a', 'b'), ids=np.array([7, 0]))) is actor_list
    # One without an id, and one whose id is taken.
    assert ids_of(registry, 'acbd', [7, -1, 0, 7]) == [7, other, 0, other + 1]
    # An id that changes; a number that the registry gave is not given by the source again.
    assert ids_of(registry, 'acbd', [8, -1, 0, other]) == [8, other, 0, other + 1]
    assert ids_of(registry, 'ebd', [7, 0, 7]) == [7, 0, other + 1]
    # Without ids the known ones stay.
    assert ids_of(registry, 'eb', None) == [7, 0]
    registry.remove('e')
    assert ids_of(registry, 'bf', [0, 7]) == [0, 7]
    registry.restart()
    assert ids_of(registry, 'ab', [0, 7]) == [0, 7]


@given(st.lists(st.lists(st.tuples(st.sampled_from('abcdef'), st.integers(-1, 6)),
                         unique_by=lambda item: item[0]), max_size=6))
def test_ids_are_unique_in_every_frame(frames):
    registry = Registry()
    for frame in frames:
        given_ids = ids_of(registry, [name for name, _ in frame], [id_ for _, id_ in frame])
        assert len(set(given_ids)) == len(given_ids)
        assert {*given_ids} <= {*range(7), *range(2**31, 2**31 + 99)}


def test_actors_have_one_name_in_all_outputs():
    """Raw names that equal a frame of the settings: of the node, of bags, and in evaluation."""
    settings = Settings(global_frame='world', parent_frame='player')
    tags = (('ego',), ())
    frame_ids = [actor.frame_id for actor in Registry(settings).update(
        frame_of('player', 'world', tags=tags)).actors]
    assert frame_ids == ['player_2', 'world_2']
    assert Registry(settings).first_frame_id('player') == 'player_2'
    truth = FrameGroundTruth('a.json', settings, lambda name, tags: True, print)
    for i in range(2):
        truth.add(build_frame('toy', float(i), ['player', 'world'], np.zeros((2, 3)), tags=tags))
    assert 'player_2' in truth.finish().ego.frames


def test_restart_forgets_everybody_but_not_the_ids():
    registry = Registry()
    registry.update(frame_of('a-b', 'a.b'))
    registry.restart()
    assert registry.actor_list.actors == ()
    # A frame without actors differs from the last one before the restart, even if that had none.
    assert registry.update(frame_of()) is registry.actor_list is not EMPTY_ACTOR_LIST
    [actor] = registry.update(frame_of('a.b')).actors
    assert (actor.topic_name, actor.id) == ('a_b', 3)


@given(st.lists(st.lists(st.tuples(st.sampled_from('abcdef'), st.booleans()),
                         unique_by=lambda actor: actor[0]), max_size=6),
       st.sampled_from(['', 'base_link']))
def test_casts_that_follow_each_other_are_those_of_a_fresh_look(frames, ego_frame):
    registry = Registry(Settings(ego_frame=ego_frame))
    for actors in frames:
        names, tags = [name for name, _ in actors], [('EGO',) * is_ego for _, is_ego in actors]
        actor_list = registry.update(frame_of(*names, tags=tuple(tags)))
        # Without a change the last one is returned.
        assert registry.update(frame_of(*names, tags=tuple(tags))) is actor_list
        i_ego = tags.index(('EGO',)) if ('EGO',) in tags else -1
        assert (actor_list.i_ego, actor_list.n_egos) == (i_ego, tags.count(('EGO',)))
        assert [actor.name for actor in actor_list.actors] == names
        assert [actor.frame_id for actor in actor_list.actors] == [
            ego_frame if ego_frame and i == i_ego else name for i, name in enumerate(names)]


def test_ego_frame_follows_the_ego():
    registry = Registry(Settings(frame_prefix='sim/', ego_frame='base_link'))

    def frames(ego):
        tags = tuple(('ego',) if name == ego else () for name in 'ab')
        actor_list = registry.update(frame_of('a', 'b', tags=tags))
        return [(actor.topic_name, actor.frame_id, actor.id) for actor in actor_list.actors]

    assert frames('a') == [('a', 'base_link', 1), ('b', 'sim/b', 2)]
    assert frames('b') == [('a', 'sim/a', 1), ('b', 'base_link', 2)]
    assert frames('') == [('a', 'sim/a', 1), ('b', 'sim/b', 2)]


def test_only_so_many_actors_have_topics():
    registry = Registry(Settings(max_actor_topics=2))
    actors = registry.update(frame_of('a', 'b', 'c')).actors
    assert [actor.has_topics for actor in actors] == [True, True, False]
    registry.update(frame_of('b', 'c'))
    # An actor that has left keeps its identity until it is forgotten.
    [*_, d] = registry.update(frame_of('b', 'c', 'd')).actors
    assert not d.has_topics
    registry.remove('a')
    registry.remove('d')
    # The first one that waits gets the place that is free.
    [_, c, e] = registry.update(frame_of('b', 'c', 'e')).actors
    assert (c.has_topics, e.has_topics) == (True, False)


def test_long_names_are_cut_and_stay_apart():
    names = topic_names(Registry(), 'x' * 10_000 + '1', 'x' * 10_000 + '2')
    assert names == ['x' * 128, 'x' * 128 + '_2']


def test_frames_that_mean_something_else_are_not_given_away():
    registry = Registry(Settings(ego_frame='base_link'))
    frame = frame_of('map', 'base_link', 'car', tags=((), (), ('ego',)))
    assert [actor.frame_id for actor in registry.update(frame).actors] == [
        'map_2', 'base_link_2', 'base_link']
