# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA's own client library is content with the mock server of CARLA 0.9."""

import json
import signal
from types import SimpleNamespace

from budgets import AWAIT_S, first_of
from carla9_server.scenes import TrafficScene
from carla9_server.server import WorldServer
import numpy as np
from paths import ROOT
import programs
import pytest
from raw_actors import matrix_of

from state_sensor_ros import open_recording

CLIENT = ROOT / 'test' / 'carla9_client.py'
SAMPLE = ROOT / 'resource' / 'sample.v2.json'


def start(server, *words):
    """Start the client: a process of its own, since it may crash or not return."""
    return programs.start_client([CLIENT, str(server.port), *map(str, words)], **programs.PIPES)


def result_of(client):
    output, errors = client.communicate(timeout=AWAIT_S)
    assert client.returncode == 0, errors
    return json.loads(output)


def run(server, *words):
    return result_of(start(server, *words))


@pytest.mark.parametrize(('n_vehicles', 'n_objects'), first_of([(90, 6), (900, 95)]))
def test_client_has_the_numbers_of_the_source(n_vehicles, n_objects):
    """All actors in synchronous mode: with the spectator and four lights 6, 101 and 1000."""
    with WorldServer(TrafficScene(n_vehicles, n_objects, seed=3)) as server:
        found = run(server, 'look', 5)
        world = server.world
    assert found['frames'] == list(range(found['frames'][0], found['frames'][0] + 5))
    assert found['frame'] == found['frames'][-1] == world.frame
    assert (found['elapsed_s'], found['delta_s']) == pytest.approx((world.elapsed_s, 0.05))
    assert len(found['states']) == len(world.actors) == n_vehicles + n_objects + 5
    for number, actor in world.actors.items():
        assert found['states'][str(number)] == pytest.approx(
            world.numbers(actor).tolist(), rel=1e-6, abs=1e-6)
        seen = found['actors'][str(number)]
        assert seen['type'] == actor.body.type_id
        assert seen['attributes'] == {name: value for name, _, value in actor.body.attributes}
        assert seen['tags'] == list(actor.body.semantic_tags)
        assert seen['box'] == pytest.approx([*actor.body.center, *actor.body.extent])
    # The scene's numbers are those of the traffic, and its rotations have its axes.
    traffic = world.scene._traffic
    ids = [number for number, actor in world.actors.items() if actor.body.family == 'vehicle']
    states = np.array([found['states'][str(number)] for number in ids])
    np.testing.assert_allclose(states[:, :3], traffic.motion.position, atol=5e-4)
    np.testing.assert_allclose(states[:, 6:9], traffic.motion.velocity, atol=1e-5)
    np.testing.assert_allclose(np.radians(states[:, 9:12]), traffic.motion.angular_velocity,
                               atol=1e-6)
    np.testing.assert_allclose([found['axes'][str(number)] for number in ids],
                               traffic.motion.axes, atol=1e-6)
    roles = [seen['attributes'].get('role_name') for seen in found['actors'].values()]
    assert roles.count('hero') == 1


def check_recorded(frame, found):
    """Compare what a client sees with a frame, whose y is to the left."""
    mirror = np.array([1.0, -1.0, 1.0])
    numbers = sorted(int(number) for number in found['actors'])[1:]
    for row, number in enumerate(numbers):
        state, actor = found['states'][str(number)], found['actors'][str(number)]
        np.testing.assert_allclose(state[:3], frame.position_xyz[row] * mirror, rtol=1e-6)
        np.testing.assert_allclose(state[6:9], np.nan_to_num(frame.velocity_xyz[row]) * mirror,
                                   atol=1e-5)
        # A rate turns the other way in axes of the other handedness.
        np.testing.assert_allclose(
            np.radians(state[9:12]), np.nan_to_num(frame.angular_velocity_xyz[row]) * -mirror,
            atol=1e-5)
        axes = matrix_of(frame.orientation_xyzw[row]).T * mirror * mirror[:, None]
        np.testing.assert_allclose(found['axes'][str(number)], axes, atol=2e-5)
        at, = np.flatnonzero(frame.boxes.actor == row)
        np.testing.assert_allclose(
            state[:3] + axes.T @ actor['box'][:3], frame.boxes.rows[at, :3] * mirror, atol=1e-3)
        assert sorted(actor['box'][3:]) == pytest.approx(
            sorted(frame.boxes.rows[at, 7:10] / 2), abs=1e-4)
        assert (actor['attributes']['role_name'] == 'hero') is ('ego' in frame.tags[row])


def test_mock_program_serves_a_recording_until_its_end(tmp_path):
    """The program with the sample; the client ticks, then another one receives it to its end."""
    process = programs.start_mock('carla9', SAMPLE, '--port', 0, '--rate', 1)
    try:
        assert process.stdout.readline().startswith('streams on 127.0.0.1:')
        line = process.stdout.readline()
        assert line.startswith('listening on 127.0.0.1:')
        port = SimpleNamespace(port=int(line.rpartition(':')[2]))
        found = run(port, 'look', 3)
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=AWAIT_S)
    assert (output, errors) == ('', '')
    with open_recording(SAMPLE) as recording:
        frame = recording[round(found['elapsed_s'] / 0.05)]
    check_recorded(frame, found)
