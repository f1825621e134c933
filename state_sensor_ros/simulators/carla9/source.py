# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames of a running CARLA 0.9, which a process of its own reads with CARLA's client library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
import math
from operator import or_
import re
import time
from weakref import ref

import msgspec

from state_sensor_ros.simulators import (
    EGO_TAG,
    EgoCommand,
    EVERYTHING,
    FrameDecoder,
    FrameLike,
    Needs,
    Packet,
    Report,
    Settings,
    StateSensorError,
    TransportError,
)
from state_sensor_ros.simulators.carla9.client_python import client_command
from state_sensor_ros.simulators.carla9.frames import (
    StepActors,
    TownMap,
    WorldFrames,
    WorldStep,
)
from state_sensor_ros.simulators.carla9.parameters import Carla9Parameters, has_ackermann
from state_sensor_ros.simulators.connections import Connection
from state_sensor_ros.simulators.process_source import Indicate, StepControl, StepSource

# The call `version` of msgpack-RPC, which every server of 0.9 answers with its version.
_ASK_VERSION = b'\x94\x00\x01\xa7version\x90'
_VERSION = re.compile(rb'\d+\.\d+\.\d+[-\w.]*')
# The call of a client that reads no reply, as its first argument says.
_CONTROL, _WITHOUT_REPLY = 'apply_control_to_vehicle', (True,)
_ANSWER_S = 3.0
_ANSWER_BYTES = 256
# Steps after which it is looked up again what is used of them.
_NEEDED_STEPS = 4
# Exit code of a process that has braked the ego and restored the settings of the world.
_RESTORED = 0
# Time after which a process that reads no commands is stuck, s.
_STUCK_S = 0.4
# Time after which the process notes that commands have no effect, s.
_NOTED_S = 1.0
# Kind of the notes about a world without steps.
SILENCE = 'silence'
# Those of a world that moves although it is paused, and of commands without an effect.
FAULT, UNANSWERED = 'fault', 'unanswered'


@dataclass(frozen=True, slots=True)
class StepSettings:
    """The settings of a world that ticking changes."""

    is_synchronous: bool  # whether it waits for a client
    step_s: float | None  # simulated time of a step, s, None if it varies

    def __str__(self) -> str:
        step = 'steps of any length' if self.step_s is None else f'steps of {self.step_s:g} s'
        return f'{"synchronous" if self.is_synchronous else "asynchronous"} mode, {step}'


@dataclass(frozen=True, slots=True)
class ClientRun:
    own: Carla9Parameters
    rate: float  # times real time, 0 as fast as possible
    is_paused: bool  # whether steps are made on request only
    needed: Needs  # what is used of frames
    # Settings to restore at the end, which an earlier process found, None if there was none.
    found: StepSettings | None = None
    is_restore: bool = False  # whether to restore them and end


@dataclass(frozen=True, slots=True)
class EpisodeBegun:
    """A world was found."""

    town: TownMap
    found: StepSettings  # settings to restore at the end
    is_new: bool  # whether it replaces another one


@dataclass(frozen=True, slots=True)
class WorldNote:
    """
    A line for the log, ``kind`` as of :data:`Report`.

    That of :data:`SILENCE` is why there are no steps, ``text`` empty once there are some, and so
    are those of :data:`FAULT` and :data:`UNANSWERED`.
    """

    kind: str
    text: str


