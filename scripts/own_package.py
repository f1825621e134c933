# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Build this package with colcon, linked to its modules, so that an edited module needs no build.

In the syntax of Python 3.6, as environment.py.
"""
import shutil

from environment import Environment, LEAN, ROOT
from steps import announced, digest, run


def build_package(environment: Environment, packages_key: str) -> None:
    """
    Build this package with links to its modules, so that an edited module needs no build.

    :param environment: filled.
    :param packages_key: of the packages that it is built with.
    """
    compiled = [ROOT / name for name in ('CMakeLists.txt', 'package.xml', 'setup.cfg')] + [LEAN]
    compiled += sorted((ROOT / 'msg').glob('*.msg'))
    linked = [str(path.relative_to(ROOT))
              for folder in ('state_sensor_ros', 'launch', 'config', 'resource')
              for path in sorted((ROOT / folder).rglob('*'))
              if path.is_file() and '__pycache__' not in path.parts]
    key = digest([packages_key] + compiled + linked)
    stamp = environment.install / 'package.stamp'
    done = stamp.read_text().split() if stamp.is_file() else ['', '']
    if done == [packages_key, key]:
        return
    if done[0] != packages_key:
        shutil.rmtree(str(environment.build / 'state_sensor_ros'), ignore_errors=True)
        shutil.rmtree(str(environment.install), ignore_errors=True)
    for path in environment.install.rglob('*'):
        if path.is_symlink() and not path.exists():
            path.unlink()
    with announced('building state_sensor_ros'):
        build(environment)
    stamp.write_text(packages_key + ' ' + key)


def build(environment: Environment) -> None:
    """
    Build with colcon.

    :param environment: filled.
    """
    run(environment, 'state_sensor_ros', [
        'colcon', '--log-base', environment.records / 'log', 'build', '--base-paths', ROOT,
        '--packages-select', 'state_sensor_ros', '--build-base', environment.build,
        '--install-base', environment.install, '--symlink-install',
        '--event-handlers', 'console_direct+', '--cmake-args', '-DBUILD_TESTING=OFF',
        '-DPython3_EXECUTABLE=' + str(environment.python),
        '-DLEAN_INTERFACES=' + ('OFF' if environment.is_sourced else 'ON')])
