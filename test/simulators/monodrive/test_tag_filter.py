# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Removal of actors from payloads by their tags."""

import json

from hypothesis import given, strategies
import pytest
from real_recordings import path_of

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.simulators.monodrive.trajectory_writer import TagFilter

EGO = '{"name": "ego",  "x": 1.50, "tags": ["Vehicle", "EGO"], "position": [-0.0, 1e0, 2]}'
CAR = '{"name": "car", "tags": ["vehicle", "static"], "position": [1, 2, 3]}'
CONE = '{"tags": ["cone"], "name": "cone", "position": [1, 2, 3.10]}'
BARE = '{"name": "bare", "position": [0, 0, 0]}'


def v1(*actors):
    return (f'{{"frame": [{", ".join(actors)}], "game_time": 1.250, "time": 1600000007, '
            '"extra": {"tags": ["cone"]}}').encode()


def v2(objects, vehicles):
    wrapped = ', '.join(f'{{"state": {vehicle}, "wheels": []}}' for vehicle in vehicles)
    return (f'{{"frame": {{"objects": [{", ".join(objects)}], "vehicles": [{wrapped}]}}, '
            '"game_time": 1.250}').encode()


def v0(**actors):
    members = ''.join(f'"{name}": {actor}, ' for name, actor in actors.items())
    return f'{{{members}"game_time": 1.250, "settings": {{"tags": ["cone"]}}}}'.encode()


@pytest.mark.parametrize('payload', [v1(EGO, CONE), v2([CONE], [EGO]), v0(a=EGO, b=CONE)])
@pytest.mark.parametrize('tags', [((), ()), (('vehicle', 'cone'), ('static',)), (('',), ('',))])
def test_tag_filter_changes_no_byte_where_all_pass(payload, tags):
    (text,) = TagFilter(*tags).frames(payload)
    assert text is payload or text == payload


@pytest.mark.parametrize(('desired', 'undesired', 'kept'), [
    (('vehicle',), (), (EGO, CAR)),
    (('VEHICLE',), ('Static',), (EGO,)),
    (('cone', 'ego'), (), (EGO, CONE)),
    ((), ('vehicle',), (CONE, BARE)),
    (('truck',), (), ()),
])
def test_tag_filter_keeps_actors_as_they_were_sent(desired, undesired, kept):
    tag_filter = TagFilter(desired, undesired)
    (text,) = tag_filter.frames(v1(EGO, CAR, CONE, BARE))
    assert json.loads(text) == json.loads(v1(*kept))
    assert all(actor.encode() in text for actor in kept)
    assert b'"game_time":1.250' in text

    objects, vehicles = ([actor for actor in kept if actor in group]
                         for group in ((CONE, BARE), (EGO, CAR)))
    (text,) = tag_filter.frames(v2([CONE, BARE], [EGO, CAR]))
    assert json.loads(text) == json.loads(v2(objects, vehicles))
    assert all(actor.encode() in text for actor in kept)

    (text,) = tag_filter.frames(v0(a=EGO, b=CAR, c=CONE, d=BARE))
    names = dict(zip((EGO, CAR, CONE, BARE), 'abcd', strict=True))
    assert json.loads(text) == json.loads(v0(**{names[actor]: actor for actor in kept}))
    assert all(actor.encode() in text for actor in kept)


def test_tag_filter_splits_an_array_of_frames():
    payload = b' [' + v1(EGO, CONE) + b', ' + v1(CONE) + b']'
    assert TagFilter((), ()).frames(payload) == [v1(EGO, CONE), v1(CONE)]
    frames = TagFilter(('ego',), ()).frames(payload)
    assert [len(json.loads(frame)['frame']) for frame in frames] == [1, 0]


def test_tag_filter_filters_a_frame_in_a_string():
    payload = json.dumps({'state_data_as_string': v1(EGO, CONE).decode()}).encode()
    (text,) = TagFilter(('cone',), ()).frames(payload)
    assert json.loads(text) == json.loads(v1(CONE))


def test_tag_filter_counts_unreadable_tags_as_none():
    odd = '{"name": "odd", "tags": [1, null], "position": [0, 0, 0]}'
    assert json.loads(TagFilter(('ego',), ()).frames(v1(EGO, odd, '17'))[0])['frame'] \
        == [json.loads(EGO)]
    assert TagFilter((), ('ego',)).frames(v1(odd)) == [v1(odd)]
    assert 'a' not in json.loads(TagFilter(('ego',), ()).frames(v0(a=odd, b=EGO))[0])


def test_tag_filter_accepts_nan():
    payload = v1(EGO, CONE).replace(b'1.50', b'NaN')
    (text,) = TagFilter(('ego',), ()).frames(payload)
    assert json.loads(text)['frame'][0]['x'] is None


@pytest.mark.parametrize('payload', [b'', b'{', b'\xff', b'[1, 2', b'{"frame": [}'])
def test_tag_filter_refuses_text_that_is_not_json(payload):
    with pytest.raises(DecodeError):
        TagFilter(('ego',), ()).frames(payload)


@given(strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.text('aé"'),
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(
        strategies.sampled_from(['frame', 'tags', 'position', 'state', 'objects', 'vehicles',
                                 'state_data_as_string']), inner, max_size=3),
    max_leaves=12))
def test_tag_filter_accepts_any_json(value):
    try:
        frames = TagFilter(('ego',), ('static',)).frames(json.dumps(value).encode())
    except DecodeError:
        return
    for frame in frames:
        json.loads(frame)  # still JSON, or this raises


@pytest.mark.parametrize('name', ['left_turn_cross_walk.v0', 'scenario.v1',
                                  'car_to_car_rear_stationary.v2'])
def test_tag_filter_keeps_the_ego_of_recordings(name):
    path = path_of(f'{name}.json')
    for element in json.loads(path.read_bytes())[:5]:
        (text,) = TagFilter(('ego',), ()).frames(json.dumps(element).encode())
        assert text.count(b'"tags"') == 1
        members = json.loads(text)
        assert members['game_time'] == element['game_time']
