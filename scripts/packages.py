# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Install Python packages into the environment: ROS 2 as wheels, libraries and tools.

In the syntax of Python 3.6, as environment.py.
"""
import configparser
from pathlib import Path
import re
import shutil
import sys

from environment import base_python, Environment, ROOT, SetupError
from steps import announced, digest, DiskError, run
from wheel_headers import rewrite_header_paths

# Imports of the commands. Where Python may not write bytecode it would compile these at each
# start, in 0.4 s; pip would compile ten times as much. Tests, half of NumPy, are skipped.
PRECOMPILED = ('apsw', 'backports', 'lz4', 'msgspec', 'numpy', 'rosbags', 'ruamel', 'tqdm',
               'typing_extensions.py')
# Extras whose requirements name all that is imported. Those of trackeval itself have a newer NumPy
# than that of run.txt on Python 3.11 to 3.13, though it works with both, and 0.3 GB of libraries
# for images, which its metrics do not import.
COMPLETE = ('evaluate',)
# Extras that need a newer NumPy than that for which a sourced ROS 2 was compiled.
APART = ('view',)


def install_packages(environment: Environment) -> str:
    """
    Make the virtual environment and fill it.

    :param environment: to fill.
    :returns: key of the inputs of compiled packages; they need no build after a change of tools.
    """
    folder = ROOT / 'requirements'
    constraints = folder / 'constraints.txt'
    files = [folder / 'run.txt']
    if not environment.is_sourced:
        files += [folder / 'build.txt', folder / (environment.distribution + '.txt')]
    prefixes = environment.variables()['AMENT_PREFIX_PATH']
    foundation = digest([sys.version, base_python(), str(ROOT), prefixes])
    build_key = digest([foundation] + files)
    files.append(folder / 'tools.txt')
    key = digest([foundation, constraints] + files)
    stamp = environment.venv / 'packages.stamp'
    done = stamp.read_text().split() if stamp.is_file() else ['', '']
    if done == [foundation, key]:
        return build_key
    with announced('installing {} into {}{}'.format(
            'libraries beside the sourced ROS 2' if environment.is_sourced
            else 'ROS 2 ' + environment.distribution, environment.venv.name,
            '' if environment.is_sourced else '; 190 MB to download, 0.7 GB on disk')):
        fill(environment, files, stamp, is_new=done[0] != foundation)
    stamp.write_text(foundation + ' ' + key)
    return build_key


def fill(environment: Environment, files: list, stamp: Path, is_new: bool) -> None:
    """
    Install libraries and tools.

    :param environment: to fill.
    :param files: requirement files.
    :param stamp: removed while the environment is not complete.
    :param is_new: whether the virtual environment is made.
    """
    if is_new:
        shutil.rmtree(str(environment.venv), ignore_errors=True)
        options = ['--system-site-packages'] if environment.is_sourced else []
        run(environment, 'venv', [base_python(), '-m', 'venv', environment.venv] + options)
    elif stamp.is_file():
        stamp.unlink()
    if environment.is_sourced:
        requirements = sourced_requirements(environment, files)
    else:
        requirements = [word for path in files for word in ('-r', path)]
        requirements += ['-c', ROOT / 'requirements' / 'constraints.txt']
    install(environment, requirements)
    compile_modules(environment)
    if not environment.is_sourced:
        rewrite_header_paths(environment)


def install_extra(environment: Environment, name: str) -> None:
    """
    Install optional libraries; the first line of their requirements says what they are.

    :param environment: filled.
    :param name: of the file in requirements/.
    """
    folder = ROOT / 'requirements'
    files = [folder / file for file in (name + '.txt', 'run.txt', 'constraints.txt')]
    key = digest(files)
    stamp = environment.venv / (name + '.stamp')
    if stamp.is_file() and stamp.read_text() == key:
        return
    if environment.is_sourced and name in APART:
        print('setup: {} needs an environment without ROS 2, skipped'.format(name), flush=True)
        return
    first = files[0].read_text().partition('\n')[0]
    # Not the point of a number such as 0.9.
    what = re.sub('^The ', 'the ', first.partition('. ')[0].strip('# .'))
    # A sourced ROS 2 has versions of its own, which stay.
    pins = [] if environment.is_sourced else ['-c', files[1], '-c', files[2]]
    if name in COMPLETE:
        pins = ['--no-deps']
    with announced('installing {} into {}'.format(what, environment.venv.name)):
        install(environment, ['-r', files[0]] + pins)
    stamp.write_text(key)


def install(environment: Environment, arguments: list) -> None:
    """
    Install packages with uv if it can, otherwise with pip.

    uv takes 10 s of CPU, pip 68. It does not read pip's configuration: a configured
    index is left to pip.

    :param environment: its virtual environment is made.
    :param arguments: requirements, and options that both have.
    """
    pip = [environment.python, '-m', 'pip']
    install_with_pip = pip + ['install', '--no-compile', '--no-input', '--retries', '2']
    has_own_index = re.search(r'[.:]index-url', run(environment, 'pip', pip + ['config', 'list']))
    if not environment.is_sourced and not has_own_index:
        installer = ROOT / 'requirements' / 'installer.txt'
        stamp = environment.venv / 'installer.stamp'
        if not stamp.is_file() or stamp.read_text() != digest([installer]):
            run(environment, 'pip', install_with_pip + ['-r', installer])
            stamp.write_text(digest([installer]))
        try:
            run(environment, 'uv', [environment.venv / 'bin' / 'uv', 'pip', 'install',
                                    '--python', environment.python, '--system-certs'] + arguments)
            return
        except DiskError:
            raise
        except SetupError:
            print('setup: installing with pip, since uv failed (log: {})'.format(
                (environment.records / 'uv.log').relative_to(ROOT)), flush=True)
    run(environment, 'pip', install_with_pip + arguments)


def compile_modules(environment: Environment) -> None:
    """
    Compile the modules that are imported at each start.

    :param environment: filled; modules of a sourced ROS 2 are not compiled.
    """
    site = environment.venv / 'lib' / 'python{}.{}'.format(*sys.version_info) / 'site-packages'
    present = [site / name for name in PRECOMPILED if (site / name).exists()]
    if present:
        run(environment, 'compile', [environment.python, '-m', 'compileall', '-q', '-j', '0',
                                     '-x', re.escape(str(site)) + '/.*/tests?/'] + present)


def sourced_requirements(environment: Environment, files: list) -> list:
    """
    Pin only packages that the ROS 2 installation does not have.

    Its Python packages fit each other, and its compiled ones fit only its NumPy.

    :param environment: its virtual environment is made.
    :param files: requirement files.
    :returns: requirements for pip.
    :raises SetupError: if this Python is not the one that the sourced ROS 2 is built for.
    """
    listing = ('import importlib.metadata as m, rclpy\n'
               'for d in m.distributions(): print(d.metadata["Name"], d.version)')
    try:
        output = run(environment, 'sourced', [environment.python, '-c', listing])
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
        requirements += ['-r', str(ROOT / 'requirements' / 'build.txt')]
    return requirements
