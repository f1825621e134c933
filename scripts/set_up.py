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
from concurrent.futures import ThreadPoolExecutor
import configparser
import fcntl
import hashlib
from pathlib import Path
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import time

from environment import (
    base_python,
    check_machine,
    choose_environment,
    Environment,
    ROOT,
    SetupError,
)
import stack_interfaces

# Parts of pip's messages for errors of the network.
NETWORK_SIGNS = (
    'Failed to establish a new connection', 'Temporary failure in name resolution',
    'Network is unreachable', 'NewConnectionError', 'ConnectTimeoutError',
    'Name or service not known', 'ProxyError', 'ReadTimeoutError')

# Imports of the commands. Where Python may not write bytecode it would compile these at each
# start, in 0.4 s; pip would compile ten times as much. Tests, half of NumPy, are left out.
PRECOMPILED = ('apsw', 'backports', 'lz4', 'msgspec', 'numpy', 'rosbags', 'ruamel', 'tqdm',
               'typing_extensions.py')


LEAN = ROOT / 'cmake' / 'lean_interfaces.cmake'


def digest(parts: list) -> str:
    """
    Return a key of the inputs of a step.

    :param parts: strings, and paths of files, of which the contents are used.
    :returns: hexadecimal digest.
    """
    collected = hashlib.sha256()
    for part in parts:
        collected.update(str(part).encode() + b'\0')
        if isinstance(part, Path):
            collected.update(part.read_bytes() + b'\0')
    return collected.hexdigest()


def run(environment: Environment, step: str, command: list) -> str:
    """
    Run a program with its output in a log.

    :param environment: in which it runs.
    :param step: name of the step in errors, and of the log.
    :param command: program and arguments.
    :returns: the output of the program.
    :raises SetupError: if it fails, with the first line of an error.
    """
    words = [str(word) for word in command]
    log = environment.records / (step + '.log')
    with log.open('a+', encoding='utf-8', errors='replace') as stream:
        stream.write('$ {}\n'.format(' '.join(words)))
        stream.flush()
        start = stream.tell()
        process = subprocess.Popen(
            words, cwd=str(ROOT), env=environment.variables(), stdin=subprocess.DEVNULL,
            stdout=stream, stderr=subprocess.STDOUT)
        try:
            show_progress(process, log, start)
        except BaseException:
            process.kill()
            process.wait()
            raise
        stream.seek(start)
        output = stream.read()
    if process.returncode == 0:
        return output
    place = log.relative_to(ROOT)
    if any(sign in output for sign in NETWORK_SIGNS):
        raise SetupError('network: found no connection to the package index; expected PyPI within '
                         'reach (log: {})'.format(place))
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r'\berror\b', line, re.IGNORECASE)]
    raise SetupError('{}: found "{}"; expected it to succeed (log: {})'.format(
        step, (errors or lines or ['no output'])[0], place))


def show_progress(process: subprocess.Popen, log: Path, start: int) -> None:
    """
    Wait for a program; on a terminal, show its seconds and the percentage that it prints last.

    Of programs side by side that of the main thread is shown.

    :param process: that writes to the log.
    :param log: its output.
    :param start: offset of its output in the log.
    """
    began = time.monotonic()
    is_terminal = (sys.stdout.isatty()
                   and threading.current_thread() is threading.main_thread())
    while True:
        try:
            process.wait(timeout=0.5 if is_terminal else None)
            break
        except subprocess.TimeoutExpired:
            with log.open('rb') as stream:
                stream.seek(start)
                shares = re.findall(rb'\[ *(\d+%)\]', stream.read())
            print('\r  {:.0f} s {}\033[K'.format(
                time.monotonic() - began, shares[-1].decode() if shares else ''),
                end='', flush=True)
    if is_terminal:
        print('\r\033[K', end='', flush=True)


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
    print('setup: installing {} into {}'.format(
        'libraries beside the sourced ROS 2' if environment.is_sourced
        else 'ROS 2 ' + environment.distribution, environment.venv.name), flush=True)
    if done[0] != foundation:
        shutil.rmtree(str(environment.venv), ignore_errors=True)
        options = ['--system-site-packages'] if environment.is_sourced else []
        run(environment, 'venv', [base_python(), '-m', 'venv', environment.venv] + options)
    elif stamp.is_file():
        stamp.unlink()
    if environment.is_sourced:
        requirements = sourced_requirements(environment, files)
    else:
        requirements = [word for path in files for word in ('-r', path)] + ['-c', constraints]
    install(environment, requirements)
    compile_modules(environment)
    if not environment.is_sourced:
        rewrite_header_paths(environment)
    stamp.write_text(foundation + ' ' + key)
    return build_key


def install(environment: Environment, requirements: list) -> None:
    """
    Install packages with uv where it can, otherwise with pip.

    uv takes 10 s of CPU where pip takes 68. It does not read pip's configuration: a configured
    index is left to pip.

    :param environment: its virtual environment is made.
    :param requirements: as for pip.
    """
    pip = [environment.python, '-m', 'pip']
    install_with_pip = pip + ['install', '--no-compile', '--no-input', '--retries', '2']
    has_own_index = re.search(r'[.:]index-url', run(environment, 'pip', pip + ['config', 'list']))
    if not environment.is_sourced and not has_own_index:
        run(environment, 'pip', install_with_pip + ['-r', ROOT / 'requirements' / 'installer.txt'])
        try:
            run(environment, 'uv', [environment.venv / 'bin' / 'uv', 'pip', 'install',
                                    '--python', environment.python, '--no-progress',
                                    '--system-certs']
                + requirements)
            return
        except SetupError:
            print('setup: installing with pip, since uv failed (log: {})'.format(
                (environment.records / 'uv.log').relative_to(ROOT)), flush=True)
    run(environment, 'pip', install_with_pip + requirements)


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


