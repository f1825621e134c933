# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The services of simulation_interfaces on a recording and a started SUMO."""

from importlib.util import find_spec
import math
import re
import socket

from commands_rig import pedals, Stack
from geometry_msgs.msg import Vector3
import pytest
from rig import NodeProcess
from simulation_interfaces.msg import Bounds, EntityCategory, Result, SimulationState
from simulation_interfaces.srv import (
    DeleteEntity,
    GetEntities,
    GetEntitiesStates,
    GetEntityBounds,
    GetEntityInfo,
    GetEntityState,
    GetSimulationState,
    GetSimulatorFeatures,
    ResetSimulation,
    SetEntityState,
    SetSimulationState,
    SpawnEntity,
    StepSimulation,
)
from test_playback import recorded

NAMES = {GetEntities: 'get_entities', GetEntitiesStates: 'get_entities_states',
         GetEntityBounds: 'get_entity_bounds', GetEntityInfo: 'get_entity_info',
         GetEntityState: 'get_entity_state',
         SetSimulationState: 'set_simulation_state', StepSimulation: 'step_simulation',
         GetSimulatorFeatures: 'get_simulator_features', ResetSimulation: 'reset_simulation',
         SetEntityState: 'set_entity_state', SpawnEntity: 'spawn_entity',
         DeleteEntity: 'delete_entity', GetSimulationState: 'get_simulation_state'}


def caller(listener):
    """Return a function that calls a service of the node."""
    clients = {type_: listener.node.create_client(type_, f'/state_sensor/{name}')
               for type_, name in NAMES.items()}
    listener.until_served(*clients.values(), probe=GetSimulationState.Request())

    def start(type_, **fields):
        request = type_.Request()
        for name, value in fields.items():
            owner = request
            *path, last = name.split('__')
            for step in path:
                owner = getattr(owner, step)
            setattr(owner, last, value)
        return clients[type_].call_async(request)

    def call_service(type_, **fields):
        future = start(type_, **fields)
        listener.until(future.done, what='an answer')
        return future.result()

    call_service.start = start
    return call_service


@pytest.fixture
def call(domain, listener, tmp_path):
    """Call a service of a node that plays a recording."""
    frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
    with NodeProcess(domain, source='file', trajectory_file=recorded(tmp_path), loop=True):
        call_service = caller(listener)
        listener.until(lambda: len(frames) > 3, what='frames')
        call_service.frames = frames
        call_service.listener = listener
        yield call_service


def list_entities(call):
    assert list(call(GetEntities).entities) == ['ego_car']
    answer = call(GetEntities, filters__filter='e.*r')
    assert (list(answer.entities), answer.result.result) == (
        [], Result.RESULT_FEATURE_UNSUPPORTED)
    assert list(call(GetEntities, filters__tags__tags=['EGO']).entities) == ['ego_car']
    assert list(call(GetEntities, filters__tags__tags=['cone']).entities) == []
    human = EntityCategory(category=EntityCategory.CATEGORY_HUMAN)
    assert list(call(GetEntities, filters__categories=[human]).entities) == []
    state = call(GetEntityState, entity='ego_car').state
    assert (state.header.frame_id, state.twist.linear.x, state.pose.position.y) == (
        'map', 10.0, 2.0)
    states = call(GetEntitiesStates)
    assert [each.twist.linear.x for each in states.states] == [10.0]
    assert call(GetEntityState, entity='unknown').result.result == Result.RESULT_NOT_FOUND
    info = call(GetEntityInfo, entity='ego_car').info
    assert (info.category.category, list(info.tags)) == (
        EntityCategory.CATEGORY_ROBOT, ['vehicle', 'ego'])


def corners(*points):
    return [Vector3(x=x, y=y, z=z) for x, y, z in points]


def report_bounds(call):
    answer = call(GetEntityBounds, entity='ego_car')
    assert (answer.result.result, answer.bounds.type) == (Result.RESULT_OK, Bounds.TYPE_BOX)
    highest, lowest = [(each.x, each.y, each.z) for each in answer.bounds.points]
    assert highest == pytest.approx((2.25, 0.9, 0.7))
    assert lowest == pytest.approx((-2.25, -0.9, -0.7))
    assert call(GetEntityBounds, entity='unknown').result.result == Result.RESULT_NOT_FOUND


def filter_by_bounds(call):
    for type_, points, names in (
            (Bounds.TYPE_SPHERE, ((0.0, 2.0, 0.0), (1000.0, 0.0, 0.0)), ['ego_car']),
            (Bounds.TYPE_BOX, ((1000.0, 5.0, 9.0), (-1000.0, 3.0, -9.0)), [])):
        bounds = Bounds(type=type_, points=corners(*points))
        assert list(call(GetEntities, filters__bounds=bounds).entities) == names, points
    for type_, points, code in (
            (Bounds.TYPE_SPHERE, [(0.0, 0.0, 0.0)], Result.RESULT_OPERATION_FAILED),
            (Bounds.TYPE_BOX, [(0.0, 0.0, 0.0), (math.nan, 0.0, 0.0)],
             Result.RESULT_OPERATION_FAILED),
            (Bounds.TYPE_CONVEX_HULL, [(0.0, 0.0, 0.0)] * 3, Result.RESULT_FEATURE_UNSUPPORTED)):
        bounds = Bounds(type=type_, points=corners(*points))
        assert call(GetEntities, filters__bounds=bounds).result.result == code, points


