# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The interface of a reader of frames and of a live source, faults, due times, health."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
import threading
import time
from typing import Protocol, runtime_checkable, TypeAlias

from state_sensor_ros.errors import DecodeError, UnreachableError
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import Settings

# Called with a kind, by which repetitions are throttled, and one line about what was found.
Report: TypeAlias = Callable[[str, str], None]


def ignore(*text: str) -> None:
    """Report nowhere: a :data:`Report`, or another call with texts, without effect."""


# Kinds of faults: an actor that is not in the frame, or is there twice; a packet that is no frame;
# a member that is not used, or that no format has; a person in a vehicle, who is not in the frame;
# before the name of a type, actors whose class and size are assumed; a file that the recording
# needs and does not contain; velocities of another point of the vehicles than is set.
DROPPED, DUPLICATE, LOST = 'dropped', 'duplicate', 'payload'
IGNORED, MEMBER = 'ignored', 'ignored_member'
RIDER, UNDECLARED, MISSING = 'rider', 'undeclared_type_', 'missing_file'
OTHER_POINT = 'velocity_point'
_MAX_FAULTS = 10_000


@dataclass(frozen=True, slots=True)
class Fault:
    """One faulty actor, member or packet, ``error`` with its key path."""

    kind: str
    error: DecodeError
    n: int = 1  # number of faults for which it stands
    place: str = ''  # in the recording or stream, in words
    index: int = 0  # number of its packet, from 0
    defect: Exception | None = None  # unexpected exception that is the cause


class Faults:
    """
    What was wrong with single actors and packets, in the order in which it was found.

    The thread that reads frames adds; the one that uses them takes.

    :ivar n_lost: number of packets that were no frames.
    :ivar index: number of the packet that is read, from 0.
    :ivar place: its place, in words.
    :ivar on_lost: called after a packet that is no frame.
    :ivar has_defects: whether an unexpected exception of a decoder is a lost packet; otherwise
        it is raised.
    """

    def __init__(self) -> None:
        # Bounded: a program that never takes keeps the last ones.
        self._new: deque[Fault] = deque(maxlen=_MAX_FAULTS)
        self.n_lost = self.index = 0
        self.place = ''
        self.on_lost: Callable[[], None] = lambda: None
        self.has_defects = False

    def add(self, kind: str, error: DecodeError, n: int = 1,
            defect: Exception | None = None) -> None:
        """Add a fault of the packet that is read; the arguments are those of :class:`Fault`."""
        # A new error: the traceback of a raised one keeps the packet in memory.
        self._new.append(Fault(kind, DecodeError(error.where, error.found, error.expected), n,
                               self.place, self.index, defect))
        if kind == LOST:
            self.n_lost += 1
            self.index += 1
            self.on_lost()

    def take(self) -> tuple[Fault, ...]:
        """Return the faults since the last call."""
        return tuple(self._new.popleft() for _ in range(len(self._new)))


# A longer time between two frames is a step of the clock and is not waited for.
MAX_GAP_S = 10.0
# A delay above this is not made up for, since that would be a burst of frames.
_MAX_LAG_S = 0.5


@dataclass(slots=True)
class LastError:
    """The last error of one part of the program."""

    text: str = ''  # one line, ``''`` for none
    at_ns: int = 0  # ``time.monotonic_ns()`` of the error

    def note(self, text: str) -> None:
        """Replace the last error by ``text``."""
        self.text, self.at_ns = text, time.monotonic_ns()


def latest(*errors: LastError) -> LastError:
    return max(errors, key=lambda error: error.at_ns)


class Schedule:
    """The times at which the frames of one source are due."""

    # rate: speed relative to real time; 0: as fast as possible. It may be changed.

    def __init__(self, rate: float) -> None:
        self.rate = rate
        # Time at which the last frame was due, None if the next one is due at once.
        self._due_s: float | None = None

    def restart(self) -> None:
        """Make the next frame due at once."""
        self._due_s = None

    def time_left(self, gap_s: float) -> float:
        """Return how long to wait for the next frame, s; at 0 the frame counts as sent."""
        # gap_s: difference of its game time to that of the frame before, s.
        now_s = time.monotonic()
        due_s = now_s if self._due_s is None or not self.rate else self._due_s + gap_s / self.rate
        if due_s > now_s:
            # A longer wait is none that the system can do.
            return min(due_s - now_s, threading.TIMEOUT_MAX)
        self._due_s = due_s if now_s - due_s <= _MAX_LAG_S else now_s
        return 0.0


class SourceState(str, Enum):
    """
    The state of a source; the values are the texts of the diagnostics.

    A connection is connecting, waiting (before the next attempt) or connected, a recording is
    playing, paused or ended; both are closed in the end.
    """

    CONNECTING = 'connecting'
    WAITING = 'waiting'
    CONNECTED = 'connected'
    PLAYING = 'playing'
    PAUSED = 'paused'
    ENDED = 'ended'
    CLOSED = 'closed'

    # In all versions of Python the text of a member is its value.
    __str__ = str.__str__


class Failures:
    """
    The failures of a source in a row that have one reason and no new frame between them.

    A simulator that is not running yet is not counted.

    :ivar limit: number of them after which the source ends with the last one; None for no limit.
    """

    def __init__(self) -> None:
        self.n = 0
        self.limit: int | None = None
        self._last: tuple[str, float] | None = None

    @property
    def are_final(self) -> bool:
        """Whether the limit is reached."""
        return self.limit is not None and self.n >= self.limit

    def add(self, error: Exception | None, progress: float) -> None:
        """Count a failure."""
        # error: the failure, whose text is the reason; None if the peer ended the stream.
        # progress: game time of the last frame, s, or number of packets received: equal to the one
        # before if there was no new frame.
        this = str(error), progress
        is_counted = error is not None and not isinstance(error, UnreachableError)
        self.n = is_counted * (self.n + 1 if this == self._last else 1)
        self._last = this


