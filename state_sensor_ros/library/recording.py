# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A recording of any format as a sequence of frames, or as a table in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from io import BytesIO
from itertools import islice
import math
import os
import threading
from typing import NoReturn, overload, TYPE_CHECKING
import warnings

import numpy as np

from state_sensor_ros import classes, errors, texts
from state_sensor_ros.drawing import style
from state_sensor_ros.errors import ConfigError, importing, StateError
from state_sensor_ros.files import open_any, PARQUET, ReadOptions, STANDARD_INPUT
from state_sensor_ros.files.columns import BatchMaker, selected
from state_sensor_ros.files.frame_selection import RecordingSelection, SelectedRecording
from state_sensor_ros.files.input import closed_on_failure, open_input
from state_sensor_ros.files.recording import RecordingReader
from state_sensor_ros.files.table import reading_parquet
from state_sensor_ros.frame import Floats, Frame
from state_sensor_ros.library.index import FrameIndex, LaneChange, RecordedActors
from state_sensor_ros.library.notebook import Animation, recording_html, scene_of
from state_sensor_ros.library.safety import EGO, Safety, SafetyCollector
from state_sensor_ros.library.stream import FrameLoop, Stream
from state_sensor_ros.library.track import Track, track_of
from state_sensor_ros.perception.perceiver import FramePerceiver
from state_sensor_ros.settings import DEFAULTS, NO_PARAMETERS, parse_settings
from state_sensor_ros.simulators import checked_settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    import pyarrow as pa

    from state_sensor_ros.drawing.scene import Scene

# Files of a folder that are looked at before each access.
_MOST_FILES = 100


