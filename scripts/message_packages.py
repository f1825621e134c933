# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Build the message packages that PyPI does not have into the environment, each with CMake.

In the syntax of Python 3.6, as environment.py.
"""
from concurrent.futures import ThreadPoolExecutor
import os
from pathlib import Path
import shutil
import sys

from environment import Environment, LEAN, ROOT
from packages import install
import stack_interfaces
from steps import announced, digest, run
from wheel_headers import rewrite_header_paths


def build_interfaces(environment: Environment, packages_key: str) -> None:
    """
    Build the interface packages that PyPI does not have into the environment.

    :param environment: filled; a sourced ROS 2 has all of them.
    :param packages_key: of the packages that they are built with.
    """
    folder = ROOT / 'scripts' / 'interfaces'
    key = digest([packages_key, LEAN] + sorted(
        path for path in folder.rglob('*') if path.is_file()))
    stamp = environment.venv / 'interfaces.stamp'
    if environment.is_sourced or (stamp.is_file() and stamp.read_text() == key):
        return
    for package in sorted(path for path in folder.iterdir() if path.is_dir()):
        build = environment.build / package.name
        shutil.rmtree(str(build), ignore_errors=True)
        with announced('building {} into {}'.format(package.name, environment.venv.name)):
            build_project(environment, package, build)
    stamp.write_text(key)


def build_stacks(environment: Environment, packages_key: str) -> None:
    """
    Build the message packages of autonomy stacks, which tests need, into the environment.

    :param environment: filled; of a sourced ROS 2 those packages are used that it has.
    :param packages_key: of the packages that they are built with.
    """
    if environment.is_sourced:
        return
    requirements = ROOT / 'requirements' / 'stacks' / (environment.distribution + '.txt')
    known = stack_interfaces.packages()
    files = [path for paths in known.values() for path in paths]
    key = digest([packages_key, requirements, LEAN, Path(stack_interfaces.__file__)] + files)
    stamp = environment.venv / 'stacks.stamp'
    if stamp.is_file() and stamp.read_text() == key:
        return
    # What they depend on is pinned and installed.
    install(environment, ['--no-deps', '-r', requirements])
    rewrite_header_paths(environment)

    def build_one(name: str) -> None:
        folder = environment.build / 'stacks' / name
        stack_interfaces.write_project(name, known[name], folder)
        build_project(environment, folder, folder / 'build')

    with announced('building messages of autonomy stacks into {}; about a minute'.format(
            environment.venv.name)), ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        list(pool.map(build_one, known))
    stamp.write_text(key)


def build_project(environment: Environment, source: Path, build: Path) -> None:
    """
    Build one message package and install it into the environment.

    :param environment: filled.
    :param source: folder of its CMake project, with the name of the package.
    :param build: folder of what CMake makes.
    """
    cmake = environment.venv / 'bin' / 'cmake'
    run(environment, source.name, [
        cmake, '-S', source, '-B', build,
        '-DBUILD_TESTING=OFF', '-DCMAKE_INSTALL_PREFIX=' + str(environment.venv),
        '-DPYTHON_INSTALL_DIR=lib/python{}.{}/site-packages'.format(*sys.version_info),
        '-DPython3_EXECUTABLE=' + str(environment.python), '-DLEAN_INTERFACES=ON'])
    run(environment, source.name, [cmake, '--build', build, '--target', 'install'])
