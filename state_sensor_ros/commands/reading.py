# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames of recordings and live streams: progress, and one warning for each kind of fault."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
import gc
import math
import sys
import threading
import time

from state_sensor_ros import source, texts
from state_sensor_ros.commands.options import settings_of
from state_sensor_ros.commands.terminal import print_line, print_warnings, progress_bar
from state_sensor_ros.errors import failed_stream, TransportError, TruncatedError
from state_sensor_ros.files import open_any, ReadOptions
from state_sensor_ros.files.recording import forwarded, RecordingReader
from state_sensor_ros.frame import Frame
from state_sensor_ros.library.stream import CUT, FaultList, FrameFault, FrameLoop
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import find_simulator

# Failures of one reason, without a new frame between them, that end a command.
_MAX_FAILURES = 3
# Pause between two attempts at the only connection; a longer wait for a frame is named, s.
_RETRY_S, _SILENCE_S = 0.1, 1.0


def open_frames(args: argparse.Namespace, path: str | None, *,
                has_clock: bool = False) -> tuple[Settings, RecordingReader]:
    """Open a recording, or a live stream without one; ``has_clock``: as of the latter."""
    if path is None:
        stream = LiveRecording(args)
        return stream.settings, stream
    settings = settings_of(args, publish_clock=has_clock)
    return settings, open_any(path, ReadOptions(settings, args.topic))


@contextmanager
def _progress(recording: RecordingReader, what: str, *,
              is_quiet: bool) -> Iterator[Callable[[], object]]:
    """Yield what shows the position in a recording on a terminal; report a cut at its end."""
    with progress_bar(recording, what, is_quiet=is_quiet) as bar:
        # Saves a tenth of the time: garbage collections skip the objects built until now.
        gc.freeze()
        try:
            yield lambda: None if bar is None else bar.update(recording.position - bar.n)
        finally:
            gc.unfreeze()
    if recording.cut is not None:
        print_line(f'warning: {recording.cut.warning}')


def with_progress(recording: RecordingReader, what: str, *,
                  is_quiet: bool) -> Generator[Frame, None, None]:
    """Yield the frames of a recording, show its position on a terminal, and report a cut."""
    with _progress(recording, what, is_quiet=is_quiet) as show:
        for frame in recording.frames():
            yield frame
            show()


def read_frames(recording: FrameLoop, what: str, *, is_quiet: bool = False,
                warns: bool = True) -> Generator[Frame, None, None]:
    """
    Yield the frames of a recording with progress, then print a warning for each kind of fault.

    :param what: name of the work, one word, for the progress bar.
    :param warns: whether to warn of faults; a cut and what is not found are always reported.
    """
    has_frames, faults, last_s = False, FaultList(), math.nan
    with _progress(recording.reader, what, is_quiet=is_quiet) as show:
        for frame in recording:
            has_frames = True
            if frame.game_time == last_s:
                faults.add(FrameFault('repeated_frame', recording.place, again(last_s)))
            last_s = frame.game_time
            yield frame
            show()
    if warns:
        print_warnings(recording.name, [*fault_lines(recording.faults), *fault_lines(faults)])
    # Without a frame there is an error.
    if has_frames:
        print_warnings(recording.name, recording.unmatched)


def again(game_time: float) -> str:
    """Return the text about a repeated frame."""
    return f'game_time is {game_time:.6g} again'


def fault_lines(faults: FaultList) -> Iterator[str]:
    """Yield one line for each kind of fault except a cut, which is reported apart."""
    for kind, count in faults.counts.items():
        if kind != CUT:
            first = next(fault for fault in faults if fault.kind == kind)
            words = kind.replace('_', ' ', 2 if kind.startswith(source.UNDECLARED) else -1)
            what = 'payload dropped' if kind == source.LOST else \
                'consistency' if kind.startswith('consistency ') else words
            more = f' (and {count - 1} more of this kind)' if count > 1 else ''
            yield f'{what}: {first.place}: {first.text}{more}'


