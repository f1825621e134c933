# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Run the programs of a step of the set-up: their output in a log, their progress on the screen.

In the syntax of Python 3.6, as environment.py.
"""
from collections.abc import Iterator
from contextlib import contextmanager, suppress
import hashlib
import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from environment import Environment, ROOT, SetupError

# Parts of messages of pip and uv for errors of the network.
NETWORK_SIGNS = (
    'Failed to establish a new connection', 'Temporary failure in name resolution',
    'Network is unreachable', 'NewConnectionError', 'ConnectTimeoutError',
    'Name or service not known', 'ProxyError', 'ReadTimeoutError')
DISK_SIGNS = ('No space left on device', 'no space left on device', 'Disk quota exceeded')
# Less free space than this after a failure was its reason, bytes.
FULL_DISK = 2 ** 20
# Time between two lines of progress without a terminal, and between updates on one, s.
LINE_S, UPDATE_S = 10.0, 0.5
# Lines of pip and uv about downloads: the name, the size and its unit; a name that is complete.
DOWNLOADING = re.compile(r'^ *Downloading (\S+) \(([\d.]+) ?([kKMG])i?B\)', re.MULTILINE)
DOWNLOADED = re.compile(r'^ *Downloaded (\S+)', re.MULTILINE)
MEGABYTES = {'k': 1e-3, 'K': 1e-3, 'M': 1.0, 'G': 1e3}
# What a program does before it prints anything, by step.
WORK = {'uv': 'reading the package index'}
# The processes that run, which an interruption ends.
RUNNING = set()


class DiskError(SetupError):
    """No space is left; another installer would not find any."""


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


@contextmanager
def announced(text: str) -> 'Iterator[None]':
    """
    Print the begin of a step, and its duration at the end.

    :param text: what the step does.
    """
    began = time.monotonic()
    print('setup: ' + text, flush=True)
    yield
    print('setup: {}: done in {:.0f} s'.format(text.split(';')[0], time.monotonic() - began),
          flush=True)


def end_running() -> None:
    """End the programs that run, with the programs that they have started."""
    for process in list(RUNNING):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


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
        # A group of its own: an interruption ends compilers as well, which `make` started.
        process = subprocess.Popen(
            words, cwd=str(ROOT), env=environment.variables(), stdin=subprocess.DEVNULL,
            stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)
        RUNNING.add(process)
        try:
            show_progress(process, step, log, start)
        except BaseException:
            end_running()
            process.wait()
            raise
        finally:
            RUNNING.discard(process)
        stream.seek(start)
        output = stream.read()
    if process.returncode:
        raise failure(step, output, log.relative_to(ROOT))
    return output


def failure(step: str, output: str, log: Path) -> SetupError:
    """
    Return the error of a program that failed, one line.

    :param step: name of the step.
    :param output: what the program has printed.
    :param log: file with its output.
    """
    free = shutil.disk_usage(str(ROOT)).free
    if free < FULL_DISK or any(sign in output for sign in DISK_SIGNS):
        return DiskError('{}: no space left on device ({:.1f} GB free here); the set-up takes '
                         'about 1 GB (log: {})'.format(step, free / 1e9, log))
    if 'CERTIFICATE_VERIFY_FAILED' in output:
        return SetupError('network: the certificate of the package index is not trusted; '
                          'if it is that of a proxy, set PIP_CERT (log: {})'.format(log))
    if any(sign in output for sign in NETWORK_SIGNS):
        return SetupError('network: cannot connect to the package index; is PyPI '
                          'reachable? (log: {})'.format(log))
    # pip reports an index that answers with errors like one without the package.
    missing = re.search(r'satisfies the requirement (\S+) \(from versions: none\)', output)
    if missing:
        return SetupError('network: the package index has no {} or does not respond; '
                          'is PyPI reachable? (log: {})'.format(missing.group(1), log))
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r'\berror\b', line, re.IGNORECASE)]
    return SetupError('{} failed: {} (log: {})'.format(
        step, (errors or lines or ['no output'])[0], log))


def progress(output: str) -> str:
    """
    Return how far a program is, as text; '' if its output does not say it.

    :param output: what it has printed: downloads of pip or uv, or percentages of CMake.
    """
    sizes = {name: float(number) * MEGABYTES[unit]
             for name, number, unit in DOWNLOADING.findall(output)}
    shares = re.findall(r'\[ *(\d+%)\]', output)
    if not sizes:
        return shares[-1] if shares else ''
    done = set(DOWNLOADED.findall(output))
    if not done and all(name.endswith(('.whl', '.gz', '.zip')) for name in sizes):
        # pip, which names files, downloads one after the other and does not say when one is
        # complete.
        done = set(list(sizes)[:-1])
    left = [name for name in sizes if name not in done]
    text = 'downloaded {:.0f} of {:.0f} MB'.format(
        sum(sizes[name] for name in sizes if name in done), sum(sizes.values()))
    if left:
        return '{}, {}'.format(text, ', '.join(left[:2]) + (', …' if len(left) > 2 else ''))
    return text + ', installing'


def show_progress(process: subprocess.Popen, step: str, log: Path, start: int) -> None:
    """
    Wait for a program; show its seconds and how far it is, on a terminal in one line.

    Of programs side by side a terminal shows that of the main thread.

    :param process: that writes to the log.
    :param step: name of the step.
    :param log: its output.
    :param start: offset of its output in the log.
    """
    began = time.monotonic()
    is_terminal = sys.stdout.isatty()
    is_main = threading.current_thread() is threading.main_thread()
    while True:
        try:
            process.wait(timeout=UPDATE_S if is_terminal else LINE_S)
            break
        except subprocess.TimeoutExpired:
            if is_terminal and not is_main:
                continue
            with log.open('rb') as stream:
                stream.seek(start)
                text = '  {}: {:.0f} s {}'.format(
                    step, time.monotonic() - began,
                    progress(stream.read().decode('utf-8', 'replace'))
                    or WORK.get(step, '')).rstrip()
            columns = shutil.get_terminal_size().columns - 1
            print('\r{}\033[K'.format(text[:columns]) if is_terminal else text,
                  end='' if is_terminal else '\n', flush=True)
    if is_terminal and is_main:
        print('\r\033[K', end='', flush=True)
