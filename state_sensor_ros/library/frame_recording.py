# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A recording of any format as a sequence of frames, and the faults that were found in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from io import BytesIO
from itertools import islice
import math
import os
import threading
from types import TracebackType
from typing import overload, TYPE_CHECKING

import numpy as np

from state_sensor_ros.classes import EGO_TAG
from state_sensor_ros.drawing.style import (
    COLORINGS,
    is_page_size,
    LEAST_HEIGHT,
    LEAST_WIDTH,
    MOST_INCHES,
    ORDINARY,
    PAPER,
    PictureStyle,
)
from state_sensor_ros.errors import (
    ConfigError,
    importing,
    MissingFileError,
    StateError,
    TrajectoryFormatError,
)
from state_sensor_ros.files import open_any, ReadOptions, STANDARD_INPUT
from state_sensor_ros.files.frame_selection import (
    EVERYTHING,
    RecordingSelection,
    SelectedRecording,
)
from state_sensor_ros.files.input import closed_on_failure
from state_sensor_ros.files.recording import RecordingReader
from state_sensor_ros.frame import Floats, Frame
from state_sensor_ros.library.frame_index import FrameIndex, LaneChange
from state_sensor_ros.library.frame_loop import FrameLoop
from state_sensor_ros.library.notebook import (
    Animation,
    RecordedActors,
    recording_html,
    scene_of,
)
from state_sensor_ros.library.safety import check_horizon, SafetyCollector
from state_sensor_ros.library.track import Track, TrackCollector
from state_sensor_ros.perception.frame_perceiver import FramePerceiver
from state_sensor_ros.settings import DEFAULTS, NAMES, NO_PARAMETERS, parse_settings
from state_sensor_ros.simulators import checked_settings
from state_sensor_ros.texts import counted, one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from state_sensor_ros.drawing.scene import Scene
    from state_sensor_ros.library.safety import Safety


