# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A recording, whatever its form: frames one after another, undecoded, in constant memory.

May know: where files lie, which form a recording has. Must not know: what is in a frame but its
time. Source of truth: PROTOCOL 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
import math
import os
from pathlib import Path
import stat
import sys
from typing import BinaryIO, Protocol, TYPE_CHECKING

import msgspec

from state_sensor_ros.errors import told, TrajectoryFormatError, TruncatedError
from state_sensor_ros.monodrive.decoder import Decoder
from state_sensor_ros.monodrive.trajectory import Payload, read_payloads
from state_sensor_ros.payloads import Packet
from state_sensor_ros.recordings.recorded_frame import Entry, PERIOD_S
from state_sensor_ros.rep103 import DEFAULT_UNITS, Units

if TYPE_CHECKING:
    from state_sensor_ros.payloads import PayloadDecoder

STANDARD_INPUT = '-'
_METADATA = 'metadata.yaml'
_STORAGE_SUFFIXES = ('.mcap', '.db3')
_COMPRESSED_SUFFIXES = tuple(f'{suffix}.zstd' for suffix in _STORAGE_SUFFIXES)
# By what a bag of CARLA is known; all else about CARLA is loaded only then.
_CARLA_STATUS = ('player/status', 'state_sensor_ros/msg/CarlaPlayerStatus')


def is_bag(path: Path) -> bool:
    """Tell whether ``path`` is a bag's folder or a single storage file of one."""
    return (path / _METADATA).is_file() or (path.suffix in _STORAGE_SUFFIXES and path.is_file())


def refuse_folders(path: str) -> None:
    """
    Refuse what others read but Replay Mode does not.

    :raises TrajectoryFormatError: when ``path`` is a bag, or a folder of any kind.
    """
    where = Path(path)
    if path != STANDARD_INPUT and (is_bag(where) or where.is_dir()):
        raise TrajectoryFormatError(path, 'a bag or a folder', 'a trajectory, NAME.json; '
                                    '`state_sensor convert` makes one of a bag')


class Recording(Protocol):
    """
    Frames to be read from the beginning as often as wanted, except from standard input.

    ``name`` of the file; ``decoder`` of its payloads; ``total`` and ``unit`` (``B`` or ``frame``)
    say what :attr:`Entry.position` goes up to, None where nobody knows; ``cut`` is set behind the
    last frame of a trajectory that ends before its array does.
    """

    name: str
    cut: TruncatedError | None
    decoder: PayloadDecoder
    total: int | None
    unit: str

    def entries(self) -> Iterator[Entry]:
        """
        Yield all frames, from the first one on; of a trajectory that was cut, all whole ones.

        :raises TrajectoryFormatError: where the recording is damaged, or cut in its first frame.
        """

    def close(self) -> None:
        """Close what is open; closing twice is quiet."""


@contextmanager
def opened(path: str, units: Units = DEFAULT_UNITS, topic: str = '', *,
           max_bag_bytes: int | None = None) -> Iterator[Recording]:
    """Do what :func:`open_recording` does, and close the recording at the end."""
    recording = open_recording(path, units, topic, max_bag_bytes=max_bag_bytes)
    try:
        yield recording
    finally:
        recording.close()


def open_recording(path: str, units: Units = DEFAULT_UNITS, topic: str = '', *,
                   max_bag_bytes: int | None = None) -> Recording:
    """
    Open a trajectory, a bag or a dataset of CARLA.

    :param path: a file, the folder of a bag or dataset, or ``-`` for a trajectory on standard
        input.
    :param units: what the simulator means by extents and by ``s``.
    :param topic: of a bag, where it has several of the type StateFrame.
    :param max_bag_bytes: of a bag, the size above which a message or a chunk is refused; None for
        the usual one.
    :raises TrajectoryFormatError: when it is neither, or cannot be read.
    """
    if path == STANDARD_INPUT:
        return TrajectoryRecording(path, units)
    where = Path(path)
    if is_bag(where):
        return BagRecording(where, topic, max_bag_bytes)
    if where.name.endswith(_COMPRESSED_SUFFIXES) and where.is_file():
        raise TrajectoryFormatError(path, 'a compressed file of a bag', "the bag's folder")
    if topic:
        raise TrajectoryFormatError(path, 'no bag', f'one with the topic {topic}')
    if where.is_dir():
        # What CARLA needs, protobuf and an image library, is loaded for CARLA only.
        from state_sensor_ros.carla.recording import DatasetRecording
        return DatasetRecording(where)
    return TrajectoryRecording(path, units)


class _Head(msgspec.Struct, gc=False):
    """Where v0, v1 and v2 name their time."""

    game_time: float | None = None


