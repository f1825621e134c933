# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""SUMO on the topics of the node; one that is missing, wrong, late, over or killed."""

import os
import signal

from paths import DATA
from process_state import children, has_ended
import pytest
from rig import FAST, NodeProcess, statuses

# It runs the real SUMO; test_sumo_commands.py runs with `make test`, too.
pytestmark = pytest.mark.thorough

OWN = 'state_sensor_ros'
STALE = 3
HILL = DATA / 'sumo' / 'hill.net.xml'
ROUTES = """<routes><vType id="car"/><route id="over" edges="up down turn"/>
<flow id="car" type="car" route="over" begin="0" end="60" period="3"/></routes>"""


def test_sumo_roads_lights_and_map_are_on_topics(domain, listener):
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
    assert {road.road_id for road in roads[0].roads} == set(range(len(roads[0].roads)))
    assert {light.state for array in lights for light in array.traffic_lights} >= {0, 2}
    assert {light.frame_id for array in lights for light in array.traffic_lights} == {'map'}
    assert {marker.type for marker in lanes[0].markers} == {5}


@pytest.fixture
def reports(listener):
    return listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')


def scenario(folder, *, end=1e6, network=HILL):
    """Write a scenario that ends at a time, s; return its configuration."""
    (folder / 'a.rou.xml').write_text(ROUTES)
    (folder / 'a.sumocfg').write_text(
        f'<configuration><input><net-file value="{network}"/><route-files value="a.rou.xml"/>'
        f'</input><time><end value="{end}"/></time></configuration>')
    return {'sumo.config': str(folder / 'a.sumocfg')}


def sumo_of(node):
    """Return the id of the process of SUMO, 0 for none."""
    return next(children(node.process.pid, b'sumo_process'), 0)


def test_sumo_scenario_that_is_over_is_said_and_goes_stale(domain, listener, reports, tmp_path):
    frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
    with NodeProcess(domain, source='sumo', **FAST, **scenario(tmp_path, end=3)) as node:
        listener.until(lambda: frames)
        listener.until(lambda: 'the scenario is over' in node.log)
        listener.until(lambda: any(status['level'] == STALE and status['message'].endswith(
            ' s: the scenario is over') for status in statuses(reports)))
        assert node.is_alive
        assert not sumo_of(node)
        assert statuses(reports)[-1]['reconnects'] == '0'
        assert node.end()[0] == 0
    assert frames[-1].game_time == pytest.approx(2.95)


def test_sumo_that_is_killed_is_started_again_and_counted(domain, listener, reports, tmp_path):
    frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
    with NodeProcess(domain, source='sumo', **FAST, **scenario(tmp_path)) as node:
        for n_killed in (1, 2):
            listener.until(lambda: frames and frames[-1].game_time > 0.5)
            before = sumo_of(node)
            os.kill(before, signal.SIGKILL)
            frames.clear()
            listener.until(lambda killed=before: sumo_of(node) not in (0, killed))
            listener.until(lambda n=n_killed: any(
                status['reconnects'] == str(n) for status in statuses(reports)))
            # Those of its successor; the last ones of the killed one may arrive before them.
            listener.until(lambda: any(frame.game_time < 0.5 for frame in frames))
        listener.until(lambda: 'SUMO was ended by signal 9' in node.log,
                       what='the line of the log')
        sumo = sumo_of(node)
        assert node.end()[0] == 0
    # On a slow machine it ends up to a second after the node.
    listener.until(lambda: has_ended(sumo))
