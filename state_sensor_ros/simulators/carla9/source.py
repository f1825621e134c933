# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames of a running CARLA 0.9, which a child reads with CARLA's client library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
import pickle
import re
import struct
import subprocess
from typing import NamedTuple

import msgspec

from state_sensor_ros.classes import EGO_TAG
from state_sensor_ros.connections.connection import Connection
from state_sensor_ros.control.ego_commands import EgoCommand
from state_sensor_ros.errors import StateSensorError, TransportError
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import carla9
from state_sensor_ros.simulators.carla9 import Carla9Parameters, frames
from state_sensor_ros.simulators.child_process import ChildSource, Order, ProcessEnd, StepControl
from state_sensor_ros.source import Report

# The call `version` of msgpack-RPC, which every server of 0.9 answers with its version.
_ASK_VERSION = b'\x94\x00\x01\xa7version\x90'
_VERSION = re.compile(rb'\d+\.\d+\.\d+[-\w.]*')
# The call of a client that reads no reply, as its first argument says.
_CONTROL, _WITHOUT_REPLY = 'apply_control_to_vehicle', (True,)
_ANSWER_S, _ANSWER_BYTES = 3.0, 256
# Exit code of a child that has braked the ego and restored the settings of the world, and the
# time that one has which does nothing else, s.
_RESTORED, _RESTORE_S = 0, 1.0
# Kinds of notes, as in Health: a world without steps, and one that moves although it is paused.
SILENCE, FAULT = 'silence', 'fault'


class StepSettings(NamedTuple):
    """The settings of a world that ticking changes."""

    is_synchronous: bool  # whether it waits for a client
    step_s: float | None  # simulated time of a step, s, None if it varies

    def __str__(self) -> str:
        step = 'steps of any length' if self.step_s is None else f'steps of {self.step_s:g} s'
        return f'{"synchronous" if self.is_synchronous else "asynchronous"} mode, {step}'


class ClientRun(NamedTuple):
    """The first request to a child; the others are bool (details), or of ``child_process``."""

    own: Carla9Parameters
    rate: float  # times real time, 0 as fast as possible
    is_paused: bool  # whether to make steps on request only
    details: bool = True  # whether boxes and inputs are used
    # Settings to restore at the end, which an earlier child found, None if there was none.
    found: StepSettings | None = None
    is_restore: bool = False  # whether to restore them and end


class EpisodeBegun(NamedTuple):
    """A world was found."""

    town: frames.TownMap
    found: StepSettings  # settings to restore at the end
    is_new: bool  # whether it replaces another one


class WorldNote(NamedTuple):
    """
    A line for the log, ``kind`` as of :data:`Report`.

    Those of :data:`SILENCE` and :data:`FAULT` hold until one without a text.
    """

    kind: str
    text: str