class Recording(FrameLoop):
    """
    The frames of a recording.

    A ``for`` loop reads all of them, one after the other, in constant memory; the next loop begins
    at the first one again. Two loops at the same time need two recordings. The first use of
    ``len()``, ``recording[i]``, :meth:`at`, the times, :attr:`actors` or :meth:`lane_changes`
    reads the recording once more, apart from any loop, and keeps the places of the frames.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     len(recording), len(recording[-1]), round(recording.duration, 2)
    (10, 21, 0.45)
    >>> recording
    Recording('drive.json', v2, 10 frames, 0.45 s)

    :param recording: reader of any format; :meth:`close` closes it.
    :param reopen: function that opens the same recording again; None if it can be read once only.
    :param is_timed: whether a frame without a ``game_time`` gets one that continues at 20 Hz, as
        when it is published; otherwise it has NaN.
    :param selection: part of the recording to read.
    :ivar name: path of the recording as given.
    :ivar format_name: description of the format.
    :ivar faults: faults of the last loop, a list of :class:`FrameFault`. It has the first
        thousand; ``faults.counts`` counts all of them by kind.
    :ivar index: number of the last frame in the recording, from 0; frames that cannot be read
        count.
    :ivar place: description of its place in the recording.
    :ivar total: size of the whole recording, None if it is unknown; ``unit`` (``B`` or
        ``frame``) is that of both.
    :ivar sensor_counts: for a dataset, the number of images by name and kind of a camera; None
        for other recordings.
    :ivar ignored: names of the files of a dataset that are not read.
    """

    def __init__(self, recording: RecordingReader, *, is_timed: bool = True,
                 selection: RecordingSelection = EVERYTHING,
                 reopen: Callable[[], RecordingReader] | None = None) -> None:
        super().__init__(recording, is_timed=is_timed, selection=selection)
        self._reopen = reopen
        # An index, and the reader that it was made with, for reading it apart from a loop; the
        # last loop over that one, and the number of its next frame.
        self._index: FrameIndex | None = None
        self._reader: RecordingReader | None = None
        self._loop: Iterator[Frame] = iter(())
        self._next = -1
        self._lock = threading.RLock()

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self._indexed())

    def __bool__(self) -> bool:
        """Return True, also for a recording without frames."""
        return True

    @overload
    def __getitem__(self, i: int) -> Frame: ...

    @overload
    def __getitem__(self, i: slice) -> list[Frame]: ...

    def __getitem__(self, i: int | slice) -> Frame | list[Frame]:
        """
        Return a frame by its number, from 0 or with -1 from the end, or a list of frames.

        :raises IndexError: if there is no such frame.
        """
        numbers = range(len(self._indexed()))
        if isinstance(i, slice):
            return [self._frame(k) for k in numbers[i]]
        try:
            return self._frame(numbers[i])
        except IndexError:
            raise IndexError(f'frame {i}: {self.name} has {counted(len(numbers), "frame")}'
                             ) from None

    def at(self, game_time: float) -> Frame:
        """
        Return the frame that is nearest to a time.

        :param game_time: s; beyond the recording, its earliest or latest frame is the nearest.
        :raises StateError: if no frame has a time.
        :raises ConfigError: if it is NaN.
        """
        if math.isnan(game_time):
            raise ConfigError('game_time', 'NaN', 'a time')
        times = self._times()
        # Infinity is as far from all of them.
        nearest = np.clip(game_time, np.nanmin(times), np.nanmax(times))
        return self._frame(int(np.nanargmin(np.abs(times - nearest))))

    @property
    def start(self) -> float:
        """Game time of the first frame that has one, s."""
        times = self._times()
        return float(times[np.isfinite(times)][0])

    @property
    def end(self) -> float:
        """Game time of the last frame that has one, s."""
        times = self._times()
        return float(times[np.isfinite(times)][-1])

    @property
    def duration(self) -> float:
        """Sum of all steps of the clock forward, s: ``end - start`` for a single run."""
        return self._indexed().duration

    @property
    def actors(self) -> RecordedActors:
        """Actors by raw name, in order of appearance."""
        return self._indexed().actors

    def lane_changes(self) -> list[LaneChange]:
        """Return the lane changes of all actors, in order of time, without changes of road."""
        return self._indexed().lane_changes

    def track(self, name: str) -> Track:
        """
        Return an actor over time; this reads the recording.

        :param name: its raw name.
        :raises StateError: if no frame has it.
        """
        return self._track(TrackCollector(name))

    def ego_track(self) -> Track:
        """
        Return the ego over time; this reads the recording.

        :raises StateError: if no frame has an ego.
        """
        return self._track(TrackCollector(None))

    def safety(self, actor: str = 'ego', *, horizon: float = 5.0) -> Safety:
        """
        Return measures of safety of an actor for each frame; this reads the recording.

        >>> import state_sensor_ros as sensor
        >>> with sensor.open_recording('drive.json') as recording:
        ...     safety = recording.safety()
        >>> len(safety.time_to_collision) == len(recording)
        True

        :param actor: its raw name, or ``ego`` for the ego.
        :param horizon: longest post-encroachment time that is found, s.
        :raises StateError: if no frame has it.
        :raises ConfigError: if ``horizon`` is out of its range.
        """
        check_horizon(horizon)
        collector = SafetyCollector(actor, horizon)
        for frame in self._read_apart(details=True):
            collector.add(frame)
        return collector.safety()

    def plot(self, *, at: float | None = None, color: str = 'speed', names: bool = True,
             paper: bool = False, size: tuple[float, float | None] | None = None,
             title: str | None = None) -> Figure:
        """
        Return the picture that `state_sensor render` draws; this reads the recording.

        >>> import state_sensor_ros as sensor
        >>> with sensor.open_recording('drive.json') as recording:
        ...     recording.plot(size=(3.5, None)).savefig('drive.png')

        :param at: time of the boxes, s after the first frame; None for the last frame with the
            ego.
        :param color: what the colors show, ``speed`` or ``actor``.
        :param names: whether to show the names of the actors.
        :param paper: whether it is a figure of a paper, 3.5 inches wide.
        :param size: width and height, inches; height None for that of the content.
        :param title: heading; None for the name of the recording, and for none in a paper.
        :raises MissingLibraryError: if matplotlib is not installed.
        :raises StateError: if it has no frames.
        :raises ConfigError: if a value is out of its range, or the page too small for its content.
        """
        with importing('plot'):
            from state_sensor_ros.drawing.picture import scene_figure
        page = PAPER if paper else ORDINARY
        if size is not None:
            width, height = size
            if not is_page_size(width, height):
                raise ConfigError('size', str(size), f'({LEAST_WIDTH:g}, {LEAST_HEIGHT:g}) to '
                                  f'({MOST_INCHES:g}, {MOST_INCHES:g})')
            page = replace(page, width=width, height=height)
        if title is None:
            title = '' if paper else self._title
        scene = self._scene_to_draw(at, color)
        return scene_figure(scene, PictureStyle(title, color, names, page), at)

    def animate(self, *, at: float = 0.0, color: str = 'speed', names: bool = True,
                title: str | None = None) -> Animation:
        """
        Return an interactive animation, which a notebook shows; this reads the recording.

        :param at: time at which it begins, s after the first frame.
        :param color: what the colors show, ``speed`` or ``actor``.
        :param names: whether the names of the actors are shown at first.
        :param title: heading; None for the name of the recording.
        :raises MissingLibraryError: if plotly is not installed.
        :raises StateError: if it has no frames.
        :raises ConfigError: if ``at`` or ``color`` is out of its range.
        """
        with importing('animate'):
            from state_sensor_ros.drawing.animation import write_animation
        stream, scene = BytesIO(), self._scene_to_draw(at, color)
        write_animation(scene, stream, title=self._title if title is None else title,
                        coloring=color, at_s=at, names=names)
        return Animation(stream.getvalue().decode())

    def select(self, *, tags: Iterable[str] = (), names: Iterable[str] = (), start: float = 0.0,
               end: float = math.inf, rate: float | None = None) -> Recording:
        """
        Return a part of the recording, itself a recording, to be closed like this one.

        :param tags: tags, of which a selected actor has at least one, or a single tag; none for
            all actors.
        :param names: raw names of the selected actors, or a single name; none for all actors.
        :param start: start of the part, s after the first frame.
        :param end: end of the part, s after the first frame.
        :param rate: largest number of frames per second; None for all.
        :raises StateError: if it is closed, or standard input, which can be read once.
        :raises ConfigError: if a number is out of its range.
        """
        for name, value in (('start', start), ('end', end)):
            if math.isnan(value):
                raise ConfigError(name, 'NaN', 'a time')
        if rate is not None and not 0.0 < rate < math.inf:
            raise ConfigError('rate', str(rate), 'a finite number above 0')
        chosen = RecordingSelection(_texts(tags), (), _texts(names), start, end, rate)
        self._check_open()

        def reopen_part() -> RecordingReader:
            return SelectedRecording(self._reopened(), chosen)

        return Recording(reopen_part(), is_timed=self._is_timed, reopen=reopen_part)

    def perceived(self, *, range: float = 0.0, field_of_view: float = 0.0,  # noqa: A002
                  occlusion: float = 0.0, position_std: float = 0.0, yaw_std: float = 0.0,
                  size_std: float = 0.0, velocity_std: float = 0.0, missing: float = 0.0,
                  ghosts: float = 0.0, delay: float = 0.0, seed: int = 0) -> Iterator[Frame]:
        """
        Return a loop over the frames as a sensor of the ego would see them.

        The keywords are the parameters ``perception.*`` of the driver, all off by default. Objects
        that are not seen are missing, the others have noise, and false positives are added.
        The ego and actors that are not objects do not change.

        >>> import state_sensor_ros as sensor
        >>> with sensor.open_recording('drive.json') as recording:
        ...     for frame in recording.perceived(position_std=0.2, missing=0.5, seed=1):
        ...         n_seen = len(frame)
        >>> 1 < n_seen < len(recording[-1])
        True

        :param range: largest distance of a center from the ego's origin, m; 0 for all.
        :param field_of_view: angle about the ego's x axis, deg; 0 for all around.
        :param occlusion: smallest visible share of the width; 0 for off.
        :param position_std: standard deviation of the noise of x and y, m.
        :param yaw_std: standard deviation of the noise of the yaw, rad.
        :param size_std: standard deviation of the noise of each edge, m.
        :param velocity_std: standard deviation of the noise of the velocity along global x
            and y, m/s.
        :param missing: probability that an object is missed in a frame.
        :param ghosts: mean number of false positives in a frame.
        :param delay: time of publication after the scene, s; it changes no frame, because frames
            have the time of the scene.
        :param seed: seed of the random numbers; the same seed gives the same frames.
        :raises ConfigError: if a value is out of its range.
        """
        given = {name: value for name, value in locals().items() if name != 'self'}
        perceiver = FramePerceiver(parse_settings({
            f'perception.{name}': value for name, value in given.items()}))
        return (perceiver.perceived(frame) for frame in self)

    @property
    def _title(self) -> str:
        return one_line(os.path.basename(os.path.abspath(self.name)))

    def _scene_to_draw(self, at: float | None, color: str) -> Scene:
        if color not in COLORINGS:
            raise ConfigError('color', color, ' or '.join(COLORINGS))
        scene = scene_of(self._read_apart(details=True))
        if not len(scene.time_s):
            raise StateError(self.name, 'no frame with a time', 'a recording with frames')
        scene.check_time(at, 'at', self.name)
        return scene

    def _repr_html_(self) -> str:
        return recording_html(self, is_open=not self._is_closed and self._reopen is not None)

    def _reopened(self) -> RecordingReader:
        """Open the same recording with the same selection; its parts outlive this one."""
        if self._reopen is None:
            raise StateError(self.name, 'can be read only once; write the stream to a file first')
        recording = self._reopen()
        recording.is_timed = self._is_timed
        return recording if self._selection.has_all \
            else SelectedRecording(recording, self._selection)

    def _indexed(self) -> FrameIndex:
        """Return the index of the frames; the first call reads the recording."""
        with self._lock:
            if self._index is None:
                self._check_open()
                reader = self._reopened()
                reader.details = False
                with closed_on_failure(reader):
                    self._index = FrameIndex(reader)
                reader.details, self._reader = True, reader
            return self._index

    def _read_apart(self, *, details: bool = False) -> Iterator[Frame]:
        """Yield the frames, apart from any loop."""
        self._check_open()
        with closing(self._reopened()) as reader:
            reader.details = details
            yield from reader.frames()

    def _times(self) -> Floats:
        """Return the game times of the frames; raise StateError if none is known."""
        times = self._indexed().times
        if not np.isfinite(times).any():
            raise StateError(self.name, 'no frame with a time', 'a recording with times')
        return times

    def _frame(self, i: int) -> Frame:
        """Return the frame number ``i`` as in a loop; the loop goes on."""
        index = self._indexed()
        with self._lock:
            self._check_open()
            assert self._reader is not None
            begin, mark = index.before(i)
            if not begin <= self._next <= i:
                self._loop, self._next = self._reader.frames(mark), begin
            n_skipped, self._next = i - self._next, -1
            frame = next(islice(self._loop, n_skipped, None), None)
            if frame is None:
                raise TrajectoryFormatError(self.name, 'a shorter file than before',
                                            'the same file')
            self._next = i + 1
        time_s = float(index.times[i])
        return frame if frame.game_time == time_s or math.isnan(time_s) \
            else replace(frame, game_time=time_s)

    def _track(self, collector: TrackCollector) -> Track:
        for frame in self._read_apart():
            collector.add(frame)
        return collector.track()

    def __repr__(self) -> str:
        index = self._index
        facts = [repr(self.name)]
        if index is not None:
            facts += [index.generation, counted(len(index), 'frame'),
                      f'{round(index.duration, 2):g} s']
        elif self.total is not None and self.unit == 'frame' and self._selection.has_all:
            facts.append(counted(self.total, 'frame'))
        return f'Recording({", ".join(fact for fact in facts if fact)})'

    def close(self) -> None:
        """Close the recording; a second call has no effect."""
        super().close()
        if self._reader is not None:
            self._reader.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()


