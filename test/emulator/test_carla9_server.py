# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA's own client library is content with the mock server of CARLA 0.9."""

from importlib.util import find_spec
import json
import subprocess
import sys

from budgets import AWAIT_S
import numpy as np
from paths import ROOT
import pytest

from state_sensor_ros.emulator.carla9_server.traffic_scene import TrafficScene
from state_sensor_ros.emulator.carla9_server.world_server import WorldServer

needs_carla = pytest.mark.skipif(find_spec('carla') is None, reason='carla is not installed')
CLIENT = ROOT / 'test' / 'carla9_client.py'


def start(server, *words):
    """Start the client: a process of its own, since it may crash or not return."""
    return subprocess.Popen([sys.executable, CLIENT, str(server.port), *map(str, words)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result_of(client):
    output, errors = client.communicate(timeout=AWAIT_S)
    assert client.returncode == 0, errors
    return json.loads(output)


def run(server, *words):
    return result_of(start(server, *words))


@needs_carla
@pytest.mark.parametrize(('n_vehicles', 'n_objects'), [(1, 0), (90, 6), (900, 95)])
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
