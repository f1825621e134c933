# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The live stream of a simulator as an iterable of frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType

from state_sensor_ros.errors import StateError, TransportError
from state_sensor_ros.frame import Frame
from state_sensor_ros.library.frame_loop import CONNECTION, FaultList, FrameFault
from state_sensor_ros.settings import DEFAULTS, NO_PARAMETERS, Settings
from state_sensor_ros.simulators import checked_settings, find_simulator, with_config_file
from state_sensor_ros.texts import counted


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
        self.faults = FaultList()
        simulator = find_simulator(settings.source)
        self.name, self.n_frames = simulator.address(settings), 0
        self._source = simulator.open_source(
            settings, self._note, reconnect=reconnect)
        self._is_begun = False

    def __iter__(self) -> Iterator[Frame]:
        """
        Yield frames until the connection ends, or :meth:`close` is called.

        :raises TransportError: if no connection can be made, without ``reconnect``.
        :raises FramingError: if the data is not a stream of packets, without ``reconnect``.
        :raises StateError: at the second call.
        """
        if self._is_begun:
            raise StateError(self.name, 'a second loop over a stream; open a new one')
        self._is_begun = True
        health, n_reconnects = self._source.health, 0
        try:
            for frame in self._source.frames():
                if health.n_reconnects > n_reconnects:
                    n_reconnects = health.n_reconnects
                    self._note_connection(health.last_error)
                self.faults.take(self._source.faults)
                self.n_frames += 1
                yield frame
            self.faults.take(self._source.faults)
        except TransportError as error:
            if not health.n_connects:
                raise
            self._note_connection(str(error))

    def _note(self, kind: str, text: str) -> None:
        # Two clocks in a packet are no fault of its frame.
        if kind != 'clocks':
            self._note_connection(text)

    def _note_connection(self, text: str) -> None:
        self.faults.add(FrameFault(CONNECTION, f'packet {self._source.health.n_packets}', text))

    def __repr__(self) -> str:
        return f'Stream({self.name!r}, {counted(self.n_frames, "frame")})'

    def close(self) -> None:
        """End the stream, also from another thread; a second call has no effect."""
        self._source.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()


def open_stream(host: str | None = None, port: int | None = None, *, reconnect: bool = False,
                source: str = DEFAULTS.source, control_port: int = 0,
                obb_extents: str = DEFAULTS.obb_extents,
                road_s_unit: str = DEFAULTS.road_s_unit,
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
    :param control_port: port on which the simulator takes requests; 0 does not configure it.
    :param obb_extents: ``half`` for simulators that send half lengths of boxes.
    :param road_s_unit: unit of ``s``, ``cm`` or ``m``.
    :param parameters: other parameters of the driver or of the simulator, by name, such as
        ``{'config_file': 'sensor.json'}``.
    :returns: a context manager to iterate over, once.
    :raises ConfigError: if a parameter is unknown or out of its range.
    """
    given = {'host': host, 'port': port}
    return Stream(checked_settings(with_config_file({
        'source': source, 'control_port': control_port, 'obb_extents': obb_extents,
        'road_s_unit': road_s_unit, **parameters,
        **{name: value for name, value in given.items() if value is not None}})),
        reconnect=reconnect)
