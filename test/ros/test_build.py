# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
What others get from the built package: generated headers, entered shells, the real TFMessage.

Needs a set-up environment; compiles one small C++ program.
"""
import json
import os
from pathlib import Path
import shutil
import subprocess
import sys

from budgets import each_once
from paths import DATA, ROOT
import pytest

# Of types that `make setup` builds, from definitions of simulation_interfaces 2.1.0,
# autoware_adapi_msgs 1.9.0, autoware_msgs 1.12.0 and the branch ros2 of ackermann_msgs; and of
# the TFMessage of Jazzy, Kilted and Lyrical.
HASHES = dict(line.split() for line in (
    ROOT / 'test' / 'golden' / 'built_hashes.txt').read_text('utf-8').splitlines())
SET_UP = pytest.mark.skipif(not list(ROOT.glob('install/*/package.stamp')),
                            reason='built in a workspace, not by `make setup`')
IMPORT_MESSAGES = 'from state_sensor_ros.msg import ControlState; print(ControlState(s=1.5).s)'


def share_folder(package: str) -> Path:
    for prefix in os.environ['AMENT_PREFIX_PATH'].split(os.pathsep):
        if (folder := Path(prefix) / 'share' / package).is_dir():
            return folder
    raise AssertionError(f'no {package} in AMENT_PREFIX_PATH')


def library_folders() -> str:
    # The re-exec of wheels' Python has put every folder of libraries here.
    return os.environ.get('LD_LIBRARY_PATH', '')


def run(*command: str | Path, timeout: float = 180.0, **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.thorough
def test_cpp_package_finds_and_links_the_messages(tmp_path):
    """As colcon builds them in a workspace; the set-up from PyPI makes nothing for C++."""
    if not shutil.which('cmake'):
        pytest.skip('no cmake')
    prefix, python = tmp_path / 'prefix', f'-DPython3_EXECUTABLE={sys.executable}'
    run('cmake', '-S', ROOT, '-B', tmp_path / 'messages', python, '-DBUILD_TESTING=OFF',
        f'-DCMAKE_INSTALL_PREFIX={prefix}')
    run('cmake', '--build', tmp_path / 'messages', '--parallel', '2', timeout=900.0)
    run('cmake', '--install', tmp_path / 'messages')
    run('cmake', '-S', DATA / 'cpp_consumer', '-B', tmp_path / 'consumer', python,
        f'-Dstate_sensor_ros_DIR={prefix}/share/state_sensor_ros/cmake')
    run('cmake', '--build', tmp_path / 'consumer')
    environment = {**os.environ, 'LD_LIBRARY_PATH': f'{prefix}/lib:{library_folders()}'}
    assert run(tmp_path / 'consumer' / 'cpp_consumer', env=environment) \
        == '2 1 rosidl_typesupport_cpp\n'


@SET_UP
@pytest.mark.parametrize('name', HASHES)
def test_built_type_has_the_hash_of_the_original(name):
    package, *path = name.split('/')
    description = share_folder(package).joinpath(*path).with_suffix('.json')
    hashes = {entry['type_name']: entry['hash_string']
              for entry in json.loads(description.read_text(encoding='utf-8'))['type_hashes']}
    assert hashes[name] == HASHES[name]


@SET_UP
@pytest.mark.parametrize(('shell', 'folder'), each_once(
    ('bash', 'dash', 'zsh', 'ksh', 'sh'), (ROOT, Path('/'))))
def test_entered_shell_has_programs_and_messages(shell, folder):
    if not shutil.which(shell):
        pytest.skip(f'no {shell}')
    script = ROOT / 'scripts' / 'env.sh'
    where = script.relative_to(folder) if folder == ROOT else script
    # Twice: entering again must change nothing.
    printed = run(
        shell, '-c', f'. ./{where} && . {script} && command -v state_sensor_node && '
        f'command -v state_sensor && python3 -c "{IMPORT_MESSAGES}" && echo "$PYTHONPATH"',
        cwd=folder).splitlines()
    assert [Path(line).name for line in printed[:2]] == ['state_sensor_node', 'state_sensor']
    assert printed[2] == '1.5'
    own = [entry for entry in printed[3].split(':') if entry.startswith(f'{ROOT}/')]
    assert len(own) == 1
