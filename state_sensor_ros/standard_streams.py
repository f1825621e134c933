# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Standard streams that do not hold up a program whose output is not read.

The descriptors become pipes that a thread of this process empties. So whatever writes to them,
libraries in C and child processes included, does not wait::

    rclpy, rcutils, Python, children          drain               log
    ------------------------------> pipe ------------> queue -----------> terminal, pipe
              never waits          non-blocking        bounded          may block for ever

What does not fit into the queue is dropped and counted; one line says so when the reader reads on.
Regular files and devices do not block, so they are left as they are.
"""

from __future__ import annotations

import atexit
from collections import deque
from contextlib import suppress
import io
import os
import select
import stat
import struct
import sys
import threading
import time
from typing import TextIO

try:
    import fcntl
    import termios
except ImportError:  # Windows, where streams are left as they are
    fcntl = None  # type: ignore[assignment]

_MAX_BYTES = 256 * 1024
_PIPE_BYTES = 1024 * 1024
_FLUSH_S = 0.3
_STANDARD_ERROR = 2


class UnblockedOutput:
    """Bytes for a descriptor that may block; a thread writes them."""

    def __init__(self, descriptor: int) -> None:
        self.n_dropped = 0
        self._descriptor = descriptor
        # Guards all below; notified at each change.
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._n_bytes = 0
        self._is_writing = False
        # Lines dropped since the last line about them; whether the rest of a line is to follow.
        self._n_dropped_now = 0
        self._is_dropping = self._is_cut = False
        self.thread = threading.Thread(target=self._work, daemon=True, name='log')
        self.thread.start()

    def write(self, data: bytes) -> None:
        """Write without a wait; drop lines if too many bytes wait already."""
        with self._changed:
            if self._is_cut and not self._is_dropping:
                data = self._after_cut_line(data)
            n_kept = 0 if self._is_dropping else self._n_kept(data)
            if n_kept < len(data):
                self._drop(data[n_kept:])
            if n_kept:
                self._waiting.append(data[:n_kept])
                self._n_bytes += n_kept
                self._changed.notify_all()

    def flush(self, until_s: float) -> bool:
        """Wait until everything is written; ``until_s``: steady time of the end of the wait, s."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not (self._waiting or self._is_writing), until_s - time.monotonic())

    def _n_kept(self, data: bytes) -> int:
        """Return the number of bytes that fit, in whole lines."""
        n_free = _MAX_BYTES - self._n_bytes
        return len(data) if len(data) <= n_free else data.rfind(b'\n', 0, n_free) + 1

    def _after_cut_line(self, data: bytes) -> bytes:
        """Return what follows the rest of a line whose begin was dropped and counted."""
        _, newline, data = data.partition(b'\n')
        self._is_cut = not newline
        return data

    def _drop(self, data: bytes) -> None:
        # The rest of a line whose begin was dropped is not counted again.
        n_lines = data.count(b'\n') + (not data.endswith(b'\n')) - self._is_cut
        self._is_dropping, self._is_cut = True, not data.endswith(b'\n')
        self.n_dropped += n_lines
        self._n_dropped_now += n_lines

    def _work(self) -> None:
        is_line_open = False
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting)
                data = b''.join(self._waiting)
                self._waiting.clear()
                self._is_writing = True
            self._write(data)
            is_line_open = not data.endswith(b'\n')
            with self._changed:
                self._n_bytes -= len(data)
                if self._is_dropping and not self._waiting:
                    self._waiting.append(self._notice(is_line_open=is_line_open))
                    self._n_bytes += len(self._waiting[0])
                    self._is_dropping, self._n_dropped_now = False, 0

    def _notice(self, *, is_line_open: bool) -> bytes:
        lines = 'line was' if self._n_dropped_now == 1 else 'lines were'
        return (f'{chr(10) * is_line_open}warning: {self._n_dropped_now} {lines} dropped here, '
                'because the output was not read\n').encode()

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest):]
            except BlockingIOError:
                # The program was started with a descriptor that does not block.
                poll = select.poll()
                poll.register(self._descriptor, select.POLLOUT)
                poll.poll()
            except OSError:
                # The reader has closed its end.
                return


