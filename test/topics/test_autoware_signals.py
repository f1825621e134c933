# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Traffic lights by Autoware's regulatory elements, from a Lanelet2 map or from a table."""


from encode_world import definitions, make_frame
from message_store import typestore
import numpy as np
import pytest

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.frame import (
    LIGHT_GREEN,
    LIGHT_PEDESTRIAN,
    LIGHT_RED,
    LIGHT_YELLOW,
    TrafficLights,
)
from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import parse_settings
from state_sensor_ros.topics.autoware_signals import SIGNALS_TOPIC
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.lanelet2 import read_lanelet_map, read_lanelets
from state_sensor_ros.topics.topic import EVERYTHING

# Two lanes to the east, each 3 m wide, with a head on a pole at (20, 8); it belongs to the groups
# 100 (lane 1) and 101 (lane 2). A crossing at x = 12 with the group 102, its head at (12, 6).
NODES = {1: (0, 0), 2: (10, 0), 3: (0, 3), 4: (10, 3), 5: (0, 6), 6: (10, 6), 7: (9.5, 0),
         8: (9.5, 6), 9: (20, 8), 10: (20.5, 8), 11: (11, 6), 12: (13, 6), 13: (11, 0),
         14: (11, 6), 15: (13, 0)}
WAYS = {20: (1, 2), 21: (4, 3), 22: (5, 6), 30: (7, 8), 31: (9, 10), 32: (11, 12), 40: (13, 14),
        41: (15, 12)}
LANELETS = {50: (21, 20, 'road', 100), 51: (22, 21, 'road', 101), 52: (40, 41, 'crosswalk', 102)}
GROUPS = {100: (31, 30), 101: (31, 30), 102: (32, None)}
RED, AMBER, GREEN = 1, 2, 3


def map_text():
    def relation(number, members, **tags):
        return f'<relation id="{number}">' + ''.join(
            f'<member type="{kind}" ref="{ref}" role="{role}"/>'
            for kind, ref, role in members if ref) + ''.join(
            f'<tag k="{key}" v="{value}"/>' for key, value in tags.items()) + '</relation>'
    parts = [f'<node id="{node}" lat="" lon=""><tag k="local_x" v="{x}"/>'
             f'<tag k="local_y" v="{y}"/><tag k="ele" v="2.5"/></node>'
             for node, (x, y) in NODES.items()]
    parts += [f'<way id="{way}">' + ''.join(f'<nd ref="{node}"/>' for node in nodes) + '</way>'
              for way, nodes in WAYS.items()]
    parts += [relation(number, [('way', left, 'left'), ('way', right, 'right'),
                                ('relation', group, 'regulatory_element')],
                       type='lanelet', subtype=subtype)
              for number, (left, right, subtype, group) in LANELETS.items()]
    parts += [relation(number, [('way', head, 'refers'), ('way', line, 'ref_line')],
                       type='regulatory_element', subtype='traffic_light')
              for number, (head, line) in GROUPS.items()]
    return f'<osm version="0.6">{"".join(parts)}</osm>'


@pytest.fixture
def lanelet_map(tmp_path):
    path = tmp_path / 'town.osm'
    path.write_text(map_text())
    return str(path)


def lights(*rows, **parts):
    """Return lights of (name, state, x, y) with the ids 0, 1, ..."""
    names, states, *xy = zip(*rows, strict=True)
    poses = np.zeros((len(rows), 7))
    poses[:, :2], poses[:, 6] = np.transpose(xy), 1.0
    return TrafficLights(np.arange(len(rows)), names, np.array(states, np.uint8), poses, **parts)


class Rig:
    """Encodes frames with lights; notes the reports."""

    def __init__(self, **parameters):
        self.settings = parse_settings({'outputs': ['autoware'], **{
            f'autoware.{name}': value for name, value in parameters.items()}})
        self.reports = []
        self.encoder = Encoder(self.settings, definitions(), lambda kind, line: (
            self.reports.append(line) if 'light' in kind else None))
        self.registry = Registry(self.settings)

    def elements(self, shown):
        """Return (color, shape, status) of the elements of each group by its id."""
        frame = make_frame(traffic_lights=shown)
        sent = [data for topic, data in self.encoder.encode(
            frame, self.registry.update(frame), 10**9, EVERYTHING) if topic == SIGNALS_TOPIC]
        if not sent:
            return None
        message = typestore().deserialize_cdr(sent[0], SIGNALS_TOPIC.type_name)
        assert message.stamp.sec == 1
        return {group.traffic_light_group_id: [
            (element.color, element.shape, element.status) for element in group.elements]
            for group in message.traffic_light_groups}


