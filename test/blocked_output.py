# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Outputs that are not read: a full pipe, and a terminal stopped by Ctrl-S."""

from contextlib import contextmanager
import fcntl
import os
import pty
import select
import struct
import termios
import time

from budgets import AWAIT_S

_STOP, _CONTINUE = b'\x13', b'\x11'


class Blocked:
    """
    Base of both.

    ``writer`` is for the program; ``reader`` is of the test.
    """

    def read_until(self, words):
        """Let the output go on and read it until ``words`` are in it; return all."""
        self.go_on()
        found = b''
        deadline = time.monotonic() + AWAIT_S
        while words not in found:
            assert time.monotonic() < deadline, found[-2000:]
            if select.select([self.reader], [], [], 0.1)[0]:
                found += os.read(self.reader, 65536)
        return found

    def go_on(self):
        """Let a write go on as soon as something is read."""

    def close(self):
        for each in (self.reader, self.writer):
            os.close(each)


class FullPipe(Blocked):

    def __init__(self):
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.writer, False)
        for n_bytes in (65536, 1):
            try:
                while True:
                    os.write(self.writer, bytes(n_bytes))
            except BlockingIOError:
                pass
        os.set_blocking(self.writer, True)


class StoppedTerminal(Blocked):

    def __init__(self):
        self.reader, self.writer = pty.openpty()
        fcntl.ioctl(self.writer, termios.TIOCSWINSZ, struct.pack('4H', 24, 80, 0, 0))
        os.write(self.reader, _STOP)

    def go_on(self):
        os.write(self.reader, _CONTINUE)


@contextmanager
def blocked(kind):
    """Provide an output of a kind, and close it."""
    output = kind()
    try:
        yield output
    finally:
        output.close()
