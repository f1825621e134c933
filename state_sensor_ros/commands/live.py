# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A live stream of any simulator, selected by options, for the commands that read one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
import math
import threading
import time

from state_sensor_ros.commands.options import open_input, settings_of
from state_sensor_ros.commands.terminal import waiting_named
from state_sensor_ros.errors import failed_stream, TransportError, TruncatedError
from state_sensor_ros.files.recording import RecordingReader
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import find_simulator
from state_sensor_ros.source import Faults, Source

# Failures of one reason, without a new frame between them, that end a command.
_MAX_FAILURES = 3
# Pause between two attempts at the only connection, s.
_RETRY_S = 0.1


class LiveRecording:
    """
    The next frames of a live stream, with the interface of a recording; read once.

    :param ends: whether they end with the connection; otherwise it is made again.
    :param has_clock: whether /clock is published.
    :ivar notes: lines about what was found beside the frames, by kind.
    """

    format_name, unit = 'stream', 'frame'

    def __init__(self, args: argparse.Namespace, *, ends: bool = False,
                 has_clock: bool = False) -> None:
        self.settings = settings = settings_of(args, is_live=True, publish_clock=has_clock)
        simulator = find_simulator(settings.source)
        self.name, self.simulator = simulator.address(settings), simulator.name
        self.notes: dict[str, str] = {}
        self.source: Source = simulator.open_source(
            settings, self.notes.__setitem__, reconnect=not ends)
        self.source.health.failures.limit = _MAX_FAILURES
        is_unpaced = not settings.rate and simulator.is_paced
        self._simulated_s = args.seconds if is_unpaced and args.seconds is not None else math.inf
        self._seconds = math.inf if args.seconds is None or is_unpaced else args.seconds
        # Steady time at which the stream is to end; the first frame sets it anew.
        self._until_s = time.monotonic() + self._seconds
        self.cut: TruncatedError | None = None
        self.total: int | None = args.frames
        self.position, self.is_timed = 0, False
        self._is_quiet: bool = args.quiet
        self._is_over = threading.Event()

    @property
    def faults(self) -> Faults:
        """Return those of the source."""
        return self.source.faults

    @property
    def details(self) -> bool:
        """Return whether boxes, wheels and inputs are used."""
        return self.source.details

    @details.setter
    def details(self, details: bool) -> None:
        self.source.details = details

    def mark(self) -> None:
        """Return None: it is read once."""

    def frames(self, mark: None = None) -> Iterator[Frame]:
        """Yield frames until the end that the options set."""
        if self._until_s < math.inf:
            threading.Thread(target=self._close_in_time, daemon=True).start()
        health, begin_s = self.source.health, math.nan
        try:
            with waiting_named(self.name, lambda: self.position > 0, lambda: health.reason,
                               is_quiet=self._is_quiet):
                for frame in self._received():
                    if math.isnan(begin_s):
                        begin_s = frame.game_time
                    # Tolerance of half a nanosecond: multiples of a step are rounded.
                    if frame.game_time >= begin_s + self._simulated_s - 5e-10:
                        return
                    if not self.position:
                        self._until_s = time.monotonic() + self._seconds
                    self.position += 1
                    yield frame
                    if self.position == self.total or time.monotonic() >= self._until_s:
                        return
        except KeyboardInterrupt:
            # The ordinary end.
            if not self.position:
                raise
        finally:
            self.close()
        if not self.position:
            raise failed_stream(self.name, health.reason, 'no frame received' + (
                '' if self._seconds == math.inf else f' in {self._seconds:g} s'))

    def _received(self) -> Iterator[Frame]:
        """
        Yield what arrives; of a stream that ends, what the first connection brings.

        :raises TransportError: if the failures are final.
        """
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

    def _close_in_time(self) -> None:
        while (left_s := self._until_s - time.monotonic()) > 0.0:
            if self._is_over.wait(left_s):
                return
        self.close()

    def close(self) -> None:
        """End the stream, from any thread."""
        self._is_over.set()
        self.source.close()


def open_frames(args: argparse.Namespace,
                path: str | None) -> tuple[Settings, RecordingReader]:
    """Open a recording, or a live stream without one."""
    if path is None:
        stream = LiveRecording(args)
        return stream.settings, stream
    settings = settings_of(args)
    return settings, open_input(args, path, settings)
