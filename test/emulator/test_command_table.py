# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The control port of the monoDrive server: framing, envelope and every command."""

import contextlib
import copy
import functools
import itertools
import json
import math

from ports import free_port
import pytest
from raw_actors import actors_of, center_and_size, states_of
from simulator_peer import Controller, Reader

from state_sensor_ros.emulator.monodrive import MonodriveOptions, MonodriveServer
from state_sensor_ros.emulator.monodrive_frames import (
    TrafficSource,
)
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames

WITH_CONTROL = MonodriveOptions(control_port=0)
ON_SAMPLE = MonodriveOptions(control_port=0, on_sample=True)
NO_EGO = 'no ego vehicle'
STATE_STEP = 'REPLAY_StateStepSimulationCommand_ID'
UPDATE = 'UpdateStateCommand_ID'
STEP = 'REPLAY_StepSimulationCommand_ID'
SENSORS = 'REPLAY_ConfigureSensorsCommand_ID'
TRAJECTORY = 'REPLAY_ConfigureTrajectoryCommand_ID'
SAMPLE = 'SampleSensorsCommand_ID'
WRONG = 'message: found another type or value: Expected'
EGO_POSE = {'orientation': {'w': 1.0, 'x': 0.0, 'y': 0.0, 'z': 0.0},
            'position': {'x': 1400, 'y': 600, 'z': 13.5}}
EGO = {'name': 'EgoVehicle', 'tags': ['vehicle', 'dynamic', 'car', 'ego'],
       'odometry': {'pose': EGO_POSE}}
POSE_ONLY = {'frame': {'vehicles': [{'state': EGO}]},
             'game_time': 0.0, 'sample_count': 0, 'time': 1_579_283_717}


@functools.cache
def traffic(n_frames=6, generation='v2'):
    return list(itertools.islice(TrafficFrames(4, 6, 20.0, 1, generation), n_frames))


@contextlib.contextmanager
def connected(source, options):
    """Run a server; yield it and a control connection."""
    with MonodriveServer(source, options) as simulator, \
            Controller(simulator.control_port) as control:
        yield simulator, control


@contextlib.contextmanager
def commanded(source, options):
    """Run a server; yield it, a control connection and a reader."""
    with connected(source, options) as (simulator, control), Reader(simulator.port) as reader:
        yield simulator, control, reader


@pytest.fixture
def served():
    """Yield the same for a short trajectory, sent by commands."""
    with commanded(traffic(), ON_SAMPLE) as parts:
        yield parts


def state_sensor(port, **changes):
    return {'type': 'State', 'listen_port': port, 'desired_tags': ['vehicle', 'cone'],
            'undesired_tags': [''], 'include_obb': True, 'packet_size': 1472,
            'location': {'x': 0.0, 'y': 0.0, 'z': 0.0}, **changes}


# Framing and envelope

@pytest.mark.parametrize('reference', [0, 1, 2**31, 2**53 + 1, 2**63 - 1, -5])
def test_reference_is_echoed_exactly(served, reference):
    assert served[1].request('GetVersion', {}, reference)['reference'] == reference


@pytest.mark.parametrize('body', [
    b'', b'{', b'nonsense', b'\xff\xfe', b'[]', b'5', b'null', b'{"reference": 3}',
    b'{"type": 5}', b'{"type": null, "message": {}}', b'{"type": {"a": []}}',
    b'[' * 100_000, b'{"type": ' + b'9' * 5000 + b'}'])
def test_an_invalid_request_gets_an_error_reply(served, body):
    _, control, _ = served
    control.send(body)
    reply = control.receive()
    assert reply['success'] is False
    assert 'found' in reply['message']
    assert len(reply['message']) < 300
    assert control.request('GetVersion')['success']


@pytest.mark.parametrize('head', [
    '0000000000000010', '6f6e6f6d00000010', '6d6f6e6f00000007', '6d6f6e6f00000000',
    '6d6f6e6fffffffff'])
def test_bytes_that_are_not_a_message_end_the_connection_only(served, head):
    simulator, control, _ = served
    control.connection.sendall(bytes.fromhex(head) + b'{"type": 1}')
    assert control.is_hung_up()
    with Controller(simulator.control_port) as other:
        assert other.request('GetVersion')['success']


# Sampling

@pytest.mark.parametrize('message', [{}, None, '', {'timeout': 10000}])
def test_a_sample_sends_one_packet_and_a_reply_without_data(served, message):
    _, control, reader = served
    for count, frame in enumerate(traffic(3), start=1):
        reply = control.request(SAMPLE, message)
        assert (reply['message'], reply['success']) == ('complete', True)
        assert reader.frame() == {**frame, 'sample_count': count}
    assert reader.has_nothing()


