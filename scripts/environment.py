# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Choose the environment from the variables, name its folders, and check the machine.

Only the standard library is used, in the syntax of Python 3.6, so that an old Python reports an
error instead of a traceback.
"""
import os
from pathlib import Path
import platform
import shlex
import shutil
import sys
import sysconfig

ROOT = Path(__file__).resolve().parent.parent
# What message packages build if rclpy alone uses them.
LEAN = ROOT / 'cmake' / 'lean_interfaces.cmake'
OLDEST_PYTHON = (3, 10)
# The project ros-python-wheels builds for CPython 3.10 to 3.14 on manylinux_2_28 x86_64.
NEWEST_WHEEL_PYTHON = (3, 14)
WHEEL_MACHINE = 'x86_64'
WHEEL_GLIBC = (2, 28)
PATH_LISTS = ('AMENT_PREFIX_PATH', 'CMAKE_PREFIX_PATH', 'LD_LIBRARY_PATH', 'PATH', 'PYTHONPATH')
# Set by a shell in this or another environment, and by the calling make. Written bytecode saves a
# fifth of the time of the message generators, which start for each package.
FOREIGN_VARIABLES = ('COLCON_PREFIX_PATH', 'MAKEFLAGS', 'MAKELEVEL', 'MFLAGS',
                     'PYTHONDONTWRITEBYTECODE', 'PYTHONHOME', 'VIRTUAL_ENV',
                     '_ROS_WHEELS_BOOTSTRAP_COMPLETE')


class SetupError(Exception):
    """The environment cannot be made; the message is one line."""


class Environment:
    """The folders of one environment, and the ROS 2 that it uses."""

    def __init__(self, distribution: str, is_sourced: bool) -> None:
        """
        Name the folders.

        :param distribution: ROS 2 distribution in lower case.
        :param is_sourced: the shell has sourced that ROS 2; otherwise it is installed from PyPI.
        """
        self.distribution = distribution
        self.is_sourced = is_sourced
        self.name = 'ros-' + distribution if is_sourced else distribution
        self.venv = ROOT / ('.venv-' + self.name)
        self.python = self.venv / 'bin' / 'python3'
        self.build = ROOT / 'build' / self.name
        self.install = ROOT / 'install' / self.name
        self.records = ROOT / '.setup' / self.name

    def variables(self) -> dict:
        """
        Return the variables for a program that runs in this environment.

        :returns: those of this process, without entries in this folder or of another
            environment.
        """
        variables = {name: value for name, value in os.environ.items()
                     if name not in FOREIGN_VARIABLES}
        for name in PATH_LISTS:
            entries = variables.pop(name, '').split(os.pathsep)
            ours = str(ROOT) + os.sep
            kept = [entry for entry in entries if entry and not entry.startswith(ours)]
            if name == 'PATH':
                kept.insert(0, str(self.venv / 'bin'))
            elif not self.is_sourced and name != 'LD_LIBRARY_PATH':
                kept = [str(self.venv)] if name.endswith('_PREFIX_PATH') else []
            if kept:
                variables[name] = os.pathsep.join(kept)
        # Otherwise colcon makes `make` wait while the load of the machine exceeds its cores.
        variables['MAKEFLAGS'] = '-j{}'.format(os.cpu_count() or 1)
        variables['VIRTUAL_ENV'] = str(self.venv)
        variables['PIP_DISABLE_PIP_VERSION_CHECK'] = '1'
        variables['PYTHONNOUSERSITE'] = '1'
        return variables


def choose_environment() -> Environment:
    """
    Return the environment that the variables select.

    :returns: the sourced ROS 2, else the wheels of ROS_DISTRO_WHEELS (default jazzy).
    :raises SetupError: if that ROS 2 is not available.
    """
    sourced = os.environ.get('ROS_DISTRO', '')
    if sourced:
        if not os.environ.get('AMENT_PREFIX_PATH'):
            raise SetupError(
                'ROS_DISTRO: found {0} but an empty AMENT_PREFIX_PATH; expected a sourced ROS 2 '
                '(`. /opt/ros/{0}/setup.sh`) or ROS_DISTRO unset'.format(sourced))
        return Environment(sourced, True)
    distribution = os.environ.get('ROS_DISTRO_WHEELS') or 'jazzy'
    known = sorted(path.stem for path in (ROOT / 'requirements').glob('*.txt')
                   if 'ros-rclpy' in path.read_text())
    if distribution not in known:
        raise SetupError('ROS_DISTRO_WHEELS: found {}; expected one of {}'.format(
            distribution, ', '.join(known)))
    return Environment(distribution, False)


def base_python() -> str:
    """Return the base interpreter: a virtual environment must not be based on another one."""
    return os.path.realpath(getattr(sys, '_base_executable', sys.executable))


def check_machine(environment: Environment) -> None:
    """
    Check the requirements of the set-up before anything is downloaded.

    :param environment: to be set up.
    :raises SetupError: if Python, the processor, the C library or the compiler does not fit.
    """
    version = '{}.{}.{}'.format(*sys.version_info)
    if sys.version_info < OLDEST_PYTHON:
        raise SetupError('python3: found {} ({}); expected 3.10 or newer (another one: '
                         '`PYTHON=python3.12 make setup`)'.format(version, sys.executable))
    if not environment.is_sourced:
        _check_wheels_fit(version)
    try:
        __import__('ensurepip')
    except ImportError as error:
        raise SetupError('python3: found no module ensurepip in {}; virtual environments need it '
                         '(Debian, Ubuntu: apt install python3-venv)'.format(
                             sys.executable)) from error
    for variable, usual in (('CC', ['cc', 'gcc', 'clang']), ('CXX', ['c++', 'g++', 'clang++'])):
        names = shlex.split(os.environ.get(variable, ''))[:1] or usual
        if not any(map(shutil.which, names)):
            raise SetupError(
                'compiler: found none of {}; expected a C and a C++ compiler '
                '(Debian, Ubuntu: apt install build-essential)'.format(', '.join(names)))
    headers = Path(sysconfig.get_path('include'))
    if not (headers / 'Python.h').is_file():
        raise SetupError(
            'Python.h: found none in {}; expected the headers of Python {} '
            '(Debian, Ubuntu: apt install python3-dev)'.format(headers, version))


def _check_wheels_fit(version: str) -> None:
    remedy = '(on other machines install a ROS 2 and source it first)'
    machine = platform.machine()
    if sys.platform != 'linux' or machine != WHEEL_MACHINE:
        raise SetupError(
            'machine: found {} {}; expected linux {}, which the ROS 2 wheels on PyPI are built '
            'for {}'.format(sys.platform, machine, WHEEL_MACHINE, remedy))
    implementation = sys.implementation.name
    if implementation != 'cpython' or sys.version_info[:2] > NEWEST_WHEEL_PYTHON:
        raise SetupError(
            'python3: found {} {}; expected CPython 3.10 to 3.14, which the ROS 2 wheels on PyPI '
            'are built for'.format(implementation, version))
    library, library_version = platform.libc_ver()
    known = tuple(int(part) for part in library_version.split('.')[:2] if part.isdigit())
    if library != 'glibc' or known < WHEEL_GLIBC:
        raise SetupError(
            'C library: found {} {}; expected glibc 2.28 or newer, which the ROS 2 wheels on PyPI '
            'are built for {}'.format(library or 'none known', library_version, remedy))
