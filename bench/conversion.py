# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Measure the conversion of recordings to bags and tables, with the start of the command.

Time on one core, and memory. The minimum over the rounds is taken: other programs can only make
one slower.
"""

from itertools import count, takewhile
import os
from pathlib import Path
import subprocess
import sys
import tempfile
import time

from processes import BenchError, LIMIT_S
from row import Row, show
from traffic import Cycle

N_ACTORS, RATE_HZ = 50, 20.0
DURATIONS_S = (60, 20)
# Name of the output, options of the command, and the goals for both durations.
FORMATS = (('mcap', 'bag', (), (60, 20)),
           ('sqlite3', 'bag', ('--storage', 'sqlite3'), (20, 20)),
           ('Parquet', 'table.parquet', (), (60, 20)),
           ('CSV', 'table.csv', (), (20, 20)))
SIZES_MB = (10, 250)
# The larger file may need this much more; a table is written in groups of rows.
GROWTH_MB = 25.0


def write_recording(path, continues):
    """Write a trajectory while ``continues``, called with i and the size before frame i, holds."""
    cycle = Cycle(N_ACTORS, RATE_HZ)
    with path.open('wb') as file:
        file.write(b'[\n')
        for i in takewhile(lambda i: continues(i, file.tell()), count()):
            file.write((b',\n' if i else b'') + cycle.payload(i))
        file.write(b'\n]\n')


def converted_s(*words):
    """Run the command once, on one core; return the wall time, s."""
    cores = sorted(os.sched_getaffinity(0))[:1]
    began_s = time.perf_counter()
    done = subprocess.run(['state_sensor', 'convert', *words], capture_output=True, text=True,
                          timeout=LIMIT_S, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    elapsed_s = time.perf_counter() - began_s
    if done.returncode:
        raise BenchError(f'state_sensor convert ended with {done.returncode}\n{done.stderr}')
    return elapsed_s


def conversion_s(recording, name, options):
    """Convert one recording; return the wall time, s."""
    with tempfile.TemporaryDirectory() as folder:
        return converted_s(recording, Path(folder) / name, *options)


def conversion_rows(rounds):
    """Convert a long and a short recording into each format, in turn, then many of them."""
    cases = [(duration_s, *case[:3], goal) for case in FORMATS
             for duration_s, goal in zip(DURATIONS_S, case[3], strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        recordings = {duration_s: Path(folder) / f'{duration_s}.json'
                      for duration_s in DURATIONS_S}
        for duration_s, path in recordings.items():
            write_recording(path, lambda i, _, n=duration_s * RATE_HZ: i < n)
        found = [[conversion_s(recordings[duration_s], name, options)
                  for duration_s, _, name, options, _ in cases] for _ in range(rounds)]
    return show([
        Row(f'real time / convert to {format_name}, {duration_s} s at {RATE_HZ:g} Hz', N_ACTORS,
            duration_s / min(times_s), f'>= {goal}')
        for (duration_s, format_name, *_, goal), times_s in zip(
            cases, zip(*found, strict=True), strict=True)])


# A process starts with the peak of the one that started it: this one is small.


LAUNCHER = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def peak_mb(*words):
    """Run a command; return its peak of resident memory."""
    done = subprocess.run([sys.executable, '-S', '-c', LAUNCHER, 'state_sensor', *words],
                          capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise BenchError(f'state_sensor {words[0]} ended with {done.returncode}\n{done.stderr}')
    return int(done.stdout) / 1024


def memory_rows():
    """Inspect and convert recordings of 10 and of 250 MB."""
    rows, least = [], {}
    with tempfile.TemporaryDirectory() as folder:
        path, bag, back, parquet = (Path(folder) / name for name in (
            'in.json', 'bag', 'back.json', 'table.parquet'))
        cases = (('inspect', 'inspect', path),
                 ('convert to a bag', 'convert', path, bag, '--force'),
                 ('convert from a bag', 'convert', bag, back, '--force'),
                 ('convert to Parquet', 'convert', path, parquet, '--force'))
        for size_mb in SIZES_MB:
            write_recording(path, lambda _, n_bytes, most=size_mb * 10**6: n_bytes < most)
            for what, *words in cases:
                found_mb = peak_mb(*words)
                least.setdefault(what, found_mb)
                rows += show([Row(f'{what}, {size_mb} MB: peak memory', N_ACTORS, found_mb,
                                  f'<= {least[what] + GROWTH_MB:.0f}', 'MB')])
    return rows
