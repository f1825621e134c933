# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Packets, decoded frames with their faults, and the interface of a payload decoder."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
import math
from typing import Protocol, TypeAlias

import numpy as np

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Bools, EVERYTHING, Floats, Frame, Needs
from state_sensor_ros.texts import counted

_MAX_FAULTS = 10_000
# Called with a kind, by which repetitions are throttled, and one line about what was found.
Report: TypeAlias = Callable[[str, str], None]


def ignore(*text: str) -> None:
    """Report nowhere: a :data:`Report`, or another call with texts, without effect."""


DROPPED = 'dropped'
DUPLICATE = 'duplicate'
OTHER_ID = 'other_id'
# A whole packet that is not a frame.
LOST = 'lost'
IGNORED = 'ignored'
# A person in a vehicle, who is not in the frame; before the name of a type, actors whose class and
# size are assumed; a file that the recording needs and does not contain; another actor that could
# be the ego.
RIDER, UNDECLARED, MISSING, RIVAL = 'rider', 'undeclared_type_', 'missing_file', 'second_ego'


@dataclass(slots=True, eq=False)
class FutureFrame:
    """The poses in a frame of a recording, and the next frame of the same run."""

    game_time: float  # s
    names: tuple[str, ...]  # N raw names
    # (N, 7) float64, centers of the actors' boxes xyz (m) and orientations xyzw of the actors,
    # global frame.
    poses: Floats
    are_usable: Bools  # (N,) bool
    # None at the end of the run. It is set before the packets of earlier frames within a horizon
    # are read, and does not change afterward.
    following: FutureFrame | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """One faulty actor, member or packet, ``error`` with its key path."""

    # LOST for a packet, DROPPED or DUPLICATE for an actor that is not in the frame, OTHER_ID for
    # one that has another id, IGNORED for a member that is not used, RIDER, UNDECLARED, MISSING,
    # RIVAL.
    kind: str
    error: DecodeError
    n: int = 1  # number of faults for which it stands


class Faults:
    """
    What was wrong with single actors and packets, in the order in which it was found.

    The thread that reads frames adds; the one that uses them takes.
    """

    def __init__(self) -> None:
        # Bounded: a program that never takes keeps the last ones.
        self._new: deque[Fault] = deque(maxlen=_MAX_FAULTS)

    def add(self, kind: str, error: DecodeError, n: int = 1) -> None:
        """Add a fault; the arguments are those of :class:`Fault`."""
        self._new.append(Fault(kind, error, n))

    def take(self) -> tuple[Fault, ...]:
        """Return the faults since the last call."""
        return tuple(self._new.popleft() for _ in range(len(self._new)))


@dataclass(frozen=True, slots=True)
class Decoded:
    """A frame, and a fault for each actor that was dropped from it or has another id."""

    frame: Frame
    faults: tuple[Fault, ...]


# Makes a frame of what a source has received, with the parts that are used.
LateFrame: TypeAlias = Callable[[Needs], Decoded]


@dataclass(frozen=True, slots=True)
class Packet:
    """One payload and the times in its header, or one frame that was never a payload."""

    payload: bytes | bytearray
    game_time: float  # s
    time: int  # s since the Unix epoch
    sample_count: int  # 0 if the header has none
    is_alone: bool = True  # False for one of several frames with the same header
    is_behind_gap: bool = False  # True if a seek or a restart of the played recording precedes it
    # The poses of its frame if the recording is read ahead, else None.
    upcoming: FutureFrame | None = None
    # The frame of a source of frames, whose ``payload`` is empty, what makes it when it is used,
    # or the error in its place; None for a payload.
    decoded: Decoded | LateFrame | DecodeError | None = None


class PayloadDecoder(Protocol):
    """Decodes the payloads of one source."""

    # Parts of the frame that are used afterward; may be set between payloads. ``unknown_members``
    # key paths that were ignored so far.
    needs: Needs

    @property
    def unknown_members(self) -> frozenset[str]:
        """Key paths that were ignored so far."""

    def decode(self, payload: bytes | bytearray | memoryview, *, game_time: float = ...,
               time: int = ..., sample_count: int = ...) -> list[Decoded]:
        """
        Decode one payload.

        :param payload: one frame, or several if the format allows it.
        :param game_time: time in the header of the packet, for a payload without one, s.
        :param time: wall time in the header, for a payload without one, s since the Unix epoch.
        :param sample_count: number in the header, for a payload without one.
        :raises DecodeError: if the payload is not a frame.
        """

    def split(self, payload: bytes | bytearray) -> Sequence[bytes | bytearray]:
        """
        Return the payload of each frame in a payload; may be called from any thread.

        :param payload: one frame, or several if the format allows it.
        :returns: undecoded, in their order; the payload itself if it cannot be split.
        """


class SingleFrameDecoder:
    """Base of decoders that decode all parts of payloads of one frame each."""

    needs: Needs = EVERYTHING
    unknown_members: frozenset[str] = frozenset()

    def split(self, payload: bytes | bytearray) -> Sequence[bytes | bytearray]:
        """Return ``payload`` as the only one: it is one frame."""
        return (payload,)