class Carla9Source(ChildSource):
    """Yield a frame for each step of the world."""

    simulator = 'CARLA'

    def __init__(self, settings: Settings, report: Report, *, reconnect: bool = True) -> None:
        self._own = own = settings.of(Carla9Parameters)
        super().__init__(settings, f'{own.host}:{own.port}', f'{__package__}.carla_process',
                         reconnect=reconnect)
        self._report = report
        self._sent_details = self.details
        self._probe: Connection | None = None
        self._has_lost = False
        # Settings to restore, until a child has restored them.
        self._found: StepSettings | None = None
        self._town = frames.TownMap()
        self._frames: frames.WorldFrames | None = None
        # Id of the ego in the scene, None without one.
        self._ego: int | None = None
        # The last command to this ego, None before the first.
        self._driven: EgoCommand | None = None

    def command(self) -> list[str]:
        """Return the words that start the child, in the Python with the client library."""
        return carla9.client_command(self._own.python, self._module)

    def first_request(self) -> ClientRun:
        """Return what the child does; another kind of server is recognized before."""
        self.begun()
        self.health.fault = ''
        self._has_lost = False
        self._check_server()
        self._sent_details = self.details
        return ClientRun(self._own, self.settings.rate, self.is_paused, self.details, self._found)

    def _check_server(self) -> None:
        """Ask for the version; the connection stays open, since its end is that of the server."""
        probe = self._probe = Connection(self._own.host, self._own.port)
        if self.is_closing:
            return
        probe.open()
        answer = b''
        with suppress(OSError):
            probe.open_socket.settimeout(_ANSWER_S)
            probe.open_socket.sendall(_ASK_VERSION)
            answer = probe.open_socket.recv(_ANSWER_BYTES)
        release = _VERSION.search(answer)
        if not release and not self.is_closing:
            raise TransportError(
                self._address, 'no reply from CARLA 0.9: the server may be CARLA 0.8 (source '
                'carla), another program, or still loading')
        if self._own.ackermann and release and not carla9.is_release(
                release[0].decode(), carla9.FOLLOWING):
            raise TransportError(self._address, f'the server is CARLA {release[0].decode()}: '
                                 'carla9.ackermann needs 0.9.14 or later')
        with suppress(OSError):
            probe.watch(self._lose)

    def _lose(self) -> None:
        """End the child, whose library would wait for its time-out, and brake without both."""
        self._has_lost = True
        super().interrupt()
        self._brake_anew()

    def _brake_anew(self) -> None:
        """Brake by another connection."""
        with suppress(OSError), closing(Connection(self._own.host, self._own.port)) as other:
            other.connect()
            self.brake(other)

    def failure(self, end: ProcessEnd | None, exit_code: int | None) -> str:
        """Return why the child has failed, or that the server has gone."""
        return 'the server has closed the connection' if end is None and self._has_lost \
            else super().failure(end, exit_code)

    def disconnect(self) -> None:
        """End the child and the connection to the server."""
        super().disconnect()
        if self._probe is not None:
            self._probe.close()

    def take(self, message: object) -> Frame | None:
        if isinstance(message, frames.WorldStep):
            if self.details != self._sent_details:
                self._sent_details = self.details
                with suppress(TransportError):
                    self.send(self.details)
            self.n_proven = message.n_proven
            assert self._frames is not None
            frame = self._frames.frame(message, self._town, details=self.details)
            return self.stepped(frame, is_first=message.is_first)
        if isinstance(message, frames.StepActors):
            self._frames, rows = frames.WorldFrames(message), message.rows
            self._ego = next((int(number) for number, tags in zip(
                rows.numbers, rows.tags, strict=True) if EGO_TAG in tags), None)
        elif isinstance(message, EpisodeBegun):
            self._take_episode(message)
        elif isinstance(message, WorldNote):
            self._take_note(message.kind, message.text)
        return None

    def _take_episode(self, message: EpisodeBegun) -> None:
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

    def _take_note(self, kind: str, text: str) -> None:
        if kind in (SILENCE, FAULT):
            setattr(self.health, kind, text)
        if text:
            self._report(kind, text)

    def drive(self, order: Order) -> None:
        """Send a command to the child; if it cannot be sent, brake the ego without it."""
        if not self.has_frame:
            raise TransportError(self._address, 'not connected, or no frame yet')
        self._driven = order.command
        try:
            self.send(order)
        except TransportError:
            self.brake()
            raise

    def brake(self, by: Connection | None = None) -> None:
        """Have the server itself brake an ego that was driven; from any thread."""
        driven, ego, probe = self._driven, self._ego, by or self._probe
        if driven is None or ego is None or probe is None:
            return
        pedals = (0.0, -driven.steer, 1.0, driven.hand_brake, driven.reverse, False, 0)
        with suppress(OSError):
            # A server that has stopped must not hold up the end.
            probe.send_at_once(msgspec.msgpack.encode(
                (0, 0, _CONTROL, (_WITHOUT_REPLY, ego, pedals))))

    def frames(self) -> Iterator[Frame]:
        """Yield what arrives; at the end, restore settings that a killed child has left."""
        try:
            yield from super().frames()
        finally:
            if self._found is not None:
                with suppress(StateSensorError, OSError, subprocess.TimeoutExpired):
                    self._restore()

    def _restore(self) -> None:
        """Have another child restore the settings."""
        request = pickle.dumps(ClientRun(self._own, 0.0, True, found=self._found,
                                         is_restore=True))
        # A message of a pipe is its length, then its bytes.
        done = subprocess.run(
            self.command(), input=struct.pack('!i', len(request)) + request, check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            timeout=_RESTORE_S)
        self.ended(done.returncode)

    def ended(self, exit_code: int | None) -> None:
        """Note whether the child has restored the settings; brake if it may not have braked."""
        if exit_code == _RESTORED:
            self._found = None
        elif self._driven is not None:
            self.brake()
            # Its connection may be lost; what the child had sent may be read after another brake.
            self._brake_anew()

    def interrupt(self) -> None:
        """End the child or the wait for an answer, which ends :meth:`receive`."""
        # Beside a child, the connection stays open for a last brake.
        if (probe := self._probe) is not None and not self.process_id:
            probe.shut_down()
        super().interrupt()


class TickingSource(StepControl, Carla9Source):
    """A world that this source ticks, which it can therefore pause, step and begin again."""