def test_a_sample_list_sends_on_the_listed_ports_only(served):
    simulator, control, reader = served
    port = free_port()
    assert control.request(SENSORS, [state_sensor(port)])['success']
    with Reader(port) as second:
        assert control.request('SampleSensorListCommand_ID', {'ports': [port]})['success']
        assert second.frame()['sample_count'] == 1
        assert reader.has_nothing()
        both = {'ports': [port, simulator.port, port]}
        assert control.request('SampleSensorListCommand_ID', both)['success']
        assert second.frame()['sample_count'] == 2
        assert reader.frame()['sample_count'] == 1
        assert second.has_nothing()


# Sensor configuration

@pytest.mark.parametrize(('desired', 'undesired', 'n_objects', 'n_vehicles'), [
    (['vehicle'], [], 0, 4),
    (['VEHICLE', 'other'], [''], 0, 4),
    (['cone'], ['static'], 4, 0),
    (['vehicle', 'traffic_sign'], [], 2, 4),
    (['vehicle', 'cone'], ['Ego'], 4, 3),
    (['ego'], [], 0, 1),
    ([], [], 0, 0),
    ([''], [], 0, 0),
    (['cone'], ['cone'], 0, 0),
])
@pytest.mark.parametrize('generation', ['v1', 'v2'])
def test_tags_select_actors(generation, desired, undesired, n_objects, n_vehicles):
    with commanded(traffic(1, generation), ON_SAMPLE) as (simulator, control, reader):
        config = state_sensor(simulator.port, desired_tags=desired, undesired_tags=undesired)
        assert control.request(SENSORS, config)['success']
        control.request(SAMPLE)
        frame = reader.frame()
    tagged = [set(actor['tags']) for actor in states_of(frame)]
    assert sum('vehicle' in tags for tags in tagged) == n_vehicles
    assert sum('vehicle' not in tags for tags in tagged) == n_objects
    assert {'game_time', 'sample_count', 'time'} < set(frame) | {'none'}


@pytest.mark.parametrize('generation', ['v1', 'v2'])
def test_boxes_are_dropped_as_the_real_simulator_does(generation):
    with commanded(traffic(1, generation), ON_SAMPLE) as (simulator, control, reader):
        for with_boxes in (False, True, None):
            config = state_sensor(simulator.port, include_obb=with_boxes)
            if with_boxes is None:
                # The default is without boxes, too.
                del config['include_obb']
            assert control.request(SENSORS, config)['success']
            control.request(SAMPLE)
            # Actors of v1 have no key for what they do not have.
            absent = None if generation == 'v1' else []
            assert all((actor.get('oriented_bounding_box') == absent) == (not with_boxes)
                       for actor in states_of(reader.frame()))


@pytest.mark.parametrize('changes', [
    {'type': 'Camera'}, {'type': None}, {'listen_port': 0}, {'listen_port': 70000},
    {'listen_port': '8700'}, {'listen_port': None}, {'listen_port': 1.5}, {'listen_port': True},
    {'desired_tags': 'vehicle'}, {'undesired_tags': [1]}, {'include_obb': 1},
    {'enable_streaming': 'yes'}])
def test_a_wrong_sensor_configuration_is_refused(served, changes):
    simulator, control, _ = served
    config = state_sensor(simulator.port, **changes)
    for command in (SENSORS, 'REPLAY_ReConfigureSensorCommand_ID'):
        reply = control.request(command, config)
        assert not reply['success']
        assert next(iter(changes)) in reply['message']


def test_requests_that_cannot_be_carried_out_are_refused_with_the_reason():
    with connected(None, WITH_CONTROL) as (simulator, control):
        for command, message, *words in (
                (SAMPLE, {}, NO_EGO, 'registered'), (STEP, {'amount': 1}, 'trajectory'),
                (SENSORS, state_sensor(simulator.control_port), 'the port is in use'),
                ('REPLAY_ReConfigureSensorCommand_ID', state_sensor(free_port()), 'listen_port')):
            reply = control.request(command, message)
            assert not reply['success'], command
            assert all(word in reply['message'] for word in words), command


# Replay

def test_steps_move_through_a_trajectory_both_ways(served):
    _, control, reader = served
    frames = traffic(12)[6:]
    reply = control.request(TRAJECTORY, frames)
    assert (reply['message'], reply['success']) == ('complete', True)
    assert reader.has_nothing(0.05)
    place = -1
    for count, amount in enumerate((1, 1, 3, -2, 0, 100, -1, -100, 2.0), start=1):
        reply = control.request(STEP, {'amount': amount})
        assert (reply['message'], reply['success']) == ('complete', True)
        place = min(max(place + int(amount), 0), 5)
        assert reader.frame() == {**frames[place], 'sample_count': count}
    # A sample repeats the frame with the next sample count.
    control.request(SAMPLE)
    assert reader.frame() == {**frames[place], 'sample_count': 10}


