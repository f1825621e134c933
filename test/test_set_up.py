# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Errors of scripts/set_up.py on unfit machines, which it reports before it makes any file.

Each case changes one property of the machine, by variables or by a sitecustomize.
"""
import importlib
import os
import re
import subprocess
import sys

from budgets import AWAIT_S
from paths import ROOT
import pytest
from stopwatch import until

SCRIPT = ROOT / 'scripts' / 'set_up.py'
# A machine that the wheels fit.
FITTING = 'import platform; platform.machine = lambda: "x86_64"\n'


def set_up(folder, patch, variables):
    """Run a copy of the script, after a patch, so that nothing is set up here if it goes on."""
    copy = folder / 'copy'
    (copy / 'scripts').mkdir(parents=True)
    for path in SCRIPT.parent.glob('*.py'):
        (copy / 'scripts' / path.name).write_bytes(path.read_bytes())
    (copy / 'requirements').mkdir()
    for name in ('jazzy', 'kilted', 'build', 'run', 'tools', 'constraints', 'installer'):
        text = 'ros-rclpy==0\n' if name in ('jazzy', 'kilted') else ''
        (copy / 'requirements' / f'{name}.txt').write_text(text, encoding='utf-8')
    (folder / 'sitecustomize.py').write_text(FITTING + patch, encoding='utf-8')
    environment = {'PATH': os.environ['PATH'], 'PYTHONPATH': str(folder),
                   # Otherwise the Python of the ROS wheels would start itself again.
                   '_ROS_WHEELS_BOOTSTRAP_COMPLETE': '1', **variables}
    return subprocess.run([sys.executable, copy / 'scripts' / 'set_up.py'], env=environment,
                          capture_output=True, text=True, timeout=AWAIT_S)


@pytest.mark.parametrize(('patch', 'variables', 'message'), [
    pytest.param('', {'ROS_DISTRO_WHEELS': 'humble'},
                 'ROS_DISTRO_WHEELS: found humble; expected one of jazzy, kilted', id='wheels'),
    pytest.param('import sys; sys.version_info = (3, 9, 18)', {},
                 'python3: found 3.9.18 (', id='old-python'),
    pytest.param('', {'PATH': '/nowhere'},
                 'compiler: found none of cc, gcc, clang; expected a C and a C++', id='compiler'),
])
def test_set_up_stops_with_one_line(tmp_path, patch, variables, message):
    done = set_up(tmp_path, patch, variables)
    assert done.returncode == 1
    assert done.stdout == ''
    assert done.stderr.startswith(f'error: {message}')
    assert done.stderr.count('\n') == 1
    assert re.search('; (expected|virtual environments need) ', done.stderr)
    assert not list(tmp_path.glob('copy/.venv*'))


def test_step_that_takes_long_says_so_again_and_again(monkeypatch, capsys):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    going_on = importlib.import_module('environment').going_on
    printed = []
    with going_on('setup: building', 0.01):
        until(lambda: printed.extend(capsys.readouterr().out.splitlines()) or len(printed) > 2)
    assert all(re.fullmatch(r'setup: building: \d+ s so far', line) for line in printed)
