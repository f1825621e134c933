# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""No module outside the folders of simulators and of their mock servers names a simulator."""

import re

from paths import ROOT

from state_sensor_ros.settings import SIMULATORS

PACKAGE = ROOT / 'state_sensor_ros'
# A standard is the name of a simulator and of the folder of a format; imports have a test.
NAMES = sorted(set(SIMULATORS) - {
    path.stem.partition('_')[0] for path in (PACKAGE / 'files').iterdir()})
NAMED = re.compile('|'.join(NAMES), re.IGNORECASE)
# Folders of one simulator each, and what behaves as one.
OWN = {*(f'simulators/{name}' for name in SIMULATORS), 'emulator'}
# Topics of a stack whose names begin with that of a simulator.
BRIDGE = 'topics/carla_bridge.py'
# How many lines name one, and why.
EXCEPTIONS = {
    'commands/replay.py': (1, 'the simulator that has a Replay Mode'),
    'commands/simulate.py': (7, 'its mock server'),
    'files/__init__.py': (7, 'the table of formats'),
    'simulators/__init__.py': (4, 'the table of simulators'),
    'ros/main.py': (1, 'an example of its help'),
    'settings.py': (5, 'values of source, outputs and control_input; what is usual in an error'),
    'control/command_inputs.py': (3, 'the topics of its own bridge'),
    'topics/encoder.py': (1, 'the table of outputs'),
    'topics/state_frame.py': (1, 'the generation that ActorState.msg names'),
    'errors.py': (1, 'an extra of setup.cfg'),
}


def place(path):
    return path.relative_to(PACKAGE).as_posix()


MODULES = [path for path in sorted(PACKAGE.rglob('*.py')) if place(path) != BRIDGE
           and not any(place(path).startswith(f'{folder}/') for folder in OWN)]


def lines(path):
    return [line.strip() for line in path.read_text(encoding='utf-8').splitlines()
            if NAMED.search(line)]


def test_simulator_names_are_in_no_other_module():
    found = {place(path): lines(path) for path in MODULES}
    wrong = [f'{name}: {line}' for name, named in found.items() for line in named
             if name not in EXCEPTIONS]
    wrong += [name for name in found if NAMED.search(name) and name not in EXCEPTIONS]
    assert not wrong, '\n'.join(wrong)
    # No exception without need.
    assert {name: len(found[name]) for name in EXCEPTIONS} == {
        name: number for name, (number, _) in EXCEPTIONS.items()}
    assert {'monodrive', 'carla', 'sumo'} <= set(NAMES)
