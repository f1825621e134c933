# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The memory of an evaluation: frames are not kept, only what the metrics need of them."""

import subprocess
import sys

from programs import ENVIRONMENT, STATE_SENSOR
import pytest
from stack_bags import TRACKING

from state_sensor_ros.commands.command_line import main

# A process starts with the peak of the one that started it: this one is small.
LAUNCHER = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""
N_OBJECTS, N_SHORT, N_LONG = 100, 60, 660
# Of an object and its ground truth, bytes: 380 measured, 730 with all frames in memory.
MOST_BYTES = 550.0


def peak_bytes(folder, n_frames):
    """Return the peak of resident memory of the evaluation of N_OBJECTS in some frames."""
    truth, bag = folder / f'{n_frames}.json', folder / f'{n_frames}'
    assert main(['synth', str(truth), '--vehicles', str(N_OBJECTS), '--objects', '0',
                 '--frames', str(n_frames), '--rate', '10', '-q']) == 0
    assert main(['convert', str(truth), str(bag), '--outputs', 'autoware', '--autoware-objects',
                 'tracking', '--no-frame', '--no-odometry', '-q']) == 0
    done = subprocess.run(
        [sys.executable, '-S', '-c', LAUNCHER, *STATE_SENSOR, 'evaluate', str(truth), str(bag),
         '--topic', TRACKING, '-q'], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return 1024 * int(done.stdout)


@pytest.mark.thorough
def test_frames_are_not_kept(tmp_path):
    growth = peak_bytes(tmp_path, N_LONG) - peak_bytes(tmp_path, N_SHORT)
    assert growth / (N_OBJECTS * (N_LONG - N_SHORT)) < MOST_BYTES