@dataclass(slots=True)
class Health:
    """State, counts and errors of a source; written by its thread, read by any."""

    state: SourceState = SourceState.CONNECTING
    n_bytes: int = 0  # n_bytes, n_packets: received
    n_packets: int = 0
    # ``time.perf_counter_ns()`` at the receipt of the last packet, 0 if it is unknown.
    arrived_ns: int = 0
    n_connects: int = 0  # successful ones
    n_protocol_errors: int = 0  # impossible lengths
    n_cut_packets: int = 0  # streams that ended within a packet
    n_earlier_reconnects: int = 0  # reconnects of earlier sources of the same stream
    n_losses: int = 0  # connections that ended
    loss: str = ''  # the cause of the last end
    # What had arrived when the source was closed and was not read, empty for nothing.
    unread: str = ''
    error: LastError = field(default_factory=LastError)
    # A probable cause if nothing has been received since the connect, empty otherwise and if none
    # is known.
    silence: str = ''
    # Why the simulation cannot be driven although frames may arrive, empty if it can.
    fault: str = ''
    failures: Failures = field(default_factory=Failures)  # the last ones, which may end the source
    # Called by the source's thread after each error.
    on_error: Callable[[], object] = field(default=lambda: None, repr=False, compare=False)

    @property
    def n_reconnects(self) -> int:
        """Return the number of connects after the first one."""
        return self.n_earlier_reconnects + max(self.n_connects - 1, 0)

    @property
    def last_error(self) -> str:
        """Text of the last error, one line, ``''`` for none."""
        return self.error.text

    @last_error.setter
    def last_error(self, text: str) -> None:
        self.error.note(text)
        self.on_error()

    @property
    def reason(self) -> str:
        """Why nothing arrives: the last error, else the cause of the silence; one line."""
        return self.last_error or self.silence

    def fail(self, why: str) -> None:
        """
        Count the end of a connection, or a failed attempt to make one.

        :param why: cause, one line.
        """
        if self.state is SourceState.CONNECTED:
            self.loss = why
            self.n_losses += 1
        self.state = SourceState.WAITING
        self.last_error = why

    def count_on(self, earlier: Health) -> None:
        """
        Add the counts of an earlier source of the stream; called before this one starts.

        :param earlier: health of the source before; of its connects only the reconnects count.
        """
        for name in ('n_bytes', 'n_packets', 'n_protocol_errors', 'n_cut_packets'):
            setattr(self, name, getattr(self, name) + getattr(earlier, name))
        self.n_earlier_reconnects += earlier.n_reconnects


class FrameReader(Protocol):
    """
    Frames of a recording or a live stream.

    ``faults`` what is wrong with single actors and packets; ``details`` whether boxes, wheels and
    inputs are used, which may change between two frames.
    """

    details: bool

    @property
    def faults(self) -> Faults:
        """Return what was found beside the frames."""

    def frames(self) -> Iterator[Frame]:
        """Yield the frames until the recording or the stream ends, or :meth:`close`."""

    def close(self) -> None:
        """Make :meth:`frames` end soon; may be called from any thread, and twice."""


class Source(FrameReader, Protocol):
    """A reader of a live stream: it ends only without a reconnect, or with :meth:`close`."""

    health: Health

    def reconfigure(self, settings: Settings) -> None:
        """
        Use changed dynamic parameters; may be called from any thread.

        :param settings: all parameters; those that are not dynamic are as before.
        """


@runtime_checkable
class SteerableSource(Protocol):
    """A source that can be paused, such as a recording; methods may be called from any thread."""

    @property
    def is_paused(self) -> bool:
        """Whether frames are sent by :meth:`step` only."""

    @property
    def is_stepping(self) -> bool:
        """Whether not all of these have been yielded, nor the first one after a restart."""

    @property
    def position(self) -> float:
        """Seconds of the recording or the run that have passed."""

    def pause(self) -> None:
        """Send no frame until :meth:`step` or :meth:`resume`."""

    def resume(self) -> None:
        """End the pause."""

    def step(self, n_frames: int = 1) -> None:
        """Send frames at once while paused."""

    def restart(self) -> None:
        """Begin again with the first frame; a paused source stays paused after that frame."""


@dataclass(frozen=True, slots=True)
class EntityEdit:
    """
    A change of the entities of a simulator: SET, SPAWN or DELETE.

    What is None stays as it is.
    """

    kind: str
    name: str  # of the entity, as in frames
    # Position, m, z NaN for that of the ground, and unit quaternion x y z w, in the global frame.
    pose: tuple[float, ...] | None = None
    # Velocity, m/s, and angular velocity, rad/s, in axes of the global frame.
    twist: tuple[float, ...] | None = None
    resource: str = ''  # type of a new entity, by its name in the simulator


SET, SPAWN, DELETE = 'set', 'spawn', 'delete'


@runtime_checkable
class EditableSource(Protocol):
    """A source whose simulator makes changes of the kinds ``edits``."""

    edits: tuple[str, ...]

    def edit(self, edit: EntityEdit) -> float:
        """
        Have the simulator make a change; return the game time of the last frame before it, s.

        :raises StateSensorError: if it refuses, or does not answer.
        """


def edits_of(source: Source | None) -> tuple[str, ...]:
    """Return the kinds of changes that a source makes."""
    return source.edits if isinstance(source, EditableSource) else ()