class Recording(FrameLoop):
    """
    The frames of a recording.

    A ``for`` loop reads all of them, one after the other, in constant memory; the next loop begins
    at the first one again. Two loops at the same time need two recordings. The first use of
    ``len()``, ``recording[i]``, :meth:`at`, the times, :attr:`actors` or :meth:`lane_changes`
    reads the recording once more, apart from any loop, and keeps the places of the frames; several
    threads may use these and :meth:`track`.

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
    """

    def __init__(self, recording: RecordingReader, *, is_timed: bool = True,
                 reopen: Callable[[], RecordingReader] | None = None) -> None:
        super().__init__(recording, is_timed=is_timed)
        self._reopen, self._is_timed = reopen, is_timed
        self._content = _content_of(self.name)
        # Of one thread at a time: the index, the reader that it was made with, the last loop over
        # that one, and the number of its next frame.
        self._lock = threading.RLock()
        self._index: FrameIndex | None = None
        self._indexed_reader: RecordingReader | None = None
        self._loop: Iterator[Frame] = iter(())
        self._next = -1

    def __iter__(self) -> Iterator[Frame]:
        """Yield all frames; warn of selected names, tags and times that no frame has."""
        yield from super().__iter__()
        self._warn(self.reader)

    def _warn(self, reader: RecordingReader) -> None:
        """Warn of what was selected and is in no frame that ``reader`` has read."""
        for line in getattr(reader, 'unmatched', ()):
            warnings.warn(f'{self.name}: {line}', stacklevel=3)

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self._indexed().times)

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
        numbers = range(len(self))
        if isinstance(i, slice):
            return [self._frame(k) for k in numbers[i]]
        if not -len(numbers) <= i < len(numbers):
            raise IndexError(f'frame {i}: {self.name} has {texts.counted(len(numbers), "frame")}')
        return self._frame(numbers[i])

    def at(self, game_time: float) -> Frame:
        """
        Return the frame that is nearest to a time.

        :param game_time: s; beyond the recording, its earliest or latest frame is the nearest.
        :raises StateError: if no frame has a time.
        :raises ConfigError: if it is NaN.
        """
        if math.isnan(game_time):
            raise ConfigError('game_time', 'NaN', 'a time')
        self._known_times()
        times = np.array(self._indexed().times)
        # Infinity is as far from all of them.
        nearest = np.clip(game_time, np.nanmin(times), np.nanmax(times))
        return self._frame(int(np.nanargmin(np.abs(times - nearest))))

    @property
    def start(self) -> float:
        """Game time of the first frame that has one, s."""
        return float(self._known_times()[0])

    @property
    def end(self) -> float:
        """Game time of the last frame that has one, s."""
        return float(self._known_times()[-1])

    @property
    def duration(self) -> float:
        """Sum of all steps of the clock forward, s: ``end - start`` for a single run."""
        return self._indexed().duration

    @property
    def actors(self) -> RecordedActors:
        """Actors by raw name, in order of appearance."""
        return RecordedActors(self._indexed().actors)

    def lane_changes(self) -> list[LaneChange]:
        """Return the lane changes of all actors, in order of time, without changes of road."""
        return [*self._indexed().lane_changes]

    def track(self, name: str) -> Track:
        """
        Return an actor over time; this reads the recording.

        :param name: its raw name.
        :raises StateError: if no frame has it.
        """
        return track_of(self._read_apart(), name)

    def ego_track(self) -> Track:
        """
        Return the ego over time; this reads the recording.

        :raises StateError: if no frame has an ego.
        """
        return track_of(self._read_apart(), None)

    def safety(self, actor: str = EGO) -> Safety:
        """
        Return measures of safety of an actor for each frame; this reads the recording.

        >>> import state_sensor_ros as sensor
        >>> with sensor.open_recording('drive.json') as recording:
        ...     safety = recording.safety()
        >>> len(safety.time_to_collision) == len(recording)
        True

        :param actor: its raw name, or ``ego`` for the ego.
        :raises StateError: if no frame has it.
        """
        collector = SafetyCollector(actor)
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
        page = style.PAPER if paper else style.ORDINARY
        if size is not None:
            if not style.is_page_size(*size):
                least, most = (style.LEAST_WIDTH, style.LEAST_HEIGHT), style.MOST_INCHES
                raise ConfigError('size', str(size), f'({least[0]:g}, {least[1]:g}) to '
                                  f'({most:g}, {most:g})')
            page = replace(page, width=size[0], height=size[1])
        title = title if title is not None else '' if paper else self._title
        return scene_figure(self._scene_to_draw(at, color),
                            style.PictureStyle(title, color, names, page), at)

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
        return texts.one_line(os.path.basename(os.path.abspath(self.name)))

    def _scene_to_draw(self, at: float | None, color: str) -> Scene:
        if color not in style.COLORINGS:
            raise ConfigError('color', color, ' or '.join(style.COLORINGS))
        scene = scene_of(self._read_apart(details=True))
        if not len(scene.time_s):
            raise StateError(self.name, 'no frame with a time', 'a recording with frames')
        scene.check_time(at, 'at', self.name)
        return scene

    def _repr_html_(self) -> str:
        return recording_html(self, is_open=not self._is_closed and self._reopen is not None)

    def _reopened(self) -> RecordingReader:
        """Open the same recording; its parts outlive this one."""
        if self._reopen is None:
            raise StateError(self.name, 'can be read only once; write the stream to a file first')
        self._check_same()
        recording = self._reopen()
        recording.is_timed = self._is_timed
        return recording

    def _check_same(self) -> None:
        if self._content != _content_of(self.name):
            self._raise_changed()

    def _raise_changed(self) -> NoReturn:
        raise errors.TrajectoryFormatError(
            self.name, 'another content than when it was opened', 'the same, or to open it again')

    def _read_apart(self, *, details: bool = False) -> Iterator[Frame]:
        """Yield the frames, apart from any loop."""
        self._check_open()
        with closing(self._reopened()) as reader:
            reader.details = details
            yield from reader.frames()
            self._warn(reader)

    def _indexed(self) -> FrameIndex:
        """Return the index of the frames; the first call reads the recording."""
        with self._lock:
            if self._index is None:
                self._check_open()
                reader = self._reopened()
                reader.details = False
                with closed_on_failure(reader):
                    self._index = FrameIndex(reader)
                reader.details, self._indexed_reader = True, reader
                self._warn(reader)
            return self._index

    def _known_times(self) -> Floats:
        """Return the game times of the frames that have one; raise StateError without any."""
        times: Floats = np.array(self._indexed().times)
        times = times[np.isfinite(times)]
        if not len(times):
            raise StateError(self.name, 'no frame with a time', 'a recording with times')
        return times

    def _frame(self, i: int) -> Frame:
        """Return the frame number ``i`` as in a loop; the loop goes on."""
        index = self._indexed()
        with self._lock:
            self._check_open()
            self._check_same()
            assert self._indexed_reader is not None
            begin, mark = index.before(i)
            if not begin <= self._next <= i:
                self._loop, self._next = self._indexed_reader.frames(mark), begin
            n_skipped, self._next = i - self._next, -1
            frame = next(islice(self._loop, n_skipped, None), None)
            if frame is None:
                self._raise_changed()
            self._next = i + 1
        time_s = index.times[i]
        return frame if frame.game_time == time_s or math.isnan(time_s) \
            else replace(frame, game_time=time_s)

    def __repr__(self) -> str:
        facts, index = [repr(self.name)], self._index
        if index is not None:
            facts += [index.generation, texts.counted(len(index.times), 'frame'),
                      f'{round(index.duration, 2):g} s']
        elif self.total is not None and self.unit == 'frame':
            facts.append(texts.counted(self.total, 'frame'))
        return f'Recording({", ".join(fact for fact in facts if fact)})'

    def close(self) -> None:
        """Close the recording; a second call has no effect."""
        super().close()
        if self._indexed_reader is not None:
            self._indexed_reader.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _content_of(path: str) -> object:
    """Return what changes with the content of a file, or of those in a folder."""
    found = []
    with suppress(OSError, ValueError):
        # A dataset has a file for each frame.
        files = islice(os.scandir(path), _MOST_FILES) if os.path.isdir(path) else ()
        for file in (path, *files):
            now = os.stat(file)
            found.append((os.fspath(file), now.st_ino, now.st_size, now.st_mtime_ns))
    return sorted(found)