class Carla9Source(StepSource):
    """Yield a frame for each step of the world."""

    # reconnect: whether to connect again after a failure.

    simulator = 'CARLA'

    def __init__(self, settings: Settings, report: Report,
                 decoders: Iterable[ref[FrameDecoder]], *, reconnect: bool = True) -> None:
        self._own = own = settings.of(Carla9Parameters)
        super().__init__(settings, f'{own.host}:{own.port}',
                         f'{__package__}.carla_process', reconnect=reconnect)
        self._report, self._decoders = report, decoders
        self._probe: Connection | None = None
        self._has_lost = False
        self._needed = self._now_needed()
        # Settings to restore, until a process has restored them.
        self._found: StepSettings | None = None
        self._town = TownMap()
        self._frames: WorldFrames | None = None
        self._n_steps = 0
        # Row and id of the ego in the scene, None without one.
        self._ego: tuple[int, int] | None = None
        # When it was noted that the server does not take commands.
        self.unanswered_since_s = math.inf
        # The last command to this ego, None before the first.
        self._driven: EgoCommand | None = None

    def _now_needed(self) -> Needs:
        # A copy: another thread may add one.
        decoders = [decoder() for decoder in (*self._decoders,)]
        needs = [decoder.needs for decoder in decoders if decoder is not None] or [EVERYTHING]
        return reduce(or_, needs)

    def command(self) -> list[str]:
        """Return the words that start the process, in the Python with the client library."""
        return client_command(self._own.python, self._module)

    def first_request(self) -> ClientRun:
        """Return what the process does; another kind of server is recognized before."""
        self.begun()
        self.health.fault, self.unanswered_since_s = '', math.inf
        self._check_server()
        return ClientRun(self._own, self.settings.rate, self.is_paused, self._needed, self._found)

    def _check_server(self) -> None:
        """Ask for the version; the connection stays open, since its end is that of the server."""
        self._has_lost, self._ego, self._driven = False, None, None
        probe = self._probe = Connection(self._own.host, self._own.port)
        if self.is_closing:
            return
        probe.open()
        answer = b''
        with suppress(OSError):
            probe.open_socket.settimeout(_ANSWER_S)
            probe.open_socket.sendall(_ASK_VERSION)
            until_s = time.monotonic() + _ANSWER_S
            while time.monotonic() < until_s and len(answer) < _ANSWER_BYTES \
                    and not _VERSION.search(answer):
                piece = probe.open_socket.recv(_ANSWER_BYTES)
                if not piece:
                    break
                answer += piece
        release = _VERSION.search(answer)
        if not release and not self.is_closing:
            raise TransportError(
                self._address, 'no reply from CARLA 0.9: the server may be CARLA 0.8 (source '
                'carla), another program, or still loading')
        if self._own.ackermann and release and not has_ackermann(release[0].decode()):
            raise TransportError(self._address, f'the server is CARLA {release[0].decode()}: '
                                 'carla9.ackermann needs 0.9.14 or later')
        with suppress(OSError):
            probe.watch(self._lose)

    def _lose(self) -> None:
        """End the process, whose library would wait for its time-out."""
        self._has_lost = True
        super().interrupt()

    def reason(self, exit_code: int | None) -> str:
        """Return why the process has ended without a reason."""
        return 'the server has closed the connection' if self._has_lost \
            else super().reason(exit_code)

    def disconnect(self) -> None:
        """End the process and the connection to the server."""
        super().disconnect()
        if self._probe is not None:
            self._probe.close()

    def take(self, message: object) -> FrameLike | Packet | None:
        if isinstance(message, WorldStep):
            return self._stepped(message)
        if isinstance(message, StepActors):
            self._frames = WorldFrames(message)
            rows = message.rows
            self._ego = next(((row, int(rows.numbers[row])) for row, tags in enumerate(rows.tags)
                              if EGO_TAG in tags), None)
        elif isinstance(message, EpisodeBegun):
            self._begun(message)
        elif isinstance(message, WorldNote):
            if message.kind == SILENCE:
                self.health.silence = message.text
            elif message.kind == FAULT:
                self.health.fault = message.text
            elif message.kind == UNANSWERED:
                self.unanswered_since_s = time.monotonic() if message.text else math.inf
            if message.text:
                self._report(message.kind, message.text)
        return None

    def _begun(self, message: EpisodeBegun) -> None:
        self._town = message.town
        self._ego = self._driven = None
        self.begun()
        if not message.is_new:
            self.connected()
            self.show_pause()
        if self._own.tick and self._found is None and message.found.is_synchronous:
            self._report('settings', f'the world was in {message.found}: another client ticks '
                         'it or was killed; the mode is restored at the end')
        self._found = message.found if self._own.tick else None

    @property
    def address(self) -> str:
        """Host and port of the server."""
        return self._address

    def _stepped(self, message: WorldStep) -> Packet:
        self._n_steps += 1
        if not self._n_steps % _NEEDED_STEPS and (needed := self._now_needed()) != self._needed:
            self._needed = needed
            with suppress(TransportError):
                self.send(needed)
        assert self._frames is not None
        return self.stepped(self._frames.late(message, self._town), message.game_time,
                            message.number, is_first=message.is_first)

    def drive(self, command: EgoCommand) -> None:
        """Send a command to the process; if it does not take it, brake the ego without it."""
        is_stuck = self.unread_s() > _STUCK_S
        self._driven = command
        try:
            self.send(command)
        except TransportError:
            self.brake()
            raise
        if is_stuck:
            self.brake()
            raise TransportError(self._address, f'{self.program} reads no commands: the server '
                                 'brakes the ego')

    def brake(self) -> None:
        """Have the server itself brake an ego that was driven; from any thread."""
        driven, ego, probe = self._driven, self._ego, self._probe
        if driven is None or ego is None or probe is None:
            return
        pedals = (0.0, -driven.steer, 1.0, driven.hand_brake, driven.reverse, False, 0)
        with suppress(OSError):
            # A server that has stopped must not hold up the end.
            probe.send_at_once(msgspec.msgpack.encode(
                (0, 0, _CONTROL, (_WITHOUT_REPLY, ego[1], pedals))))

    def packets(self) -> Iterator[Packet]:
        """Yield what arrives; at the end, restore settings that a killed process has left."""
        try:
            yield from super().packets()
        finally:
            if self._found is not None:
                self._restore()

    def _restore(self) -> None:
        """Start a process that restores the settings; it has a second."""
        with suppress(StateSensorError, OSError):
            self.run_briefly(ClientRun(self._own, 0.0, True, self._needed, self._found,
                                       is_restore=True))

    def ended(self, exit_code: int | None) -> None:
        """Note whether the process has restored the settings; brake if it may not have braked."""
        if exit_code == _RESTORED:
            self._found = None
        else:
            self.brake()

    def interrupt(self) -> None:
        """End the process or the wait for an answer, which ends :meth:`receive`."""
        # Beside a process, the connection stays open for a last brake.
        if (probe := self._probe) is not None and not self.process_id:
            probe.shut_down()
        super().interrupt()


class TickingSource(StepControl, Carla9Source):
    """A world that this source ticks, which it can therefore pause, step and begin again."""


class Carla9Commands:
    """
    Send commands to the process, whose thread for requests applies them at once.

    If it cannot take them, the ego is braked without it.
    """

    def __init__(self, source: Carla9Source) -> None:
        self._source = source

    def send(self, command: EgoCommand) -> None:
        if not self._source.has_frame:
            raise TransportError(self._source.address, 'not connected, or no frame yet')
        self._source.drive(command)

    def indicate(self, indicators: int) -> None:
        """Set the turn signals of the ego."""
        self._source.send(Indicate(indicators))

    def unanswered_s(self) -> float:
        """Return for how long the server has shown other pedals than those sent, s."""
        since_s = self._source.unanswered_since_s
        return time.monotonic() - since_s + _NOTED_S if math.isfinite(since_s) else 0.0

    def brake(self) -> None:
        """Have the server brake the ego without the process."""
        self._source.brake()

    def close(self) -> None:
        """Do nothing: the process sends the last command before its end."""
