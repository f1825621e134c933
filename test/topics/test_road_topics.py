# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""Roads, lights and map: when their topics open, and what is sent when."""

from dataclasses import replace

from encode_world import ALL_ON, definitions, exact_actors, make_frame
from message_store import typestore
import numpy as np
import pytest
from silent_sink import SilentSink

from state_sensor_ros.frame import MapLine, TrafficLights
from state_sensor_ros.naming import Registry
from state_sensor_ros.pipeline.pipeline import Pipeline
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.map_topics import LIGHTS_NS, MapEncoder
from state_sensor_ros.topics.markers import MARKERS_TOPIC
from state_sensor_ros.topics.topic import EVERYTHING, LATCHED, ORDINARY

[MAP] = MapEncoder.topics
NEW = {'~/roads', '~/traffic_lights', '~/map'}
GREEN, RED = (0.0, 0.8, 0.2), (0.9, 0.1, 0.1)


class Record(SilentSink):
    """Notes the topics that are opened, and their messages."""

    def __init__(self):
        super().__init__(EVERYTHING)
        self.topics, self.messages, self.markers = {}, [], []

    def open(self, topics):
        for topic in topics:
            if not topic.actor:
                assert topic.name not in self.topics
                self.topics[topic.name] = topic

    def publish(self, messages, stamp_ns):
        for topic, data in messages:
            if topic.name in NEW:
                assert topic.name in self.topics
                self.messages.append((topic.name, typestore().deserialize_cdr(
                    data, topic.type_name)))
            elif topic == MARKERS_TOPIC:
                self.markers.append(typestore().deserialize_cdr(data, topic.type_name))


class Rig:
    """A pipeline of frames, one each 50 ms."""

    def __init__(self, further=()):
        self.sink, self.time = Record(), 1.0
        self.encoder = Encoder(ALL_ON, definitions(), further=further)
        encoders = iter((self.encoder,))
        self.pipeline = Pipeline(ALL_ON, lambda settings: next(encoders, None) or Encoder(
            settings, definitions(), further=further), self.sink,
            report=lambda kind, text: None)

    def send(self, frame=None, **parts):
        """Return name and message of what a frame makes of these topics."""
        self.time += 0.05
        frame = replace(frame or make_frame(), game_time=self.time, **parts)
        begin = len(self.sink.messages)
        assert self.pipeline.process(frame, 0)
        return self.sink.messages[begin:]


def lines(*kinds):
    return tuple(MapLine(kind, np.array([(0.0, k, 0.0), (1.0, k, 0.0), (2.0, k, 5.0)]))
                 for k, kind in enumerate(kinds))


def with_roads(frame, **names):
    return replace(frame, lanes=replace(frame.lanes, road_names={
        int(number[1:]): name for number, name in names.items()}))


def test_topics_open_with_the_first_frame_that_has_something_for_them():
    rig = Rig()
    assert rig.send() == []
    assert rig.sink.topics == {}
    rig.send(map_lines=lines('driving'))
    assert set(rig.sink.topics) == {'~/map'}
    rig.send(exact_actors())
    assert {name: topic.qos for name, topic in rig.sink.topics.items()} == {
        '~/map': LATCHED, '~/map/opendrive': LATCHED, '~/roads': LATCHED,
        '~/traffic_lights': ORDINARY, '~/control_states': ORDINARY}
    assert rig.pipeline.counters.n_published == 3


def test_roads_are_sent_when_there_are_more():
    rig, frame = Rig(), make_frame()
    [(name, first)] = rig.send(with_roads(frame, _0='a', _1='b'))
    assert name == '~/roads'
    assert [(road.road_id, road.name) for road in first.roads] == [(0, 'a'), (1, 'b')]
    assert (first.header.frame_id, first.header.stamp.sec) == ('map', 1)
    assert rig.send(with_roads(frame, _1='b', _0='a')) == []
    assert rig.send(with_roads(frame, _1='b')) == []
    [(_, more)] = rig.send(with_roads(frame, _7=':c'))
    assert [road.road_id for road in more.roads] == [0, 1, 7]
    rig.time = 0.0
    [(_, again)] = rig.send(with_roads(frame, _1='b'))
    assert [road.road_id for road in again.roads] == [1]


