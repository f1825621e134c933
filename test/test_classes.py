# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Class, kind and ego of an actor, and its largest box: one answer for every user of a frame."""

import json

from drawn_scenes import Agent, frame, scene_of
import numpy as np
import pytest

from state_sensor_ros.classes import class_of, CLASSES, ego_row, has_ego_tag
from state_sensor_ros.commands.cli import main
from state_sensor_ros.drawing import scene as scenes
from state_sensor_ros.frame import Boxes
from state_sensor_ros.naming import Registry
from state_sensor_ros.objects.box_bounds import box_of
from state_sensor_ros.settings import Settings

OBJECT, VEHICLE = 0, 1
# Kind, tags, name of the class, what pictures draw.
RULES = [
    (OBJECT, ('static', 'Walker'), 'person', scenes.PEDESTRIAN),
    (VEHICLE, ('person', 'bus'), 'person', scenes.PEDESTRIAN),
    (OBJECT, ('cyclist',), 'cyclist', scenes.VEHICLE),
    (VEHICLE, ('motorcycle',), 'motorcycle', scenes.VEHICLE),
    (OBJECT, ('truck', 'trailer'), 'truck', scenes.VEHICLE),
    (OBJECT, ('CAR',), 'car', scenes.VEHICLE),
    (VEHICLE, ('dynamic',), 'car', scenes.VEHICLE),
    (OBJECT, ('cars', 'pedestrians'), 'unknown', scenes.OBJECT),
    (OBJECT, ('traffic_light',), 'unknown', scenes.LIGHT),
    (OBJECT, ('traffic_sign',), 'unknown', scenes.OTHER_SIGN),
    (OBJECT, ('traffic_sign', 'speed_limit_sign'), 'unknown', scenes.SIGN)]


@pytest.mark.parametrize(('kind', 'tags', 'name', 'drawn'), RULES)
def test_classes_of_outputs_and_pictures_are_the_same(kind, tags, name, drawn):
    assert CLASSES[class_of(kind, tags)].name == name
    assert scene_of(frame(0.0, Agent('a', kind=kind, tags=tags))).kind.tolist() == [drawn]


def test_ego_is_the_first_with_the_tag_everywhere():
    tags = (('car',), ('Hero', 'car'), ('HERO',))
    assert has_ego_tag(tags[1], 'hero')
    assert ego_row(tags, 'hEro') == 1
    assert ego_row(tags) is None
    both = frame(0.0, *(Agent(str(i), tags=own) for i, own in enumerate(tags)))
    assert Registry(Settings(ego_tag='HERO')).update(both).i_ego == 1
    assert scene_of(both, ego_tag='hero').is_ego.tolist() == [False, True, False]


def test_largest_box_is_the_largest_that_is_usable():
    good, nan, small = (0, 0, 0, 0, 0, 0, 1, 4, 2, 1.5, 1, 1, 1), (np.nan, *([9.0] * 12)), (
        0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1)
    several = frame(0.0, Agent('a'), Agent('b'), boxes=Boxes(
        np.array([1, 1, 1]), ('nan', 'good', 'small'), np.array([nan, good, small])))
    assert several.largest_boxes().tolist() == [1]
    assert box_of(several, 1).half.tolist() == [2, 1, 0.75]
    assert box_of(several, 0) is None
    assert not len(frame(0.0, Agent('a')).largest_boxes())


@pytest.fixture
def heroes(tmp_path):
    """Return a trajectory whose ego is tagged hero, and the name of that actor."""
    assert main(['synth', str(tmp_path / 'in.json'), '--vehicles', '4', '--objects', '0',
                 '--frames', '5', '-q']) == 0
    text = (tmp_path / 'in.json').read_text()
    path = tmp_path / 'heroes.json'
    path.write_text(text.replace('"ego"', '"hero"'))
    [ego] = [vehicle['state']['name'] for vehicle in json.loads(text)[0]['frame']['vehicles']
             if 'ego' in vehicle['state']['tags']]
    return path, ego


def test_ego_tag_reaches_tables(heroes, tmp_path):
    parquet = pytest.importorskip('pyarrow.parquet')
    path, ego = heroes
    out = tmp_path / 'out.parquet'
    assert main(['convert', str(path), str(out), '--ego-tag', 'Hero', '-q']) == 0
    rows = parquet.read_table(out, columns=['name', 'is_ego']).to_pylist()
    assert {row['name'] for row in rows if row['is_ego']} == {ego}
    assert len(rows) == 20
