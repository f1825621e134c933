# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Measurements of whole node processes: CPU, start, latency, overload, soak."""

from contextlib import ExitStack
from dataclasses import dataclass
import json
from statistics import median
import subprocess
import sys
import time

from in_process import paced_ms
from processes import (
    BenchError,
    cpu_between_marks_s,
    cpu_s,
    HERE,
    LIMIT_S,
    line_of,
    Listener,
    memory_mb,
    n_handles,
    node_command,
    parameters,
    reading,
    running,
    serving,
    write_line,
)
from row import percentile, Row, show
from tf2_msgs.msg import TFMessage

START_S = 10


def cpu_of_node(path, actors, rate, warm, frames):
    """Return the CPU milliseconds per frame of a node that has been running for ``warm``."""
    with serving(actors, rate, warm + frames, '--marks', warm, warm + frames) as (server, port), \
            running(node_command(path, port)) as node:
        return 1e3 * cpu_between_marks_s(server, node) / frames


def process_rows(rounds, sizes):
    """Measure the rival's process and ours on the same TCP stream at the same pace."""
    rows = []
    goals = {10: 2.5, 100: 8, 1000: 14}
    # (warm-up frames, measured frames): few where the rival is too slow for the rate.
    lengths = {10: {'rival': (75, 300), 'ours': (75, 300)},
               100: {'rival': (75, 200), 'ours': (75, 300)},
               1000: {'rival': (8, 16), 'ours': (120, 300)}}
    for actors, rate in sizes:
        costs = {path: [] for path in lengths[actors]}
        for _ in range(rounds):
            for path, length in lengths[actors].items():
                costs[path].append(cpu_of_node(path, actors, rate, *length))
        rival, ours = (min(costs[path]) for path in ('rival', 'ours'))
        rows += show([Row('rival process / our process, one TCP stream, no subscriber',
                          actors, rival / ours, f'>= {goals[actors]}')])
        print(f'    rival {rival:.3f}, ours {ours:.3f} CPU ms per frame')
    return rows


def start_rows(rounds):
    """Measure how long after its exec a node's first frame reaches a subscriber."""
    with Listener() as listener:
        times = [first_frame(listener)[0] for _ in range(rounds)]
    return show([Row('exec to the first frame at a subscriber', 10, median(times), '<= 1.5', 's')])


def first_frame(listener):
    """
    Start a node for a simulator that is already running, until a frame is at a subscriber.

    :returns: seconds since its start, and CPU seconds of the node.
    """
    received = []
    subscription = listener.node.create_subscription(TFMessage, '/tf', received.append, 10)
    with serving(10, 50.0, 1500) as (server, port):
        began_s = time.perf_counter()
        with running(node_command('ours', port)) as node:
            while not received:
                listener.spin(0.1)
                if node.poll() is not None:
                    raise BenchError(f'the node ended with {node.returncode}')
            taken_s, spent_s = time.perf_counter() - began_s, cpu_s(node.pid)
            server.kill()
    listener.node.destroy_subscription(subscription)
    return taken_s, spent_s


@dataclass(frozen=True)
class Run:
    """
    Result of a run of a node under a stopwatch.

    ``latencies_ms`` of each published frame from the receipt of its last byte to its last publish,
    ``delays_ms`` from the time when the peer had sent it.
    """

    n_sent: int
    n_published: int
    n_dropped: int
    latencies_ms: list
    delays_ms: list
    rate_hz: float


