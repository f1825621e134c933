# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What the demonstration says about its recording: topics, latency, rate, the followed line."""

from __future__ import annotations

from dataclasses import replace
import os
from pathlib import Path
import statistics

from demo_recorder import Recording
import numpy as np
import numpy.typing as npt

from state_sensor_ros import open_recording
from state_sensor_ros.simulators.monodrive.encoding import encode
from state_sensor_ros.simulators.monodrive.frames import Decoder

# A lower rate than this share of the wanted one is called lower.
RATE_SHARE = 0.98
# Number of points whose distances from a line are computed at once.
N_TOGETHER = 1000
# Somewhere in UTM zone 32, m.
FAR_ORIGIN = (603778.0, 5791041.0)


def show(recording: Recording) -> None:
    """Print a table of the recorded topics, and the latency."""
    table = [('topic', 'type', 'topics', 'messages', 'rate of each')]
    for name, row in recording.rows.items():
        rate = f'{statistics.median(row.rates_hz):.1f} Hz' if row.rates_hz else '-'
        table.append((name, row.type_name, str(row.n_topics), str(row.n_messages), rate))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    print()
    for cells in table:
        print('  '.join(cell.ljust(width) if i < 2 else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))))
    if recording.latencies_ms:
        median_ms = statistics.median(median for median, _ in recording.latencies_ms)
        # The driver's 99th percentile is over all frames so far.
        p99_ms = recording.latencies_ms[-1][1]
        print(f'\nlatency, last byte received to last topic published: median {median_ms:.2f} ms, '
              f'p99 {p99_ms:.2f} ms')
    if recording.frame_hz:
        share = recording.frame_hz / recording.simulated_hz
        print(f'frames     {recording.frame_hz:.1f} Hz, {recording.simulated_hz:.1f} Hz wanted' + (
            '' if share >= RATE_SHARE else f': {share:.2f} of real time; {os.cpu_count()} cores '
            'run simulator, driver and recorder'))


def show_round_trip(bag: Path) -> float:
    """
    Print and return by how much positions in UTM coordinates differ after a trip through JSON, m.

    :param bag: bag whose first frame is moved there.
    """
    with open_recording(bag) as recording:
        frame = recording[0]
    kinematics = frame.kinematics.copy()
    kinematics[:, :2] += FAR_ORIGIN
    [read] = Decoder().frames(encode(replace(frame, kinematics=kinematics), 'v2'))
    back = [read.row(name) for name in frame.names]
    worst = float(np.nanmax(np.abs(read.position_xyz[back] - kinematics[:, :3])))
    print('JSON       a frame at UTM coordinates, written and read back: positions differ by at '
          f'most {worst * 1e3:.2g} mm')
    return worst


def show_deviation(bag: Path, line: Path) -> None:
    """Print how far the ego was from the line."""
    with open_recording(line) as recording:
        line_xy = recording.ego_track().position_xyz[:, :2]
    with open_recording(bag) as recording:
        driven_xy = recording.ego_track().position_xyz[:, :2]
    away = deviations(driven_xy, line_xy)
    length = float(np.hypot(*np.diff(driven_xy, axis=0).T).sum())
    print(f'line       {length:.0f} m driven, distance from the line mean {away.mean():.2f} m, '
          f'maximum {away.max():.2f} m')


def deviations(points: npt.NDArray[np.float64], line: npt.NDArray[np.float64]
               ) -> npt.NDArray[np.float64]:
    """
    Return the distances of points from a line.

    :param points: (n, 2) m.
    :param line: (k, 2) m, vertices.
    :returns: (n,) m.
    """
    begin, way = line[:-1], np.diff(line, axis=0)
    squared = np.maximum((way ** 2).sum(axis=1), 1e-12)
    nearest = []
    for start in range(0, len(points), N_TOGETHER):
        from_begin = points[start:start + N_TOGETHER, None] - begin
        share = np.clip((from_begin * way).sum(axis=2) / squared, 0.0, 1.0)
        rest = from_begin - share[:, :, None] * way
        nearest.append(np.hypot(rest[..., 0], rest[..., 1]).min(axis=1))
    return np.concatenate(nearest)