# State steps

@pytest.mark.parametrize('shape', ['object', 'array', 'string'])
def test_a_state_step_places_the_actors_and_samples(shape):
    with commanded(None, WITH_CONTROL) as (_, control, reader):
        times = []
        for count in range(1, 4):
            frame = copy.deepcopy(POSE_ONLY)
            frame['frame']['vehicles'][0]['state']['odometry']['pose']['position'][
                'x'] += 50 * count
            message = {'object': frame, 'array': [frame],
                       'string': {'state_data_as_string': json.dumps(frame)}}[shape]
            reply = control.request(STATE_STEP, message)
            assert (reply['message'], reply['success']) == ('complete', True)
            received = reader.frame()
            vehicle, = received['frame']['vehicles']
            odometry = vehicle['state']['odometry']
            assert odometry['pose']['position'] == {
                'x': 1400 + 50 * count, 'y': 600, 'z': 13.5}
            assert (received['sample_count'], received['time']) == (count, 1_579_283_717)
            times.append(received['game_time'])
    assert times == pytest.approx([0.05, 0.10, 0.15])


INVALID_STATES = [
    None, 'x', [], [POSE_ONLY, POSE_ONLY], [5], {'frame': []}, {'frame': {'vehicles': 'x'}},
    {'state_data_as_string': '{'}, {'state_data_as_string': 5},
    {'state_data_as_string': '[' * 50_000}, {'frame': {'vehicles': [5, {'state': 5}]}},
    {'frame': None, 'a': {'position': [], 'tags': None}}]
INVALID = {
    'SampleSensorListCommand_ID': [None, {}, {'ports': 8700}, {'ports': [1]}, {'ports': [None]},
                                   {'ports': [True]}, {'ports': [{}]}],
    SENSORS: [None, 'State', [None], [['State']]],
    TRAJECTORY: [None, {}, [], 'x', [5], [[]], [{}], [{'frame': []}],
                 [{'frame': [{'name': 'a', 'tags': ['vehicle']}]}]],
    STEP: [None, {}, 5, *({'amount': amount} for amount in (
        None, '1', 0.5, True, float('nan'), float('inf')))],
    STATE_STEP: INVALID_STATES,
    # The frames of a trajectory do not change.
    UPDATE: [*INVALID_STATES, POSE_ONLY]}


@pytest.mark.parametrize('command', INVALID)
def test_an_invalid_message_is_refused(served, command):
    _, control, reader = served
    for message in INVALID[command]:
        reply = control.request(command, message)
        assert not reply['success'], message
        assert 'found' in reply['message'] or command != TRAJECTORY
    assert reader.has_nothing(0.05)


# Placed actors

def state_of(generation, name, x, y, yaw=0.0, speed=0.0):
    """Return an actor at x and y, m, y to the right, yaw in rad and speed in m/s."""
    position = {'x': 100.0 * x, 'y': 100.0 * y, 'z': 150.0}
    turn = {'w': math.cos(yaw / 2), 'x': 0.0, 'y': 0.0, 'z': math.sin(yaw / 2)}
    velocity = {'x': 100.0 * speed * math.cos(yaw), 'y': 100.0 * speed * math.sin(yaw), 'z': 0.0}
    if generation == 'v2':
        return {'name': name, 'odometry': {'pose': {'orientation': turn, 'position': position},
                                           'linear_velocity': velocity}}
    return {'name': name, 'position': [position[key] for key in 'xyz'],
            'orientation': [turn[key] for key in 'xyzw'],
            'velocity': [velocity[key] for key in 'xyz']}


def framed(generation, *states):
    return {'frame': states if generation == 'v1' else {
        'vehicles': [{'state': each} for each in states]}}


