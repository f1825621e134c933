# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Measure the node with CARLA 0.9 beside CARLA's client library, both guests of one mock server.

The program of the library makes arrays of each snapshot, and nothing else; of the node, both
processes count, without subscribers: the same work. What /tf and the markers add is printed.
Lanes and pedals are further requests to the library, 15 and 8 us a vehicle, made only while
something reads them.
"""

from contextlib import contextmanager
import shutil
import subprocess
import sys

from processes import cpu_s, line_of, Listener, node_command, reading, running
from row import Row, show
from sumo_cost import child_of, wait_for_frames

# With the mock server's four traffic lights and the spectator 100 and 1000 actors.
SIZES = ((80, 15), (900, 95))
N_WARM, N_FRAMES = 40, 200
CLIENT = """
import sys, threading
import carla
import numpy as np
client = carla.Client('127.0.0.1', int(sys.argv[1]), worker_threads=1)
client.set_timeout(20.0)
world = client.get_world()
arrived, newest = threading.Semaphore(0), []
world.on_tick(lambda snapshot: (newest.append(snapshot), arrived.release()))
for n in range(sys.maxsize):
    arrived.acquire()
    numbers = []
    for state in newest.pop(0):
        place = state.get_transform()
        location, rotation = place.location, place.rotation
        velocity, rate = state.get_velocity(), state.get_angular_velocity()
        acceleration = state.get_acceleration()
        numbers += (state.id, location.x, location.y, location.z, rotation.roll, rotation.pitch,
                    rotation.yaw, velocity.x, velocity.y, velocity.z, rate.x, rate.y, rate.z,
                    acceleration.x, acceleration.y, acceleration.z)
    array = np.array(numbers).reshape(-1, 16)
    if not n:
        print('ready', flush=True)
"""


@contextmanager
def mock_server(n_vehicles, n_objects):
    """Run the mock server at 20 Hz; yields its port."""
    with running([shutil.which('state_sensor'), 'simulate', '--source', 'carla9', '--port', 0,
                  '--vehicles', n_vehicles, '--objects', n_objects],
                 stdout=subprocess.PIPE) as server:
        line_of(server, 'streams on')
        yield int(line_of(server, 'listening on').rpartition(':')[2])


def carla9_rows(sizes=SIZES):
    """Measure the CPU time of both while they follow the same steps; print and return the rows."""
    rows = []
    for n_vehicles, n_objects in sizes:
        with mock_server(n_vehicles, n_objects) as port, Listener() as listener, running(
                [sys.executable, '-c', CLIENT, port], stdout=subprocess.PIPE) as client, running(
                node_command('ours', port, source='carla9')) as node:
            line_of(client, 'ready')
            values, n_actors = listener.diagnostics(), n_vehicles + n_objects + 5
            wait_for_frames(node, listener, values, N_WARM)
            pids = node.pid, child_of(node, b'carla_process'), client.pid
            ratio = _ratio(pids, node, listener, values)
            rows += show([Row("node, its process / CARLA's library to arrays, CPU, 20 Hz",
                              n_actors, ratio, '<= 2')])
            with reading('scene', 'state_sensor'):
                wait_for_frames(node, listener, values, int(values['frames received']) + N_WARM)
                print('    with /tf and the markers read: '
                      f'{_ratio(pids, node, listener, values):.2f}', flush=True)
            client.kill()
    return rows


def _ratio(pids, node, listener, values):
    """Return the CPU time of the first two processes over that of the third, in equal frames."""
    before_s, n_before = list(map(cpu_s, pids)), int(values['frames received'])
    wait_for_frames(node, listener, values, n_before + N_FRAMES)
    node_s, process_s, client_s = (
        cpu_s(pid) - before for pid, before in zip(pids, before_s, strict=True))
    n_frames = int(values['frames received']) - n_before
    node_ms, process_ms, client_ms = (1e3 * each_s / n_frames for each_s in (
        node_s, process_s, client_s))
    print(f'    node {node_ms:.2f}, its process {process_ms:.2f}, library alone {client_ms:.2f} '
          'CPU ms per frame', flush=True)
    return (node_s + process_s) / client_s


if __name__ == '__main__':
    carla9_rows()
