# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The blocks on a ROS workspace run as written with a Python that is externally managed (PEP 668).

git, rosdep, colcon and ros2 are replaced by programs that note how they are called; pip is the
real one, with packages of the same names from a folder.
"""

import os
from pathlib import Path
import re
import subprocess
import zipfile

from budgets import AWAIT_S
from paths import ROOT
import pytest

GUIDE = ROOT / 'doc' / 'guide' / 'ros_workspace.md'
SYSTEM_PYTHON = Path('/usr/bin/python3')
STUB = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
case $(basename "$0") in
  colcon)
    python3 -c 'import sys, msgspec, rosbags, plotly; print(sys.prefix)' >> "$CALLS" || exit 1
    mkdir install && touch install/setup.bash;;
esac
"""


def workspace_block():
    """Return the shell block that clones this repository into a workspace."""
    [block] = [text for text in re.findall(r'```sh\n(.*?)```', GUIDE.read_text('utf-8'),
                                           re.DOTALL) if 'git clone' in text and 'colcon' in text]
    return block


def is_managed():
    """Return whether pip refuses to install into the Python of the system."""
    if not SYSTEM_PYTHON.exists():
        return False
    program = ('import ensurepip, os, sysconfig; print(os.path.exists('
               'os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")))')
    found = subprocess.run([SYSTEM_PYTHON, '-c', program], capture_output=True, text=True,
                           timeout=AWAIT_S, check=False)
    return found.stdout == 'True\n'


def write_wheel(folder, name):
    """Write an empty package that pip can install."""
    info = f'{name}-99.dist-info'
    with zipfile.ZipFile(folder / f'{name}-99-py3-none-any.whl', 'w') as wheel:
        wheel.writestr(f'{name}.py', '')
        wheel.writestr(f'{info}/METADATA', f'Metadata-Version: 2.1\nName: {name}\nVersion: 99\n')
        wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\nGenerator: test\n'
                       'Root-Is-Purelib: true\nTag: py3-none-any\n')
        wheel.writestr(f'{info}/RECORD', f'{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n'
                       f'{info}/RECORD,,\n')


@pytest.mark.thorough
@pytest.mark.skipif(not is_managed(), reason='needs a system Python that is externally managed')
def test_workspace_block_runs_with_an_externally_managed_python(tmp_path):
    home, programs, wheels = (tmp_path / name for name in ('home', 'bin', 'wheels'))
    for folder in (home / 'ws' / 'src', programs, wheels):
        folder.mkdir(parents=True)
    for name in ('git', 'rosdep', 'colcon', 'ros2'):
        (programs / name).write_text(STUB)
        (programs / name).chmod(0o755)
    for name in ('msgspec', 'rosbags', 'plotly'):
        write_wheel(wheels, name)
    calls = tmp_path / 'calls'
    environment = {'HOME': str(home), 'PATH': f'{programs}:/usr/bin:/bin', 'CALLS': str(calls),
                   'PIP_NO_INDEX': '1', 'PIP_FIND_LINKS': str(wheels), 'LANG': 'C.UTF-8',
                   'TMPDIR': os.environ.get('TMPDIR', '/tmp'), 'PIP_CONFIG_FILE': os.devnull}
    refused = subprocess.run([SYSTEM_PYTHON, '-m', 'pip', 'install', 'msgspec'], env=environment,
                             capture_output=True, text=True, timeout=AWAIT_S, check=False)
    assert refused.returncode
    # The place of the repository is the only part that is not written out.
    script = workspace_block().replace('<this repository>', 'REPOSITORY')
    done = subprocess.run(['bash', '-ec', script], env=environment, cwd=home, timeout=300,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = calls.read_text().splitlines()
    assert [line.split()[0] for line in lines[:3]] == ['git', 'rosdep', 'colcon']
    assert lines[3] == str(home / 'ws' / 'venv')
    assert lines[4].startswith('ros2 launch state_sensor_ros demo.launch.py')
    assert (home / 'ws' / 'venv' / 'COLCON_IGNORE').exists()
