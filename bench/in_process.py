# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Measure paths from payload to publish, each in a process of its own, in turn."""

from contextlib import contextmanager, ExitStack
import json
import os
from statistics import median
import subprocess
import sys

from processes import END_S, HERE, line_of, reading, running, write_line
from row import Row, show

# The ports of higher ids overlap with the ephemeral ports of Linux.
N_DOMAINS = 102
# Batches of a round.
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


@contextmanager
def working(path, actors, frames, readers, *options, **running_options):
    """Run the worker of a path with its readers; yields its process."""
    command = [sys.executable, HERE / 'worker.py', path, '--actors', actors, '--frames', frames,
               '--n-readers', n_readers(readers, path, actors), *options]
    with ExitStack() as stack:
        process = stack.enter_context(
            running(command, stdout=subprocess.PIPE, **running_options))
        line_of(process, 'ready')
        if readers != 'none':
            stack.enter_context(reading(readers, 'rival' if path == 'rival' else 'bench',
                                        **running_options))
        yield process
        # It ends by itself behind its last line of input.
        process.stdin.close()
        process.wait(END_S)


def n_frames(path, actors):
    """Return how many frames a batch has."""
    return N_FRAMES[actors].get(path, N_FRAMES[actors]['others'])


def batch_ms(worker):
    """Measure a batch of a running worker; return the CPU milliseconds per frame."""
    write_line(worker, 'batch')
    return json.loads(line_of(worker, '{'))['cpu_ms']


def interleaved(rounds, actors, readers, paths):
    """Measure ``paths`` in turn; return the minimum of each."""
    costs = {path: [] for path in paths}
    for _ in range(rounds):
        for path, found in costs.items():
            with working(path, actors, n_frames(path, actors), readers) as worker:
                found += [batch_ms(worker) for _ in range(N_BATCHES)]
    found = {path: min(values) for path, values in costs.items()}
    print(f'    {readers} subscribed: '
          + ', '.join(f'{path} {value:.3f}' for path, value in found.items())
          + ' CPU ms per frame', flush=True)
    return found


def paired(rounds, actors, readers, path, other):
    """
    Measure two paths side by side, a batch of one after a batch of the other.

    Both batches of a pair meet the same state of the machine. Each round has new processes, as
    the ratio differs between processes, too.

    :returns: the median of the ratios ``path`` / ``other`` of the pairs.
    """
    # Two workers have equal topics, so each has a ROS domain of its own.
    domain = int(os.environ.get('ROS_DOMAIN_ID', 0))
    ratios = []
    for _ in range(rounds):
        with ExitStack() as stack:
            workers = [stack.enter_context(working(
                name, actors, n_frames(name, actors), readers,
                env={**os.environ, 'ROS_DOMAIN_ID': str((domain + i) % N_DOMAINS)}))
                for i, name in enumerate((path, other), 1)]
            for _ in range(N_BATCHES):
                first_ms, second_ms = map(batch_ms, workers)
                ratios.append(first_ms / second_ms)
    return median(ratios)


def paced_ms(path, actors, frames, rate):
    """Return how long each frame takes one path in one thread, with a reader like RViz."""
    with working(path, actors, frames, 'rviz', '--rate', rate) as worker:
        return json.loads(line_of(worker, '{'))['times_ms']


def frame_rows(rounds, sizes):
    """Measure the cost of a frame from payload to publish, back to back."""
    rows = []
    goals = {10: (12, 0.9, 1.3, 3), 100: (16, 0.55, 0.7, 4.5), 1000: (12, 0.42, 0.5, 4.5)}
    for actors, _ in sizes:
        from_rival, of_bound, of_tight, subscribed = goals[actors]
        cpu = interleaved(rounds, actors, 'none', ('rival', 'ours', 'bound'))
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
    return rows
