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
import errno
import fcntl
import signal
import sys

from environment import check_machine, choose_environment, ROOT, SetupError
from message_packages import build_interfaces, build_stacks
from own_package import build_package
from packages import install_extra, install_packages
from steps import end_running


def main() -> int:
    """
    Set up the environment that the variables select.

    :returns: exit code.
    """
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--extra', action='append', default=[], metavar='NAME',
                        choices=sorted(path.stem
                                       for path in (ROOT / 'requirements').glob('*.txt')),
                        help='also install the libraries of requirements/NAME.txt; repeatable')
    parser.add_argument('--stacks', action='store_true',
                        help='also build the messages of autonomy stacks, which tests need')
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupt)
    try:
        environment = choose_environment()
        check_machine(environment)
        environment.records.mkdir(parents=True, exist_ok=True)
        with (environment.records / 'lock').open('w') as lock:
            wait_for_lock(lock)
            packages_key = install_packages(environment)
            # Neither needs the other; each has steps that one core does alone.
            with ThreadPoolExecutor(max_workers=1) as beside:
                interfaces = beside.submit(build_interfaces, environment, packages_key)
                try:
                    build_package(environment, packages_key)
                except BaseException:
                    end_running()
                    raise
            interfaces.result()
            for name in options.extra:
                install_extra(environment, name)
            if options.stacks:
                build_stacks(environment, packages_key)
    except SetupError as error:
        print('error: {}'.format(error), file=sys.stderr)
        return 1
    except OSError as error:
        print('error: {}{}'.format(error, '; the set-up takes about 1 GB' if error.errno in (
            errno.ENOSPC, errno.EDQUOT) else ''), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print('interrupted; the same command continues the set-up', file=sys.stderr)
        return 130
    return 0


def wait_for_lock(lock: object) -> None:
    """
    Wait until no other set-up of this environment runs.

    :param lock: open file.
    """
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print('setup: waiting for another set-up of this folder', flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)


def interrupt(signum: int, frame: object) -> None:
    """Raise KeyboardInterrupt: SIGTERM ends the programs that run, as Ctrl-C does."""
    raise KeyboardInterrupt


if __name__ == '__main__':
    sys.exit(main())
