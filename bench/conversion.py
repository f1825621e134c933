# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
How much faster than real time a recording becomes a bag, the start of the command included.

The quickest round counts: whatever else runs can only make one slower.
"""

from pathlib import Path
import subprocess
import tempfile
import time

from processes import BenchError, LIMIT_S
from row import Row, show
from traffic import Cycle

N_ACTORS, RATE_HZ = 50, 20.0
DURATIONS_S = (60, 10)
STORAGES = ('mcap', 'sqlite3')
PACE = 20


def write_recording(path, duration_s):
    """Write a trajectory."""
    cycle = Cycle(N_ACTORS, RATE_HZ)
    payloads = (cycle.payload(i) for i in range(round(duration_s * RATE_HZ)))
    path.write_bytes(b'[\n' + b',\n'.join(payloads) + b'\n]\n')


def conversion_s(recording, storage):
    """Convert once, as a user would; return the wall time, s."""
    with tempfile.TemporaryDirectory() as folder:
        began_s = time.perf_counter()
        done = subprocess.run(
            ['state_sensor', 'convert', recording, Path(folder) / 'bag', '--storage', storage],
            capture_output=True, text=True, timeout=LIMIT_S)
        elapsed_s = time.perf_counter() - began_s
    if done.returncode:
        raise BenchError(f'state_sensor convert ended with {done.returncode}\n{done.stderr}')
    return elapsed_s


def conversion_rows(rounds):
    """Convert a long and a short recording into both kinds of bags, in turn."""
    cases = [(duration_s, storage) for duration_s in DURATIONS_S for storage in STORAGES]
    with tempfile.TemporaryDirectory() as folder:
        recordings = {duration_s: Path(folder) / f'{duration_s}.json'
                      for duration_s in DURATIONS_S}
        for duration_s, path in recordings.items():
            write_recording(path, duration_s)
        found = [[conversion_s(recordings[duration_s], storage) for duration_s, storage in cases]
                 for _ in range(rounds)]
    return show([
        Row(f'real time / convert to {storage}, {duration_s} s at {RATE_HZ:g} Hz', N_ACTORS,
            duration_s / min(times_s), f'>= {PACE}')
        for (duration_s, storage), times_s in zip(cases, zip(*found, strict=True), strict=True)])
