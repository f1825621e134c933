# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The programs under test: as forks, or as new processes where the start itself is tested."""

from dataclasses import dataclass
import json
import os
import re
import subprocess
import sys

from budgets import AWAIT_S
from fork_server import ForkServer, is_measured
from paths import ROOT

SCRIPTS = ROOT / 'scripts'
STATE_SENSOR = [sys.executable, str(SCRIPTS / 'state_sensor')]
# A sourced ROS 2 may have rclpy in PYTHONPATH.
_PATH = os.pathsep.join(filter(None, (str(ROOT), os.environ.get('PYTHONPATH'))))
ENVIRONMENT = {**os.environ, 'PYTHONPATH': _PATH}
PIPES = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'text': True}
_CUT_SHORT = ROOT / 'test' / 'cut_short.py'

_commands = ForkServer('commands', PYTHONPATH=_PATH)
_node = ForkServer('node')
_clients = ForkServer('clients', PYTHONPATH=_PATH)


def start(*words, is_new=False, **options):
    """
    Start `state_sensor`; its output and errors are pipes of text.

    :param words: its arguments.
    :param is_new: whether to start a new process, not a fork.
    :param options: of :class:`subprocess.Popen`.
    """
    words = [*STATE_SENSOR, *map(str, words)]
    options = {**PIPES, **options}
    if is_new or is_measured():
        return subprocess.Popen(words, env=ENVIRONMENT, **options)
    return _commands.start(words[1:], env=ENVIRONMENT, **options)


def start_mock(*words):
    """Start a mock server of `test/mocks/run.py`, as :func:`start` a command."""
    return start_script([str(ROOT / 'test' / 'mocks' / 'run.py'), *map(str, words)],
                        env=ENVIRONMENT, **PIPES)


def lines_of(errors):
    """Return lines of errors, but not that a stream is waited for, as on a busy machine."""
    return [line for line in errors.splitlines()
            if not re.match('waiting for a (?:frame|message) from .* since ', line)]


def run_python(*words, **options):
    """
    Run a new Python to its end.

    :param words: its arguments.
    :param options: of :func:`subprocess.run`.
    """
    return subprocess.run([sys.executable, *map(str, words)], check=False, **{
        'env': ENVIRONMENT, 'capture_output': True, 'text': True, 'timeout': AWAIT_S, **options})


def start_script(words, **options):
    """
    Start a Python script that uses the modules of the commands.

    :param words: its path and its arguments.
    :param options: of :class:`subprocess.Popen`.
    """
    return _started_by(_commands, words, options)


def start_node(words, **options):
    """
    Start a Python script that runs the node.

    :param words: its path and its arguments.
    :param options: of :class:`subprocess.Popen`.
    """
    return _started_by(_node, words, options)


def start_client(words, **options):
    """
    Start a Python script that uses the library of a simulator.

    :param words: its path and its arguments.
    :param options: of :class:`subprocess.Popen`.
    """
    return _started_by(_clients, words, options)


def _started_by(server, words, options):
    """Start a Python script as a fork, or as a new process if its coverage is measured."""
    if is_measured():
        return subprocess.Popen([sys.executable, *words], **options)
    return server.start(words, **options)


@dataclass(frozen=True)
class Ended:
    """How a run ended: exit code, negative for a signal; its output; the number of calls."""

    code: int
    output: str
    errors: str
    n_calls: int


def run_cut_short(*words, folder, memory=None, limit=None, is_killed=False, at_call=None,
                  at_event=None, number=None):
    """
    Run `state_sensor` in a fork that may be cut short.

    :param words: its arguments.
    :param folder: to run in; of one named tmp in it, temporary files are made there.
    :param memory: limit of the address space that it takes from now on, bytes.
    :param limit: of the size of each file, bytes.
    :param is_killed: whether to write beyond it kills, instead of failing.
    :param at_call: before which of its calls that change a folder or sync to send a signal, or as
        many as there are: after the last.
    :param at_event: at which event of Python's profiler to send a signal.
    :param number: of the signal.
    """
    # `budgets` would import pytest into the program, 0.1 s of each run.
    request = json.dumps({'await_s': AWAIT_S, 'memory': memory, 'limit': limit,
                          'is_killed': is_killed, 'at_call': at_call, 'at_event': at_event,
                          'number': number})
    reader, writer = os.pipe()
    with open(reader, 'rb') as calls:
        try:
            process = _commands.start(
                [str(_CUT_SHORT), request, *map(str, words)], cwd=folder, stdin=writer,
                errors='backslashreplace', env=ENVIRONMENT, **PIPES)
        finally:
            os.close(writer)
        with process:
            output, errors = process.communicate(timeout=2 * AWAIT_S)
        return Ended(process.returncode, output, errors, len(calls.read()))
