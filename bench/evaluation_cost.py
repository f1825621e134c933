# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Measure the evaluation of a minute of 50 objects, with the start of the command.

CPU time, the minimum over the rounds: other programs can only add to it.
"""

from pathlib import Path
import resource
import subprocess
import tempfile

from conversion import N_ACTORS, RATE_HZ, write_recording
from processes import BenchError, LIMIT_S
from row import Row, show

DURATION_S = 60
PERCEPTION = '/perception/object_recognition'
TOPICS = (('tracks', f'{PERCEPTION}/tracking/objects'), ('paths', f'{PERCEPTION}/objects'))


def cpu_s(*words):
    """Run the command once; return its CPU time, s."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(['state_sensor', *map(str, words)], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise BenchError(f'state_sensor {words[0]} ended with {done.returncode}\n{done.stderr}')
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def evaluation_rows(rounds):
    """Evaluate the outputs of a recording by it."""
    with tempfile.TemporaryDirectory() as folder:
        recording, bag = Path(folder) / 'drive.json', Path(folder) / 'bag'
        write_recording(recording, lambda i, size: i < DURATION_S * RATE_HZ)
        cpu_s('convert', recording, bag, '--outputs', 'autoware', '--autoware-objects',
              'tracking', 'predicted', '--no-frame', '--no-odometry')
        return show([Row(
            f'evaluate {DURATION_S} s of {what}: CPU / recorded time', N_ACTORS, min(
                cpu_s('evaluate', recording, bag, '-q', '--topic', topic)
                for _ in range(rounds)) / DURATION_S, '<= 0.25') for what, topic in TOPICS])
