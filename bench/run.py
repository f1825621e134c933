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

from carla9_cost import carla9_rows
from carla_cost import carla_rows
from command_cost import command_rows
from conversion import conversion_rows, memory_rows
from cpp_rival import cpp_rows
from evaluation_cost import evaluation_rows
from in_process import frame_rows, spawn_rows
from processes import BenchError
from stack_cost import stack_rows
from sumo_cost import sumo_rows
from whole_node import (
    latency_rows,
    overload_rows,
    process_rows,
    scale_rows,
    soak_rows,
    start_rows,
)

HERE = Path(__file__).parent
# (actors, Hz), as the goals name them.
SIZES = ((10, 50.0), (100, 50.0), (1000, 60.0))
PARTS = ('frame', 'process', 'cpp', 'latency', 'spawn', 'start', 'overload', 'soak', 'scale',
         'carla', 'stacks', 'convert', 'memory', 'evaluate', 'sumo', 'carla9', 'commands')


def plot(scaling, machine, path):
    """Draw CPU per frame against actors, log-log."""
    import matplotlib as mpl
    mpl.use('Agg')
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(6.4, 4.2), dpi=130)
    actors = [entry['actors'] for entry in scaling]
    for key, label, style in (('rival', 'idiomatic rival', 'o-'),
                              ('bound', 'bound: orjson and the same raw publishes', 's--'),
                              ('ours', 'state_sensor_ros', 'D-')):
        axes.loglog(actors, [entry[key] for entry in scaling], style, label=label)
    axes.set_xticks(actors, [str(n_actors) for n_actors in actors])
    axes.set_xlabel('actors in the frame')
    axes.set_ylabel('CPU per frame (ms), no subscriber')
    axes.set_title(machine, fontsize='small')
    axes.grid(visible=True, which='both', alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path)


def parsed():
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--actors', type=int, nargs='*', default=[10, 100, 1000],
                        choices=[actors for actors, _ in SIZES])
    parser.add_argument('--soak-seconds', type=float, default=60.0)
    parser.add_argument('--soak-frames', type=int, default=60000,
                        help='of 20 vehicles: 10 minutes of stream time at 100 Hz')
    parser.add_argument('--scale-seconds', type=float, default=60.0,
                        help='of 10,000 vehicles at 10 Hz; 600 for ten minutes')
    parser.add_argument('--skip', nargs='*', default=[], choices=PARTS)
    parser.add_argument('--only', nargs='*', default=PARTS, choices=PARTS)
    return parser.parse_args()


def measured(args):
    """Return all rows, and the CPU per frame of the paths by number of actors."""
    sizes = [size for size in SIZES if size[0] in args.actors]
    scaling = []

    def frames():
        rows, found = frame_rows(args.rounds, sizes)
        scaling.extend(found)
        return rows

    parts = {
        'frame': frames,
        'process': lambda: process_rows(args.rounds, sizes),
        'cpp': lambda: cpp_rows(args.rounds),
        'latency': lambda: latency_rows(sizes),
        'spawn': lambda: spawn_rows(sizes),
        'start': lambda: start_rows(args.rounds),
        'overload': overload_rows,
        'soak': lambda: soak_rows(args.soak_seconds, args.soak_frames),
        'scale': lambda: scale_rows(args.scale_seconds),
        'carla': carla_rows,
        'stacks': stack_rows,
        'convert': lambda: conversion_rows(args.rounds),
        'memory': memory_rows,
        'evaluate': lambda: evaluation_rows(args.rounds),
        'sumo': sumo_rows,
        'carla9': carla9_rows,
        'commands': command_rows}
    rows = []
    for name, part in parts.items():
        if name in args.only and name not in args.skip:
            began_s = time.monotonic()
            rows += part()
            print(f'    {name}: {time.monotonic() - began_s:.0f} s', flush=True)
    return rows, scaling


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
        rows, scaling = measured(args)
    except BenchError as error:
        sys.stderr.write(f'error: {error}\n')
        return 1
    if len(scaling) == len(SIZES):
        plot(scaling, f'{date}, {machine}', HERE / 'scaling.png')
    report = {'date': date, 'machine': machine, 'command': 'make bench',
              'options': sys.argv[1:],
              'rows': [{**asdict(row), 'holds': row.holds} for row in rows], 'scaling': scaling}
    (HERE / 'results.json').write_text(json.dumps(report, indent=1) + '\n')
    missed = sum(not row.holds for row in rows)
    print(f'{len(rows) - missed} of {len(rows)} goals hold; all figures are in bench/results.json')
    return 0


if __name__ == '__main__':
    sys.exit(main())
