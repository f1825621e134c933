#!/usr/bin/env python3
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Make or update the environment of all other programs.

A sourced ROS 2 is used; otherwise ROS 2 is installed from PyPI
(requirements/<distribution>.txt). A step runs only if its inputs have changed. In the syntax of
Python 3.6, as environment.py.
"""
import argparse
import configparser
from contextlib import suppress
import fcntl
import hashlib
import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from typing import Callable

from environment import (
    base_python,
    check_machine,
    choose_environment,
    Environment,
    going_on,
    LEAN,
    ROOT,
    SetupError,
)
from message_packages import definitions_in, INTERFACES, STACKS, write_project

REQUIREMENTS = ROOT / 'requirements'
# Extras whose requirements name all that is imported: trackeval asks for a newer NumPy than that
# of run.txt, and for 0.3 GB of libraries for images, which its metrics do not import.
COMPLETE = ('evaluate',)
# Extras that need a newer NumPy than that for which a sourced ROS 2 was compiled.
APART = ('view',)


def main() -> int:
    """
    Set up the environment that the variables select.

    :returns: exit code.
    """
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--extra', action='append', default=[], metavar='NAME',
                        choices=sorted(path.stem for path in REQUIREMENTS.glob('*.txt')),
                        help='also install the libraries of requirements/NAME.txt; repeatable')
    parser.add_argument('--stacks', action='store_true',
                        help='also build the messages of autonomy stacks, which tests need')
    options = parser.parse_args()
    # As Ctrl-C does, it ends the program that runs.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        environment = choose_environment()
        check_machine(environment)
        environment.records.mkdir(parents=True, exist_ok=True)
        with (environment.records / 'lock').open('w') as lock:
            # Another set-up of this folder ends first.
            fcntl.flock(lock, fcntl.LOCK_EX)
            SetUp(environment).everything(options.extra, options.stacks)
    except (OSError, SetupError) as error:
        print('error: {}'.format(error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print('interrupted; the same command continues the set-up', file=sys.stderr)
        return 130
    return 0


def digest(parts: list) -> str:
    """
    Return a key of the inputs of a step.

    :param parts: strings, and paths of files, of which the contents are used.
    """
    collected = hashlib.sha256()
    for part in parts:
        collected.update(str(part).encode() + b'\0')
        if isinstance(part, Path):
            collected.update(part.read_bytes() + b'\0')
    return collected.hexdigest()


def has(stamp: Path, key: str) -> bool:
    """Return whether a step has succeeded with the inputs of a key."""
    return stamp.is_file() and stamp.read_text() == key


class SetUp:
    """
    The steps of the set-up of one environment.

    :param environment: to be made or updated.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.venv, self.python = environment.venv, environment.python

    def everything(self, extras: list, with_stacks: bool) -> None:
        """
        Run the steps whose inputs have changed.

        :param extras: names of files in requirements/.
        :param with_stacks: whether to build the messages of autonomy stacks.
        """
        build_key = self.install_packages()
        if not self.environment.is_sourced:
            self.build_interfaces('interfaces', INTERFACES, build_key)
        self.build_package(build_key)
        for name in extras:
            self.install_extra(name)
        if with_stacks and not self.environment.is_sourced:
            stacks = REQUIREMENTS / 'stacks' / (self.environment.distribution + '.txt')
            self.build_interfaces('stacks', STACKS, build_key, stacks)

    def run(self, step: str, words: list) -> str:
        """
        Run a program with its output in a log.

        :param step: name of the step in errors, and of the log.
        :param words: program and arguments.
        :returns: the output.
        :raises SetupError: if it fails.
        """
        log = self.environment.records / (step + '.log')
        with log.open('w+', encoding='utf-8', errors='replace') as stream:
            # A group of its own: an interruption ends compilers as well.
            process = subprocess.Popen(
                [str(word) for word in words], cwd=str(ROOT), env=self.environment.variables(),
                stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT,
                start_new_session=True)
            try:
                code = process.wait()
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
            stream.seek(0)
            output = stream.read()
        if code:
            lines = [line.strip() for line in output.splitlines() if line.strip()]
            errors = [line for line in lines if re.search(r'\berror\b', line, re.IGNORECASE)]
            raise SetupError('{} failed: {} (log: {})'.format(
                step, (errors or lines or ['exit code {}'.format(code)])[0], log))
        return output

    def step(self, stamp: Path, key: str, text: str, call: Callable) -> None:
        """
        Make a call if the inputs of a step have changed since they succeeded.

        :param stamp: file that has the key of the last success.
        :param key: of the inputs.
        :param text: what the step does.
        :param call: does it, without arguments.
        """
        if has(stamp, key):
            return
        began = time.monotonic()
        print('setup: ' + text, flush=True)
        title = 'setup: ' + text.split(';')[0]
        with suppress(FileNotFoundError):
            stamp.unlink()
        with going_on(title):
            call()
        stamp.write_text(key)
        print('{}: done in {:.0f} s'.format(title, time.monotonic() - began), flush=True)

    def install_packages(self) -> str:
        """
        Make the virtual environment and fill it: ROS 2 as wheels, libraries and tools.

        :returns: key of the inputs of compiled packages; a change of tools needs no build.
        """
        environment = self.environment
        files = [REQUIREMENTS / 'run.txt']
        if not environment.is_sourced:
            files += [REQUIREMENTS / 'build.txt',
                      REQUIREMENTS / (environment.distribution + '.txt')]
        foundation = digest([sys.version, base_python(), str(ROOT),
                             environment.variables()['AMENT_PREFIX_PATH']])
        build_key = digest([foundation] + files)
        files.append(REQUIREMENTS / 'tools.txt')

        def fill() -> None:
            made_for = self.venv / 'foundation.stamp'
            if not has(made_for, foundation):
                shutil.rmtree(str(self.venv), ignore_errors=True)
                self.run('venv', [base_python(), '-m', 'venv', self.venv] + (
                    ['--system-site-packages'] if environment.is_sourced else []))
                made_for.write_text(foundation)
            self.install(self.sourced_requirements(files) if environment.is_sourced else [
                word for path in files for word in ('-r', path)] + [
                '-c', REQUIREMENTS / 'constraints.txt'])
        self.step(self.venv / 'packages.stamp',
                  digest([foundation, REQUIREMENTS / 'constraints.txt'] + files),
                  ('installing libraries beside the sourced ROS 2 into {}'
                   if environment.is_sourced else 'installing ROS 2 ' + environment.distribution
                   + ' into {}; 190 MB to download, 0.7 GB on disk').format(self.venv.name), fill)
        return build_key

    def install_extra(self, name: str) -> None:
        """
        Install optional libraries.

        :param name: of the file in requirements/.
        """
        if self.environment.is_sourced and name in APART:
            print('setup: {} needs an environment without ROS 2, skipped'.format(name), flush=True)
            return
        files = [REQUIREMENTS / (each + '.txt') for each in (name, 'run', 'constraints')]
        # A sourced ROS 2 has versions of its own, which stay.
        pins = [] if self.environment.is_sourced else ['-c', files[1], '-c', files[2]]
        self.step(self.venv / (name + '.stamp'), digest(files),
                  'installing the libraries of {} into {}'.format(name, self.venv.name),
                  lambda: self.install(['-r', files[0]] + (
                      ['--no-deps'] if name in COMPLETE else pins)))

    def install(self, arguments: list) -> None:
        """
        Install packages with uv, or with pip into a sourced ROS 2 or from an index of its own.

        uv takes 10 s of CPU, pip 68. It does not read pip's configuration.

        :param arguments: requirements, and options that both have.
        """
        pip = [self.python, '-m', 'pip', 'install', '--no-compile', '--no-input']
        settings = self.run('pip', pip[:3] + ['config', 'list'])
        if self.environment.is_sourced or re.search(r'[.:]index-url', settings):
            self.run('install', pip + arguments)
            return
        uv = self.venv / 'bin' / 'uv'
        if not uv.is_file():
            self.run('pip', pip + ['-r', REQUIREMENTS / 'installer.txt'])
        self.run('install', [uv, 'pip', 'install', '--python', self.python, '--system-certs']
                 + arguments)

    def sourced_requirements(self, files: list) -> list:
        """
        Pin only packages that the ROS 2 installation does not have.

        Its Python packages fit each other, and its compiled ones fit only its NumPy.

        :param files: requirement files.
        :returns: requirements for pip.
        :raises SetupError: if this Python is not the one that the sourced ROS 2 is built for.
        """
        listing = ('import importlib.metadata as m, rclpy\n'
                   'for d in m.distributions(): print(d.metadata["Name"], d.version)')
        try:
            output = self.run('sourced', [self.python, '-c', listing])
        except SetupError as error:
            raise SetupError(
                'python3: found no usable rclpy in {}; expected the Python of the sourced ROS 2 '
                '(`PYTHON=/usr/bin/python3 make setup`)'.format(base_python())) from error
        # Python imports the first of two packages of one name.
        lines = [line for line in reversed(output.splitlines()) if ' ' in line]
        present = dict(line.lower().replace('_', '-').split(' ', 1) for line in lines)
        metadata = configparser.ConfigParser()
        metadata.read(str(ROOT / 'setup.cfg'), encoding='utf-8')
        ranges = {re.split('[<>=]', line)[0]: line
                  for lines in [metadata['options']['install_requires'],
                                *metadata['options.extras_require'].values()]
                  for line in lines.split()}
        requirements = ['numpy==' + present['numpy']] if 'numpy' in present else []
        for path in files:
            for line in path.read_text().splitlines():
                name = line.split('==')[0].lower()
                if not line.startswith('#') and not (name == 'numpy' and requirements):
                    requirements.append(ranges.get(name, name) if name in present else line)
        if not shutil.which('colcon'):
            requirements += ['-r', REQUIREMENTS / 'build.txt']
        return requirements

    def build_interfaces(self, name: str, folders: tuple, build_key: str,
                         requirements: 'Path | None' = None) -> None:
        """
        Build message packages that PyPI does not have into the virtual environment.

        :param name: of the stamp.
        :param folders: with their definition files.
        :param build_key: of the packages that they are built with.
        :param requirements: file with packages that they need beside those of ROS 2, or None.
        """
        packages = definitions_in(folders)
        files = [path for paths in packages.values() for path in paths]
        source = self.environment.build / name

        def build() -> None:
            if requirements is not None:
                # What they depend on is pinned and installed.
                self.install(['--no-deps', '-r', requirements])
            self.rewrite_header_paths()
            shutil.rmtree(str(source), ignore_errors=True)
            for package, definitions in packages.items():
                write_project(package, definitions, source / package)
            self.colcon(source, list(packages), self.venv, ['--merge-install'], (
                '-DPYTHON_INSTALL_DIR=lib/python{}.{}/site-packages'.format(*sys.version_info),))
        self.step(self.venv / (name + '.stamp'),
                  digest([build_key, LEAN] + files + [requirements] * (requirements is not None)),
                  ('building messages of autonomy stacks into {1}; two to five minutes'
                   if len(packages) > 2 else 'building {0} into {1}').format(
                      ', '.join(packages), self.venv.name), build)

    def build_package(self, build_key: str) -> None:
        """
        Build this package with links to its modules, so that an edited module needs no build.

        :param build_key: of the packages that it is built with.
        """
        install = self.environment.install
        compiled = [LEAN, *sorted((ROOT / 'msg').glob('*.msg')), *(
            ROOT / name for name in ('CMakeLists.txt', 'package.xml', 'setup.cfg'))]
        linked = [str(path.relative_to(ROOT))
                  for folder in ('state_sensor_ros', 'launch', 'config', 'resource')
                  for path in sorted((ROOT / folder).rglob('*'))
                  if path.is_file() and '__pycache__' not in path.parts]

        def build() -> None:
            built_with = install / 'foundation.stamp'
            if not has(built_with, build_key):
                for folder in (self.environment.build / 'state_sensor_ros', install):
                    shutil.rmtree(str(folder), ignore_errors=True)
            for path in install.rglob('*'):
                if path.is_symlink() and not path.exists():
                    path.unlink()
            if not self.environment.is_sourced:
                self.rewrite_header_paths()
            self.colcon(ROOT, ['state_sensor_ros'], install, ['--symlink-install'])
            built_with.write_text(build_key)
        self.step(install / 'package.stamp', digest([build_key] + compiled + linked),
                  'building state_sensor_ros', build)

    def colcon(self, source: Path, names: list, install: Path, options: list,
               definitions: tuple = ()) -> None:
        """
        Build packages.

        :param source: folder that contains them.
        :param names: of the packages.
        :param install: folder that they are installed into.
        :param options: further options of colcon.
        :param definitions: further options of CMake.
        """
        environment = self.environment
        self.run('build', [
            'colcon', '--log-base', environment.records / 'log', 'build', '--base-paths', source,
            '--packages-select'] + names + [
            '--build-base', environment.build, '--install-base', install] + options + [
            '--cmake-args', '-DBUILD_TESTING=OFF', '-DPython3_EXECUTABLE=' + str(self.python),
            '-DLEAN_INTERFACES=' + ('OFF' if environment.is_sourced else 'ON'), *definitions])

    def rewrite_header_paths(self) -> None:
        """
        Replace header folders of other environments by those of this one.

        CMake refuses folders that do not exist. The wheels name those of the machine that built
        them. Each file is replaced, never written in place: uv links the files of an environment
        to its cache, of which all environments of the user are made.
        """
        numpy_headers = self.run(
            'numpy', [self.python, '-c', 'import numpy; print(numpy.get_include())']).strip()
        python_headers = sysconfig.get_path('include')
        for path in (self.venv / 'share').glob('*/cmake/*__rosidl_generator_pyExport.cmake'):
            found = path.read_text()
            text = re.sub('/[^;"]*/numpy/_?core/include', numpy_headers, found)
            text = re.sub('/[^;"]*/include/python[0-9.]+', python_headers, text)
            if text != found:
                path.unlink()
                path.write_text(text)


if __name__ == '__main__':
    sys.exit(main())
