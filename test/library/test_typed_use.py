# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Functions of a user, annotated with the public names, as a type checker sees them."""

import subprocess
import sys

from budgets import AWAIT_S
from paths import ROOT
import pytest

RIGHT = '''"""A user's functions, annotated with the public names."""
import numpy as np
import state_sensor_ros as sensor


def places(frame: sensor.Frame) -> list[tuple[str, float]]:
    row: int | None = frame.ego
    if row is None or frame.boxes is None or frame.wheels is None:
        return []
    boxes: sensor.Boxes = frame.boxes
    lanes: sensor.Lanes = frame.lanes
    wheels: sensor.Wheels = frame.wheels
    kind = sensor.Kind(int(frame.kinds[row]))
    text = f'{kind.name} {len(boxes)} {len(wheels)} {len(lanes)}'
    return [(text, float(frame.position_xyz[row, 0]))]


def speeds(recording: sensor.Recording) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    track: sensor.Track = recording.ego_track()
    changes: list[sensor.LaneChange] = recording.lane_changes()
    first: sensor.Frame = recording[0]
    part: list[sensor.Frame] = recording[1:3]
    assert len(part) + len(first) + len(changes) + len(recording)
    return track.at(track.game_time).speed


def main() -> None:
    try:
        with sensor.open_recording('drive.json') as recording:
            print(speeds(recording), recording.actors['a'].kind, recording.track('a').at([1.0]))
            print(recording.select(tags=['vehicle'], rate=10.0).duration)
        with sensor.open_stream('127.0.0.1', 8700) as stream:
            print([places(frame) for frame in stream])
        print(sensor.read_table('drive.json', columns=['speed']).num_rows)
    except sensor.TrajectoryFormatError as error:
        print(error.where, error.found, error.expected)
'''
# Each line has a mistake, and the kind that mypy gives it.
WRONG = {
    "x: int = sensor.open_recording('drive.json')": 'assignment',
    "sensor.open_recording('drive.json')[0].speed": 'attr-defined',
    "sensor.open_recording('drive.json').track(5)": 'arg-type',
    "y: str = sensor.open_recording('drive.json').ego_track().speed": 'assignment'}


@pytest.mark.thorough
def test_typed_use_passes_a_strict_checker_and_mistakes_do_not(tmp_path):
    (tmp_path / 'right.py').write_text(RIGHT, encoding='utf-8')
    lines = ['import state_sensor_ros as sensor', *WRONG]
    (tmp_path / 'wrong.py').write_text('\n'.join(lines), encoding='utf-8')
    done = subprocess.run(
        [sys.executable, '-m', 'mypy', '--strict', '--cache-dir', tmp_path / 'cache',
         '--follow-imports', 'silent', '--no-error-summary', 'right.py', 'wrong.py'],
        cwd=tmp_path, capture_output=True, text=True, timeout=2 * AWAIT_S,
        env={'MYPYPATH': str(ROOT), 'PATH': '/usr/bin'})
    found = [line.partition(': error: ') for line in done.stdout.splitlines()
             if ': error: ' in line]
    assert [where for where, _, _ in found] == [f'wrong.py:{i + 2}' for i in range(len(WRONG))], \
        done.stdout + done.stderr
    for (_, _, text), kind in zip(found, WRONG.values(), strict=True):
        assert text.endswith(f'[{kind}]')