class FrameDecoder(SingleFrameDecoder):
    """The decoder of a source or recording of frames: it has no payloads to decode."""

    def decode(self, payload: bytes | bytearray | memoryview, *, game_time: float = math.nan,
               time: int = 0, sample_count: int = 0) -> list[Decoded]:
        """
        Refuse a payload.

        :raises DecodeError: always.
        """
        raise DecodeError('payload', counted(len(payload), 'byte'), 'a frame')


class FrameSelection(Protocol):
    """A selection of frames by their times, and of their actors, in the order of the frames."""

    def keeps(self, time_s: float) -> bool:
        """Return whether the next frame, at a ``game_time`` in s, is used."""

    def actors_of(self, frame: Frame) -> Frame:
        """Return a frame with the actors that are used."""


class SelectingDecoder:
    """A decoder whose frames have the selected actors only."""

    # times: whether to leave out frames by their times, which a payload of a live stream has only
    # once it is decoded.

    def __init__(self, decoder: PayloadDecoder, selector: FrameSelection, *,
                 times: bool = False) -> None:
        self._decoder, self._selector, self._times = decoder, selector, times

    @property
    def needs(self) -> Needs:
        """Return the parts of a frame that are used."""
        return self._decoder.needs

    @needs.setter
    def needs(self, needs: Needs) -> None:
        self._decoder.needs = needs

    @property
    def unknown_members(self) -> frozenset[str]:
        """Return the key paths that were ignored so far."""
        return self._decoder.unknown_members

    def split(self, payload: bytes | bytearray) -> Sequence[bytes | bytearray]:
        return self._decoder.split(payload)

    def decode(self, payload: bytes | bytearray | memoryview, *, game_time: float = math.nan,
               time: int = 0, sample_count: int = 0) -> list[Decoded]:
        return self.selected(self._decoder.decode(
            payload, game_time=game_time, time=time, sample_count=sample_count))

    def selected(self, decoded: Sequence[Decoded]) -> list[Decoded]:
        """Return the frames that are used, with their selected actors."""
        return [replace(item, frame=self._selector.actors_of(item.frame)) for item in decoded
                if not self._times or self._selector.keeps(item.frame.game_time)]


# What a source or recording of frames yields: a frame, one with the faults of actors that were
# dropped, or the error in place of a frame that cannot be read.
FrameLike: TypeAlias = Frame | Decoded | DecodeError


def packet_of(item: FrameLike | Packet) -> Packet:
    if isinstance(item, Packet):
        return item
    if isinstance(item, DecodeError):
        return Packet(b'', math.nan, 0, 0, decoded=item)
    decoded = Decoded(item, ()) if isinstance(item, Frame) else item
    frame = decoded.frame
    return Packet(b'', frame.game_time, frame.time, frame.sample_count, decoded=decoded)


class FrameReader(Protocol):
    """
    Frames of a recording or a live stream.

    ``faults`` what is wrong with single actors and packets; ``details`` whether boxes, wheels and
    inputs are used, which may change between two frames.
    """

    faults: Faults
    details: bool

    def frames(self) -> Iterator[Frame]:
        """Yield the frames until the recording or the stream ends, or :meth:`close`."""

    def close(self) -> None:
        """Close what is open; closing twice is quiet."""


def packets_of(reader: FrameReader) -> Iterator[Packet]:
    """Yield the frames and faults of a reader of frames as packets."""
    for frame in reader.frames():
        yield from _packets_before(faults := reader.faults.take())
        yield packet_of(Decoded(frame, tuple(each for each in faults if each.kind != LOST)))
    yield from _packets_before(reader.faults.take())


def _packets_before(faults: Sequence[Fault]) -> Iterator[Packet]:
    yield from (packet_of(each.error) for each in faults if each.kind == LOST)


# Warnings of numpy about unusual numbers, which are NaN afterward, are for no user.
@np.errstate(all='ignore')
def decode_packet(decoder: PayloadDecoder, packet: Packet, *,
                  is_timed: bool = True) -> Sequence[Decoded]:
    """
    Return the frames of a packet.

    :param decoder: decoder of the payloads of its source.
    :param packet: packet with a payload or a frame.
    :param is_timed: whether a frame without times gets those of the packet.
    :raises DecodeError: if the payload is not a frame.
    """
    decoded = packet.decoded
    if decoded is None:
        return decoder.decode(
            packet.payload, game_time=packet.game_time, time=packet.time,
            sample_count=packet.sample_count) if is_timed else decoder.decode(packet.payload)
    if isinstance(decoded, DecodeError):
        # A new error: the traceback of a raised one keeps the frame in memory.
        raise DecodeError(decoded.where, decoded.found, decoded.expected)
    if not isinstance(decoded, Decoded):
        decoded = decoded(decoder.needs)
    if is_timed and math.isnan(decoded.frame.game_time):
        decoded = replace(decoded, frame=replace(decoded.frame, game_time=packet.game_time))
    return decoder.selected((decoded,)) if isinstance(decoder, SelectingDecoder) else (decoded,)
