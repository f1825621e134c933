# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Standard error that is not read stops no endless command, and prevents no end by a signal."""

import signal
import subprocess

from blocked_output import blocked, FullPipe, StoppedTerminal
from budgets import AWAIT_S, each_once
from process_state import handles, wait_until_asleep
from programs import start
import pytest
from scripted_simulator import frame, ScriptedSimulator
from stopwatch import Stopwatch, until

from state_sensor_ros.library.frame_recording import open_recording  # noqa: I100

END_S = 2.0
each_kind = pytest.mark.parametrize('kind', [FullPipe, StoppedTerminal], ids=['pipe', 'terminal'])


@pytest.fixture
def port():
    """Provide the port of a mock simulator."""
    with start('simulate', '--port', '0', '--rate', '100', '--vehicles', '1') as server:
        yield server.stdout.readline().strip().rpartition(':')[2]
        server.terminate()


@pytest.fixture
def peer():
    with ScriptedSimulator() as scripted:
        yield scripted


@each_kind
def test_recording_goes_on_and_ends(kind, port, tmp_path):
    out = tmp_path / 'drive.json'
    # The progress bar alone would fill the terminal or wait for the pipe.
    with blocked(kind) as output, start(
            'record', out, '--port', port, '--frames', '200', stderr=output.writer) as process:
        assert process.wait(AWAIT_S) == 0
        assert len(open_recording(out)) == 200


def test_progress_is_shown_on_a_terminal(port, tmp_path):
    with blocked(StoppedTerminal) as output:
        output.go_on()
        with start('record', tmp_path / 'a.json', '--port', port, stderr=output.writer) as process:
            output.read_until(b'frame/s')
            process.terminate()


@pytest.mark.parametrize(('kind', 'words'), each_once([FullPipe, StoppedTerminal], [
    ('record', 'OUT', '--port', 'PORT'), ('inspect', '--live', '--port', 'PORT'),
    ('record', 'OUT', '--port', '1'), ('simulate', '--port', '0')]))
def test_signal_ends_it(kind, peer, tmp_path, words):
    has_frames = 'PORT' in words
    words = [{'OUT': tmp_path / 'drive.json', 'PORT': peer.port}.get(word, word)
             for word in words]
    with blocked(kind) as output, start(*words, stderr=output.writer) as process:
        until(lambda: handles(process.pid, signal.SIGTERM), 'a program that handles the signal')
        if has_frames:
            peer.wait_for(lambda p: 'sensor opened' in p.events)
            for i in range(5):
                peer.emit(frame(i / 10))
            # It has taken them: until then it is ready to run.
            wait_until_asleep(process)
        # Longer than until the first line or the first bar.
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        watch = Stopwatch(process)
        process.send_signal(signal.SIGTERM)
        # From port 1 no frame came.
        assert watch.wait() == (143 if words[-1] == '1' else 0)
        assert watch.seconds < END_S
