# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM before there is anything to keep."""

import fcntl
import os
from pathlib import Path
import signal
import struct
import subprocess
import sys
import termios
import threading

import pytest

PROGRAM = [sys.executable, '-c',
           'import sys; from state_sensor_ros.cli import main; sys.exit(main())']
ENVIRONMENT = {**os.environ, 'PYTHONPATH': str(Path(__file__).parents[1])}
AWAIT_S = 30.0


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize('words', [
    ('inspect', '-'), ('convert', '-', 'out.json'), ('convert', '-', 'bag'),
    ('render', '-', 'out.png'), ('replay', '-')], ids=' '.join)
def test_interrupted_before_the_first_frame_is_no_error(tmp_path, words, number):
    with subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, stdin=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        process.stdin.write(b'[')
        process.stdin.flush()
        while n_unread(process.stdin):
            assert process.poll() is None
            threading.Event().wait(0.01)
        process.send_signal(number)
        assert process.wait(AWAIT_S) == 0
        assert process.stderr.read() == b''
    assert list(tmp_path.iterdir()) == []


def test_interrupted_again_while_python_ends_is_no_error(tmp_path):
    # Called after what the program itself has registered for the end.
    program = ('import atexit, os, signal, sys; '
               'atexit.register(os.kill, os.getpid(), signal.SIGINT); ' + PROGRAM[-1])
    result = subprocess.run([*PROGRAM[:-1], program, 'synth', 'out.json', '--frames', '1'],
                            cwd=tmp_path, capture_output=True, env=ENVIRONMENT, timeout=AWAIT_S,
                            check=False)
    assert (result.returncode, result.stderr) == (0, b'')


def n_unread(pipe):
    (number,) = struct.unpack('i', fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
    return number
