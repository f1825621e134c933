# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A recording of any form as an iterable of frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
import os
from types import TracebackType

from state_sensor_ros.errors import StateError, TruncatedError
from state_sensor_ros.files.formats import ReadOptions
from state_sensor_ros.files.frame_selection import (
    EVERYTHING,
    RecordingSelection,
    SelectedRecording,
)
from state_sensor_ros.files.recording import Recording, SensorRecording
from state_sensor_ros.frame import Frame, Needs
from state_sensor_ros.library.faults import CUT, FaultList, FrameFault
from state_sensor_ros.rep103 import Units
from state_sensor_ros.settings import DEFAULTS, parse_settings
from state_sensor_ros.simulators.opening import open_any


class FrameRecording:
    """
    The frames of a recording, one after the other, in constant memory.

    A ``for`` loop reads all of them; the next loop begins at the first one again. Two loops at the
    same time need two recordings.

    :param recording: of any form; :meth:`close` closes it.
    :param is_timed: whether a frame without a ``game_time`` gets one that continues at 20 Hz, as
        it is published and stamped. Otherwise it has NaN.
    :param selection: part of the recording to read.
    :ivar name: path of the recording as it was given.
    :ivar form: in words.
    :ivar faults: what the last loop left out: a list of :class:`FrameFault`, empty for nothing. It
        has the first thousand; ``faults.counts`` counts all of them by kind.
    :ivar index: of the payload that the last frame is from, from 0.
    :ivar place: of that payload in the recording, in words.
    :ivar payload: its bytes, for what a :class:`Frame` does not have: JSON of a trajectory, a
        serialised message of a bag, of other recordings in a form of the package's own.
    :ivar n_bytes: in all payloads of the last loop until then, also in those without a frame.
    :ivar position: how much of the recording lies before the end of the last frame, of ``total``.
    :ivar total: that of the whole recording, None where it is unknown; ``unit`` (``B`` or
        ``frame``) is that of both.
    :ivar sensor_counts: of a dataset or a bag of CARLA, the number of images or clouds of points
        by name and kind of a sensor; None of other recordings.
    :ivar ignored: names of the files of a dataset that are not read.
    """

    def __init__(self, recording: Recording, *, is_timed: bool = True,
                 selection: RecordingSelection = EVERYTHING) -> None:
        self.name, self.form = recording.name, recording.form
        self.simulator = recording.simulator
        self.total, self.unit = recording.total, recording.unit
        self.faults = FaultList()
        self.index, self.place, self.position = -1, '', 0
        self.payload: bytes | bytearray = b''
        self.n_bytes = 0
        self.sensor_counts: Mapping[tuple[str, str], int] | None = None
        self.ignored: Sequence[str] = ()
        if isinstance(recording, SensorRecording):
            self.sensor_counts, self.ignored = recording.sensor_counts, recording.ignored
        self._recording: Recording = recording if selection.has_all \
            else SelectedRecording(recording, selection)
        self._is_timed = is_timed
        self._n_loops = 0
        self._is_closed = False

    @property
    def missing(self) -> list[str]:
        """Return the selected names of actors that no frame of the last loop had."""
        return sorted(self._recording.missing) \
            if isinstance(self._recording, SelectedRecording) else []

    @property
    def needs(self) -> Needs:
        """Return the parts of a frame that are decoded."""
        return self._recording.decoder.needs

    @needs.setter
    def needs(self, needs: Needs) -> None:
        self._recording.decoder.needs = needs

    @property
    def cut(self) -> TruncatedError | None:
        """Return what is missing at the end, after a loop over a trajectory without its end."""
        return self._recording.cut

    def __iter__(self) -> Iterator[Frame]:
        """
        Yield all frames; of a trajectory that was cut, all whole ones.

        :raises TrajectoryFormatError: where the recording is damaged.
        :raises StateError: where it is closed, or another loop over it has begun.
        """
        self._n_loops += 1
        number = self._n_loops
        self.faults.clear()
        self.n_bytes = 0
        if self._is_closed:
            raise StateError(self.name, 'a closed recording', 'an open one')
        for recorded in self._recording.frames():
            self.index, self.place = recorded.index, recorded.place
            self.position, self.payload = recorded.position, recorded.packet.payload
            self.n_bytes += len(self.payload)
            for frame in self.faults.frames_of(
                    self._recording.decoder, recorded.packet, recorded.place,
                    index=recorded.index, is_timed=self._is_timed):
                yield frame
                if self._is_closed or self._n_loops != number:
                    raise StateError(self.name, 'a second loop, or the end of the recording, '
                                     'inside of a loop', 'one loop at a time')
        if self.cut is not None:
            self.faults.add(FrameFault(CUT, 'end', self.cut.warning))

    def close(self) -> None:
        """Close the recording; a second call has no effect."""
        self._is_closed = True
        self._recording.close()

    def __enter__(self) -> FrameRecording:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()


def open_recording(path: str | os.PathLike[str], *, topic: str = '',
                   obb_extents: str = DEFAULTS.obb_extents,
                   road_s_unit: str = DEFAULTS.road_s_unit,
                   max_bag_bytes: int | None = None,
                   is_timed: bool = True) -> FrameRecording:
    """
    Open a recording: a trajectory, a rosbag2 bag or a dataset of CARLA.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     for frame in recording:
    ...         ego_xyz = frame.position_xyz[frame.ego]
    >>> frame.position_xyz.shape == (len(frame.names), 3)
    True
    >>> recording.faults
    []

    :param path: of a trajectory (also ``.json.gz`` and ``.json.zst``), of the folder or the
        ``.mcap`` or ``.db3`` file of a bag, or of the folder of a dataset; ``-`` for a trajectory
        on standard input.
    :param topic: of a bag that has the frames of several drivers.
    :param obb_extents: ``half`` for simulators that send half lengths of boxes.
    :param road_s_unit: unit of ``s`` in the trajectory, ``cm`` or ``m``.
    :param max_bag_bytes: size above which a message or a chunk of a bag is refused; None for 64
        MiB.
    :param is_timed: whether a frame without a ``game_time`` gets one that continues at 20 Hz, as
        the driver would stamp it; otherwise it has NaN.
    :returns: a context manager to iterate over, any number of times.
    :raises TrajectoryFormatError: where it cannot be read, or has no known form.
    :raises ConfigError: where a parameter is out of its range.
    """
    settings = parse_settings({'obb_extents': obb_extents, 'road_s_unit': road_s_unit})
    return FrameRecording(open_any(os.fspath(path), ReadOptions(
        Units(settings.obb_extents, settings.road_s_unit), topic, max_bag_bytes)),
        is_timed=is_timed)
