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
Measure the driver against its rival and against bounds; print each goal and whether it holds.

Every figure that has a goal is a ratio within this run, a count, a size, or a latency. Each path
runs in a process of its own, the paths in turn. CPU time is the minimum over the rounds and over
their batches: other programs on the machine can only add to it.
"""

import argparse
from dataclasses import asdict
import json
import os
from pathlib import Path
import platform
import sys
import time

from conversion import conversion_rows, memory_rows
from fcd_cost import fcd_rows
from in_process import frame_rows
from processes import BenchError
from whole_node import latency_rows, process_rows, soak_rows, start_rows

HERE = Path(__file__).parent
# (actors, Hz), as the goals name them.
SIZES = ((10, 50.0), (100, 50.0), (1000, 60.0))
PARTS = ('frame', 'process', 'latency', 'start', 'soak', 'convert', 'memory', 'fcd')


def parsed():
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--actors', type=int, nargs='*', default=[10, 100, 1000],
                        choices=[actors for actors, _ in SIZES])
    parser.add_argument('--soak-seconds', type=float, default=60.0)
    parser.add_argument('--soak-frames', type=int, default=60000,
                        help='of 20 vehicles: 10 minutes of stream time at 100 Hz')
    parser.add_argument('--skip', nargs='*', default=[], choices=PARTS)
    parser.add_argument('--only', nargs='*', default=PARTS, choices=PARTS)
    return parser.parse_args()


def measured(args):
    """Return all rows."""
    sizes = [size for size in SIZES if size[0] in args.actors]
    parts = {
        'frame': lambda: frame_rows(args.rounds, sizes),
        'process': lambda: process_rows(args.rounds, sizes),
        'latency': lambda: latency_rows(sizes),
        'start': lambda: start_rows(args.rounds),
        'soak': lambda: soak_rows(args.soak_seconds, args.soak_frames),
        'convert': lambda: conversion_rows(args.rounds),
        'memory': memory_rows,
        'fcd': fcd_rows}
    rows = []
    for name, part in parts.items():
        if name in args.only and name not in args.skip:
            began_s = time.monotonic()
            rows += part()
            print(f'    {name}: {time.monotonic() - began_s:.0f} s', flush=True)
    return rows


def distribution():
    """Return the name of the ROS 2 that is measured: the sourced one, else that of the wheels."""
    return os.environ.get('ROS_DISTRO') or Path(sys.prefix).name.rpartition('-')[2]


def main():
    """Run the benchmark."""
    args = parsed()
    date = time.strftime('%Y-%m-%d')
    machine = (f'{os.cpu_count()} cores {platform.machine()}, '
               f'Python {platform.python_version()}, ROS 2 {distribution()}')
    print(f'{date}, {machine}, load {os.getloadavg()[0]:.1f} before', flush=True)
    try:
        rows = measured(args)
    except BenchError as error:
        sys.stderr.write(f'error: {error}\n')
        return 1
    report = {'date': date, 'machine': machine, 'command': 'make bench',
              'options': sys.argv[1:],
              'rows': [{**asdict(row), 'holds': row.holds} for row in rows]}
    (HERE / 'results.json').write_text(json.dumps(report, indent=1) + '\n')
    missed = sum(not row.holds for row in rows)
    print(f'{len(rows) - missed} of {len(rows)} goals hold; all figures are in bench/results.json')
    return 0


if __name__ == '__main__':
    sys.exit(main())
