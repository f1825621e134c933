#!/usr/bin/env python3
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Memory that `inspect` and `convert` need for trajectories of 10 MB, 100 MB and, with --large, 1 GB.

The files are made by repeating frames with time going on. The default sizes take half a minute;
1 GB takes three, and 3 GB on the disk for the file, its bag and the way back.
"""

import argparse
import itertools
import json
import os
from pathlib import Path
import subprocess
import sys
import tempfile

from row import Row, show

from state_sensor_ros.simulator.traffic import generate

ROOT = Path(__file__).parents[1]
PROGRAM = [sys.executable, '-c',
           'import sys; from state_sensor_ros.cli import main; sys.exit(main())']
SIZES_MB = (10, 100)
LARGE_MB = 1000
N_VEHICLES, RATE_HZ, N_FRAMES = 50, 20.0, 20
# What a file ten times as large may need beyond that of the smallest.
GROWTH_MB = 25.0
# A bag shall be made this much faster than real time, for 50 actors at 20 Hz.
PACE = 20.0


def make(path, n_bytes):
    """
    Write a trajectory of at least ``n_bytes``.

    :returns: seconds of traffic in it.
    """
    bodies = [json.dumps(frame['frame'], separators=(',', ':')) for frame in itertools.islice(
        generate(N_VEHICLES, 0, RATE_HZ, 1, 'v2'), N_FRAMES)]
    written = n_frames = 0
    with path.open('w') as file:
        while written < n_bytes:
            written += file.write(
                f'{"," if n_frames else "["}\n{{"frame":{bodies[n_frames % N_FRAMES]},'
                f'"game_time":{n_frames / RATE_HZ},"sample_count":{n_frames + 1},"time":1}}')
            n_frames += 1
        file.write('\n]\n')
    return n_frames / RATE_HZ


def measured(*words):
    """Run a command; return its peak of resident memory, MB, and its CPU time, s."""
    process = subprocess.Popen([*PROGRAM, *map(str, words)], cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f'error: state_sensor {words[0]} ended with {process.returncode}')
    return usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def rows(sizes_mb=SIZES_MB):
    """Yield a row for each figure; memory is compared with that for the smallest size."""
    least = {}
    with tempfile.TemporaryDirectory() as folder:
        path, bag, back = (Path(folder) / name for name in ('in.json', 'bag', 'back.json'))
        for size_mb in sizes_mb:
            seconds = make(path, size_mb * 10**6)
            for what, *words in (('inspect', 'inspect', path),
                                 ('to a bag', 'convert', path, bag, '--force'),
                                 ('from a bag', 'convert', bag, back, '--force')):
                memory_mb, cpu_s = measured(*words)
                least.setdefault(what, memory_mb)
                yield Row(f'{what}, {size_mb} MB: peak memory', N_VEHICLES, memory_mb,
                          f'<= {least[what] + GROWTH_MB:.0f}', 'MB')
                if what == 'to a bag' and size_mb > min(sizes_mb):
                    yield Row(f'{what}, {size_mb} MB: traffic per CPU time', N_VEHICLES,
                              seconds / cpu_s, f'>= {PACE:.0f}', 's/s')


def main():
    """Print the rows; end with 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--large', action='store_true', help=f'also {LARGE_MB} MB')
    args = parser.parse_args()
    found = list(rows((*SIZES_MB, LARGE_MB) if args.large else SIZES_MB))
    return int(not all(row.holds for row in show(found)))


if __name__ == '__main__':
    sys.exit(main())