@pytest.mark.parametrize('generation', ['v1', 'v2'])
def test_placed_actors_go_on_from_there(generation):
    source = TrafficSource(TrafficFrames(3, 1, 20.0, 1, generation))
    with commanded(source, ON_SAMPLE) as (_, control, reader):

        def sampled():
            control.request(SAMPLE)
            return actors_of(reader.frame())

        before = sampled()
        ego, cone = (next(name for name, each in before.items() if tag in each.tags)
                     for tag in ('ego', 'cone'))
        standing, rolling = (name for name in before if name not in (ego, cone))
        control.request('EgoControl_ID', {'forward_amount': 0.5})
        # One of them is not there: none is moved.
        reply = control.request(UPDATE, framed(
            generation, *(state_of(generation, name, 0.0, 0.0) for name in (ego, 'x'))))
        assert reply['message'].startswith("frame: found 'x'; expected names of actors")
        places = {ego: (-3.0, 5.0, 0.2, 4.0), standing: (25.0, 3.0, 0.1),
                  rolling: (50.0, 20.0, 0.4, 10.0), cone: (9.0, 9.0, 1.0)}
        reply = control.request(UPDATE, framed(generation, *(
            state_of(generation, name, *place) for name, place in places.items())))
        assert (reply['message'], reply['success']) == ('complete', True)
        first, *_, last = (sampled() for _ in range(21))
    for name, (x, y, yaw, *_) in places.items():
        actor = first[name]
        assert math.dist(actor.position[:2], (x, -y)) < 0.6
        assert 2.0 * math.atan2(*actor.orientation[2:]) == pytest.approx(-yaw, abs=0.02)
        assert math.dist(center_and_size(actor)[0][:2], actor.position[:2]) < 0.5
        # Heights of vehicles are those of the ground.
        assert (actor.position[2] == 1.5) is (name == cone)
    assert last[standing].position == first[standing].position
    # A second of its pedals, and of the drag.
    assert math.hypot(*last[ego].velocity) == pytest.approx(6.0, abs=0.6)
    assert math.dist(last[rolling].position, first[rolling].position) == pytest.approx(
        10.0, rel=0.1)


# Sessions

def test_simulator_configuration_replies_its_mode_and_starts_over(served):
    _, control, reader = served
    control.request(SAMPLE)
    control.request(SAMPLE)
    for mode in (1, 2):
        reply = control.request('SimulatorConfig_ID', {'map': 'Almono', 'simulation_mode': mode})
        assert (reply['message'], reply['success']) == (
            f'simulator configuration mode = {mode}', True)
    for _ in range(2):
        reader.frame()
    control.request(SAMPLE)
    assert reader.frame() == traffic(1)[0]


@pytest.mark.parametrize(('message', 'text'), [
    ({'map': '', 'simulation_mode': 0}, 'invalid map specified'),
    ({'map': 5}, 'invalid map specified'),
    ({'simulation_mode': 7}, f'{WRONG} `float` <= 3.0 - at `$.simulation_mode`'),
    ({'simulation_mode': 'x'}, f'{WRONG} `float`, got `str` - at `$.simulation_mode`'),
    (None, f'{WRONG} `object`, got `null`'),
])
def test_a_wrong_simulator_configuration_is_refused(served, message, text):
    reply = served[1].request('SimulatorConfig_ID', message)
    assert (reply['message'], reply['success']) == (text, False)


def test_a_closed_loop_session_has_an_ego_after_the_first_control(served):
    _, control, reader = served
    drive = {'forward_amount': 0.4, 'right_amount': 0, 'brake_amount': 0.0, 'drive_mode': 1}
    assert control.request('SimulatorConfig_ID', {'simulation_mode': 0})['success']
    assert NO_EGO in control.request(SAMPLE)['message']
    assert NO_EGO in control.request('SampleSensorListCommand_ID', {'ports': []})['message']
    reply = control.request('EgoControl_ID', drive)
    assert (reply['message'], reply['success']) == ('no ego vehicle found', False)
    reply = control.request('ClosedLoopConfigCommand_ID', {'vehicles': []})
    assert (reply['message'], reply['success']) == (
        'Failed to configure scenario. No actors spawned.', False)
    reply = control.request('ClosedLoopConfigCommand_ID',
                            {'trigger_boxes': [],
                             'vehicles': [{'name': 'a', 'tags': ['vehicle']}]})
    assert (reply['message'], reply['success']) == ('Successfully configured scenario.', True)
    assert NO_EGO in control.request(SAMPLE)['message']
    reply = control.request('EgoControl_ID', drive)
    assert (reply['message'], reply['success']) == ('complete', True)
    assert control.request(SAMPLE)['success']
    assert reader.frame()['sample_count'] == 1
    assert not control.request('EgoControl_ID', {'forward_amount': 'x'})['success']


def test_command_to_the_ego_without_a_number_is_rejected_and_frames_go_on():
    source = TrafficSource(TrafficFrames(3, 0, 20.0, 1, 'v2'))
    with commanded(source, WITH_CONTROL) as (_, control, reader):
        reader.frame()
        for key, value in itertools.product(
                ('forward_amount', 'right_amount', 'brake_amount', 'drive_mode'),
                (float('nan'), float('inf'))):
            reply = control.request('EgoControl_ID', {key: value})
            assert not reply['success']
            assert f'at `$.{key}`' in reply['message']
        for _ in range(3):
            assert reader.frame()['frame']['vehicles'][0]['state']['odometry']