def x_of(call):
    return call(GetEntityState, entity='ego_car').state.pose.position.x


def answer_after_the_steps(call):
    """Expect the frame of the last step; those of the recording are 0.5 m apart."""
    assert call(ResetSimulation).result.result == Result.RESULT_OK
    for n_steps in (1, 2, 3, 4):
        before = x_of(call)
        assert call(StepSimulation, steps=n_steps).result.result == Result.RESULT_OK
        assert x_of(call) == before + n_steps / 2
    call.listener.receive_all(call.frames)
    assert call.frames[-1].actors[0].pose.position.x == before + n_steps / 2


def end_steps_by_a_pause(call):
    """End steps, which are no pause; their request is answered then."""
    waiting = call.start(StepSimulation, steps=10 ** 9)
    states = SimulationState.STATE_PLAYING, SimulationState.STATE_PAUSED
    call.listener.until(lambda: call(GetSimulationState).state.state == states[0])
    assert call(StepSimulation, steps=1).result.result == Result.RESULT_OPERATION_FAILED
    assert not waiting.done()
    assert call(SetSimulationState, state=SimulationState(
        state=states[1])).result.result == Result.RESULT_OK
    call.listener.until(waiting.done, what='an answer')
    assert waiting.result().result.result == Result.RESULT_OPERATION_FAILED
    # The loop may be at its begin.
    assert call(GetSimulationState).state.state in (states[1], SimulationState.STATE_STOPPED)
    assert re.fullmatch(r'\d+ of 1000000000 steps made: another state was set, or .*',
                        waiting.result().result.error_message)


def test_services_list_entities_and_steer_the_recording(call):
    list_entities(call)
    report_bounds(call)
    filter_by_bounds(call)
    features = set(call(GetSimulatorFeatures).features.features)
    assert 26 in features
    assert not features & {0, 1, 11}
    for type_ in (SetEntityState, DeleteEntity):
        assert call(type_, entity='ego_car').result.result == Result.RESULT_FEATURE_UNSUPPORTED
    assert call(StepSimulation, steps=1).result.result == Result.RESULT_OPERATION_FAILED
    pause = SimulationState(state=SimulationState.STATE_PAUSED)
    assert call(SetSimulationState, state=pause).result.result == Result.RESULT_OK
    assert call(SetSimulationState, state=pause).result.result == \
        SetSimulationState.Response.ALREADY_IN_TARGET_STATE
    answer_after_the_steps(call)
    end_steps_by_a_pause(call)
    assert call(ResetSimulation).result.result == Result.RESULT_OK
    assert x_of(call) == 0.0
    play = SimulationState(state=SimulationState.STATE_PLAYING)
    assert call(SetSimulationState, state=play).result.result == Result.RESULT_OK
    assert call(GetSimulationState).state.state == SimulationState.STATE_PLAYING
    call.listener.until(lambda: call.frames[-1].sample_count < 10)


@pytest.mark.thorough
@pytest.mark.skipif(find_spec('libsumo') is None, reason='needs libsumo')
def test_services_pause_a_sumo_whose_ego_is_driven(domain, listener):
    odometry = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
    with NodeProcess(domain, source='sumo', control_input='vehicle_control', stale_after=2.0,
                     **{'sumo.ego': 'ego', 'control.timeout': 60.0}) as node:
        call, stack = caller(listener), Stack(listener).matched()
        listener.until(lambda: odometry, what='frames')
        stack.publish_until(pedals(throttle=0.5), lambda: stack.sent and stack.sent[-1].throttle)
        pause = SimulationState(state=SimulationState.STATE_PAUSED)
        assert call(SetSimulationState, state=pause).result.result == Result.RESULT_OK
        listener.receive_all(odometry)
        # Frames that a pause holds back are not missed: the command counts for the next step.
        n_reports, n_frames = len(stack.diagnostics), len(odometry)
        n_sent, paused = len(stack.sent), len(node.log)
        listener.until(lambda: len(stack.diagnostics) > n_reports + 3, what='three seconds')
        assert (stack.status()['state'], stack.status()['level']) == ('driving', 0)
        assert call(StepSimulation, steps=20).result.result == Result.RESULT_OK
        listener.receive_all(odometry)
        # A burst may be longer than the queue of a busy subscriber.
        assert n_frames < len(odometry) <= n_frames + 20
        before, after = (odometry[i].twist.twist.linear.x for i in (n_frames - 1, -1))
        assert after > before + 0.1
        assert all(each.brake == 0.0 for each in stack.sent[n_sent:])
        assert 'the ego brakes' not in node.log[paused:]


@pytest.mark.skipif(find_spec('libsumo') is None, reason='needs libsumo')
def test_services_of_a_sumo_that_was_joined_are_not_supported(domain, listener):
    with socket.create_server(('127.0.0.1', 0)) as server, NodeProcess(
            domain, source='sumo', **{'sumo.port': server.getsockname()[1]}):
        call = caller(listener)
        assert 26 not in call(GetSimulatorFeatures).features.features
        pause = SimulationState(state=SimulationState.STATE_PAUSED)
        for result in (call(SetSimulationState, state=pause).result,
                       call(StepSimulation, steps=1).result, call(ResetSimulation).result):
            assert result.result == Result.RESULT_FEATURE_UNSUPPORTED
