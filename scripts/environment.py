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
from contextlib import contextmanager
import importlib.util
import os
from pathlib import Path
import platform
import shlex
import shutil
import sys
import sysconfig
from threading import Event, Thread
import time
from typing import Iterator

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


@contextmanager
def going_on(text: str, period_s: float = 10.0) -> Iterator[None]:
    """Print a line for every period that the block takes, with the text of what it does."""
    def show() -> None:
        while not done.wait(period_s):
            print('{}: {:.0f} s so far'.format(text, time.monotonic() - began), flush=True)

    began, done = time.monotonic(), Event()
    Thread(target=show, daemon=True).start()
    try:
        yield
    finally:
        done.set()


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
    library, number = platform.libc_ver()
    glibc = tuple(int(part) for part in number.split('.')[:2] if part.isdigit())
    of_wheels = ', which the ROS 2 wheels on PyPI are built for '
    remedy = of_wheels + '(on other machines install a ROS 2 and source it first)'
    headers = Path(sysconfig.get_path('include'))
    compilers = [shlex.split(os.environ.get(variable, ''))[:1] or usual for variable, usual in (
        ('CC', ['cc', 'gcc', 'clang']), ('CXX', ['c++', 'g++', 'clang++']))]
    missing = [names for names in compilers if not any(map(shutil.which, names))]
    is_sourced, is_linux = environment.is_sourced, sys.platform == 'linux'
    # What, whether it fits, what was found, and what is expected.
    for what, fits, found, expected in (
            ('python3', sys.version_info >= OLDEST_PYTHON, version + ' (' + sys.executable + ')',
             '3.10 or newer (another one: `PYTHON=python3.12 make setup`)'),
            ('machine', is_sourced or (is_linux and platform.machine() == WHEEL_MACHINE),
             sys.platform + ' ' + platform.machine(), 'linux ' + WHEEL_MACHINE + remedy),
            ('python3', is_sourced or (
                sys.implementation.name == 'cpython'
                and sys.version_info[:2] <= NEWEST_WHEEL_PYTHON),
             sys.implementation.name + ' ' + version, 'CPython 3.10 to 3.14' + of_wheels.rstrip()),
            ('C library', is_sourced or (library == 'glibc' and glibc >= WHEEL_GLIBC),
             (library or 'none known') + ' ' + number, 'glibc 2.28 or newer' + remedy),
            ('python3', importlib.util.find_spec('ensurepip'),
             'no module ensurepip in ' + sys.executable,
             'it for virtual environments (Debian, Ubuntu: apt install python3-venv)'),
            ('compiler', not missing, 'none of ' + ', '.join(missing[0] if missing else ()),
             'a C and a C++ compiler (Debian, Ubuntu: apt install build-essential)'),
            ('Python.h', (headers / 'Python.h').is_file(), 'none in {}'.format(headers),
             'the headers of Python {} (Debian, Ubuntu: apt install python3-dev)'.format(
                 version))):
        if not fits:
            raise SetupError('{}: found {}; expected {}'.format(what, found, expected))
