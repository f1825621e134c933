#!/usr/bin/env python3
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Measure in two minutes what a change can spoil; compare with the stored figures.

Every row is a ratio of costs within one run, mostly of CPU time, so that the figures hold on
other machines; less is better. The stored figure is the median of several measurements. A row
that is a quarter above its stored figure is measured again, up to as many times: other programs
on the machine can only add to the cost.
"""

import argparse
from functools import partial
import json
from pathlib import Path
from statistics import median
import subprocess
import sys
import tempfile
import time

from conversion import N_ACTORS, write_recording
from in_process import paired
from processes import (
    BenchError,
    command_cpu_s,
    HERE,
    line_of,
    Listener,
    memory_mb,
    node_command,
    PAGE_MB,
    running,
    serving,
)
from row import compared
from whole_node import cpu_of_node, first_frame

FIGURES = HERE / 'quick_figures.json'
N_ATTEMPTS = 5
# Pairs of processes with a reader: their ratios differ by a fifth on a busy host.
N_ROUNDS = 3
N_CONVERTED = 400
# What the library costs by which a bag is written: a process that reads a bag and writes it again.
COPY = """
import sys
from mcap.reader import make_reader
from mcap.writer import Writer
with open(sys.argv[1], 'rb') as bag, open(sys.argv[2], 'wb') as copy:
    writer, channels = Writer(copy), {}
    writer.start()
    for schema, channel, message in make_reader(bag).iter_messages(log_time_order=False):
        if channel.id not in channels:
            channels[channel.id] = writer.register_channel(
                channel.topic, channel.message_encoding,
                writer.register_schema(schema.name, schema.encoding, schema.data))
        writer.add_message(channels[channel.id], message.log_time, message.data,
                           message.publish_time)
    writer.finish()
"""
# A process that does what every node in Python does; prints its CPU time and resident pages.
PLAIN_NODE = """
import time, numpy, rclpy
rclpy.init()
node = rclpy.create_node('plain')
print(time.process_time(), open('/proc/self/statm').read().split()[1])
"""


def frame(other, actors, readers='none', rounds=1):
    """Return the CPU of a frame from payload to publish, ours / ``other``."""
    return paired(rounds, actors, readers, 'ours', other)


def process(actors):
    """
    Return the CPU per frame of whole processes, ours / rival with ten actors, back to back.

    Between frames at a rate, other guests of the host fill the caches: the same code at 50 Hz had
    ratios from 0.34 to 0.68. ``make bench`` has those rows. What the sockets hold is more than the
    frames of a start, so many warm up.
    """
    n = 1200 if actors > 10 else 4000
    return cpu_of_node('ours', actors, 0.0, 500, n) / cpu_of_node('rival', 10, 0.0, 500, 1000)


def plain_node():
    """Return the CPU time (s) and the memory (MB) of a node that does nothing."""
    done = subprocess.run([sys.executable, '-c', PLAIN_NODE], capture_output=True, text=True,
                          check=True)
    cpu_s, pages = done.stdout.split()
    return float(cpu_s), int(pages) * PAGE_MB


def start():
    """Return the CPU from exec to the first frame at a subscriber, ours / a plain node's start."""
    with Listener() as listener:
        return first_frame(listener)[1] / plain_node()[0]


def memory():
    """Return the resident memory after 150 frames of 100 actors, ours / a plain node."""
    with serving(100, 50.0, 150, '--marks', 150) as (server, port), \
            running(node_command('ours', port)) as node:
        line_of(server, 'mark')
        found_mb = memory_mb(node.pid)
        server.kill()
    return found_mb / plain_node()[1]


def conversion():
    """Return the CPU of `state_sensor convert` into a bag / that of copying the bag by mcap."""
    with tempfile.TemporaryDirectory() as folder:
        recording, bag, copy = (Path(folder) / name for name in ('in.json', 'bag.mcap', 'copy'))
        write_recording(recording, lambda i, _: i < N_CONVERTED)
        return (command_cpu_s('state_sensor', 'convert', recording, bag)
                / command_cpu_s(sys.executable, '-c', COPY, bag, copy))


ROWS = {
    **{f'frame to publish, {n} actors, no subscriber: CPU / bound': partial(frame, 'bound', n)
       for n in (10, 100, 1000)},
    'frame to publish, 100 actors, markers, TF, one odometry: CPU / tight bound': partial(
        frame, 'tight', 100, 'rviz', N_ROUNDS),
    **{f'node process, {n} actors back to back, no subscriber: CPU / rival, 10 actors': partial(
        process, n)
       for n in (10, 100)},
    f'convert {N_ACTORS} actors to a bag: CPU / copying it by mcap': conversion,
    'start to the first frame: CPU / start of a plain node': start,
    'memory, 100 actors: resident / plain node': memory}


def main():
    """Measure all rows; return 1 if one is worse than stored."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--store', action='store_true', help='write the figures, compare nothing')
    parser.add_argument('--rows', default='', help='only those with this in their names')
    args = parser.parse_args()
    began_s = time.monotonic()
    rows = {name: measure for name, measure in ROWS.items() if args.rows in name}
    stored = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    try:
        if args.store:
            found = {name: round(median(measure() for _ in range(N_ATTEMPTS)), 4)
                     for name, measure in rows.items()}
            kept = {name: figure for name, figure in stored.items() if name in ROWS}
            FIGURES.write_text(json.dumps({**kept, **found}, indent=1, sort_keys=True) + '\n')
            print(f'stored in {FIGURES}')
            return 0
        worse = compared(rows, stored, N_ATTEMPTS)
    except (BenchError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f'error: {error}\n')
        return 1
    print(f'{len(rows) - len(worse)} of {len(rows)} rows as stored or better; '
          f'{time.monotonic() - began_s:.0f} s')
    return 1 if worse else 0


if __name__ == '__main__':
    sys.exit(main())
