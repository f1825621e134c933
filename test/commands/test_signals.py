# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""SIGINT, SIGTERM and SIGHUP: all of the work is done, or nothing is left of it."""

import ctypes
from itertools import count
import json
import operator
import os
import signal
import threading

from budgets import AWAIT_S
from paths import SAMPLE
from process_state import wait_until_asleep
from programs import start
import pytest
from scripted_simulator import frame, ScriptedSimulator
from stopwatch import until

from state_sensor_ros.ends import raising_at_signals  # noqa: I100

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize('number', SIGNALS)
def test_signal_is_raised_once_and_disarms_the_handler(number):
    before = [signal.getsignal(each) for each in SIGNALS]
    with raising_at_signals():
        assert [signal.getsignal(each) for each in SIGNALS] != before
        with pytest.raises(KeyboardInterrupt) as raised:
            signal.raise_signal(number)
        assert [signal.getsignal(each) for each in SIGNALS] == before
    assert raised.value.args == (number,)


def test_signal_in_a_destructor_is_not_lost():
    class Late:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    with raising_at_signals():
        Late()
        with pytest.raises(KeyboardInterrupt):
            threading.Event().wait(AWAIT_S)


def test_signal_just_before_a_call_that_blocks_ends_the_call():
    reader, writer = os.pipe()
    # A failure ends, too.
    late = threading.Timer(AWAIT_S, os.write, (writer, b'.'))
    late.start()
    # All calls are made by C: between the signal and the read Python looks for none.
    n_bytes = map(operator.not_, map(ctypes.CDLL(None)['raise'], [signal.SIGINT]))
    with raising_at_signals(), pytest.raises(KeyboardInterrupt):
        list(map(os.read, [reader], n_bytes))
    assert late.is_alive()
    late.cancel()
    os.close(reader)
    os.close(writer)


def test_ignored_hang_up_stays_ignored(monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with raising_at_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_record_keeps_what_has_come(tmp_path):
    out = tmp_path / 'out.json'
    with ScriptedSimulator() as peer, \
            start('record', 'out.json', '--port', peer.port, cwd=tmp_path) as process:
        peer.wait_for(lambda p: 'sensor opened' in p.events)
        times = count()
        # What is collected is written once a second.
        until(lambda: any(path.stat().st_size > 100 for path in tmp_path.iterdir()),
              step=lambda: threading.Event().wait(0.05) or peer.emit(frame(next(times) / 20)))
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=AWAIT_S)
    assert (process.returncode, 'interrupted' in errors) == (0, False)
    assert output.startswith('out.json: ')
    assert len(json.loads(out.read_text())) >= 1


@pytest.mark.parametrize('out', ['-', '/dev/stdout'])
def test_output_that_is_not_read_ends(tmp_path, out):
    """Although its buffer does not fit in the pipe."""
    with start('convert', str(SAMPLE), out, '--generation', 'v2', cwd=tmp_path) as process:
        wait_until_asleep(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(AWAIT_S) == 143
