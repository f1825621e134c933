# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""SUMO on the topics of the node."""

from message_store import typestore
import numpy as np
from paths import ROOT
import pytest
from rig import NodeProcess
from rosbags.rosbag2 import Reader

from state_sensor_ros.commands.command_line import main

# It runs the real SUMO; test_sumo_commands.py runs with `make test`, too.
pytestmark = pytest.mark.thorough

OWN = 'state_sensor_ros'
NETWORK = ROOT / 'resource' / 'sumo' / 'grid.net.xml.gz'


@pytest.fixture(scope='module')
def network():
    sumolib_net = pytest.importorskip('sumolib.net')
    return sumolib_net.readNet(str(NETWORK), withInternal=True, withPrograms=True)


def check_roads(array, network):
    """Each edge of the file has the number of its place."""
    assert {road.road_id: road.name for road in array.roads} == {
        i: edge.getID() for i, edge in enumerate(network.getEdges())}


def check_lights(arrays, network):
    """One light for each controlled lane, at its end, in colors that change."""
    controlled = {lane.getID(): lane for light in network.getTrafficLights()
                  for lane, _, _ in light.getConnections()}
    numbers = {lane.getID(): i for i, lane in enumerate(
        lane for edge in network.getEdges() for lane in edge.getLanes())}
    places = {numbers[name]: lane.getShape()[-1] for name, lane in controlled.items()}
    for array in arrays:
        assert {light.id for light in array.traffic_lights} == set(places)
        assert {light.frame_id for light in array.traffic_lights} == {'map'}
        for light in array.traffic_lights:
            position = light.pose.position
            assert (position.x, position.y) == pytest.approx(places[light.id], abs=1e-9)
    assert {light.state for array in arrays for light in array.traffic_lights} >= {0, 2}


def check_map(array, network):
    """Every lane of the file but walking areas is in the list of its kind."""
    drawn = {tuple(np.round((p.x, p.y), 6)) for marker in array.markers for p in marker.points}
    for edge in network.getEdges():
        if edge.getFunction() != 'walkingarea':
            for lane in edge.getLanes():
                assert {tuple(np.round(point, 6)) for point in lane.getShape()} <= drawn
    assert {marker.type for marker in array.markers} == {5}
    kinds = [marker.ns for marker in array.markers]
    assert len(kinds) == len(set(kinds)) > 2


def test_sumo_roads_lights_and_map_are_on_topics(domain, listener, network):
    lights = listener.subscribe('/state_sensor/traffic_lights', f'{OWN}/TrafficLightStateArray')
    ego = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
    with NodeProcess(domain, source='sumo', rate=0.0, **{'sumo.ego': 'ego'}) as node:
        listener.until(lambda: len(lights) > 100 and ego)
        # Subscribers that come late.
        roads = listener.subscribe('/state_sensor/roads', f'{OWN}/RoadArray', latched=True)
        lanes = listener.subscribe('/state_sensor/map', 'visualization_msgs/MarkerArray',
                                   latched=True)
        listener.until(lambda: roads and lanes)
        assert node.end()[0] == 0
    check_roads(roads[0], network)
    check_lights(lights, network)
    check_map(lanes[0], network)


def test_sumo_bag_has_roads_lights_and_map(tmp_path, network):
    assert main(['record', str(tmp_path / 'bag'), '--source', 'sumo', '-p', 'rate:=0',
                 '--frames', '100', '-q']) == 0
    found = {}
    with Reader(tmp_path / 'bag') as reader:
        for connection, _, data in reader.messages():
            name = connection.topic.removeprefix('/state_sensor/')
            if name in ('roads', 'traffic_lights', 'map'):
                found.setdefault(name, []).append(
                    typestore().deserialize_cdr(data, connection.msgtype))
    assert {name: len(messages) for name, messages in found.items()} == {
        'roads': 1, 'traffic_lights': 100, 'map': 1}
    check_roads(found['roads'][0], network)
    check_lights(found['traffic_lights'], network)
    check_map(found['map'][0], network)
