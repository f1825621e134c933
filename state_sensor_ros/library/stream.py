# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames one after the other with their faults: of a recording, and of a live simulator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from state_sensor_ros import errors, texts
from state_sensor_ros.files.frame_selection import (
    EVERYTHING,
    RecordingSelection,
    SelectedRecording,
)
from state_sensor_ros.files.recording import RecordingReader
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import DEFAULTS, NO_PARAMETERS, Settings
from state_sensor_ros.simulators import find_simulator, live_settings
from state_sensor_ros.source import Faults

# A faulty recording may have one fault for each actor of each frame.
MAX_KEPT = 1000
# Kinds of faults, besides those of readers.
CUT, CONNECTION = 'cut', 'connection'


@dataclass(frozen=True, slots=True)
class FrameFault:
    """
    An actor, payload or part of a stream that was dropped, or changed.

    :ivar kind: ``dropped`` or ``duplicate`` for an actor that was dropped, ``other_id`` for an
        actor that does not have the id of the source, ``payload`` for a whole payload, ``cut`` for
        the missing end of a recording, ``connection`` for a lost connection,
        ``ignored_member`` for a member that no format has, ``ignored`` for one without effect.
    :ivar place: description of the place in the recording or stream.
    :ivar text: description of what was found and what was expected.
    :ivar error: the error with ``where``, ``found`` and ``expected``; None for ``cut`` and
        ``connection``.
    :ivar index: number of the frame in a recording, from 0.
    """

    kind: str
    place: str
    text: str
    error: errors.DecodeError | None = None
    index: int = 0

    def __str__(self) -> str:
        return f'{self.place}: {self.kind.replace("_", " ")}: {self.text}'