def run_node(actors, rate, frames, readers, n_readers, skipped=0, **given):
    """Run the node under a stopwatch; figures exclude the first ``skipped`` frames."""
    with ExitStack() as stack:
        server, port = stack.enter_context(serving(actors, rate, frames, '--await'))
        stack.enter_context(reading(readers, 'state_sensor'))
        command = [sys.executable, HERE / 'stopwatch.py', '--n-readers', n_readers,
                   '--parameters',
                   *[f'{name}:={value}' for name, value in parameters(port, **given).items()]]
        node = stack.enter_context(running(command, stdout=subprocess.PIPE))
        line_of(node, 'ready')
        write_line(server, 'go')
        line_of(server, 'done')
        sent = json.loads(line_of(server, '{'))
        first, sent_ns = sent['first'], sent['sent_ns']
        write_line(node, first - 1 + frames)
        seen = json.loads(line_of(node, '{'))
    published = [(i - first, received_ns, done_ns) for i, received_ns, done_ns
                 in zip(seen['frames'], seen['received_ns'], seen['done_ns'], strict=True)
                 if i >= first]
    kept = [frame for frame in published if frame[0] >= skipped]
    elapsed_s = (kept[-1][2] - kept[0][2]) / 1e9
    return Run(frames, len(published), seen['n_dropped'],
               [(done_ns - received_ns) / 1e6 for _, received_ns, done_ns in kept],
               [(done_ns - sent_ns[i]) / 1e6 for i, _, done_ns in kept],
               (len(kept) - 1) / elapsed_s)


def latency_rows(sizes):
    """Measure from the receipt of the last byte to the last publish, with an RViz-like reader."""
    rows = []
    goals = {10: 1, 100: 3, 1000: 16}
    for actors, rate in sizes:
        found = run_node(actors, rate, 600, 'rviz', 3, skipped=100)
        print(f'    median {percentile(found.latencies_ms, 0.5):.2f} ms, from the last byte sent '
              f'p99 {percentile(found.delays_ms, 0.99):.2f} ms', flush=True)
        # Decoding and publishing alone at the same pace, so with equally cold caches.
        tight_ms = paced_ms('tight', actors, 600, rate)[100:]
        print(f'    tight bound, at the same pace: median {percentile(tight_ms, 0.5):.2f}, '
              f'p99 {percentile(tight_ms, 0.99):.2f} ms', flush=True)
        rows += show([Row('receipt of the last byte to last publish, p99, an RViz-like reader',
                          actors, percentile(found.latencies_ms, 0.99), f'<= {goals[actors]}',
                          'ms')])
    return rows


def n_processed(values):
    """Return how many frames are done, as of the last diagnostics."""
    return sum(int(values.get(f'frames {end}', 0)) for end in ('published', 'skipped', 'dropped'))


def soak(actors, rate, frames):
    """
    Sample a node once a second for the duration of a stream.

    :returns: the samples after the start, (K, 2): resident memory (MB), file handles; the number
        of frames that were not published.
    """
    samples, limit_s = [], LIMIT_S + (frames / rate if rate else 0.0)
    with serving(actors, rate, frames, '--marks', frames, limit_s=limit_s) as (server, port), \
            Listener() as listener, running(node_command(
                'ours', port, overflow='drop_oldest' if rate else 'block'), limit_s) as node:
        values, deadline_s = listener.diagnostics(), time.monotonic() + limit_s
        while n_processed(values) < frames and time.monotonic() < deadline_s:
            next_s = time.monotonic() + 1.0
            while time.monotonic() < next_s:
                listener.spin(0.2)
            if node.poll() is not None:
                raise BenchError(f'the node ended with {node.returncode}')
            samples.append((memory_mb(node.pid), n_handles(node.pid)))
        server.kill()
    # Dropped ones are not published either.
    return samples[min(START_S, len(samples) // 6):], frames - int(values['frames published'])


def soak_rows(seconds, frames):
    """Run long enough for a leak to show."""
    rows = []
    for name, actors, rate, n_frames in (
            (f'soak at 60 Hz for {seconds:g} s', 1000, 60.0, round(60.0 * seconds)),
            (f'soak of {frames} frames at full speed', 20, 0.0, frames)):
        samples, n_lost = soak(actors, rate, n_frames)
        gained = [max(column) - column[0] for column in zip(*samples, strict=True)]
        rows += show([Row(f'{name}: {what}', actors, figure, f'<= {most}', unit)
                      for what, figure, most, unit in (
                          ('frames dropped or lost', n_lost, 0, 'frames'),
                          ('memory growth after 10 s', gained[0], 5, 'MB'),
                          ('file handles gained', gained[1], 0, 'handles'))])
    return rows