def test_lights_are_in_each_frame_with_their_states():
    rig = Rig()
    poses = np.zeros((2, 7))
    poses[:, 6] = 1.0
    found = []
    for states in ((0, 2), (1, 2), (1, 0)):
        [(_, array)] = rig.send(traffic_lights=TrafficLights(
            np.array((3, 9)), ('x/0', 'x/1'), np.array(states, np.uint8), poses))
        found.append(tuple(light.state for light in array.traffic_lights))
        assert [(light.id, light.name, light.frame_id) for light in array.traffic_lights] == [
            (3, 'x/0', 'map'), (9, 'x/1', 'map')]
    assert found == [(0, 2), (1, 2), (1, 0)]
    [(_, none)] = rig.send(traffic_lights=TrafficLights(
        np.zeros(0, np.int64), (), np.zeros(0, np.uint8), np.zeros((0, 7))))
    assert none.traffic_lights == []
    assert rig.send() == []


def test_lights_are_spheres_in_the_markers():
    rig, poses = Rig(), np.zeros((2, 7))
    poses[:, 0], poses[:, 6] = (3.0, 8.0), 1.0

    def drawn(*states):
        rig.send(traffic_lights=TrafficLights(
            np.array((3, 9)), ('x/0', 'x/1'), np.array(states, np.uint8), poses))
        [marker] = [each for each in rig.sink.markers[-1].markers if each.ns == LIGHTS_NS]
        assert (marker.type, marker.action, marker.header.frame_id) == (7, 0, 'map')
        return {point.x: tuple(np.round((color.r, color.g, color.b), 3))
                for point, color in zip(marker.points, marker.colors, strict=True)}

    assert drawn(0, 2) == {3.0: GREEN, 8.0: RED}
    assert drawn(0, 2) == {3.0: GREEN, 8.0: RED}
    assert drawn(2, 0) == {3.0: RED, 8.0: GREEN}


def test_map_is_sent_once_as_a_list_of_lines_for_each_kind():
    rig, town = Rig(), lines('driving', 'sidewalk', 'driving')
    [(name, array)] = rig.send(map_lines=town)
    assert name == '~/map'
    assert [(marker.ns, marker.type, marker.action, len(marker.points), marker.header.frame_id)
            for marker in array.markers] == [('driving', 5, 0, 8, 'map'),
                                             ('sidewalk', 5, 0, 4, 'map')]
    assert [(p.x, p.y, p.z) for p in array.markers[1].points] == [
        (0, 1, 0), (1, 1, 0), (1, 1, 0), (2, 1, 5)]
    assert all(marker.scale.x > 0 and marker.color.a == 1 and marker.pose.orientation.w == 1
               for marker in array.markers)
    assert rig.send(map_lines=town) == rig.send() == []


def test_map_has_the_surfaces_of_lanes_for_displays():
    encoder = Encoder(replace(ALL_ON, debug_drawing=False), definitions())
    bend = np.array([(0.0, 0.0, 1.0), (10.0, 0.0, 1.0), (10.0, 10.0, 2.0)])
    frame = make_frame(map_lines=(MapLine('driving', bend, 3.2), MapLine('border', bend)))
    encoder.new_topics(frame)
    actor_list = Registry().update(frame)

    def drawn(**settings):
        encoder.reconfigure(replace(ALL_ON, **settings))
        sent = dict(encoder.encode(frame, actor_list, 10**9, EVERYTHING)).get(MAP)
        return sent and {marker.ns: marker for marker in typestore().deserialize_cdr(
            sent, MAP.type_name).markers}

    assert drawn(debug_drawing=False).keys() == {'driving', 'border'}
    surface = drawn(debug_drawing=True)['driving_surface']
    assert (surface.type, surface.action, surface.scale.x) == (11, 0, 1.0)
    corners = np.array([(p.x, p.y, p.z) for p in surface.points]).reshape(2, 2, 3, 3)
    # 3 m of the 3.2 m: neighboring lanes are seen apart. The bend is cut at 45 degrees.
    assert np.abs(corners[0, 0, :2, :2] - [[0, 1.5], [0, -1.5]]).max() < 1e-9
    assert np.abs(corners[0, 1, 1:, :2] - [10, 0]) == pytest.approx(np.full((2, 2), 1.5 / 2**0.5))
    assert set(corners[..., 2].round(6).ravel()) == {0.95, 1.95}
    assert drawn(debug_drawing=True) is None
    assert drawn(debug_drawing=False)['driving_surface'].action == 2


def test_map_of_a_file_takes_the_place_of_that_of_the_frames():
    given = lines('border')
    rig = Rig((lambda *args: MapEncoder(*args, given=given),))
    # It exists from the start.
    rig.sink.open([topic for topic in rig.encoder.topics if topic.name in NEW])
    [(_, array)] = rig.send(map_lines=lines('driving'))
    assert [marker.ns for marker in array.markers] == ['border']
    assert rig.send(map_lines=lines('driving')) == []