class LiveRecording:
    """
    The next frames of a live stream, with the interface of a recording; read once.

    :param ends: whether they end with the connection; otherwise it is made again.
    :param has_clock: whether /clock is published.
    :ivar notes: lines about what was found beside the frames, by kind.
    """

    format_name, unit, is_timed = 'stream', 'frame', False
    cut: TruncatedError | None = None
    faults, details = (forwarded('source', name) for name in ('faults', 'details'))

    def __init__(self, args: argparse.Namespace, *, ends: bool = False,
                 has_clock: bool = False) -> None:
        self.settings = settings = settings_of(args, is_live=True, publish_clock=has_clock)
        simulator = find_simulator(settings.source)
        self.name, self.simulator = simulator.address(settings), simulator.name
        self.notes: dict[str, str] = {}
        self.source: source.Source = simulator.open_source(
            settings, self.notes.__setitem__, reconnect=not ends)
        self.source.health.failures.limit = _MAX_FAILURES
        # A simulation as fast as possible is measured by its own clock.
        is_unpaced = not settings.rate and simulator.is_paced
        self._simulated_s: float = args.seconds if is_unpaced else math.inf
        self._seconds: float = math.inf if is_unpaced else args.seconds
        self.total: int | None = args.frames
        self.position = 0
        self._is_quiet: bool = args.quiet
        self._is_over = threading.Event()

    @property
    def lines(self) -> list[str]:
        """Return what is to be said of it at its end."""
        n_reconnects, unread = self.source.health.n_reconnects, self.source.health.unread
        lines = [text for kind, text in self.notes.items() if kind != 'clocks']
        if n_reconnects:
            lines.append(f'the stream was interrupted {texts.counted(n_reconnects, "time")}')
        if unread:
            lines.append(f'{unread} had arrived before the end and were not read')
        return lines

    def mark(self) -> None:
        """Return None: it is read once."""

    def frames(self, mark: None = None) -> Iterator[Frame]:
        """Yield frames until the end that the options set."""
        begin_s, silence = math.nan, _timer(_SILENCE_S, self._name_silence)
        ending = _timer(self._seconds, self.close)
        try:
            for frame in self._received():
                if math.isnan(begin_s):
                    begin_s = frame.game_time
                # Tolerance of half a nanosecond: multiples of a step are rounded.
                if frame.game_time >= begin_s + self._simulated_s - 5e-10:
                    return
                if not self.position:
                    silence.cancel()
                    ending.cancel()
                    ending = _timer(self._seconds, self.close)
                self.position += 1
                yield frame
                if self.position == self.total or self._is_over.is_set():
                    return
        except KeyboardInterrupt:
            # The ordinary end.
            if not self.position:
                raise
        finally:
            silence.cancel()
            ending.cancel()
            self.close()
        if not self.position:
            raise failed_stream(self.name, self.source.health.reason, 'no frame received' + (
                '' if self._seconds == math.inf else f' in {self._seconds:g} s'))

    def _received(self) -> Iterator[Frame]:
        """Yield what arrives; of a stream that ends, what the first connection brings."""
        health = self.source.health
        while True:
            try:
                yield from self.source.frames()
            except TransportError:
                # Otherwise the health has the reason.
                if health.failures.are_final:
                    raise
            if health.n_connects or self._is_over.wait(_RETRY_S):
                return

    def _name_silence(self) -> None:
        """Print that no frame has arrived, unless on a terminal."""
        if self.position or self._is_quiet or sys.stderr.isatty():
            return
        since = time.strftime('%H:%M:%S', time.localtime(time.time() - _SILENCE_S))
        reason = self.source.health.reason.removeprefix('cannot connect to ')
        reason = reason.removeprefix(self.name).lstrip(': ')
        print_line(f'waiting for a frame from {self.name} since {since}'
                   + (f': {reason}' if reason else ''))

    def close(self) -> None:
        """End the stream, from any thread."""
        self._is_over.set()
        self.source.close()


def _timer(wait_s: float, call: Callable[[], None]) -> threading.Timer:
    """Call a function after a time, in a thread, unless the time is infinite."""
    timer = threading.Timer(min(wait_s, threading.TIMEOUT_MAX), call)
    timer.daemon = True
    if wait_s < math.inf:
        timer.start()
    return timer
