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
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
import math
import threading
import time

from state_sensor_ros.commands.format_options import open_input, refuse_unused
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.parameter_values import settings_of
from state_sensor_ros.commands.printing import waiting_named
from state_sensor_ros.errors import failed_stream, TruncatedError
from state_sensor_ros.files.recording import RecordedFrame, RecordingReader
from state_sensor_ros.payloads import Packet, PayloadDecoder
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.simulator_list import find_simulator
from state_sensor_ros.source import Source

# Options of every run that reads a live stream.
LIVE_OPTIONS = frozenset(('source', 'host', 'port', 'frames', 'seconds'))
# Failures of one reason, without a new frame between them, that end a command.
_MAX_FAILURES = 3


def refuse_unused_live(args: argparse.Namespace, used: Set[str], what: str,
                       uses: dict[str, str] | None = None) -> None:
    """Refuse options that a run with a live stream does not use."""
    refuse_unused(args, (used | LIVE_OPTIONS) - {'start', 'end'}, what, uses)


class LiveStream:
    """A source and the decoder of its packets."""

    # until_s: steady time at which the stream is to end, inf for never; the first packet sets it
    # anew.
    # missing: description of a stream without a frame.

    def __init__(self, args: argparse.Namespace, *, ends: bool,
                 own: Mapping[str, object] | None = None) -> None:
        # A simulator may send the selected actors only.
        others = {name: value for name in ('host', 'port', 'desired_tags', 'undesired_tags')
                  if (value := getattr(args, name, None)) not in (None, [])}
        self.settings = settings = settings_of(args, is_live=True, own={
            **(own or {}), **others})
        self.simulator = find_simulator(settings.source)
        self.where = self.simulator.address(settings)
        self.notes: dict[str, str] = {}
        self.source: Source = self.simulator.open_source(
            settings, self.notes.__setitem__, reconnect=not ends)
        self.source.health.failures.limit = _MAX_FAILURES
        self.decoder: PayloadDecoder = self.simulator.new_decoder(settings)
        is_unpaced = not settings.rate and 'rate' in self.simulator.uses
        self._simulated_s = args.seconds if is_unpaced and args.seconds is not None else math.inf
        self._seconds = math.inf if args.seconds is None or is_unpaced else args.seconds
        self.until_s = time.monotonic() + self._seconds
        self.missing = 'no frame received' + (
            '' if self._seconds == math.inf else f' in {self._seconds:g} s')
        self._has_begun = False

    def continue_from(self, before: LiveStream) -> None:
        """End when an earlier stream would have ended."""
        self.until_s, self._has_begun = before.until_s, before._has_begun

    def packets(self) -> Iterator[Packet]:
        """Yield the packets; those of an unpaced simulator up to the simulated end."""
        begin_s = math.nan
        for packet in self.source.packets():
            if not self._has_begun:
                self._has_begun = True
                self.until_s = time.monotonic() + self._seconds
            if packet.decoded is not None:
                time_s = packet.game_time
                begin_s = time_s if math.isnan(begin_s) else begin_s
                # Tolerance of half a nanosecond: multiples of a step are rounded.
                if time_s >= begin_s + self._simulated_s - 5e-10:
                    self.source.close()
                    return
            yield packet


class LiveRecording:
    """The next frames of a live stream, with the interface of a recording; read once."""

    format_name = 'stream'
    unit = 'frame'

    def __init__(self, args: argparse.Namespace, interruption: Interruption) -> None:
        self._stream = LiveStream(args, ends=False)
        self.settings = self._stream.settings
        self.name = self._stream.where
        self.simulator = self._stream.simulator.name
        self.decoder = self._stream.decoder
        self.cut: TruncatedError | None = None
        self.total: int | None = args.frames
        self._n_frames = 0
        self._is_quiet: bool = args.quiet
        self._interruption = interruption
        interruption.unblock_errors()
        interruption.is_endless = args.frames is None and args.seconds is None
        interruption.describe(lambda: '', self.close)

    def new_decoder(self) -> PayloadDecoder:
        return self.decoder

    def frames(self) -> Iterator[RecordedFrame]:
        """Yield frames until the end that the options set."""
        is_over = threading.Event()
        if self._stream.until_s < math.inf:
            threading.Thread(target=self._close_in_time, args=(is_over,), daemon=True).start()
        health = self._stream.source.health
        try:
            with waiting_named(self.name, lambda: self._n_frames > 0, lambda: health.reason,
                               is_quiet=self._is_quiet):
                for packet in self._stream.packets():
                    for payload in self.decoder.split(packet.payload):
                        number = self._n_frames
                        self._n_frames += 1
                        yield RecordedFrame(replace(packet, payload=payload), math.nan, number,
                                            f'packet {health.n_packets}', self._n_frames)
                        if self._n_frames == self.total \
                                or time.monotonic() >= self._stream.until_s:
                            return
        finally:
            is_over.set()
            self.close()
        if not self._n_frames:
            self._interruption.end_without_frame()
            raise failed_stream(self.name, health.reason, self._stream.missing)

    def _close_in_time(self, is_over: threading.Event) -> None:
        while (left_s := self._stream.until_s - time.monotonic()) > 0.0:
            if is_over.wait(left_s):
                return
        self.close()

    def close(self) -> None:
        """End the stream, from any thread."""
        self._stream.source.close()


def open_frames(args: argparse.Namespace, path: str | None,
                interruption: Interruption) -> tuple[Settings, RecordingReader]:
    """Open a recording, or a live stream without one."""
    if path is None:
        stream = LiveRecording(args, interruption)
        return stream.settings, stream
    settings = settings_of(args)
    return settings, open_input(args, path, settings)