def _texts(given: Iterable[str]) -> tuple[str, ...]:
    """Return texts as a tuple; a single text is not taken as its characters."""
    return (given,) if isinstance(given, str) else tuple(given)


def open_recording(path: str | os.PathLike[str], *, topic: str = '',
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
    :param is_timed: whether a frame without a ``game_time`` gets one that continues at 20 Hz, as
        the driver would stamp it; otherwise it has NaN.
    :param ego: name or tag of the actor that is the ego instead of the one tagged ``ego``; if
        no frame has it, ``recording.unmatched`` says so, with the nearest names.
    :param parameters: parameters of the driver or its simulator, by name, such as
        ``{'obb_extents': 'half', 'road_s_unit': 'm'}``.
    :returns: a context manager to iterate over, any number of times.
    :raises MissingFileError: if it does not exist; also a FileNotFoundError.
    :raises TrajectoryFormatError: if it cannot be read, or has no known format.
    :raises ConfigError: if a parameter is unknown or out of its range.
    """
    # Most recordings need the default simulator only.
    settings = checked_settings(parameters, is_live=False) if parameters else DEFAULTS
    name, options = os.fspath(path), ReadOptions(settings, topic)
    chosen = RecordingSelection(ego=classes.EGO_TAG, ego_from=f'ego={ego}', ego_name=ego)

    def reopen() -> RecordingReader:
        reader = open_any(name, options)
        return SelectedRecording(reader, chosen) if ego else reader

    try:
        return Recording(reopen(), is_timed=is_timed,
                         reopen=None if name == STANDARD_INPUT else reopen)
    except errors.TrajectoryFormatError as error:
        if name == STANDARD_INPUT or os.path.lexists(name):
            raise
        raise errors.MissingFileError(error.where, error.found, error.expected) from error


def read_table(source: str | os.PathLike[str] | Stream | Frame, *,
               columns: Iterable[str] | None = None,
               n_frames: int | None = None, seconds: float | None = None, topic: str = '',
               parameters: Mapping[str, object] = NO_PARAMETERS) -> pa.Table:
    """
    Read a recording, a live stream or a frame as a table: a row for each actor of each frame.

    The columns are those of `state_sensor convert IN OUT.parquet`; their units are in the metadata
    of the schema. Needs pyarrow: ``pip install 'state_sensor_ros[tables]'``.

    >>> import state_sensor_ros as sensor
    >>> table = sensor.read_table('drive.json', columns=['game_time', 'name', 'speed'])
    >>> table.column_names
    ['game_time', 'name', 'speed']
    >>> table.schema.field('speed').metadata[b'unit']
    b'm/s'
    >>> with sensor.open_stream('127.0.0.1', port) as stream:
    ...     len(sensor.read_table(stream, n_frames=2).to_pylist())
    42

    :param source: path of a recording of any format, or of a table in a Parquet file; or a stream;
        or a frame, whose accelerations are NaN unless the source has them.
    :param columns: names, in any order, or a single one; None for all.
    :param n_frames: number of frames after which it ends; None for all. Of a stream, this or
        ``seconds`` is needed, unless its connection ends.
    :param seconds: game time after the first frame at which to end, s; None for all.
    :param topic: see :func:`open_recording`, also for ``parameters``.
    :returns: a table in memory, in the order of the frames: ``.to_pandas()``,
        ``polars.from_arrow(table)``.
    :raises MissingFileError: if there is no such recording.
    :raises TrajectoryFormatError: if the recording cannot be read.
    :raises TransportError: if no connection can be made.
    :raises ConfigError: if there is no such column, or a limit is out of its range.
    :raises MissingLibraryError: if pyarrow is not installed.
    """
    with importing('read_table'):
        from pyarrow import parquet
    if n_frames is not None and n_frames < 1:
        raise ConfigError('n_frames', str(n_frames), 'at least 1')
    if seconds is not None and not seconds >= 0.0:
        raise ConfigError('seconds', str(seconds), 'a time of 0 or more')
    chosen = selected(columns)
    if isinstance(source, Frame):
        return _table_of([source], BatchMaker(chosen, source='', format_name='frames'))
    if isinstance(source, Stream):
        return _table_of(_first(source, n_frames, seconds), BatchMaker(
            chosen, source=source.name, format_name='stream'))
    path = os.fspath(source)
    if path.endswith(PARQUET.suffixes) and n_frames is None and seconds is None:
        if not os.path.exists(path):
            raise errors.MissingFileError(path, 'no such file or directory')
        # pyarrow refuses a name that is not UTF-8.
        with open_input(path) as file, reading_parquet(path):
            return parquet.read_table(file, page_checksum_verification=True, columns=None
                                      if columns is None else [each.name for each in chosen])
    with open_recording(path, topic=topic, parameters=parameters) as recording:
        return _table_of(_first(recording, n_frames, seconds), BatchMaker(
            chosen, source=recording.name, format_name=recording.format_name))


def _table_of(frames: Iterable[Frame], builder: BatchMaker) -> pa.Table:
    import pyarrow as pa
    batches = [batch for frame in frames for batch in builder.add(frame)] + builder.rest()
    return pa.Table.from_batches(batches, schema=builder.schema).unify_dictionaries()


def _first(frames: Iterable[Frame], n_frames: int | None, seconds: float | None,
           ) -> Iterator[Frame]:
    """Yield frames up to one of the limits, each of which is None for no limit."""
    begin_s = math.nan
    for frame in islice(frames, n_frames):
        begin_s = frame.game_time if math.isnan(begin_s) else begin_s
        if seconds is not None and frame.game_time > begin_s + seconds:
            return
        yield frame
