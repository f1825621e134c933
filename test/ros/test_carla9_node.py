# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA 0.9 on the topics and services of the node, and what it leaves behind when it ends."""

import signal

from budgets import one_of
from commands_rig import FAST, message_of, RecordingWorld
import numpy as np
import pytest
from rig import NodeProcess
from test_simulation_services import caller

OWN = 'state_sensor_ros'
# Classes of objects of the level that are vehicles, as the server numbers them.
PARKED = range(14, 20)


@pytest.fixture
def server():
    with RecordingWorld(6, n_objects=4) as found:
        yield found


def node_on(domain, server, **own):
    return NodeProcess(domain, source='carla9', rate=0.0 if own.get('tick') else 1.0, **FAST, **{
        f'carla9.{name}': value for name, value in {'port': server.port, **own}.items()})


def settings_of(server):
    return server.world.settings.is_synchronous, server.world.settings.fixed_delta_s


@pytest.mark.parametrize('tick', one_of([True, False]))
def test_world_is_on_the_topics(domain, listener, server, tick):
    types = {'frame': f'{OWN}/StateFrame', 'traffic_lights': f'{OWN}/TrafficLightStateArray',
             'control_states': f'{OWN}/ControlStateArray', 'ego/odometry': 'nav_msgs/Odometry'}
    topics = {name: listener.subscribe(f'/state_sensor/{name}', type_)
              for name, type_ in types.items()}

    def have_lights():
        # At times, none is red, or none is green.
        return {light.state for array in topics['traffic_lights']
                for light in array.traffic_lights} >= {0, 2}

    with node_on(domain, server, tick=tick, static=True) as node:
        listener.until(lambda: min(map(len, topics.values())) > 20 and have_lights(),
                       what='frames with red and green lights')
        lanes = listener.subscribe('/state_sensor/map', 'visualization_msgs/MarkerArray',
                                   latched=True)
        listener.until(lambda: lanes, what='the map')
        assert settings_of(server) == ((True, 0.05) if tick else (False, None))
        # Ctrl-C and SIGTERM.
        assert node.end(signal.SIGINT if tick else signal.SIGTERM)[0] == 0
        assert 'Traceback' not in node.log
    listener.until(lambda: settings_of(server) == (False, None), what='the settings of before')
    n_compared = 0
    for frame in topics['frame']:
        actors = {actor.name: actor for actor in frame.actors}
        tags = [set(actor.tags) for actor in frame.actors]
        assert sum('pedestrian' in each for each in tags) \
            == sum(actor.body.family == 'walker' for actor in server.world.actors.values()) > 0
        assert sum('parked' in each for each in tags) \
            == sum(thing[4] in PARKED for thing in server.world.scene.environment) > 0
        x, y, z = server.history[frame.sample_count][server.ego.id][:3]
        place = actors['hero'].pose.position
        assert (place.x, place.y, place.z) == pytest.approx((x, -y, z), abs=1e-3)
        n_compared += 1
    assert n_compared > 20
    for array in topics['traffic_lights']:
        assert {light.id for light in array.traffic_lights} == set(server.world.lights)
        assert {light.state for light in array.traffic_lights} <= {0, 1, 2}
    on_roads = topics['control_states'][-1].control_states
    assert len(on_roads) == 6
    assert all(each.control_state.lane_id < 0 for each in on_roads)
    points = np.array([(p.x, p.y) for marker in lanes[0].markers for p in marker.points])
    assert np.linalg.norm(points - (place.x, place.y), axis=1).min() < 5.0
    assert {marker.ns for marker in lanes[0].markers} >= {'driving'}


def test_services_steer_a_world_that_the_node_ticks(domain, listener, server):
    result = pytest.importorskip('simulation_interfaces.msg').Result
    state = pytest.importorskip('simulation_interfaces.msg').SimulationState
    services = pytest.importorskip('simulation_interfaces.srv')
    frames = listener.subscribe('/state_sensor/frame', f'{OWN}/StateFrame')
    with node_on(domain, server, tick=True) as node:
        call = caller(listener)
        listener.until(lambda: len(frames) > 3, what='frames')

        def set_to(number):
            answer = call(services.SetSimulationState, state=state(state=number))
            assert answer.result.result == result.RESULT_OK

        set_to(state.STATE_PAUSED)
        assert call(services.GetSimulationState).state.state == state.STATE_PAUSED

        # The last step of before may be on its way; this one is made after it.
        assert call(services.StepSimulation, steps=1).result.result == result.RESULT_OK
        frame = server.world.frame
        assert call(services.StepSimulation, steps=5).result.result == result.RESULT_OK
        listener.until(lambda: frames[-1].sample_count == frame + 5, what='five steps')
        assert server.world.frame == frame + 5
        episode = server.world.episode
        assert call(services.ResetSimulation).result.result == result.RESULT_OK
        listener.until(lambda: server.world.episode == episode + 1
                       and frames[-1].game_time < 0.5, what='the begin')
        set_to(state.STATE_PLAYING)
        listener.until(lambda: frames[-1].game_time > 1.0, what='more frames')
        assert settings_of(server) == (True, 0.05)
        assert node.end()[0] == 0
        assert 'Traceback' not in node.log
    listener.until(lambda: settings_of(server) == (False, None), what='the settings of before')


def test_turn_signals_of_autoware_are_those_of_the_ego(domain, listener, server):
    types = 'autoware_vehicle_msgs'
    topics = {'TurnIndicators': 'turn_indicators', 'HazardLights': 'hazard_lights'}
    reports = {kind: listener.subscribe(f'/vehicle/status/{topic}_status', f'{types}/{kind}Report')
               for kind, topic in topics.items()}
    ego = server.ego
    # Position lights and low beam stay as they are.
    ego.lights = 3
    send = {kind: listener.node.create_publisher(
        type(message_of(f'{types}/{kind}Command')), f'/control/command/{topic}_cmd', 1)
        for kind, topic in topics.items()}
    with NodeProcess(domain, source='carla9', control_input='autoware', outputs=['autoware'],
                     **FAST, **{'carla9.port': server.port, 'carla9.ego': 'hero'}) as node:
        for kind, command, lights in (('TurnIndicators', 3, 16), ('HazardLights', 2, 48),
                                      ('HazardLights', 1, 16), ('TurnIndicators', 2, 32)):
            def has_obeyed(kind=kind, command=command, lights=lights):
                send[kind].publish(message_of(f'{types}/{kind}Command', command=command))
                return ego.lights == lights + 3
            listener.until(has_obeyed, what=f'{kind} {command}')
        listener.until(lambda: reports['TurnIndicators'][-1:] and reports[
            'TurnIndicators'][-1].report == 2, what='the turn signals')
        listener.until(lambda: reports['HazardLights'][-1:] and reports[
            'HazardLights'][-1].report == 1, what='the hazard lights')
        assert node.end()[0] == 0