def rewrite_header_paths(environment: Environment) -> None:
    """
    Replace header folders of other environments by those of this one.

    CMake refuses folders that do not exist. The wheels name those of the machine that built them.
    Each file is replaced, never written in place: uv links the files of an environment to its
    cache, of which all environments of the user are made. A cache that has been written to names
    the folders of another environment.

    :param environment: filled with wheels.
    """
    command = [environment.python, '-c', 'import numpy; print(numpy.get_include())']
    numpy_headers = run(environment, 'numpy', command).strip()
    python_headers = sysconfig.get_path('include')
    for path in (environment.venv / 'share').glob('*/cmake/*__rosidl_generator_pyExport.cmake'):
        found = path.read_text()
        text = re.sub('/[^;"]*/numpy/_?core/include', numpy_headers, found)
        text = re.sub('/[^;"]*/include/python[0-9.]+', python_headers, text)
        if text != found:
            replacement = path.with_name(path.name + '.new')
            replacement.write_text(text)
            replacement.replace(path)


def install_datasets(environment: Environment) -> None:
    """
    Install the libraries of datasets and of the tests that read them.

    :param environment: filled.
    """
    folder = ROOT / 'requirements'
    files = [folder / name for name in ('datasets.txt', 'run.txt', 'constraints.txt')]
    key = digest(files)
    stamp = environment.venv / 'datasets.stamp'
    if stamp.is_file() and stamp.read_text() == key:
        return
    print('setup: installing libraries of datasets into {}'.format(environment.venv.name),
          flush=True)
    # A sourced ROS 2 has versions of its own, which stay.
    pins = [] if environment.is_sourced else ['-c', files[1], '-c', files[2]]
    install(environment, ['-r', files[0]] + pins)
    stamp.write_text(key)


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
    cmake = environment.venv / 'bin' / 'cmake'
    options = [
        '-DBUILD_TESTING=OFF', '-DCMAKE_INSTALL_PREFIX=' + str(environment.venv),
        '-DPYTHON_INSTALL_DIR=lib/python{}.{}/site-packages'.format(*sys.version_info),
        '-DPython3_EXECUTABLE=' + str(environment.python), '-DLEAN_INTERFACES=ON']
    for package in sorted(path for path in folder.iterdir() if path.is_dir()):
        print('setup: building {} into {}'.format(package.name, environment.venv.name), flush=True)
        build = environment.build / package.name
        shutil.rmtree(str(build), ignore_errors=True)
        run(environment, package.name, [cmake, '-S', package, '-B', build] + options)
        run(environment, package.name, [cmake, '--build', build, '--target', 'install'])
    stamp.write_text(key)


def build_stacks(environment: Environment, packages_key: str) -> None:
    """
    Build the message packages of autonomy stacks, which tests need, into the environment.

    :param environment: filled; of a sourced ROS 2 those packages are used that it has.
    :param packages_key: of the packages that they are built with.
    """
    requirements = ROOT / 'requirements' / 'stacks' / (environment.distribution + '.txt')
    if environment.is_sourced:
        return
    files = [path for paths in stack_interfaces.packages().values() for path in paths]
    key = digest([packages_key, requirements, LEAN, Path(stack_interfaces.__file__)] + files)
    stamp = environment.venv / 'stacks.stamp'
    if stamp.is_file() and stamp.read_text() == key:
        return
    print('setup: building messages of autonomy stacks into {}; about a minute'.format(
        environment.venv.name), flush=True)
    run(environment, 'stacks', [environment.python, '-m', 'pip', 'install', '--no-compile',
                                '--no-input', '--no-deps', '--retries', '2', '-r', requirements])
    rewrite_header_paths(environment)
    stack_interfaces.build(environment, run)
    stamp.write_text(key)


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
    print('setup: building state_sensor_ros', flush=True)
    if done[0] != packages_key:
        shutil.rmtree(str(environment.build / 'state_sensor_ros'), ignore_errors=True)
        shutil.rmtree(str(environment.install), ignore_errors=True)
    for path in environment.install.rglob('*'):
        if path.is_symlink() and not path.exists():
            path.unlink()
    run(environment, 'state_sensor_ros', [
        'colcon', '--log-base', environment.records / 'log', 'build', '--base-paths', ROOT,
        '--packages-select', 'state_sensor_ros', '--build-base', environment.build,
        '--install-base', environment.install, '--symlink-install',
        '--event-handlers', 'console_direct+', '--cmake-args', '-DBUILD_TESTING=OFF',
        '-DPython3_EXECUTABLE=' + str(environment.python),
        '-DLEAN_INTERFACES=' + ('OFF' if environment.is_sourced else 'ON')])
    stamp.write_text(packages_key + ' ' + key)


def main() -> int:
    """
    Set up the environment that the variables select.

    :returns: exit code.
    """
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--datasets', action='store_true',
                        help='with the optional libraries of datasets, for the tests')
    parser.add_argument('--stacks', action='store_true',
                        help='with the messages of autonomy stacks, which tests need')
    options = parser.parse_args()
    try:
        environment = choose_environment()
        check_machine(environment)
        environment.records.mkdir(parents=True, exist_ok=True)
        with (environment.records / 'lock').open('w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            packages_key = install_packages(environment)
            # Neither needs the other; each has steps that one core does alone.
            with ThreadPoolExecutor(max_workers=1) as beside:
                interfaces = beside.submit(build_interfaces, environment, packages_key)
                build_package(environment, packages_key)
            interfaces.result()
            if options.datasets:
                install_datasets(environment)
            if options.stacks:
                build_stacks(environment, packages_key)
    except SetupError as error:
        print('error: {}'.format(error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == '__main__':
    sys.exit(main())
