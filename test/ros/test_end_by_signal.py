# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The end of a program by a signal, whatever its threads do."""

import os
import signal

from budgets import each_once
from programs import PIPES, start_node
import pytest
from stopwatch import Stopwatch

END_S = 2.0
HEAD = """
import os, sys, threading, time
from state_sensor_ros.pipeline.process import StandardStreams
from state_sensor_ros.ros.program import Ending
ending = Ending(StandardStreams(1, 2))
"""
STUCK_THREAD = """
threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
READY = """
print('ready', flush=True)
"""
UNTIL_WANTED = """
while not ending.is_wanted():
    time.sleep(0.01)
"""
LEAVE = """
sys.exit(ending.leave(3))
"""
FOR_EVER = """
os.read(os.pipe()[0], 1)
"""
BUSY = """
while True:
    sum(range(100_000))
"""
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a program of some parts."""
    def begin(*parts, **options):
        path = tmp_path / 'program.py'
        path.write_text(HEAD + ''.join(parts))
        process = start_node([str(path)], **{**PIPES, **options})
        assert process.stdout.readline() == 'ready\n'
        return process

    return begin


def end(process, number):
    """Send a signal; return the exit code and how long the end took."""
    watch = Stopwatch(process)
    process.send_signal(number)
    return watch.wait(), watch.seconds


@pytest.mark.parametrize(('number', 'thread'), each_once(SIGNALS, ['', STUCK_THREAD]))
def test_ending_leaves_with_the_code_of_the_program(start, number, thread):
    with start(thread, READY, UNTIL_WANTED, LEAVE) as process:
        code, seconds = end(process, number)
        assert code == 3
        assert seconds < END_S
        assert process.stderr.read() == ''


@pytest.mark.parametrize(('number', 'work'), each_once(SIGNALS, [FOR_EVER, BUSY]))
def test_ending_does_not_wait_for_a_main_thread_that_does_not_end(start, number, work):
    with start(READY, work) as process:
        code, seconds = end(process, number)
        assert code == 0
        assert seconds < END_S
        assert process.stderr.read().startswith('warning: found work that did not end within ')


def test_ending_does_not_wait_for_a_reader_of_the_warning(start):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    while True:
        try:
            os.write(writer, bytes(65536))
        except BlockingIOError:
            break
    os.set_blocking(writer, True)
    with start(READY, FOR_EVER, stderr=writer) as process:
        code, seconds = end(process, signal.SIGTERM)
        assert code == 0
        assert seconds < END_S
    os.close(writer)
    os.close(reader)