def test_middles_of_lanelets_run_with_their_left_bound_on_the_left(lanelet_map):
    first, second, crossing = read_lanelets(lanelet_map)
    assert first.points_xyz.tolist() == [[0, 1.5, 2.5], [10, 1.5, 2.5]]
    assert second.points_xyz.tolist() == [[0, 4.5, 2.5], [10, 4.5, 2.5]]
    assert (first.kind, first.width, crossing.kind) == ('driving', 3.0, 'crossing')
    assert [groups for _, groups in read_lanelet_map(lanelet_map).heads] == [[100, 101], [102]]


def test_state_goes_to_every_group_of_the_nearest_head(lanelet_map):
    rig = Rig(lanelet2_map=lanelet_map)
    pole, far = ('pole', LIGHT_RED, 21, 10), ('far', LIGHT_GREEN, 200, 0)
    assert rig.elements(lights(pole, far)) == {100: [(RED, 1, 2)], 101: [(RED, 1, 2)]}
    rig.elements(lights(('pole', LIGHT_YELLOW, 21, 10), far))
    [report] = rig.reports
    assert report == ('1 traffic light without a regulatory element: no light head within 10 m in '
                      f'{lanelet_map}: far')


def test_group_is_unknown_if_its_lights_differ_or_show_nothing(lanelet_map):
    rig = Rig(lanelet2_map=lanelet_map)
    unknown = {100: [(0, 0, 0)], 101: [(0, 0, 0)]}
    assert rig.elements(lights(('a', LIGHT_GREEN, 20, 8), ('b', LIGHT_RED, 20, 9))) == unknown
    assert rig.elements(lights(('c', LIGHT_GREEN, 500, 8))) == unknown
    assert rig.elements(None) == unknown


def test_light_for_pedestrians_has_groups_of_crossings_only(lanelet_map):
    shown = lights(('cars', LIGHT_RED, 12, 6), ('people', LIGHT_GREEN, 20, 8),
                   shapes=np.array((1, LIGHT_PEDESTRIAN), np.uint8))
    assert Rig(lanelet2_map=lanelet_map).elements(shown) == {
        100: [(RED, 1, 2)], 101: [(RED, 1, 2)], 102: [(GREEN, 1, 2)]}


def test_light_at_a_stop_line_has_the_groups_of_that_line(lanelet_map):
    shown = lights(('lane', LIGHT_GREEN, 9, 4), ('far', LIGHT_RED, 40, 8), are_at_stop_lines=True)
    assert Rig(lanelet2_map=lanelet_map).elements(shown) == {
        100: [(GREEN, 1, 2)], 101: [(GREEN, 1, 2)]}


def test_table_names_groups_by_name_and_id_before_the_map(lanelet_map, tmp_path):
    table = tmp_path / 'ids.yaml'
    table.write_text('A0/3: 7\n1: [8, 9]\n')
    rig = Rig(traffic_light_ids=str(table), lanelet2_map=lanelet_map)
    shown = lights(('A0/3', LIGHT_RED, 0, 0), ('B', LIGHT_GREEN, 0, 0),
                   ('C', LIGHT_YELLOW, 20, 8))
    assert rig.elements(shown) == {7: [(RED, 1, 2)], 8: [(GREEN, 1, 2)], 9: [(GREEN, 1, 2)],
                                   100: [(AMBER, 1, 2)], 101: [(AMBER, 1, 2)]}
    assert not rig.reports


@pytest.mark.parametrize(('text', 'found'), [
    ('<osm><node', 'unclosed token'), ('<OpenDRIVE/>', 'an element <OpenDRIVE>'),
    ('<osm/>', 'no regulatory elements'),
    ('other'.join(map_text().rsplit('local_x', 1)), 'node 15 without local_x'),
], ids=['cut', 'xodr', 'empty', 'mixed'])
def test_wrong_map_is_refused(text, found, tmp_path):
    path = tmp_path / 'town.osm'
    path.write_text(text)
    with pytest.raises(ConfigError, match=found):
        Rig(lanelet2_map=str(path))


@pytest.mark.parametrize('text', ['- 1', 'a: [1, 1.5]', '\t', 'a: 99999999999999999999'])
def test_wrong_table_is_refused(text, tmp_path):
    path = tmp_path / 'ids.yaml'
    path.write_text(text)
    with pytest.raises(ConfigError, match=r'ids\.yaml.*expected a mapping of names or ids'):
        Rig(traffic_light_ids=str(path))
