# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Measure paths from payload to publish, each in a process of its own, in turn."""

from contextlib import ExitStack
import json
import subprocess
import sys

from processes import HERE, line_of, reading, running
from row import Row, show

# Batches of a round, of which the cheapest is taken.
N_BATCHES = 5
# Frames of a batch; with 250 or more, work that is not done in each frame is included.
N_FRAMES = {10: {'rival': 100, 'others': 1000}, 100: {'rival': 10, 'others': 250},
            1000: {'rival': 4, 'others': 40}}


def n_readers(kind, path, actors):
    """Return how many subscriptions a reader of ``kind`` makes on ``path``."""
    fixed = 6  # /tf, ego odometry, ego control state, control states, markers, actors
    if path != 'rival':
        fixed += 1  # ~/frame exists with ours, though it is switched off
    return {'none': 0, 'rviz': 3, 'all': fixed + 2 * actors}[kind]


def measure(path, actors, frames, readers, *options):
    """Measure one path once; return the figures of its worker."""
    command = [sys.executable, HERE / 'worker.py', path, '--actors', actors, '--frames', frames,
               '--n-readers', n_readers(readers, path, actors), *options]
    with ExitStack() as stack:
        process = stack.enter_context(running(command, stdout=subprocess.PIPE))
        line_of(process, 'ready')
        if readers != 'none':
            stack.enter_context(reading(readers, 'rival' if path == 'rival' else 'bench'))
        return json.loads(line_of(process, '{'))


def interleaved(rounds, actors, readers, paths):
    """Measure ``paths`` in turn; return the minimum of each."""
    lengths = N_FRAMES[actors]
    costs = {path: [] for path in paths}
    for _ in range(rounds):
        for path, found in costs.items():
            frames = lengths.get(path, lengths['others'])
            found.append(measure(path, actors, frames, readers,
                                 '--batches', N_BATCHES)['cpu_ms'])
    found = {path: min(values) for path, values in costs.items()}
    print(f'    {readers} subscribed: '
          + ', '.join(f'{path} {value:.3f}' for path, value in found.items())
          + ' CPU ms per frame', flush=True)
    return found


def paced_ms(path, actors, frames, rate):
    """Return how long each frame takes one path in one thread, with a reader like RViz."""
    return measure(path, actors, frames, 'rviz', '--rate', rate)['times_ms']


def frame_rows(rounds, sizes):
    """Measure the cost of a frame from payload to publish, back to back."""
    rows, scaling = [], []
    goals = {10: (12, 0.9, 1.3, 3), 100: (16, 0.55, 0.7, 4.5), 1000: (12, 0.42, 0.5, 4.5)}
    for actors, _ in sizes:
        from_rival, of_bound, of_tight, subscribed = goals[actors]
        cpu = interleaved(rounds, actors, 'none', ('rival', 'ours', 'bound'))
        scaling.append({'actors': actors, **cpu})
        rows += show([
            Row('rival / ours, frame to publish, no subscriber', actors,
                cpu['rival'] / cpu['ours'], f'>= {from_rival}'),
            Row('ours / bound, no subscriber', actors, cpu['ours'] / cpu['bound'],
                f'<= {of_bound}')])
        cpu = interleaved(rounds, actors, 'rviz', ('ours', 'tight'))
        rows += show([Row('ours / tight bound, an RViz-like reader', actors,
                          cpu['ours'] / cpu['tight'], f'<= {of_tight}')])
        cpu = interleaved(rounds, actors, 'all', ('rival', 'ours'))
        rows += show([Row('rival / ours, every topic subscribed', actors,
                          cpu['rival'] / cpu['ours'], f'>= {subscribed}')])
    return rows, scaling


def spawn_rows(sizes):
    """Measure the extra cost of a frame in which an actor appears, leaves, or is forgotten."""
    rows = []
    goals = {10: 1, 100: 1, 1000: 2}
    for actors, _ in sizes:
        with running([sys.executable, HERE / 'newcomers.py', actors],
                     stdout=subprocess.PIPE) as process:
            costs_ms = json.loads(line_of(process, '{'))
        print('    extra ms: ' + ', '.join(
            f'{change} {cost:.3f}' for change, cost in costs_ms.items()), flush=True)
        del costs_ms['in the pause behind']
        rows += show([Row('one actor appears, is subscribed, leaves, is forgotten: worst', actors,
                          max(costs_ms.values()), f'<= {goals[actors]}', 'ms')])
    return rows
