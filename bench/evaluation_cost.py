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

from importlib.util import find_spec
from pathlib import Path
import resource
import subprocess
import sys
import tempfile

from conversion import N_ACTORS, RATE_HZ, write_recording
from processes import BenchError, LIMIT_S
from row import Row, show

DURATION_S = 60
N_MANY, N_MANY_FRAMES = 100, 600
PERCEPTION = '/perception/object_recognition'
TOPICS = (('tracks', f'{PERCEPTION}/tracking/objects'), ('paths', f'{PERCEPTION}/objects'))


def cpu_s(*words, program=('state_sensor',)):
    """Run the command, or another program, once; return its CPU time, s."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*program, *map(str, words)], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise BenchError(f'state_sensor {words[0]} ended with {done.returncode}\n{done.stderr}')
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# Library, a package that it needs, what it evaluates, topic of the stack.
RIVALS = (('motmetrics', 'motmetrics', 'tracks', 'tracking'),
          ('nuscenes-devkit', 'pyquaternion', 'detections', 'detection'))


def rival_rows():
    """Evaluate the tracks and detections of 100 objects with the command and with others."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        recording, bag = Path(folder) / 'drive.json', Path(folder) / 'bag'
        cpu_s('synth', recording, '--vehicles', N_MANY, '--objects', 0, '--frames', N_MANY_FRAMES,
              '--rate', 10, '-q')
        cpu_s('convert', recording, bag, '--outputs', 'autoware', '-p',
              'autoware_objects:=[tracking, detection, ground_truth]', '-p',
              'perception.position_std:=0.3', '-q')
        for library, package, what, kind in RIVALS:
            if find_spec(package) is None:
                print(f'evaluate beside {library}: skipped, {library} is not installed')
                continue
            topic = f'{PERCEPTION}/{kind}/objects'
            ours = cpu_s('evaluate', recording, bag, '-q', '--topic', topic)
            rival = cpu_s(library.partition('-')[0], bag, f'{PERCEPTION}/ground_truth/objects',
                          topic, program=(sys.executable, str(
                              Path(__file__).with_name('evaluation_rival.py'))))
            rows += show([Row(f'evaluate {N_MANY_FRAMES} frames of {what}: {library} / ours, CPU',
                              N_MANY, rival / ours, '>= 1')])
    return rows


def evaluation_rows(rounds):
    """Evaluate the outputs of a recording by it."""
    with tempfile.TemporaryDirectory() as folder:
        recording, bag = Path(folder) / 'drive.json', Path(folder) / 'bag'
        write_recording(recording, lambda i, size: i < DURATION_S * RATE_HZ)
        cpu_s('convert', recording, bag, '--outputs', 'autoware', '-p',
              'autoware_objects:=[tracking, predicted]', '-p', 'frame:=false', '-p',
              'odometry:=false')
        rows = show([Row(
            f'evaluate {DURATION_S} s of {what}: CPU / recorded time', N_ACTORS, min(
                cpu_s('evaluate', recording, bag, '-q', '--topic', topic)
                for _ in range(rounds)) / DURATION_S, '<= 0.25') for what, topic in TOPICS])
    return rows + rival_rows()