class StandardStreams:
    """The standard streams of this process; those that may block are replaced by pipes."""

    # descriptors: such as (1, 2); two that are the same file share a pipe.

    def __init__(self, *descriptors: int) -> None:
        self._pipes: list[_Pipe] = []
        for descriptor in filter(_may_block, descriptors):
            for pipe in self._pipes:
                if os.path.sameopenfile(pipe.kept, descriptor):
                    pipe.replace(descriptor)
                    break
            else:
                self._pipes.append(_Pipe(descriptor))
        if self._pipes:
            atexit.register(self.close)

    @property
    def n_dropped(self) -> int:
        """Return the number of lines that were dropped because they were not read."""
        return sum(pipe.output.n_dropped for pipe in self._pipes)

    @property
    def threads(self) -> list[threading.Thread]:
        """Return the threads, which end with the process."""
        return [thread for pipe in self._pipes for thread in (pipe.thread, pipe.output.thread)]

    def kept(self, descriptor: int) -> int:
        """Return the descriptor of the file that was replaced, or the given one if none was."""
        return next((pipe.kept for pipe in self._pipes if descriptor in pipe.replaced), descriptor)

    def errors(self) -> TextIO:
        """Return a stream for standard error that still is a terminal if the replaced file is."""
        raw = open(_STANDARD_ERROR, 'wb', 0, closefd=False)  # noqa: SIM115
        return _TerminalLike(raw, self.kept(_STANDARD_ERROR), sys.stderr.encoding)

    def close(self) -> None:
        """Wait a moment until all is written; the streams that do not block then are restored."""
        until_s = time.monotonic() + _FLUSH_S
        for pipe in self._pipes:
            pipe.close(until_s)


class _TerminalLike(io.TextIOWrapper):
    """Text for a pipe that has taken the place of a file."""

    def __init__(self, raw: io.FileIO, kept: int, encoding: str) -> None:
        super().__init__(raw, encoding, 'backslashreplace', write_through=True)
        self._kept = kept

    def isatty(self) -> bool:
        return os.isatty(self._kept)

    def fileno(self) -> int:
        """Return the descriptor of the file, for its width; nothing is written to it."""
        return self._kept


class _Pipe:
    """One pipe in the place of a file, and the queue that its thread fills."""

    def __init__(self, descriptor: int) -> None:
        self.kept = os.dup(descriptor)
        self.output = UnblockedOutput(self.kept)
        self.replaced: list[int] = []
        self._reader, self._writer = os.pipe()
        # A library that waits may hold the interpreter lock, which the thread needs that reads.
        os.set_blocking(self._writer, False)
        with suppress(OSError, AttributeError):
            fcntl.fcntl(self._writer, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._changed = threading.Condition()
        self.replace(descriptor)
        self.thread = threading.Thread(target=self._drain, daemon=True, name='drain')
        self.thread.start()

    def replace(self, descriptor: int) -> None:
        os.dup2(self._writer, descriptor)
        self.replaced.append(descriptor)

    def close(self, until_s: float) -> None:
        """Restore the file if all that was written until now goes out in time."""
        with self._changed:
            self._changed.wait_for(self._is_empty, until_s - time.monotonic())
        if self.output.flush(until_s):
            while self.replaced:
                os.dup2(self.kept, self.replaced.pop())

    def _is_empty(self) -> bool:
        n_bytes: int = struct.unpack('i', fcntl.ioctl(self._reader, termios.FIONREAD, bytes(4)))[0]
        return not n_bytes

    def _drain(self) -> None:
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        while True:
            poll.poll()
            with self._changed:
                self.output.write(os.read(self._reader, _PIPE_BYTES))
                self._changed.notify_all()


def _may_block(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False  # closed
    if fcntl is None:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
