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

Time on one core, memory, and what a second core saves where there are many recordings.

The minimum over the rounds is taken: other programs can only make one slower. Of two jobs beside
one the median of pairs is taken: the second core of a virtual machine is not always a whole one.
"""

from importlib.util import find_spec
from itertools import count, takewhile
import os
from pathlib import Path
from statistics import median
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
N_RECORDINGS, N_PAIRS, SHARED = 8, 5, 0.6
SIZES_MB = (10, 100, 1000)
# A table is written in groups of rows: the smallest fills one of them.
TABLE_SIZES_MB = (250, 1000)
# A file ten or a hundred times as large may need this much more than the smallest.
GROWTH_MB = 25.0


def write_recording(path, continues):
    """Write a trajectory while ``continues``, called with i and the size before frame i, holds."""
    cycle = Cycle(N_ACTORS, RATE_HZ)
    with path.open('wb') as file:
        file.write(b'[\n')
        for i in takewhile(lambda i: continues(i, file.tell()), count()):
            file.write((b',\n' if i else b'') + cycle.payload(i))
        file.write(b'\n]\n')


def converted_s(*words, n_cores=1):
    """Run the command once, on so many cores; return the wall time, s."""
    cores = sorted(os.sched_getaffinity(0))[:n_cores]
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
        shares = [many_share(recordings[min(DURATIONS_S)]) for _ in range(N_PAIRS)]
        compressed = compression_rows(recordings[min(DURATIONS_S)], rounds)
    return compressed + show([
        Row(f'real time / convert to {format_name}, {duration_s} s at {RATE_HZ:g} Hz', N_ACTORS,
            duration_s / min(times_s), f'>= {goal}')
        for (duration_s, format_name, *_, goal), times_s in zip(
            cases, zip(*found, strict=True), strict=True)] + [
        Row(f'{N_RECORDINGS} recordings on two cores: two jobs / one', N_ACTORS, median(shares),
            f'<= {SHARED}')])


def compression_rows(recording, rounds):
    """Convert a recording with and without compression; compare CPU, time and size."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for compression in ('zstd', 'none') * rounds:
            bag = Path(folder) / f'{compression}.mcap'
            cpu_s = sum(os.times()[2:4])
            elapsed_s = converted_s(recording, bag, '--force', '--compression', compression,
                                    n_cores=2)
            found.append((sum(os.times()[2:4]) - cpu_s, elapsed_s, bag.stat().st_size))
    pairs = zip(found[::2], found[1::2], strict=True)
    ratios = [median(column) for column in zip(
        *([a / b for a, b in zip(*pair, strict=True)] for pair in pairs), strict=True)]
    return show([
        Row(f'bag with zstd / without compression: {name}', N_ACTORS, ratio, goal)
        for name, ratio, goal in zip(('CPU', 'wall clock', 'size'), ratios,
                                     ('<= 1.5', '<= 1.1', '<= 0.1'), strict=True)])


def many_share(recording):
    """Convert copies of a recording on two cores; return the time by two jobs / that by one."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / 'in'
        source.mkdir()
        for i in range(N_RECORDINGS):
            (source / f'{i}.json').symlink_to(recording)
        one_s, two_s = (converted_s(source, Path(folder) / str(n_jobs), '--to', 'mcap', '--jobs',
                                    str(n_jobs), n_cores=2) for n_jobs in (1, 2))
        return two_s / one_s


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


# Of the largest recording: time of the index, and of a frame by its number where it takes longest.
BY_NUMBER = """
import sys, time
import state_sensor_ros as sensor

def taken_s(work, rounds=5):
    taken = []
    for _ in range(rounds):
        began_s = time.process_time()
        work()
        taken.append(time.process_time() - began_s)
    return min(taken)

recording = sensor.open_recording(sys.argv[1])
index_s = taken_s(lambda: len(recording), 1)
first_s = taken_s(lambda: next(iter(sensor.open_recording(sys.argv[1]))))
places = (0, len(recording) // 2, len(recording) - 1)
print(index_s, max(taken_s(lambda: recording[i]) for i in places) / first_s)
"""
CHILD_S = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
"""


def cpu_s(*words):
    """Run a command; return its time of CPU."""
    return float(subprocess.run([sys.executable, '-S', '-c', CHILD_S, 'state_sensor', *words],
                                capture_output=True, text=True, timeout=LIMIT_S,
                                check=True).stdout)


def library_rows(path, size_mb):
    """Compare an index with an inspection, any frame with the first one, the viewer with a bag."""
    done = subprocess.run([sys.executable, '-c', BY_NUMBER, path], capture_output=True, text=True,
                          timeout=LIMIT_S, check=True)
    index_s, share = map(float, done.stdout.split())
    scene, bag = path.parent / 'scene.rrd', path.parent / 'viewed'
    rows = [Row(f'index / inspect, {size_mb} MB', N_ACTORS, index_s / cpu_s('inspect', path),
                '<= 1'),
            Row(f'recording[i] / first frame, {size_mb} MB', N_ACTORS, share, '<= 3')]
    if find_spec('rerun') is not None:
        viewed_s = cpu_s('view', path, '--save', scene)
        rows.append(Row(f'view --save / convert to a bag, {size_mb} MB', N_ACTORS,
                        viewed_s / cpu_s('convert', path, bag), '<= 2'))
    return show(rows)


def memory_rows():
    """Inspect and convert recordings of 10 MB to 1 GB, which takes 3 GB on the disk."""
    rows, least = [], {}
    with tempfile.TemporaryDirectory() as folder:
        path, bag, back, parquet, csv = (Path(folder) / name for name in (
            'in.json', 'bag', 'back.json', 'table.parquet', 'table.csv'))
        cases = (('inspect', SIZES_MB, 'inspect', path),
                 ('convert to a bag', SIZES_MB, 'convert', path, bag, '--force'),
                 ('convert from a bag', SIZES_MB, 'convert', bag, back, '--force'),
                 ('convert to Parquet', TABLE_SIZES_MB, 'convert', path, parquet, '--force'),
                 ('convert to CSV', TABLE_SIZES_MB, 'convert', path, csv, '--force'))
        for size_mb in sorted({*SIZES_MB, *TABLE_SIZES_MB}):
            write_recording(path, lambda _, n_bytes, most=size_mb * 10**6: n_bytes < most)
            for what, _, *words in [case for case in cases if size_mb in case[1]]:
                found_mb = peak_mb(*words)
                least.setdefault(what, found_mb)
                rows += show([Row(f'{what}, {size_mb} MB: peak memory', N_ACTORS, found_mb,
                                  f'<= {least[what] + GROWTH_MB:.0f}', 'MB')])
        rows += library_rows(path, max(SIZES_MB))
    return rows
