# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Run the programs of a step of the set-up, with their output in a log and progress on a terminal.

In the syntax of Python 3.6, as environment.py.
"""
import hashlib
from pathlib import Path
import re
import subprocess
import sys
import threading
import time

from environment import Environment, ROOT, SetupError

# Parts of pip's messages for errors of the network.
NETWORK_SIGNS = (
    'Failed to establish a new connection', 'Temporary failure in name resolution',
    'Network is unreachable', 'NewConnectionError', 'ConnectTimeoutError',
    'Name or service not known', 'ProxyError', 'ReadTimeoutError')


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