def _texts(given: Iterable[str]) -> tuple[str, ...]:
    """Return texts as a tuple; a single text is not taken as its characters."""
    return (given,) if isinstance(given, str) else tuple(given)


def open_recording(path: str | os.PathLike[str], *, topic: str = '',
                   obb_extents: str = DEFAULTS.obb_extents,
                   road_s_unit: str = DEFAULTS.road_s_unit,
                   is_timed: bool = True, ego: str = '',
                   parameters: Mapping[str, object] = NO_PARAMETERS) -> Recording:
    """
    Open a recording: a trajectory, a rosbag2 bag, a table, or one of a simulator.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     for frame in recording:
    ...         ego_xyz = frame.position_xyz[frame.ego_row]
    >>> frame.position_xyz.shape == (len(frame.names), 3)
    True
    >>> recording.faults
    []

    :param path: path of a trajectory (also ``.json.gz`` and ``.json.zst``), of the folder or the
        ``.mcap`` or ``.db3`` file of a bag, or in the own format of a simulator, such as the
        folder of a dataset; ``-`` for a trajectory on standard input.
    :param topic: topic of the frames in a bag of several drivers.
    :param obb_extents: ``half`` for simulators that send half lengths of boxes.
    :param road_s_unit: unit of ``s`` in the trajectory, ``cm`` or ``m``.
    :param is_timed: whether a frame without a ``game_time`` gets one that continues at 20 Hz, as
        the driver would stamp it; otherwise it has NaN.
    :param ego: name or tag of the actor that is the ego instead of the one tagged ``ego``; if
        no frame has it, ``recording.unmatched`` says so, with the nearest names.
    :param parameters: parameters of its simulator, by name.
    :returns: a context manager to iterate over, any number of times.
    :raises MissingFileError: if it does not exist; also a FileNotFoundError.
    :raises TrajectoryFormatError: if it cannot be read, or has no known format.
    :raises ConfigError: if a parameter is out of its range, or is not one of a simulator.
    """
    units = {'obb_extents': obb_extents, 'road_s_unit': road_s_unit}
    for unused in sorted({*NAMES}.difference(units).intersection(parameters)):
        raise ConfigError(unused, 'a parameter that reading a recording does not use',
                          'parameters of its simulator')
    # Most recordings need the default simulator only.
    settings = checked_settings(
        {**units, **parameters}, is_live=False) if parameters \
        else parse_settings(units)
    options = ReadOptions(settings, topic)
    name, chosen = os.fspath(path), RecordingSelection(
        ego=EGO_TAG, ego_from=f'ego={ego}', ego_name=ego)

    def reopen() -> RecordingReader:
        reader = open_any(name, options)
        return SelectedRecording(reader, chosen) if ego else reader

    try:
        recording = reopen()
    except TrajectoryFormatError as error:
        if name == STANDARD_INPUT or os.path.lexists(name):
            raise
        raise MissingFileError(error.where, error.found, error.expected) from error
    return Recording(recording, is_timed=is_timed,
                     reopen=None if name == STANDARD_INPUT else reopen)