class FaultList(list[FrameFault]):
    """The first thousand faults, and the first one of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def add(self, fault: FrameFault, n: int = 1) -> None:
        """Append a fault that stands for ``n``, or only count it if the list is full."""
        if len(self) < MAX_KEPT or fault.kind not in self.counts:
            self.append(fault)
        self.counts[fault.kind] += n

    def take(self, faults: Faults) -> None:
        """Add the new faults of a reader."""
        for fault in faults.take():
            self.add(FrameFault(fault.kind, fault.place or f'frame {fault.index}',
                                str(fault.error), fault.error, fault.index), fault.n)


class FrameLoop:
    """
    The selected frames of a recording, one after the other; the next loop begins at the first.

    The arguments and attributes are those of :class:`Recording`.

    :param selection: part of the recording to read.
    :ivar reader: the selected part of the recording.
    """

    def __init__(self, recording: RecordingReader, *, is_timed: bool = True,
                 selection: RecordingSelection = EVERYTHING) -> None:
        self.name, self.format_name = recording.name, recording.format_name
        self.simulator = recording.simulator
        self.total, self.unit = recording.total, recording.unit
        self.sensor_counts: Mapping[tuple[str, str], int] | None = getattr(
            recording, 'sensor_counts', None)
        self.reader = SelectedRecording(recording, selection)
        self.reader.is_timed = is_timed
        self.faults, self.index, self.place = FaultList(), -1, ''
        self._n_loops, self._is_closed = 0, False

    @property
    def payload(self) -> bytes:
        """Return the text of the last frame of a trajectory, empty for other recordings."""
        return bytes(getattr(self.reader, 'payload', b''))

    @property
    def n_bytes(self) -> int:
        """Return the size of the frames of the last loop, 0 where it is unknown."""
        return int(getattr(self.reader, 'n_bytes', 0))

    @property
    def cut(self) -> errors.TruncatedError | None:
        """Return what is missing at the end, after a loop over a truncated trajectory."""
        cut: errors.TruncatedError | None = self.reader.cut
        return cut

    @property
    def unmatched(self) -> list[str]:
        """Return lines about selected times, names and tags that matched nothing in a loop."""
        return self.reader.unmatched

    def __iter__(self) -> Iterator[Frame]:
        """
        Yield all frames; of a truncated trajectory, the whole ones.

        :raises TrajectoryFormatError: if the recording is damaged.
        :raises StateError: if the recording is closed, or another loop over it has begun.
        """
        self._n_loops += 1
        number = self._n_loops
        self.faults.clear()
        self.faults.counts.clear()
        self._check_open()
        found = self.reader.faults
        found.take()
        for frame in self.reader.frames():
            self.index, self.place = found.index, found.place or f'frame {found.index}'
            self.faults.take(found)
            yield frame
            if self._is_closed or self._n_loops != number:
                raise errors.StateError(
                    self.name, 'a second loop was begun, or the recording closed, in a loop')
        self.faults.take(found)
        if self.cut is not None:
            self.faults.add(FrameFault(CUT, 'end', self.cut.warning))

    def _check_open(self) -> None:
        if self._is_closed:
            raise errors.StateError(self.name, 'the recording is closed')

    def close(self) -> None:
        """Close the recording; a second call has no effect."""
        self._is_closed = True
        self.reader.close()


class Stream:
    """
    The frames that a simulator sends, as they arrive.

    It connects at the first frame. Frames wait in the buffers of the operating system while the
    loop works on another one; when these are full, the simulator has to wait.

    >>> import state_sensor_ros as sensor
    >>> stream: sensor.Stream = sensor.open_stream('127.0.0.1', port)
    >>> len(next(iter(stream)))
    21
    >>> stream.close()

    :param settings: settings with host, port, units and limits.
    :param reconnect: whether to reconnect endlessly when the connection ends.
    :ivar name: host and port.
    :ivar n_frames: number of frames received.
    :ivar faults: faults so far, a list of :class:`FrameFault`.
    """

    def __init__(self, settings: Settings, *, reconnect: bool) -> None:
        simulator = find_simulator(settings.source)
        self.name, self.n_frames, self.faults = simulator.address(settings), 0, FaultList()
        self._source = simulator.open_source(settings, self._note, reconnect=reconnect)
        self._is_begun = False

    def __iter__(self) -> Iterator[Frame]:
        """
        Yield frames until the connection ends, or :meth:`close` is called.

        :raises TransportError: if no connection can be made, without ``reconnect``.
        :raises FramingError: if the data is not a stream of packets, without ``reconnect``.
        :raises StateError: at the second call.
        """
        if self._is_begun:
            raise errors.StateError(self.name, 'a second loop over a stream; open a new one')
        self._is_begun = True
        health, n_reconnects = self._source.health, 0
        try:
            for frame in self._source.frames():
                if health.n_reconnects > n_reconnects:
                    n_reconnects = health.n_reconnects
                    self._note(CONNECTION, health.last_error)
                self.faults.take(self._source.faults)
                self.n_frames += 1
                yield frame
            self.faults.take(self._source.faults)
        except errors.TransportError as error:
            if not health.n_connects:
                raise
            self._note(CONNECTION, str(error))

    def _note(self, kind: str, text: str) -> None:
        # Two clocks in a packet are no fault of its frame.
        if kind != 'clocks':
            self.faults.add(FrameFault(
                CONNECTION, f'packet {self._source.health.n_packets}', text))

    def __repr__(self) -> str:
        return f'Stream({self.name!r}, {texts.counted(self.n_frames, "frame")})'

    def close(self) -> None:
        """End the stream, also from another thread; a second call has no effect."""
        self._source.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_stream(host: str | None = None, port: int | None = None, *, reconnect: bool = False,
                source: str = DEFAULTS.source,
                parameters: Mapping[str, object] = NO_PARAMETERS) -> Stream:
    """
    Open the live frames of a running simulator.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_stream('127.0.0.1', port) as stream:
    ...     for frame in stream:
    ...         print(frame.generation, len(frame.names))
    ...         break
    v2 21

    :param host: host of the simulator; None for the simulator's default.
    :param port: port of its frames; None for the simulator's default.
    :param reconnect: whether to reconnect endlessly when the connection cannot be made or ends.
        Otherwise the stream ends with the connection.
    :param source: name of the simulator.
    :param parameters: other parameters of the driver or of the simulator, by name, such as
        ``{'config_file': 'sensor.json', 'control_port': 8999}``.
    :returns: a context manager to iterate over, once.
    :raises ConfigError: if a parameter is unknown or out of its range.
    """
    return Stream(live_settings({'source': source, **parameters, 'host': host, 'port': port}),
                  reconnect=reconnect)