class _Inner(msgspec.Struct, gc=False):
    """Where v1t names its time: in each actor."""

    frame: list[_Head]


_HEAD = msgspec.json.Decoder(_Head)
_INNER = msgspec.json.Decoder(_Inner)


def game_time_of(payload: bytes) -> float:
    """
    Look for the time of a frame without decoding it.

    :param payload: JSON of any generation.
    :returns: s, NaN where there is none or the payload is unusual.
    """
    try:
        game_time = _HEAD.decode(payload).game_time
        if game_time is None:
            game_time = next((actor.game_time for actor in _INNER.decode(payload).frame), None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return math.nan
    return math.nan if game_time is None else game_time


class TrajectoryRecording:
    """
    A trajectory file, or standard input for ``-``.

    :param path: opened here, so that what is missing is missed at once.
    """

    unit = 'B'

    def __init__(self, path: str, units: Units = DEFAULT_UNITS) -> None:
        self.name = path
        self.decoder: PayloadDecoder = Decoder(units)
        self.cut: TruncatedError | None = None
        self.total: int | None = None
        self._file: BinaryIO = sys.stdin.buffer
        if path != STANDARD_INPUT:
            try:
                self._file = open(path, 'rb')  # noqa: SIM115
            except OSError as error:
                raise TrajectoryFormatError(path, told(error), 'a trajectory or a bag') from error
            status = os.fstat(self._file.fileno())
            # A pipe has no size and no beginning to go back to.
            self.total = status.st_size if stat.S_ISREG(status.st_mode) else None

    def entries(self) -> Iterator[Entry]:
        """Yield all frames; of a file that was cut, all whole ones."""
        if self.total is not None:
            self._file.seek(0)
        self.cut = None
        game_time = -PERIOD_S
        for payload in self._payloads():
            clock_s = game_time_of(payload.data)
            game_time = game_time + PERIOD_S if math.isnan(clock_s) else clock_s
            yield Entry(Packet(payload.data, game_time, 0, 0), clock_s, payload.index,
                        f'line {payload.line} column {payload.column}',
                        payload.offset + len(payload.data))

    def _payloads(self) -> Iterator[Payload]:
        try:
            yield from read_payloads(self._file, self.name)
        except TruncatedError as error:
            if not error.n_frames:
                raise
            self.cut = error

    def close(self) -> None:
        """Close the file."""
        if self._file is not sys.stdin.buffer:
            self._file.close()


class BagRecording:
    """
    The StateFrames of a bag, and of CARLA what belongs to them; their time is their stamps'.

    :ivar is_of_carla: whether there is something that only CARLA has.
    """

    unit = 'frame'

    def __init__(self, path: Path, topic: str = '', max_bag_bytes: int | None = None) -> None:
        # What a bag needs, rosbags and its types, is loaded for bags only.
        from state_sensor_ros.recordings.bag_limits import BagLimits, DEFAULT_LIMITS
        from state_sensor_ros.recordings.bag_reader import Bag
        from state_sensor_ros.recordings.state_frames import StateFrameDecoder
        self.name = str(path)
        self.decoder: PayloadDecoder = StateFrameDecoder()
        self.cut: TruncatedError | None = None
        limits = DEFAULT_LIMITS if max_bag_bytes is None else BagLimits(max_bag_bytes)
        self._bag = Bag(path, topic, limits)
        self.topic = self._bag.topic
        self.total: int | None = self._bag.n_messages
        self.is_of_carla = self._bag.has(*_CARLA_STATUS)
        if self.is_of_carla:
            from state_sensor_ros.carla.messages import MessagesDecoder
            self.decoder = MessagesDecoder()

    def entries(self) -> Iterator[Entry]:
        """Yield all frames in the order of their log times."""
        from state_sensor_ros.recordings.state_frames import stamp_s
        for index, (data, payload) in enumerate(self._payloads()):
            clock_s = stamp_s(data)
            yield Entry(Packet(payload, clock_s, 0, 0), clock_s, index,
                        f'message {index} of {self.topic}', index + 1)

    def _payloads(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield each StateFrame, and what the decoder takes."""
        if not self.is_of_carla:
            return ((data, data) for _, data in self._bag.messages())
        from state_sensor_ros.carla.messages import (
            FRAME,
            pack_parts,
            parts_of_frames,
            TOPICS_WITH_IMAGES,
        )
        return ((parts[FRAME], pack_parts(parts)) for parts in parts_of_frames(
            self._bag.messages_of_node(TOPICS_WITH_IMAGES)))

    def messages_of_node(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the messages of other topics of the same node, as :class:`Bag` does."""
        return self._bag.messages_of_node(names)

    def close(self) -> None:
        """Close the bag."""
        self._bag.close()
