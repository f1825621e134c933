# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Measure the node with SUMO: its CPU time beside that of SUMO, and its callbacks beside TCP's.

Vehicles are on random roads of the shipped network, all from the start on.
"""

from contextlib import contextmanager
from pathlib import Path
import random
import tempfile
import time

from processes import BenchError, cpu_s, Listener, node_command, reading, running, serving
from rcl_interfaces.srv import GetParameters
from row import percentile, Row, show
import sumolib.net

NETWORK = Path(__file__).parents[1] / 'resource' / 'sumo' / 'grid.net.xml.gz'
SIZES = (300, 1200)
RATE_HZ = 20.0
N_WARM, N_FRAMES = 60, 200
LIMIT_S = 120.0


def scenario(folder, n_vehicles):
    """Write a scenario with vehicles that drive for a minute or more; return its file."""
    edges = [edge.getID() for edge in sumolib.net.readNet(str(NETWORK)).getEdges()]
    dice = random.Random(1)
    trips = []
    for i in range(n_vehicles):
        start, via, end = dice.sample(edges, 3)
        trips.append(f'<trip id="car{i}" depart="0" from="{start}" via="{via}" to="{end}" '
                     'departLane="random" departPos="random_free"/>')
    (folder / 'a.rou.xml').write_text(f'<routes>{"".join(trips)}</routes>')
    config = folder / 'a.sumocfg'
    config.write_text(
        f'<configuration><input><net-file value="{NETWORK}"/><route-files value="a.rou.xml"/>'
        '</input><processing><lanechange.duration value="3"/><time-to-teleport value="-1"/>'
        '</processing></configuration>')
    return config


def child_of(node, module):
    """Return the id of the process of a node that runs a module."""
    for children in Path(f'/proc/{node.pid}/task').glob('*/children'):
        for child in map(int, children.read_text().split()):
            if module in Path(f'/proc/{child}/cmdline').read_bytes():
                return child
    raise BenchError(f'the node has no process {module.decode()}')


@contextmanager
def node_with_sumo(n_vehicles, **given):
    """Run a node with SUMO; yields it."""
    with tempfile.TemporaryDirectory() as folder:
        config = scenario(Path(folder), n_vehicles)
        with running(node_command('ours', 0, **{
                'source': 'sumo', 'sumo.config': config, 'overflow': 'drop_oldest', **given})
                ) as node:
            yield node


def wait_for_frames(node, listener, values, n_frames):
    """Spin until the node has received so many frames."""
    deadline_s = time.monotonic() + LIMIT_S
    while int(values.get('frames received', 0)) < n_frames:
        listener.spin(0.05)
        if node.poll() is not None or time.monotonic() > deadline_s:
            raise BenchError(f'the node has received {values.get("frames received")} frames')


def cpu_rows(sizes):
    """Measure the CPU time of the node beside that of SUMO, step and read."""
    rows = []
    for n_vehicles in sizes:
        with Listener() as listener, node_with_sumo(n_vehicles, frame='true') as node:
            values = listener.diagnostics()
            with reading('scene', 'state_sensor'):
                wait_for_frames(node, listener, values, N_WARM)
                sumo = child_of(node, b'sumo_process')
                before_s, n_before = (cpu_s(node.pid), cpu_s(sumo)), int(values['frames received'])
                wait_for_frames(node, listener, values, n_before + N_FRAMES)
                ours_s, own_s = (cpu_s(pid) - before for pid, before in zip(
                    (node.pid, sumo), before_s, strict=True))
                n_frames = int(values['frames received']) - n_before
            n_actors = int(values['actors'])
        print(f'    node {1e3 * ours_s / n_frames:.2f}, SUMO {1e3 * own_s / n_frames:.2f} CPU ms '
              f'per frame of {n_actors} actors', flush=True)
        rows += show([Row('node / SUMO, CPU of the processes; /tf, markers, ~/frame read',
                          n_actors, ours_s / own_s, '<= 0.5')])
    return rows


def disturbed(node, listener, n_frames):
    """Return how many frames a node drops, and how long it takes to answer a service, s."""
    values = listener.diagnostics()
    client = listener.node.create_client(GetParameters, '/state_sensor/get_parameters')
    waits_s = []
    with reading('all', 'state_sensor'):
        wait_for_frames(node, listener, values, N_WARM)
        n_before, n_dropped = int(values['frames received']), int(values['frames dropped'])
        while int(values['frames received']) < n_before + n_frames:
            begin_s = time.perf_counter()
            future = client.call_async(GetParameters.Request(names=['tf']))
            while not future.done():
                listener.spin(0.05)
            waits_s.append(time.perf_counter() - begin_s)
        n_dropped = int(values['frames dropped']) - n_dropped
    return n_dropped, waits_s


def callback_rows(n_vehicles):
    """Compare a node with SUMO to one with the mock server over TCP, every topic read."""
    found = {}
    with Listener() as listener, node_with_sumo(n_vehicles) as node:
        found['SUMO'] = disturbed(node, listener, N_FRAMES)
    with Listener() as listener, serving(n_vehicles, RATE_HZ, 10 * N_FRAMES) as (server, port), \
            running(node_command('ours', port, overflow='drop_oldest')) as node:
        found['TCP'] = disturbed(node, listener, N_FRAMES)
        server.kill()
    waits_ms = {name: [1e3 * percentile(waits_s, share) for share in (0.5, 0.95)]
                for name, (_, waits_s) in found.items()}
    for name, (median, high) in waits_ms.items():
        print(f'    {name}: {found[name][0]} frames dropped, answer of a service within '
              f'{median:.1f} ms, 95 % within {high:.1f} ms', flush=True)
    return show([
        Row('frames dropped with SUMO beyond those with TCP, every topic read', n_vehicles,
            found['SUMO'][0] - found['TCP'][0], '<= 0', 'frames'),
        Row('  the same: answer of a service, 95 % of them, SUMO / TCP', n_vehicles,
            waits_ms['SUMO'][1] / waits_ms['TCP'][1], '<= 1')])


def sumo_rows(sizes=SIZES):
    """Measure and print; return the rows."""
    return [*cpu_rows(sizes), *callback_rows(sizes[0])]


if __name__ == '__main__':
    sumo_rows()
